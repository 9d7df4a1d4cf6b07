"""Busy, idle, operations and gaps are those of the GPUs that a process works on; a context beside them is a finding."""

import json
import random
import re

import pytest

from nsw.analysis.of_reports import ReadReport, summarize_reports
from nsw.analysis.single_case import time_by_kernel_class
from nsw.readers import Options, read
from nsw.readers.nsys.reduce_export import reduce_export
from nsw.readers.timeline.phases import WORKED_ON
from nsw.tables import full_rows

from .test_nvprof_sqlite import Profile

MS, US = 1_000_000, 1_000
STEPS = 20


def tables_of(path):
    report = read(path, Options(tables=frozenset({
        "phases", "iterations", "iteration_trace", "phase_summary", "process_gpus", "gpu_summary",
    })))  # fmt: skip
    assert [p.message for p in report.problems if p.severity == "error"] == []
    return {name: list(full_rows(name, data)) for name, data in report.tables.items()}


def said(path):
    """The findings of a report, and the row of its table about idle time."""
    summary = summarize_reports("it", [ReadReport("it", read(path).tables)])
    (case,) = summary.cases
    return case, [finding.text for finding in summary.findings]


class OfNsys:
    """A process's steps of 1 ms in an nsys export."""

    def __init__(self, database, process=77):
        self.database, self.correlation = database, 100 * process
        self.tid, self.pid = (process << 24) | (1 << 56) | process, (process << 24) | (1 << 56)

    def _call(self, start):
        self.correlation += 1
        self.database.call(start - 5 * US, 2 * US, correlationId=self.correlation, globalTid=self.tid)
        return {"correlationId": self.correlation, "globalPid": self.pid}

    def kernel(self, device, start, duration, name):
        self.database.kernel(start, duration, name, deviceId=device, **self._call(start))

    def graph(self, device, start, duration):
        self.database.add("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", start=start, end=start + duration, deviceId=device,
                          graphId=4, **self._call(start))  # fmt: skip

    def copy(self, device, start, duration):
        self.database.copy(start, duration, 1, 4096, deviceId=device, **self._call(start))

    def mark(self, start, end, step):
        self.database.range(start, end, f"step {step}", globalTid=self.tid)

    def done(self):
        return self.database.done()


class OfKineto:
    """The same in a trace of PyTorch's profiler."""

    def __init__(self, path):
        self.path, self.events = path / "trace.pt.trace.json", []

    def _add(self, name, category, start, duration, **args):
        where = {"pid": args["device"], "tid": 7} if "device" in args else {"pid": 100, "tid": 100}
        self.events.append({"ph": "X", "name": name, "cat": category, "ts": start / US, "dur": duration / US,
                            "args": args, **where})  # fmt: skip

    def _call(self, start):
        self._add("cudaLaunchKernel", "cuda_runtime", start - 5 * US, 2 * US, correlation=len(self.events))
        return len(self.events) - 1

    def kernel(self, device, start, duration, name):
        self._add(name, "kernel", start, duration, correlation=self._call(start), device=device)

    def copy(self, device, start, duration):
        self._add("Memcpy HtoD (Pageable -> Device)", "gpu_memcpy", start, duration, correlation=self._call(start),
                  device=device, bytes=4096)  # fmt: skip

    def mark(self, start, end, step):
        self._add(f"ProfilerStep#{step}", "user_annotation", start, end - start)

    def done(self):
        self.path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": self.events}))
        return self.path


class OfNvprof:
    """The same in a database of nvprof."""

    def __init__(self, path):
        self.made, self.correlation = Profile(path / "run.nvvp"), 0

    def _call(self, start):
        self.correlation += 1
        self.made.add("RUNTIME", cbid=211, start=start - 5 * US, end=start - 3 * US, processId=123, threadId=1,
                      correlationId=self.correlation)  # fmt: skip
        return {"contextId": 1, "streamId": 7, "correlationId": self.correlation}

    def kernel(self, device, start, duration, name):
        self.made.add("CONCURRENT_KERNEL", name=self.made.string(name), start=start, end=start + duration,
                      deviceId=device, **self._call(start))  # fmt: skip

    def copy(self, device, start, duration):
        self.made.add("MEMCPY", copyKind=1, srcKind=1, dstKind=3, bytes=4096, start=start, end=start + duration,
                      deviceId=device, **self._call(start))  # fmt: skip

    def mark(self, start, end, step):
        """The sequence of kernels tells its iterations."""

    def done(self):
        return self.made.close()


@pytest.fixture(params=["nsys", "kineto", "nvprof"])
def program(request, tmp_path, nsys_database):
    made = {"nsys": lambda: OfNsys(nsys_database()), "kineto": lambda: OfKineto(tmp_path),
            "nvprof": lambda: OfNvprof(tmp_path)}  # fmt: skip
    return made[request.param]()


def train(program, gpus, *, marked=True, shuffled=False, steps=STEPS):
    """Steps of 1 ms in which each GPU runs two kernels that take so many us together."""
    chance = random.Random(3)
    for step in range(steps):
        begin = 100 * MS + step * MS
        if marked:
            program.mark(begin - 10 * US, begin + MS - 20 * US, step)
        order = list(gpus)
        if shuffled:  # a thread for each GPU: who launches first is chance
            chance.shuffle(order)
        for late, device in enumerate(order):
            half = gpus[device] * US // 2
            program.kernel(device, begin + late * 100, half, "gemm")
            program.kernel(device, begin + late * 100 + half, half, "relu")
    return program


def busy(tables):
    return {row.get("device"): round(row["gpu_busy_pct"]) for row in tables["iterations"]}


def works(tables):
    return {row["device"]: row["works"] for row in tables["process_gpus"]}


def test_a_context_with_two_kernels_leaves_the_busy_share_as_it_is(program):
    program.kernel(0, 1 * MS, 3 * US, "fill")
    program.kernel(0, 2 * MS, 3 * US, "fill")
    path = train(program, {1: 980}).done()
    tables = tables_of(path)
    assert busy(tables) == {1: 98}
    assert works(tables) == {0: False, 1: True}
    (row,) = tables["iterations"]
    assert (row["med_gpu_ops"], row["med_ns"]) == (2, MS)
    # a step of PyTorch's profiler begins at its mark, in the middle of the gap
    assert row["med_longest_gap_ns"] == pytest.approx((10 if isinstance(program, OfKineto) else 20) * US)
    case, findings = said(path)
    assert case.idle_gpu.busy_pct > 97
    (finding,) = [text for text in findings if "context" in text]
    assert "also holds a context on GPU 0 that is hardly used: 2 kernels, 6 us in all" in finding
    assert "torch.cuda.set_device(local_rank)" in finding
    assert "CUDA_VISIBLE_DEVICES" in finding


def test_a_model_that_is_loaded_on_another_gpu_is_no_work_there(program):
    """Before the loop GPU 0 has more to do than GPU 1 in all of it."""
    for at in range(30):
        program.kernel(0, (1 + at) * MS, 900 * US, f"init{at}")
    tables = tables_of(train(program, {1: 900}).done())
    assert busy(tables) == {1: 90}
    assert works(tables) == {0: False, 1: True}


def test_what_a_stray_context_does_in_each_iteration_is_told_and_starts_none(program):
    for step in range(STEPS):
        program.kernel(0, 100 * MS + step * MS - 4 * US, 2 * US, "fill")
    path = train(program, {1: 900}).done()
    tables = tables_of(path)
    assert busy(tables) == {1: 90}
    (row,) = tables["iterations"]
    assert row["med_gpu_ops"] == 2
    assert {r["device"]: r["gpu_ns"] for r in tables["iteration_trace"] if r["iteration"] == 5} == {1: 900 * US}
    (finding,) = [text for text in said(path)[1] if "context" in text]
    assert re.search(r"20 kernels, 40 us in all, (2|1\.9) us an iteration", finding)


def test_a_context_that_only_copies_is_a_stray_one(program):
    for step in range(STEPS):
        program.copy(0, 100 * MS + step * MS + 50 * US, 100 * US)
    path = train(program, {1: 900}).done()
    assert busy(tables_of(path)) == {1: 90}
    (finding,) = [text for text in said(path)[1] if "context" in text]
    assert "20 copies or sets, 2 ms in all, 100 us an iteration" in finding


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("marked", [True, False])
def test_gpus_that_work_alike_are_shown_one_by_one(program, count, marked):
    path = train(program, dict.fromkeys(range(count), 900), marked=marked, shuffled=True).done()
    tables = tables_of(path)
    assert busy(tables) == dict.fromkeys(range(count), 90)
    assert {row["med_gpu_ops"] for row in tables["iterations"]} == {2}
    assert {row["iterations"] for row in tables["iterations"]} <= {STEPS, STEPS - 1}
    assert works(tables) == dict.fromkeys(range(count), True)
    case, findings = said(path)
    assert case.spent is not None
    assert [(name, round(share)) for name, share in case.spent.idle_gpus] == [(f"GPU {n}", 10) for n in range(count)]
    assert case.spent.gpu_ns + case.spent.idle_pct * case.spent.span_ns / 100 == pytest.approx(MS, rel=0.02)
    assert case.iterations.processes == 1
    assert not [text for text in findings if " is busy 90 % of an iteration" not in text]


def test_a_gpu_that_is_used_little_is_worked_on_and_the_idle_one_is_named(program):
    path = train(program, {0: 950, 1: 200}).done()
    assert busy(tables_of(path)) == {0: 95, 1: 20}
    case, findings = said(path)
    assert [(name, round(share)) for name, share in case.spent.idle_gpus] == [("GPU 0", 5), ("GPU 1", 80)]
    assert findings[0].startswith("GPU 1 is idle 80 % (the mean GPU 42 %) of an iteration of 1 ms")
    (table,) = time_by_kernel_class(case)
    assert table.rows[-1][0].startswith("GPU idle")
    assert table.rows[-1][-1] == "80 % GPU 1, 5 % GPU 0; GPU 1: the host"
    assert not [text for text in findings if "context" in text or "process" in text]


@pytest.mark.parametrize("times", [0.9, 1.1])
def test_work_begins_at_a_share_of_what_the_busiest_gpu_does(program, times):
    least = round(900 * WORKED_ON * times)
    assert works(tables_of(train(program, {0: 900, 1: least}).done())) == {0: True, 1: times > 1}


def test_copies_count_where_no_gpu_runs_kernels(program):
    for step in range(STEPS):
        for device in (0, 1):
            program.copy(device, 100 * MS + step * MS + device * US, 500 * US)
    assert works(tables_of(program.done())) == {0: True, 1: True}


def test_without_iterations_all_work_counts(program):
    for at in range(9):
        program.kernel(1, (1 + at * at) * MS, 500 * US, f"k{at}")
    program.kernel(0, 200 * US, 2 * US, "fill")
    path = program.done()
    tables = tables_of(path)
    assert works(tables) == {0: False, 1: True}
    (phase,) = tables["phases"]
    assert phase["gpu_busy_ns"] == 9 * 500 * US
    assert any("context on GPU 0" in text for text in said(path)[1])


def test_the_phases_of_several_gpus_add_up_to_the_whole(program):
    program.kernel(0, 1 * MS, 3 * US, "fill")
    tables = tables_of(train(program, {0: 300, 1: 600, 2: 4}).done())
    whole = {row["name"]: (row["calls"], row["total_ns"]) for row in tables["gpu_summary"]}
    parts = [row for row in tables["phase_summary"] if row["summary"] == "gpu_summary"]
    for name, (calls, ns) in whole.items():
        mine = [row for row in parts if row["name"] == name]
        assert (sum(row["calls"] for row in mine), sum(row["total_ns"] for row in mine)) == (calls, ns)
    of_gpus = {(row["device"], row["name"]): row["calls"] for row in parts if row["phase"] == "steady"}
    assert of_gpus[2, "gemm"] in (STEPS - 1, STEPS)
    assert of_gpus[0, "gemm"] in (STEPS - 1, STEPS)


def test_a_context_without_any_work_is_known_from_a_database_of_nvprof(tmp_path):
    program = OfNvprof(tmp_path)
    program.made.add("CONTEXT", contextId=1, deviceId=1)
    program.made.add("CONTEXT", contextId=2, deviceId=0)
    path = train(program, {1: 900}).done()
    assert works(tables_of(path)) == {0: False, 1: True}
    assert any("also holds a context on GPU 0 that is not used" in text for text in said(path)[1])


@pytest.fixture
def two_ranks(nsys_database):
    """Rank 1 came to its GPU late: its first kernels ran on that of rank 0."""
    database = nsys_database()
    first, second = OfNsys(database, 896), OfNsys(database, 897)
    second.kernel(0, 1 * MS, 3 * US, "fill")
    train(first, {0: 880})
    train(second, {1: 980})
    return database


def test_of_two_ranks_each_gpu_has_its_own_share(two_ranks):
    path = two_ranks.done()
    tables = tables_of(path)
    shares = {(row["pid"], row["device"]): round(row["gpu_busy_pct"]) for row in tables["iterations"]}
    assert shares == {(896, 0): 88, (897, 1): 98}
    case, findings = said(path)
    assert {name: round(share) for name, share in case.spent.idle_gpus} == {"GPU 0": 12, "GPU 1": 2}
    assert case.iterations.processes == 2
    (finding,) = [text for text in findings if "context" in text]
    assert finding.startswith("Process 897 also holds a context on GPU 0")


def test_a_context_without_any_work_is_known_from_the_export_and_its_reduction(two_ranks, tmp_path):
    two_ranks.sql("CREATE TABLE TARGET_INFO_CUDA_CONTEXT_INFO (processId INTEGER, deviceId INTEGER, contextId INTEGER)")
    two_ranks.sql("INSERT INTO TARGET_INFO_CUDA_CONTEXT_INFO VALUES (896, 0, 1), (896, 3, 2), (897, 1, 2), (897, 0, 1)")
    path = two_ranks.done()
    reduced = tmp_path / "reduced.sqlite.gz"
    reduce_export(str(path), str(reduced))
    for file in (path, reduced):
        held = {(r["pid"], r["device"]): (r["works"], r["kernels"]) for r in tables_of(file)["process_gpus"]}
        assert held == {(896, 0): (True, 40), (896, 3): (False, 0), (897, 0): (False, 1), (897, 1): (True, 40)}


def test_whole_graphs_are_work_of_their_gpu(nsys_database):
    program = OfNsys(nsys_database())
    program.kernel(0, 1 * MS, 3 * US, "fill")
    for step in range(STEPS):
        begin = 100 * MS + step * MS
        program.mark(begin - 10 * US, begin + MS - 20 * US, step)
        program.graph(1, begin, 700 * US)
    tables = tables_of(program.done())
    assert busy(tables) == {1: 70}
    assert works(tables) == {0: False, 1: True}
