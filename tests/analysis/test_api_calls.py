"""What counts and times of CUDA calls show where no time axis does: waits after each kernel, allocations."""

import pytest

from nsw.analysis.cases import summarize_cases
from nsw.analysis.rules.api_calls import startup_text
from nsw.analysis.rules.causes import causes
from nsw.analysis.rules.registry import find_hits_by_case

from .made import gpu_row, make_run
from .test_steady import MS, iterations_row, part, phase_row

US = 1e3


def call(name, calls, total, longest=None):
    return {"run": "r", "report": "a", "name": name, "short_name": name, "kind": None, "total_ns": total, "calls": calls,
            "max_ns": longest}  # fmt: skip


def hits(gpu, api, **tables):
    cases = summarize_cases([make_run()], {"gpu_summary": gpu, "api_summary": api} | tables, 0.9)
    return {hit.cause: hit for hit in find_hits_by_case(cases)["c"]}


def kernels(calls=1000, mean=50 * US):
    return [gpu_row("conv", calls * mean, calls=calls)]


def test_as_many_waits_as_short_kernels_are_one_behind_each():
    hit = hits(kernels(), [call("cudaDeviceSynchronize", 1002, 60 * MS)])["sync-each-operation"]
    assert hit.fact.startswith(
        "the host calls cudaDeviceSynchronize 1,002 times for 1,000 kernels of 50.00 us on average"
    )
    assert hit.gain_pct == pytest.approx(100 * 10 / 60)


@pytest.mark.parametrize(
    ("gpu", "waits"),
    [(kernels(), 800), (kernels(calls=90), 90), (kernels(mean=200 * US), 1000),
     ([*kernels(), gpu_row("[CUDA memcpy HtoD]", MS, kind="memcpy", calls=1000)], 1000)],
    ids=["fewer waits", "few kernels", "long kernels", "as many copies"],
)  # fmt: skip
def test_other_waits_are_none(gpu, waits):
    assert "sync-each-operation" not in hits(gpu, [call("cudaStreamSynchronize", waits, 60 * MS)])


@pytest.mark.parametrize(
    ("kernel", "model"),
    [("flux_37_gpu", "openacc"), ("nvkernel__Z4fluxPd_F1L34_2", "openmp"), ("__omp_offloading_2d_1a_flux_l34", "openmp"),
     ("flux", "any"), ("flux_gpu", "any")],
)  # fmt: skip
def test_waits_of_directives_are_cured_by_directives(kernel, model):
    hit = hits([gpu_row(kernel, 50 * MS, calls=1000)], [call("cuStreamSynchronize", 3000, 60 * MS)])[
        "sync-each-operation"
    ]
    assert hit.advice.startswith(causes()["sync-each-operation"].remedy(model))
    assert ("cudaDeviceSynchronize" in hit.advice) == (model == "any")


def test_allocations_as_often_as_the_largest_kernel_are_of_each_step():
    hit = hits(kernels(), [call("cudaFree", 7000, 10 * MS)])["allocation-in-loop"]
    assert hit.fact == (
        "memory is allocated or freed in each step (cudaFree: 10.00 ms, 7,000 calls, 7.0 for each launch of conv), and"
        " cudaFree waits for the GPU"
    )


@pytest.mark.parametrize(
    "api",
    [
        call("cudaFree", 400, 10 * MS),
        call("cudaFree", 7000, 4 * MS),
        call("cudaFreeAsync", 7000, 10 * MS),
        call("cudaFree", 7000, 300 * MS, 296 * MS),
    ],
    ids=["fewer", "hardly any time", "from a pool", "one call, which may start CUDA"],
)
def test_other_allocations_are_of_no_step(api):
    assert "allocation-in-loop" not in hits(kernels(), [api])


def test_pinned_memory_that_takes_longer_than_the_gpus_work_is_named():
    api = [call("cudaMallocHost", 1, 800 * MS, 800 * MS), call("cudaFreeHost", 1, 140 * MS, 140 * MS)]
    hit = hits([gpu_row("add", 10 * MS)], api)["slow-pinning"]
    assert hit.fact.endswith(
        "(cudaMallocHost, cudaFreeHost) takes 140.0 ms without the longest call, which may start CUDA: 14 times"
        " the GPU's work of 10.00 ms"
    )


@pytest.mark.parametrize(("pinning", "copies"), [(940, False), (140, True)], ids=["hardly any", "much"])
def test_copies_that_take_hardly_any_time_beside_pinning_are_not_named(pinning, copies):
    gpu = [gpu_row("add", MS), gpu_row("[CUDA memcpy HtoD]", 9 * MS, kind="memcpy", calls=9)]
    causes = hits(gpu, [call("cudaMallocHost", 1, 0.5 * pinning * MS), call("cudaFreeHost", 1, 0.5 * pinning * MS)])
    assert causes.keys() == {"slow-pinning", *(["copies-dominate"] if copies else [])}


@pytest.mark.parametrize(
    "api",
    [[call("cudaMallocHost", 1, 800 * MS, 800 * MS)], [call("cudaMalloc", 9, 800 * MS, 300 * MS)]],
    ids=["one call, which may start CUDA", "memory of the GPU"],
)
def test_the_start_of_cuda_is_no_allocation(api):
    assert "slow-pinning" not in hits([gpu_row("add", 10 * MS)], api)


@pytest.mark.parametrize(
    ("api", "text"),
    [
        (
            call("cudaMalloc", 9, 220 * MS, 211 * MS),
            "Starting CUDA takes 211.0 ms (cudaMalloc 211.0 ms), the GPU's work",
        ),
        (
            [call("cudaMalloc", 9, 220 * MS, 211 * MS), call("cudaFree", 9, 300 * MS, 200 * MS)],
            "Starting CUDA takes at least 411.0 ms (cudaMalloc 211.0 ms, cudaFree 200.0 ms)",
        ),
        (call("cudaMalloc", 900, 220 * MS, 9 * MS), ""),
        (call("cudaFree", 9, 90 * MS, 90 * MS), ""),
        (call("cudaDeviceSynchronize", 9, 220 * MS, 211 * MS), ""),
    ],
    ids=["start", "two calls", "many short ones", "may wait for the GPU", "a wait"],
)
def test_starting_cuda_is_named_where_it_takes_longer_than_the_gpu_works(api, text):
    tables = {"gpu_summary": [gpu_row("conv", 100 * MS)], "api_summary": api if isinstance(api, list) else [api]}
    (case,) = summarize_cases([make_run()], tables, 0.9)
    assert startup_text(case).startswith(text)
    assert bool(startup_text(case)) == bool(text)


UNSPLIT = {"run": "r", "report": "a", "pid": 1, "phase": "all", "found_by": "none", "reason": "nothing repeats"}
PARTS = [part("steady", "conv", 18 * MS)]


@pytest.mark.parametrize(
    "tables",
    [{"phase_summary": PARTS, "phases": [phase_row("steady", 18 * MS)], "iterations": [iterations_row(MS)]},
     {"phases": [UNSPLIT]}],
    ids=["iterations", "none"],
)  # fmt: skip
def test_a_timeline_tells_more_than_counts(tables):
    api = [call("cudaDeviceSynchronize", 1002, 60 * MS), call("cudaFree", 7000, 10 * MS)]
    assert not {"sync-each-operation", "allocation-in-loop"} & hits(kernels(), api, **tables).keys()


def test_the_gpus_work_beside_the_start_has_what_the_report_cuts_off():
    tables = {"gpu_summary": [gpu_row("conv", 100 * MS, time_pct=50.0)]}
    tables["api_summary"] = [call("cudaMalloc", 9, 420 * MS, 411 * MS)]
    (case,) = summarize_cases([make_run()], tables, 0.9)
    assert startup_text(case).endswith("the GPU's work 200.0 ms.")
