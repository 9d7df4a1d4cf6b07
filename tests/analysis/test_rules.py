"""Each rule holds for a made case, and not for one that is only just different."""

from dataclasses import replace
from itertools import pairwise

import pytest

from nsw.analysis.cases import CaseSummary, Copy, Link, Share
from nsw.analysis.comparison import compare_variants, scaling_curve
from nsw.analysis.figures import Figure
from nsw.analysis.idle_gpu import Gaps, IdleGpu
from nsw.analysis.kernel_classes import classify_gpu_operation, is_fp32_matrix_kernel
from nsw.analysis.placement import StrayContext
from nsw.analysis.rules.causes import causes
from nsw.analysis.rules.hits import Hit
from nsw.analysis.rules.pairs import cold_start_findings, scaling_loss_findings, variant_findings
from nsw.analysis.rules.registry import (
    RULES,
    _drop_hits_of_little_time,
    _once_weight,
    find_hits_by_case,
    merge_hits_to_findings,
    order_hits,
)
from nsw.analysis.spent import Part, Spent
from nsw.analysis.steady import Collectives, Iterations, Phase, Waiting

from . import test_host
from .made import KERNEL

MS, US, MB = 1e6, 1e3, 1e6
H100, V100 = ("NVIDIA H100 80GB HBM3",), ("Tesla V100-SXM2-32GB",)
IDLE = IdleGpu(True, 30.0, 10 * MS, 100.0, (Gaps("launch", "middle", 100.0, 7 * MS),), (), {}, {}, 1, False, "the GPU")
STEPS = Iterations("nvtx", "step", 20, 2, 1, 10 * MS, 9 * MS, 11 * MS, 3, 3.0, 9 * MS, 90.0, 90.0, 0.0, 0.0)


def case(**more):
    return replace(CaseSummary("c", {}, 1, 100 * MS, 100 * MS, None), **more)


def idle(**changed):
    return case(idle_gpu=replace(IDLE, **changed))


def spent(*parts, fp32=0.0, short=0.0, **shares):
    """An iteration of 10 ms; `parts` are pairs of a class and its ms, with 50 operations each."""
    made = tuple(Part(name, ms * MS, 50.0, f"{name} kernel", ms * MS) for name, ms in parts)
    of_all = {"copies_pct": 0.0, "exposed_pct": 0.0, "idle_pct": 0.0, "most_idle_pct": shares.get("idle_pct", 0.0)}
    return Spent(True, 10 * MS, made, fp32 * MS, short, 50.0 * len(made), **(of_all | shares))


WORK = ("GEMM", 10)


def copied(name, *, calls=20, total_ns=10 * MS, size=None, gpus=H100, **shares):
    speed = size * calls / total_ns * 1e9 if size else None
    copies = (Copy(f"[CUDA memcpy {name}]", calls, total_ns, size * calls if size else None, speed),)
    return case(copies=copies, iterations=STEPS, gpus=gpus, spent=spent(WORK, **shares))


def of_class(name, ms, **more):
    return case(spent=spent((name, ms), ("GEMM", 10 - ms), **more), gpus=H100)


def waiting(exposed, pct=0.0, *, hidden=0.0, computing=None, talk=None, **why):
    parts = (Part("NCCL", 5 * MS, 4.0, "", 5 * MS), Part("GEMM", 5 * MS, 50.0, "", 5 * MS))
    share = 100 - exposed if computing is None else computing
    found = replace(spent(exposed_pct=exposed, hidden_pct=hidden, computing_pct=share), parts=parts)
    return case(spent=found, collectives=talk, iterations=STEPS, waiting=Waiting(pct, "rank 3", **why) if pct else None)


def talk(calls=16.0, own=49 * US, channels=24, share=40.0):
    return Collectives(calls, own, channels, share, share / 4)


def unsplit(**numbers):
    """A run of one process without iterations, of 4 s from its first kernel on."""
    use = {"compiles": 3, "late_compiles": 2, "compile_ns": 900 * MS, "span_ns": 4000 * MS} | numbers
    return idle(is_iteration=False, gaps=(), use=use)


FOREACH = "void at::native::multi_tensor_apply_kernel<TensorListMetadata<4>>()"
FUSED = "void at::native::multi_tensor_apply_kernel<FusedOptimizerTensorListMetadata<4>>()"
MULTIPLIES = "void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<MulFunctor<float>>>(int)"
LEAKY = "void at::native::vectorized_elementwise_kernel<4, at::native::leaky_relu_kernel(float)>(int)"
GATHER = "void at::native::vectorized_gather_kernel<16, long>(char*)"
ADD_ROWS = "void at::native::indexFuncLargeIndex<float, long, at::native::<unnamed>::ReduceAdd>()"
FILL = "void at::native::vectorized_elementwise_kernel<4, FillFunctor<float>>()"
STRIDED = (
    "void at::native::elementwise_kernel<(int)128, (int)4, void at::native::gpu_kernel_impl_nocast"
    "<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase &)::[lambda(c10::BFloat16)]>(int)"
)
ADDCDIV = "void at::native::vectorized_elementwise_kernel<4, addcdiv_cuda_kernel>()"
FOLDABLE = "void cudnn::bn_fw_inf_1C11_kernel_NCHW<float>()"
CAST = "void at::native::vectorized_elementwise_kernel<4, bfloat16_copy_kernel_cuda>()"

COALESCE = "void at::native::apply::coalesceValuesKernel<float, float>()"
SCALING = "void at::native::vectorized_elementwise_kernel<8, BUnaryFunctor<Half, Half, Half, MulFunctor<float>>>()"


def launched(*kernels):
    """Kernels of an iteration by name, per cent of GPU time and launches; the rest is a kernel of the user's."""
    rest = ("mine(float*)", 100 - sum(kernel[1] for kernel in kernels))
    shares = [
        Share(name, name, "kernel", pct * MS, (calls or [1.0])[0] * 20, pct, 0.0)
        for name, pct, *calls in (*kernels, rest)
    ]
    return case(spent=spent(WORK), iterations=STEPS, gpu_work=tuple(shares), gpus=H100)


def scaled(product, each, scaling=SCALING, own="rows(half*)"):
    """A product, a scaling and a kernel that follow each other, by their share of GPU time."""
    names = ("sm90_xmma_gemm_f16f16", scaling, own)
    work = launched(*zip(names, (product, each, each), strict=True))
    return replace(work, successors=dict(pairwise(names)))


def blocks(count, *, name="update(float*)", us=50.0, kernel_ns=2 * MS):
    """A kernel of a GPU of 132 SMs that takes half of an iteration; the others are as short as they like."""
    work = (
        Share(name, name, "kernel", 20 * us * US, 20, 50.0, 0.0),
        Share("mine(float*)", "mine", "kernel", MS, 20, 50.0, 0.0),
    )
    use = {"computing_ns": 2 * MS, "kernel_ns": kernel_ns, "kernels": 2.0}
    return replace(
        idle(busy_pct=98.0, gaps=(), use=use), gpu_work=work, sm_count=132.0, blocks={name: count}, iterations=STEPS
    )


def layer(casts, operations=6.0):
    """An iteration of few operations, so many of which are casts."""
    work = launched((CAST, 50, casts), ("sm90_xmma_gemm_f16f16", 30))
    return replace(work, idle_gpu=replace(IDLE, operations=operations))


def short(pct, of_kernels, name="void at::native::vectorized_elementwise_kernel<4, AddFunctor>()", operations=250.0):
    work = spent(("elementwise", pct / 10), ("GEMM", 10 - pct / 10), short=of_kernels)
    parts = (replace(work.parts[0], operations=operations), work.parts[1])
    return replace(launched((name, pct)), spent=replace(work, parts=parts))


def waits(count):
    return idle(gaps=(Gaps("synchronise", "short", 100.0, 7 * MS),), use={"waits": count, "kernels": 100.0})


def read_back(count):
    gaps = (Gaps("value", "middle", count, 4 * MS),) if count else ()
    return idle(gaps=(*gaps, Gaps("launch", "middle", 50.0, 3 * MS)), use={"values": count, "kernels": 100.0})


def first_takes(ms, *, gpu, count=2):
    """Iterations of warm-up that take so many ms in all, before 20 of 10 ms with 9 ms of GPU work."""
    phases = (
        Phase("warmup", ms * MS, gpu * count * MS, gpu * MS, None, count),
        Phase("steady", 200 * MS, 180 * MS, 180 * MS, None, 20),
    )
    return case(iterations=STEPS, phases=phases)


def without_gpu_work(measured):
    """Iterations of whose graphs nothing was recorded."""
    return replace(measured, iterations=replace(measured.iterations, gpu_ns=0.0))


def pause(**more):
    """An iteration of 30 ms in which the GPU works as little as in the others."""
    return replace(idle(**more), iterations=replace(STEPS, most_ns=30 * MS, slowest_busy_pct=30.0))


RULES_HOLD = [  # rule, a case where it holds, those near it where it does not, what it says
    ("launch-bound", idle(), [idle(busy_pct=75.0), idle(gaps=())], "launch-bound, 100 operations of 30 us"),
    ("sync-each-operation", waits(25.0), [waits(24.0)], "25 waits for the GPU"),
    ("scalar-reads", read_back(17.0), [read_back(0.0)], "reads 17 values back"),
    ("host-work", idle(gaps=(Gaps("launch", "long", 1.0, 7 * MS),)), [idle()], "waits 7 ms for the host"),
    ("data-loader", idle(gaps=(Gaps("launch", "long", 1.0, 7 * MS, 1.0),)), [idle()], "waits 7 ms for input"),
    ("allocation-in-loop", idle(gaps=(Gaps("allocate", "middle", 9.0, 7 * MS),)), [idle()], "allocates and frees 7 ms"),
    ("pageable-copies", copied("Host-to-Device", size=5 * MB, copies_pct=20.0),
     [copied("Host-to-Device", size=5 * MB, copies_pct=19.9), copied("Host-to-Device", size=8.1 * MB, copies_pct=50.0),
      copied("Host-to-Device", size=0.49 * MB, copies_pct=50.0),
      copied("Device-to-Device", size=5 * MB, copies_pct=50.0), copied("Device-to-Host", size=4.0, copies_pct=50.0),
      replace(copied("Host-to-Device", calls=9, total_ns=90 * MS, size=50 * MB), iterations=None, spent=None),  # set-up
      copied("Host-to-Device", size=5 * MB, copies_pct=50.0, gpus=V100)], "20 % slow copies, 10 GB/s"),
    ("copies-dominate", case(copies=(Copy("[CUDA memcpy HtoD]", 9, 50 * MS, None, None),)),
     [case(copies=(Copy("[CUDA memcpy HtoD]", 9, 49 * MS, None, None),)),
      case(copies=(Copy("[CUDA memcpy DtoD]", 9, 90 * MS, None, None),)),
      case(copies=(Copy("[CUDA memcpy HtoD]", 10, 50 * MS, 200 * MB, 4e9),)),
      case(copies=(Copy("[CUDA memcpy HtoD]", 9, 50 * MS, None, None),), kernel_ns=0.0),
      case(copies=(Copy("[CUDA Unified Memory memcpy HtoD]", 9, 50 * MS, None, None),))], "50 % copies"),
    ("copies-dominate", case(copies=(Copy("[CUDA memcpy HtoD]", 9, 50 * MS, 20 * MB, 0.4e9),)), [], "50 % copies"),
    ("copies-dominate", case(copies=(Copy("[CUDA memcpy HtoD]", 9, 50 * MS, 200 * MB, 4e9),)), [], "50 % copies"),
    ("no-copy-overlap", copied("Host-to-Device", size=25 * MB, copies_pct=8.0),
     [copied("Host-to-Device", size=25 * MB, copies_pct=7.9), copied("Host-to-Device", size=5 * MB, copies_pct=30.0)],
     "8 % copies, no kernel beside"),
    ("bucket-copies", replace(copied("Device-to-Device", calls=160), spent=spent(("NCCL", 2), WORK)),
     [copied("Device-to-Device", calls=160), replace(copied("Device-to-Device", calls=159), spent=spent(("NCCL", 2), WORK))],
     "8 copies into buckets"),
    ("page-faults", case(copies=(Copy("[CUDA Unified Memory memcpy HtoD]", 500, 9 * MS, 64_000 << 10, None),)),
     [case(copies=(Copy("[CUDA Unified Memory memcpy HtoD]", 499, 9 * MS, 1 << 20, None),)),
      case(copies=(Copy("[CUDA Unified Memory memcpy HtoD]", 500, 7 * MS, 64_000 << 10, None),)),  # hardly any time
      case(copies=(Copy("[CUDA Unified Memory memcpy HtoD]", 500, 9 * MS, 1000 << 20, None),))], "500 page migrations take 9 ms, kernels 100 ms"),
    ("exposed-communication", waiting(10.0, hidden=5.0), [waiting(9.9, hidden=5.0)], "NCCL alone 10 %"),
    ("no-backward-overlap", waiting(10.0), [waiting(10.0, hidden=5.0)], "NCCL alone 10 %, none hidden"),
    ("too-little-work", waiting(60.0, computing=30.0), [waiting(60.0, computing=70.0)], "NCCL alone 60 %, computing 30 %"),
    ("small-buckets", waiting(40.0, talk=talk()), [waiting(40.0, talk=talk(15.0)), waiting(40.0, talk=talk(own=50 * US))],
     "16 collectives of 49 us"),
    ("small-buckets", case(collectives=talk(share=10.0)), [case(collectives=talk(share=9.0)), case(collectives=talk(own=60 * US))],
     "16 collectives of 49 us"),
    ("slow-link", waiting(40.0, talk=talk(2.0, 500 * US, 4)),
     [waiting(40.0, talk=talk(2.0, 500 * US, 16)), waiting(40.0, talk=talk(2.0, 400 * US, 4)), waiting(40.0, talk=talk(2.0, 500 * US, None))],
     "NCCL alone 40 %, on 4 channels"),
    ("recompilation", unsplit(), [unsplit(late_compiles=1), unsplit(compiles=2), unsplit(compile_ns=300 * MS),
     replace(unsplit(), compiled=(("jit_step", 2.0, 2400 * MS),), traced_ns=6000 * MS)],  # whose modules are named
     "compiles 3 times, 900 ms"),
    ("late-rank-host", waiting(40.0, pct=20.0), [waiting(40.0, pct=10.0)], "rank 3 is late, NCCL alone 40 %"),
    ("late-rank-data", waiting(40.0, pct=20.0, late_gap_ns=MS, late_input=True), [waiting(40.0, pct=20.0)], "rank 3 is late"),
    ("uneven-work", waiting(40.0, pct=20.0, late_work_pct=20.0, late_kernels_pct=20.0),
     [waiting(40.0, pct=20.0, late_work_pct=4.0, late_kernels_pct=20.0)], "rank 3 is late"),
    ("late-rank-heat", waiting(40.0, pct=20.0, late_work_pct=20.0, late_kernels_pct=0.0),
     [waiting(40.0, pct=20.0, late_work_pct=20.0, late_kernels_pct=9.0)], "rank 3 is late"),
    ("uneven-work", waiting(40.0, pct=20.0, late_work_pct=20.0, late_kernels_pct=0.0, late_blocks_pct=5.0),
     [waiting(40.0, pct=20.0, late_work_pct=20.0, late_kernels_pct=0.0, late_blocks_pct=4.0)], "rank 3 is late"),
    ("late-rank-shared-gpu", waiting(40.0, pct=20.0, late_work_pct=20.0, late_kernels_pct=0.0, late_delayed_pct=10.0),
     [waiting(40.0, pct=20.0, late_work_pct=20.0, late_kernels_pct=0.0, late_delayed_pct=9.0)], "rank 3 is late"),
    ("tensor-cores-unused", of_class("GEMM", 10, fp32=2), [of_class("GEMM", 10, fp32=1.9), of_class("GEMM", 10, fp32=4.9, idle_pct=40.0), of_class("GEMM", 10, fp32=9, idle_pct=75.1),
     replace(of_class("GEMM", 10, fp32=9), gpus=V100), replace(of_class("GEMM", 10, fp32=9), gpus=())], "20 % FP32 GEMM"),
    ("layout-conversion", launched(("void nchwToNhwcKernel<float>()", 8)), [launched(("void nchwToNhwcKernel<float>()", 7)),
     launched(("transpose(float*)", 50)), launched((CAST, 50))], "8 % converts layouts"),
    ("layout-conversion", launched((STRIDED, 8)), [launched((STRIDED.replace("elementwise", "unrolled_elementwise"), 50))],
     "8 % copies tensors"),
    ("layout-conversion", launched((COALESCE, 8), ("void cusparse::csrmm_alg1_kernel<float>()", 50)),
     [launched((COALESCE, 8)),  # as of a sparse gradient, for no product
      launched((COALESCE, 7), ("void cusparse::csrmm_alg1_kernel<float>()", 50)),
      launched(("DeviceMergeSortMergeKernel<cub::merge_sort>()", 50), ("void cusparse::csrmm_alg1_kernel<float>()", 50))],
     "8 % sorts, coalesces"),
    ("unfused-optimizer", launched((FOREACH, 20)), [launched((FOREACH, 19)), launched((FOREACH, 50), (FUSED, 10))],
     "20 % is the optimizer's step"),
    # set-up has no optimizer of single kernels; of all at once it cannot be told
    ("unfused-optimizer", replace(launched((ADDCDIV, 20, 20.0)), one_phase="no iterations"),
     [replace(launched((FOREACH, 50)), one_phase="no iterations")], "20 % is an optimizer's step"),
    ("unfused-attention", launched(("softmax_warp_forward<float>()", 20)), [launched(("softmax_warp_forward<float>()", 19)),
     launched(("softmax_warp_forward<float>()", 5, 1.0), (MULTIPLIES, 50, 50.0)), launched(("my_softmax(float*)", 50))],
     "20 % is softmax and elementwise work"),
    ("unfused-attention", scaled(9, 10), [scaled(9, 9), scaled(11, 10), scaled(9, 10, scaling=FILL), scaled(9, 10, own=FILL),
     replace(scaled(9, 10), successors={})], "20 % a scaling and rows(half*) behind a product"),
    ("too-few-blocks", blocks(100), [blocks(132), blocks(122), blocks(100, kernel_ns=3 * MS), blocks(100, us=19.0),
     blocks(100, name="ampere_sgemm_128x64_nn")], "update(float*) has 100 blocks"),
    ("autocast-weight-casts", launched((CAST, 30, 20.0), ("sm90_xmma_gemm_f16f16", 50)),
     [launched((CAST, 29, 20.0), ("sm90_xmma_gemm_f16f16", 50)), launched(("my_bfloat16_copy(float*)", 50, 20.0), ("sm90_xmma_gemm_f16f16", 50)),
      launched((STRIDED, 50, 20.0), ("sm90_xmma_gemm_f16f16", 50)),
      replace(launched((CAST, 20, 60.0), ("sm90_xmma_gemm_f16f16", 50)), idle_gpu=IDLE)], "30 % is casts"),  # most launches
    ("autocast-weight-casts", layer(1.0), [layer(0.5)], "50 % is casts"),
    ("autocast-weight-casts", layer(17.0, 33.0), [layer(3.0, 33.0)], "50 % is casts"),  # a request of nine products
    ("dense-embedding-gradient", launched((FOREACH, 70), (FILL, 3), ("compute_grad_weight<float>()", 1), (FUSED, 1)),
     [launched((FOREACH, 70), (FILL, 2), ("compute_grad_weight<float>()", 1), (FUSED, 1)),  # a table of few parameters
      launched((FUSED, 40), (FILL, 5))], "74 % is the dense"),
    ("gather-scatter", launched((GATHER, 10), (ADD_ROWS, 30)),
     [launched((GATHER, 9), (ADD_ROWS, 60)), launched((GATHER, 10), (ADD_ROWS, 29)),  # rows to the products of experts
      launched((GATHER, 40), (ADD_ROWS.replace("ReduceAdd", "IndexFill"), 30))],
     "40 % gathers and adds rows by index"),
    ("matrix-vector", of_class("matrix-vector", 3), [of_class("matrix-vector", 2.9), of_class("matrix-vector", 9, idle_pct=41.0)],
     "30 % products of a matrix and one vector"),
    ("inference-normalisation", launched((FOLDABLE, 10)), [launched((FOLDABLE, 9)), launched((FOLDABLE, 50), ("cudnn::bn_bw_1C11()", 1))],
     "10 % is batch normalisation of inference"),
    ("short-kernels", short(25, 50.0), [short(25, 49.0), short(24, 90.0), short(25, 90.0, "scale_add(float*)"),
     short(80, 50.0)],  # most of that time is in a few long ones
     "50 % of the kernels take less"),
    ("unfused-elementwise", launched((MULTIPLIES, 20, 3.0), (LEAKY, 20, 3.0)),
     [launched((MULTIPLIES, 20, 3.0), (LEAKY, 19, 3.0)), launched((MULTIPLIES, 20, 2.0), (LEAKY, 20, 3.0)),
      launched((MULTIPLIES, 30, 3.0), (LEAKY, 15, 3.0)),  # one of which has most of the time
      launched((MULTIPLIES, 20, 3.0), (STRIDED, 20, 3.0)), launched((MULTIPLIES, 0.05, 3.0), (LEAKY, 0.05, 3.0), ("x", 99.8))],
     "40 % elementwise, unfused"),
    ("slow-iteration", case(iterations=replace(STEPS, most_ns=30 * MS)), [case(iterations=replace(STEPS, most_ns=29 * MS))],
     "iteration 3 of 22 (counted from 0) takes 30 ms"),
    ("slow-iteration", pause(), [pause(use={"slowest_load_ns": 5 * MS})],  # at a kernel's first use, once
     "iteration 3 of 22 (counted from 0) takes 30 ms"),
    ("recompilation", pause(use={"compile_ns": 19 * MS}),
     [pause(), pause(use={"compile_ns": 19 * MS, "slowest_load_ns": 5 * MS})],  # libraries at their first use
     "iteration 3 of 22 (counted from 0) compiles"),
    ("slow-first-iteration", first_takes(500, gpu=30), [first_takes(80, gpu=30), first_takes(500, gpu=10), without_gpu_work(first_takes(500, gpu=30)), first_takes(500, gpu=30, count=4)],
     "the first 2 iterations take 500 ms"),
    ("stray-context", case(iterations=STEPS, stray_contexts=(StrayContext("rank 1", 0, 20, 0, 40 * US, 2 * US),)), [case()],
     "rank 1 also holds a context on GPU 0"),
]  # fmt: skip


RULES_HOLD += test_host.RULES_HOLD


def test_every_cause_that_a_rule_names_has_a_case():
    """Those of kernels are in test_counters.py, those of a timeline's gaps and streams in test_idle_gpu.py."""
    assert len({name for name, *_ in RULES_HOLD}) >= len(RULES)
    assert {name for name, *_ in RULES_HOLD} <= set(causes())


def hit(name, some):
    return next((hit for hit in find_hits_by_case([some])["c"] if hit.cause == name), None)


@pytest.mark.parametrize(("name", "some", "what"), [(name, some, what) for name, some, _, what in RULES_HOLD])
def test_a_rule_holds(name, some, what):
    found = hit(name, some)
    assert found is not None
    assert found.what.startswith(what)
    assert 0 < found.gain_pct <= 100
    assert all((found.do, found.advice.endswith("."), found.size, found.table))
    assert not found.fact.endswith(".")


@pytest.mark.parametrize(("name", "near"), [(name, near) for name, _, others, _ in RULES_HOLD for near in others])
def test_a_rule_does_not_hold_for_a_case_that_is_only_near(name, near):
    assert hit(name, near) is None


def test_of_a_case_without_tables_no_rule_says_anything():
    assert find_hits_by_case([CaseSummary("c", {}, 0, None, None, None)]) == {"c": []}


def test_a_start_that_tries_kernels_takes_long_though_no_iteration_does():
    phases = (
        Phase("setup", 900 * MS, 30 * MS, 30 * MS, None, None, (("[CUDA memcpy HtoD]", 5 * MS),), times_kernels=True),
        Phase("steady", 100 * MS, 20 * MS, 20 * MS, None, 10),
    )
    found = hit("slow-first-iteration", case(phases=phases, iterations=STEPS))
    assert found.fact.startswith("the start takes 900 ms, as long as 90 later iterations")
    copied_only = (replace(phases[0], what=(("[CUDA memcpy HtoD]", 15 * MS),)), phases[1])
    assert hit("slow-first-iteration", case(phases=copied_only, iterations=STEPS)) is None
    data_made = (replace(phases[0], times_kernels=False), phases[1])
    assert hit("slow-first-iteration", case(phases=data_made, iterations=STEPS)) is None


def test_what_faster_copies_win_is_what_the_speed_in_their_sentence_leaves():
    link = hit("copies-dominate", case(copies=(Copy("[CUDA memcpy HtoD]", 9, 60 * MS, 60 * MB, 0.6e9),)))
    assert link.gain_pct == pytest.approx(60 * (1 - 0.6 / 6))
    both = (
        Copy("[CUDA memcpy DtoH]", 9, 60 * MS, 120 * MB, 2e9),
        Copy("[CUDA memcpy HtoD]", 9, 20 * MS, 160 * MB, 8e9),
    )
    one_way = hit("copies-dominate", case(copies=both))
    assert "copy into pinned memory" in one_way.do
    assert one_way.gain_pct == pytest.approx(60 * (1 - 2 / 8))  # of 100 ms of GPU work


def test_advice_that_several_findings_of_a_case_share_is_given_once():
    hits = [
        Hit(cause, "c", gain, "", "", f"fact {cause}", "Do that.", "", "gaps") for cause, gain in (("a", 9), ("b", 8))
    ]
    texts = [finding.text for finding in merge_hits_to_findings({"c": hits}, several=False)]
    assert texts[0].startswith("Fact a. Do that. Gain")
    assert texts[1].startswith("Fact b. The same helps. Gain")


def test_many_tables_are_merged_before_their_gradients_are_sparse_and_their_step_is_named_once():
    def tables(count):
        return launched((FOREACH, 60), (FILL, 4), ("embedding_backward_feature_kernel<float>()", 10, count))

    one, many = (find_hits_by_case([tables(count)])["c"] for count in (1, 26))
    assert [hit.cause for hit in one] == [hit.cause for hit in many] == ["dense-embedding-gradient"]
    assert "SparseAdam" in one[0].advice
    assert many[0].advice.startswith("Hold the 26 tables in one")


def test_one_table_in_place_of_many_saves_what_is_launched_for_each_of_them():
    launches = Gaps("launch", "middle", 100.0, 16e6)
    idle = IdleGpu(True, 20.0, 20e6, 100.0, (launches,), (), {}, {}, 1, False, "the GPU")
    gains = []
    for sorts in (26, 60):  # one for each table; others
        tables = ((FOREACH, 60, 1), (FILL, 4, 1), ("embedding_backward_feature_kernel<float>()", 10, 26))
        ill = replace(launched(*tables, ("sort_keys()", 1, sorts), ("products()", 1, 126 - sorts)), idle_gpu=idle)
        (found,) = (hit for hit in find_hits_by_case([ill])["c"] if hit.cause == "dense-embedding-gradient")
        assert found.headline == "26 embedding tables, each with launches and gradients of its own"
        gains.append(found.gain_pct)
    assert gains[0] == pytest.approx(gains[1] + 80 * 26 / 155 * 25 / 26)
    assert gains[0] < 100


def test_little_that_less_gpu_work_wins_is_not_said_beside_idle_time_that_costs_much():
    launches = Gaps("launch", "middle", 100.0, 16e6)
    idle = IdleGpu(True, 30.0, 20e6, 100.0, (launches,), (), {}, {}, 1, False, "the GPU")
    for fp32, says in ((5.5, False), (9.9, True)):
        ill = replace(of_class("GEMM", 10, fp32=fp32, idle_pct=70.0), idle_gpu=idle)
        causes_named = [found.cause for found in find_hits_by_case([ill])["c"]]
        assert causes_named[0] == "launch-bound"
        assert ("tensor-cores-unused" in causes_named) is says, fp32


def test_tf32_wins_little_where_the_host_takes_as_long_as_the_gpu_is_idle():
    busy = of_class("GEMM", 10, fp32=9, idle_pct=50.0)
    idle = IdleGpu(True, 50.0, 20e6, 100.0, (), (), {"host_ns": 19e6}, {}, 1, False, "the GPU")
    alone, beside = (hit("tensor-cores-unused", each) for each in (busy, replace(busy, idle_gpu=idle)))
    assert (alone.gain_pct, beside.gain_pct) == (pytest.approx(13.5), pytest.approx(5.0))


def test_an_optimizer_that_launches_all_parameters_together_is_not_told_to():
    assert "foreach" not in hit("unfused-optimizer", launched((FOREACH, 30))).advice
    single = launched(("void at::native::vectorized_elementwise_kernel<4, addcdiv_cuda_kernel>()", 20, 20.0))
    assert "foreach" in hit("unfused-optimizer", single).advice


def test_kernels_of_few_blocks_that_others_follow_need_more_blocks_and_no_streams():
    use = {"computing_ns": 9 * MS, "kernel_ns": 9 * MS, "kernels": 20.0, "small_ns": 8 * MS, "streams": 1.0}
    names = ("scan(float*)", "scan_back(float*)")
    work = tuple(Share(name, name[:-8], "kernel", 80 * MS, 20, 45.0, 0.0) for name in names)
    large = Share("mix(float*)", "mix", "kernel", 20 * MS, 20, 10.0, 0.0)
    apart = replace(
        idle(busy_pct=98.0, gaps=(), use=use), gpu_work=(*work, large), sm_count=132.0, iterations=STEPS,
        blocks=dict.fromkeys(names, 32) | {"mix(float*)": 4000}, successors=dict.fromkeys(names, "mix(float*)"),
    )  # fmt: skip
    (few,) = find_hits_by_case([apart])["c"]
    assert few.cause == "too-few-blocks"
    assert few.fact.startswith(
        "90 % of GPU time is scan and scan_back, which have at most 32 blocks for 132 SMs and run"
    )
    beside = replace(apart, successors=dict(zip(names, reversed(names), strict=True)))
    assert find_hits_by_case([beside])["c"][0].cause == "kernels-not-concurrent"


def test_kernels_of_few_blocks_are_named_where_they_take_much_of_the_time():
    much, little = (replace(blocks(48), idle_gpu=replace(blocks(48).idle_gpu, busy_pct=busy)) for busy in (30.0, 29.9))
    assert "has 48 blocks for 132 SMs" in hit("too-few-blocks", much).fact
    assert hit("too-few-blocks", little) is None


def test_of_librarys_kernels_those_of_very_few_blocks_are_named():
    few, some = (hit("too-few-blocks", blocks(count, name="sm80_xmma_wgrad_implicit_gemm")) for count in (6, 64))
    assert some is None
    assert "another of the library's algorithms" in few.advice


def test_launches_that_an_optimizer_makes_are_the_optimizers_fault_with_those_that_have_no_name_of_their_own():
    steps = launched(
        ("void at::native::vectorized_elementwise_kernel<4, addcdiv_cuda_kernel>()", 7, 20.0), (FILL, 50, 30.0)
    )
    step, bound = order_hits(
        [hit(name, replace(steps, idle_gpu=IDLE)) for name in ("unfused-optimizer", "launch-bound")]
    )
    assert (step.cause, bound.cause) == ("unfused-optimizer", "launch-bound")
    # launches in 70 % of the time; and what the kernels take
    assert step.gain_pct == pytest.approx(100 * 0.9 * 0.7 * 7 / 4 * 20 / 51 + 0.6 * 7 * 7 / 4)


@pytest.mark.parametrize(
    ("gains", "order"),
    [({"launch-bound": 80.0, "unfused-optimizer": 20.0}, ["unfused-optimizer", "launch-bound"]),
     ({"launch-bound": 80.0, "unfused-optimizer": 19.0}, ["launch-bound", "unfused-optimizer"]),
     ({"launch-bound": 97.0, "slow-first-iteration": 48.0}, ["launch-bound", "slow-first-iteration"]),
     ({"launch-bound": 40.0, "host-work": 14.0}, ["launch-bound", "host-work"]),
     ({"launch-bound": 40.0, "data-loader": 14.0}, ["launch-bound", "data-loader"]),
     ({"launch-bound": 40.0, "too-few-blocks": 14.0}, ["launch-bound", "too-few-blocks"]),
     ({"launch-bound": 40.0, "allocation-in-loop": 14.0}, ["allocation-in-loop", "launch-bound"]),
     ({"launch-bound": 14.0, "host-work": 40.0}, ["host-work", "launch-bound"]),
     ({"tensor-cores-unused": 40.0, "no-copy-overlap": 30.0}, ["no-copy-overlap", "tensor-cores-unused"]),
     ({"data-loader": 30.0, "pageable-copies": 50.0}, ["pageable-copies", "data-loader"]),
     ({"exposed-communication": 50.0, "stray-context": 0.1}, ["stray-context", "exposed-communication"]),
     ({"exposed-communication": 50.0, "stray-context": 0.0}, ["exposed-communication", "stray-context"])],
)  # fmt: skip
def test_a_fault_comes_before_general_causes_of_at_most_four_times_its_gain(gains, order):
    hits = [Hit(cause, "c", gain, "", "", "", "", "", "") for cause, gain in gains.items()]
    assert [hit.cause for hit in order_hits(hits)] == order


def test_what_binds_the_kernel_that_a_busy_gpu_works_on_is_said_where_its_counters_are_there():
    busy = replace(IDLE, busy_pct=98.0, gaps=())
    work = (Share("k(float*)", "k", "kernel", 90 * MS, 20, 90.0, 0.0),)
    texts = [
        find_hits_by_case([case(idle_gpu=busy, gpu_work=work, kernels=kernels)])["c"][0].fact
        for kernels in ((), (replace(KERNEL, metrics={"duration": 1e6}),))
    ]
    assert texts[1].endswith("k is 100 % of its work, bound by L1 or L2 (60 % of its peak)")
    assert "bound by" not in texts[0]


def test_the_largest_kernel_of_the_programs_own_on_a_busy_gpu_is_named_from_a_third_of_its_work_on():
    def fact(name, share):
        work = [Share(name, "first", "kernel", share * MS, 20, share, 0.0)]
        work += [Share(f"k{n}()", "k", "kernel", (100 - share) / 4 * MS, 20, (100 - share) / 4, 0.0) for n in range(4)]
        found = find_hits_by_case([case(idle_gpu=replace(IDLE, busy_pct=98.0, gaps=()), gpu_work=tuple(work))])
        return found["c"][0].fact

    assert fact("first()", 44.0).endswith("; its largest kernel is first (44 % of its work)")
    assert fact("first()", 28.0).endswith("; nothing stands out")
    assert fact("cudnn_first()", 44.0).endswith("; nothing stands out")


def test_a_gain_that_only_repeats_the_share_of_its_sentence_is_left_out():
    hit = Hit("copies-dominate", "c", 88.0, "", "", "88 % of all GPU time is copies", "Keep them.", "88 %", "copies",
              "of GPU time is", gain_of="GPU time")  # fmt: skip
    (finding,) = merge_hits_to_findings({"c": [hit]}, several=False)
    assert finding.text == "88 % of all GPU time is copies. Keep them."
    (finding,) = merge_hits_to_findings({"c": [replace(hit, gain_pct=60.0)]}, several=False)
    assert finding.text.endswith("Gain: at most 60 % of GPU time.")
    (finding,) = merge_hits_to_findings(
        {"c": [replace(hit, fact="GPU time is copies for 88 % of GPU time")]}, several=False
    )
    assert "Gain" not in finding.text


def test_beside_what_is_compiled_nothing_is_said_of_the_rest_where_that_is_little_of_the_run():
    hits = [Hit("launch-bound", "c", 34.0, "", "", "", "", "", "gaps")]
    hits.append(Hit("slow-first-iteration", "c", 86.0, "", "", "", "", "", "nvtx_summary"))
    for times, shown in ((20, ["slow-first-iteration"]), (5, ["launch-bound", "slow-first-iteration"])):
        left_out = replace(idle(), idle_gpu=replace(IDLE, left_out_ns=times * IDLE.med_ns))
        assert [hit.cause for hit in _drop_hits_of_little_time(left_out, hits)] == shown
        assert _drop_hits_of_little_time(left_out, hits[:1]) == hits[:1]


def test_what_is_compiled_once_comes_first_where_the_loop_is_the_lesser_part_of_the_run():
    hits = [
        Hit(cause, "c", gain, "", "", "", "", "", table)
        for cause, gain, table in (("launch-bound", 34.0, "gaps"), ("slow-first-iteration", 86.0, "nvtx_summary"))
    ]
    assert [hit.cause for hit in order_hits(hits)] == ["launch-bound", "slow-first-iteration"]
    assert order_hits(hits, once_weight=1.0)[0].cause == "slow-first-iteration"
    phases = [Phase(name, ns, 0.0, 0.0, None, None) for name, ns in (("setup", 6 * MS), ("steady", 4 * MS))]
    assert _once_weight(replace(idle(), phases=phases)) == 1.0
    assert _once_weight(replace(idle(), phases=phases[1:])) < 1.0
    assert _once_weight(replace(idle(), idle_gpu=replace(IDLE, left_out_ns=2 * IDLE.med_ns))) == 1.0


def test_what_pinned_memory_gives_here_is_named_with_the_case_that_has_it():
    slow = copied("Host-to-Device", size=4 * MB, copies_pct=60.0)
    fast = replace(copied("Host-to-Device", size=25 * MB, copies_pct=5.0), id="other")
    (found,) = find_hits_by_case([slow, fast])["c"]
    assert found.do == "pin it (other: 50 GB/s)"
    assert "copies at 6.2 times that rate in other" in found.advice
    assert found.cured_case == "other"
    pins = replace(slow, longest_calls_ns={"cudaHostAlloc": 1.0, "cudaMemcpyAsync": 1.0})
    assert "pageable-copies" in {hit.cause for hit in find_hits_by_case([pins, fast])["c"]}
    assert "pageable-copies" not in {hit.cause for hit in find_hits_by_case([pins])["c"]}
    assert found.gain_pct == pytest.approx(60 * (1 - 8 / 50))


def test_few_copies_as_slow_as_of_pageable_memory_have_advice():
    found = hit("copies-dominate", case(copies=(Copy("[CUDA memcpy DtoH]", 6, 90 * MS, 170 * MB, 1.745e9),)))
    assert "from the GPU at 1.745 GB/s" in found.fact
    assert "pinned memory" in found.advice


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("ns::jacobi<float>", "`ncu -k jacobi -s 5 -c 1` shows what binds jacobi"),
        ("[graph]", "`ncu -c 1` shows what binds kernels"),
    ],
)
def test_of_a_busy_gpu_it_is_said_how_to_measure_its_largest_kernel(name, command):
    work = (Share(name, name, "kernel", 99 * MS, 10, 99.0, 99.0),)
    (found,) = find_hits_by_case([replace(idle(busy_pct=99.0, gaps=()), gpu_work=work)])["c"]
    assert found.healthy
    assert command in found.advice
    (measured,) = find_hits_by_case(
        [replace(idle(busy_pct=99.0, gaps=()), gpu_work=work, kernels=(replace(KERNEL, metrics={"ipc": 1.0}),))]
    )["c"]
    assert "ncu" not in measured.advice


@pytest.mark.parametrize(("second", "is_named"), [(38.0, True), (29.0, False)])
def test_a_second_large_kernel_of_a_busy_gpu_is_named_and_measured_with_it(second, is_named):
    parts = {"find": 60.0, "normalise": second, "rest": 40.0 - second}
    work = tuple(Share(name, name, "kernel", pct * MS, 20, pct, pct) for name, pct in parts.items())
    (found,) = find_hits_by_case([replace(idle(busy_pct=99.0, gaps=()), gpu_work=work)])["c"]
    assert ("find is 60 % of its work, and normalise 38 %" in found.fact) is is_named
    assert (
        "`ncu -k 'regex:^(find|normalise)$' -s 20 -c 2` shows what binds find and normalise" in found.advice
    ) is is_named
    assert ("`ncu -k find -s 10 -c 1`" in found.advice) is not is_named


def test_parameters_that_fsdp_may_offload_are_to_be_kept_on_the_gpus():
    fast = case(copies=(Copy("[CUDA memcpy HtoD]", 400, 90 * MS, 2500 * MB, 27.7e9),))
    assert "fewer bytes" in hit("copies-dominate", fast).advice
    found = hit("copies-dominate", replace(fast, uses_fsdp=True))
    assert found.do == "keep parameters on the GPU"
    assert "CPUOffload" in found.advice


def test_nothing_is_advised_to_run_beside_kernels_that_take_hardly_any_time():
    for copy, words in (
        (Copy("[CUDA memcpy HtoD]", 400, 90 * MS, 2500 * MB, 27.7e9), "(streams)"),
        (Copy("[CUDA memcpy DtoH]", 6, 90 * MS, 170 * MB, 1.745e9, 80 * MS), "in pieces"),
    ):
        assert words in hit("copies-dominate", case(copies=(copy,))).advice
        assert words not in hit("copies-dominate", case(copies=(copy,), kernel_ns=2 * MS)).advice
    sharded = case(copies=(Copy("[CUDA memcpy HtoD]", 400, 90 * MS, 2500 * MB, 27.7e9),), uses_fsdp=True)
    assert "forward_prefetch" in hit("copies-dominate", sharded).advice
    assert "BF16" in hit("copies-dominate", replace(sharded, kernel_ns=2 * MS)).advice


def test_copies_that_take_as_long_may_be_of_the_same_arrays():
    alike = Copy("[CUDA memcpy HtoD]", 45, 54 * MS, None, None, 1.25 * MS)
    advice = hit("copies-dominate", case(copies=(alike,))).advice
    assert advice.startswith("The 45 copies to the GPU take 1.200 ms each: if they are of the same arrays")
    assert "--print-gpu-trace" in advice
    assert "each" not in hit("copies-dominate", case(copies=(replace(alike, longest_ns=2 * MS),))).advice


X8 = Link("PCIe 3 x8", 7.877e9)


def over_link(speed, link=X8, longest=None):
    return case(copies=(Copy("[CUDA memcpy HtoD]", 20, 32 * MS, speed * 0.032, speed, longest),), link=link)


def test_copies_much_slower_than_those_the_other_way_need_pinned_memory():
    slow = Copy("[CUDA memcpy DtoH]", 6, 60 * MS, 102 * MB, 1.7e9, 15 * MS)
    fast = Copy("[CUDA memcpy HtoD]", 9, 10 * MS, 60 * MB, 6e9)
    assert (
        "Copies to the GPU reach 6.000 GB/s over the same link"
        in hit("copies-dominate", case(copies=(slow, fast))).advice
    )
    for other in (
        replace(fast, bytes_per_s=3e9),
        replace(fast, total_bytes=9.0),
        replace(fast, name="[CUDA memcpy DtoD]"),
    ):
        assert "same link" not in hit("copies-dominate", case(copies=(slow, other))).advice
    once = case(copies=(replace(slow, longest_ns=35 * MS), fast), kernel_ns=MS)  # pinning costs as much as it wins
    assert hit("copies-dominate", once).advice.endswith("Copy into memory that was used before.")


def test_copies_of_pinned_memory_are_not_advised_to_be_pinned():
    calls = dict.fromkeys(("cudaHostAlloc", "cudaMemcpyAsync", "cudaFree"), MS)
    both = tuple(Copy(f"[CUDA memcpy {way}]", 30, 45 * MS, 270 * MB, 6e9) for way in ("DtoH", "HtoD"))
    pinned = case(copies=both, longest_calls_ns=calls)
    assert hit("copies-dominate", pinned).fact.startswith("90 % of all GPU time")
    assert hit("copies-dominate", pinned).advice.startswith("The memory is pinned. Move fewer bytes")
    for unpinned in ({"cudaFree": MS}, calls | {"cudaMemcpy": MS}):
        other = replace(pinned, longest_calls_ns=unpinned)
        assert "If it is pageable" in hit("pageable-copies", other).advice


def test_copies_of_openacc_need_a_data_region():
    work = (Share("main_37_gpu", "main_37_gpu", "kernel", 50 * MS, 10, 50.0, 50.0),)
    found = hit("copies-dominate", case(copies=(Copy("[CUDA memcpy HtoD]", 9, 50 * MS, None, None),), gpu_work=work))
    assert "data region" in found.advice


def test_copies_at_the_speed_of_the_recorded_link_are_not_advised_to_be_pinned():
    (found,) = find_hits_by_case([over_link(5.9e9, longest=30 * MS)])["c"]
    assert found.fact.endswith("at 5.900 GB/s, the speed of the GPU's link (PCIe 3 x8); one copy is 94 % of that")
    assert (found.cause, found.do) == ("copies-dominate", "move fewer bytes")
    assert "pinned memory gains little" in found.advice


@pytest.mark.parametrize(
    ("some", "speed"),
    [(over_link(3e9), "some 6.14 GB/s over the GPU's link (PCIe 3 x8)"), (over_link(5.9e9, None), "PCIe 4: 25")],
    ids=["slower than the link", "no link recorded"],
)
def test_slower_copies_have_the_speed_that_pinned_memory_reaches(some, speed):
    (found,) = find_hits_by_case([some])["c"]
    assert found.cause == "pageable-copies"
    assert speed in found.advice


def test_one_copy_that_is_most_is_not_advised_to_be_kept_on_the_gpu():
    found = hit("copies-dominate", case(copies=(Copy("[CUDA memcpy DtoH]", 6, 90 * MS, 170 * MB, 1.745e9, 80 * MS),)))
    assert found.fact.endswith("at 1.745 GB/s; one copy is 89 % of that")
    assert found.advice.startswith("Copy in pieces beside the kernels")


def test_copies_count_of_all_gpu_time_with_what_a_report_cut_off():
    copies = (Copy("[CUDA memcpy HtoD]", 9, 50 * MS, None, None),)
    cut = Spent(
        False, None, (Part("GEMM", 51 * MS, 1.0, "", 0.0), Part("copies", 50 * MS, 9.0, "", 0.0)), 0.0, 0.0, 10.0
    )
    assert hit("copies-dominate", case(copies=copies)) is not None
    assert hit("copies-dominate", case(copies=copies, spent=cut)) is None


def test_hits_are_ordered_by_what_could_be_won_and_alike_cases_share_a_sentence():
    some = [replace(idle(busy_pct=busy), id=name) for name, busy in (("a", 50.0), ("b", 10.0), ("c", 40.0))]
    some[0] = replace(some[0], spent=spent(WORK, exposed_pct=60.0))
    hits = find_hits_by_case(some)
    assert [found.cause for found in hits["a"]] == ["exposed-communication", "launch-bound"]
    first, second = merge_hits_to_findings(hits, several=True)
    assert first.text.startswith("b: the GPU is idle 90 % of an iteration")
    assert first.text.endswith("Likewise c (60 % idle), a (50 % idle).")
    assert first.cases == ("b", "c", "a")
    twice = [hits["b"][0], replace(hits["b"][0], gain_pct=5.0)]
    assert "Likewise" not in merge_hits_to_findings({"b": twice}, several=False)[0].text
    assert second.cases == ("a",)


# --- two cases beside each other ----------------------------------------------------------------------------------


def variant(
    value, amp, *, gpu_ms=8.0, operations=100.0, span_ms=10.0, unit="images/s", runs=(("baseline", False),), **more
):
    made = replace(spent(WORK), parts=(Part("GEMM", gpu_ms * MS, operations, "k", gpu_ms * MS),), operations=operations,
                   span_ns=span_ms * MS)  # fmt: skip
    figures = tuple(Figure("speed", unit, name, profiled, value, value, value, 1) for name, profiled in runs)
    return replace(case(spent=made, figures=figures, **more), id=f"amp-{amp}", params={"amp": amp})


def compared(*cases, baseline=False):
    found = compare_variants(cases, parameter="amp", figure="speed", baseline=baseline)
    by_id = {case.id: case for case in cases}
    findings = [*cold_start_findings(found, by_id), *variant_findings(found, by_id)]
    return {finding.name: finding.text for finding in findings}


BASE = variant(100.0, amp=False)


@pytest.mark.parametrize(
    ("other", "names"),
    [
        (variant(150.0, amp=True, gpu_ms=4.0, span_ms=6.7), {"host is the limit"}),  # 2.00x arrives as 1.50x
        (variant(170.0, amp=True, gpu_ms=4.0, span_ms=5.9), set()),  # 2.00 is not 1.2 times 1.70
        (variant(90.0, amp=True, gpu_ms=4.0, span_ms=11.0), set()),
        (variant(90.0, amp=True, operations=111.0, span_ms=11.0), {"launch-bound"}),
        (variant(90.0, amp=True, operations=109.0, span_ms=11.0), set()),
        (variant(110.0, amp=True, operations=200.0, span_ms=9.0), set()),
        # twice the work of the GPU explains it
        (variant(50.0, amp=True, gpu_ms=16.0, operations=200.0, span_ms=20.0), set()),
        # half the batch: an iteration does half the work, and nothing was gained
        (variant(102.0, amp=True, gpu_ms=4.0, span_ms=4.9), set()),
        # two batches an iteration: twice the operations
        (variant(98.0, amp=True, gpu_ms=16.0, operations=200.0, span_ms=20.4), set()),
    ],
)
def test_variants(other, names):
    assert set(compared(BASE, other)) == names


def test_variants_say_how_much_arrives():
    text = compared(BASE, variant(150.0, amp=True, gpu_ms=4.0, span_ms=6.7))["host is the limit"]
    assert "amp-True 2x faster, the program 1.50x faster" in text
    text = compared(BASE, variant(90.0, amp=True, operations=130.0, span_ms=11.0))["launch-bound"]
    assert "amp-True (100 -> 130 operations, 10 % slower)" in text


def counted(value, amp, time_ms, launches=10.0):
    kernels = (replace(KERNEL, launches=launches, metrics={"duration": time_ms * MS}),)
    return replace(variant(value, amp, kernels=kernels), spent=None)


@pytest.mark.parametrize(
    ("other", "holds"),
    [(counted(1000.0, True, 10.0), True), (counted(990.0, True, 10.0), False), (counted(10.0, True, 10.0), True),
     (counted(1000.0, True, 1.0), False), (counted(1000.0, True, 100.0, launches=100.0), False)],
)  # fmt: skip
def test_a_figure_that_the_kernels_contradict_tenfold_has_a_cold_start(other, holds):
    """Ten times the launches in the same time are another matter: a variant may do with one what took ten."""
    found = compared(counted(100.0, False, 10.0), other)
    assert list(found) == (["cold start"] if holds else [])
    if holds:
        slower = "amp-False" if other.figures[0].median > 100 else "amp-True"
        assert found["cold start"].startswith(f"{slower}: its figure is 10 times lower")


def point(n, value, span_ms, **shares):
    computing = 100.0 - sum(shares.values())
    found = replace(spent(WORK, **shares), span_ns=span_ms * MS, computing_pct=computing)
    figures = (Figure("speed", "images/s", "baseline", False, value, value, value, 1),)
    return replace(case(spent=found, figures=figures), id=f"n-{n}", params={"n": n})


@pytest.mark.parametrize(
    ("kind", "many", "text"),
    [
        ("weak", point(4, 300.0, 20.0, exposed_pct=40.0, idle_pct=10.0),
         "An iteration takes 10.00 ms more than it should with n=4, 50 % of its 20 ms: NCCL alone 8.00 ms more, idle 2.00 ms more than with n=1."),
        ("weak", point(4, 390.0, 10.5, exposed_pct=4.0), None),
        ("strong", point(4, 300.0, 5.0, exposed_pct=50.0),
         "An iteration takes 2.500 ms more than it should with n=4, 50 % of its 5 ms: NCCL alone 2.500 ms more than 1/4 of that with n=1."),
        ("strong", point(4, 390.0, 2.6), None),
    ],
)  # fmt: skip
def test_what_an_iteration_takes_longer_is_divided(kind, many, text):
    cases = [point(1, 100.0, 10.0), many]
    curve = scaling_curve(cases, axis="n", kind=kind, figure="speed")
    assert [finding.text for finding in scaling_loss_findings(curve, {case.id: case for case in cases})] == (
        [text] if text else []
    )


def with_kernels(of, processes, **ms):
    """A case of 10 iterations of these kernels, a launch of each in an iteration of a process."""
    work = tuple(
        Share(name, name, "kernel", 10 * processes * each * MS, 10 * processes, 0, 0) for name, each in ms.items()
    )
    return replace(of, gpu_work=work, iterations=replace(STEPS, count=10, processes=processes))


def test_kernels_that_grew_are_named_and_filled_idle_time_is_no_gain():
    cases = [
        with_kernels(point(1, 100.0, 10.0, idle_pct=40.0), 1, a=4.0, b=2.0),
        with_kernels(point(2, 160.0, 12.0, exposed_pct=20.0, idle_pct=40 / 3), 2, a=4.5, b=2.2, scale=1.1),
    ]
    curve = scaling_curve(cases, axis="n", kind="weak", figure="speed")
    (finding,) = scaling_loss_findings(curve, {each.id: each for each in cases})
    assert finding.text == (
        "An iteration takes 2.000 ms more than it should with n=2, 17 % of its 12 ms: NCCL alone 2.400 ms more, computing"
        " 2.000 ms more (new scale 1.1 ms, a 500 us, others 400 us) than with n=1; 2.400 ms of that fill its idle"
        " time."
    )


@pytest.mark.parametrize(
    ("name", "is_fp32"),
    [("ampere_sgemm_128x64_nn", True), ("cutlass_80_simt_sgemm_256x128_8x4_nn_align1", True),
     ("void gemmSN_NN_kernel<float, 128, 2>(T)", True), ("void gemmSN_NN_kernel<__half, 128, 2>(T)", False),
     ("maxwell_fp16_scudnn_winograd_fp16_128x128", False), ("cutlass_80_simt_dgemm_128x64_8x5_nn_align1", False),
     ("cutlass_80_tensorop_s1688gemm_128x64", False)],
)  # fmt: skip
def test_fp32_arithmetic_is_told_by_the_names_of_libraries(name, is_fp32):
    assert is_fp32_matrix_kernel(name) is is_fp32


def test_only_a_librarys_kernel_converts_layouts_by_its_name():
    assert classify_gpu_operation("void cudnn::ops::nchwToNhwcKernel<float>()") == "layout"
    assert classify_gpu_operation("transpose(float const*, float*, int)") == "other kernels"


def test_fp32_products_are_worth_a_line_where_they_are_most_of_what_an_idle_gpu_does():
    found = hit("tensor-cores-unused", of_class("GEMM", 10, fp32=5, idle_pct=75.0))
    assert found.advice.startswith("Once the GPU is less idle, and if the accuracy allows it, try TF32")


def test_advice_that_costs_accuracy_comes_behind_time_that_is_wasted():
    """TF32 could win most of a healthy case: no case is called wasteful for it, and a real loss comes before it."""
    faults = {
        "healthy": [Hit("tensor-cores-unused", "healthy", 70.0, *[""] * 6, costs_accuracy=True)],
        "copies": [Hit("pageable-copies", "copies", 30.0, *[""] * 6)],
    }
    assert [finding.cause for finding in merge_hits_to_findings(faults, several=True)] == [
        "pageable-copies",
        "tensor-cores-unused",
    ]
