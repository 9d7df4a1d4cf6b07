"""The metric catalogue: portable names, their meaning and unit, and how each tool and chip measures them.

With it the chips (names, compute capabilities, products) and the peaks of GPUs by their data sheets (dense operations,
boost clocks), which are a check on ceilings and no measurement. An expression over a tool's metric names has names with
dots, numbers, the four operations and parentheses, nothing else: `dram__bytes_read.sum + dram__bytes_write.sum`.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, TypeAlias

from nsw.resources import csv_rows


@dataclass(frozen=True, slots=True)
class Chip:
    """One chip.

    Attributes:
        name: As ncu names it, such as gh100.
        capability: Compute capability as (major, minor); None: not published.
        names: The chip whose list of metric names holds for it; None: Nsight Compute does not support it.
        products: GPUs that have it.
    """

    name: str
    capability: tuple[int, int] | None
    names: str | None
    products: tuple[str, ...]


@cache
def chips_by_name() -> Mapping[str, Chip]:
    """Every chip by its name, oldest first."""
    return {row["chip"]: _chip_from_row(row) for row in csv_rows("metrics/data/chips.csv")}


def _chip_from_row(row: Mapping[str, str]) -> Chip:
    major, _, minor = row["capability"].partition(".")
    capability = (int(major), int(minor)) if major else None
    products = tuple(p.strip() for p in row["products"].split(",") if p.strip())
    return Chip(row["chip"], capability, row["names"] or None, products)


@cache
def find_chip(name_capability_or_product: str | None) -> Chip | None:
    """The chip of a name (`gh100`, `GH100`), a capability (`9.0`) or a product (`NVIDIA H100 80GB HBM3`).

    Of a capability that several chips share it is the first, whose metric names are those of the others.
    """
    if name_capability_or_product is None:
        return None
    lowered = name_capability_or_product.strip().lower()
    if lowered in chips_by_name():
        return chips_by_name()[lowered]
    for chip in chips_by_name().values():
        if chip.capability and lowered == "{}.{}".format(*chip.capability):
            return chip
    words = lowered.replace("-", " ").split()
    matches = [
        (len(product), chip)
        for chip in chips_by_name().values()
        for product in chip.products
        if _product_words_in_device_words(words, product)
    ]
    return max(matches, key=lambda pair: pair[0])[1] if matches else None


def _product_words_in_device_words(words: list[str], product: str) -> bool:
    """Whether all words of a product's name are among the words of a device's, in their order."""
    rest = iter(words)
    return all(word in rest for word in product.lower().replace("-", " ").split())


LEVEL = "level"  # nvprof prints 0 to 10, of which each step is a tenth of the peak


@dataclass(frozen=True, slots=True)
class Measured:
    """How ncu measures a metric on some chips.

    Attributes:
        expressions: Over ncu's names, in ncu's base units; the first is what is asked for, the others say the same of
            what a report has instead. None: not on these chips.
        reason: Why it is not there, or why it differs from other chips; empty where it does not.
    """

    expressions: tuple[str, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Attributes:
        name: Portable name; nvprof's where nvprof has it.
        family: What it is about: occupancy, dram, flop, stalls ...
        unit: Of the portable value: %, byte, byte/s, ns, inst/cycle ...; empty: a plain ratio.
        meaning: In a line.
        nvprof: nvprof's name, or an expression over several; None: nvprof does not measure it.
        times: What nvprof's value is multiplied by; `level`: it is one of 0 to 10.
        ncu: How ncu measures it where `by_chip` says nothing else.
        by_chip: How ncu measures it on chips that differ.
    """

    name: str
    family: str
    unit: str
    meaning: str
    nvprof: str | None
    times: str
    ncu: Measured
    by_chip: Mapping[str, Measured] = field(default_factory=dict)

    def measured_on(self, chip: Chip | None) -> Measured:
        """How ncu measures it on a chip; None: on most."""
        if chip is None or chip.names is None:
            return self.ncu
        return self.by_chip.get(chip.names, self.ncu)


@dataclass(frozen=True, slots=True)
class Group:
    """A name for several metrics."""

    name: str
    meaning: str
    metrics: tuple[str, ...]


@cache
def metrics_by_name() -> Mapping[str, Metric]:
    """Every metric by its portable name."""
    exceptions: dict[str, dict[str, Measured]] = {}
    for row in csv_rows("metrics/data/by_chip.csv"):
        measured = Measured(_split_alternatives(row["ncu"]), row["why"])
        exceptions.setdefault(row["name"], {}).update(dict.fromkeys(row["chips"].split(), measured))
    metrics = {}
    for row in csv_rows("metrics/data/catalogue.csv"):
        by_chip = exceptions.get(row["name"], {})
        everywhere = by_chip.pop("*", None) or Measured(_split_alternatives(row["ncu"]))
        metrics[row["name"]] = Metric(
            name=row["name"],
            family=row["family"],
            unit=row["unit"],
            meaning=row["meaning"],
            nvprof=row["nvprof"] or None,
            times=row["times"],
            ncu=everywhere,
            by_chip=by_chip,
        )
    return metrics


def _split_alternatives(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split("|") if part.strip())


@cache
def metric_groups_by_name() -> Mapping[str, Group]:
    """Every group by its name."""
    return {
        r["group"]: Group(r["group"], r["meaning"], tuple(r["metrics"].split()))
        for r in csv_rows("metrics/data/groups.csv")
    }


@cache
def metric_names_by_alias() -> Mapping[str, str]:
    """Other names of portable metrics, as ncu's pages and other tools call them."""
    return {row["alias"]: row["name"] for row in csv_rows("metrics/data/aliases.csv")}


def find_metric(name_or_alias: str) -> Metric | None:
    """The metric of a portable name or an alias."""
    return metrics_by_name().get(metric_names_by_alias().get(name_or_alias, name_or_alias))


@dataclass(frozen=True, slots=True)
class Gpu:
    """One product.

    Attributes:
        name: As its data sheet names it.
        flop_per_s: Peaks by what is counted: flop_count_sp, tensor_ops_fp16 ...; those that the sheet tells.
        clocks_hz: The clock that each peak is at.
        dram_bytes_per_s: Bandwidth of the device memory.
        l2_bytes: Size of L2; 0: not told.
        base_clock_hz: The SM clock that it keeps under load.
        nvlink_bytes_per_s: What all of its NVLinks carry in one direction; 0: it has none.
    """

    name: str
    flop_per_s: Mapping[str, float]
    clocks_hz: Mapping[str, float]
    dram_bytes_per_s: float
    l2_bytes: float = 0.0
    base_clock_hz: float = 0.0
    nvlink_bytes_per_s: float = 0.0


def find_gpu(device_name: str | None) -> Gpu | None:
    """The product of a device's name, such as `NVIDIA H100 80GB HBM3`; None: its data sheet is not here."""
    words = set(re.split(r"[\s-]+", (device_name or "").lower()))
    matches = [(len(match), gpu) for match, gpu in _gpus_with_product_words() if match <= words]
    return max(matches, key=lambda pair: pair[0])[1] if matches else None


@cache
def _gpus_with_product_words() -> tuple[tuple[frozenset[str], Gpu], ...]:
    gpus = []
    for row in csv_rows("metrics/data/gpus.csv"):
        # these columns are named as the metric that counts the operations
        counted = [name for name in row if name.startswith(("flop_count", "tensor_ops")) and row[name]]
        peaks = {name: float(row[name]) * 1e12 for name in counted}
        clocks = {
            name: float(row["tensor_clock_mhz" if name.startswith("tensor") else "boost_mhz"]) * 1e6 for name in peaks
        }
        memory = float(row["mem_gbs"]) * 1e9, float(row["l2_mb"] or 0) * 1e6
        nvlink = float(row["nvlink_gbs"] or 0) / 2 * 1e9  # data sheets have the sum of both directions
        gpu = Gpu(row["gpu"], peaks, clocks, *memory, float(row["base_mhz"] or 0) * 1e6, nvlink)
        gpus.append((frozenset(row["match"].lower().split()), gpu))
    return tuple(gpus)


Node: TypeAlias = "str | float | tuple[str, Node, Node]"

_SIGNS: Final[Mapping[type[ast.operator], str]] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_MEANING: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


@cache
def parse_expression(expression: str) -> Node:
    """The expression as a tree: a name, a number, or (operator, left, right).

    Raises:
        ValueError: It holds something else.
    """
    try:
        return _parse_node(ast.parse(expression.strip(), mode="eval").body)
    except SyntaxError:
        raise ValueError(f"not an expression over metrics: {expression}") from None


@cache
def metric_names_in_expression(expression: str) -> tuple[str, ...]:
    """The metric names of an expression, each once, in their order."""
    return tuple(dict.fromkeys(_names_in_node(parse_expression(expression))))


def evaluate_expression(expression: str, values: Mapping[str, Any]) -> Any:
    """The value of an expression whose names all have one: numbers, or columns of them as numpy has them."""
    return _evaluate_node(parse_expression(expression), values)


def _evaluate_node(node: Node, values: Mapping[str, Any]) -> Any:
    if isinstance(node, str | float):
        return values[node] if isinstance(node, str) else node
    sign, left, right = node
    return _MEANING[sign](_evaluate_node(left, values), _evaluate_node(right, values))


def _parse_node(node: ast.expr) -> Node:
    if isinstance(node, ast.BinOp) and type(node.op) in _SIGNS:
        return _SIGNS[type(node.op)], _parse_node(node.left), _parse_node(node.right)
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    return _dotted_name(node)


def _dotted_name(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted_name(node.value)}.{node.attr}"
    raise ValueError(f"not an expression over metrics: {ast.unparse(node)}")


def _names_in_node(node: Node) -> list[str]:
    if isinstance(node, str):
        return [node]
    return [] if isinstance(node, float) else _names_in_node(node[1]) + _names_in_node(node[2])
