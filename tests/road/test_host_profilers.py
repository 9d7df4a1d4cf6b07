"""Host passes with the real perf, py-spy and gprof, as a person runs them; TAU's with a program that writes as it does."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

CPU = Path(__file__).parents[1] / "fixtures" / "cpu"
HEAD = "nsw: 1\nname: t\nresources: {gpus: 0, time: 2m}\n"
PY_SPY = shutil.which("py-spy", path=str(Path(sys.executable).parent)) or shutil.which("py-spy")


def needs(*programs):
    missing = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(bool(missing), reason=f"no {' and no '.join(missing)} here")


def built(road, *options):
    """The program heat, which spends most of its time in `step`."""
    command = ["gcc", "-O1", "-fno-omit-frame-pointer", *options, str(CPU / "heat.c"), "-o", str(road.home / "heat")]
    subprocess.run(command, check=True)
    return "app: {command: ./heat 50, files: [heat]}\n"


def done(road, text):
    return road.run(text, exits=0)


def rows(road, table):
    return pq.read_table(road.campaign / "tables" / f"{table}.parquet").to_pylist()


def by_name(road):
    return {row["name"]: row for row in rows(road, "functions")}


@needs("perf", "gcc")
def test_perf_records_and_the_job_names_the_functions(road):
    done(road, HEAD + built(road) + "passes: [host: {tool: perf}]\n")
    found = by_name(road)
    assert found["step"]["self_pct"] > 60
    assert found["main"]["cpu_time_s"] >= found["step"]["self_s"] > 0  # equal where no sample met its other lines
    home = road.campaign / "reports" / "case.host.r1"
    assert {"host.perf.data", "host.perf.txt"} <= {path.name for path in home.iterdir()}
    # the tool's own count of what it recorded
    script = subprocess.run(
        ["perf", "script", "-i", home / "host.perf.data"], capture_output=True, text=True, check=True
    )
    assert sum(row["samples"] for row in found.values()) == script.stdout.count("cpu-clock")


@needs("perf", "gcc")
def test_perf_counts_events_and_says_which_it_could_not(road):
    done(road, HEAD + built(road) + "passes: [host: {tool: perf, analysis: stat}]\n")
    facts = {row["key"]: row["value"] for row in rows(road, "facts")}
    assert 0 < facts["task_clock_s"] < 60
    assert facts["page_faults"] > 0
    assert 0 < facts["cpu_use_cores"] <= 1.1
    report = json.loads((road.campaign / "reports" / "case.host.r1" / "host.perfstat.json").read_text().split("\n")[2])
    assert facts["task_clock_s"] == pytest.approx(float(report["counter-value"]) / 1e3)


@needs("perf")
@pytest.mark.parametrize("analysis", ["record", "stat"])
def test_a_program_that_a_signal_ends_has_failed_under_perf_too(road, analysis):
    (road.home / "crash.sh").write_text("kill -SEGV $$\n")
    road.run(
        HEAD + "app: {command: bash crash.sh, files: [crash.sh]}\n"
        f"passes: [host: {{tool: perf, analysis: {analysis}}}]\n"
    )
    (run,) = road.runs().values()
    assert (run["state"], run["reason"].startswith("exit status 139")) == ("failed", True)


@needs("perf", "gcc")
def test_only_the_table_comes_back_where_tables_are_wanted(road):
    done(road, HEAD + built(road) + "collect: tables\npasses: [host: {tool: perf}]\n")
    names = {path.name for path in (road.campaign / "reports" / "case.host.r1").iterdir()}
    assert "host.perf.txt" in names
    assert "host.perf.data" not in names
    assert by_name(road)["step"]["self_pct"] > 60


@pytest.mark.skipif(PY_SPY is None, reason="no py-spy here")
def test_py_spy_samples_a_program_and_its_children(road):
    road.environment["NSW_PY_SPY"] = PY_SPY
    shutil.copy(CPU / "heat.py", road.home)
    done(
        road,
        HEAD + "app: {command: '{{ site.python }} heat.py', files: [heat.py]}\n"
        "passes: [host: {tool: py-spy, knobs: {rate: 200}}]\n",
    )
    row = by_name(road)["square"]
    assert (row["line"], Path(row["file"]).name) == (7, "heat.py")
    assert row["self_s"] == row["samples"] / 200
    (report,) = (road.campaign / "reports" / "case.host.r1").glob("host*.pyspy.txt")
    assert "heat.py child" in report.read_text()


@pytest.mark.skipif(PY_SPY is None, reason="no py-spy here")
@pytest.mark.parametrize("command", ["{{ site.python }} end.py", "{{ site.python }} end.py; echo later; exit 3"])
def test_the_program_under_py_spy_ends_as_it_would_alone(road, command):
    """Also where it ends before py-spy has seen it, or works on when no Python is left, and py-spy has ended."""
    road.environment["NSW_PY_SPY"] = PY_SPY
    (road.home / "end.py").write_text("import sys\nsys.exit(3)\n")
    road.run(HEAD + f"app: {{command: '{command}', files: [end.py]}}\npasses: [host: {{tool: py-spy}}]\n")
    (run,) = road.runs().values()
    assert run["state"] == "failed"
    assert run["reason"].startswith("exit status 3")
    assert ("later" in road.output("case.host.r1")) == ("later" in command)


@needs("gprof", "gcc")
def test_gprof_prints_the_profile_of_a_program_built_for_it(road):
    done(road, HEAD + built(road, "-pg") + "passes: [host: {tool: gprof}]\n")
    found = by_name(road)
    assert (found["step"]["calls"], found["norm"]["calls"], found["levels"]["calls"]) == (50, 50, 21891)
    assert found["main"]["cpu_time_s"] >= found["step"]["self_s"] > 0


@needs("gprof", "gcc")
def test_a_program_that_was_not_built_for_gprof_is_told_so(road):
    road.run(HEAD + built(road) + "passes: [host: {tool: gprof}]\n", exits=1)
    assert "wrote no profile: it was not built with -pg" in road.nsw("problems").stdout


TAU_EXEC = f"""\
#!/bin/bash
# a profile a thread, where tau_exec would write them
mkdir -p "$PROFILEDIR/MULTI__PAPI_TOT_CYC"
cp '{CPU}/profile.1.0.0' "$PROFILEDIR/profile.0.0.0"
sed 's/MULTI_TIME/MULTI_PAPI_TOT_CYC/; s/>TIME</>PAPI_TOT_CYC</' '{CPU}/profile.1.0.0' \\
  >"$PROFILEDIR/MULTI__PAPI_TOT_CYC/profile.0.0.0"
echo "$TAU_METRICS $*"
while [ "${{1#-}}" != "$1" ]; do shift 2; done
"$@"
"""


def test_taus_profiles_are_taken_out_of_their_folders(road):
    tool = road.home / "tau_exec"
    tool.write_text(TAU_EXEC)
    tool.chmod(0o755)
    road.environment["NSW_TAU"] = str(tool)
    done(
        road,
        HEAD + "app: {command: echo done}\n"
        "passes: [host: {tool: tau, options: [-T, serial], knobs: {TAU_METRICS: 'TIME:PAPI_TOT_CYC'}}]\n",
    )
    assert road.output("case.host.r1") == "TIME:PAPI_TOT_CYC -T serial echo done\ndone\n"
    steps = [row for row in rows(road, "functions") if row["name"] == "step"]
    assert sorted((row["self_s"], row["cycles"], row["rank"]) for row in steps if row["self_s"]) == [(7.5, None, 0)]
    assert [row["cycles"] for row in steps if row["cycles"]] == [7_500_000]
