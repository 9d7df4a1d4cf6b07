"""Match the launches that a timeline chose with those that the counters pass measured, by name, shape and ordinal.

The tool's filter counts launches of each kernel, so the n-th measured launch of a kernel is the n-th chosen ordinal. A
program that does not repeat itself moves its kernels: then the counters are of other work than the timeline's times.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nsw.analysis.guided import Picked

TABLE: Final = "chosen_launches"
MOVED: Final = "launches moved between the passes: "  # how each sentence begins
MEASURED, OTHER_SHAPE, MISSING, UNEXPECTED = "measured", "other shape", "missing", "unexpected"
_SHOWN: Final = 3
_FIX: Final = (
    "make each run launch the same kernels (fixed seeds, no autotuning such as cudnn.benchmark); or choose by name:"
    " kernels: {regex: ...}, launches: {skip: 10, count: 3}"
)
_Row = dict[str, Any]


def chosen_rows(picked: Iterable[Picked], source: str) -> list[_Row]:
    """The rows of table chosen_launches before anything was measured.

    Args:
        picked: The chosen launches.
        source: The run of the timeline that they were chosen from.
    """
    return [asdict(one) | {"chosen_from": source, "state": None, "launch_id": None} for one in picked]


def matched(chosen: Iterable[Mapping[str, Any]], launches: Iterable[Mapping[str, Any]]) -> list[_Row]:
    """The chosen launches, each with what became of it, and the launches that were measured unasked.

    Args:
        chosen: The rows of table chosen_launches of a run.
        launches: The rows of table launches of that run.
    """
    wanted: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in chosen:
        if row.get("ordinal") is not None:
            wanted[str(row.get("mangled_name") or ""), str(row["kernel"])].append(row)
    left = _by_names(_of_one_process(launches))
    found: list[_Row] = []
    for (mangled, kernel), rows in wanted.items():
        names = (mangled, _squeezed(kernel), str(rows[0]["short_name"]))
        there = next((left.pop(name) for name in names if name and name in left), [])
        ordered = sorted(rows, key=lambda row: int(row["ordinal"]))
        for at, row in enumerate(ordered):
            found.append(_with_launch(row, there[at] if at < len(there) else None))
        found += [_unexpected(launch) for launch in there[len(ordered) :]]
    return [*found, *(_unexpected(launch) for some in left.values() for launch in some)]


def sentences(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """What did not match, each with a hint; none where every chosen launch was measured."""
    chosen = [row for row in rows if row["state"] != UNEXPECTED]
    told = []
    if some := [row for row in chosen if row["state"] == MISSING]:
        source = some[0].get("chosen_from") or "the timeline"
        told.append(f"{len(some)} of {len(chosen)} launches chosen from {source} were not measured: {_kernels(some)}")
    if some := [row for row in chosen if row["state"] == OTHER_SHAPE]:
        one = some[0]
        told.append(
            f"{len(some)} of {len(chosen)} launches have another grid or block than in the timeline, such as"
            f" launch {one['ordinal']} of {one['short_name']}: {one['measured_grid']} x {one['measured_block_size']}"
            f" instead of {one['grid']} x {one['block_size']}"
        )
    if some := [row for row in rows if row["state"] == UNEXPECTED]:
        told.append(f"{len(some)} launches were measured that the timeline did not choose: {_kernels(some)}")
    return [(MOVED + text, _FIX) for text in told]


def _by_names(launches: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """The launches of each kernel in their order, by its mangled name, else its name without spaces."""
    found: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in launches:
        found[str(row.get("mangled_name") or _squeezed(str(row.get("kernel") or "")))].append(row)
    return dict(found)


def _of_one_process(launches: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The launches of the first rank, of its process with most of them: kernels were chosen from one process."""
    groups: dict[tuple[int, Any], list[Mapping[str, Any]]] = defaultdict(list)
    for row in launches:
        groups[row.get("rank") or 0, row.get("pid")].append(row)
    if not groups:
        return []
    first = min(rank for rank, _ in groups)
    most = max((some for (rank, _), some in groups.items() if rank == first), key=len)
    return sorted(most, key=lambda row: row.get("launch_id") or 0)


def _with_launch(row: Mapping[str, Any], launch: Mapping[str, Any] | None) -> _Row:
    if launch is None:
        return dict(row) | {"state": MISSING, "launch_id": None}
    same = all(
        row.get(name) is None or launch.get(name) is None or _squeezed(row[name]) == _squeezed(launch[name])
        for name in ("grid", "block_size")
    )
    return dict(row) | {
        "state": MEASURED if same else OTHER_SHAPE,
        "launch_id": launch.get("launch_id"),
        "measured_grid": launch.get("grid"),
        "measured_block_size": launch.get("block_size"),
    }


def _unexpected(launch: Mapping[str, Any]) -> _Row:
    return {
        "kernel": launch.get("kernel"),
        "short_name": launch.get("short_name") or launch.get("kernel"),
        "mangled_name": launch.get("mangled_name"),
        "state": UNEXPECTED,
        "launch_id": launch.get("launch_id"),
        "measured_grid": launch.get("grid"),
        "measured_block_size": launch.get("block_size"),
    }


def _kernels(rows: Sequence[Mapping[str, Any]]) -> str:
    counts: dict[str, int] = defaultdict(int)
    for row in rows:
        counts[str(row["short_name"])] += 1
    shown = [f"{count} of {name}" for name, count in list(counts.items())[:_SHOWN]]
    return ", ".join(shown) + (f" and {len(counts) - _SHOWN} more kernels" if len(counts) > _SHOWN else "")


def _squeezed(name: str) -> str:
    """A name without spaces, which the profilers put at different places."""
    return "".join(name.split())
