"""What Linux perf prints: real reports of one recording, held against each other and against what they print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nsw.readers import read
from nsw.readers.host.perf_report import Event

CPU = Path(__file__).parents[1] / "fixtures" / "cpu"
TABLES = ("host.perf.txt", "perf-report-graph.txt", "perf-report-flat.txt", "perf-script.txt")


def functions(path):
    report = read(path)
    assert not [p for p in report.problems if p.severity == "error"], report.problems
    return {row["name"]: row for row in report.tables["functions"]}


def facts(path):
    return {row["key"]: row.get("value", row.get("text")) for row in read(path).tables["facts"]}


def changed(tmp_path, name, old, new):
    text = (CPU / name).read_text()
    assert re.search(old, text)
    path = tmp_path / name
    path.write_text(re.sub(old, new, text))
    return path


@pytest.mark.parametrize("name", TABLES)
def test_one_recording_gives_the_same_shares_however_it_is_printed(name):
    found = functions(CPU / name)
    assert found["step"]["self_pct"] == pytest.approx(81.03, abs=0.01)
    assert found["norm"]["self_pct"] == pytest.approx(15.52, abs=0.01)
    assert found["step"]["self_s"] == pytest.approx(0.47474747, abs=3e-5)
    assert found["step"]["module"].endswith("heat")


@pytest.mark.parametrize("name", ["host.perf.txt", "perf-report-graph.txt", "perf-script.txt"])
def test_time_with_callees_is_what_the_stacks_tell(name):
    found = functions(CPU / name)
    assert found["main"]["cpu_time_s"] == pytest.approx(0.58585858, abs=3e-5)
    assert found["step"]["cpu_time_s"] == pytest.approx(0.49494949, abs=3e-5)
    assert found["main"]["self_s"] == 0


def test_samples_are_those_of_the_recording():
    rows = functions(CPU / "host.perf.txt").values()
    assert sum(row["samples"] for row in rows) == 58
    assert sum(row["self_s"] for row in rows) == pytest.approx(0.58585858)
    assert (CPU / "perf-script.txt").read_text().count("cpu-clock") == 58
    assert facts(CPU / "perf-script.txt")["samples"] == 58


def test_the_recording_and_its_machine_are_facts():
    found = facts(CPU / "host.perf.txt")
    assert (found["sampling_hz"], found["logical_cpus"], found["samples"]) == (99, 2, 58)
    assert found["cpu_time_s"] == pytest.approx(0.58585858)
    assert read(CPU / "host.perf.txt").tool_version == "6.1.187"


@pytest.mark.parametrize(
    ("event", "column"),
    [("cpu-clock:ppp", "self_s"), ("task-clock:u", "self_s"), ("cycles:P", "cycles"), ("cpu-cycles", "cycles"),
     ("cpu_core/cycles/", "cycles"), ("cycles/period=1000/u", None), ("instructions:u", "instructions"), ("cache-misses", None)],
)  # fmt: skip
def test_what_a_sample_counts_is_known_by_its_event(event, column):
    assert Event(event).count_column == column


def test_cycles_are_cycles_and_not_seconds(tmp_path):
    row = functions(changed(tmp_path, "host.perf.txt", "cpu-clock:ppp", "cycles:P"))["step"]
    assert (row["cycles"], row["samples"]) == (474747470, 47)
    assert row.get("self_s") is None
    assert row.get("cpu_time_s") is None


def test_events_that_count_another_thing_are_named_and_left_out(tmp_path):
    text = (CPU / "perf-report-flat.txt").read_text()
    path = tmp_path / "two.txt"
    path.write_text(text + text.replace("cpu-clock:ppp", "cache-misses"))
    report = read(path)
    assert len(report.tables["functions"]) == len(read(CPU / "perf-report-flat.txt").tables["functions"])
    assert [p.message for p in report.problems] == [
        "rows of cpu-clock:ppp only; what the others count is no part of that: cache-misses: step 81 %, norm 16 %"
    ]


@pytest.mark.parametrize("name", ["host.perf.txt", "perf-script.txt", "host.perfstat.json"])
def test_that_the_kernel_is_left_out_is_said(tmp_path, name):
    path = changed(tmp_path, name, "cpu-clock:ppp|task-clock", r"cpu-clock:u")
    assert any("perf_event_paranoid" in p.message for p in read(path).problems)


def test_lost_samples_are_said(tmp_path):
    path = changed(tmp_path, "host.perf.txt", "Total Lost Samples: 0", "Total Lost Samples: 1234")
    assert [p.message for p in read(path).problems] == ["perf lost 1,234 samples: shares may be wrong"]


@pytest.mark.parametrize(
    ("name", "old"),
    [("host.perf.txt", " 15.52% \t"), ("perf-report-flat.txt", "15.52%"), ("perf-script.txt", "norm.*\n")],
)
def test_a_row_that_is_damaged_is_said(tmp_path, name, old):
    path = changed(tmp_path, name, old, "#?!\n")
    assert any("left out" in p.message for p in read(path).problems)


@pytest.mark.parametrize("name", ["host.perfstat.json", "perfstat.csv", "perfstat.txt"])
def test_counts_are_facts_with_one_name_in_all_forms(name):
    found = facts(CPU / name)
    assert 0.4 < found["task_clock_s"] < 2
    assert found["cpu_use_cores"] == pytest.approx(1, abs=0.2)
    assert {"context_switches", "cpu_migrations", "page_faults"} <= found.keys()


def test_elapsed_time_is_there_where_it_is_printed():
    found = facts(CPU / "perfstat.txt")
    assert found["elapsed_s"] == pytest.approx(found["task_clock_s"] / found["cpu_use_cores"], rel=0.01)


@pytest.mark.parametrize("name", ["host.perfstat.json", "perfstat.csv", "perfstat.txt"])
def test_what_was_not_counted_is_absent_with_the_reason(name):
    report = read(CPU / name)
    assert not {"cycles", "instructions", "ipc"} & facts(CPU / name).keys()
    (said,) = report.problems
    assert said.message.startswith(
        "perf did not count cycles, instructions, branches, branch-misses: this machine does"
    )


def test_counts_amid_the_programs_output_are_read_a_block_a_run(tmp_path):
    text = (CPU / "perfstat.txt").read_text()
    path = tmp_path / "job.err"
    path.write_text(f"loading 3 files\n{text}7 steps were done\n{text}")
    report = read(path)
    assert [row["block"] for row in report.tables["facts"] if row["key"] == "elapsed_s"] == [0, 1]
    assert not [p for p in report.problems if p.severity == "error"]
    assert "steps" not in facts(path)


def test_a_decimal_comma_is_no_thousands_separator(tmp_path):
    path = changed(tmp_path, "perfstat.txt", r"(\d)\.(\d\d) msec", r"\1,\2 msec")
    assert "task_clock_s" not in facts(path)
    assert any("left out" in p.message for p in read(path).problems)


HARDWARE = """\
{"counter-value" : "1000.000000", "unit" : "msec", "event" : "task-clock", "event-runtime" : 1, "pcnt-running" : 100.00, "metric-value" : 3.900000, "metric-unit" : "CPUs utilized"}
{"counter-value" : "8000000000.000000", "unit" : "", "event" : "cycles:u", "event-runtime" : 1, "pcnt-running" : 62.50, "metric-value" : 2.500000, "metric-unit" : "GHz"}
{"counter-value" : "4000000000.000000", "unit" : "", "event" : "instructions:u", "event-runtime" : 1, "pcnt-running" : 62.50, "metric-value" : 0.500000, "metric-unit" : "insn per cycle"}
{"metric-value" : 0.900000, "metric-unit" : "stalled cycles per insn"}
"""


def test_hardware_events_and_what_perf_reckons_of_them_are_facts(tmp_path):
    path = tmp_path / "host.perfstat.json"
    path.write_text(HARDWARE)
    found = facts(path)
    assert (found["cycles"], found["instructions"], found["ipc"]) == (8e9, 4e9, 0.5)
    assert (found["task_clock_s"], found["cpu_use_cores"], found["frequency_hz"]) == (1, 3.9, 2.5e9)
    assert "scaled up from a part of the run, since counters took turns: cycles:u, instructions:u" in {
        p.message for p in read(path).problems
    }


def test_counts_of_parts_are_refused(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(HARDWARE.replace('{"counter', '{"interval" : 1.000, "counter'))
    assert any("counts by interval are not read" in p.message for p in read(path).problems)


def test_a_recording_itself_says_what_prints_it(tmp_path):
    path = tmp_path / "perf.data"
    path.write_bytes(b"PERFILE2" + bytes(200))
    (said,) = read(path).problems
    assert said.fix.startswith("print it there: `perf report --stdio")
