"""The tables against the real `nsys stats`, and against plain SQL on recorded reports."""

from __future__ import annotations

import csv
import io
import re
import sqlite3
import subprocess
from pathlib import Path

import pytest

from nsw.readers import Options, read
from nsw.tables import full_rows

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
RECORDED = sorted((SHARED / "recorded").glob("*/*.sqlite"))
# what nsys called its reports until 2023
OLD_NAMES = {
    "cuda_gpu_sum": "gpusum", "cuda_gpu_kern_sum": "gpukernsum", "cuda_gpu_mem_time_sum": "gpumemtimesum",
    "cuda_gpu_mem_size_sum": "gpumemsizesum", "cuda_api_sum": "cudaapisum", "cuda_gpu_trace": "gputrace",
    "cuda_api_trace": "cudaapitrace", "osrt_sum": "osrtsum", "nvtx_sum": "nvtxsum", "nvtx_pushpop_sum": "nvtxppsum",
    "nvtx_startend_sum": "nvtxsesum", "nvtx_gpu_proj_sum": "nvtxgpuproj", "openmp_sum": "openmpevtsum",
    "openacc_sum": "openaccsum", "um_total_sum": "unifiedmemorytotals",
}  # fmt: skip
STATISTICS = {"Avg": "avg_ns", "Med": "med_ns", "Min": "min_ns", "Max": "max_ns", "StdDev": "stddev_ns"}


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.stdout + done.stderr


STYLES = {"nvtx_pushpop_sum": "pushpop", "nvtx_startend_sum": "startend"}
# whose rows are all those of nsw's table; osrt_sum leaves out the notes that the trace began and ended
COMPLETE = ("cuda_gpu_sum", "cuda_api_sum", "nvtx_sum", "openmp_sum", "openacc_sum", "mpi_event_sum")


def stats(nsys, report, database):
    """The rows of `nsys stats`, with the columns' names less their units."""
    for name in (report, OLD_NAMES.get(report, report)):
        said = run(nsys, "stats", "--quiet", "-r", name, "--format", "csv", str(database))
        header = next((x for x in said.splitlines() if x.count(",") >= 5), None)
        if header is not None:
            break
    else:
        pytest.skip(f"this nsys has no {report}: {said[-200:]}")
    lines = said[said.index(header) :]
    found = csv.DictReader(io.StringIO(lines))
    return [{re.sub(r" ?\(.*\)", "", k): _spelt(v) for k, v in row.items()} for row in found]


def _spelt(cell):
    """A copy's kind in the words of 2023 and later."""
    found = re.fullmatch(r"\[CUDA (Unified )?(?:Memory )?memcpy (\w)\w*to(\w)\w*\]", cell or "")
    words = {"H": "Host", "D": "Device", "A": "Array"}
    return f"[CUDA memcpy {found[1] or ''}{words[found[2]]}-to-{words[found[3]]}]" if found else cell


def agree(want, row, total):
    assert float(want["Total Time"]) == row["total_ns"]
    for theirs, ours in STATISTICS.items():
        assert abs((row[ours] or 0.0) - float(want[theirs])) < 0.0501, (theirs, want)  # it prints one decimal
    assert abs(float(want["Time"]) - 100 * row["total_ns"] / total) < 0.0501


@pytest.mark.nsys
@pytest.mark.parametrize(
    ("report", "table", "calls", "name"),
    [
        ("cuda_gpu_sum", "gpu_summary", "Instances", "Operation"),
        ("cuda_gpu_kern_sum", "gpu_summary", "Instances", "Name"),
        ("cuda_gpu_mem_time_sum", "gpu_summary", "Count", "Operation"),
        ("cuda_api_sum", "api_summary", "Num Calls", "Name"),
        ("osrt_sum", "osrt_summary", "Num Calls", "Name"),
        ("nvtx_sum", "nvtx_summary", "Instances", "Range"),
        ("nvtx_pushpop_sum", "nvtx_summary", "Instances", "Range"),
        ("nvtx_startend_sum", "nvtx_summary", "Instances", "Range"),
        ("openmp_sum", "openmp_summary", "Count", "Name"),
        ("openacc_sum", "openacc_summary", "Num Calls", "Name"),
        ("mpi_event_sum", "communication", "Instances", "Name"),
    ],
)
def test_summaries_equal_those_of_nsys_stats(nsys, filled, report, table, calls, name):
    wanted = stats(nsys, report, filled)
    assert wanted
    found = {}
    for row in full_rows(table, read(filled).tables[table]):
        domain, style = row.get("domain"), row.get("style")
        label = f"{domain}:{row['name']}" if domain else row["name"]
        found[label, style] = row
    total = sum(float(w["Total Time"]) for w in wanted)
    for want in wanted:
        style = want["Style"].lower() if "Style" in want else STYLES.get(report)
        row = found[want[name], style]
        assert int(want[calls]) == row["calls"]
        agree(want, row, total)
        if report in COMPLETE:
            assert abs(float(want["Time"]) - row["time_pct"]) < 0.0501
    if report in COMPLETE:
        assert len(wanted) == len(found)


@pytest.mark.nsys
def test_bytes_equal_those_of_nsys_stats(nsys, filled):
    found = {r["name"]: r for r in full_rows("gpu_summary", read(filled).tables["gpu_summary"])}
    wanted = stats(nsys, "cuda_gpu_mem_size_sum", filled)
    assert wanted
    for want in wanted:
        assert abs(float(want["Total"]) * 1e6 - found[want["Operation"]]["total_bytes"]) <= 500


@pytest.mark.nsys
def test_projection_equals_that_of_nsys_stats(nsys, filled):
    found = {
        f"{r['domain']}:{r['name']}" if r["domain"] else r["name"]: r
        for r in full_rows("nvtx_gpu_summary", read(filled).tables["nvtx_gpu_summary"])
    }
    wanted = {}
    for want in stats(nsys, "nvtx_gpu_proj_sum", filled):  # one row a style there
        figures = wanted.setdefault(want.get("Range") or want["Name"], [0, 0, 0])
        if "Range" in want:
            more = [int(float(want[c])) for c in ("Range Instances", "Total GPU Ops", "Total Proj Time")]
        else:  # until 2023 a row a range
            more = [1, int(want["NumGPUOps"]), int(want["Projected Duration"])]
        figures[:] = (a + b for a, b in zip(figures, more, strict=True))
    assert wanted
    got = {n: [r["calls"], r["gpu_ops"], r["projected_ns"]] for n, r in found.items()}
    assert got == {n.removeprefix(":"): f for n, f in wanted.items()}


@pytest.mark.nsys
def test_unified_memory_equals_that_of_nsys_stats(nsys, filled):
    found = {r["name"]: r for r in full_rows("um_summary", read(filled).tables["um_summary"])}
    (want,) = stats(nsys, "um_total_sum", filled)
    for theirs, ours in (("HtoD", "Host-to-Device"), ("DtoH", "Device-to-Host")):
        moved = float(want[f"Total {theirs} Migration Size"]) * 1e6
        assert abs(moved - found[ours]["total_bytes"]) <= 500  # it prints kB
    assert int(want["Total CPU Page Faults"]) == found["CPU page faults"]["calls"]
    assert int(want["Total GPU PageFaults"]) == found["GPU page faults"]["calls"]


@pytest.mark.nsys
@pytest.mark.parametrize(("report", "table"), [("cuda_gpu_trace", "gpu_trace"), ("cuda_api_trace", "api_trace")])
def test_traces_equal_those_of_nsys_stats(nsys, filled, report, table):
    events = full_rows(table, read(filled, Options(tables=frozenset([table]))).tables[table])
    wanted = stats(nsys, report, filled)
    assert wanted
    got = sorted((r["start_ns"], r["duration_ns"], r["correlation"], r["name"]) for r in events)
    correlation = next(column for column in wanted[0] if column.lower() == "corrid")
    assert got == sorted(
        (int(w["Start"]), int(w["Duration"]), int(w[correlation]), re.sub(r"_v\d{4}$", "", w["Name"])) for w in wanted
    )


@pytest.mark.nsys
def test_the_profiled_program_itself_is_read(complete):
    report = read(complete.with_suffix(".nsys-rep"))
    assert {"osrt_summary", "nvtx_summary"} <= report.tables.keys()
    ranges = {(r["domain"], r["name"]): r["calls"] for r in full_rows("nvtx_summary", report.tables["nvtx_summary"])}
    assert ranges["dom", "real"] == 1


@pytest.mark.skipif(not RECORDED, reason="the recorded reports are not here")
@pytest.mark.parametrize("path", RECORDED, ids=lambda p: p.stem)
def test_recorded_reports_agree_with_plain_sql(path):
    report = read(path)
    assert not [p for p in report.problems if p.severity == "error"]
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    query = 'SELECT s.value, count(*), sum("end" - start), min("end" - start), max("end" - start) FROM {} t'
    for table, column, ours in (
        ("CUPTI_ACTIVITY_KIND_KERNEL", "demangledName", "gpu_summary"),
        ("CUPTI_ACTIVITY_KIND_RUNTIME", "nameId", "api_summary"),
    ):
        names = f" JOIN StringIds s ON s.id = t.{column} GROUP BY s.value"
        want = {}
        for name, *figures in connection.execute(query.format(table) + names):
            want.setdefault(re.sub(r"_v\d+$", "", name), []).append(figures)
        found = [r for r in full_rows(ours, report.tables[ours]) if r.get("kind", "kernel") == "kernel"]
        assert {r["name"] for r in found} == set(want)
        for row in found:
            figures = list(zip(*want[row["name"]], strict=True))
            assert (row["calls"], row["total_ns"]) == (sum(figures[0]), sum(figures[1]))
            assert (row["min_ns"], row["max_ns"]) == (min(figures[2]), max(figures[3]))
    connection.close()
