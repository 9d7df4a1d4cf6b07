"""Kinds of GPU work and names of API calls, the same for every reader."""

import pytest

from nsw.readers.timeline.phases import nccl_operation
from nsw.tables.names import api_name_without_version, gpu_operation_kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("gemm(int)", "kernel"),
        ("memcpy_kernel(int)", "kernel"),
        ("[CUDA memcpy HtoD]", "memcpy"),
        ("[CUDA Unified Memory memcpy HtoD]", "memcpy"),
        ("[CUDA memset]", "memset"),
        ("[Unified Memory GPU page faults]", "um"),
    ],
)
def test_the_kind_is_in_the_name(name, kind):
    assert gpu_operation_kind(name) == kind


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
        ("cudaGraphLaunch_v10000", "cudaGraphLaunch"),
        ("cuMemcpyHtoDAsync_v2", "cuMemcpyHtoDAsync"),
        ("cudaLaunchKernel_ptsz_v7000", "cudaLaunchKernel_ptsz"),
        ("cuInit", "cuInit"),
        ("cudaMalloc_view", "cudaMalloc_view"),
    ],
)
def test_an_api_call_has_no_version(name, plain):
    assert api_name_without_version(name) == plain


def test_a_kernel_of_nccl_is_its_collective():
    assert nccl_operation("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)") == "AllReduce"
    assert nccl_operation("ncclKernelSomethingNew(int)") == "other"
    assert nccl_operation("AllReduce_kernel(int)") is None
