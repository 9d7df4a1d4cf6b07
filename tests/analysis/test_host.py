"""The CPU's side: classes of work, facts over ranks and repeats, rules, and what the host does while the GPU waits."""

from dataclasses import dataclass, replace

import pytest

from nsw.analysis.cases import CaseSummary, summarize_cases
from nsw.analysis.host import HostSide, Primitives, Work, classify_function, summarize_host
from nsw.analysis.idle_gpu import Gaps, IdleGpu
from nsw.analysis.rules.registry import find_hits_by_case, merge_hits_to_findings
from nsw.analysis.steady import Iterations

MS = 1e6
CASE = CaseSummary("c", {}, 1, None, None, None)
GAP = Gaps("launch", "long", 1.0, 17 * MS)
IDLE = IdleGpu(
    True, 40.0, 30 * MS, 100.0, (GAP, Gaps("launch", "short", 99.0, 1 * MS)), (), {}, {}, 1, False, "the GPU"
)


@dataclass
class Run:
    id: str
    pass_name: str = "host"
    pass_kind: str = "host"
    case_id: str = "c"
    params: tuple = ()
    seconds: float | None = None
    state: str = "done"
    repeat: int = 1


@pytest.mark.parametrize(
    ("name", "where", "work"),
    [
        ("decode_mcu", "/usr/lib/libjpeg.so.62", "decoding JPEG"),
        ("<method 'decode' of 'ImagingDecoder' objects>", "", "decoding images"),
        ("load", "/venv/lib/python3.11/site-packages/PIL/ImageFile.py PIL.ImageFile", "decoding images"),
        ("main", "/home/me/loader.py", "other work"),
        ("ImagingResampleHorizontal_8bpc", "_imaging.so", "resizing images"),
        ("inflate_fast", "libz.so.1", "compression"),
        ("<method 'poll' of 'select.poll' objects>", "", "waiting"),
        ("<built-in method time.sleep>", "", "waiting"),
        ("cudaStreamSynchronize", "libcudart.so", "waiting for the GPU"),
        ("<method 'item' of 'torch._C.TensorBase' objects>", "", "waiting for the GPU"),
        ("_try_get_data", "site-packages/torch/utils/data/dataloader.py", "waiting for loader workers"),
        ("__kmp_hyper_barrier_release", "libiomp5.so", "waiting at OpenMP barriers"),
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "", "loading data"),
        ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "", "waiting for loader workers"),
        ("PMPI_Allreduce", "libmpi.so.40", "MPI"),
        ("mkl_blas_avx512_sgemm_kernel_0", "libmkl_avx512.so", "matrix products"),
        ("__memmove_avx_unaligned_erms", "libc.so.6", "copying memory"),
        ("run_backward", "site-packages/torch/autograd/__init__.py", "PyTorch's operators"),
        ("convert_units", "solver.py", "other work"),
        ("time_step", "physics.py", "other work"),
        ("joined_rows", "tables.py", "other work"),
        ("advance", "/home/json/python3.11/site-packages/model/solver.py", "other work"),
        ("0x7f00", "python3.11", "the Python interpreter"),
        ("dumps", "/usr/lib/python3.11/json/__init__.py", "text formats"),
        ("loads", "/usr/lib/python3.11/json/__init__.py", "text formats"),
        ("iterencode", "encoder.py", "text formats"),
        ("dumps", "/usr/lib/python3.11/multiprocessing/reduction.py", "pickling"),
        ("<built-in method _pickle.loads>", "", "pickling"),
    ],
)
def test_a_function_belongs_to_a_class_by_its_name_else_by_where_it_is(name, where, work):
    assert classify_function(name, where) == work


def function(name, self_s=None, **more):
    return {"name": name, "self_s": self_s, **more}


def test_work_is_shared_out_without_waits_and_waits_are_of_all_time():
    rows = [function("decode_mcu", 6.0), function("step", 2.0), function("select.poll", 2.0)]
    host = summarize_host([Run("r")], {"functions": {"r": rows}})
    assert host.work == (Work("decoding JPEG", 75.0, "decode_mcu"), Work("other work", 25.0, "step"))
    assert host.waits == (Work("waiting", 20.0, "select.poll"),)
    assert host.profiled_by == "host"


def test_functions_that_launch_gpu_work_are_told_apart():
    rows = [function("<method 'run_backward' of 'torch._C._EngineBase' objects>", 6.0), function("decode_mcu", 3.0),
            function("_next_data", 1.0, file="/lib/python3/torch/utils/data/dataloader.py"),
            function("_call_with_frames_removed", 0.5, file="<frozen importlib._bootstrap>")]  # fmt: skip
    host = summarize_host([Run("r")], {"functions": {"r": rows}})
    assert next((w.name, w.share_pct) for w in host.work) == ("PyTorch's operators", pytest.approx(100 * 6 / 10.5))
    assert [(w.name, w.share_pct) for w in host.beside_gpu] == [("decoding JPEG", 75.0), ("loading data", 25.0)]


def test_functions_without_times_count_by_their_samples_and_have_no_time():
    rows = [function("a", samples=30), function("b", samples=10)]
    (case,) = summarize_cases([Run("r")], {"functions": [row | {"run": "r"} for row in rows]}, 0.99)
    assert [(s.short_name, s.share_pct, s.total_ns) for s in case.functions] == [("a", 75.0, None), ("b", 25.0, None)]


def fact(key, value, **more):
    return {"key": key, "value": value, **more}


def test_facts_are_summed_or_averaged_over_ranks_and_the_median_over_repeats():
    def of(rank, scale):
        return [fact("cpu_time_s", 10 * scale, rank=rank), fact("elapsed_s", 4 + rank * scale, rank=rank),
                fact("memory_bound_pct", 20 + 20 * rank, rank=rank)]  # fmt: skip

    by_run = {f"r{n}": of(0, n) + of(1, n) for n in (1, 2, 6)}
    host = summarize_host([Run(name) for name in by_run], {"facts": by_run})
    assert host.facts == {"cpu_time_s": 40, "elapsed_s": 6, "memory_bound_pct": 30}


def test_each_fact_is_of_the_first_pass_that_has_it_and_none_is_of_a_timeline():
    runs = [Run("t", "timeline", "timeline"), Run("a", "aps"), Run("v", "vtune")]
    facts = {
        "t": [fact("elapsed_s", 99.0)],
        "a": [fact("elapsed_s", 4.0)],
        "v": [fact("elapsed_s", 9.0), fact("ipc", 1.5)],
    }
    assert summarize_host(runs, {"facts": facts}).facts == {"elapsed_s": 4.0, "ipc": 1.5}


@pytest.mark.parametrize(("core_use", "known"), [(106.7, {"mpi_pct"}), (98.0, {"mpi_pct", "ipc", "memory_stalls_pct"})])
def test_facts_by_events_that_are_counted_twice_are_left_out(core_use, known):
    rows = [fact("physical_core_use_pct", core_use), fact("ipc", 1.7), fact("memory_stalls_pct", 63.0),
            fact("mpi_pct", 18.0)]  # fmt: skip
    assert summarize_host([Run("a", "aps")], {"facts": {"a": rows}}).facts.keys() == known


def test_operators_stand_in_for_functions():
    rows = [{"name": "aten::conv2d", "self_cpu_ns": 3e6}, {"name": "cudaStreamSynchronize", "self_cpu_ns": 1e6}]
    host = summarize_host([Run("r", "torch")], {"operators": {"r": rows}})
    assert [(w.name, w.share_pct) for w in host.work] == [("convolution", 100.0)]
    assert [(w.name, w.share_pct) for w in host.waits] == [("waiting for the GPU", 25.0)]
    assert host.beside_gpu == ()  # what Python does between operators is in none of them


def test_primitives_are_operators_that_name_an_implementation():
    rows = [{"name": "convolution forward_training", "source": "brgconv:avx512_core", "self_cpu_ns": 6e6, "calls": 3},
            {"name": "reorder undef", "source": "jit:uni", "self_cpu_ns": 2e6, "calls": 40},
            {"name": "pooling forward_training", "source": "ref:any", "self_cpu_ns": 2e6, "calls": 3},
            {"name": "aten::mm", "source": "model.py(12): forward", "self_cpu_ns": 9e6}]  # fmt: skip
    host = summarize_host([Run("r", "onednn")], {"operators": {"r": rows}})
    assert host.primitives == Primitives(1e7, 20.0, 40, 20.0, "pooling forward_training")


def with_host(gpu_ns=None, **changed):
    return replace(CASE, gpu_ns=gpu_ns, host=HostSide(**changed))


def facts(**known):
    return with_host(facts=known)


ON_GPU = {"gpu_busy_pct": 93.8, "sp_gflops": 0.0, "dp_gflops": 0.01}
BUSY = {"elapsed_s": 10.0, "mpi_s": 2.0, "mpi_pct": 20.0}
RULES_HOLD = [  # as in test_rules.py, which tries them: rule, a case where it holds, those near it where it does not, what it says
    ("cpu-memory", facts(memory_bound_pct=20.0), [facts(memory_bound_pct=19.0), facts()], "20 % of CPU slots wait for memory"),
    ("cpu-memory", facts(memory_stalls_pct=62.9), [facts(memory_stalls_pct=62.9, **ON_GPU)], "63 % of CPU slots wait for memory"),
    ("scalar-code", facts(vectorization_pct=49.0), [facts(vectorization_pct=50.0),
     facts(vectorization_pct=49.0, **ON_GPU), facts(vectorization_pct=49.0, sp_gflops=0.0, dp_gflops=0.0)], "49 % of FP operations packed"),
    ("idle-cores", facts(cpu_use_cores=2.1, logical_cpus=64.0), [facts(cpu_use_cores=39.0, logical_cpus=64.0),
     with_host(gpu_ns=1.0, facts={"cpu_use_pct": 3.0}), facts(cpu_use_pct=3.0, gpu_busy_pct=90.0)], "2.1 of 64 logical CPUs are at work"),
    ("mpi-time", facts(**BUSY), [facts(**BUSY | {"mpi_pct": 9.0})], "20 % in MPI"),
    ("mpi-time", facts(elapsed_s=10.0, mpi_s=2.0), [facts(elapsed_s=10.0, mpi_s=0.9)], "20 % in MPI"),
    ("mpi-imbalance", with_host(rank_s={0: 1.0, 1: 1.0, 2: 1.0, 3: 1.4}), [with_host(rank_s={0: 1.0, 1: 1.1}),
     with_host(rank_s={0: 0.02, 1: 0.03}),  # starting Python, no work
     with_host(rank_s={0: 1.0})], "rank 3 works 27 % longer"),
    ("threads-wait", facts(spin_s=1.0, cpu_time_s=10.0), [facts(spin_s=0.9, cpu_time_s=10.0)], "10 % spinning"),
    ("threads-wait", facts(openmp_imbalance_pct=12.0), [facts(openmp_imbalance_pct=9.0)], "12 % OpenMP imbalance"),
    ("onednn-reorders", with_host(primitives=Primitives(1e9, 10.0, 40, 0.0, "")),
     [with_host(primitives=Primitives(1e9, 9.0, 40, 0.0, ""))], "10 % reorders"),
    ("onednn-reference", with_host(primitives=Primitives(1e9, 0.0, 0, 30.0, "pooling")), [], "30 % reference code"),
]  # fmt: skip


def hit(name, some):
    return next((hit for hit in find_hits_by_case([some])["c"] if hit.cause == name), None)


def test_what_memory_is_waited_for_decides_the_advice():
    found = hit("cpu-memory", facts(memory_stalls_pct=62.9, cache_bound_pct=66.6, dram_bound_pct=4.0))
    assert found.fact == "63 % of the CPU's pipeline slots wait for memory, mostly for caches (67 % of the cycles)"
    found = hit("cpu-memory", facts(memory_bound_pct=40.0, dram_bound_pct=30.0))
    assert "mostly for DRAM (30 %" in found.fact


def test_a_cpu_that_computes_beside_a_gpu_is_judged_as_well():
    computing = ON_GPU | {"dp_gflops": 80.0, "memory_stalls_pct": 62.9, "vectorization_pct": 30.0}
    assert hit("cpu-memory", facts(**computing))
    assert hit("scalar-code", facts(**computing))
    assert hit("cpu-memory", facts(memory_stalls_pct=62.9, dp_gflops=0.0))  # of integers, without a GPU


def test_ranks_that_wait_for_others_are_said_with_what_they_lose():
    found = hit("mpi-time", facts(**BUSY, mpi_imbalance_s=1.5))
    assert (found.do, found.fact) == (
        "balance the ranks", "20 % of the elapsed time is MPI, 1.50 s of 2.00 s waiting for slower ranks",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("more", "do", "advice"),
    [
        ({}, "balance the ranks, or compute before the wait", "APS_IMBALANCE_TYPE=1"),
        ({"mpi_imbalance_s": 0.2}, "compute before the wait", "Compute between MPI_Isend"),
        ({"mpi_imbalance_s": 1.2}, "balance the ranks", "Give each rank the same work."),
    ],
)
def test_calls_that_complete_messages_ask_for_no_fewer_messages(more, do, advice):
    of_run = {"r": [fact(key, value) for key, value in (BUSY | {"mpi_waitall_pct": 11.0, "mpi_testany_pct": 2.0,
              "mpi_isend_pct": 7.0} | more).items()]}  # fmt: skip
    side = summarize_host([Run("r", "aps")], {"facts": of_run})
    found = hit("mpi-time", replace(CASE, host=side))
    assert found.do == do
    assert advice in found.advice
    assert "Send less often" not in found.advice
    if do != "balance the ranks":
        assert "65 % of that MPI_Wait and MPI_Test" in found.fact


def test_short_completion_of_messages_asks_for_fewer():
    assert "Send less often" in hit("mpi-time", facts(**BUSY, mpi_completion_s=0.9)).advice
    assert "MPI_Wait" in hit("mpi-time", facts(**BUSY, mpi_completion_s=1.1)).fact


# --- joined to the GPU's answer -----------------------------------------------------------------------------------


def waiting(*work, waits=(), **changed):
    host = HostSide(work=work, beside_gpu=work, waits=waits, profiled_by="cpu")
    return replace(CASE, idle_gpu=replace(IDLE, **changed), host=host)


JPEG = Work("decoding JPEG", 62.0, "decode_mcu")


@pytest.mark.parametrize(
    ("some", "waits"),
    [
        (waiting(JPEG), "17 ms"),
        (waiting(Work("other work", 30.0, "step"), JPEG, gaps=(replace(GAP, gaps=3.0),)), "18 ms"),  # all idle time
    ],
)
def test_what_the_host_works_on_while_the_gpu_waits_is_said(some, waits):
    found = hit("host-work", some)
    assert found.what == f"waits {waits}, 62 % decoding JPEG"
    assert found.fact == (
        f"the GPU is idle 60 % of an iteration of 30 ms: it waits {waits} for the host, whose time outside of"
        " GPU calls goes to decoding JPEG (62 %, most in decode_mcu; pass cpu)"
    )
    assert "nvJPEG" in found.advice


def test_cases_whose_hosts_do_other_work_are_not_alike():
    resizing, loading = Work("resizing images", 50.0, "resize"), Work("waiting for loader workers", 55.0, "_get")
    some = [waiting(JPEG), waiting(resizing, busy_pct=50.0), waiting(JPEG, waits=(loading,))]
    hits = find_hits_by_case([replace(case, id=name) for case, name in zip(some, "abc", strict=True)])
    texts = [finding.text for finding in merge_hits_to_findings(hits, several=True)]
    assert len(texts) == 3
    assert not any("Likewise" in text for text in texts)


def test_a_host_that_waits_for_its_loader_workers_says_so():
    found = hit("data-loader", waiting(JPEG, waits=(Work("waiting for loader workers", 55.0, "_try_get_data"),)))
    assert found.what == "waits 17 ms for loader workers"
    assert found.do == "more loader workers"


@pytest.mark.parametrize(
    "some",
    [
        waiting(Work("other work", 90.0, "step")),
        waiting(replace(JPEG, share_pct=19.0)),
        replace(
            CASE,
            idle_gpu=IDLE,
            host=HostSide(work=(replace(JPEG, share_pct=9.0),), beside_gpu=(JPEG,), profiled_by="cpu"),
        ),
        replace(CASE, idle_gpu=IDLE, host=HostSide(facts={"ipc": 1.0})),
        replace(CASE, idle_gpu=IDLE),
    ],
)
def test_a_profile_that_does_not_tell_leaves_the_timelines_answer(some):
    assert hit("host-work", some).what == "waits 17 ms for the host"


def test_gpus_that_wait_for_launches_are_not_explained_by_a_profile():
    assert hit("launch-bound", waiting(JPEG, gaps=(Gaps("launch", "short", 99.0, 1 * MS),))).what.startswith(
        "launch-bound, 100 operations"
    )


def test_a_loader_is_not_waited_for_longer_than_the_gpu_is_idle():
    found = hit("data-loader", replace(CASE, idle_gpu=IDLE, loading_ns=30 * MS))
    assert found.what == "waits 17 ms for the DataLoader"


def loading(least, most, count):
    times = (30 * MS, 25 * MS, 35 * MS)
    return replace(
        CASE, idle_gpu=IDLE, loading_ns=16 * MS, loading_range_ns=(least * MS, most * MS),
        iterations=Iterations("profiler_step", None, count, 0, 1, *times, 0, None, 1.0, *(None,) * 4),
    )  # fmt: skip


def test_unlike_waits_for_a_loader_are_a_range():
    found = hit("data-loader", loading(9, 62, 3))
    assert found.what == "waits 9 ms to 62 ms for the DataLoader"
    assert found.fact.endswith("the program waits 9 ms to 62 ms for its DataLoader")
    found = hit("data-loader", loading(9, 62, 40))
    assert found.fact.endswith("the program waits 16 ms (the median; 9 ms to 62 ms) for its DataLoader")
    found = hit("data-loader", loading(14, 20, 3))
    assert found.fact.endswith("the program waits 16 ms (the median) for its DataLoader")


def test_iterations_without_a_wait_for_the_loader_are_not_counted():
    three = loading(0.2, 40, 3)
    found = hit("data-loader", replace(three, loading_waits_ns=(0.2 * MS, 16 * MS, 40 * MS)))
    assert found.what == "waits up to 40 ms for the DataLoader in 2 of 3 iterations"
    assert found.fact.endswith("in 2 of 3 the program waits 16 ms and 40 ms for its DataLoader")
    short = hit("data-loader", replace(three, loading_waits_ns=(0.2 * MS, 5 * MS, 16 * MS)))
    assert short.gain_pct == pytest.approx(100 * 21.2 / 3 * MS / IDLE.med_ns)  # the rest of the gaps is the host's
    found = hit("data-loader", loading(0.2, 40, 5))  # of the three between nothing is known
    assert found.fact.endswith("the program waits up to 40 ms for its DataLoader")


def test_the_idle_share_of_few_iterations_is_of_all_of_them():
    few = loading(9, 62, 3)
    few = replace(few, idle_gpu=replace(few.idle_gpu, mean_busy_pct=17.0))
    assert "idle 83 % of iterations of 25 ms to 35 ms" in hit("data-loader", few).fact
    many = replace(loading(9, 62, 40), idle_gpu=few.idle_gpu)
    assert "idle 60 % of an iteration of 30 ms" in hit("data-loader", many).fact
