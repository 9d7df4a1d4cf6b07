"""cProfile's files, as every Python writes them, and damaged ones."""

import cProfile
import json
import marshal
import pstats as standard
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsw.readers.host import pstats
from nsw.readers.model import Options, Sample
from nsw.tables import full_rows

PROGRAM = """
import json, sys
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
def größe():
    return [json.dumps({"a": list(range(50))}) for _ in range(20)]
fib(12)
größe()
"""
PYTHONS = [f"python3.{n}" for n in range(6, 16)]


def runs(python):
    """The interpreter of this name that starts, on PATH or among pyenv's, or None."""
    among_pyenv = sorted(Path.home().glob(f".pyenv/versions/*/bin/{python}"))
    for found in [shutil.which(python), *among_pyenv]:
        if found and subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0:
            return str(found)
    return None


def read(path):
    return pstats.read(Path(path), Options())


def functions(report):
    return list(full_rows("functions", report.tables["functions"]))


def fact(report, key):
    return next(row["value"] for row in report.tables["facts"] if row["key"] == key)


def assert_as_pstats_says(path, report):
    stats = standard.Stats(str(path))
    want = {k: v[:4] for k, v in stats.stats.items()}
    got = {
        (r["file"] or "~", r["line"] or 0, r["name"]): (
            r["primitive_calls"],
            r["calls"],
            r["self_s"],
            r["cpu_time_s"],
        )
        for r in functions(report)
    }
    assert got == want
    assert fact(report, "function_calls") == stats.total_calls
    assert fact(report, "primitive_calls") == stats.prim_calls
    assert fact(report, "total_time_s") == pytest.approx(stats.total_tt)


def test_everything_that_the_standard_library_reads_is_read(tmp_path):
    path = tmp_path / "out.prof"
    profile = cProfile.Profile()
    space = {}
    profile.runctx(PROGRAM, space, space)
    profile.dump_stats(path)
    report = read(path)
    assert not report.problems
    assert_as_pstats_says(path, report)
    own = [row["self_s"] for row in functions(report)]
    assert own == sorted(own, reverse=True)


@pytest.mark.parametrize("python", PYTHONS)
def test_a_profile_of_another_python_is_read(python, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    path = tmp_path / "out.prof"
    if (interpreter := runs(python)) is None:
        pytest.skip(f"no {python} here")
    subprocess.run([interpreter, "-m", "cProfile", "-o", str(path), str(program)], capture_output=True, check=True)
    report = read(path)
    assert pstats.sniff(Sample(path)) == 100
    assert not report.problems
    by_name = {row["name"]: row for row in functions(report)}
    assert (by_name["fib"]["calls"], by_name["fib"]["primitive_calls"]) == (465, 1)
    assert (by_name["fib"]["file"], by_name["fib"]["line"], by_name["fib"]["module"]) == (
        str(program),
        3,
        "program",
    )
    assert by_name["dumps"]["module"] == "json"
    assert by_name["dumps"]["calls"] == 20
    # modules that it imports are called so too
    (main,) = [r for r in functions(report) if r["name"] == "<module>" and r["file"] == str(program)]
    assert main["cpu_time_s"] >= by_name["fib"]["cpu_time_s"] > 0


@pytest.mark.parametrize("version", range(2, marshal.version + 1))
def test_every_version_of_python_3s_encoding_is_read(version, tmp_path):
    path = tmp_path / "out.prof"
    same = "a.py"
    stats = {
        (same, 1, "f"): (1, 2, 0.25, 0.5, {(same, 9, "caller"): (1, 2, 0.25, 0.5)}),
        (same, 2, "名"): (3, 2**40, 1.5, 2.0, {}),
        ("~", 0, "<built-in method time.sleep>"): (1, 1, 0.0, 0.0, {}),
    }
    path.write_bytes(marshal.dumps(stats, version))
    report = read(path)
    assert not report.problems
    assert_as_pstats_says(path, report)
    assert {r["name"]: (r["file"], r["line"], r["module"]) for r in functions(report)} == {
        "名": ("a.py", 2, "a"),
        "f": ("a.py", 1, "a"),
        "<built-in method time.sleep>": (None, None, "time"),
    }


def test_samples_are_not_given_as_calls(tmp_path):
    path = tmp_path / "out.prof"
    path.write_bytes(marshal.dumps({("__sampled__",): True, ("a.py", 1, "f"): (7, 9, 0.25, 0.5, {})}))
    assert pstats.sniff(Sample(path)) == 100
    report = read(path)
    [row] = functions(report)
    assert (row["calls"], row["primitive_calls"], row["self_s"]) == (None, None, 0.25)
    assert [p.severity for p in report.problems] == ["warning"]
    assert [r["key"] for r in report.tables["facts"]] == ["total_time_s"]


def test_a_file_cut_short_keeps_what_is_whole_and_says_where_it_ends(tmp_path):
    whole = marshal.dumps({(f"f{n}.py", n, "f"): (1, 1, 0.5, 0.5, {}) for n in range(10)})
    path = tmp_path / "out.prof"
    path.write_bytes(whole[: len(whole) // 2])
    report = read(path)
    assert 3 <= len(functions(report)) <= 6
    [problem] = report.problems
    assert problem.severity == "error"
    assert f"byte {len(whole) // 2}" in problem.message


def test_entries_of_another_shape_are_left_out_and_said(tmp_path):
    path = tmp_path / "out.prof"
    good = {("a.py", 1, "f"): (1, 1, 0.5, 0.5, {})}
    bad = {
        ("a.py", 2, "g"): (1, 1, float("nan"), 0.5, {}),
        ("a.py", 3, "h"): (-1, 1, 0.5, 0.5, {}),
        ("a.py",): (1, 2),
    }
    path.write_bytes(marshal.dumps(good | bad))
    report = read(path)
    assert [r["name"] for r in functions(report)] == ["f"]
    assert "3 entries" in report.problems[0].message


def nested_references(depth):
    """Tuples that each hold the one before twice: 2**depth leaves for whoever hashes or prints them."""
    data = b"{" + b"\xa9\x01" + b"z\x01a"
    for n in range(depth):
        data += b"\xa9\x02" + 2 * (b"r" + n.to_bytes(4, "little"))
    return data + b"N0"


@pytest.mark.parametrize(
    "data",
    [
        b"{(\xff\xff\xff\x7f",
        b"{" + b"(\x01\0\0\0" * 5000,
        b"{)\x03z\x01ai\x01\0\0\0z\x01fl\xff\xff\xff\x7f",
        b"{)\x03r\x05\0\0\0i\x01\0\0\0z\x01fN0",
        b"\xfb)\x03r\0\0\0\0i\x01\0\0\0z\x01fN0",
        b"{)\x03z\x01ai\x01\0\0\0z\x01f0",
        nested_references(60),
    ],
)
def test_hostile_bytes_are_an_error_and_no_more(data, tmp_path):
    path = tmp_path / "out.prof"
    path.write_bytes(data)
    report = read(path)
    assert not report.tables["functions"]
    assert any(p.severity == "error" for p in report.problems)


def test_a_file_too_large_for_a_profile_is_not_loaded(tmp_path):
    path = tmp_path / "out.prof"
    with path.open("wb") as file:
        file.write(b"{)\x03z\x01ai\x01\0\0\0z\x01fN")
        file.truncate(1 << 34)
    report = read(path)
    assert "larger than 512 MiB" in report.problems[0].message


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_mutated_files_never_raise(seed, tmp_path_factory):
    dice = random.Random(seed)
    stats = {(f"f{n}.py", n, "f"): (1, 2, 0.5, 0.5, {("c.py", n, "g"): (1, 1, 0.1, 0.1)}) for n in range(8)}
    data = bytearray(marshal.dumps(stats, dice.choice([2, 4])))
    for _ in range(dice.randrange(1, 8)):
        data[dice.randrange(len(data))] = dice.randrange(256)
    path = tmp_path_factory.getbasetemp() / "mutated.prof"
    path.write_bytes(data)
    report = read(path)
    json.dumps(list(full_rows("functions", report.tables["functions"])), allow_nan=False)


@pytest.mark.parametrize("text", ['{"traceEvents": []}', "{}", "{(3", "ncalls  tottime", ""])
def test_other_files_are_not_taken_for_a_profile(text, tmp_path):
    path = tmp_path / "file"
    path.write_text(text)
    assert pstats.sniff(Sample(path)) == 0


def test_the_running_python_is_among_those_tested():
    assert f"python{sys.version_info.major}.{sys.version_info.minor}" in PYTHONS
