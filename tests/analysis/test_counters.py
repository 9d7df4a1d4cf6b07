"""What binds a kernel and how much of it is useful: each cause is named, and its healthy twin is not.

Values are near those that kernels of H100s had; a twin differs in what proves the cause alone.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from nsw.analysis.cases import CaseSummary, Share
from nsw.analysis.first_screen import _are_launches_of_start, find_headline, first_screen_blocks
from nsw.analysis.idle_gpu import IdleGpu
from nsw.analysis.kernels import Advice, Stall, kernel_table_of_report, kernels_of_start
from nsw.analysis.of_reports import summarize_reports
from nsw.analysis.rules.binding import binding_part, is_compute_bound
from nsw.analysis.rules.causes import causes
from nsw.analysis.rules.counters import kernel_advice_text, missing_counters_of_largest_kernel
from nsw.analysis.rules.pairs import counter_changes_text
from nsw.analysis.rules.registry import find_hits_by_case, merge_hits_to_findings
from nsw.analysis.spent import Spent
from nsw.readers import read

from .made import KERNEL

FIXTURES = Path(__file__).parents[1] / "fixtures"
H100 = "NVIDIA H100 80GB HBM3"
US, MB = 1e3, 1e6
# a kernel of 100 us with nothing wasted, whose parts are idle: what a case does not say is so
QUIET = {
    "duration": 100 * US, "elapsed_cycles": 160e3, "sm_active_cycles": 158e3, "sm_active_cycles_max": 159e3,
    "l1_throughput": 20.0, "l2_throughput": 20.0, "issue_slot_utilization": 20.0, "blocks": 1e4, "waves_per_sm": 9.5,
    "sm_count": 132.0, "threads_per_block": 256.0, "occupancy_limit_registers": 8.0, "occupancy_limit_warps": 8.0,
    "gld_efficiency": 100.0, "gst_efficiency": 100.0, "gld_transactions_per_request": 4.0,
    "gst_transactions_per_request": 4.0, "gld_transactions": 4e6, "gst_transactions": 4e6, "tex_cache_hit_rate": 0.0,
    "l2_tex_hit_rate": 50.0, "dram_bytes": 256 * MB, "warp_execution_efficiency": 100.0,
    "warp_nonpred_execution_efficiency": 98.0, "inst_executed": 2e7, "inst_executed_global_loads": 1e6,
    "inst_executed_global_stores": 1e6, "inst_executed_shared_loads": 0.0, "inst_executed_local": 0.0,
    "stall_memory_dependency": 70.0, "stall_barrier": 1.0, "l2_atomic_transactions": 0.0, "inst_integer": 1e7,
    "inst_bit_convert": 0.0, "special_fu_utilization": 0.0, "flop_count_sp_fma": 0.0,
}  # fmt: skip
BUSY = 89 * 158 / 160  # of L1, over the whole launch
WAITS = (Stall("memory dependency", 70.0),)


def kernel(sm=20.0, memory=20.0, dram=20.0, **metrics):
    changed = {name: metrics.pop(name) for name in list(metrics) if name in KERNEL.__dataclass_fields__}
    row = replace(KERNEL, sm_pct=sm, memory_pct=memory, dram_pct=dram, tensor_pct=0.0, stalls=WAITS, device_name=H100)
    return replace(row, **changed, metrics=QUIET | metrics)


def dram(busy=88.0, **metrics):
    return kernel(memory=busy, dram=busy, **metrics)


def l1(busy=89.0, **metrics):
    return kernel(memory=busy, l1_throughput=busy, l1_wavefront_utilization=busy, **metrics)


def pipe(name, busy=85.0, issue=40.0, **metrics):
    return kernel(sm=busy, issue_slot_utilization=issue, stall_memory_dependency=5.0, **{name: busy}, **metrics)


def issuing(busy=75.0, **metrics):
    return kernel(sm=busy, issue_slot_utilization=busy, stall_memory_dependency=5.0, **metrics)


def few(**metrics):
    """Occupancy of 25 %."""
    return kernel(**{"theoretical_occupancy_pct": 25.0, "achieved_occupancy_pct": 24.0} | metrics)


SCATTERED = {"gld_efficiency": 12.5, "gld_transactions_per_request": 32.0, "gld_transactions": 32e6}
BOTH = SCATTERED | {"gst_efficiency": 12.5, "gst_transactions_per_request": 32.0, "gst_transactions": 32e6}
SHARED = {"shared_wavefronts": 7e7, "l1_wavefronts": 7.5e7, "inst_executed_shared_loads": 2e6}
STORED_MORE = {"inst_executed_local": 8e6, "inst_executed_local_loads": 2e6, "inst_executed_local_stores": 6e6}
LOADED_MORE = {"inst_executed_local": 8e6, "inst_executed_local_loads": 5e6, "inst_executed_local_stores": 3e6}
LOADED_OFTEN = {"inst_executed_local": 8e6, "inst_executed_local_loads": 7.3e6, "inst_executed_local_stores": 0.7e6}
RELOADED = {"inst_executed_local": 8e6, "inst_executed_local_loads": 6.7e6, "inst_executed_local_stores": 1.3e6}
EVENLY = {"l2_throughput_max": 22.0, "l2_sectors": 4e7}
SPILLED_ONCE_MORE = {
    "inst_executed_local": 8e6,
    "inst_executed_local_loads": 3.98e6,
    "inst_executed_local_stores": 4.02e6,
}
TILED = {"flop_count_sp_fma": 3.2e8, "flop_count_sp_add": 0.0, "flop_count_sp_mul": 0.0, "inst_executed_shared_loads": 2e6,
         "stall_barrier": 8.0, "gst_transactions": 4e5}  # fmt: skip
FP32_BESIDE = {"inst_fp_64": 1e8, "inst_fp_32": 5e7, "inst_bit_convert": 5e7}
DOUBLE_RESULTS = {"gst_efficiency": 25.0, "gst_transactions_per_request": 32.0}  # 8 bytes a thread
DIVISION = {"inst_integer": 5e8, "inst_bit_convert": 2e7, "inst_fp_32": 1e6}
PAIRS = {"flop_count_sp_add": 1e8, "flop_count_sp_mul": 1e8, "flop_count_sp_fma": 0.0}

REDUCTION = {"shared_wavefronts": 5.7e7, "l1_wavefronts": 6e7, "inst_executed_shared_loads": 6e6,
             "inst_executed_shared_stores": 5e6, "shared_bank_conflicts": 3e5, "inst_executed_global_stores": 1e5,
             "threads": 3.2e7}  # fmt: skip

OF_LISTS = BOTH | {"gld_efficiency": 22.0, "gld_transactions_per_request": 17.0, "gld_transactions": 17e6,
                   "gst_transactions": 32e4}  # fmt: skip
FEEDING = SHARED | {"inst_executed_shared_stores": 1e6, "shared_bank_conflicts": 0.0, "stall_memory_dependency": 7.0,
                    "stall_barrier": 16.0, "stall_mio_throttle": 28.0, "stall_short_scoreboard": 25.0}  # fmt: skip

NODES = {"gld_efficiency": 12.0, "gst_efficiency": 37.0, "gld_transactions_per_request": 16.0, "tex_cache_hit_rate": 90.0,
         "gst_transactions_per_request": 16.0, "warp_execution_efficiency": 64.0, "threads_per_block": 256.0}  # fmt: skip


def bare_atomics(**metrics):
    """Atomic operations of which neither DRAM's bytes nor waits were counted."""
    row = kernel(**{"l2_tex_hit_rate": 35.0, "l2_atomic_transactions": 9e7, "l2_bytes": 32 * 5e7, "stalls": (),
                    "l2_throughput_max": 22.0} | metrics)  # fmt: skip
    uncounted = {"dram_bytes", "stall_memory_dependency", "stall_barrier"}
    return replace(row, metrics={name: value for name, value in row.metrics.items() if name not in uncounted})


ILL = [  # cause, a kernel that has it, those near it that have it not
    ("uncoalesced-access", l1(**SCATTERED),
     [l1(), l1(**SCATTERED | {"gld_transactions_per_request": 1.0}), l1(**SCATTERED | {"gld_efficiency": 80.0})]),
    ("array-of-structures", dram(**BOTH, dram_bytes=2048 * MB, threads=16e6),  # two loads a thread
     [dram(), dram(**BOTH, dram_bytes=256 * MB, threads=16e6), dram(**BOTH, dram_bytes=2048 * MB, threads=1e6)]),
    ("uncoalesced-access", dram(**BOTH, dram_bytes=2048 * MB, threads=1e6), []),  # each thread walks along its row
    ("array-of-structures", dram(**BOTH, dram_bytes=2048 * MB, threads=1e6, tex_cache_hit_rate=0.0, l2_tex_hit_rate=12.0),
     [dram(**BOTH, dram_bytes=2048 * MB, threads=1e6, tex_cache_hit_rate=85.0, l2_tex_hit_rate=12.0)]),  # who walks hits
    ("random-gather", dram(**SCATTERED | {"gld_transactions_per_request": 18.0, "gld_efficiency": 22.2, "gld_transactions": 18e6}, dram_bytes=1024 * MB),
     [dram(gld_transactions_per_request=18.0)]),
    ("random-gather", kernel(memory=55.0, l1_throughput=55.0, **NODES), [  # of trees, whose next members L1 has
        kernel(memory=55.0, l1_throughput=55.0, **NODES | more) for more in (
            {"tex_cache_hit_rate": 70.0}, {"warp_execution_efficiency": 80.0}, {"gst_efficiency": 12.0})]),
    ("narrow-access", kernel(narrow_access_share=90.0),
     [kernel(narrow_access_share=10.0), dram(narrow_access_share=90.0)]),
    ("narrow-access", pipe("ldst_fu_utilization", gld_transactions_per_request=1.0, gst_transactions_per_request=1.0), []),
    ("narrow-access", pipe("alu_pipe_utilization", narrow_access_share=90.0, inst_integer=6e8),
     [pipe("alu_pipe_utilization", narrow_access_share=90.0, inst_integer=7e8)]),  # 9.4 and 10.9 for each access
    ("bank-conflicts", l1(**SHARED, shared_bank_conflicts=6.5e7),
     [l1(**SHARED, shared_bank_conflicts=1e6), dram(**SHARED, shared_bank_conflicts=6.5e7)]),
    ("register-spills", dram(inst_executed_local=8e6, registers=255.0), [dram(inst_executed_local=1e5, registers=255.0)]),
    ("local-array-indexing", dram(inst_executed_local=8e6, registers=30.0), []),
    ("local-array-indexing", dram(inst_executed_local=8e6, registers=32.0, spilling_inst=0.0), []),
    ("local-array-indexing", dram(**STORED_MORE, registers=32.0), []),
    ("local-array-indexing", dram(**LOADED_OFTEN, registers=32.0), []),
    ("register-spills", dram(inst_executed_local=8e6, inst_executed_local_loads=3.1e6, inst_executed_local_stores=4.9e6, registers=32.0), []),
    ("register-spills", dram(**LOADED_MORE, registers=32.0), [dram(**STORED_MORE, registers=32.0)]),
    ("register-spills", dram(**RELOADED, registers=32.0), [dram(**LOADED_OFTEN, registers=32.0)]),
    ("local-array-indexing", dram(**LOADED_MORE, registers=32.0, local_load_transactions=1e8, local_store_transactions=1e8), []),
    ("register-spills", dram(**LOADED_MORE, registers=32.0, local_load_transactions=2e7, local_store_transactions=2e7), []),
    ("register-spills", dram(**SPILLED_ONCE_MORE, registers=32.0), [dram(**SPILLED_ONCE_MORE, registers=30.0)]),
    ("l2-capacity", dram(dram_bytes=2000 * MB, program_bytes=900 * MB),
     [dram(dram_bytes=2000 * MB), dram(dram_bytes=1200 * MB, program_bytes=900 * MB),
      dram(dram_bytes=2000 * MB, program_bytes=900 * MB, gst_transactions=4e7),  # it writes most of them
      kernel(memory=60.0, dram=60.0, dram_bytes=2000 * MB, program_bytes=900 * MB)]),
    ("contended-atomics", kernel(l2_throughput_max=98.0, l2_throughput=4.0, l2_sectors=1e7, l2_atomic_transactions=1e7),
     [kernel(l2_throughput_max=21.0, l2_throughput=20.0, l2_sectors=1e7, l2_atomic_transactions=1e7)]),
    ("contended-atomics", l1(**SHARED | {"inst_executed_shared_loads": 1e4}, shared_bank_conflicts=6.5e7, inst_executed_shared_stores=1e4),
     [l1(**SHARED, shared_bank_conflicts=6.5e7, inst_executed_shared_stores=1e6)]),
    ("bank-conflicts", l1(**SHARED, shared_bank_conflicts=6.8e7, inst_executed_shared_stores=1.8e5), []),  # of 32 ways: 32.1
    ("divergence", pipe("alu_pipe_utilization", warp_execution_efficiency=40.0),
     [pipe("alu_pipe_utilization", warp_execution_efficiency=90.0), dram(warp_execution_efficiency=40.0)]),
    ("divergence", pipe("alu_pipe_utilization", warp_nonpred_execution_efficiency=40.0), []),
    ("divergence", l1(warp_execution_efficiency=40.0), []),
    ("long-items", kernel(warp_execution_efficiency=30.0, waves_per_sm=0.24, stall_memory_dependency=10.0),
     [kernel(warp_execution_efficiency=30.0, waves_per_sm=4.0), issuing(warp_execution_efficiency=30.0, waves_per_sm=0.24)]),
    ("occupancy-block-size", pipe("alu_pipe_utilization", warp_execution_efficiency=50.0, threads_per_block=16.0), []),
    ("fp64-by-accident", pipe("double_precision_fu_utilization", **FP32_BESIDE),
     [pipe("double_precision_fu_utilization", inst_fp_64=1e8, inst_fp_32=1e6, inst_bit_convert=1e6), dram(**FP32_BESIDE),
      pipe("double_precision_fu_utilization", inst_fp_64=1e8, inst_bit_convert=5e7, gld_transactions_per_request=8.0,
       gst_transactions_per_request=8.0)]),  # random integers become FP64
    ("fp64-by-accident", kernel(memory=62.0, dram=62.0, double_precision_fu_utilization=46.0, **FP32_BESIDE),
     [dram(double_precision_fu_utilization=46.0, **FP32_BESIDE), kernel(memory=62.0, dram=62.0,
      double_precision_fu_utilization=46.0, inst_fp_64=1e8)]),
    ("fp64-by-accident", issuing(double_precision_fu_utilization=62.0, **FP32_BESIDE | {"inst_fp_64": 4e8}),
     [issuing(double_precision_fu_utilization=30.0, **FP32_BESIDE | {"inst_fp_64": 4e8})]),
    ("fp64-by-accident", pipe("double_precision_fu_utilization", inst_fp_64=1e9, inst_bit_convert=3e7),
     [pipe("double_precision_fu_utilization", inst_fp_64=1e9, inst_bit_convert=1e6),
      pipe("double_precision_fu_utilization", inst_fp_64=1e9, inst_bit_convert=6e7, gld_transactions=1e5),  # of functions
      pipe("double_precision_fu_utilization", inst_fp_64=1e9, inst_bit_convert=3e7, **DOUBLE_RESULTS)]),
    ("special-functions", issuing(special_fu_utilization=52.0),
     [issuing(special_fu_utilization=25.0), issuing(special_fu_utilization=52.0, inst_bit_convert=5e7)]),
    ("special-functions", pipe("special_fu_utilization"), [pipe("special_fu_utilization", busy=50.0), dram(special_fu_utilization=60.0)]),
    ("integer-division", pipe("special_fu_utilization", **DIVISION), [pipe("alu_pipe_utilization", **DIVISION | {"inst_bit_convert": 0.0})]),
    ("integer-division", pipe("alu_pipe_utilization", busy=50.0, special_fu_utilization=20.0, **DIVISION),
     [pipe("alu_pipe_utilization", busy=50.0, special_fu_utilization=10.0, **DIVISION),  # floats become integers
      pipe("alu_pipe_utilization", busy=44.0, special_fu_utilization=20.0, **DIVISION)]),
    ("unfused-multiply-add", pipe("single_precision_fu_utilization", **PAIRS),
     [pipe("single_precision_fu_utilization", **PAIRS | {"flop_count_sp_mul": 0.0}),
      pipe("single_precision_fu_utilization", **PAIRS | {"flop_count_sp_fma": 1e8})]),
    ("unfused-multiply-add", pipe("single_precision_fu_utilization", **PAIRS | {"flop_count_sp_add": 2.1e8}), []),
    ("tensor-cores-unused", pipe("single_precision_fu_utilization", **TILED),
     [pipe("single_precision_fu_utilization", **TILED | {"inst_executed_shared_loads": 0.0}),
      pipe("single_precision_fu_utilization", **TILED, tensor_pct=60.0),
      pipe("single_precision_fu_utilization", **TILED | {"gst_transactions": 4e6}),  # a filter of 10 taps
      pipe("single_precision_fu_utilization", **TILED | {"flop_count_sp_fma": 1e6})]),
    ("tail-wave", kernel(waves_per_sm=1.05, sm_active_cycles=86e3, blocks=1e3), [kernel(waves_per_sm=1.95, blocks=1e3)]),
    ("tail-wave", kernel(waves_per_sm=0.6, sm_active_cycles=100e3, blocks=160.0), [kernel(waves_per_sm=0.99, blocks=262.0)]),
    ("random-gather", kernel(memory=85.0, dram=60.0, l2_throughput=85.0, **SCATTERED, dram_bytes=1024 * MB), []),
    ("random-gather", kernel(memory=85.0, l2_throughput=85.0, **SCATTERED, dram_bytes=16 * MB),  # of a table that L2 holds
     [kernel(memory=85.0, l2_throughput=85.0, **SCATTERED, dram_bytes=128 * MB),  # rows and columns
      kernel(memory=85.0, l2_throughput=85.0, **SCATTERED | {"tex_cache_hit_rate": 87.5}, dram_bytes=16 * MB)]),
    ("random-gather", kernel(memory=80.0, l2_throughput=80.0, **OF_LISTS, warp_execution_efficiency=45.0),
     [kernel(memory=80.0, l2_throughput=80.0, **OF_LISTS, warp_execution_efficiency=100.0),  # half as many as threads
      kernel(memory=80.0, l2_throughput=80.0, **OF_LISTS, warp_execution_efficiency=45.0, threads_per_block=16.0),
      kernel(memory=80.0, l2_throughput=80.0, **OF_LISTS | {"gld_transactions_per_request": 32.0}, warp_execution_efficiency=45.0),
      kernel(memory=80.0, l2_throughput=80.0, **OF_LISTS | {"gst_transactions": 32e6}, warp_execution_efficiency=45.0)]),
    ("contended-atomics", kernel(memory=97.0, l2_throughput=97.0, l2_throughput_max=98.0, l2_bytes=32 * 5e7, l2_atomic_transactions=8e7, **SCATTERED),
     [kernel(memory=97.0, l2_throughput=97.0, l2_throughput_max=98.0, l2_bytes=32 * 5e7, l2_atomic_transactions=4e7, **SCATTERED)]),
    ("too-few-blocks", kernel(blocks=20.0, waves_per_sm=0.02), [dram(busy=92.0, blocks=20.0, waves_per_sm=0.02)]),
    ("too-few-blocks", kernel(blocks=196.0, waves_per_sm=0.19, threads_per_block=256.0, stalls=()),
     [kernel(blocks=632.0, waves_per_sm=0.6, threads_per_block=256.0, stalls=())]),
    ("unequal-blocks", kernel(sm_active_cycles=80e3), [dram(busy=92.0, sm_active_cycles=80e3)]),
    ("occupancy-registers", few(occupancy_limiter="registers"), [few(occupancy_limiter="registers", dram=92.0, memory=92.0),
     few(occupancy_limiter="registers", achieved_occupancy_pct=6.0)]),
    ("occupancy-shared-memory", few(occupancy_limiter="shared memory"), [few(occupancy_limiter="shared memory", stall_memory_dependency=0.0,
     stall_lg_throttle=60.0, stall_wait=5.0)]),
    ("occupancy-block-size", few(occupancy_limiter="blocks"), []),
    ("occupancy-block-size", few(theoretical_occupancy_pct=50.0, achieved_occupancy_pct=17.0, threads_per_block=32.0),
     [few(theoretical_occupancy_pct=50.0, achieved_occupancy_pct=17.0, threads_per_block=256.0),
      few(theoretical_occupancy_pct=50.0, achieved_occupancy_pct=17.0, threads_per_block=32.0, waves_per_sm=2.0)]),
    ("scattered-atomics", bare_atomics(), [
        bare_atomics(l2_tex_hit_rate=60.0), bare_atomics(l2_atomic_transactions=3e7),  # of 5e7 sectors
        bare_atomics(l2_throughput_max=60.0), bare_atomics(l2_atomic_transactions=1e3)]),  # few addresses; those of blocks
    ("scattered-atomics", kernel(l2_tex_hit_rate=30.0, l2_atomic_transactions=2e7, dram_bytes=800 * MB, **EVENLY),
     [kernel(l2_tex_hit_rate=30.0, l2_atomic_transactions=2e7, dram_bytes=400 * MB, **EVENLY),  # loads and stores alone
      kernel(l2_tex_hit_rate=30.0, l2_atomic_transactions=5e4, dram_bytes=258.5 * MB, **EVENLY),  # which are nearly all
      kernel(l2_tex_hit_rate=30.0, l2_atomic_transactions=2e4, dram_bytes=800 * MB, **EVENLY)]),  # of other data
    ("occupancy-shared-memory", few(occupancy_limiter="shared memory", memory=58.0, l2_throughput=58.0, **SCATTERED, dram_bytes=16 * MB), []),
    ("occupancy-registers", few(occupancy_limiter="registers", memory=64.0, dram=64.0, stalls=(Stall("memory dependency", 48.0),)),
     [few(occupancy_limiter="registers", memory=64.0, dram=64.0, stalls=(Stall("barrier", 48.0),))]),
    ("barriers", kernel(stall_barrier=60.0, stall_memory_dependency=10.0), [kernel(stall_barrier=20.0)]),
    ("barriers", l1(**SHARED | {"inst_executed_shared_stores": 1e6}, shared_bank_conflicts=0.0, stall_barrier=25.0, stall_memory_dependency=10.0),
     [l1(**SHARED | {"inst_executed_shared_stores": 2e7}, shared_bank_conflicts=0.0, stall_barrier=25.0, stall_memory_dependency=10.0),
      l1(**SHARED | {"inst_executed_shared_stores": 1e6}, shared_bank_conflicts=0.0, stall_barrier=12.0, stall_memory_dependency=10.0)]),
    ("barriers", l1(busy=76.0, **REDUCTION, stall_barrier=14.0),
     [l1(busy=76.0, **REDUCTION | {"threads": 1e7}, stall_barrier=14.0),  # three values a thread
      l1(busy=76.0, **REDUCTION | {"shared_wavefronts": 1e7}, stall_barrier=14.0)]),
    ("small-tiles", l1(**FEEDING, tensor_pct=20.0),
     [l1(**FEEDING, tensor_pct=0.0), l1(**FEEDING, tensor_pct=60.0), l1(**FEEDING | {"stall_barrier": 60.0}, tensor_pct=20.0)]),
    ("barriers", kernel(stall_barrier=60.0, stall_memory_dependency=10.0, stall_mio_throttle=50.0),
     [kernel(stall_barrier=40.0, stall_memory_dependency=10.0, stall_mio_throttle=30.0, stall_short_scoreboard=30.0),
      l1(**FEEDING, tensor_pct=20.0)]),
    ("instruction-cache", kernel(stall_inst_fetch=60.0, stall_memory_dependency=10.0), []),
    ("dependent-chain", kernel(achieved_occupancy_pct=60.0), [kernel(memory=65.0, l2_throughput=65.0), kernel(stalls=())]),
    ("memory-latency", kernel(memory=55.0, l2_throughput=55.0, stall_memory_dependency=50.0, stall_barrier=25.0),
     [kernel(memory=55.0, l2_throughput=55.0, stall_memory_dependency=50.0, stall_barrier=25.0, achieved_occupancy_pct=60.0),
      kernel(memory=55.0, l2_throughput=55.0, stall_memory_dependency=55.0, stall_barrier=5.0)]),
    ("small-launches", kernel(duration=2 * US, l1_throughput=1.0, l2_throughput=1.0, issue_slot_utilization=1.0, sm=1.0, memory=1.0, dram=1.0),
     [kernel(duration=2 * US)]),
    ("low-clock", pipe("alu_pipe_utilization", sm_frequency=0.9e9), [pipe("alu_pipe_utilization", sm_frequency=1.6e9), dram(sm_frequency=0.9e9)]),
    ("flushed-caches", dram(dram_bytes=20 * MB, dram_read_bytes=18 * MB, gst_transactions=5e5),
     [dram(dram_bytes=20 * MB), dram(dram_bytes=60 * MB, dram_read_bytes=50 * MB, gst_transactions=5e5),
      dram(dram_bytes=48 * MB, dram_read_bytes=8 * MB, gst_transactions=2.3e6),  # what it wrote lies in L2 at the end
      kernel(memory=85.0, l2_throughput=85.0, dram=45.0, dram_read_bytes=18 * MB, gst_transactions=5e5)]),
    ("dram-bound", dram(), [dram(busy=70.0)]),
    ("l2-bound", kernel(memory=85.0, l2_throughput=85.0), []),
    ("shared-memory-bound", l1(**SHARED, shared_bank_conflicts=1e5), [l1(**SHARED)]),
    ("compute-bound", pipe("single_precision_fu_utilization"), [pipe("single_precision_fu_utilization", busy=70.0)]),
]  # fmt: skip


def case(*kernels):
    return CaseSummary("c", {}, 1, 1e8, 1e8, None, kernels=kernels)


def hits(*kernels):
    return {hit.cause: hit for hit in find_hits_by_case([case(*kernels)])["c"]}


def test_beside_copies_of_a_timeline_without_iterations_a_gain_is_of_gpu_time():
    alone, work = case(kernel(blocks=20.0, waves_per_sm=0.02)), (Share("k", "k", "kernel", 2e7, 10, 20.0, 0.0),)
    joined = replace(alone, kernel_ns=2e7, gpu_work=work)
    (before,), (hit,) = (find_hits_by_case([each])["c"] for each in (alone, joined))
    assert (before.gain_of, hit.gain_of) == ("the kernels' time", "GPU time")
    assert hit.gain_pct == pytest.approx(before.gain_pct / 5)


@pytest.mark.parametrize(("used", "lanes", "hits_l2", "cause"), [
    (23.0, 55.0, 99.0, "random-gather"), (12.5, 55.0, 99.0, "uncoalesced-access"),
    (23.0, 99.0, 99.0, "uncoalesced-access"), (23.0, 55.0, 60.0, "uncoalesced-access"),
])  # fmt: skip
def test_lists_are_gathered_where_sectors_were_not_counted(used, lanes, hits_l2, cause):
    """Few active threads, some of whose loads are of indices side by side, and a table that L2 holds."""
    listed = l1(gld_efficiency=used, warp_execution_efficiency=lanes, l2_tex_hit_rate=hits_l2, threads_per_block=128.0,
                gst_efficiency=used)  # fmt: skip
    uncounted = {name: value for name, value in listed.metrics.items() if "transactions" not in name}
    assert cause in hits(replace(listed, metrics=uncounted))


def test_blocks_of_few_threads_lack_more_than_those_of_idle_sms():
    def found(threads):
        waits = kernel(sm=5.0, memory=5.0, dram=4.0, l1_throughput=5.0, l2_throughput=5.0, issue_slot_utilization=2.0,
                       blocks=100.0, waves_per_sm=0.02, threads_per_block=threads)  # fmt: skip
        return hits(waits)["too-few-blocks"]

    few, many = found(64.0), found(1024.0)
    assert "100 blocks of 64 threads for 132 SMs, 2 % of the threads that the GPU holds" in few.fact
    assert few.gain_pct > 3 * many.gain_pct > 0


def test_stores_that_use_little_of_a_sector_are_waste_of_l2_where_l1_holds_the_loads():
    useful = {"gld_efficiency": 12.5, "gst_efficiency": 12.5, "tex_cache_hit_rate": 92.0, "l2_throughput": 67.0}
    counted = kernel(memory=67.0, sm=15.0, dram=6.0, l1_throughput=40.0, **useful)
    names = [name for name in counted.metrics if not name.startswith(("gld_trans", "gst_trans"))]
    hit = hits(replace(counted, metrics={name: counted.metrics[name] for name in names}))["uncoalesced-access"]
    assert hit.gain_pct > 50


@pytest.mark.parametrize("scattered", ["gld_efficiency", "gst_efficiency"])
def test_uncounted_requests_are_wide_where_l1_takes_many_passes_for_each_instruction(scattered):
    """Loads or stores that are scattered beside others that are not: passes tell which of them fill L1."""
    binds = kernel(memory=90.0, dram=7.0, l1_throughput=90.0, l2_throughput=90.0, tex_cache_hit_rate=80.0,
                   inst_executed=3e6, **{scattered: 6.0})  # fmt: skip
    names = [name for name in binds.metrics if not name.startswith(("gld_trans", "gst_trans", "inst_executed_global"))]
    uncounted = replace(binds, metrics={name: binds.metrics[name] for name in names})
    assert hits(uncounted)["uncoalesced-access"].gain_pct > 60
    assert not hits(replace(uncounted, metrics=uncounted.metrics | {"inst_executed": 3e7}))


@pytest.mark.parametrize(("cause", "ill"), [(cause, ill) for cause, ill, _ in ILL])
def test_a_cause_is_named_alone_with_its_remedy(cause, ill):
    (hit,) = hits(ill).values()
    assert hit.cause == cause
    assert hit.advice == causes()[cause].remedy("cuda")
    assert hit.healthy is (causes()[cause].group == "healthy")
    assert (hit.gain_pct == 0) is hit.healthy
    assert hit.gain_pct <= 100
    assert not hit.fact.endswith(".")
    assert kernel_advice_text(ill, 100.0) == hit.do


@pytest.mark.parametrize(("cause", "twin"), [(cause, twin) for cause, _, twins in ILL for twin in twins])
def test_a_twin_without_the_cause_is_not_blamed_for_it(cause, twin):
    assert cause not in hits(twin)


def test_every_cause_of_kernels_that_counters_decide_has_a_case():
    undecided = {"ncu-rule", "occupancy-enough", "misaligned-rows"}  # the last of libraries alone
    of_counters = {name for name, cause in causes().items() if cause.measured_by == "counters"}
    assert {cause for cause, *_ in ILL} == of_counters - undecided


@pytest.mark.parametrize(
    ("ill", "saved"),
    [
        (l1(**SHARED, shared_bank_conflicts=6.5e7), 100 * (1 - 20 / BUSY)),  # then what is 20 % busy binds
        (l1(**SHARED, shared_bank_conflicts=3e7), 40.0),  # 3 of 7.5 passes
        (kernel(blocks=66.0, waves_per_sm=0.06), 50.0),
    ],
)
def test_a_cure_wins_the_wasted_share_of_what_binds_down_to_what_binds_next(ill, saved):
    found = find_hits_by_case([case(ill)])
    ((hit,),) = found.values()
    assert hit.gain_pct == pytest.approx(saved)
    (alone,), (beside,) = (merge_hits_to_findings(found, several=several) for several in (False, True))
    assert alone.text == f"{hit.fact}. {hit.advice} Gain: at most {saved:.0f} % of the kernels' time."
    assert beside.brief == f"c: {hit.fact}: {hit.do}. Gain: at most {saved:.0f} % of the kernels' time."


def test_no_cure_makes_a_launch_shorter_than_an_empty_one():
    for launch_ns, most in ((8e3, 75.0), (800e3, 80.0)):
        (hit,) = hits(kernel(blocks=2.0, waves_per_sm=0.01, duration=launch_ns)).values()
        assert hit.gain_pct == pytest.approx(most)


def test_a_kernel_wins_no_more_than_its_share_of_an_iteration_in_which_the_gpu_is_idle_too():
    idle = IdleGpu(True, 40.0, 30e6, 100.0, (), (), {}, {}, 1, False, "the GPU")
    ill = replace(case(kernel(blocks=66.0, waves_per_sm=0.06)), idle_gpu=idle)
    found = {hit.cause: hit for hit in find_hits_by_case([ill])["c"]}
    assert found["too-few-blocks"].gain_pct == pytest.approx(0.4 * 50)


def test_launches_of_unlike_grids_have_a_range_of_blocks():
    shapes = (("(4, 1, 1)", "(384, 1, 1)"), ("(29, 1, 1)", "(384, 1, 1)"))
    alike, unlike = (replace(kernel(blocks=14.0, waves_per_sm=0.02), shapes=shapes[:count]) for count in (0, 2))
    assert "14 blocks" in hits(alike)["too-few-blocks"].fact
    assert "4 to 29 blocks" in hits(unlike)["too-few-blocks"].fact


@pytest.mark.parametrize(("limit", "saved"), [(50.0, 70 * (1 - 0.5 / 0.75)), (12.5, 70 * (1 - 50 / 95))])
def test_more_warps_fill_the_waits_for_results_each_a_part_of_what_is_left(limit, saved):
    ill = kernel(memory=50.0, dram=50.0, theoretical_occupancy_pct=limit, occupancy_limiter="registers")
    assert hits(ill)["occupancy-registers"].gain_pct == pytest.approx(saved)


def test_the_name_of_a_users_kernel_decides_nothing():
    said = {
        (hit.cause, hit.gain_pct)
        for name in ("transpose(float*)", "gemm_naive(float*)", "reduce_kernel(float*)", "k")
        for hit in hits(l1(**SHARED, shared_bank_conflicts=6.5e7, name=name)).values()
    }
    assert len(said) == 1


GEMM = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8_stage3_ffma_execute_kernel__5x_cublas"


@pytest.mark.parametrize(
    ("name", "row", "holds"),
    [
        (GEMM, {}, True),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(T1::Params)", {}, True),
        ("my_sgemm(float*)", {}, False),
        (GEMM, {"tensor_pct": 40.0}, False),
        (GEMM, {"device_name": "Tesla V100-SXM2-16GB"}, False),
        (GEMM, {"dram": 90.0, "memory": 90.0}, False),
        (GEMM.replace("f32f32", "f64f64").replace("ffma", "dfma"), {}, False),
    ],
)
def test_a_librarys_product_in_fp32_could_use_tensor_cores_where_they_multiply_tf32(name, row, holds):
    uneven = {"waves_per_sm": 2.38, "sm_active_cycles": 137e3, "blocks": 2e3}  # a waste of the library's own
    found = hits(kernel(**{"sm": 70.0, "issue_slot_utilization": 70.0, "name": name} | uneven | row))
    assert ("tensor-cores-unused" in found) is holds
    assert not holds or found["tensor-cores-unused"].costs_accuracy


STRADDLING = {"gld_efficiency": 57.0, "gst_efficiency": 57.0, "gld_transactions_per_request": 14.0,
              "gst_transactions_per_request": 14.0, "gld_transactions": 14e6, "gst_transactions": 14e6}  # fmt: skip
CUFFT = "void regular_fft<2048u, EPT<16u>, 4u, 2u, (padding_t)14, (twiddle_t)0>"


@pytest.mark.parametrize(
    "name",
    [CUFFT, "regular_fft", "void spRadix0256C::kernel3Mem<unsigned int, float>", "vector_fft_symm_c2r",
     "void cusparse::csrmv_v3_kernel<int>", "void cub::DeviceMergeSortMergeKernel<int>"],
)  # fmt: skip
def test_a_librarys_rows_that_straddle_sectors_are_to_be_padded(name):
    ill = kernel(memory=80.0, l2_throughput=80.0, name=name, **STRADDLING)
    (hit,) = hits(ill).values()
    assert hit.cause == "misaligned-rows"
    assert not hits(kernel(memory=80.0, l2_throughput=80.0, name=name, **STRADDLING | {"gst_efficiency": 25.0}))
    assert set(hits(replace(ill, name="my_fft(float2*)"))) == {"uncoalesced-access"}


@pytest.mark.parametrize(
    ("name", "advice"),
    [("void at::native::vectorized_elementwise_kernel<4, Add>()", "Give the operator a larger batch, or fuse"),
     ("void at_cuda_detail::cub::DeviceRadixSortOnesweepKernel<P>()", "It is a library's kernel: put several calls")],
)  # fmt: skip
def test_a_librarys_sort_is_not_told_to_be_fused(name, advice):
    few = kernel(blocks=20.0, waves_per_sm=0.02, name=name, share_pct=90.0)
    torch = kernel(name="void at::native::reduce_kernel<f>()", share_pct=10.0)
    (hit,) = [hit for hit in hits(few, torch).values() if hit.cause == "too-few-blocks"]
    assert hit.advice.startswith(advice)


@pytest.mark.parametrize("name", ["void gemv<cublasGemvParams>()", "void phi::funcs::VectorizedBroadcastKernel<f>()"])
def test_of_a_librarys_kernel_only_what_calls_can_change_is_said(name):
    assert not hits(l1(**SHARED, shared_bank_conflicts=6.5e7, name=name))
    (hit,) = hits(kernel(blocks=20.0, waves_per_sm=0.02, name=name)).values()
    assert (hit.cause, hit.do) == ("too-few-blocks", "larger or fused calls")
    assert hit.advice.startswith("It is a library's kernel: put several calls into one")


def test_what_a_kernel_at_drams_roof_moves_is_counted_or_follows_from_the_data_sheet():
    counted = dram()
    uncounted = replace(counted, metrics={name: each for name, each in counted.metrics.items() if name != "dram_bytes"})
    for row, text in ((counted, "A launch moves 0.256 GB"), (uncounted, "A launch moves some 0.29 GB")):
        (hit,) = hits(row).values()
        assert hit.fact.endswith(text)


def test_a_block_that_works_when_all_others_are_done_is_the_whole_cause():
    alone = {"sm_active_cycles": 1.2e3, "sm_active_cycles_max": 100e3, "waves_per_sm": 0.19}
    (hit,) = hits(kernel(sm=1.0, memory=1.0, dram=1.0, warp_execution_efficiency=40.0, **alone)).values()
    assert hit.cause == "unequal-blocks"
    assert "one block works, or a thread of it, and the others are done" in hit.fact


def test_small_operators_that_are_fused_save_their_launches():
    name, short = "void at::native::vectorized_elementwise_kernel<4, f>()", {"duration": 2.2e3}
    few = {"blocks": 1.0, "waves_per_sm": 0.001, "threads_per_block": 128.0, "shapes": (("1", "128"),)}
    few |= {"l1_throughput": 1.0, "l2_throughput": 1.0, "issue_slot_utilization": 1.0}
    (fusable,) = hits(kernel(sm=1.0, memory=1.0, dram=1.0, name=name, **few, **short)).values()
    assert fusable.gain_pct > 90
    (users,) = hits(kernel(sm=1.0, memory=1.0, dram=1.0, **few, **short)).values()
    assert users.gain_pct < 10  # a launch of one's own takes as long, whatever it does


def test_a_kernel_with_waste_whose_work_lies_on_few_sms_is_said_to_have_both():
    uneven = {"sm_active_cycles": 40e3, "sm_active_cycles_max": 100e3}
    assert set(hits(kernel(memory=45.0, l1=45.0, **SCATTERED, **uneven))) == {"uncoalesced-access", "unequal-blocks"}
    assert set(hits(kernel(memory=45.0, l1=45.0, **SCATTERED))) == {"uncoalesced-access"}


def test_a_kernel_with_waste_and_too_few_warps_is_said_to_have_both():
    ill = few(occupancy_limiter="registers", memory=64.0, l2_throughput=64.0, **SCATTERED)
    assert set(hits(ill)) == {"uncoalesced-access", "occupancy-registers"}
    at_its_roof = few(occupancy_limiter="registers", memory=90.0, l2_throughput=90.0, **SCATTERED)
    assert set(hits(at_its_roof)) == {"uncoalesced-access"}


@pytest.mark.parametrize(
    ("name", "of_library", "framework"),
    [
        ("add_columns", "void at::native::fill<float>(float*)", "triton"),
        ("add_columns(float*)", "void at::native::fill<float>(float*)", "cuda"),
        ("add_columns", "void fill<float>(float*)", "cuda"),
        ("add_columns_37_gpu", "void fill<float>(float*)", "cuda"),
    ],
)
def test_a_kernel_of_the_users_has_the_remedy_of_the_language_that_it_is_written_in(name, of_library, framework):
    ill = l1(**SCATTERED, name=name, share_pct=90.0)
    found = hits(ill, kernel(name=of_library, share_pct=1.0))
    assert found["uncoalesced-access"].advice == causes()["uncoalesced-access"].remedy(framework)


def test_a_kernel_that_xla_made_is_a_librarys():
    fusion = {"name": "loop_add_fusion_3", "duration": 2 * US}
    (hit,) = hits(kernel(l1_throughput=1.0, l2_throughput=1.0, issue_slot_utilization=1.0, sm=1.0, memory=1.0, dram=1.0,
                         **fusion)).values()  # fmt: skip
    assert hit.advice == causes()["small-launches"].remedy("jax")
    assert "saves" not in hit.fact
    assert not hits(l1(**SCATTERED, **fusion | {"duration": 100 * US}))


IDLE = {
    "sm": 1.0,
    "memory": 1.0,
    "dram": 1.0,
    "l1_throughput": 1.0,
    "l2_throughput": 1.0,
    "issue_slot_utilization": 1.0,
}


@pytest.mark.parametrize(
    "shape", [{"shapes": (("(1, 1, 1)", "(128, 1, 1)"),)}, {"blocks": 1.0, "threads_per_block": 128.0}]
)
@pytest.mark.parametrize("took", [3 * US, 300 * US])
def test_a_launch_of_a_handful_of_blocks_has_too_few_of_them(shape, took):
    (hit,) = hits(kernel(**IDLE, duration=took, sm_count=0.0, waves_per_sm=0.0, **shape)).values()
    assert hit.cause == "too-few-blocks"
    assert "has 1 block of 128 threads a launch, which uses one SM; its busiest part is 1 % busy" in hit.fact
    assert "graph" not in hit.advice


def test_the_sms_of_the_gpu_are_named_where_they_are_known():
    (hit,) = hits(kernel(**IDLE, duration=3 * US, shapes=(("2,1,1", "64,2,1"),), sm_count=58.0)).values()
    assert "has 2 blocks of 128 threads a launch, which use at most 2 SMs of 58" in hit.fact


@pytest.mark.parametrize("grids", [("5,1,1",), ("1,1,1", "400,1,1")])
def test_more_blocks_than_a_handful_in_any_launch_are_not_too_few(grids):
    few = kernel(**IDLE, duration=3 * US, shapes=tuple((grid, "128,1,1") for grid in grids))
    assert set(hits(few)) == {"small-launches"}


def test_barriers_that_bound_as_many_blocks_as_an_sm_holds_are_not_named():
    (hit,) = hits(few(occupancy_limiter="shared memory, blocks, barriers", occupancy_limit_blocks=32.0)).values()
    assert hit.cause == "occupancy-block-size"
    assert "(blocks)" in hit.what


def test_a_healthy_kernel_with_few_warps_is_said_to_have_enough_of_them():
    assert "its occupancy of 25 % is enough" in hits(few(memory=90.0, dram=90.0))["dram-bound"].fact
    assert "A launch moves 0.256 GB" in hits(dram())["dram-bound"].fact


def test_tensor_cores_at_their_roof_bind_also_where_the_shared_memory_that_feeds_them_is_as_busy():
    # a product of 8192 x 8192 by cuBLAS on an H200, at the clock that the power limit left
    fed = {"shared_wavefronts": 2.76e8, "l1_wavefronts": 2.76e8, "shared_bank_conflicts": 2e5, "l1_throughput": 95.0}
    product = kernel(**fed, tensor_pct=93.0, memory=95.0, sm=15.0, sm_frequency=1.37e9, dram=18.0,
                     short_name="nvjet_sm90_tst", name="nvjet_sm90_tst")  # fmt: skip
    (hit,) = hits(product).values()
    assert hit.cause == "compute-bound"
    assert "by matrix products" in hit.fact


def test_of_several_kernels_the_one_counts_of_which_most_could_be_won_and_a_healthy_one_is_said_last():
    poor = l1(**SHARED, shared_bank_conflicts=6.5e7, share_pct=30.0, short_name="poor")
    poorer = l1(**SHARED, shared_bank_conflicts=6.5e7, share_pct=10.0, short_name="poorer")
    found = find_hits_by_case([case(dram(share_pct=60.0, short_name="healthy"), poor, poorer)])
    findings = merge_hits_to_findings(found, several=False)
    assert [(finding.cause, finding.healthy) for finding in findings] == [
        ("bank-conflicts", False),
        ("dram-bound", True),
    ]
    assert findings[0].text.startswith("poor (30 % of the kernels' time) has bank conflicts")
    assert "; likewise poorer (10 %). Pad " in findings[0].text
    assert findings[0].gain_pct == pytest.approx(40 * (1 - 20 / BUSY))
    assert findings[1].text.startswith("healthy (60 % of the kernels' time) is at its roof: DRAM 88 %, all bytes used.")


def test_kernels_of_one_cause_are_named_together_where_each_is_worth_it_and_the_largest_of_them_first():
    rows = [(50.0, 32.0, "wide"), (38.0, 80.0, "narrow"), (2.0, 80.0, "little")]
    hit = hits(*(kernel(memory=busy, l2_throughput=busy, **BOTH, share_pct=share, short_name=name)
                 for share, busy, name in rows))["uncoalesced-access"]  # fmt: skip
    assert hit.fact.startswith("narrow (38 % ")
    assert hit.fact.endswith("; likewise wide (50 %)")


def test_kernels_that_are_little_each_are_named_where_their_common_cure_wins_enough():
    few_blocks = {"blocks": 1.0, "waves_per_sm": 0.1, "memory": 1.0, "dram": 1.0, "l2_throughput": 1.0, "sm": 1.0}
    small, smaller = (
        kernel(**few_blocks, share_pct=share, short_name=name) for share, name in ((4.8, "s"), (3.0, "t"))
    )
    largest = kernel(share_pct=80.0, short_name="largest", stalls=(), memory=65.0, l1_throughput=65.0)
    hit = hits(largest, small, smaller)["too-few-blocks"]
    assert hit.fact.endswith("; likewise t (3 %)")
    assert hit.gain_pct == pytest.approx(7.8, abs=0.2)
    assert "too-few-blocks" not in hits(largest, small)


@pytest.mark.parametrize(("operator", "sorts", "says"), [
    ("randperm_handle_duplicate_keys_kernel", 5, "which sorts for torch.randperm"),
    ("krn_partials_per_segment", 4, "which sorts for the gradient of an embedding"),
    ("krn_partials_per_segment", 6, ""),
    ("gatherTopK", 4, ""),
])  # fmt: skip
def test_a_library_s_sort_is_told_with_the_operator_that_sorts(operator, sorts, says):
    few_blocks = {"blocks": 11.0, "waves_per_sm": 0.1, "memory": 1.0, "dram": 1.0, "l2_throughput": 1.0, "sm": 1.0}
    names = (("void DeviceRadixSortOnesweepKernel<long>(T1 *)", 60.0, 40.0), (operator, 10.0, 4.0),
             ("void DeviceRadixSortHistogramKernel<long>(T1 *)", 10.0, float(sorts)))  # fmt: skip
    rows = [kernel(**few_blocks, name=name, share_pct=share, launches=count) for name, share, count in names]
    fact = next(hit.fact for hit in find_hits_by_case([case(*rows)])["c"] if hit.cause == "too-few-blocks")
    assert says in fact
    assert ("which sorts" in fact) == bool(says)


def test_long_names_of_other_kernels_are_counted_rather_than_listed():
    names = [f"sm80_xmma_gemm_{'f32' * 15}_{n}" for n in range(3)]
    rows = [kernel(memory=80.0, l2_throughput=80.0, **BOTH, share_pct=share, short_name=name)
            for share, name in zip((50.0, 30.0, 20.0), names, strict=True)]  # fmt: skip
    assert hits(*rows)["uncoalesced-access"].fact.endswith("; likewise 2 others (50 % together)")


def test_dram_is_named_before_l2_where_the_memory_system_is_as_busy_as_dram():
    streams = kernel(memory=68.0, dram=68.0, l2_throughput=85.0)
    assert binding_part(streams) == "DRAM"
    assert hits(streams)["dram-bound"].fact.startswith("k is at its roof: DRAM 68 % and L2 85 %, all bytes used")
    for beside in ({"memory": 80.0, "l2_throughput": 85.0}, {"l2_throughput": 92.0}):  # L2 hands on more than DRAM does
        assert binding_part(kernel(**{"memory": 68.0, "dram": 68.0} | beside)) == "L2"


def test_kernels_that_one_remedy_cures_are_one_finding_and_those_of_libraries_another():
    walk, record = (dram(**BOTH, dram_bytes=2048 * MB, threads=threads, share_pct=share, short_name=name)
                    for threads, share, name in ((1e6, 30.0, "walk"), (16e6, 40.0, "record")))  # fmt: skip
    (hit,) = hits(walk, record).values()
    assert hit.fact.startswith("record (40 %")
    assert hit.fact.endswith("; likewise walk (30 %)")
    few_blocks = {"blocks": 40.0, "waves_per_sm": 0.1, "share_pct": 50.0}
    own, librarys = (
        kernel(**few_blocks, name=name) for name in ("k(float*)", "void at::<unnamed>::renorm<float>(T1 *)")
    )
    found = find_hits_by_case([case(own, librarys)])["c"]
    assert {hit.advice for hit in found} == {causes()["too-few-blocks"].remedy(of) for of in ("cuda", "pytorch")}


@pytest.mark.parametrize(("ill", "says"), [
    (kernel(memory=45.0, l2_throughput=45.0, **BOTH), "4 of 32 bytes of a sector used"),
    (few(occupancy_limiter="registers"), "bound by latency, only 25 % of the warps fit (registers)"),
    (l1(**SCATTERED), "bound by L1, 88 % of its peak, 4 of 32 bytes of a sector used"),
])  # fmt: skip
def test_a_headline_names_waste_rather_than_the_latency_that_it_makes(ill, says):
    ill = replace(ill, short_name="k", launches=1.0, share_pct=None)
    summary = replace(summarize_reports("r", []), cases=(case(ill),), hits=find_hits_by_case([case(ill)]))
    assert find_headline(first_screen_blocks(summary)) == f"c: k takes 100.0 us, {says}"


def test_a_headline_names_a_fault_of_the_largest_kernel_that_it_shares_with_a_worse_one():
    rows = [kernel(memory=busy, l2_throughput=busy, **BOTH, share_pct=share, short_name=name)
            for share, busy, name in ((52.0, 42.0, "largest"), (48.0, 80.0, "worst"))]  # fmt: skip
    summary = replace(summarize_reports("r", []), cases=(case(*rows),), hits=find_hits_by_case([case(*rows)]))
    assert summary.hits["c"][0].fact.startswith("worst ")
    headline = find_headline(first_screen_blocks(summary))
    assert "; worst" not in headline
    assert headline.endswith("4 of 32 bytes of a sector used")


def test_a_headline_names_what_could_be_won_of_another_kernel_than_its_own():
    largest = kernel(share_pct=60.0, short_name="largest", stalls=(), memory=65.0, l1_throughput=65.0)
    poor = l1(**SCATTERED, share_pct=40.0, short_name="poor")
    summary = replace(
        summarize_reports("r", []), cases=(case(largest, poor),), hits=find_hits_by_case([case(largest, poor)])
    )
    assert find_headline(first_screen_blocks(summary)).endswith("; poor: 4 of 32 bytes of a sector used")


def test_the_remedy_is_a_sentence_of_a_single_case_and_a_few_words_beside_others():
    found = find_hits_by_case([case(l1(**SHARED, shared_bank_conflicts=6.5e7))])
    (alone,), (beside,) = (merge_hits_to_findings(found, several=several) for several in (False, True))
    assert (alone.brief or alone.text).endswith("or choose an odd stride. Gain: at most 77 % of the kernels' time.")
    assert ": pad or swizzle shared arrays. Gain: " in beside.brief


@pytest.mark.parametrize(("share", "holds"), [(8.0, True), (6.0, False), (None, False)])  # of which 78 % could be won
def test_of_several_kernels_nothing_is_said_that_wins_little_or_nobody_knows_how_much(share, holds):
    poor = l1(**SHARED, shared_bank_conflicts=6.5e7, share_pct=share)
    assert ("bank-conflicts" in hits(kernel(share_pct=share and 100 - share, stalls=()), poor)) is holds


def test_a_roof_without_the_counters_that_tell_waste_is_not_called_healthy():
    bare = {name: value for name, value in QUIET.items() if not name.startswith(("gld", "gst", "warp_"))}
    for row in (dram(), kernel(memory=85.0, l2_throughput=85.0), pipe("single_precision_fu_utilization")):
        metrics = {name: value for name, value in row.metrics.items() if name in bare or name not in QUIET}
        assert not any(hit.healthy for hit in hits(replace(row, metrics=metrics)).values())


def test_a_rule_of_ncu_speaks_where_counters_are_missing_and_names_the_cause_that_it_means():
    said = "The pattern causes on average a 32.3 - way bank conflict across all requests"
    advice = Advice("SharedMemoryConflicts", said, 87.0, "global")
    bare = replace(KERNEL, memory_pct=89.0, metrics={"duration": 100 * US}, advice=advice)
    (hit,) = hits(bare).values()
    assert (hit.cause, hit.gain_pct) == ("bank-conflicts", 87.0)
    assert "ncu's rule SharedMemoryConflicts says: The pattern causes on average a 32.3 - way bank conflict" in hit.fact
    assert not hits(replace(bare, advice=replace(advice, speedup_type="local")))
    assert "ncu's rule" not in "".join(hit.fact for hit in hits(dram(advice=advice)).values())


def test_what_binds_is_the_busiest_part_and_latency_where_none_is_busy():
    assert binding_part(dram()) == "DRAM"
    assert binding_part(kernel(memory=85.0, l2_throughput=85.0)) == "L2"
    assert binding_part(kernel(memory=96.0, dram=92.0, l2_throughput=96.0)) == "DRAM"  # whose bytes all pass L2
    assert binding_part(kernel(memory=96.0, dram=81.0, l2_throughput=96.0)) == "DRAM"  # which reaches 92 % at most
    assert binding_part(kernel(memory=96.0, dram=79.0, l2_throughput=96.0)) == "L2"
    assert binding_part(l1(**SHARED)) == "shared memory"
    assert binding_part(pipe("special_fu_utilization")) == "XU pipe"
    assert binding_part(kernel()) == "latency"
    assert binding_part(replace(KERNEL, memory_pct=90.0, sm_pct=10.0)) == "L1 or L2"
    assert binding_part(replace(KERNEL, memory_pct=10.0, sm_pct=90.0)) == "SM"
    assert binding_part(replace(KERNEL, memory_pct=None, sm_pct=None, dram_pct=70.0)) is None


@pytest.mark.parametrize(
    ("row", "lacking", "subject"),
    [
        (dram(), "gld_efficiency gst_efficiency", "how many of the bytes that k moves are used"),
        (l1(**SHARED), "shared_bank_conflicts", "whether bank conflicts slow k"),
        (
            pipe("alu_pipe_utilization", special_fu_utilization=5.0),
            "inst_integer",
            "which instructions keep the ALU pipe busy in k",
        ),
        (kernel(), "l2_atomic_transactions", "whether k waits for atomic operations"),
        (kernel(stalls=()), "l2_atomic_transactions", "what the warps of k wait for"),
        (kernel(memory=None, dram=None), "l2_throughput", "what binds k"),
    ],
)
def test_what_was_not_measured_is_said_where_it_keeps_a_verdict_back(row, lacking, subject):
    metrics = {name: value for name, value in row.metrics.items() if name not in lacking.split()}
    answer = missing_counters_of_largest_kernel(case(replace(row, metrics=metrics)))
    assert answer.subject == subject
    assert all("__" in name for name in answer.metrics)  # as ncu has them
    assert missing_counters_of_largest_kernel(case(dram())) is None
    assert missing_counters_of_largest_kernel(case(replace(dram(), metrics={}, name="cublas"))) is None
    assert missing_counters_of_largest_kernel(case()) is None


def test_what_keeps_the_alu_pipe_busy_is_known_where_nothing_converts_or_divides():
    row = pipe("alu_pipe_utilization")
    row = replace(row, metrics={name: value for name, value in row.metrics.items() if name != "inst_integer"})
    assert missing_counters_of_largest_kernel(case(row)) is None
    assert hits(row)["compute-bound"].fact.endswith("ALU pipe 84 %, all threads active")


def test_no_metric_is_asked_for_that_the_report_has():
    row = replace(kernel(memory=None, dram=None), metrics={"sm_throughput": 71.3, "shared_bank_conflicts": 9e7})
    answer = missing_counters_of_largest_kernel(case(row))
    assert "sm__throughput.avg.pct_of_peak_sustained_elapsed" not in answer.metrics
    assert "dram__throughput.avg.pct_of_peak_sustained_elapsed" in answer.metrics
    assert "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum" in answer.metrics  # by which conflicts are judged
    assert not [name for name in answer.metrics if "bank_conflicts" in name]


@pytest.mark.parametrize("cycles", [{"elapsed_cycles": 160e3}, {"sm_frequency": 1.6e9, "duration": 100 * US}])
def test_bank_conflicts_alone_are_judged_by_the_cycles_that_they_take(cycles):
    bare = replace(kernel(memory=None, dram=None), metrics={"sm_count": 100.0, "shared_bank_conflicts": 6e6, **cycles})
    (hit,) = hits(bare).values()
    assert (hit.cause, hit.what) == ("bank-conflicts", "bank conflicts: 38 % of the cycles")
    assert hits(replace(bare, metrics=bare.metrics | {"shared_bank_conflicts": 3.9e6})) == {}
    assert (
        hits(replace(bare, metrics={name: value for name, value in bare.metrics.items() if name != "sm_count"})) == {}
    )


def test_a_details_page_of_ncu_is_enough():
    (row,) = kernel_table_of_report(read(FIXTURES / "h100" / "bank_conflicts_details_all.txt").tables)
    (hit,) = hits(row).values()
    assert hit.cause == "bank-conflicts"
    assert hit.fact.startswith("transpose has bank conflicts: they add 93 % of the passes through shared memory")
    assert hit.gain_pct == pytest.approx(56, abs=1)  # by DRAM, L2 next; the cured kernel took 42 % less


def test_where_loads_and_stores_were_not_told_apart_the_sectors_of_the_source_counters_count():
    apart = {"gld_efficiency", "gst_efficiency"}
    metrics = {name: value for name, value in dram().metrics.items() if name not in apart}
    row = replace(dram(), metrics=metrics | {"global_access_efficiency": 12.5, "gld_transactions_per_request": 32.0})
    assert "4.0 of the 32 bytes of each sector that its loads and stores move" in next(iter(hits(row).values())).fact
    assert kernel_advice_text(replace(row, metrics=row.metrics | {"global_access_efficiency": 100.0}), 100.0) == (
        "only fewer bytes help"
    )


def test_the_source_counters_of_a_full_report_are_read_as_a_share():
    names = ("memory_l2_theoretical_sectors_global", "memory_l2_theoretical_sectors_global_ideal")
    metrics = [{"kernel": "k", "metric": name, "value": value, "run": "r", "launch_id": 1}
               for name, value in zip(names, (400.0, 100.0), strict=True)]  # fmt: skip
    (row,) = kernel_table_of_report({"metrics": metrics})
    assert row.metrics["global_access_efficiency"] == 25.0


@pytest.mark.parametrize(
    ("kernels", "idle", "is_bound"),
    [
        ([(pipe("double_precision_fu_utilization"), 95.0), (dram(), 5.0)], 2.0, True),
        ([(pipe("double_precision_fu_utilization"), 60.0), (dram(), 40.0)], 2.0, False),
        ([(pipe("double_precision_fu_utilization"), 95.0)], 30.0, False),  # the host decides too
        ([(pipe("double_precision_fu_utilization"), 95.0)], None, False),
        ([(kernel(), 100.0)], 2.0, False),  # latency, which has a part outside of the SMs
    ],
)
def test_a_program_is_compute_bound_where_the_sms_bind_its_kernels_and_the_gpu_is_busy(kernels, idle, is_bound):
    rows = [replace(row, share_pct=share) for row, share in kernels]
    assert is_compute_bound(replace(case(*rows), spent=Spent(True, 1e6, (), 0.0, 0.0, 1.0, idle_pct=idle))) == is_bound


def test_of_one_kernel_on_two_sides_the_faults_that_came_and_went_and_what_binds_are_named():
    before, after = pipe("double_precision_fu_utilization", **FP32_BESIDE), dram()
    gone, new, bound = counter_changes_text([before], [after]), counter_changes_text([after], [before]), "of its peak"
    assert '"FP64 beside FP32, FP64 pipe 84 % busy" is gone; it is bound by DRAM now, 88 %' in gone
    assert '"FP64 beside FP32, FP64 pipe 84 % busy" is new; it is bound by FP64 pipe now, 84 %' in new
    assert bound in gone and "by FP64 pipe before" in gone  # noqa: PT018
    assert counter_changes_text([before], [before]) == ""
    assert counter_changes_text([replace(before, short_name="other")], [after]) == ""


def test_a_kernel_whose_issue_slots_are_full_of_fp64_is_told_what_fp32_would_win():
    mix = {"inst_fp_64": 3e8, "inst_fp_32": 1e6, "inst_integer": 2e8, "inst_bit_convert": 1e6} | DOUBLE_RESULTS
    mixed = issuing(85.0, double_precision_fu_utilization=60.0, **mix)
    assert "its FP64 pipe is 59 % busy: where FP32 is accurate enough" in hits(mixed)["compute-bound"].fact
    assert "FP64" not in hits(issuing(85.0, double_precision_fu_utilization=30.0, **mix))["compute-bound"].fact


def test_local_memory_and_atomics_that_move_more_come_before_loads_that_are_scattered():
    loads = kernel(memory=85.0, l2_throughput=85.0, **SCATTERED)
    assert "of the 32 bytes of each sector" in " ".join(hit.fact for hit in hits(loads).values())
    local = replace(loads, metrics=loads.metrics | {"local_load_transactions": 9e7, "local_store_transactions": 9e7})
    assert not any("of the 32 bytes" in hit.fact for hit in hits(local).values())
    sums = {
        "l2_atomic_transactions": 2e8,
        "l2_read_transactions": 1e8,
        "l2_write_transactions": 1e8,
        "l2_throughput_max": 90.0,
    }
    atomics = replace(loads, metrics=loads.metrics | sums)
    (hit,) = hits(atomics).values()
    assert hit.cause == "contended-atomics"
    assert "so many atomic operations that they are 100 % of what L2 carries, which is 85 % busy" in hit.fact


def test_loads_and_stores_that_are_scattered_alike_are_both_named():
    (hit,) = hits(kernel(memory=85.0, l2_throughput=85.0, **BOTH)).values()
    assert "of each sector that its loads and stores move" in hit.fact


def test_few_registers_are_spilled_in_large_blocks_alone():
    """Of small blocks so few are the kernel's own number, and an array of each thread lies in local memory."""
    few = {"inst_executed_local": 8e6, "inst_executed_local_loads": 4e6, "inst_executed_local_stores": 4e6}
    for threads, cause in ((512.0, "register-spills"), (128.0, "local-array-indexing")):
        spilling = kernel(memory=85.0, l2_throughput=85.0, registers=32.0, threads_per_block=threads, **few)
        assert cause in hits(spilling)


def test_threads_that_are_predicated_off_are_no_full_use():
    off = pipe("single_precision_fu_utilization", warp_nonpred_execution_efficiency=88.0)
    assert hits(off)["compute-bound"].what == "all threads active, 12 % of them predicated off"


def test_launches_that_make_a_model_are_told_from_those_of_a_loop():
    names = [
        "void at::native::distribution_elementwise_grid_stride_kernel<float>",
        "void at::native::elementwise_kernel<A>",
    ]
    assert _are_launches_of_start(case(*(kernel(name=name) for name in names)))
    assert not _are_launches_of_start(case(*(kernel(name=name) for name in [*names, "sm90_xmma_gemm"])))
    assert not _are_launches_of_start(case(kernel(name=names[1])))
    assert not _are_launches_of_start(case(*(kernel(name=name, launches=1) for name in names)))  # a random input
    shares = [kernel(name=name, share_pct=40.0) for name in names[:2]]
    assert _are_launches_of_start(case(*shares, kernel(name="rms_forward", share_pct=20.0)))
    assert not _are_launches_of_start(case(shares[0], kernel(name="rms_forward", share_pct=60.0)))
    summary = replace(summarize_reports("r", []), cases=(case(*shares),), hits={})
    assert find_headline(first_screen_blocks(summary)).endswith(
        "most of these 2 kernels look like the start of a program"
    )


@pytest.mark.parametrize(("first", "is_start"), [(True, True), (False, False)])
def test_a_kernel_launched_once_before_all_others_is_set_up_however_long_it_takes(first, is_start):
    once = kernel(name="fill", launches=1, share_pct=60.0, is_first=first)
    assert kernels_of_start([once, kernel(name="step", launches=9, share_pct=40.0)]) == (
        {"fill"} if is_start else set()
    )
    assert not kernels_of_start([once, kernel(name="step", launches=2, share_pct=40.0)])  # nothing repeats


def test_what_a_kernel_wins_of_a_program_is_of_the_time_in_which_kernels_are_at_work():
    ill = case(kernel(memory=85.0, l2_throughput=85.0, **BOTH))
    alone = find_hits_by_case([ill])["c"][0].gain_pct
    idle = IdleGpu(True, 80.0, 4e6, 1.0, (), (), {"span_ns": 4e6, "computing_ns": 1e6}, {}, 1, False, "the GPU")
    beside_copies = find_hits_by_case([replace(ill, idle_gpu=idle)])["c"]
    (scattered,) = [hit for hit in beside_copies if hit.table == "kernels"]
    assert scattered.gain_pct == pytest.approx(alone / 4)


@pytest.mark.parametrize(("share", "launches", "is_named"), [(20.0, 4.0, False), (30.0, 4.0, True), (20.0, 2.0, True)])
def test_kernels_of_set_up_are_in_no_finding(share, launches, is_named):
    scattered = kernel(memory=85.0, l2_throughput=85.0, **BOTH)
    once = replace(scattered, name="init", short_name="init", launches=1.0, share_pct=share)
    again = replace(scattered, launches=launches, share_pct=100 - share)
    (hit,) = hits(again, once).values()
    assert ("likewise init" in hit.fact) is is_named


def test_shares_and_gains_are_without_a_set_up_that_takes_much():
    again = replace(kernel(memory=85.0, l2_throughput=85.0, **BOTH), short_name="again", launches=5.0, share_pct=20.0)
    once = kernel(name="init", short_name="init", launches=1.0, share_pct=80.0, is_first=True)
    alone, (hit,) = hits(replace(again, share_pct=100.0)), hits(again, once).values()
    assert hit.gain_pct == pytest.approx(alone[hit.cause].gain_pct)
    assert hit.gain_of == "the kernels' time without init"
    assert hit.fact.startswith("again (100 % of the kernels' time without init) uses 4.0 of the 32 bytes")
    summary = replace(summarize_reports("r", []), cases=(case(again, once),), hits={"c": [hit]})
    text = find_headline(first_screen_blocks(summary))
    assert text.startswith("c: init, launched once, takes 80 % of the kernels' time; again takes 100.0 us a launch")
    (traced,) = hits(replace(again, time_from="timeline"), once).values()  # whose shares are of a run
    assert traced.gain_pct == pytest.approx(hit.gain_pct / 5)


def test_a_report_of_a_single_iteration_has_no_set_up():
    rows = [kernel(name=name, launches=4, share_pct=22.0) for name in "abcd"]
    once = [kernel(name=name, launches=1, share_pct=3.0, is_between=True) for name in "xyz"]
    assert kernels_of_start([*rows, *once[:2]]) == {"x", "y"}
    assert not kernels_of_start([*rows, *once])


FOREACH = [f"void at::native::multi_tensor_apply_kernel<Metadata, {functor}>" for functor in ("Mul", "Lerp", "Sqrt")]
GRADIENT = [
    "at::native::compute_grad_weight<float>",
    "void at::native::vectorized_elementwise_kernel<4, FillFunctor<float>>",
]


@pytest.mark.parametrize(("names", "cause"), [
    (FOREACH, {"unfused-optimizer"}), (FOREACH[:2], set()),  # a norm of gradients has two
    ([*FOREACH[:2], FOREACH[2].replace("Sqrt", "FusedAdam")], set()),
    ([*FOREACH, *GRADIENT], {"dense-embedding-gradient"}), ([*FOREACH, GRADIENT[0]], {"unfused-optimizer"}),
])  # fmt: skip
def test_passes_of_an_optimizer_are_told_by_counters_alone(names, cause):
    share = 60.0 / len(names)
    rows = [kernel(name=name, short_name=name, share_pct=share, stalls=()) for name in names]
    found = hits(*rows, kernel(name="mine", short_name="mine", share_pct=40.0, stalls=()))
    assert found.keys() == cause
    assert all("of the kernels' time is the" in hit.fact for hit in found.values())


def test_shared_memory_binds_where_its_passes_fill_the_cycles_of_l1():
    passes = 132 * 158e3
    full, half = (kernel(memory=88.0, l1_throughput=88.0, shared_wavefronts=share * passes, shared_bank_conflicts=0.0)
                  for share in (0.86, 0.5))  # fmt: skip
    assert (binding_part(full), binding_part(half)) == ("shared memory", "L1")
    assert hits(full)["shared-memory-bound"].what == "no bank conflicts"


def test_what_else_a_kernel_wastes_that_takes_most_is_said_behind_its_memory():
    ill = kernel(memory=66.0, l2_throughput=66.0, **BOTH, warp_execution_efficiency=36.0, waves_per_sm=0.22)
    ((hit,), (alike,)) = (hits(row).values() for row in (ill, kernel(memory=66.0, l2_throughput=66.0, **BOTH)))
    after = "; after that: 11.5 of the 32 threads of a warp are active, and its blocks fill 22 % of the GPU"
    assert hit.fact.endswith(after)
    assert "after that" not in alike.fact
    lesser = replace(ill, short_name="lesser", share_pct=40.0)
    found = hits(lesser, kernel(short_name="k", share_pct=60.0, stalls=()))
    assert not any("after that" in hit.fact for hit in found.values())


@pytest.mark.parametrize(("beside", "is_advised"), [("f32f32", True), ("tf32tf32", False)])
def test_cudnn_may_choose_fp32_for_a_convolution_where_others_use_tf32(beside, is_advised):
    name = "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs_ffma"
    product = replace(pipe("single_precision_fu_utilization"), name=name, share_pct=60.0)
    others = kernel(name=f"sm80_xmma_fprop_implicit_gemm_{beside}_f32_nhwckrsc", share_pct=40.0, stalls=())
    assert ("tensor-cores-unused" in hits(product, others)) is is_advised
