"""Which part of an iteration uses the tensor cores, the memory, PCIe and NVLink: by what nsys sampled, at no replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.blocks import Block, Column, Evidence, Note, Table
from nsw.analysis.groups import group_by
from nsw.analysis.kernel_classes import classify_gpu_operation
from nsw.wording import first_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsw.analysis.summary import Summary

    Row = Mapping[str, Any]

__all__ = ["SHARES", "gpu_metric_blocks"]

# what is shown: a name, and the columns whose sum it is
SHARES: Final = {
    "SMs active": ("sms_active_pct",), "tensor cores": ("tensor_pct",), "DRAM": ("dram_read_pct", "dram_write_pct"),
    "PCIe to GPU": ("pcie_rx_pct",), "PCIe from GPU": ("pcie_tx_pct",), "NVLink to GPU": ("nvlink_rx_pct",),
    "NVLink from GPU": ("nvlink_tx_pct",),
}  # fmt: skip
_PART: Final = (Column("case", "case"), Column("part", "part of the time", "name"), Column("time_pct", "time", "%"))
_COLUMNS: Final = (*_PART, *(Column(columns[0], label, "whole %") for label, columns in SHARES.items()))
_TENSOR: Final = len(_PART) + list(SHARES).index("tensor cores")  # its place in a row
_TIME: Final = 2
_LITTLE_PCT: Final = 5.0  # of an iteration: shorter classes are not in the sentence
_NAMED: Final = 3
_UNSPLIT: Final = "from the first kernel to the end"  # of a run without iterations


def gpu_metric_blocks(summary: Summary) -> list[Block]:
    """A row for each part of each case's iteration, and a sentence on its tensor cores."""
    rows: list[tuple[Any, ...]] = []
    notes: list[Block] = []
    for case, case_rows in summary.gpu_metrics.items():
        parts = _mean_row_by_part(case, case_rows, summary.classes)
        rows += parts.values()
        notes += _tensor_core_notes(case, parts)
        lacking = {row["part"]: row["missing"] for row in case_rows if row["missing"] and row["part"] not in parts}
        notes += [
            Note("gpu metrics", f"{case}: no GPU metrics of the part {part}: {reason}", tone="aside")
            for part, reason in lacking.items()
        ]
    if not rows:
        return notes
    shown = [n for n in range(len(_COLUMNS)) if n < len(_PART) or any(row[n] is not None for row in rows)]
    table = Table(
        "gpu metrics", "how busy the parts of a GPU are, by nsys's samples (means)",
        tuple(_COLUMNS[n] for n in shown), tuple(tuple(row[n] for n in shown) for row in rows), wide="part",
        evidence=(Evidence("gpu_metrics", tuple(summary.gpu_metrics)),),
    )  # fmt: skip
    return [table, *notes]


def _mean_row_by_part(case: str, rows: Sequence[Row], classes: Mapping[str, str]) -> dict[str, tuple[Any, ...]]:
    """A row by the name of the part: of all GPUs and runs together, and of kernels by their class."""

    def label_of(row: Row) -> str:
        if row["part"] == "kernel":
            return f"{classify_gpu_operation(row['name'], recipe_classes=classes)} kernels"
        if row["part"] == "range":
            return f"range {row['name']}"
        return _UNSPLIT if (row["part"], row["phase"]) == ("iteration", "all") else str(row["part"])

    by_part = group_by((row for row in rows if row["missing"] is None), label_of)
    whole = sum(row["time_ns"] for label in ("iteration", _UNSPLIT) for row in by_part.get(label, ()))
    return {
        label: (case, label, 100 * sum(row["time_ns"] for row in of_part) / whole if whole else None,
                *(_time_weighted_mean_of_sum(of_part, columns) for columns in SHARES.values()))
        for label, of_part in by_part.items()
    }  # fmt: skip


def _time_weighted_mean_of_sum(rows: Sequence[Row], columns: Sequence[str]) -> float | None:
    """The mean over the time of the rows of the sum of the columns; None where one was not sampled."""
    if any(row[column] is None for row in rows for column in columns):
        return None
    time = sum(row["time_ns"] for row in rows)
    return sum(row[column] * row["time_ns"] for row in rows for column in columns) / time if time else None


def _tensor_core_notes(case: str, parts: Mapping[str, tuple[Any, ...]]) -> list[Block]:
    """How long the tensor cores are active in an iteration, and in which kernels."""
    of, whole = ("an iteration", parts["iteration"]) if "iteration" in parts else ("the run", parts.get(_UNSPLIT))
    if whole is None or whole[_TENSOR] is None:
        return []
    kernels = [row for label, row in parts.items() if label.endswith(" kernels") and row[_TIME] >= _LITTLE_PCT]
    in_kernels = [
        f"{row[_TENSOR]:.0f} % of the time of {row[1]} ({row[_TIME]:.0f} % of {of})"
        for row in sorted(kernels, key=lambda row: -row[_TIME])
    ]
    text = f"{case}: the tensor cores are active {whole[_TENSOR]:.0f} % of {of}"
    return [
        Note(
            "gpu metrics",
            f"{text}: {first_names(in_kernels, _NAMED)}" if in_kernels else text,
            evidence=(Evidence("gpu_metrics", (case,)),),
        )
    ]
