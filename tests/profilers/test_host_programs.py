"""Command lines of perf, py-spy, gprof and TAU; tests/road runs those that are here."""

from __future__ import annotations

import pytest

from nsw.profilers import load_profiler
from nsw.profilers.model import Request


def profile(tool, *program, **how):
    return load_profiler(tool).profile(Request(tool, program or ("./a", "--fast"), **how))


def text_of(words):
    return " ".join(words)


def test_perf_samples_99_times_a_second_with_call_graphs():
    done = profile("perf")
    assert text_of(done.command) == "perf record -g --freq 99 -o host.perf.data -- ./a --fast"
    assert done.reports == ("host*.perf.txt", "host*.perf.data")


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ((("freq", "999"),), "-g --freq=999"),
        ((("call-graph", "dwarf"),), "--freq 99 --call-graph=dwarf"),
        ((("all-cpus", "true"), ("inherit", "false")), "-g --freq 99 --all-cpus"),
    ],
)
def test_knobs_are_perfs_own_options(knobs, words):
    done = profile("perf", analysis="record", knobs=knobs, options=("-e", "cycles"))
    assert text_of(done.command) == f"perf record {words} -e cycles -o host.perf.data -- ./a --fast"


def test_perf_stat_counts():
    done = profile("perf", analysis="stat", options=("-d",))
    assert text_of(done.command) == """perf stat -j -d -o host.perfstat.json -- sh -c "$@"; exit "$?" nsw ./a --fast"""
    assert (done.reports, done.after) == (("host*.perfstat.json",), ())


@pytest.mark.parametrize(
    ("tool", "does"),
    [("perf", "it does record and stat"), ("py-spy", "leave `analysis` out"), ("gprof", "leave"), ("tau", "leave")],
)
def test_an_analysis_that_a_tool_does_not_know_is_refused_with_what_it_knows(tool, does):
    why = profile(tool, analysis="hotspots").impossible
    assert why.startswith(f"{tool} has no analysis 'hotspots'; ")
    assert does in why


@pytest.mark.parametrize("tool", ["perf", "gprof", "tau"])
def test_the_report_of_each_process_has_its_rank_in_its_name(tool):
    words = profile(tool, per_rank=True, rank_variable="PMI_RANK").command
    assert words[:2] == ("bash", "-c")
    assert '"host.rank${PMI_RANK:-0}.' in words[2]


def test_py_spys_report_has_rank_and_rate_in_its_name():
    words = profile("py-spy", "python", "a.py", per_rank=True, knobs=(("rate", "50"), ("native", "true"))).command
    assert '"host.rank${NSW_RANK:-0}"$2' in words[2]
    assert words[5] == ".rate50.pyspy.txt"
    assert text_of(words[6:]).endswith("--full-filenames --rate 50 --native python a.py")


def test_gprof_reads_the_program_after_the_run():
    done = profile("gprof", "./a", options=("--line",))
    assert done.command[-1] == "./a"
    assert done.after[0][2:] == ("gprof_print", "gprof", "host", "./a", "--line")


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (("./a", "-n", "4"), "/opt/tau_exec -ebs ./a -n 4"),
        (
            ("python3", "-u", "a.py", "x"),
            "/opt/tau_python -ebs -tau-python-interpreter=python3 -tau-python-args=-u a.py x",
        ),
        (("python3", "-m", "a"), "/opt/tau_exec -ebs python3 -m a"),
    ],
)
def test_tau_starts_binaries_and_python_scripts_by_different_programs(program, words):
    request = Request("/opt/tau_exec", program, options=("-ebs",), knobs=(("TAU_CALLPATH", "true"),))
    assert text_of(load_profiler("tau").profile(request).command).endswith(f"env TAU_CALLPATH=1 {words}")
