"""Which report of nsys a table is: by its columns first, by its names next, by the lines before it last."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, TypeAlias

from nsw.readers.nsys_stats_columns import Column, column
from nsw.readers.quantities import size_factor

if TYPE_CHECKING:
    from collections.abc import Iterable

Kind: TypeAlias = Literal[
    "kernels", "copies", "sizes", "gpu", "api", "osrt", "openacc", "openmp", "nvtx", "nvtx_gpu", "mpi", "um",
    "gpu_trace", "api_trace", "launches", "launch_trace", "other",
]  # fmt: skip

_CUDA = re.compile(r"cu(?:da)?[A-Z]\w*")
_LIBRARIES = re.compile(r"(?:cublas|cudnn|cusparse|cufft|cusolver|nccl|vk[A-Z]|gl[A-Z]|egl|wgl|cl[A-Z]|ucp_|uct_)\w*")
_OPENACC = re.compile(
    r"(?:(?:Compute|Data|Host Data) Construct|Enqueue (?:Launch|Upload|Download)|Enter Data|Exit Data"
    r"|Update|Wait|Implicit Wait|Device (?:Init|Shutdown)|Runtime Shutdown|Alloc|Free|Create|Delete)(?:@.*)?"
)
_SYSTEM_CALL = re.compile(r"[a-z_][a-z0-9_]*")

_TITLE = (
    ("mpi", re.compile(r"\bMPI\b|mpi_event", re.IGNORECASE)),
    ("openacc", re.compile(r"OpenACC", re.IGNORECASE)),
    ("openmp", re.compile(r"OpenMP", re.IGNORECASE)),
    (
        "other",
        re.compile(r"OpenGL|Vulkan|NvVideo|\bDX1\d|WDDM|PIX\b|UCX|cuBLAS|cuDNN|syscall", re.IGNORECASE),
    ),
    ("osrt", re.compile(r"Operating System Runtime|OS Runtime|osrt_?sum", re.IGNORECASE)),
    ("api", re.compile(r"CUDA API|cuda_?api_?sum", re.IGNORECASE)),
    ("kernels", re.compile(r"CUDA (?:GPU )?Kernel|kern_?(?:gb_?)?sum", re.IGNORECASE)),
)
_NVTX_STYLES = (
    ("pushpop", re.compile(r"push[-/_ ]?pop|nvtxppsum", re.IGNORECASE)),
    ("startend", re.compile(r"start[-/_ ]?end|nvtxsesum", re.IGNORECASE)),
)


def kind_of(headers: list[str], titles: tuple[str, ...], names: Iterable[str]) -> Kind:
    """The report with these columns; `names` are its last column, `titles` the lines before it."""
    columns = [column(header) for header in headers]
    known = {c.name for c in columns}
    title = _title(titles)
    if kind := _by_columns(columns, known):
        return kind
    if not {"time", "total time"} <= known:
        return "other"
    if "event type" in known or title == "other":
        return "other"
    if "source" in known or title == "mpi":
        return "mpi"
    if "name" in known and (title == "openmp" or ("count" in known and title is None)):
        return "openmp"
    if known & {"num calls", "calls"} and "name" in known:
        return _calls(list(names), title)
    if known & {"instances"} and "name" in known:
        return "kernels"
    return "other"


def _by_columns(columns: list[Column], known: set[str]) -> Kind | None:
    if {"start", "duration", "grdx", "strm"} <= known:
        return "gpu_trace"
    if {"start", "duration", "name", "result"} <= known:
        return "api_trace"
    if {"kernel start", "kernel dur"} <= known:
        return "launch_trace"
    if {"kavg", "aavg", "kernel name"} <= known:
        return "launches"
    if {"total proj time", "range instances", "range"} <= known:
        return "nvtx_gpu"
    if "total htod migration size" in known:
        return "um"
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


def nvtx_style(cell: str, titles: tuple[str, ...]) -> str | None:
    """pushpop, startend or mark, from the row's own cell or from the table's title."""
    for text in (cell, *reversed(titles)):
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


def report_name(titles: tuple[str, ...], headers: list[str]) -> str:
    """What to call a table in a message."""
    for line in reversed(titles):
        found = re.search(
            r"reports/(\w+)\.py|\((\w+)\):$|'(\w+)' stats report|^(?:Generating )?([A-Z].* Statistics)", line
        )
        if found:
            return next(group for group in found.groups() if group)
    return "a table of " + ", ".join(headers[:4])


def openacc_kind(name: str) -> str:
    """compute, data or other."""
    if name.startswith(("Compute Construct", "Enqueue Launch")):
        return "compute"
    data = (
        "Data",
        "Host Data",
        "Enqueue Upload",
        "Enqueue Download",
        "Enter Data",
        "Exit Data",
        "Update",
        "Alloc",
        "Free",
    )
    return "data" if name.startswith((*data, "Create", "Delete")) else "other"
