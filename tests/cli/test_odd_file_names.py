"""Names of files that are not UTF-8: programs and sites leave any; nothing ends with a traceback, and no file is lost."""

import gzip
import json
import os
import sqlite3
import sys
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parents[1] / "fixtures"
# of each kind of file that readers open in their own way
READ = {
    "h200/tiled.sqlite.gz": "tiled.sqlite",
    "h200/blocked.ncu-rep.gz": "blocked.ncu-rep",
    "h200/naive-raw.csv.gz": "naive-raw.csv",
    "h200/lenet-trace.json.gz": "lenet.pt.trace.json",
    "cpu/host.perf.txt": "host.perf.txt",
    "onednn/convolution.txt": "convolution.txt",
}
BY_A_PROGRAM = """
import cProfile
for number in range(25):
    profile = cProfile.Profile()
    profile.runcall(sorted, [2, 1])
    profile.dump_stats(b"good%d\\xff.pstats" % number)
    open(b"bad%d\\xff.nsys-rep" % number, "wb").write(b"x")
open(b"odd\\xfe", "wb").write(b"x")
"""


@pytest.fixture
def left(nsw, recipe, home):
    """A campaign whose program left such files."""
    (home / "leave.py").write_text(BY_A_PROGRAM)
    name = recipe(f"{{command: '{sys.executable} leave.py', files: [leave.py]}}", "collect: everything\nrepeats: 2\n")
    nsw("run", name, "-s", "here", exits=1)
    (folder,) = home.glob("campaigns/t-*")
    return folder


def test_files_of_a_program_with_such_names_are_collected_and_reported(nsw, left):
    names = {os.fsencode(path.name) for path in (left / "reports/case.baseline.r1").iterdir()}
    assert {b"good7\xff.pstats", b"bad7\xff.nsys-rep", b"odd\xfe"} <= names
    problems = json.loads(nsw("problems", "--json").out)["problems"]
    assert "reports/case.baseline.r1/bad7\\xff.nsys-rep" in {problem["report"] for problem in problems}


@pytest.mark.parametrize(
    "words",
    [
        ["resume"], ["reread"], ["status"], ["status", "--json"], ["summarize", "--json"], ["report", "-o", "a.html"],
        ["export", "--csv", "csv"], ["export", "--parquet", "parquet"], ["problems", "--format", "csv", "-o", "p.csv"],
        ["logs", "case.baseline.r1"], ["compare", "--campaign"], ["read", "campaigns"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_each_command_goes_on_with_such_names(nsw, left, words):
    words = ["compare", left, left] if words[0] == "compare" else words
    done = nsw(*words)
    assert done.code in {0, 1}, done.err


def test_fetch_and_clean_handle_such_names(nsw, left):
    assert nsw("fetch", "--yes", "--file", "*").code == 0
    fetched = {os.fsencode(path.name) for path in (left / "fetched").rglob("*")}
    assert b"odd\xfe" in fetched
    assert nsw("clean", "--yes", "--everything").code == 0
    assert not list(left.glob("scratch/runs/*/*/*"))


def test_the_tables_of_a_campaign_name_such_a_report_by_its_bytes(nsw, left):
    with sqlite3.connect(left / "campaign.db") as ledger:
        named = {name for (name,) in ledger.execute("SELECT report FROM problems")}
    ledger.close()
    assert "reports/case.baseline.r1/bad0\\xff.nsys-rep" in named
    assert nsw("export", "--parquet", "tables").code in {0, 1}
    import pyarrow.parquet as pq

    reports = set(pq.read_table("tables/facts.parquet")["report"].to_pylist())
    assert "reports/case.baseline.r1/good0\\xff.pstats" in reports


@pytest.mark.parametrize("fixture", READ)
def test_a_report_with_such_a_name_is_read_and_written_in_every_format(nsw, home, fixture):
    data = (FIXTURES / fixture).read_bytes()
    name = os.fsdecode(b"\xff\xfe" + READ[fixture].encode())
    (home / name).write_bytes(gzip.decompress(data) if fixture.endswith(".gz") else data)
    (report,) = json.loads(nsw("read", name, "--json").out)["reports"]
    if not report["tables"]:  # a binary report, whose exporter is not here
        assert report["tool"] == "ncu"
        return
    tables = report["tables"]
    table = next(iter(tables))
    for more in (
        [], ["--full"], ["-o", "a.html"], ["--table", table, "-o", "t.parquet"], ["--table", table, "-o", "t.csv"],
        ["--table", table, "--json"],
    ):  # fmt: skip
        nsw("read", name, *more, exits=0)


def test_an_unexpected_error_ends_nsw_at_once_whatever_still_runs(tmp_path):
    script = tmp_path / "fails.py"
    script.write_text(
        "import threading, sys\n"
        "threading.Thread(target=threading.Event().wait).start()\n"
        "import nsw.cli.main as main\n"
        "def fail(): raise ZeroDivisionError\n"
        "main._complete_or_run = fail\n"
        "main.main()\n"
    )
    import subprocess

    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
