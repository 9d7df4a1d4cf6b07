"""nvprof's samples of the CPU, as text in every mode and in its databases; against `nvprof -i` where there is one."""

import re
import shutil
import sqlite3
import subprocess

import pytest

from nsw.readers import read
from nsw.tables import full_rows

TOP_DOWN = """\

======== CPU profiling result (top down):
Time(%)      Time  Name
 81.89%  3.30027s  main
 47.63%  1.91596s  | outer(matrix const &)
 39.40%  1.58493s  | | inner
 18.11%  722.25ms  start_thread

======== Data collected at 100Hz frequency
"""
FLAT = """\

======== CPU profiling result (flat):
Time(%)      Time  Name
 62.59%  2.51783s  inner
 17.71%  712.22ms  ???
 10.97%  441.37ms  outer(matrix const &)
  8.48%  341.06ms  rec
  0.25%   10.03ms  main

======== Data collected at 100Hz frequency
"""
SEPARATED = """\

======== CPU profiling result (flat):
Time(%)      Time  Name
======== Thread 140415071577216
  85.20%  1.90593s  inner
 14.80%  331.03ms  outer
======== Thread 140415059621568
 27.35%   611.9ms  inner

======== Data collected at 100Hz frequency
"""
INSTRUCTIONS = """\

======== CPU profiling result (bottom up):
Time(%)      Time  Name
 93.15%  976.69ms  inner(int) /usr/bin/app (/home/u/cpu.c:19 0x42)
 55.48%  815.59ms  | outer /usr/bin/app (/home/u/cpu.c:18 0x22)
                |  [CCFF] (Loop not vectorized) Loop not vectorized
 10.96%   161.1ms  | rec /usr/bin/app (/home/u/cpu.c:10 0x5c)
  6.85%  100.69ms  inner(int) /usr/bin/app (0x2f)

======== Data collected at 100Hz frequency
"""
PERIOD = 10031.2080200501  # microseconds between two samples
HITS = {"_Z5inneri": 251, "_Z5outerPKc": 44, "main": 1}


def functions(report):
    return {
        r["name"]: (r["self_s"], r["cpu_time_s"]) for r in full_rows("functions", report.tables.get("functions", []))
    }


def said(report):
    return " | ".join(p.message for p in report.problems)


def test_samples_from_the_top_down_are_refused_with_the_mode_to_print(load):
    report = load(TOP_DOWN)
    assert "functions" not in report.tables
    assert said(report).startswith("CPU samples from the top down are not read")
    assert "--cpu-profiling-mode flat" in report.problems[0].fix


def test_a_flat_table_has_the_time_of_each_function(load):
    assert functions(load(FLAT))["???"] == (0.71222, 0.71222)


def test_threads_and_instructions_of_a_function_are_added(load):
    assert functions(load(SEPARATED)) == {"inner": (2.51783, 2.51783), "outer": (0.33103, 0.33103)}
    report = load(INSTRUCTIONS)
    assert functions(report) == {"inner(int)": (1.07738, 1.07738)}
    assert [r["module"] for r in full_rows("functions", report.tables["functions"])] == ["/usr/bin/app"]
    assert not report.problems


def test_a_threshold_leaves_whole_functions_out_of_a_flat_table_and_is_told(load):
    report = load(FLAT + "======== Percentage threshold: 10%\n")
    assert len(functions(report)) == 5
    assert "threshold" in said(report)
    parts = load(SEPARATED + "======== Percentage threshold: 10%\n")
    assert "functions" not in parts.tables
    assert "threshold: 10%" in said(parts)


def test_functions_that_are_not_all_of_the_time_are_told(load):
    cut = load(FLAT.replace(" 10.97%  441.37ms  outer(matrix const &)\n", ""))
    assert len(functions(cut)) == 4
    assert "lines are missing, the functions make 89.03 %" in said(cut)
    doubled = load(INSTRUCTIONS.replace("  | outer", "  outer"))
    assert "functions" not in doubled.tables
    assert "callers are listed among" in said(doubled)


def test_without_its_title_only_a_flat_table_is_read(load):
    assert functions(load("\n".join(FLAT.splitlines()[2:]))) == functions(load(FLAT))
    for text in (TOP_DOWN, INSTRUCTIONS):
        report = load("\n".join(text.splitlines()[2:]))
        assert "functions" not in report.tables
        assert "without the title" in said(report)


def test_what_follows_the_samples_is_read(load):
    rest = (
        "======== Profiling result:\nTime(%)      Time     Calls       Avg       Min       Max  Name\n"
        "100.00%  1.0000ms         1  1.0000ms  1.0000ms  1.0000ms  axpy(float)\n"
    )
    report = load(TOP_DOWN + rest)
    assert [r["name"] for r in full_rows("gpu_summary", report.tables["gpu_summary"])] == ["axpy(float)"]


@pytest.fixture
def sampled(tmp_path):
    """A database of a program that used no GPU: a graph of three functions below each other."""
    path = tmp_path / "cpu.prof"
    db = sqlite3.connect(path)
    db.executescript(
        """
        CREATE TABLE profStringTable(id INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT NOT NULL UNIQUE);
        CREATE TABLE profIndex(parentPid INT, threadIndex TEXT, forkIndex INT, runIndex INT, pid INT);
        CREATE TABLE collLibrary(id INTEGER PRIMARY KEY, name INTEGER);
        CREATE TABLE collFunction(id INTEGER PRIMARY KEY, name INTEGER, library INTEGER, fp INTEGER, sourcePos INTEGER);
        CREATE TABLE collInstruction(id INTEGER PRIMARY KEY, function INTEGER, offset INTEGER, sourcePos INTEGER);
        CREATE TABLE profCall(id INTEGER PRIMARY KEY, instruction INTEGER);
        CREATE TABLE profGraph(id INTEGER PRIMARY KEY, branch INTEGER, orientation INTEGER, isOriginal INTEGER,
                               samplingPeriod REAL);
        CREATE TABLE collSourcePos(id INTEGER PRIMARY KEY AUTOINCREMENT, fileName INTEGER, lineNo INTEGER);
        CREATE TABLE collHit(call INTEGER, time INTEGER, tid INTEGER);
        CREATE TABLE collFunctionCall(caller INTEGER, callee INTEGER);
        CREATE TABLE collRootCall(graph INTEGER, callee INTEGER);
        CREATE TABLE collCCFFMessage(id INTEGER PRIMARY KEY AUTOINCREMENT, text INTEGER, type INTEGER);
        CREATE TABLE collFunctionCCFFMessage(function INTEGER, message INTEGER);
        CREATE TABLE collInstructionCCFFMessage(instruction INTEGER, message INTEGER);
        CREATE TABLE collSourcePosCCFFMessage(sourcePos INTEGER, message INTEGER);
        INSERT INTO profStringTable VALUES (1, '/usr/bin/app');
        INSERT INTO collLibrary VALUES (900, 1);
        INSERT INTO profIndex VALUES (7, '', -1, 0, 8);
        """
    )
    db.execute("INSERT INTO profGraph VALUES (500, 1, 1, 1, ?)", (PERIOD,))
    caller = None
    for number, (name, hits) in enumerate(reversed(HITS.items()), 2):
        db.execute("INSERT INTO profStringTable VALUES (?, ?)", (number, name))
        db.execute("INSERT INTO collFunction VALUES (?, ?, 900, 4096, 0)", (100 + number, number))
        db.execute("INSERT INTO collInstruction VALUES (?, ?, 16, 0)", (200 + number, 100 + number))
        db.execute("INSERT INTO profCall VALUES (?, ?)", (300 + number, 200 + number))
        db.executemany("INSERT INTO collHit VALUES (?, ?, 9)", [(300 + number, 10_000 * i) for i in range(hits)])
        if caller is None:
            db.execute("INSERT INTO collRootCall VALUES (500, ?)", (300 + number,))
        else:
            db.execute("INSERT INTO collFunctionCall VALUES (?, ?)", (caller, 300 + number))
        caller = 300 + number
    db.commit()
    yield db, path
    db.close()


def test_a_database_without_a_gpu_is_known_and_its_samples_are_counted(sampled):
    _, path = sampled
    report = read(path)
    assert report.format == "nvprof-sqlite"
    assert not report.problems
    own = {r["name"]: r["self_s"] for r in full_rows("functions", report.tables["functions"])}
    assert own == {
        "inner(int)": pytest.approx(251 * PERIOD / 1e6),
        "outer(char const*)": pytest.approx(44 * PERIOD / 1e6),
        "main": pytest.approx(PERIOD / 1e6),
    }
    assert {r["module"] for r in full_rows("functions", report.tables["functions"])} == {"/usr/bin/app"}


@pytest.mark.parametrize(
    ("sql", "why", "left"),
    [
        ("INSERT INTO profGraph VALUES (501, 1, 1, 1, 5000.0)", "periods", 0),
        ("UPDATE profGraph SET samplingPeriod = 'often'", "periods", 0),
        ("DELETE FROM profCall WHERE id = 302", "1 of 296", 2),
    ],
)
def test_samples_without_a_time_or_a_function_are_told(sampled, sql, why, left):
    db, path = sampled
    db.execute(sql)
    db.commit()
    report = read(path)
    assert why in said(report)
    assert len(report.tables.get("functions", [])) == left


@pytest.mark.skipif(shutil.which("nvprof") is None, reason="no nvprof on PATH")
@pytest.mark.parametrize("mode", ["flat", "bottom-up"])
@pytest.mark.parametrize(
    "more", [[], ["--cpu-profiling-scope", "instruction"], ["--cpu-profiling-thread-mode", "separated"]]
)
def test_the_samples_of_a_database_are_those_that_nvprof_prints(sampled, load, mode, more):
    _, path = sampled
    done = subprocess.run(
        ["nvprof", "-i", str(path), "--cpu-profiling-mode", mode, *more], capture_output=True, text=True, check=True
    )
    printed = load(done.stderr)
    assert not printed.problems
    own = {re.sub(r"\W+", "", name): time for name, (time, _) in functions(read(path)).items()}
    there = {re.sub(r"\W+", "", name): time for name, (time, _) in functions(printed).items()}
    assert there.keys() == own.keys()
    for name, time in there.items():
        assert time == pytest.approx(own[name], rel=2e-5, abs=1.5e-6)


def test_a_name_longer_than_any_is_a_damaged_row(tmp_path):
    path = tmp_path / "cpu.txt"
    rows = f" 83.33%  3.03999s  a{' /' * 100_000}\n 16.67%  607.98ms  b\n"
    path.write_text(f"======== CPU profiling result (bottom up):\nTime(%)      Time  Name\n{rows}")
    report = read(path)
    assert [p.severity for p in report.problems]
