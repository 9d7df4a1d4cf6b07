"""What the demo prints and writes: always that it was recorded, and never more than was recorded."""

import csv
import io
import json
import os
import pty
import re
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

import nsw
from tests.analysis.recorded import screen

RECORDED = ("2026-11-21", "4 NVIDIA H200", "nothing was measured here")


def says_recorded(text: str) -> bool:
    flat = " ".join(text.split())
    return all(words in flat for words in RECORDED)


def test_the_demo_runs_to_its_end(demo):
    assert demo.returncode == 0, demo.stderr
    assert "12 runs: 12 done" in demo.stderr


@pytest.mark.parametrize(
    "command",
    [["summarize"], ["summarize", "--json"], ["summarize", "--table", "gpu_summary"], ["status"], ["status", "--json"],
     ["ls", "--json"], ["plan", "alexnet_scaling", "--site", "demo"], ["render", "alexnet_scaling", "--site", "demo"],
     ["plan", "alexnet_scaling", "--site", "demo", "--json"]],
)  # fmt: skip
def test_every_command_on_the_demo_says_that_it_was_recorded(demo, command):
    assert says_recorded(demo.nsw(*command).stdout)


def test_the_demo_says_so_once_and_ends_with_what_to_do_next_and_no_warning(demo):
    assert says_recorded(demo.stdout)
    printed = demo.stdout + demo.stderr
    assert printed.count("Recorded on") == printed.count("was not recorded") == 1
    assert "warning" not in printed
    assert "not here" not in printed
    assert demo.stderr.splitlines()[-1].partition(" report alexnet-scaling` ")[2].startswith("writes this as a page")
    assert "init -- python train.py` begins a recipe" in demo.stderr.splitlines()[-1]


def test_the_page_of_the_demo_has_the_timeline_that_proves_its_first_finding(demo, tmp_path):
    page = tmp_path / "page.html"
    assert demo.nsw("report", "-o", str(page)).returncode == 0
    assert "* batch=8: an iteration takes 1.549 ms more than it should with gpus=4" in demo.stdout
    assert re.search(r"iteration \d+ of gpus-4_batch-8", page.read_text())


def test_the_page_of_a_demo_whose_report_is_gone_says_why_no_iteration_is_drawn(demo, tmp_path):
    page = tmp_path / "page.html"
    (report,) = (demo.folder / "reports" / "gpus-4_batch-8.timeline.r1").glob("*.sqlite*")
    away = report.rename(tmp_path / report.name)
    try:
        assert demo.nsw("report", "-o", str(page)).returncode == 0
    finally:
        away.rename(report)
    assert "No iteration of gpus-4_batch-8 is drawn: no timeline of it with iterations can be" in page.read_text()


@pytest.mark.parametrize("command", ["summarize", "read"])
def test_the_full_answer_goes_through_the_pager_of_a_terminal(demo, tmp_path, command):
    """A pager that is a program of the test's own writes down what it is given: every finding, then the tables."""
    reports = sorted(map(str, (demo.folder / "reports").glob("gpus-[14]_batch-8.*/*.sqlite*")))
    seen = tmp_path / "seen"
    terminal, end = pty.openpty()
    with os.fdopen(terminal, "rb"):
        environment = os.environ | {"NSW_ROOT": str(demo.root), "PAGER": f"cat >'{seen}'", "TERM": "xterm"}
        words = [sys.executable, "-m", "nsw", command, *(reports if command == "read" else ()), "--full"]
        subprocess.run(words, stdin=end, stdout=end, env=environment, cwd=demo.root, check=True, timeout=100)
        os.close(end)
    text = seen.read_text()
    assert "gradient_as_bucket_view=True" in text.partition("gpu_summary" if command == "read" else "weak scaling")[0]
    assert len(text.splitlines()) > 200


def test_the_commands_of_a_selection_keep_it(demo):
    printed = demo.nsw("summarize", "--case", "gpus-1_batch-8").stdout
    assert "summarize alexnet-scaling --case gpus-1_batch-8 --full` has all tables" in printed
    printed = demo.nsw("summarize", "--case", "batch=8", "--exclude", "gpus=2").stdout
    assert "summarize alexnet-scaling --case batch=8 --exclude gpus=2 --full`" in printed
    (command,) = re.findall(r"nsw (compare \S+ gpus-1_batch-8 gpus-4_batch-8)`", printed)
    assert "2.67x faster" in demo.nsw(*command.split()).stdout


def test_the_finding_of_the_headline_comes_first_on_a_terminal(demo, monkeypatch):
    lines = screen(nsw.open(demo.folder).answers._summary(), monkeypatch)
    assert next(line for line in lines if line.startswith("* ")).startswith("* gpus-4_batch-8: GPU 0 comes last")


def test_the_full_answer_of_a_case_has_each_table_and_note_once(demo):
    lines = demo.nsw("summarize", "--case", "gpus-4_batch-8", "--full").stdout.splitlines()
    assert sum(line.startswith(" GPU idle ") for line in lines) == 1
    assert sum(line.startswith("Recorded on ") for line in lines) == 1


def test_the_command_below_a_finding_does_not_lead_back_to_itself(demo):
    selected = ("--case", "gpus-1_batch-8", "--case", "gpus-4_batch-8")
    printed = demo.nsw("summarize", *selected).stdout
    commands = re.findall(r"^  `.*(summarize .*)`$", printed, re.MULTILINE)
    scaling = " ".join(("summarize alexnet-scaling", *selected, "--table scaling"))
    assert scaling in commands
    assert scaling.removesuffix(" --table scaling") not in commands
    for row in json.loads(demo.nsw(*scaling.split(), "--json").stdout)["rows"]:
        parts = ("computing_ns", "copies_ns", "nccl_alone_ns", "idle_ns")
        assert sum(row[name] for name in parts) == pytest.approx(row["iteration_ns"], rel=0.01)


def test_the_first_screen_has_the_headline_first_and_few_lines(demo, monkeypatch):
    lines = screen(nsw.open(demo.folder).answers._summary(), monkeypatch)
    text = " ".join(" ".join(lines).split())
    assert text.startswith(
        "90 % efficiency at gpus=4, batch=128; 67 % at batch=8: GPU 0 late (H200, profiled, 1 run each)"
    )
    for row in (
        "8 2,543.0 6,790.5 67 % 3.26 -> 4.81 36 % 3 % 44 % 17 % 41 %",
        "128 13,867.2 50,110.1 90 % 9.22 -> 10.2 79 % 17 % 2 % 2 % 2 %",
    ):
        assert row in text
    assert (
        "* batch=8: an iteration takes 1.549 ms more than it should with gpus=4, 32 % of its 4.81 ms: NCCL alone 2.096 ms"
        in text
    )
    assert "Between these: gpus=2 (`--case gpus=2` shows it)." in text
    assert "GPU 0 comes last to 72 % of the collectives, 275 us behind the median rank" in text
    assert (
        "the GPU is idle 52 % of an iteration of 3.26 ms: launch-bound: 125 operations an iteration keep it busy for"
        in text
    )


def test_the_answer_in_full_begins_with_the_first_screen(demo):
    first, full = (demo.nsw("summarize", *words).stdout.splitlines() for words in ((), ("--full",)))
    assert full[1:9] == first[:8]  # behind the name of the campaign
    assert any(line.startswith("GPU operations that take 90 % of GPU time of the steady state") for line in full)
    assert not any("GPU operations that take 90 %" in line for line in first)


def test_every_file_that_it_writes_says_so(demo):
    assert says_recorded((demo.folder / "recipe.lock.yaml").read_text())
    for script in (demo.folder / "scripts").glob("alexnet*"):
        assert says_recorded(script.read_text())
    tables = list((demo.folder / "tables").glob("*.parquet"))
    assert {"gpu_summary", "api_summary", "figures"} <= {t.stem for t in tables}
    for table in tables:
        assert says_recorded(pq.read_schema(table).metadata[b"nsw_note"].decode())


def test_the_pass_that_was_not_recorded_is_absent_with_its_reason(demo):
    assert "missing: pass baseline (12 runs): was not recorded" in demo.stdout
    plan = json.loads(demo.nsw("plan", "alexnet_scaling", "--site", "demo", "--json").stdout)
    assert [(a["what"], len(a["run_ids"])) for a in plan["absent"]] == [("pass baseline", 12)]
    assert {r["pass"] for r in plan["runs"]} == {"timeline"}


def test_each_row_of_a_table_leads_back_to_its_report(demo):
    rows = pq.read_table(demo.folder / "tables" / "gpu_summary.parquet").to_pylist()
    for row in rows:
        assert (demo.folder / row["report"]).is_file()
        assert row["run"] in row["report"]


def test_the_scaling_table_as_csv(demo):
    rows = list(csv.DictReader(io.StringIO(demo.nsw("summarize", "--table", "scaling", "-f", "csv").stdout)))
    assert len(rows) == 12
    first = next(r for r in rows if r["gpus"] == "4" and r["batch"] == "128")
    assert (first["value"], first["unit"], first["figure"]) == ("50110.1", "images/s", "images_per_sec")


def test_the_scaling_table_as_parquet(demo, tmp_path):
    file = tmp_path / "scaling.parquet"
    assert demo.nsw("summarize", "--table", "scaling", "-f", "parquet", "-o", str(file)).returncode == 0
    table = pq.read_table(file)
    assert table.num_rows == 12
    assert says_recorded(table.schema.metadata[b"nsw_note"].decode())


def test_every_table_as_a_file_of_its_own(demo, tmp_path):
    for kind in ("csv", "parquet"):
        folder = tmp_path / kind
        done = demo.nsw("summarize", "-f", kind, "-o", str(folder), exits=0)
        assert {"scaling", "hotspots", "figures", "gpu_summary"} <= {file.stem for file in folder.glob(f"*.{kind}")}
        assert f"{folder}/scaling.{kind}: 12 rows" in done.stdout
    for name in ("scaling", "gpu_summary"):
        rows = csv.DictReader((tmp_path / "csv" / f"{name}.csv").read_text().splitlines())
        assert pq.read_table(tmp_path / "parquet" / f"{name}.parquet").num_rows == len(list(rows)) > 0


def test_one_case_keeps_the_ratios_of_the_whole_campaign(demo):
    one = json.loads(demo.nsw("summarize", "--json", "--case", "gpus-4_batch-8").stdout)
    assert [c["id"] for c in one["cases"]] == ["gpus-4_batch-8"]
    base, point = one["scaling"]["points"]
    assert base["case_id"] == "gpus-1_batch-8"
    assert point["speedup"] == pytest.approx(6790.5 / 2543.0)


def test_a_misspelt_case_or_table_gets_the_nearest(demo):
    wrong = demo.nsw("summarize", "--case", "gpus-4_batch-9")
    assert (wrong.returncode, "did you mean 'gpus-4_batch-8'?" in wrong.stderr) == (2, True)
    wrong = demo.nsw("summarize", "--table", "gpu_sumary")
    assert (wrong.returncode, "did you mean 'gpu_summary'?" in wrong.stderr) == (2, True)


def test_no_colour_codes_reach_a_pipe(demo):
    assert "\x1b" not in demo.stdout + demo.stderr


def test_kernels_of_one_short_name_keep_their_number_in_a_table_that_is_cut(demo):
    rows = "--table", "hotspots", "--case", "gpus=1,batch=128"
    few = demo.nsw("summarize", *rows, "--top", "3").stdout
    assert "[1] nchwToNhwcKernel" in few
    assert "kernels with one short name and different names" in few
    assert "[1] nchwToNhwcKernel" in demo.nsw("summarize", *rows).stdout


def test_a_table_that_ends_before_all_rows_says_so_and_a_file_what_is_in_it(demo, tmp_path):
    until = "hotspots: the largest that take 90 % of the time of a case; "
    assert until in demo.nsw("summarize", "--table", "hotspots").stdout
    file = tmp_path / "hotspots.csv"
    written = demo.nsw("summarize", "--table", "hotspots", "-o", str(file))
    assert until in written.stderr
    assert written.stdout == f"{file}: {len(file.read_text().splitlines()) - 1} rows\n"
    assert "the largest" not in demo.nsw("summarize", "--table", "gpu_summary").stdout


def test_an_empty_table_says_what_it_is_made_of_and_which_has_the_times(demo):
    shown = demo.nsw("summarize", "--table", "kernels").stdout
    assert "kernels: no rows: it is made of counters (ncu)" in shown
    assert "`--table hotspots`, `--table gpu_summary`" in " ".join(shown.split())


def test_sentences_about_the_case_that_loses_most_follow_the_loss(demo):
    lines = [line for line in demo.stdout.splitlines() if line.startswith("* ")]
    assert lines[0].startswith("* batch=8: an iteration takes 1.549 ms more")
    assert lines[1].startswith("* gpus-4_batch-8: ")
