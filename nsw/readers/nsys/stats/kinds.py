"""Which report of nsys a table is: by its columns first, by its names next, by the lines before it last."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nsw.readers.nsys.stats.columns import Column, column
from nsw.readers.nsys.stats.reports import REPORTS, Kind
from nsw.readers.text.quantities import size_factor

if TYPE_CHECKING:
    from collections.abc import Iterable

_CUDA = re.compile(r"cu(?:da)?[A-Z]\w*")
_LIBRARIES = re.compile(r"(?:cublas|cudnn|cusparse|cufft|cusolver|nccl|vk[A-Z]|gl[A-Z]|egl|wgl|cl[A-Z]|ucp_|uct_)\w*")
_OPENACC = re.compile(
    r"(?:(?:Compute|Data|Host Data) Construct|Enqueue (?:Launch|Upload|Download)|Enter Data|Exit Data"
    r"|Update|Wait|Implicit Wait|Device (?:Init|Shutdown)|Runtime Shutdown|Alloc|Free|Create|Delete)(?:@.*)?"
)
_MOVES_DATA = (
    "Data", "Host Data", "Enqueue Upload", "Enqueue Download", "Enter Data", "Exit Data", "Update", "Alloc", "Free",
    "Create", "Delete",
)  # fmt: skip
_SYSTEM_CALL = re.compile(r"[a-z_][a-z0-9_]*")

# Lines of any program may be before a table: only those count that read like titles of nsys.
_TITLE = (
    ("mpi", re.compile(r"\bMPI\b.*\b(?:Statistics|Summary)", re.IGNORECASE)),
    ("openacc", re.compile(r"OpenACC", re.IGNORECASE)),
    ("openmp", re.compile(r"OpenMP\b.*\b(?:Statistics|Summary)", re.IGNORECASE)),
    (
        "other",
        re.compile(
            r"(?:OpenGL|Vulkan|NvVideo|\bDX1\d|\bD3D1\d|WDDM|PIX\b|UCX|cuBLAS|cuDNN|syscall)"
            r".*\b(?:Statistics|Summary|Trace|API|Ranges?)\b",
            re.IGNORECASE,
        ),
    ),
    ("osrt", re.compile(r"Operating System Runtime|OS Runtime", re.IGNORECASE)),
    ("api", re.compile(r"CUDA API", re.IGNORECASE)),
    ("kernels", re.compile(r"CUDA (?:GPU )?Kernel", re.IGNORECASE)),
)
# Columns that no other report has.
_TELLING: tuple[tuple[Kind, frozenset[str]], ...] = (
    ("gpu_trace", frozenset(("start", "duration", "grdx", "strm"))),
    ("api_trace", frozenset(("start", "duration", "name", "result"))),
    ("launch_trace", frozenset(("kernel start", "kernel dur"))),
    ("launches", frozenset(("kavg", "aavg", "kernel name"))),
    ("nvtx_gpu", frozenset(("total proj time", "range instances", "range"))),
    ("nvtx_gpu_trace", frozenset(("name", "projected duration", "numgpuops"))),
    ("nvtx_trace", frozenset(("start", "duration", "durchild", "name"))),
    ("mpi_trace", frozenset(("start", "duration", "event", "peerrank"))),
    ("mpi_sizes", frozenset(("total message volume", "instances", "source", "name"))),
    ("um", frozenset(("total htod migration size",))),
    ("cpu_faults", frozenset(("cpu page faults", "cpu instruction address"))),
)
_NVTX_STYLES = (
    ("pushpop", re.compile(r"push[-/_ ]?pop|nvtxppsum", re.IGNORECASE)),
    ("startend", re.compile(r"start[-/_ ]?end|nvtxs[es]sum", re.IGNORECASE)),
)


def kind_of(headers: list[str], titles: tuple[str, ...], names: Iterable[str], report: str | None = None) -> Kind:
    """The report with these columns.

    Args:
        headers: Their titles.
        titles: The lines before the table.
        names: Its last column.
        report: What nsys called it, where that is known.
    """
    columns = [column(header) for header in headers]
    known = {c.name for c in columns}
    told = None if report is None else REPORTS.get(report, "other")
    kind = _by_columns(columns, known)
    if kind is not None and (kind != "nvtx" or told is None):
        return "other" if kind == "nvtx" and _title(titles) == "other" else kind
    if told is not None and {"time", "total time"} <= known:
        return told
    if not {"time", "total time"} <= known:
        return "other"
    title = _title(titles)
    if "event type" in known or title == "other":
        return "other"
    if "source" in known:
        return "mpi"
    if "name" in known and (title == "openmp" or ("count" in known and title is None)):
        return "openmp"
    if known & {"num calls", "calls"} and "name" in known:
        return _calls(list(names), title)
    if known & {"instances"} and "name" in known:
        return "other" if title == "mpi" else "kernels"
    return "other"


def _by_columns(columns: list[Column], known: set[str]) -> Kind | None:
    for kind, needed in _TELLING:
        if needed <= known:
            return kind
    if {"time", "total time"} <= known:
        return _by_time_columns(known)
    total = next((c for c in columns if c.name == "total"), None)
    if total is None or not known & {"operation", "name"}:
        return None
    is_size = size_factor(total.unit, 1000) if total.unit else {"avg", "max"} <= known
    return "sizes" if is_size else None


def _by_time_columns(known: set[str]) -> Kind | None:
    if {"category", "operation"} <= known:
        return "gpu"
    if known & {"operation", "operations"}:
        return "copies"
    return "nvtx" if "range" in known else None


def _calls(names: list[str], title: str | None) -> Kind:
    """CUDA's API, the operating system's, or OpenACC: names are surer than a line from elsewhere."""
    if sum(bool(_CUDA.fullmatch(n)) for n in names) * 2 > len(names):
        return "api"
    if title == "openacc" or sum(bool(_OPENACC.fullmatch(n)) for n in names) * 2 > len(names):
        return "openacc"
    if any(_LIBRARIES.fullmatch(n) for n in names):
        return "other"
    if title == "osrt" or all(_SYSTEM_CALL.fullmatch(n) for n in names):
        return "osrt"
    return "api" if title == "api" else "other"


def _title(titles: tuple[str, ...]) -> str | None:
    for line in reversed(titles):
        for kind, words in _TITLE:
            if words.search(line):
                return kind
    return None


def nvtx_style(cell: str, titles: tuple[str, ...], report: str | None = None) -> str | None:
    """pushpop, startend or mark: from the row's own cell, the report's name, or the table's title."""
    for text in (cell, *([report] if report else reversed(titles))):
        for style, words in _NVTX_STYLES:
            if words.search(text):
                return style
        if text.strip().lower() in ("mark", "marker"):
            return "mark"
    return None


def title_unit(titles: tuple[str, ...]) -> str | None:
    """The unit that versions until 2021 gave in a table's title: `... Statistics (by size in KiB):`."""
    found = re.search(r"\((?:by size in )?(\w+)\):?\s*$", titles[-1]) if titles else None
    return found[1] if found else None


def table_name(titles: tuple[str, ...], headers: list[str]) -> str:
    """What to call a table in a message, where nsys gave it no name."""
    found = (re.search(r"^(?:Generating )?([A-Z].* Statistics)", line) for line in reversed(titles))
    return next((match[1] for match in found if match), "a table of " + ", ".join(headers[:4]))


def openacc_kind(name: str) -> str:
    """compute, data or other."""
    if name.startswith(("Compute Construct", "Enqueue Launch")):
        return "compute"
    return "data" if name.startswith(_MOVES_DATA) else "other"
