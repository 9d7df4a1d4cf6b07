"""Where cProfile goes into a Python command line, and that what comes of it runs."""

import subprocess
import sys

import pytest

from nsw.profilers import cprofile
from nsw.profilers.model import Request

OPTIONS = ("-c", cprofile._BOOTSTRAP, "-o", "host.pstats")


def profile(*program, **how):
    return cprofile.profile(Request("", program, **how))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("python",), ("train.py", "-b", "8")),
        (("/opt/venv/bin/python3.12", "-u"), ("train.py",)),
        (("python", "-W", "error"), ("train.py", "-W", "mine")),
        (("python", "-Werror", "-X", "importtime"), ("train.py",)),
        (("python", "--check-hash-based-pycs", "never", "-O"), ("train.py",)),
        (("pypy3",), ("train.py", "-m", "not a module")),
        (("python", "-B"), ("-m", "package.train", "--fast")),
    ],
)
def test_it_stands_before_the_script_or_the_module(before, after):
    done = profile(*before, *after)
    assert done.command == (*before, *OPTIONS, *after)
    assert done.reports == ("host.pstats",)


@pytest.mark.parametrize("program", [("python", "-c", "print(1)"), ("python", "-"), ("python",), ("python", "-u")])
def test_what_has_no_script_is_refused_with_the_reason(program):
    done = profile(*program)
    assert done.command == ()
    assert "needs a script or -m MODULE" in done.impossible


@pytest.mark.parametrize("program", [("./prog",), ("bash", "-c", "python x.py"), ("pythonista", "x.py"), ()])
def test_what_is_no_python_is_refused_with_its_first_word(program):
    done = profile(*program)
    assert done.impossible.endswith(f"the command starts with {program[0]!r}" if program else "starts with ''")


def test_options_of_the_recipe_are_cprofiles():
    assert profile("python", "x.py", options=("-s", "cumulative")).command[5:] == ("-s", "cumulative", "x.py")


def run(done, folder, *, check=True, **env):
    import os

    return subprocess.run(done.command, cwd=folder, env=os.environ | env, capture_output=True, text=True, check=check)


def test_what_comes_of_it_runs_and_leaves_a_report_that_nsw_reads(tmp_path):
    from nsw.readers import read

    (tmp_path / "a prog.py").write_text("import sys\ndef work(): return sys.argv[1:]\nprint(work())\n")
    done = profile(sys.executable, "-W", "error", "a prog.py", "x y")
    assert run(done, tmp_path).stdout == "['x y']\n"
    report = read(tmp_path / "host.pstats")
    assert "work" in {row["name"] for row in report.tables["functions"]}


def test_each_process_of_a_launcher_leaves_a_report_under_its_rank(tmp_path):
    (tmp_path / "prog.py").write_text("import sys\nprint(sys.argv[1:], sys.flags.utf8_mode)\n")
    done = profile(sys.executable, "-X", "utf8", "prog.py", "a b", "$HOME", per_rank=True, rank_variable="SLURM_PROCID")
    assert done.reports == ("host*.pstats",)
    for rank in ("0", "1"):
        assert run(done, tmp_path, SLURM_PROCID=rank).stdout == "['a b', '$HOME'] 1\n"
    assert {p.name for p in tmp_path.glob("host*")} == {"host.rank0.pstats", "host.rank1.pstats"}


ENDS = {
    "sys.exit(3)": (3, ""),
    "sys.exit('no data')": (1, "no data\n"),
    "sys.exit()": (0, ""),
    "sys.exit(None)": (0, ""),
    "raise SystemExit(300 - 256)": (44, ""),
    "pass": (0, ""),
}


@pytest.mark.parametrize("module", [False, True])
@pytest.mark.parametrize("per_rank", [False, True])
@pytest.mark.parametrize("end", ENDS)
def test_the_program_ends_as_it_would_without_the_profiler_and_its_report_is_there(tmp_path, end, per_rank, module):
    from nsw.readers import read

    (tmp_path / "prog.py").write_text(f"import sys\ndef work(): {end}\nwork()\n")
    words = ("-m", "prog") if module else ("prog.py",)
    done = run(profile(sys.executable, *words, per_rank=per_rank), tmp_path, check=False)
    assert (done.returncode, done.stderr) == ENDS[end]
    (report,) = tmp_path.glob("host*.pstats")
    assert "work" in {row["name"] for row in read(report).tables["functions"]}


def test_an_exception_is_told_and_fails(tmp_path):
    (tmp_path / "prog.py").write_text("raise ValueError('spoilt')\n")
    done = run(profile(sys.executable, "prog.py"), tmp_path, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith("ValueError: spoilt\n")
