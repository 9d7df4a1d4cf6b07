"""Which rank, node or rack the others wait for in collectives, how much that costs all, and why it is late.

A collective ends on all ranks together when the last has come, so that its duration on each rank says how early that
one came, whatever the clocks of the nodes say. What a late rank costs is the time from the median rank's arrival to its
own, as far as the GPUs that wait do nothing else meanwhile. Ranks that are late together, as those of a slow node or
rack, share that cost. Why one is late is what it does longer than the others in the iterations that it holds up:
kernels, copies, or waiting for its host.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace
from math import comb
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.groups import group_by, sum_by, sum_times_and_calls
from nsw.analysis.steady import APART, process_key, process_label
from nsw.quantities import format_ns, format_time_change
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Row = Mapping[str, Any]

__all__ = ["DELAYED", "DELAYED_PCT", "OF_STRAGGLERS", "Straggler", "find_stragglers"]

DELAYED_PCT: Final = 10.0  # of the time of a rank's kernels, more than of the others'
DELAYED: Final = "launches that take far longer than the same in other iterations: another process works there"

OF_STRAGGLERS: Final = ("collectives", "iterations", "gaps", "phase_summary", "gpu_use", "conditions", "ranks")

_FEWEST_RANKS: Final = 4
_FEWEST_ITERATIONS: Final = 3
_COST_PCT: Final = 1.0  # of an iteration: what a late rank costs at least
_HELD_UP: Final = 0.25  # of the cost of the median iteration, or of one held up most: those with less do not count
_CHANCE: Final = 0.01  # that any rank comes last so often where all are alike
_FOREMOST: Final = 0.05  # of the ranks
_LATE_TOGETHER: Final = 0.5  # of the time from the median rank to the last one
_NODE: Final = 0.5  # of its ranks are late, where a node is
_RACK: Final = 1.0  # of its nodes are, where a rack is
_AS_LATE: Final = 0.25  # of the iterations that a node or rack holds up: a rank or node that shares in them
_MAIN: Final = 0.5  # of what it takes longer: kernels of one name
_LARGE: Final = 0.005  # of the time of all kernels
_ALIKE: Final = 0.5  # of what all kernels take longer: the median one does too, where it is the clock
_MORE: Final = 1.05  # times the launches of the others
_SLOW_CLOCK: Final = 0.97
_LIMITED_PCT: Final = 5.0
_LIMITS: Final = {
    "heat_limited_pct": "held down by heat", "power_limited_pct": "held down by its power limit",
    "setting_limited_pct": "set by somebody",
}  # fmt: skip
_WHEN: Final = "when it delays most"  # which _extra_part_times_ns looks at
_GAPS: Final = {
    "synchronise": "waits for the GPU", "value": "values that it reads back",
    "copy": "copies that block", "allocate": "allocating memory", "load": "loading modules",
}  # fmt: skip
_SYSTEM: Final = {"read_ns": "reading files", "write_ns": "writing files", "lock_ns": "waiting for a lock"}


@dataclass(frozen=True, slots=True)
class Straggler:
    """How late a rank, node or rack of a case comes to the collectives, over the runs of the case.

    Attributes:
        name: `rank 3`, the node's name, or `rack r2`.
        node: Its node; None where the reports do not tell it, and of a rack.
        device: Its GPU as the process numbers it; None of a node or rack.
        last_pct: In how many of the collectives it comes last.
        late_ns: How long behind the median rank it then comes, the median.
        cost_ns: What it costs all in an iteration, the mean.
        cost_pct: The same in per cent of the median iteration.
        late: Whether it holds the others up: more often than ranks that are alike would, and at a cost that matters.
        cause: An id of docs/causes.md; None where it is not late, or its timeline shows no reason.
        why: The reason in words; empty as `cause` is None.
        rack: Its rack; None where the site does not tell it.
    """

    name: str
    node: str | None
    device: int | None
    last_pct: float
    late_ns: float
    cost_ns: float
    cost_pct: float
    late: bool = False
    cause: str | None = None
    why: str = ""
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class _Arrivals:
    """The collectives of a run that all of its ranks have, as arrays.

    `late` is how long behind the median rank each comes, shape (ranks, collectives), ns; `cost` its share of what that
    costs all, shape (ranks, iterations), ns; `parts` what each does in an iteration: computing, copies, waiting for its
    host, of that for its input, shape (4, ranks, iterations), ns.
    """

    ranks: tuple[Row, ...]
    late: Any
    cost: Any
    parts: Any


def find_stragglers(
    tables: Mapping[str, Sequence[Row]], racks: Mapping[str, str] | None = None
) -> tuple[Straggler, ...]:
    """The ranks, nodes and racks of a case, those that are late and cost most first; none of fewer than four ranks.

    Args:
        tables: The rows of OF_STRAGGLERS of the case's runs.
        racks: The rack of each node, by its name with or without its domain.
    """
    by_run = group_by(tables["collectives"], lambda row: row.get("run"))
    run_arrivals = [arrivals for rows in by_run.values() if (arrivals := _common_collectives(rows)) is not None]
    if not run_arrivals:
        return ()
    iteration_ns = statistics.median(row["med_ns"] for row in tables["iterations"])
    evidence = _Evidence(tables)
    rack_of = _racks_of_nodes((row.get("host") for arrivals in run_arrivals for row in arrivals.ranks), racks or {})
    stragglers = (
        replace(each, rack=each.rack or rack_of.get(each.node))
        for arrivals in run_arrivals
        for each in _stragglers_of_run(arrivals, iteration_ns, evidence, rack_of)
    )
    together = group_by(stragglers, lambda straggler: straggler.name)
    merged = [_merge_over_runs(entries, len(run_arrivals)) for entries in together.values()]
    return tuple(sorted(merged, key=lambda s: (not s.late, -s.cost_ns)))


def _common_collectives(rows: Sequence[Row]) -> _Arrivals | None:
    """The collectives that all ranks of a run have; None where there are too few ranks or iterations."""
    import numpy as np

    of_rank = group_by(rows, _rank_key)
    if len(of_rank) < _FEWEST_RANKS:
        return None
    keys = [{(row["iteration"], row["number"]) for row in rank_rows} for rank_rows in of_rank.values()]
    common = sorted(set.intersection(*keys))
    first = np.unique([iteration for iteration, _ in common], return_index=True)[1]
    if len(first) < _FEWEST_ITERATIONS:
        return None
    place = {key: at for at, key in enumerate(common)}
    names = ("duration_ns", "alone_ns", "computing_ns", "copies_ns", "idle_ns", "input_ns")
    values = np.zeros((len(names), len(of_rank), len(common)))
    for rank, rank_rows in enumerate(of_rank.values()):
        for row in rank_rows:
            if (at := place.get((row["iteration"], row["number"]))) is not None:
                values[:, rank, at] = [row[name] for name in names]
    duration, alone = values[0], values[1]
    late = np.median(duration, axis=0) - duration
    most = late.max(axis=0)
    is_late = late > _LATE_TOGETHER * most
    waited = np.where(is_late, np.nan, alone)  # of the GPUs that wait, as far as they do nothing else
    with np.errstate(invalid="ignore"):
        exposed = np.fmin(np.where(is_late.all(axis=0), 0.0, np.nanmedian(waited, axis=0)), most)
    cost = is_late * np.maximum(exposed, 0.0) / np.maximum(is_late.sum(axis=0), 1)
    return _Arrivals(
        tuple(rank_rows[0] for rank_rows in of_rank.values()), late, np.add.reduceat(cost, first, axis=1),
        np.add.reduceat(values[2:], first, axis=2),
    )  # fmt: skip


def _racks_of_nodes(nodes: Iterable[str | None], racks: Mapping[str, str]) -> dict[str | None, str]:
    """The rack of each node that is in one."""
    rack_of = {node: racks.get(node) or racks.get(node.partition(".")[0]) for node in nodes if node}
    return {node: rack for node, rack in rack_of.items() if rack}


def _stragglers_of_run(
    arrivals: _Arrivals, iteration_ns: float, evidence: _Evidence, rack_of: Mapping[str | None, str]
) -> list[Straggler]:
    """The ranks of a run, and its nodes and racks where there are several with several ranks.

    Args:
        arrivals: Its collectives.
        iteration_ns: What an iteration takes.
        evidence: What says why a rank is late.
        rack_of: The rack of each node.
    """
    import numpy as np

    nodes: dict[str | None, list[int]] = group_by(range(len(arrivals.ranks)), lambda at: arrivals.ranks[at].get("host"))
    nodes_of_racks = group_by((node for node in nodes if node in rack_of), lambda node: rack_of[node])
    groups: list[tuple[str, str | None, list[list[int]], float]] = []  # name, rack, parts, how many of these are late
    if len(nodes) > 1 and all(len(members) > 1 for members in nodes.values()):
        groups += [(str(node), None, [[at] for at in members], _NODE) for node, members in nodes.items()]
    groups += [
        (f"rack {rack}", rack, [nodes[node] for node in members], _RACK)
        for rack, members in nodes_of_racks.items()
        if 1 < len(members) < len(nodes)
    ]
    stragglers = [({at}, _make_straggler(arrivals, [at], iteration_ns, evidence)) for at in range(len(arrivals.ranks))]
    for name, rack, parts, min_share in groups:
        members = [at for part in parts for at in part]
        shared = _is_cost_of_parts(np.array([arrivals.cost[part].sum(axis=0) for part in parts]), min_share)
        entry = _make_straggler(arrivals, members, iteration_ns, evidence, name=name, can_be_late=shared)
        if rack is not None:
            count = "both" if len(parts) == 2 else f"all {len(parts)}"
            reason = f"{count} of its nodes are late{entry.why and '; '}{entry.why}" if entry.late else ""
            entry = replace(entry, node=None, rack=rack, why=reason)
        if entry.late:
            stragglers = [
                (ranks, replace(part, late=False, cause=None, why="") if ranks <= {*members} else part)
                for ranks, part in stragglers
            ]
        stragglers.insert(0, ({*members}, entry))
    return [entry for _, entry in stragglers]


def _is_cost_of_parts(cost: Any, min_share: float) -> bool:
    """Whether a node's or rack's cost is that of so many of its ranks or nodes.

    Args:
        cost: What each of them costs, shape (parts, iterations).
        min_share: How many of them share in it, 0 to 1.
    """
    of_all = cost.sum(axis=0)
    # by cost: most iterations of a node where one rank is late now and then cost little, which all of its ranks share
    shared = (of_all * (cost >= of_all / (2 * len(cost)))).sum(axis=1)
    return bool(of_all.any() and (shared >= _AS_LATE * of_all.sum()).mean() >= min_share)


def _make_straggler(
    arrivals: _Arrivals, members: list[int], iteration_ns: float, evidence: _Evidence, *,
    name: str | None = None, can_be_late: bool = True,
) -> Straggler:  # fmt: skip
    """What these ranks together cost the others, and why.

    Args:
        arrivals: The collectives of their run.
        members: The ranks.
        iteration_ns: What an iteration takes.
        evidence: What says why a rank is late.
        name: That of their node or rack; None: it is a single rank, which has its own.
        can_be_late: Whether enough of them share in what they cost.
    """
    import numpy as np

    cost, row, single = arrivals.cost[members].sum(axis=0), arrivals.ranks[members[0]], name is None
    last = np.isin(arrivals.late.argmax(axis=0), members)
    late_ns = float(np.median(arrivals.late[members].max(axis=0)[last])) if last.any() else 0.0
    cost_pct = 100 * float(cost.mean()) / iteration_ns
    of_all = arrivals.cost.sum(axis=0)
    own, share = cost > of_all / 2, len(members) / len(arrivals.ranks)
    by_chance = 1.0
    few = max(round(_FOREMOST * len(arrivals.ranks)), 1)
    if single or few >= len(members):  # always among the foremost few of many ranks, whoever else is late
        each = arrivals.cost[members]
        ahead = np.array([(arrivals.cost > row).sum(axis=0) for row in each])
        foremost = np.median(np.where(each > 0, ahead, np.inf), axis=0) < few
        by_chance = _binomial_upper_tail(int(foremost.sum()), len(cost), few * share / len(members)) / share
    for quantile in (0.5, 0.95):  # of ranks that are late throughout, and of those that are so now and then
        held_up = of_all >= _HELD_UP * np.quantile(of_all, quantile)
        by_chance = min(by_chance, _binomial_upper_tail(int((own & held_up).sum()), int(held_up.sum()), share) / share)
    late = can_be_late and cost_pct >= _COST_PCT and by_chance < _CHANCE
    name = name or process_label(row, row.get("device")).removeprefix("the process on ")
    cause, why = None, ""
    if late:
        rank_rows = [arrivals.ranks[at] for at in members]
        others = [r for at, r in enumerate(arrivals.ranks) if at not in members]
        cause, why = evidence.lateness_reason(rank_rows, others, _extra_part_times_ns(arrivals.parts, members, cost))
    return Straggler(
        name, row.get("host"), row.get("device") if single else None, 100 * float(last.mean()), late_ns,
        float(cost.mean()), cost_pct, late, cause, why,
    )  # fmt: skip


def _binomial_upper_tail(count: int, trials: int, chance: float) -> float:
    """The probability of at least so many successes."""
    return sum(comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(count, trials + 1))


def _extra_part_times_ns(parts: Any, members: list[int], cost: Any) -> tuple[float, ...]:
    """By how much longer these ranks do each of the parts in the iterations that they hold up; ns."""
    import numpy as np

    iterations = cost >= max(cost.max() / 2, 1.0)
    others = np.delete(parts, members, axis=1)
    if not iterations.any() or not others.shape[1]:
        return (0.0,) * len(parts)
    differences = np.median(parts[:, members], axis=1) - np.median(others, axis=1)
    return tuple(differences[:, iterations].mean(axis=1).tolist())


def _merge_over_runs(entries: Sequence[Straggler], runs: int) -> Straggler:
    """One rank, node or rack over the runs of a case; late where it is so in most of them."""
    late = [entry for entry in entries if entry.late]
    first = max(late or entries, key=lambda entry: entry.cost_ns)
    nodes = {entry.node for entry in late}
    why = first.why
    if 2 * len(late) > runs and len(nodes) > 1 and first.device is not None:
        why += f"{'; ' if why else ''}it was late on {plural(len(nodes), 'node')}: the program's own, no node's"
    mean = {
        field: statistics.mean(getattr(entry, field) for entry in entries)
        for field in ("last_pct", "late_ns", "cost_ns", "cost_pct")
    }
    return replace(first, **mean, late=2 * len(late) > runs, why=why)


class _Evidence:
    """What the timelines and samples of a case say of each rank."""

    def __init__(self, tables: Mapping[str, Sequence[Row]]) -> None:
        self._gaps = group_by((row for row in tables["gaps"] if row.get("phase") not in APART), _rank_key)
        self._use = group_by(tables["gpu_use"], _rank_key)
        self._kernels = group_by(
            (row for row in tables["phase_summary"] if row["summary"] == "gpu_summary" and row["phase"] == "steady"),
            _rank_key,
        )
        self._conditions = {(row["run"], row["gpu"]): row for row in tables["conditions"] if row.get("sm_mhz")}
        self._gpus = {(row["run"], row["rank"]): (row["gpus"] or "").split(",") for row in tables["ranks"]}

    def lateness_reason(
        self, late: Sequence[Row], others: Sequence[Row], parts: tuple[float, ...]
    ) -> tuple[str | None, str]:
        """The cause of a late rank's lateness and its words, by what it does longer than the others (ns)."""
        computing, copies, idle, for_input = parts
        most = max(computing, copies, idle)
        if most <= 0:
            return None, ""
        if idle == most and for_input >= idle / 2:
            return "late-rank-data", f"{_WHEN}, its GPU waits {format_ns(idle)} longer for its input"
        if idle == most:
            return self._host_reason(late, others, idle)
        if copies == most:
            return "late-rank-data", f"{_WHEN}, it copies {format_ns(copies)} longer"
        return self._kernel_reason(late, others, computing)

    def _host_reason(self, late: Sequence[Row], others: Sequence[Row], idle: float) -> tuple[str, str]:
        """Why the GPU of a rank waits for its host."""
        waits = f"{_WHEN}, its GPU waits {format_ns(idle)} longer for its host"
        mine, theirs = self._gap_times(late), self._gap_times(others)
        more = {what: ns - theirs.get(what, 0.0) for what, ns in mine.items()}
        files = {words: more.pop(column, 0.0) for column, words in _SYSTEM.items()}
        what = max(files, key=lambda words: files[words])
        if files[what] >= idle / 2:
            return "late-rank-data" if what == "reading files" else "late-rank-host", f"{waits}, most of it {what}"
        words = max(more, key=lambda cause: more[cause], default="")
        if words in _GAPS and more[words] >= idle / 2:
            return "late-rank-host", f"{waits}, most of it in {_GAPS[words]}"
        return "late-rank-host", waits

    def _gap_times(self, ranks: Sequence[Row]) -> dict[str, float]:
        """Time (ns) an iteration of the median rank in gaps, by cause and by calls of the system."""
        of_ranks: list[dict[str, float]] = []
        for rank in ranks:
            key = _rank_key(rank)
            iterations = next((row["iterations"] for row in self._use.get(key, ()) if row.get("iterations")), 0)
            rows = self._gaps.get(key, ()) if iterations else ()
            causes = sum_by((row["cause"], row["total_ns"] / iterations) for row in rows)
            calls = sum_by((column, (row.get(column) or 0.0) / iterations) for row in rows for column in _SYSTEM)
            of_ranks.append(causes | calls)
        names = {name for times in of_ranks for name in times}
        return {name: statistics.median(times.get(name, 0.0) for times in of_ranks) for name in names}

    def _kernel_reason(self, late: Sequence[Row], others: Sequence[Row], computing: float) -> tuple[str, str]:
        """Why the kernels of a rank take longer: more of them, one of them, or all alike."""
        takes = f"{_WHEN}, its kernels take {format_ns(computing)} longer"
        mine, theirs = self._kernel_times(late), self._kernel_times(others)
        more = {name: took - theirs.get(name, (0.0, 0))[0] for name, (took, _) in mine.items()}
        total, before = sum(more.values()), sum(took for took, _ in theirs.values())
        if total <= 0 or not before:
            return "uneven-work", takes
        name = max(more, key=lambda kernel: more[kernel])
        calls, usual = mine[name][1], theirs.get(name, (0.0, 0))[1]
        if calls >= _MORE * usual and calls > usual:
            return "uneven-work", f"{takes}: it launches {name} more often"
        blocks, usual_blocks = (self._median_use(ranks, "blocks") for ranks in (late, others))
        if usual_blocks and blocks >= _MORE * usual_blocks:
            return "uneven-work", f"{takes}: its launches have {100 * (blocks / usual_blocks - 1):.0f} % more blocks"
        factor = total / before
        ratios = [
            more[kernel] / took for kernel, (took, _) in theirs.items() if took >= _LARGE * before and kernel in mine
        ]
        if len(ratios) > 1 and statistics.median(ratios) >= _ALIKE * factor:
            return self._clock_reason(late, others, f"all of its kernels take {format_time_change(100 * factor)}")
        if more[name] >= _MAIN * total:
            return (
                "uneven-work",
                f"{takes}, {name} {format_time_change(100 * (mine[name][0] / max(theirs[name][0], 1.0) - 1))}"
                if (name in theirs)
                else f"{takes}: only it runs {name}",
            )
        return "uneven-work", takes

    def _kernel_times(self, ranks: Sequence[Row]) -> dict[str, tuple[float, int]]:
        """Time (ns) and launches of the median rank by kernel, in the steady state."""
        of_ranks = [
            sum_times_and_calls(
                (row["short_name"] or row["name"], row["total_ns"], row["calls"])
                for row in self._kernels.get(_rank_key(rank), ())
                if row["kind"] == "kernel" and "nccl" not in row["name"].lower()
            )
            for rank in ranks
        ]
        names = {name for times in of_ranks for name in times}
        return {
            name: (statistics.median(times.get(name, (0.0, 0))[0] for times in of_ranks),
                   round(statistics.median(times.get(name, (0.0, 0))[1] for times in of_ranks)))
            for name in names
        }  # fmt: skip

    def _clock_reason(self, late: Sequence[Row], others: Sequence[Row], takes: str) -> tuple[str, str]:
        """Why all kernels of a rank take longer, by what was sampled of its GPU."""
        mine, theirs = self._condition_rows(late), self._condition_rows(others)
        if mine and theirs:
            clock, usual = (statistics.median(row["sm_mhz"] for row in rows) for rows in (mine, theirs))
            if clock < _SLOW_CLOCK * usual:
                limits = (
                    words for column, words in _LIMITS.items()
                    if any((row.get(column) or 0.0) >= _LIMITED_PCT for row in mine)
                )  # fmt: skip
                clocks = f"its clock is {clock:,.0f} MHz, that of the others {usual:,.0f}"
                return "late-rank-heat", f"{takes}: {', '.join((clocks, *limits))}"
        delayed_pct = self._median_use(late, "delayed_pct") - self._median_use(others, "delayed_pct")
        if delayed_pct >= DELAYED_PCT:
            return "late-rank-shared-gpu", f"{takes}, {delayed_pct:.0f} % of their time in {DELAYED}"
        return "late-rank-heat", f"{takes}: a lower clock, or another process on its GPU"

    def _median_use(self, ranks: Sequence[Row], column: str) -> float:
        """A column of gpu_use of the median rank, blocks those of an iteration; 0 where it is not known."""
        values = [
            row[column] / (row["iterations"] if column == "blocks" else 1)
            for rank in ranks
            for row in self._use.get(_rank_key(rank), ())
            if row.get(column) and row.get("iterations")
        ]
        return statistics.median(values) if values else 0.0

    def _condition_rows(self, ranks: Sequence[Row]) -> list[Row]:
        """The rows of conditions of the GPUs of these ranks, as far as it is known which they are."""
        rows = []
        for rank in ranks:
            gpus, device = self._gpus.get((rank.get("run"), rank.get("rank")), []), rank.get("device")
            if device is not None and device < len(gpus) and (rank.get("run"), gpus[device]) in self._conditions:
                rows.append(self._conditions[rank.get("run"), gpus[device]])
        return rows


def _rank_key(row: Row) -> tuple[Any, ...]:
    return (*process_key(row), row.get("device"))
