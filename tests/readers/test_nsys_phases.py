"""Phases and iterations of nsys exports: recordings against plain SQL, and made exports that mislead a naive reading."""

import itertools
import sqlite3
import statistics

import pytest

from nsw.readers import Options, read
from nsw.tables import full_rows
from tests.recorded import alexnet

US, MS = 1_000, 1_000_000


def tables_of(path, **options):
    """Every row of the report's tables with every column."""
    return {name: list(full_rows(name, data)) for name, data in read(path, Options(**options)).tables.items()}


STEPS = """
    WITH steps AS (
        SELECT (globalTid >> 24) & 0xFFFFFF AS pid, start, end,
               row_number() OVER (PARTITION BY globalTid ORDER BY start) - 1 AS number
        FROM NVTX_EVENTS LEFT JOIN StringIds ON id = textId WHERE coalesce(text, value) = 'step'
    ), steady AS (
        SELECT pid, min(start) AS begins, max(end) AS ends FROM steps WHERE number >= :warmup GROUP BY pid
    ), calls AS (
        SELECT (globalTid >> 24) & 0xFFFFFF AS pid, correlationId, start, end, nameId FROM CUPTI_ACTIVITY_KIND_RUNTIME
    )
"""
OPERATIONS = """, operations AS (
        SELECT demangledName AS name, (globalPid >> 24) & 0xFFFFFF AS pid, correlationId, start, end, 0 AS bytes
        FROM CUPTI_ACTIVITY_KIND_KERNEL
        UNION ALL SELECT -copyKind, (globalPid >> 24) & 0xFFFFFF, correlationId, start, end, bytes
        FROM CUPTI_ACTIVITY_KIND_MEMCPY
        UNION ALL SELECT -99, (globalPid >> 24) & 0xFFFFFF, correlationId, start, end, bytes
        FROM CUPTI_ACTIVITY_KIND_MEMSET
    )
"""
COPIES = {-1: "[CUDA memcpy Host-to-Device]", -2: "[CUDA memcpy Device-to-Host]", -8: "[CUDA memcpy Device-to-Device]",
          -10: "[CUDA memcpy Peer-to-Peer]", -99: "[CUDA memset]"}  # fmt: skip


@pytest.fixture(scope="module", params=["g1-b8", "g1-b128", "g4-b8"])
def recorded(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("recorded") / "report.sqlite"
    path.write_bytes(alexnet(request.param))
    connection = sqlite3.connect(path)
    yield connection, tables_of(path), tables_of(path, tables=frozenset(["iteration_trace"]))
    connection.close()


def test_the_steady_state_is_what_plain_sql_finds(recorded):
    connection, tables, _ = recorded
    (warmup,) = {r["warmup"] for r in tables["iterations"]}
    assert 1 <= warmup <= 2
    assert {(r["iterations"], r["found_by"], r["name"]) for r in tables["iterations"]} == {(20, "nvtx", "step")}
    found = connection.execute(
        STEPS + OPERATIONS + """
        SELECT steady.pid, coalesce(value, name), sum(o.end - o.start), count(*), sum(o.bytes)
        FROM operations o JOIN calls USING (pid, correlationId) JOIN steady USING (pid) LEFT JOIN StringIds ON id = name
        WHERE calls.start >= begins AND calls.start < ends GROUP BY 1, 2""",
        {"warmup": warmup},
    )  # fmt: skip
    want = {(pid, COPIES.get(name, name)): (total, calls, size) for pid, name, total, calls, size in found}
    got = {
        (r["pid"], r["name"]): (r["total_ns"], r["calls"], r["total_bytes"] or 0)
        for r in tables["phase_summary"]
        if r["phase"] == "steady" and r["summary"] == "gpu_summary"
    }
    assert len(want) > 40
    assert {key: (*map(int, values),) for key, values in got.items()} == want


def test_the_steady_api_calls_are_what_plain_sql_finds(recorded):
    connection, tables, _ = recorded
    found = connection.execute(
        STEPS + """
        SELECT pid, sum(calls.end - calls.start), count(*) FROM calls JOIN steady USING (pid)
        WHERE calls.start >= begins AND calls.start < ends GROUP BY 1""",
        {"warmup": tables["iterations"][0]["warmup"]},
    )  # fmt: skip
    got = {}
    for row in tables["phase_summary"]:
        if row["phase"] == "steady" and row["summary"] == "api_summary":
            total, calls = got.get(row["pid"], (0, 0))
            got[row["pid"]] = (total + row["total_ns"], calls + row["calls"])
    assert got == {pid: (total, calls) for pid, total, calls in found}
    assert {r["pid"]: r["api_ns"] for r in tables["phases"] if r["phase"] == "steady"} == {
        p: t for p, (t, _) in got.items()
    }


def test_iterations_are_timed_by_their_first_work_on_the_gpu_as_plain_sql_finds(recorded):
    connection, tables, traces = recorded
    found = connection.execute(
        STEPS + OPERATIONS + """
        SELECT pid, number, min(o.start), max(o.end), count(*), sum(o.end - o.start) FROM operations o
        JOIN calls USING (pid, correlationId) JOIN steps USING (pid)
        WHERE calls.start >= steps.start AND calls.start <= steps.end GROUP BY pid, number ORDER BY pid, number""",
        {"warmup": 0},
    ).fetchall()  # fmt: skip
    marks = connection.execute(
        STEPS + "SELECT pid, start, end FROM steps ORDER BY pid, number", {"warmup": 0}
    ).fetchall()
    last = {}
    # the last ends with its work, or where the next would begin, as late as the others and no later than the first
    for process in {pid for pid, *_ in found}:
        firsts = [start for pid, _, start, *_ in found if pid == process]
        ranges = [(start, end) for pid, start, end in marks if pid == process]
        lags = [first - start for first, (start, _) in zip(firsts, ranges, strict=True)]
        late = min(int(statistics.median(lags)), lags[0])
        last[process] = max(*(end for p, _, _, end, *_ in found if p == process), ranges[-1][1] + late)
    starts = {(pid, number): start for pid, number, start, *_ in found}
    want = [
        (pid, number, start, starts.get((pid, number + 1), last[pid]) - start, count, total)
        for pid, number, start, _, count, total in found
    ]
    columns = ("pid", "iteration", "start_ns", "duration_ns", "gpu_ops", "gpu_ns")
    trace = traces["iteration_trace"]
    assert sorted(tuple(r[c] for c in columns) for r in trace) == want
    for row in tables["iterations"]:
        steady = [r for r in trace if r["pid"] == row["pid"] and r["phase"] == "steady"]
        assert len(steady) == row["steady"] == 20 - row["warmup"]
        assert row["max_ns"] == max(r["duration_ns"] for r in steady)
        busy = 100 * sum(r["gpu_busy_ns"] for r in steady) / sum(r["duration_ns"] for r in steady)
        assert row["gpu_busy_pct"] == pytest.approx(busy)
        each = statistics.median(100 * r["gpu_busy_ns"] / r["duration_ns"] for r in steady)
        assert row["med_gpu_busy_pct"] == pytest.approx(each)


def test_the_longest_gap_of_an_iteration_is_what_a_walk_over_its_operations_finds(recorded):
    connection, tables, traces = recorded
    work = connection.execute(f"WITH {OPERATIONS.lstrip(', ')} SELECT pid, start, end FROM operations ORDER BY start")
    work = work.fetchall()
    for row in tables["iterations"]:
        mine = [(start, end) for pid, start, end in work if pid == row["pid"]]
        gaps = []
        for one in traces["iteration_trace"]:
            if one["pid"] == row["pid"] and one["phase"] == "steady":
                reached, last = one["start_ns"], one["start_ns"] + one["duration_ns"]
                longest = 0
                for start, end in mine:
                    if end > reached and start < last:
                        longest = max(longest, start - reached)
                        reached = max(reached, end)
                gaps.append(max(longest, last - reached))
        assert row["med_longest_gap_ns"] == statistics.median(gaps)
        assert row["med_longest_gap_ns"] > 0


def test_the_phases_add_up_to_the_whole(recorded):
    _, tables, _ = recorded
    for name in ("gpu_summary", "api_summary", "communication"):
        parts = {}
        for row in tables["phase_summary"]:
            if row["summary"] == name:
                total, calls = parts.get(row["name"], (0, 0))
                parts[row["name"]] = (total + row["total_ns"], calls + row["calls"])
        assert parts == {r["name"]: (r["total_ns"], r["calls"]) for r in tables.get(name, [])}
    for pid in {r["pid"] for r in tables["phases"]}:
        mine = [r for r in tables["phases"] if r["pid"] == pid]
        assert [r["phase"] for r in mine] == ["setup", "warmup", "steady", "end"]
        assert all(a["start_ns"] + a["duration_ns"] == b["start_ns"] for a, b in itertools.pairwise(mine))
        assert sum(r["gpu_ns"] for r in mine) == sum(
            r["total_ns"] for r in tables["phase_summary"] if r["pid"] == pid and r["summary"] == "gpu_summary"
        )


def test_an_iteration_takes_as_long_as_the_program_says(recorded):
    """Where the host runs ahead of the GPU (batch 128 on one) the ranges alone say a third of it."""
    connection, tables, _ = recorded
    host = connection.execute(STEPS + "SELECT avg(end - start) FROM steps WHERE number >= 2", {"warmup": 0}).fetchone()[
        0
    ]
    (row, *others) = tables["iterations"]
    if not others and row["gpu_busy_pct"] > 90:
        assert 128 / row["med_ns"] * 1e9 == pytest.approx(13867.2, rel=0.01)
        assert host < 0.6 * row["med_ns"]


def test_without_its_ranges_the_kernel_sequence_tells_the_same_iterations(recorded, tmp_path):
    connection, tables, _ = recorded
    copy = sqlite3.connect(tmp_path / "bare.sqlite")
    connection.backup(copy)
    copy.execute("DROP TABLE NVTX_EVENTS")
    copy.commit()
    copy.close()
    bare = tables_of(tmp_path / "bare.sqlite")
    marked = {r["pid"]: r for r in tables["iterations"]}
    for row in bare["iterations"]:
        assert row["found_by"] == "kernel_sequence"
        assert row["iterations"] in (19, 20)
        assert row["med_ns"] == pytest.approx(marked[row["pid"]]["med_ns"], rel=0.03)


def loop(database, steps=20, *, upload=True, ranges="step", late=None, process=77, slow=None):
    """A made training loop of 1 ms a step: an upload before it, two kernels and a small copy in each."""
    tid, pid = (process << 24) | (1 << 56) | process, (process << 24) | (1 << 56)
    where = {"globalPid": pid}
    if upload:
        database.call(1 * MS, 30 * MS, "cudaMemcpyAsync_v3020", correlationId=1, globalTid=tid)
        database.copy(2 * MS, 28 * MS, 1, 200 << 20, correlationId=1, **where)
    now, at = 50 * MS, 10
    for step in range(steps):
        length = (slow or {}).get(step, 1 * MS)
        if ranges:
            database.range(now, now + length - 10 * US, ranges.format(step), globalTid=tid)
        for offset, duration, name in ((20, 30, None), (100, 400, "gemm(float*)"), (600, 200, "relu(float*)")):
            database.call(now + (offset - 10) * US, 5 * US, "cudaLaunchKernel_v7000", correlationId=at, globalTid=tid)
            if name is None:
                database.copy(now + offset * US, duration * US, 1, 4096, correlationId=at, **where)
            else:
                database.kernel(now + offset * US, duration * US, name, correlationId=at, **where)
            at += 1
        now += length
    database.call(now + 5 * MS, 2 * MS, "cudaFree_v3020", correlationId=at, globalTid=tid)
    return database


def steady(tables, summary="gpu_summary"):
    return {r["name"]: r for r in tables["phase_summary"] if r["phase"] == "steady" and r["summary"] == summary}


def test_an_upload_before_the_loop_is_set_up(nsys_database):
    tables = tables_of(loop(nsys_database()).done())
    copies = steady(tables)["[CUDA memcpy Host-to-Device]"]
    assert (copies["calls"], copies["total_ns"], copies["total_bytes"]) == (20, 20 * 30 * US, 20 * 4096)
    whole = next(r for r in tables["gpu_summary"] if r["kind"] == "memcpy")
    assert whole["total_ns"] == 28 * MS + 20 * 30 * US  # the whole stays the whole
    setup = [r for r in tables["phase_summary"] if r["phase"] == "setup"]
    assert {(r["name"], r["total_ns"]) for r in setup} == {
        ("[CUDA memcpy Host-to-Device]", 28 * MS), ("cudaMemcpyAsync", 30 * MS)
    }  # fmt: skip
    ended = [(r["summary"], r["name"]) for r in tables["phase_summary"] if r["phase"] == "end"]
    assert ended == [("api_summary", "cudaFree")]
    assert not [r for r in tables["phases"] if r["phase"] == "warmup"]


@pytest.mark.parametrize(("begins", "alone"), [(20, 0.0), (80, 40.0 / 140), (110, 60.0 / 160)])
def test_copies_beside_a_kernel_are_told_apart_from_those_that_the_gpu_waits_for(nsys_database, begins, alone):
    """Each step has a kernel of 100 us and a copy of 60 us that begins so many us later, on another stream."""
    database = nsys_database()
    for at in range(10):
        start = at * MS
        database.call(start, 5 * US, correlationId=2 * at)
        database.kernel(start + 10 * US, 100 * US, correlationId=2 * at)
        database.call(start + 6 * US, 2 * US, "cudaMemcpyAsync_v3020", correlationId=2 * at + 1)
        database.copy(start + (10 + begins) * US, 60 * US, 1, 4096, streamId=8, correlationId=2 * at + 1)
        database.range(start - 1 * US, start + 900 * US, "step")
    (row,) = tables_of(database.done())["iterations"]
    assert row["med_memory_pct"] == pytest.approx(100 * 60 / 160)
    assert row["med_memory_alone_pct"] == pytest.approx(100 * alone)


def test_a_copy_beside_nccl_is_no_computing(nsys_database):
    """Each step has a kernel of 100 us; then NCCL's of 200 us, beside it a copy of 150 us that ends 50 us later."""
    database = nsys_database()
    for at in range(10):
        start = at * MS
        for number, (begins, name) in enumerate([(10, "gemm"), (110, "ncclDevKernel_AllReduce_Sum_f32_RING_LL")]):
            database.call(start + number * US, 1 * US, correlationId=3 * at + number)
            database.kernel(start + begins * US, (1 + number) * 100 * US, name, correlationId=3 * at + number)
        database.call(start + 6 * US, 2 * US, "cudaMemcpyAsync_v3020", correlationId=3 * at + 2)
        database.copy(start + 210 * US, 150 * US, 8, 4096, streamId=8, correlationId=3 * at + 2)
        database.range(start - 1 * US, start + 900 * US, "step")
    (row,) = tables_of(database.done())["iterations"]
    assert row["med_communication_alone_pct"] == pytest.approx(100 * 200 / 350)
    assert row["med_memory_alone_pct"] == pytest.approx(100 * 50 / 350)  # the kernel has the other 100 us


@pytest.mark.parametrize("ranges", ["step", "iteration {}", "Training step #{}", "ProfilerStep#{}"])
def test_ranges_with_running_numbers_are_one(nsys_database, ranges):
    (row,) = tables_of(loop(nsys_database(), ranges=ranges).done())["iterations"]
    assert (row["found_by"], row["iterations"], row["med_ns"]) == ("nvtx", 20, 1 * MS)
    assert row["name"] == ranges.replace("{}", "#")


def test_without_ranges_the_kernels_tell(nsys_database):
    tables = tables_of(loop(nsys_database(), ranges=None).done())
    (row,) = tables["iterations"]
    assert (row["found_by"], row["name"], row["iterations"], row["med_ns"]) == ("kernel_sequence", None, 20, 1 * MS)
    assert "[CUDA memcpy Host-to-Device]" in steady(tables)
    assert steady(tables)["gemm(float*)"]["calls"] == 20


@pytest.mark.parametrize(
    ("ranges", "name"),
    [("FSDP::pre_forward (encoder.block.{0}.layer.1), op_id = 3{0}", "encoder.block"), ("layer_{}", "layer")],
)
def test_layers_that_repeat_are_no_iterations(nsys_database, ranges, name):
    tables = tables_of(loop(nsys_database(), ranges=ranges).done())
    assert "iterations" not in tables
    (row,) = tables["phases"]
    assert row["reason"] == f"what repeats are layers of a network (NVTX ranges {name}.N)"


def test_iterations_with_ranges_of_all_their_layers_are_iterations(nsys_database):
    database = loop(nsys_database(), ranges=None)
    for step in range(20):
        for layer in range(4):
            begin = 50 * MS + step * MS + layer * 200 * US
            database.range(begin, begin + 190 * US, f"encoder.block.{layer}")
    (row,) = tables_of(database.done())["iterations"]
    assert (row["found_by"], row["iterations"]) == ("kernel_sequence", 20)


def test_where_nothing_repeats_there_is_one_phase_and_it_says_so(nsys_database):
    database = nsys_database()
    for at in range(12):
        database.call(at * MS, 5 * US, correlationId=at)
        database.kernel(at * MS + 10 * US, 100 * US, f"k{at}(int)", correlationId=at)
    tables = tables_of(database.done())
    (row,) = tables["phases"]
    assert (row["phase"], row["found_by"], row["iterations"]) == ("all", "none", None)
    assert row["reason"] == "no NVTX range, step marker or sequence of kernels repeats"
    assert row["gpu_ns"] == row["gpu_busy_ns"] == 12 * 100 * US
    assert "iterations" not in tables
    assert "phase_summary" not in tables
    asked = read(database.path, Options(tables=frozenset({"iterations"})))
    (problem,) = (p for p in asked.problems if p.message == "holds nothing of iterations")
    assert "`--table phases` says why" in problem.fix


def test_a_recipe_can_name_the_range(nsys_database):
    database = loop(nsys_database(), steps=10, ranges="step")
    for at in range(2):
        database.range(50 * MS + at * 5 * MS, 50 * MS + at * 5 * MS + 4900 * US, f"epoch {at}")
    path = database.done()
    assert tables_of(path)["iterations"][0]["name"] == "step"
    for named in ("epoch", "epoch 0"):
        (row,) = tables_of(path, steps=named)["iterations"]
        assert (row["name"], row["iterations"]) == ("epoch #", 2)
    report = read(path, Options(steps="nothing"))
    assert report.tables["iterations"][0]["name"] == "step"
    (problem,) = [p for p in report.problems if "NVTX range nothing" in p.message]
    assert problem.severity == "warning"
    assert "epoch #, step" in (problem.fix or "")


def test_the_outermost_range_counts_unless_it_repeats_rarely(nsys_database):
    database = loop(nsys_database(), steps=20, ranges="work")
    for at in range(20):
        database.range(50 * MS + at * MS + 90 * US, 50 * MS + at * MS + 900 * US, "inner")
    for at in range(4):
        database.range(50 * MS + at * 5 * MS, 55 * MS + at * 5 * MS - 1, "epoch")
    (row,) = tables_of(database.done())["iterations"]
    assert (row["name"], row["iterations"]) == ("work", 20)


def test_ranges_of_libraries_and_of_idle_threads_are_no_steps(nsys_database):
    database = loop(nsys_database(), ranges="work")
    database.range(1, None, "NCCL", kind=75, domainId=1)
    for at in range(30):
        begin = 50 * MS + at * 600 * US
        database.range(begin, begin + 590 * US, "ncclAllReduce step", domainId=1)
        database.range(begin, begin + 590 * US, "load batch", globalTid=(1 << 56) | (77 << 24) | 99)
    (row,) = tables_of(database.done())["iterations"]
    assert (row["name"], row["iterations"]) == ("work", 20)


def test_the_first_iterations_are_warm_up_while_they_are_slower(nsys_database):
    tables = tables_of(loop(nsys_database(), slow={0: 90 * MS, 1: 3 * MS, 12: 40 * MS}).done())
    (row,) = tables["iterations"]
    assert (row["warmup"], row["steady"], row["slowest"], row["max_ns"]) == (2, 18, 12, 40 * MS)
    assert row["med_ns"] == 1 * MS
    assert row["slowest_gpu_busy_pct"] == pytest.approx(100 * 630 / 40_000)
    phases = {r["phase"]: r for r in tables["phases"]}
    assert phases["warmup"]["duration_ns"] == 93 * MS
    assert phases["warmup"]["iterations"] == 2
    assert tables_of(loop(nsys_database()).done(), warmup=5)["iterations"][0]["warmup"] == 5


def test_processes_that_iterate_together_have_one_warm_up(nsys_database):
    database = loop(nsys_database(), slow={0: 90 * MS})
    loop(database, slow={0: 90 * MS, 1: 4 * MS}, process=78)
    found = tables_of(database.done())["iterations"]
    assert [(r["pid"], r["warmup"], r["steady"]) for r in found] == [(77, 2, 18), (78, 2, 18)]


def test_a_table_that_cannot_be_read_leaves_no_phases(nsys_database):
    path = loop(nsys_database()).done()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET start = 'x' WHERE rowid = 9")
    connection.commit()
    connection.close()
    report = read(path, Options())
    assert any(p.severity == "error" for p in report.problems)
    assert "gpu_summary" in report.tables
    assert not report.tables.keys() & {"phases", "phase_summary", "iterations"}


def test_the_traces_tell_the_phase_of_each_row(nsys_database):
    path = loop(nsys_database(), slow={0: 90 * MS}).done()
    tables = tables_of(path, tables=frozenset({"gpu_trace", "api_trace"}))
    for name, phases in (
        ("gpu_trace", {"setup", "warmup", "steady"}),
        ("api_trace", {"setup", "warmup", "steady", "end"}),
    ):
        found = [r["phase"] for r in tables[name]]
        assert set(found) == phases
        assert found == sorted(found, key=["setup", "warmup", "steady", "end"].index)
        assert found.count("warmup") == 3
