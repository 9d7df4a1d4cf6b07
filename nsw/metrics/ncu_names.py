"""ncu's metric names per chip: which there are, with every suffix (names only, no descriptions).

The lists are of Nsight Compute 2022.3 and 2024.2 and of CUPTI 12.9 and 13.5, merged: a name that none of them has may
still be one of another version.
"""

from __future__ import annotations

import bz2
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nsw.metrics.catalogue import Chip


Kind = Literal["c", "r", "t"]  # counter, ratio, throughput

# What ncu itself adds to the counters of the chip: of the launch, the device, the source page, other collections.
_ADDED_BY_NCU: Final = re.compile(
    r"(?:launch|device|derived|profiler|numa|nvlink|c2clink|sass)__[\w.]+\Z"
    r"|(?:derived|memory)_\w+\Z|(?:thread_)?inst_executed(?:_true)?\Z"
    r"|sm(?:sp)?__(?:maximum_warps|pcsamp|branch_targets|sass_inst_executed_memdesc)_[\w.]+\Z"
    r"|(?:group|regex|breakdown|pmsampling):.+\Z"
)
_ROLLUPS: Final = ("sum", "avg", "min", "max")
_SPANS: Final = ("active", "elapsed", "frame", "region")
_OF_COUNTERS: Final = frozenset(
    {
        "", "per_second", "peak_sustained",
        *(f"per_cycle_{span}" for span in ("active", "elapsed", "in_frame", "in_region")),
        *(f"{measure}_{span}" for measure in ("peak_sustained", "pct_of_peak_sustained") for span in _SPANS),
        *(f"peak_sustained_{span}.per_second" for span in _SPANS),
    }
)  # fmt: skip
_OF_RATIOS: Final = frozenset({"ratio", "pct", "max_rate"})
_OF_THROUGHPUTS: Final = frozenset(f"pct_of_peak_sustained_{span}" for span in _SPANS)


@cache
def _chips_and_base_names() -> tuple[tuple[str, ...], Mapping[str, tuple[Kind, int]]]:
    """The chips of the bits, and of each base name its kind and the bits of the chips that have it."""
    packed = files("nsw.metrics").joinpath("data/ncu_names.tsv.bz2").read_bytes()
    head, *lines = bz2.decompress(packed).decode("ascii").splitlines()
    kinds_and_bits: dict[str, tuple[Kind, int]] = {}
    for line in lines:
        name, kind, bits = line.split("\t")
        kinds_and_bits[name] = (kind, int(bits, 16))  # type: ignore[assignment]  # the file holds these kinds only
    return tuple(head.split("\t")[2:]), kinds_and_bits


def base_names(chip: Chip | None = None) -> list[str]:
    """The base names that a chip has, or any chip, in alphabetical order."""
    order, kinds_and_bits = _chips_and_base_names()
    if chip is None or chip.names not in order:
        return list(kinds_and_bits)
    bit = 1 << order.index(chip.names)
    return [name for name, (_, bits) in kinds_and_bits.items() if bits & bit]


def chips_with_base_name(base_name: str) -> tuple[str, ...]:
    """The chips whose lists have a base name."""
    order, kinds_and_bits = _chips_and_base_names()
    bits = kinds_and_bits.get(base_name, ("c", 0))[1]
    return tuple(chip for at, chip in enumerate(order) if bits >> at & 1)


def base_name_kind(base_name: str) -> Kind | None:
    """Whether a base name is a counter, a ratio or a throughput; None: no chip has it."""
    entry = _chips_and_base_names()[1].get(base_name)
    return entry[0] if entry else None


def is_made_by_ncu(name: str) -> bool:
    """Whether ncu itself makes this metric, so that no list of a chip's counters has it."""
    return _ADDED_BY_NCU.match(name) is not None


def is_ncu_style_name(name: str) -> bool:
    """Whether a name is written as ncu's are, with two underscores behind the unit: `sm__warps_active.avg`."""
    return is_made_by_ncu(name) or "__" in name


def nearest_base_name(name: str, names: Iterable[str]) -> str | None:
    """The base name that was probably meant: of the nearest three, the one with the longest common beginning."""
    import difflib

    matches = difflib.get_close_matches(name, list(names), n=3, cutoff=0.7)

    def common_length(match: str) -> int:
        return next((n for n, (a, b) in enumerate(zip(name, match, strict=False)) if a != b), len(match))

    return max(matches, key=common_length, default=None)


def split_base_and_suffix(name: str) -> tuple[str, str]:
    """The base name of a metric and its suffixes: the longest beginning that some chip has, else up to the dot."""
    kinds_and_bits = _chips_and_base_names()[1]
    base = name
    while base not in kinds_and_bits and "." in base:
        base = base.rpartition(".")[0]
    if base not in kinds_and_bits:
        at = name.find(".", name.find("__") + 1)
        base = name if at < 0 else name[:at]
    return base, name[len(base) + 1 :]


def allowed_suffixes(base_name: str) -> str:
    """The suffixes that a base name takes, for people."""
    base_kind = base_name_kind(base_name)
    if base_kind == "r":
        return "one of .ratio .pct .max_rate"
    rate_suffixes = "" if base_kind == "t" else ", perhaps with .per_second, .per_cycle_active, .peak_sustained ..."
    return (
        f"one of .sum .avg .min .max{rate_suffixes}"
        if base_kind == "c"
        else ".avg.pct_of_peak_sustained_elapsed or the like"
    )


def base_name_takes_suffix(base_name: str, suffix: str) -> bool:
    """Whether a base name takes these suffixes; without one, ncu prints all that the base name has."""
    base_kind = base_name_kind(base_name)
    if suffix == "" or base_kind is None:
        return True
    if base_kind == "r":
        return suffix in _OF_RATIOS
    rollup, _, rest = suffix.partition(".")
    if rollup not in _ROLLUPS:
        return False
    return rest in (_OF_COUNTERS if base_kind == "c" else _OF_THROUGHPUTS)


_MAX_NAMES: Final = 200_000  # names; an ncu of 2025 lists some 5,500
# a row: the name, at least two blanks or the column's end, the type; what is longer goes on in an indented line
_ROW: Final = re.compile(r"([A-Za-z][\w.]*__\w+)\s+(?:Counter|Ratio|Throughput)\b")
_OLD_ROW: Final = re.compile(r"([A-Za-z][\w.]*__\w+)(?:\s{2,}\S.*)?\s*")  # before 2023: the name and its description


def query_metrics_command(ncu: str, chip: str) -> tuple[str, ...]:
    """The command that asks an ncu; it needs no GPU."""
    return (ncu, "--query-metrics", "--chip", chip)


def base_names_in_query_output(output: str) -> frozenset[str]:
    """The base names in what ncu printed; empty where it printed none."""
    names: set[str] = set()
    for line in output.splitlines():
        row = _ROW.match(line) or _OLD_ROW.fullmatch(line)
        if row is not None:
            names.add(row[1])
            if len(names) >= _MAX_NAMES:
                break
    return frozenset(names)
