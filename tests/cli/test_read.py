"""`nsw read`: several files at once, one of them damaged, and every way of printing."""

import csv
import io
import json
import os
import pstats
import re
import shlex
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from jsonschema import Draft202012Validator

from nsw.analysis import first_screen
from nsw.analysis.answer import registry
from nsw.analysis.blocks import Evidence, Finding, Note
from nsw.cli import reading
from tests import recorded


@pytest.fixture
def reports(home):
    """Two good reports and a damaged one."""
    (home / "prog.py").write_text("def busy():\n    return sum(range(1000))\nbusy()\n")
    for name in ("one", "two"):
        subprocess.run([sys.executable, "-m", "cProfile", "-o", f"{name}.pstats", "prog.py"], cwd=home, check=True)
    (home / "bad.pstats").write_bytes((home / "one.pstats").read_bytes()[:50])
    assert pstats.Stats(str(home / "one.pstats")).total_calls > 0
    return ["one.pstats", "bad.pstats", "two.pstats"]


def test_one_damaged_file_spoils_only_itself(nsw, reports):
    said = nsw("read", *reports, "--json", exits=1)
    one, bad, two = json.loads(said.out)["reports"]
    assert [r["path"] for r in (one, bad, two)] == reports
    assert one["tables"]["functions"]
    assert two["tables"]["functions"]
    assert bad["problems"][0]["severity"] == "error"
    assert nsw("read", "one.pstats", "two.pstats").code == 0


def test_the_terminal_shows_the_others_and_what_is_wrong(nsw, reports):
    said = nsw("read", *reports, "--full", exits=1)
    assert said.out.count("busy") >= 2
    assert "bad.pstats" in said.out
    assert "error: " in said.out


def test_of_a_report_without_a_figure_nothing_was_measured(nsw, home):
    (home / "died.txt").write_text(
        "==7== NVPROF is profiling process 7, command: ./a.out\n==7== Profiling application: ./a.out\n"
        "==7== Profiling result:\nNo events/metrics were profiled.\n"
    )
    said = nsw("read", "died.txt")
    assert said.out.splitlines()[0] == "died.txt: nothing was measured"
    assert "--full" not in said.out


def test_csv_and_parquet_hold_the_rows_of_all_files_with_their_file(nsw, reports, home):
    said = nsw("read", *reports, "-f", "csv")
    rows = list(csv.DictReader(io.StringIO(said.out)))
    assert said.code == 1
    assert {r["report"] for r in rows} == {"one.pstats", "two.pstats"}
    assert nsw("read", *reports, "-f", "parquet", "-o", "x.parquet").code == 1
    table = pq.read_table(home / "x.parquet")
    assert table.num_rows == len(rows)
    assert "busy" in table.column("name").to_pylist()


def test_csv_of_several_tables_asks_which(nsw, home):
    (home / "t.json").write_text(json.dumps({"traceEvents": [
        {"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2, "pid": 0, "tid": 1, "args": {"device": 0, "stream": 1}},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 0, "dur": 5, "pid": 1, "tid": 1, "args": {}}]}))  # fmt: skip
    said = nsw("read", "t.json", "-f", "csv", exits=2)
    assert "holds one table" in said.err
    assert nsw("read", "t.json", "-f", "csv", "--table", "operators").code == 0


def test_what_is_not_there_is_said_and_the_others_are_read(nsw, reports):
    said = nsw("read", "nowhere.pstats", "one.pstats", "--json", exits=1)
    first, second = json.loads(said.out)["reports"]
    assert "cannot be opened: No such file" in first["problems"][0]["message"]
    assert second["tables"]["functions"]


def test_of_a_file_that_is_not_there_the_hint_names_what_is(nsw, reports, home):
    for name, fix in (
        ("onee.pstats", "did you mean 'one.pstats'?"),
        (str(home / "onee.pstats"), "did you mean 'one.pstats'?"),
        ("elsewhere.pstats", "files there: bad.pstats, one.pstats, two.pstats"),
        ("elsewhere/one.pstats", None),
    ):
        (report,) = json.loads(nsw("read", name, "--json").out)["reports"]
        assert report["problems"][0]["fix"] == fix
        assert (fix or "") in nsw("read", name).out


def test_a_file_whose_name_is_no_text_is_read_like_any_other(home, reports):
    name = os.fsencode(home) + b"/\xff\n.pstats"
    os.rename(os.fsencode(home / "one.pstats"), name)
    for more in (["--full"], ["--json"], ["-f", "csv"]):
        done = subprocess.run([sys.executable, "-m", "nsw", "read", name, *more], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        assert b"busy" in done.stdout


@pytest.mark.parametrize("document", ["recipe", "sites"])
def test_a_schema_is_a_json_schema(nsw, document):
    Draft202012Validator.check_schema(json.loads(nsw("schema", document).out))


def test_the_shipped_recipes_and_a_sites_file_fit_their_schemas(nsw, home):
    import yaml

    from nsw.resources import recipes_folder

    recipes = Draft202012Validator(json.loads(nsw("schema", "recipe").out))
    for file in recipes_folder().glob("*.yaml"):
        recipes.validate(yaml.safe_load(file.read_text()))
    sites = Draft202012Validator(json.loads(nsw("schema", "sites").out))
    sites.validate(yaml.safe_load((home / "sites.yaml").read_text()))
    assert list(recipes.iter_errors({"nsw": 1, "nam": "x"}))


def test_sites_are_listed_with_the_file_that_they_come_from(nsw):
    rows = {r["site"]: r for r in json.loads(nsw("sites", "--json").out)["sites"]}
    assert rows["here"]["from"].endswith("sites.yaml")
    assert rows["demo"]["from"] == "built in"
    assert (rows["batch"]["scheduler"], rows["batch"]["transport"]) == ("slurm", "local")


def test_nsw_read_shows_kernels_first_and_has_the_rows_on_request(nsw):
    details = str(Path(__file__).parents[1] / "fixtures" / "h200" / "naive-details.csv")
    told = nsw("read", details, "--full").out
    assert "matmul_naive" in told
    assert "49.2 of 100.0 %" in told
    assert "CPIStall 53 %" in told
    assert "rows of metrics 174, launches 2, rules 30" in told
    assert "DRAM Frequency" not in told
    assert "DRAM Frequency" in nsw("read", details, "--table", "metrics").out
    (report,) = json.loads(nsw("read", details, "--json").out)["reports"]
    assert report["kernels"][0]["metrics"]["achieved_occupancy"] == pytest.approx(49.23, abs=0.01)
    assert len(report["tables"]["metrics"]) == 174


@pytest.mark.parametrize("name", ["h200/lenet-trace.json.gz", "h200/naive-details.csv"])
def test_below_a_sentence_of_a_report_is_the_command_that_proves_it(nsw, name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "9999")
    report = str(Path(__file__).parents[1] / "fixtures" / name)
    shown = nsw("read", report).out.splitlines()
    commands = [shlex.split(below.strip(" `")) for line, below in pairwise(shown) if line.startswith("* ")]
    assert commands
    for command in commands:
        assert command[:2] == ["nsw", "read"]
        assert nsw(*command[1:]).code == 0
    data = json.loads(nsw("read", report, "--json").out)
    assert [f"* {finding['text']}" for finding in data["findings"]] == [line for line in shown if line.startswith("* ")]
    assert data["headline"] == shown[0]
    assert all(finding["remedy"] in finding["text"] and finding["evidence"] for finding in data["findings"])
    assert "findings" not in json.loads(nsw("read", report, "--json", "--top", "1").out)


NVPROF = """==1== Profiling result:
==1== Metric result:
Invocations                               Metric Name                        Metric Description         Min         Max         Avg
Device "Tesla V100 (0)"
"""


def test_the_command_below_a_cut_table_of_kernels_prints_all(nsw, home):
    rows = [
        f"    Kernel: k{n}_end(int)\n          1                        sm_efficiency                   Multiprocessor Activity      50.00%      50.00%      50.00%\n"
        for n in range(30)
    ]
    (home / "many.txt").write_text(NVPROF + "".join(rows))
    (cut,) = (line for line in nsw("read", "many.txt").out.splitlines() if "rows more" in line)
    assert cut.startswith("(15 rows more: ")
    printed = nsw(*shlex.split(cut.partition("`")[2].rstrip("`)"))[1:]).out
    assert printed.count("_end") == 30
    assert "more" not in printed
    (home / "few.txt").write_text(NVPROF + "".join(rows[:9]))
    assert "more" not in nsw("read", "few.txt").out


def test_the_command_below_a_cut_table_of_calls_prints_all(nsw, home):
    rows = "".join(
        f"3.3,{9000 - n},1,{9000 - n}.0,{9000 - n}.0,{9000 - n},{9000 - n},0.0,cudaCall{n}\n" for n in range(30)
    )
    head = "Time (%),Total Time (ns),Num Calls,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
    (home / "calls.csv").write_text(head + rows)
    (cut,) = (line for line in nsw("read", "calls.csv").out.splitlines() if "rows more" in line)
    assert nsw(*shlex.split(cut.partition("`")[2].rstrip("`)"))[1:]).out.count("cudaCall") == 30


def test_the_command_below_a_cut_table_of_reports_prints_a_row_for_each(nsw, home):
    head = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
    for n in range(24):
        (home / f"kernels{n}.csv").write_text(f"{head}100.0,{9000 + n},1,9000.0,9000.0,9000,9000,0.0,gemm{n}\n")
    files = [f"kernels{n}.csv" for n in range(24)]
    (cut,) = (line for line in nsw("read", *files).out.splitlines() if "rows more" in line)
    assert cut.endswith("rows more: `--table results`)")
    for options in (["--full"], ["--table", "results"]):
        last = nsw("read", *files, *options).out.partition("24 reports: ")[2]
        assert [f"kernels{n}.csv" for n in range(24) if f" kernels{n}.csv " not in last] == []
    whole = nsw("read", *files, "--table", "results").out
    assert whole.startswith("24 reports: ")
    assert whole.count(".csv") == 26  # two of them in the headline: nothing but this table
    assert nsw("read", *files, "--table", "results", "-f", "csv").out.count(".csv,") == 24


def test_the_commands_below_sentences_print_the_rows_with_their_numbers(nsw, home):
    (home / "four.sqlite").write_bytes(recorded.alexnet("g4-b8"))
    lines = nsw("read", "four.sqlite").out.splitlines()
    printed = " ".join(lines)
    assert "GPU 0 comes last to 72 % of the collectives, 275 us behind the median rank" in printed
    assert "  `nsw read four.sqlite --table stragglers`" in lines
    assert re.search(r" GPU 0 .* 72 % +275\.0 ", nsw("read", "four.sqlite", "--table", "stragglers").out)
    assert "  `nsw read four.sqlite --table gaps --table gpu_use --table iterations`" in lines


def test_numbers_of_a_launch_finding_are_cells_of_its_tables_or_quotients_that_their_legends_have(nsw, home):
    (home / "r.sqlite").write_bytes(recorded.alexnet("g1-b8"))
    said = re.search(
        r"idle (\d+) % of an iteration of (\S+) ms: launch-bound: (\d+) operations an iteration keep it busy for (\S+) us each;"
        r" the host takes (\S+) us for each of (\d+) launches, (\S+) us of that between",
        " ".join(nsw("read", "r.sqlite").out.split()),
    )
    options = ("--table", "gaps", "--table", "gpu_use", "--table", "iterations")
    tables = json.loads(nsw("read", "r.sqlite", *options, "--json").out)["reports"][0]["tables"]
    (times,), (use,) = tables["iterations"], tables["gpu_use"]
    busy = max(times["gpu_busy_pct"], times["med_gpu_busy_pct"])
    each, launches = busy / 100 * times["med_ns"] / times["med_gpu_ops"], use["launches"] / use["iterations"]
    a_launch = use["host_ns"] / launches
    between = a_launch - (use["cuda_ns"] - use["wait_ns"]) / use["launches"]
    cells = (
        100 - busy,
        times["med_ns"] / 1e6,
        times["med_gpu_ops"],
        each / 1e3,
        a_launch / 1e3,
        launches,
        between / 1e3,
    )
    assert [f"{float(number):.3g}" for number in said.groups()] == [
        f"{cell:.3g}" if n else f"{cell:.0f}" for n, cell in enumerate(cells)
    ]


def test_nsw_read_says_that_printed_shares_are_of_the_parts_of_a_report(nsw):
    fixtures = Path(__file__).parents[1] / "fixtures" / "h200"
    told = nsw("read", str(fixtures / "tiled-stats.txt"), "--full").out
    assert "62.10" in told
    assert told.count("(time (%) is the share within each part of the report") == 1
    assert "(time (%) is" not in nsw("read", str(fixtures / "tiled.sqlite.gz"), "--full").out


def test_reports_beside_each_other_are_sorted_by_the_gain_that_their_table_has(nsw, home):
    for name in ("a", "b"):
        (home / f"{name}.sqlite").write_bytes(recorded.alexnet({"a": "g1-b128", "b": "g1-b8"}[name]))
    for options in ((), ("--table", "results"), ("--full",)):
        printed = nsw("read", "a.sqlite", "b.sqlite", *options).out
        rows = re.findall(r"^ ([ab])\.sqlite .* (\d+) %   launch-bound|^ ([ab])\.sqlite ", printed, re.MULTILINE)
        assert [first or second for first, _, second in rows][:2] == ["b", "a"]
        assert int(rows[0][1]) > 20
        assert "\ngain: at most, of the time" in printed
    rows = list(
        csv.DictReader(io.StringIO(nsw("read", "a.sqlite", "b.sqlite", "--table", "iteration_times", "-f", "csv").out))
    )
    assert [(row["case"], row["count"]) for row in rows] == [("a.sqlite", "19"), ("b.sqlite", "19")]
    assert float(rows[0]["med_ns"]) > float(rows[1]["med_ns"]) > 3e6


def test_gains_of_unlike_times_say_what_they_are_of(nsw, home):
    (home / "timeline.sqlite").write_bytes(recorded.alexnet("g1-b8"))
    shutil.copy(Path(__file__).parents[1] / "fixtures" / "h200" / "naive-details.csv", home / "other.csv")
    rows = list(
        csv.DictReader(io.StringIO(nsw("read", "timeline.sqlite", "other.csv", "--table", "results", "-f", "csv").out))
    )
    assert {row["gain_of"] for row in rows} == {"iterations", "kernels"}
    for row in rows:  # 19 iterations of some 3 ms; a kernel
        assert 0 < float(row["saved_ns"]) < 100e6


def test_counters_of_kernels_that_lie_beside_a_report_under_its_name_are_named(nsw, home, monkeypatch):
    fixtures = Path(__file__).parents[1] / "fixtures" / "h200"
    (home / "g.sqlite").write_bytes(recorded.alexnet("g1-b8"))
    (home / "g.csv").write_text("a,b\n1,2\n")
    assert reading._counters_beside("g.sqlite") is None
    shutil.copy(fixtures / "naive-details.csv", "g.csv")
    assert reading._counters_beside("g.sqlite") == "g.csv"
    finding = Finding("gpu-busy", "`ncu -k k` shows it.", evidence=(Evidence("hotspots", ("g.sqlite",)),))
    monkeypatch.setattr(first_screen, "first_screen_blocks", lambda _: [Note("headline", "h"), finding])
    monkeypatch.setattr(registry, "first_screen_blocks", first_screen.first_screen_blocks)
    assert "  `nsw read g.sqlite g.csv`" in nsw("read", "g.sqlite").out.splitlines()


def test_the_command_below_slow_iterations_prints_them_alone():
    case = SimpleNamespace(iterations=SimpleNamespace(med_ns=7e6, most_ns=407e6),
                           idle_gpu=SimpleNamespace(use={"slower_ns": 337e6}))  # fmt: skip
    options = reading._slow_iterations_options
    assert options(case, "periodic-slow-iteration") == " --table iteration_trace --where 'duration_ns>176000000'"
    assert options(case, "slow-iteration") == " --table iteration_trace --where 'duration_ns>207000000'"
    assert options(case, "launch-bound") == ""
