"""The reports of `nsys stats` by the names of every version: what each holds, and why some are not read.

Several reports have the same columns (NVTX, Vulkan and Direct3D ranges; calls of CUDA, Vulkan and the operating
system), so that only the name tells them apart. nsys prints it before the table, and makes it the end of the name of
a file that it writes itself.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind: TypeAlias = Literal[
    "kernels", "copies", "sizes", "gpu", "api", "osrt", "openacc", "openmp", "nvtx", "nvtx_gpu", "mpi", "um",
    "gpu_trace", "api_trace", "launches", "launch_trace", "nvtx_trace", "nvtx_gpu_trace", "mpi_trace", "mpi_sizes",
    "cpu_faults", "other",
]  # fmt: skip


class Why(NamedTuple):
    """Why a report is not read, and what has its figures."""

    reason: str
    fix: str | None = None


_NAMES: Final[Mapping[Kind, str]] = {
    "kernels": "gpukernsum gpukerngbsum cuda_gpu_kern_sum cuda_gpu_kern_gb_sum",
    "copies": "gpumemtimesum cuda_gpu_mem_time_sum",
    "sizes": "gpumemsizesum cuda_gpu_mem_size_sum",
    "gpu": "gpusum apigpusum cuda_gpu_sum cuda_api_gpu_sum",
    "api": "cudaapisum cuda_api_sum",
    "osrt": "osrtsum osrt_sum",
    "openacc": "openaccsum openacc_sum",
    "openmp": "openmpevtsum openmp_sum",
    "nvtx": "nvtxsum nvtxppsum nvtxsesum nvtxsssum nvtx_sum nvtx_pushpop_sum nvtx_startend_sum",
    "nvtx_gpu": "nvtx_gpu_proj_sum",
    "mpi": "mpi_event_sum",
    "um": "unifiedmemorytotals um_total_sum",
    "gpu_trace": "gputrace cuda_gpu_trace",
    "api_trace": "cudaapitrace cuda_api_trace",
    "launches": "kernexecsum cuda_kern_exec_sum",
    "launch_trace": "kernexectrace cuda_kern_exec_trace",
    "nvtx_trace": "nvtxpptrace nvtx_pushpop_trace",
    "nvtx_gpu_trace": "nvtxgpuproj nvtx_gpu_proj_trace",
    "mpi_trace": "mpi_event_trace",
    "mpi_sizes": "mpi_msg_size_sum",
    "cpu_faults": "umcpupagefaults um_cpu_page_faults_sum",
}
# What a report of each kind fills.
TABLES: Final[Mapping[Kind, str]] = {
    "kernels": "gpu_summary",
    "copies": "gpu_summary",
    "sizes": "gpu_summary (bytes)",
    "gpu": "gpu_summary, api_summary",
    "api": "api_summary",
    "osrt": "osrt_summary",
    "openacc": "openacc_summary",
    "openmp": "openmp_summary",
    "nvtx": "nvtx_summary",
    "nvtx_gpu": "nvtx_gpu_summary",
    "mpi": "communication",
    "um": "um_summary",
    "gpu_trace": "gpu_trace",
    "api_trace": "api_trace",
    "launches": "gpu_summary (the kernels' part)",
    "launch_trace": "gpu_trace, api_trace",
    "nvtx_trace": "nvtx_summary (added up)",
    "nvtx_gpu_trace": "nvtx_gpu_summary (added up)",
    "mpi_trace": "communication (added up)",
    "mpi_sizes": "communication (bytes)",
    "cpu_faults": "um_summary (added up)",
}
_NO_PLACE: Final = Why("nsw has no table for it")
_GRAPHICS: Final = Why("it is of graphics, and nsw has no table for it")
_UNREAD: Final[Mapping[str, Why]] = {
    "nvtxkernsum nvtx_kern_sum": Why(
        "it counts a kernel once for each range around it, and no copies; nsw has no table for it",
        "read the .nsys-rep or its SQLite export: nvtx_gpu_summary has the GPU work of each range",
    ),
    "unifiedmemory um_sum": Why(
        "it lists only the addresses with most throughput, ten where no other number is asked for",
        "print um_total_sum, or read the .nsys-rep or its SQLite export",
    ),
    "syscall_sum": Why("it is of system calls, and nsw has no table for it"),
    "nvvideo_api_sum": Why("it is of video coding, and nsw has no table for it"),
    "network_congestion": _NO_PLACE,
    "wddmqueuesdetails wddm_queue_sum": Why("it is of Windows' queues, and nsw has no table for it"),
    "dx11pixsum dx12pixsum dx12gpumarkersum dx11_pix_sum dx12_pix_sum dx12_gpu_marker_sum khrdebugsum khrdebuggpusum"
    " opengl_khr_range_sum opengl_khr_gpu_range_sum vulkanapisum vulkanapitrace vulkanmarkerssum vulkangpumarkersum"
    " vulkan_api_sum vulkan_api_trace vulkan_marker_sum vulkan_gpu_marker_sum": _GRAPHICS,
}
REPORTS: Final[Mapping[str, Kind]] = MappingProxyType(
    {name: kind for kind, names in _NAMES.items() for name in names.split()}
    | dict.fromkeys(" ".join(_UNREAD).split(), "other")
)
_WHY: Final = {name: why for names, why in _UNREAD.items() for name in names.split()}

# The lines before a table that give its name: of 2023 and later, of 2021 and 2022, and above tables of text or HTML.
_RUN: Final = re.compile(
    r"\s*(?:Processing|Running) \[(?>.*(?<![\w-])(?=[\w-]+\.py\b))([\w-]+)\.py\b(?!.*\.py\b)"  # each word is tried once
)
_EXECUTING: Final = re.compile(r"\s*\[\d+/\d+\] Executing '([\w-]+)' stats report")
_WORD: Final = re.compile(r"\w+")
_LONGEST_TITLE: Final = 400  # characters
_TITLED: Final = re.compile(r"\s*(?:\*\*|<h\d>)\s.{0,200}\((\w+)\)(?::|</h\d>)\s*|\s*<h\d>.{0,200}\((\w+)\)</h\d>\s*")


_NVTX_NAMES: Final = re.compile(r"\.py\]\([\w:=-]*nvtx-name")
# After the name come its options, as in run7_cuda_gpu_kern_sum_nvtx-name_base.csv. Options with values (rows=10_base=1)
# are taken together: where one ends and the next begins cannot be told, and to try every place would never end.
_WITH_VALUES: Final = r"\w++=(?:\w+_\w++=)*+\w+"
_OF_FILE: Final = re.compile(
    rf"(?:^|[_.-])({'|'.join(sorted(REPORTS, key=len, reverse=True))})(?:_(?:nvtx-name|base|mangled|{_WITH_VALUES}))*$"
)


def name_in(line: str) -> str | None:
    """The name of the report that a line announces, or None; one of another's line counts where it is the only one."""
    found = _RUN.match(line) or _EXECUTING.match(line) or _TITLED.fullmatch(line)
    if found:
        return next((group for group in found.groups() if group), None)
    if len(line) > _LONGEST_TITLE:
        return None
    words = set(_WORD.findall(line)) & REPORTS.keys()
    return words.pop() if len(words) == 1 else None


def announced(titles: tuple[str, ...]) -> str | None:
    """The name of the report that nsys announced in the lines before a table; the nearest counts."""
    return next(filter(None, map(name_in, reversed(titles))), None)


def name_of_file(stem: str) -> str | None:
    """The name of the report that nsys wrote a file of: `nsys stats -o run7` makes run7_cuda_api_sum.csv."""
    found = _OF_FILE.search(stem)
    return found[1] if found else None


def names_ranges(titles: tuple[str, ...]) -> bool:
    """Whether the names of kernels begin with those of the NVTX ranges around their launch."""
    return any(_NVTX_NAMES.search(line) for line in titles)


def why_not(name: str) -> Why:
    """Why a report that has no place is not read."""
    return _WHY.get(name, _NO_PLACE)
