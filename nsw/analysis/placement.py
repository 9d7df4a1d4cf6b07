"""Where processes were: on which nodes, whether several worked on one GPU, and where they hold contexts beside."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from nsw.analysis.groups import group_by
from nsw.analysis.steady import process_key, process_label
from nsw.wording import first_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    Row = Mapping[str, Any]

__all__ = ["StrayContext", "crowded_gpu_sentences", "find_stray_contexts", "node_sentences_by_case"]

_MAX_NODES = 4  # nodes in a sentence


def node_sentences_by_case(ranks: Iterable[Row], cases: Mapping[str, str]) -> list[tuple[str, str]]:
    """For each case whose runs had several ranks: how many there were, on which nodes.

    Args:
        ranks: Rows of table ranks.
        cases: The case of each run.
    """
    lines = []
    for case, rows in group_by(ranks, lambda row: cases.get(row["run"], row["run"])).items():
        first = Counter(row["host"] for row in rows if row["run"] == rows[0]["run"])  # ranks by node
        names = sorted({row["host"] for row in rows})
        counts = f" ({' + '.join(str(count) for count in first.values())})" if len(first) > 1 else ""
        lines.append((case, f"{sum(first.values())} ranks{counts} on {first_names(names, _MAX_NODES)}"))
    return lines


def crowded_gpu_sentences(
    ranks: Iterable[Row], kernels: Iterable[Row], cases: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Each case, with a sentence, where several ranks worked on one GPU while others of the node had nothing to do.

    Args:
        ranks: Rows of table ranks: what each rank saw.
        kernels: Rows of phase_summary.
        cases: The case of each run.
    """
    seen: dict[tuple[str, str], dict[int, list[str]]] = {}  # run, node -> rank -> GPUs
    for row in ranks:
        if row["gpus"]:
            seen.setdefault((row["run"], row["host"]), {})[row["rank"]] = row["gpus"].split(",")
    # run -> process, rank -> GPU by its number -> ns
    used: dict[str, dict[tuple[Any, int | None], dict[int, float]]] = {}
    for row in kernels if seen else ():
        if row["summary"] == "gpu_summary" and row["kind"] == "kernel" and row.get("device") is not None:
            took = used.setdefault(row["run"], {}).setdefault((process_key(row), row.get("rank")), {})
            took[row["device"]] = took.get(row["device"], 0.0) + (row.get("total_ns") or 0.0)
    case_sentences: dict[tuple[str, str], None] = {}
    for (run, node), gpus in seen.items():
        several = sum(other_run == run for other_run, _ in seen) > 1
        # of several GPUs the one with most work: others may hold a context only
        most = [(rank, max(took, key=lambda device: took[device])) for (_, rank), took in used.get(run, {}).items()]
        text = _crowded_node_sentence(node, gpus, most, several=several)
        if text is not None:
            case_sentences[cases.get(run, run), text] = None
    return list(case_sentences)


def _crowded_node_sentence(
    node: str, gpus: Mapping[int, list[str]], processes: Iterable[tuple[int | None, int]], *, several: bool
) -> str | None:
    """What is wrong on one node, of `several`; None where nothing is, or it is not known."""
    node_gpus = list(dict.fromkeys(gpu for rank_gpus in gpus.values() for gpu in rank_gpus))
    alike = len({tuple(rank_gpus) for rank_gpus in gpus.values()}) == 1
    users: Counter[str] = Counter()
    for rank, device in processes:
        # without a rank a number means something where it means the same to all
        visible = (node_gpus if alike and not several else None) if rank is None else gpus.get(rank)
        if visible is not None and device < len(visible):
            users[visible[device]] += 1
    crowded = max(users, key=lambda gpu: users[gpu], default=None)
    idle = len(node_gpus) - len(users)
    if crowded is None or users[crowded] < 2 or idle <= 0:
        return None
    return (
        f"{users[crowded]} ranks worked on one GPU of {node} ({crowded}), and {idle} of its {len(node_gpus)} GPUs had"
        " nothing to do: let each rank see its own (`launcher: {gpus: own}`), or choose the GPU by the local rank in"
        " the program"
    )


@dataclass(frozen=True, slots=True)
class StrayContext:
    """A CUDA context of a process on a GPU on which it does not work; `iteration_ns` is its work in an iteration."""

    process: str
    device: int
    kernels: int
    copies: int
    gpu_ns: float
    iteration_ns: float | None


def find_stray_contexts(process_gpus: Iterable[Row]) -> tuple[StrayContext, ...]:
    """The contexts that processes hold beside their work, by GPU, of the first run that has any.

    Args:
        process_gpus: Rows of process_gpus of a case.
    """
    stray = [
        row for rows in group_by(process_gpus, process_key).values() if any(row["works"] for row in rows)
        for row in rows if not row["works"] and row.get("device") is not None
    ]  # fmt: skip
    stray.sort(key=lambda row: row["device"])
    return tuple(
        StrayContext(
            process_label(row, None), row["device"], row["kernels"], row["copies"], row["gpu_ns"],
            row.get("iteration_gpu_ns"),
        )
        for row in stray if row.get("run") == stray[0].get("run")
    )  # fmt: skip


_MOST_AT_ONCE = 200  # runs on a host that are compared with the next one


@dataclass(frozen=True, slots=True)
class Span:
    """When and where a run used GPUs; times are Unix seconds of that host."""

    run: str
    host: str
    started: float
    ended: float


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs at the same time on a host; `gpu` is one that both had, None where neither was given one of its own."""

    first: str
    second: str
    host: str
    gpu: str | None


def find_runs_sharing_gpus(spans: Iterable[Span], gpus_of: Callable[[str], frozenset[str] | None]) -> list[Pair]:
    """The pairs of runs that may have shared a GPU.

    Args:
        spans: Of all runs that use GPUs.
        gpus_of: The GPUs that a run was given (CUDA_VISIBLE_DEVICES): an empty set, it saw all; None, nobody knows.
            Asked only of runs that another one overlapped.
    """
    shared_pairs = []
    for first_span, second_span in _overlapping_spans(spans):
        first_gpus, second_gpus = gpus_of(first_span.run), gpus_of(second_span.run)
        if first_gpus is None or second_gpus is None:
            continue
        if both := first_gpus & second_gpus:
            shared_pairs.append(Pair(first_span.run, second_span.run, first_span.host, min(both)))
        elif not first_gpus and not second_gpus:
            shared_pairs.append(Pair(first_span.run, second_span.run, first_span.host, None))
    return shared_pairs


def _overlapping_spans(spans: Iterable[Span]) -> Iterator[tuple[Span, Span]]:
    for _, on_host in groupby(sorted(spans, key=attrgetter("host", "started", "run")), key=attrgetter("host")):
        going: list[Span] = []
        for span in on_host:
            going = [earlier for earlier in going[-_MOST_AT_ONCE:] if earlier.ended > span.started]
            yield from ((earlier, span) for earlier in going)
            going.append(span)


def gpu_sharing_sentences(shared_pairs: list[Pair]) -> list[str]:
    """A sentence for each way to share, for a person; [] where nothing was shared."""
    sure = [pair for pair in shared_pairs if pair.gpu is not None]
    perhaps = [pair for pair in shared_pairs if pair.gpu is None]
    lines = []
    if sure:
        pair = sure[0]
        lines.append(
            f"{pair.first} and {pair.second} ran at the same time on GPU {pair.gpu} of"
            f" {pair.host}{_remaining_pairs_text(sure)}: their"
            " figures are those of two programs on one GPU; measure them again, one after the other"
        )
    if perhaps:
        pair = perhaps[0]
        lines.append(
            f"{pair.first} and {pair.second} ran at the same time on {pair.host}{_remaining_pairs_text(perhaps)}, and"
            " neither was given"
            " a GPU of its own (CUDA_VISIBLE_DEVICES is not set): they may have shared one; `whole_nodes: true` or"
            " `limits: {max_in_flight: 1}` of the site keeps runs apart"
        )
    return lines


def _remaining_pairs_text(shared_pairs: list[Pair]) -> str:
    rest = len(shared_pairs) - 1
    return f", as did {rest} more pair{'s' if rest > 1 else ''}" if rest else ""
