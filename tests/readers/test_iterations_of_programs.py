"""Iterations of programs whose loops are known: the outermost repetition that holds the steady state, or none."""

import random
from dataclasses import dataclass, field

import numpy as np
import pytest

from nsw.readers import Options, read
from nsw.readers.timeline.iterations import Marks, iterations_by_marks
from nsw.tables import full_rows
from tests.readers.conftest import GLOBAL_PID, GLOBAL_TID

US = 1000
A, B, C, D, OPT, EVAL, HEAD = (f"void {name}(float*)" for name in ("a", "b", "c", "d", "optimizer", "evaluate", "head"))


@dataclass
class Host:
    """A host that launches, copies and waits on one clock; its kernels run one after the other."""

    database: object
    now: int = 10 * US
    free: int = 0
    id: int = 0
    starts: list = field(default_factory=list)  # of iterations, by the host's clock
    calls_from: int = 0  # ns: calls before are not recorded

    def step(self):
        self.starts.append(self.now)

    def _called(self, name, length):
        self.id += 1
        if self.now >= self.calls_from:
            self.database.call(self.now, length, name, correlationId=self.id)
        self.now += length + 1 * US
        return self.id

    def run(self, *names, us=10, stream=7, blocks=200):
        for name in names:
            key = self._called("cudaLaunchKernel_v7000", 4 * US)
            start = max(self.now, self.free)
            self.free = start + us * US
            self.database.kernel(
                start, us * US, name, correlationId=key, streamId=stream, gridX=blocks, gridY=1, gridZ=1
            )

    def wait(self):
        self._called("cudaDeviceSynchronize_v3020", max(self.free - self.now, 0) + 2 * US)

    def copy(self, kind, size, us=20, **more):
        key = self._called("cudaMemcpyAsync_v3020", 3 * US)
        start = max(self.now, self.free)
        self.free = start + us * US
        self.database.copy(start, us * US, kind, size, correlationId=key, streamId=7, **more)

    def sleep(self, us):
        self.now += us * US


def equal_kernels(host):
    host.run(*[A] * 4000, us=1)


def equal_kernels_with_waits(host):
    for _ in range(12):
        host.step()
        host.run(*[A] * 100, us=1)
        host.wait()


def equal_kernels_with_pauses(host):
    for _ in range(12):
        host.step()
        host.run(*[A] * 50, us=1)
        host.sleep(400)


def time_steps(host):
    for _ in range(40):
        host.step()
        host.run(A, us=400)


def two_kernels_a_step(host):
    for _ in range(60):
        host.step()
        host.run(A, B)


def equal_layers(host):
    for _ in range(20):
        host.step()
        host.run(*[A, B, C] * 8, HEAD, OPT)


def many_equal_layers(host):
    """A token of a language model: 60 layers of 3 kernels, and a head."""
    for _ in range(12):
        host.step()
        host.run(*[A, B, C] * 60, HEAD)
        host.wait()


def forward_and_backward(host):
    for _ in range(20):
        host.step()
        host.run(*[A, B] * 6, HEAD, *[C, D] * 6, OPT)


def parameter_loop(host):
    """An optimizer of four kernels a parameter, many more than the step."""
    for _ in range(12):
        host.step()
        host.run(HEAD, *[A, B, C, D] * 60)
        host.wait()


def accumulation(host):
    for _ in range(12):
        host.step()
        for _ in range(4):
            host.run(A, B, C, D)
        host.run(OPT)


def two_networks(host):
    """A generator and a discriminator in turn."""
    for _ in range(15):
        host.step()
        host.run(A, B, C, OPT)
        host.run(D, HEAD, B, OPT)


def evaluation(host):
    """Every 50 steps; steps of 40 kernels."""
    for n in range(200):
        host.step()
        host.run(*[A, B, C, D] * 9, *[HEAD] * 3, OPT)
        if n % 50 == 49:
            host.run(*[EVAL] * 30)


def losses_now_and_then(host):
    for n in range(100):
        host.step()
        host.run(*[A, B, C, D] * 9, HEAD, OPT)
        if n % 20 == 19:
            host.copy(2, 4, us=1)
            host.wait()


def streams(host):
    """Four streams of a copy, three kernels and a copy, then a wait."""
    for _ in range(20):
        host.step()
        for stream in range(4):
            host.copy(1, 1 << 20, srcKind=1, dstKind=2)
            host.run(A, A, A, stream=13 + stream)
            host.copy(2, 1 << 20, srcKind=2, dstKind=1)
        host.wait()


def decode(host):
    """Tokens whose attention takes longer and longer."""
    for n in range(60):
        host.step()
        for _ in range(4):
            host.run(A, B)
            host.run(C, us=10 + n)
        host.run(HEAD)
        host.copy(2, 4, us=1)
        host.wait()


def behind_set_up(host):
    for n in range(40):
        host.run(f"void set_up_{n}()")
    equal_layers(host)


def slow_at_times(host):
    for n in range(40):
        host.step()
        host.run(*[A, B, C] * 4, OPT)
        if n % 5 == 4:
            host.sleep(3000)


def one_program(host):
    for n in range(300):
        host.run(f"void once_{n}()")


def growing_loops(host):
    """Of which only the body repeats."""
    host.step()
    for n in range(1, 40):
        host.run(*[A, B] * n, HEAD)


def samples(host):
    """A loader before each step."""
    for _ in range(15):
        host.step()
        host.sleep(5000)
        host.copy(1, 1 << 20, srcKind=1, dstKind=2)
        host.run(*[A, B, C] * 3, OPT)
        host.wait()


def long_kernels_with_waits(host):
    """A solver that looks at its residual every tenth step."""
    for _ in range(12):
        host.step()
        host.run(*[A] * 10, us=1500)
        host.wait()


def few_long_steps(host):
    for _ in range(4):
        host.step()
        host.run(*[A, B] * 30, HEAD, *[C, D] * 30, OPT)


def autotuned(host):
    """Kernels are tried before the loop, more of them than the loop has."""
    for n in range(300):
        host.run(f"void trial_{n % 97}()", A, f"void trial_{n % 89}()")
    for _ in range(15):
        host.step()
        host.run(*[A, B, C] * 8, HEAD, OPT)


def chance(host):
    """Two kernels now and then, a thousand times as far apart at times: no loop."""
    for n in range(8):
        host.run(A, B)
        host.sleep(10 if n % 2 else 200_000)


def layers_under_autocast(host):
    """Four passes of 65 kernels a step: an input that is cast, and 16 layers. 260 is a multiple of 4 by chance."""
    for _ in range(12):
        host.step()
        for _ in range(4):
            host.run(HEAD, *[A, B, C, D] * 16)
        host.wait()


STEP = [A, B, C, D] * 4
UPDATE = "void at::native::multi_tensor_apply_kernel<FusedOptimizer>()"


def validated_each_fourth(host):
    """A training whose fourth steps are each followed by as many kernels as two steps."""
    for n in range(24):
        host.step()
        host.run(*STEP, UPDATE)
        if n % 4 == 3:
            host.run(*[EVAL, HEAD] * 16)


def sorted_each_fifth(host):
    """Time steps of 4 ms, before each fifth of which the host sorts and copies."""
    for n in range(30):
        host.step()
        if n % 5 == 4:
            host.sleep(9000)
            host.copy(1, 1 << 20, srcKind=1, dstKind=2)
            host.wait()
        host.run(*[A] * 20, us=200)
        host.wait()


def short_solves_of_an_input(host):
    """Five solves of a fifth of a millisecond for each input."""
    for _ in range(12):
        host.step()
        host.sleep(3000)
        host.copy(1, 1 << 20, srcKind=1, dstKind=2)
        for _ in range(5):
            host.run(*[A] * 20, us=10)
            host.wait()


def two_networks_in_turn(host):
    """Steps of a generator and a discriminator, each with an optimizer, are one iteration."""
    for _ in range(15):
        host.step()
        host.run(*STEP, UPDATE, *[D, HEAD] * 10, UPDATE)


def optimizers_of_groups(host):
    """Three groups of parameters, each updated by itself."""
    for _ in range(15):
        host.step()
        host.run(*STEP, *[UPDATE, A, B] * 3)


def long_first_step(host):
    """A start with as many kernels as two steps."""
    host.run(*[f"void start_{n}()" for n in range(100)])
    for _ in range(12):
        host.step()
        host.run(*[f"void part_{k}()" for k in range(50)])


def parameters_one_by_one(host):
    """Steps whose optimizer is written by hand, and updates 40 parameters with nine kernels each."""
    update = [A, B, A, B, A, A, B, A, "void addcdiv_kernel()"]
    for _ in range(12):
        host.step()
        for layer in range(40):
            host.run(*[C, D, EVAL, HEAD] * 3, f"void layer_{layer % 7}()")
        for _ in range(40):
            host.run(*update, us=2)


def layers_of_a_transformer(host):
    """A forward pass of 8 layers with 40 kernels each, and a head, whose loss is read."""
    for _ in range(12):
        host.step()
        for _ in range(8):
            host.run(*[A, B, C, D] * 9, *[f"void part_{k}()" for k in range(4)])
        host.run(*[HEAD] * 5)
        host.copy(2, 4, us=1)
        host.wait()


def time_steps_with_energies(host):
    """Time steps of 6 kernels; every 200 the energy is read."""
    for n in range(1200):
        host.step()
        host.run(A, B, A, C, D, C)
        if n % 200 == 199:
            host.run(HEAD, EVAL, HEAD)
            host.copy(2, 4, us=1)
            host.wait()


def paused_each_third(host):
    """Equal steps of which every third is followed by a pause of many steps."""
    for n in range(14):
        host.step()
        host.run(*STEP, UPDATE)
        if n % 3 == 2:
            host.sleep(40_000)


def passes_over_time(host):
    """Training steps of four passes each, forward and backward, and an optimizer."""
    for _ in range(15):
        host.step()
        for _ in range(4):
            host.run(*[A, B, C, D] * 10)
            host.copy(1, 4096, us=1)
        for _ in range(4):
            host.run(*[D, C, HEAD, EVAL] * 40, C)
            host.copy(2, 4, us=1)
        host.run(*["void at::native::multi_tensor_apply_kernel<FusedOptimizer>()"] * 3)


def many_equal_frames(host):
    for _ in range(5000):
        host.step()
        host.run(A, B, C, D, HEAD, EVAL, us=1)


def tokens_read_behind_each_batch(host):
    """Texts of 5 tokens with 30 layers each, that are copied to the host as a whole."""
    for n in range(30):
        host.step()
        host.run(HEAD, *[A, B, B, C] * 30, EVAL, us=1)
        if n % 5 == 4:
            host.copy(2, 4096, us=1)
            host.wait()


def chunks_of_a_pipeline(host):
    for _ in range(15):
        host.step()
        for _ in range(24):
            host.copy(1, 1 << 20)
            host.run(A, B)
        host.run(HEAD)
        host.wait()


def steps_logged_each_fiftieth(host):
    """Steps that copy scalars to the GPU, and a result of a few kernels that the host reads now and then."""
    for n in range(400):
        host.step()
        host.copy(1, 4, us=1)
        host.run(A, B, C, B, C, B, C, D, HEAD, us=20)
        host.sleep(100)
        if n % 50 == 49:
            host.run(A, EVAL, D)
            host.copy(2, 4, us=1)
            host.wait()


PROGRAMS = [
    (long_kernels_with_waits, 12), (few_long_steps, 4), (autotuned, 15), (chance, None),
    (equal_kernels, None), (equal_kernels_with_waits, 12), (equal_kernels_with_pauses, 12), (time_steps, 40),
    (two_kernels_a_step, 60), (equal_layers, 20), (many_equal_layers, 12), (forward_and_backward, 20), (parameter_loop, 12),
    (accumulation, 12), (two_networks, 15), (evaluation, 200), (losses_now_and_then, 100), (streams, 20), (decode, 60),
    (behind_set_up, 20), (slow_at_times, 40), (one_program, None), (growing_loops, 780), (samples, 15),
    (layers_under_autocast, 12), (long_first_step, 12), (validated_each_fourth, 24), (two_networks_in_turn, 15),
    (optimizers_of_groups, 15), (sorted_each_fifth, 30), (short_solves_of_an_input, 12),
    (parameters_one_by_one, 12), (paused_each_third, 14), (layers_of_a_transformer, 12), (time_steps_with_energies, 1200),
    (steps_logged_each_fiftieth, 400), (chunks_of_a_pipeline, 15), (passes_over_time, 15), (many_equal_frames, 5000), (tokens_read_behind_each_batch, 30),
]  # fmt: skip


@pytest.fixture
def host(nsys_database):
    return Host(nsys_database())


def tables_of(host, **options):
    report = read(host.database.done(), Options(**options))
    return {name: list(full_rows(name, data)) for name, data in report.tables.items()}


@pytest.mark.parametrize(("program", "count"), PROGRAMS, ids=[program.__name__ for program, _ in PROGRAMS])
def test_the_iterations_are_the_outermost_loop_of_the_program(program, count, host):
    program(host)
    found = tables_of(host).get("iterations", [])
    if count is None:
        assert found == []
        return
    (row,) = found
    assert abs(row["iterations"] - count) <= max(1, 0.03 * count)  # one at an end may be cut, or have more behind it
    length = (max(host.free, host.now) - host.starts[0]) / count
    assert row["med_ns"] <= 1.1 * length


def test_what_was_launched_before_the_calls_were_recorded_is_before_what_was_launched_behind_it(host):
    """A GPU far behind its host, and a recording of calls that begins late."""
    host.calls_from = 3000 * US
    for _ in range(20):
        host.step()
        host.run(*[A, B, C] * 8, HEAD, OPT, us=30)
    (row,) = tables_of(host)["iterations"]
    assert abs(row["iterations"] - 20) <= 1
    assert row["med_ns"] == pytest.approx(26 * 30 * US)


def test_iterations_that_were_all_launched_before_the_calls_were_recorded_do_not_count(host):
    """Their launches have one time, that of the first call: most iterations would take no time."""
    host.calls_from = 1500 * US
    for _ in range(20):
        host.step()
        host.run(*[A, B, C] * 8, HEAD, OPT, us=300)
    (row,) = tables_of(host)["iterations"]
    assert 6 <= row["iterations"] <= 9
    assert row["min_ns"] > 0


def test_marks_that_hold_little_of_the_work_are_no_iterations_unless_they_are_named(host):
    for n in range(10):
        host.database.range(host.now, host.now + 12 * US, f"upload {n}")
        host.copy(1, 1024, us=1)
        host.sleep(10)
    for _ in range(20):
        host.run(A, B, C, D, us=30)
    found = tables_of(host)
    assert {row["found_by"] for row in found["iterations"]} == {"kernel_sequence"}


def test_named_marks_are_iterations_whatever_they_hold(host):
    for n in range(10):
        host.database.range(host.now, host.now + 12 * US, f"upload {n}")
        host.copy(1, 1024, us=1)
        host.sleep(10)
    host.run(*[A, B, C, D] * 20, us=30)
    (row,) = tables_of(host, steps="upload")["iterations"]
    assert (row["found_by"], row["iterations"]) == ("nvtx", 9)  # of the last it is not known where it ends


def gaps_of(host):
    found = tables_of(host)
    return {(row["cause"], row["length"]): row for row in found["gaps"]}, found


def test_gaps_before_launches_and_behind_waits_are_told_apart(host):
    for _ in range(20):
        host.run(*[A, B, C] * 4, OPT, us=2)
        host.wait()
    gaps, _ = gaps_of(host)
    assert gaps["launch", "short"]["gaps"] > 10 * gaps["synchronise", "short"]["gaps"] > 0


def test_a_gap_behind_a_value_that_is_read_is_of_the_value(host):
    for _ in range(20):
        for _ in range(5):
            host.run(*[A, B, C, D] * 2, us=2)
            host.copy(2, 4, us=1)
            host.wait()
        host.run(OPT)
    gaps, found = gaps_of(host)
    assert sum(row["gaps"] for (cause, _), row in gaps.items() if cause == "value") >= 90
    (use,) = found["gpu_use"]
    assert use["values"] / use["iterations"] == pytest.approx(5, abs=0.3)


def test_gaps_beside_pages_that_move_are_of_the_pages_and_there_are_none_of_a_ns(host):
    """The host touches ten pages a step: each is moved to it in two pieces, a ns apart."""
    for _ in range(20):
        host.run(*[A, B, C, D] * 2, us=2)
        host.wait()
        for _ in range(10):
            host.sleep(100)
            host.database.copy(host.now, 1 * US, 12, 4096, streamId=7)
            host.database.copy(host.now + 1 * US + 1, 1 * US, 12, 61440, streamId=7)
            host.free = host.now + 2 * US + 1
    gaps, _ = gaps_of(host)
    assert gaps["migration", "middle"]["gaps"] == pytest.approx(10 * 19, abs=10)
    assert gaps["migration", "middle"]["total_ns"] == pytest.approx(190 * 98 * US, rel=0.1)
    assert not any(cause == "value" for cause, _ in gaps)
    assert min(row["med_ns"] for row in gaps.values()) > 100


def test_small_copies_one_behind_the_other_are_no_values_that_are_read(host):
    for _ in range(20):
        host.run(*[A, B, C, D] * 2, us=2)
        for _ in range(10):
            host.copy(2, 256, us=1)
        host.run(OPT)
    gaps, _ = gaps_of(host)
    behind = {cause: sum(row["gaps"] for (name, _), row in gaps.items() if name == cause) for cause, _ in gaps}
    assert behind["copy"] > 100 > behind.get("value", 0)


def test_a_last_iteration_without_its_copies_is_none(host):
    """Copies behind the last kernel are behind the last iteration, which is a remainder then."""
    for _ in range(20):
        host.run(A, us=200)
        for _ in range(50):
            host.copy(2, 256, us=1)
    (row,) = tables_of(host)["iterations"]
    assert (row["iterations"], row["med_gpu_ops"]) == (19, 51)
    assert row["min_ns"] > 0.9 * row["med_ns"]


def test_a_module_that_is_loaded_behind_a_long_gap_was_compiled(host):
    for n in range(6):
        host.sleep(200_000)
        host.database.call(host.now - 30 * US, 20 * US, "cuModuleLoadData", correlationId=10_000 + n)
        host.run(f"void once_{n}()", f"void twice_{n}()")
    (use,) = tables_of(host)["gpu_use"]
    assert (use["compiles"], use["late_compiles"]) == (5, 3)  # the first one is before the first kernel
    assert use["compile_ns"] > 0.9 * use["span_ns"]


def test_what_a_slow_iteration_compiles_counts_beside_usual_ones(host):
    for n in range(20):
        if n == 12:
            host.sleep(200_000)
            host.database.call(host.now - 30 * US, 20 * US, "cuModuleLoadData", correlationId=10_000)
        host.run(A, B, C, us=200)
    (use,) = tables_of(host)["gpu_use"]
    assert use["compiles"] == 1
    assert use["compile_ns"] > 190_000 * US


def test_libraries_that_are_loaded_at_their_first_use_are_the_start_of_a_run_however_long_it_takes(host):
    for n in range(6):
        host.sleep(200_000)
        host.database.call(host.now - 30 * US, 20 * US, "cuLibraryLoadData", correlationId=10_000 + n)
        host.run(f"void once_{n}()")
    for n in range(20):
        host.run(*[f"void other_{n}_{k}()" for k in range(5)])
    (use,) = tables_of(host)["gpu_use"]
    assert (use["compiles"], use["late_compiles"]) == (5, 0)


def test_collectives_have_a_number_a_time_of_their_own_and_channels(host):
    for _ in range(20):
        host.run(*[A, B, C, D] * 2, OPT)
        host.run("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(args)", us=900, blocks=4)
        host.run("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(args)", us=5, blocks=1)
    (use,) = tables_of(host)["gpu_use"]
    assert (use["collectives"] / use["iterations"], use["channels"]) == (pytest.approx(2, abs=0.1), 4)


def test_what_was_launched_ahead_of_the_gpu_waits_for_no_host(host):
    for _ in range(20):
        host.run(*[A, B, C, D] * 4, us=50)
    found = tables_of(host)
    assert "gaps" not in found
    assert found["gpu_use"][0]["busy_ns"] / found["gpu_use"][0]["span_ns"] > 0.95


def test_a_long_gap_before_a_copy_to_the_gpu_says_so_and_what_the_system_did(host):
    for _ in range(12):
        host.database.add("OSRT_API", start=host.now, end=host.now + 4000 * US, globalTid=GLOBAL_TID, eventClass=0,
                          nameId=host.database.string("pread64"), returnValue=0)  # fmt: skip
        host.sleep(5000)
        host.copy(1, 1 << 20, srcKind=1, dstKind=2)
        host.run(*[A, B, C, D] * 2)
        host.wait()
    gaps, _ = gaps_of(host)
    ((_, row),) = [(key, row) for key, row in gaps.items() if key[1] == "long"]
    assert row["to_gpu"] == row["gaps"]
    assert 0.7 < row["read_ns"] / row["total_ns"] < 0.9
    assert row["cuda_ns"] < 0.1 * row["total_ns"]
    assert (row["before"], row["behind"], row["behind_bytes"]) == ("kernel", "copy to the GPU, pinned", 1 << 20)


@pytest.mark.parametrize(
    ("size", "cause", "forks"), [(8, "input", 0), (1 << 20, "synchronise", 0), (8, "spawn", 1)]
)  # fmt: skip
def test_a_long_gap_in_which_data_are_received_is_of_the_input_but_not_behind_results(size, cause, forks, host):
    for _ in range(12):
        host.copy(1, 1 << 20, srcKind=1, dstKind=2)
        host.run(*[A, B, C, D] * 2)
        host.copy(2, size, srcKind=2, dstKind=1)
        host.wait()
        for call, us in (("recvmsg", 40), ("fopen", 40), ("poll", 1000), *([("fork", 900)] * forks)):
            host.database.add("OSRT_API", start=host.now, end=host.now + us * US, globalTid=GLOBAL_TID, eventClass=0,
                              nameId=host.database.string(call), returnValue=0)  # fmt: skip
        host.sleep(2000)
    gaps, _ = gaps_of(host)
    ((key, row),) = [(key, row) for key, row in gaps.items() if key[1] == "long"]
    assert key[0] == cause
    assert row["to_gpu"] == row["opening"] == row["gaps"]
    assert row["from_gpu"] == (row["gaps"] if size > 4096 else 0)
    assert 0.3 < row["poll_ns"] / row["total_ns"] < 0.6
    assert (row["before"][:17], row["before_bytes"]) == ("copy from the GPU", size)


def test_copies_are_told_by_memory_and_by_what_runs_beside_them(host):
    for _ in range(12):
        host.copy(1, 1 << 20, srcKind=0, dstKind=2)
        host.run(*[A, B, C, D] * 2)
        host.copy(2, 1 << 20, srcKind=2, dstKind=1)
        host.wait()
    found = {(row["direction"], row["memory"]): row for row in tables_of(host)["host_copies"]}
    assert set(found) == {("to the GPU", "pageable"), ("from the GPU", "pinned")}
    assert all(row["alone_ns"] == row["total_ns"] for row in found.values())


@pytest.mark.parametrize(("every", "period"), [(5, 5), (1000, None)])
def test_slow_iterations_at_equal_distances_have_a_period(host, every, period):
    for n in range(60):
        host.run(*[A, B, C, D] * 9, OPT)
        host.wait()
        if n % every == every - 1:
            host.sleep(4000)
    (use,) = tables_of(host)["gpu_use"]
    assert use["period"] == period


@pytest.mark.parametrize(("spread_us", "is_slow"), [(100, False), (5, True)])
def test_iterations_of_many_lengths_have_no_slow_ones(host, spread_us, is_slow):
    """Lengths in no order, evenly about the usual one; or all alike, and every fourth or so twice as long."""
    draw = random.Random(3)
    for n in range(60):
        host.run(*[A, B, C, D] * 9, OPT)
        host.wait()
        host.sleep(1000 + spread_us * draw.randrange(60))
        if spread_us < 100 and n % 4 == n // 8 % 3:
            host.sleep(4000)
    (use,) = tables_of(host)["gpu_use"]
    assert (use["slow"] is not None) == is_slow


def test_slow_iterations_of_the_first_half_alone_are_its_start_and_have_no_period(host):
    for n in range(60):
        host.run(*[A, B, C, D] * 9, OPT)
        host.wait()
        if n % 5 == 4 and n < 25:
            host.sleep(4000)
    (use,) = tables_of(host)["gpu_use"]
    assert use["period"] is None
    assert use["slow"] is None


def test_a_slow_iteration_that_launches_more_says_how_many_operations_more(host):
    for n in range(60):
        host.run(*[A, B, C, D] * 9, "void multi_tensor_apply_kernel<FusedOptimizerTensorListMetadata>()")
        host.wait()
        if n % 5 == 4:
            host.run(*[EVAL, HEAD] * 200, us=1)
    (use,) = tables_of(host)["gpu_use"]
    assert (use["period"], use["slower_operations"]) == (5, 400)


def test_the_first_slow_iteration_counts_as_twice_the_median_one_at_most(host):
    for n in range(60):
        host.run(*[A, B, C, D] * 9, OPT)
        host.wait()
        if n % 12 == 11:
            host.sleep(200_000 if n == 23 else 4000)
    tables = tables_of(host)
    (use,), (iterations,) = tables["gpu_use"], tables["iterations"]
    all_ns = iterations["steady"] * iterations["avg_ns"]
    assert use["slower_pct"] == pytest.approx(100 * 6 * use["slower_ns"] / all_ns, rel=0.3)


@pytest.mark.parametrize(
    ("call", "copied", "expected"),
    [("read", 1, "slower_input_ns"), ("nanosleep", 2, None), ("fork", None, "slower_spawns")],
)
def test_slow_iterations_tell_what_the_host_does_in_them(host, call, copied, expected):
    """Each fifth iteration it reads before it copies input, works behind results, or starts a process."""
    for n in range(60):
        if n % 5 == 4:
            host.database.add("OSRT_API", start=host.now, end=host.now + 3900 * US, globalTid=GLOBAL_TID, eventClass=0,
                              nameId=host.database.string(call), returnValue=0)  # fmt: skip
            host.sleep(4000)
        if copied == 1:
            host.copy(1, 1 << 20, srcKind=1, dstKind=2)
        host.run(*[A, B, C, D] * 9, OPT)
        if copied == 2:
            host.copy(2, 1 << 20, srcKind=2, dstKind=1)
        host.wait()
    tables = tables_of(host)
    (use,) = tables["gpu_use"]
    assert use["slow"] in {11, 12}
    assert use["spawns"] == (12 if call == "fork" else 0)
    assert [column for column in ("slower_input_ns", "slower_spawns") if use[column]] == [expected] * bool(expected)
    assert expected != "slower_input_ns" or 3800 * US < use[expected] < 4200 * US
    (slow,) = (row for row in tables["gaps"] if row["phase"] == "slow")
    assert slow["gaps"] == use["slow"]
    assert 3800 * US < slow["med_ns"] <= slow["max_ns"] < 4200 * US
    assert (slow["to_gpu"], slow["from_gpu"]) == (slow["gaps"] * (copied == 1), slow["gaps"] * (copied == 2))
    assert (slow["read_ns"] > 0) == (call == "read")


@pytest.mark.parametrize(("pause_us", "slow"), [(60_000, 2), (1000, None)])
def test_two_iterations_are_slow_where_they_take_many_times_as_long(host, pause_us, slow):
    for n in range(13):
        host.run(*[A, B, C, D] * 9, OPT)
        host.wait()
        if n in {4, 9}:
            host.sleep(pause_us)
    (use,) = tables_of(host)["gpu_use"]
    assert use["slow"] == slow


def test_the_first_slow_iteration_of_a_period_may_take_many_times_as_long_as_the_others(host):
    for n in range(40):
        host.run(*[A, B, C, D] * 9, OPT)
        host.wait()
        if n % 8 == 7:
            host.sleep(100_000 if n == 7 else 4000)
    (use,) = tables_of(host)["gpu_use"]
    assert (use["period"], use["slow"]) == (8, 4)


def test_a_step_that_has_some_more_kernels_now_and_then_is_a_step(host):
    for n in range(12):
        for layer in range(60):
            host.run(A, *[B] * (layer % 5), C, D)
        host.run(
            *[HEAD] * (2 * (n in {2, 3, 5, 7, 8})),
            "void multi_tensor_apply_kernel<FusedOptimizerTensorListMetadata>()",
            us=30,
        )
    (row,) = tables_of(host)["iterations"]
    assert row["iterations"] == pytest.approx(12, abs=1)


def test_graphs_are_iterations_where_eager_kernels_come_before_them(host):
    for _ in range(200):
        host.run(A, B, EVAL, us=2)
        host.run(*[C] * (host.id % 7), us=2)
    for _ in range(15):
        start = max(host.now, host.free)
        host.free = start + 2000 * US
        host.database.add(
            "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", start=start, end=host.free, deviceId=0, streamId=7, graphId=4,
            correlationId=host._called("cudaGraphLaunch_v10000", 8 * US), globalPid=GLOBAL_PID,
        )  # fmt: skip
    (row,) = tables_of(host)["iterations"]
    assert row["iterations"] == 15


@pytest.mark.parametrize(("last", "found"), [(0, 220), (400, None)])
def test_graphs_are_iterations_where_autotuning_before_them_takes_longer(host, last, found):
    """Unless other kernels are most of the work among them too."""
    for n in range(400):
        host.run(A, *[B] * (n * n * n % 401 % 7), *[C] * (n * n % 397 % 5), us=30)
    host.wait()
    for n in range(220):
        host.copy(1, 401_408)
        host.run(*[(A, B, C)[n * n % 97 % 3]] * (n * n % 101 % 5), us=last) if last else None
        start = max(host.now, host.free)
        host.free = start + 37 * US
        host.database.add(
            "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", start=start, end=host.free, deviceId=0, streamId=7, graphId=7,
            correlationId=host._called("cudaGraphLaunch_v10000", 8 * US), globalPid=GLOBAL_PID,
        )  # fmt: skip
        host.sleep(400)
    rows = tables_of(host).get("iterations", [])
    assert [row["iterations"] for row in rows] == [found] * bool(found)


def test_what_an_autotuner_tries_again_and_again_is_no_iteration(host):
    redzone = "stream_executor::gpu::RedzoneAllocatorKernelImpl(unsigned char *, unsigned char, unsigned long)"
    for _ in range(60):
        host.run("stream_executor::gpu::<unnamed>::DelayKernel(volatile int *)", A, A, A, redzone, redzone, us=30)
    for _ in range(20):
        host.run(*[B, C, D] * 5, EVAL)
        host.wait()
    (row,) = tables_of(host)["iterations"]
    assert row["iterations"] == pytest.approx(20, abs=1)


def test_streams_and_small_kernels_are_counted(host):
    for _ in range(20):
        for stream in (13, 14, 15):
            host.run(A, B, stream=stream, blocks=8)
            host.run(C, stream=7, blocks=8)
    (use,) = tables_of(host)["gpu_use"]
    assert (use["streams"], use["small_ns"]) == (4, use["kernel_ns"])
    assert use["default_stream"] / use["operations"] == pytest.approx(1 / 3, abs=0.05)


@pytest.mark.parametrize(
    ("slow", "us", "pct"),
    [(lambda n, name: (n + "AB".index(name)) % 5 == 3, 2000, 38), (lambda _, name: name == "B", 2000, 0),
     (lambda n, name: (n + "AB".index(name)) % 5 == 3, 700, 0)],
    ids=["time slices of another process", "a longer kernel", "scatter"],
)  # fmt: skip
def test_launches_are_delayed_where_the_same_ones_of_other_iterations_are_not(host, slow, us, pct):
    for n in range(40):
        for name, kernel in (("A", A), ("A", A), ("B", A), ("B", C)):
            host.run(kernel, us=us if slow(n, name) else 500)
        host.run("ncclDevKernel_AllReduce_Sum_f32_RING_LL", OPT)
    (use,) = tables_of(host)["gpu_use"]
    assert use["blocks"] == (use["kernels"] - use["collectives"]) * 200
    assert use["delayed_pct"] == pytest.approx(pct, abs=3)


def test_the_programs_are_of_one_process():
    assert GLOBAL_PID >> 24 == GLOBAL_TID >> 24


@pytest.mark.parametrize(("loads", "looked_at_ms"), [(False, (170, 190)), (True, (0, 20))])
def test_pauses_that_take_most_of_the_time_are_looked_at_unless_modules_are_loaded_in_them(host, loads, looked_at_ms):
    """Between usual iterations of 30 us each, now and then, another thread has the interpreter for 5 ms."""
    for n in range(300):
        if n % 19 in {0, 7, 11} and n % 4:
            host.sleep(5000)
            if loads:
                host.database.call(host.now - 30 * US, 20 * US, "cuLibraryLoadData", correlationId=10_000 + n)
        host.run(A, B)
    found = tables_of(host)
    (use,) = found["gpu_use"]
    assert found["iterations"][0]["med_ns"] < 100 * US
    low, high = looked_at_ms
    assert low <= use["span_ns"] / 1e6 <= high


def test_modules_that_are_loaded_in_the_longest_iteration_are_told(host):
    for n in range(30):
        if n == 20:
            host.database.call(host.now, 8000 * US, "cuLibraryLoadData", correlationId=10_000)
            host.sleep(9000)
        host.run(*[A, B, C] * 8, OPT)
        host.wait()
    (use,) = tables_of(host)["gpu_use"]
    assert use["slowest_load_ns"] == 8000 * US


def test_ranges_of_a_compiler_are_no_iterations():
    starts = np.arange(0, 100 * 1000, 1000)
    for name, is_step in (("XlaModule:#hlo_module=jit_step#", True), ("XlaCompile:#module=jit_matmul#", False)):
        assert (iterations_by_marks([Marks(name, starts, starts + 900)]) is not None) is is_step
