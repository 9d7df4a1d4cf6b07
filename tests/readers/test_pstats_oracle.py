"""cProfile's files of many programs: nsw gives what Python's own pstats gives, figure by figure."""

import cProfile
import marshal
import profile
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
from nsw.readers.model import Options
from nsw.tables import full_rows

# what is on PATH, and what pyenv keeps
PYTHONS = sorted(
    {sys.executable}
    | {str(p) for d in ("?", "1?") for p in Path.home().glob(f".pyenv/versions/*/bin/python3.{d}")}
    | {found for n in range(6, 16) if (found := shutil.which(f"python3.{n}")) and "shims" not in found}
)


def program(seed):
    """A program of functions that call each other: recursion, generators, exceptions, C functions, odd names."""
    dice = random.Random(seed)
    names = dice.sample(["alpha", "größe", "_", "f" * 200, "Ω", "run", "step", "x1"], dice.randrange(2, 8))
    lines = ["import json, re"]
    for place, name in enumerate(names):
        lines.append(f"def {name}(n):")
        for _ in range(dice.randrange(1, 4)):
            called = dice.choice(names[: place + 1]) if dice.random() < 0.4 else dice.choice(names[:place] or [name])
            lines.append(
                dice.choice(
                    [
                        f"    {called}(n - 1) if n > 0 else 0",
                        "    sorted(range(n, 0, -1), key=lambda v: -v)",
                        "    json.dumps({'a': [n] * 9}); len(str(n))",
                        "    list(v for v in range(n % 7))",
                        "    [re.escape(c) for c in 'a.b']",
                        "    try:\n        int('x')\n    except ValueError:\n        pass",
                        "    class A:\n        def __init__(self): self.n = n\n    A()",
                        "    exec('def made(): return 1\\nmade()', {})",
                    ]
                )
            )
        lines.append("    return n")
    lines += [f"{name}({dice.randrange(4)})" for name in names]
    return "\n".join(lines)


def agree(path):
    """Every function and the totals, of nsw and of pstats."""
    report = pstats.read(path, Options())
    stats = standard.Stats(str(path))
    assert not report.problems
    found = list(full_rows("functions", report.tables.get("functions", [])))
    got = {
        (r["file"] or "~", r["line"] or 0, r["name"]): (r["primitive_calls"], r["calls"], r["self_s"], r["cpu_time_s"])
        for r in found
    }
    want = {
        ("~" if file in ("~", "") else file, 0 if file in ("~", "") else line, name): value[:4]
        for (file, line, name), value in stats.stats.items()
    }
    assert len(found) == len(stats.stats)
    assert got == want
    facts = {r["key"]: r["value"] for r in report.tables.get("facts", [])}
    if facts:
        assert facts["function_calls"] == stats.total_calls
        assert facts["primitive_calls"] == stats.prim_calls
        assert facts["total_time_s"] == pytest.approx(stats.total_tt, rel=1e-9)
    return stats


@pytest.mark.parametrize("seed", range(30))
def test_generated_programs(seed, tmp_path):
    path, space = tmp_path / "out.prof", {"__name__": "generated"}
    made = cProfile.Profile()
    made.runctx(compile(program(seed), f"/generated/größe{seed}.py", "exec"), space, space)
    made.dump_stats(path)
    assert len(agree(path).stats) > 3


def test_a_program_that_the_profiler_in_python_watched(tmp_path):
    path, space = tmp_path / "out.prof", {"__name__": "generated"}
    made = profile.Profile()
    made.runctx(program(5), space, space)
    made.dump_stats(path)
    assert len(agree(path).stats) > 3


def test_the_code_that_python_m_profile_leaves_in_its_file_is_said(tmp_path):
    script, path = tmp_path / "prog.py", tmp_path / "out.prof"
    script.write_text("def f(): pass\nf()\n")
    subprocess.run([sys.executable, "-m", "profile", "-o", str(path), str(script)], capture_output=True, check=True)
    (problem,) = pstats.read(path, Options()).problems
    assert "python -m profile" in problem.message
    assert "cProfile" in problem.fix


@pytest.mark.parametrize("timer", ["ticks", "coarse"])
def test_programs_timed_by_a_clock_of_whole_numbers(timer, tmp_path):
    ticks = iter(range(10**9))
    made = cProfile.Profile((lambda: next(ticks)) if timer == "ticks" else (lambda: next(ticks) // 50), 0.001)
    space = {"__name__": "generated"}
    made.runctx(compile(program(3), "/generated/x.py", "exec"), space, space)
    made.dump_stats(tmp_path / "out.prof")
    agree(tmp_path / "out.prof")


def test_profiles_added_together_stripped_and_written_again(tmp_path):
    parts = []
    for seed in range(6):
        parts.append(tmp_path / f"{seed}.prof")
        made, space = cProfile.Profile(), {"__name__": "generated"}
        made.runctx(compile(program(seed), "/generated/same.py", "exec"), space, space)
        made.dump_stats(parts[-1])
    added = standard.Stats(*map(str, parts))
    added.dump_stats(tmp_path / "added.prof")
    agree(tmp_path / "added.prof")
    added.strip_dirs().sort_stats("cumulative").dump_stats(tmp_path / "stripped.prof")
    agree(tmp_path / "stripped.prof")


@pytest.mark.parametrize("python", PYTHONS, ids=lambda p: Path(p).name)
@pytest.mark.parametrize("seed", [1, 2])
def test_programs_that_another_python_profiled(python, seed, tmp_path):
    script, path = tmp_path / "prog.py", tmp_path / "out.prof"
    script.write_text(program(seed), encoding="utf-8")
    done = subprocess.run([python, "-m", "cProfile", "-o", str(path), str(script)], capture_output=True, check=False)
    if done.returncode or not path.exists():
        pytest.skip(f"{python} cannot profile: {done.stderr[-200:]!r}")
    agree(path)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
TIMES = st.floats(0, 1e6, allow_nan=False) | st.integers(0, 10**6)
COUNTS = st.integers(0, 2**40)
ENTRIES = st.tuples(COUNTS, COUNTS, TIMES, TIMES)
PLACES = st.tuples(TEXTS, st.integers(0, 2**31 - 1), TEXTS)
CALLED = st.tuples(COUNTS, COUNTS, TIMES, TIMES, st.dictionaries(PLACES, ENTRIES, max_size=3))


@settings(max_examples=100, deadline=None)
@given(stats=st.dictionaries(PLACES, CALLED, min_size=1, max_size=12), version=st.integers(2, marshal.version))
def test_any_profile_in_any_encoding_of_marshal(stats, version, tmp_path_factory):
    stats = {place: value for place, value in stats.items() if place[0] not in ("", "~") or place[1] == 0}
    if not stats or len({(("~" if f == "" else f), n, name) for f, n, name in stats}) < len(stats):
        return
    path = tmp_path_factory.getbasetemp() / "any.prof"
    path.write_bytes(marshal.dumps(stats, version))
    agree(path)
