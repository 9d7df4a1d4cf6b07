"""Runs on this machine: what they do, how they end, what a user is told of it."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.nsys_faults import retried

HEAD = "nsw: 1\nname: t\npasses: [baseline]\nresources: {gpus: 0, time: 1m}\n"


@pytest.mark.far
def test_a_campaign_runs_to_its_end_and_its_figures_are_in_the_answer(road):
    done = road.run(
        HEAD + "app: {command: 'echo speed={{ n }}00', figures: {speed: {regex: 'speed=(\\d+)', unit: m/s}}}\n"
        "matrix: {n: [1, 2, 3]}\n"
    )
    assert done.returncode == 0, done.stderr
    assert "3 runs: 3 done" in done.stderr
    shown = json.loads(road.nsw("summarize", "--json").stdout)
    assert [c["figures"][0]["median"] for c in shown["cases"]] == [100.0, 200.0, 300.0]


@pytest.mark.far
def test_a_failing_run_does_not_stop_its_neighbours_and_says_what_the_program_said_last(road):
    done = road.run(
        HEAD
        + "app: {command: 'if [ {{ n }} = 2 ]; then echo no luck >&2; exit 7; fi; echo fine'}\nmatrix: {n: [1, 2, 3]}\n"
    )
    assert done.returncode == 1
    runs = road.runs()
    assert [r["state"] for r in runs.values()] == ["done", "failed", "done"]
    assert runs["n-2.baseline.r1"]["exit_code"] == 7
    assert runs["n-2.baseline.r1"]["reason"] == "exit status 7: no luck"
    assert "not in these numbers: 1 run failed, such as n-2.baseline.r1: exit status 7: no luck" in done.stdout


@pytest.mark.far
def test_a_run_over_its_time_is_ended_with_all_its_children_and_the_next_goes_on(road):
    done = road.run(
        "nsw: 1\nname: t\npasses: [baseline]\nresources: {gpus: 0, time: 1s}\n"
        "app: {command: 'if [ {{ n }} = 1 ]; then sleep 600 & sleep 600; fi; echo fine'}\nmatrix: {n: [1, 2]}\n",
        site="one",
    )
    assert done.returncode == 1
    runs = road.runs()
    assert runs["n-1.baseline.r1"]["reason"].startswith("over its time limit of 1 s")
    assert runs["n-2.baseline.r1"]["state"] == "done"
    assert 1 <= runs["n-1.baseline.r1"]["seconds"] < 600  # the program would have slept so long


@pytest.mark.far
def test_a_program_that_is_not_there_is_said_so(road):
    assert road.run(HEAD + "app: {command: ./no-such-program}\n").returncode == 1
    assert "command not found" in next(iter(road.runs().values()))["reason"]


@pytest.mark.far
def test_a_set_up_line_that_fails_fails_the_runs_with_the_line(road):
    road.run(HEAD + "app: {command: 'true', setup: ['export A=1', 'source /no/such/file', 'export B=2']}\n", exits=1)
    reason = "set-up failed: source /no/such/file: /no/such/file: No such file or directory"
    assert next(iter(road.runs().values()))["reason"] == reason


@pytest.mark.parametrize(
    ("login", "hint"), [("false", "`login_shell: true` at the site"), ("true", "let `app: setup:` begin")]
)
def test_a_module_that_the_job_s_shell_does_not_know_is_said_with_what_to_do(road, login, hint):
    site = f"  far: {{scheduler: local, modules: [cuda/12.4], login_shell: {login}, gpus: {{per_node: 0}}}}\n"
    (road.home / "sites.yaml").write_text("nsw: 1\nsites:\n" + site)
    assert road.run(HEAD + "app: {command: 'true', setup: [echo never]}\n", site="far").returncode == 1
    (run,) = road.runs().values()
    assert run["reason"].startswith("set-up failed: module load cuda/12.4: module: command not found (")
    assert hint in run["reason"]
    assert "module: command not found" in road.nsw("logs", run["id"]).stdout


@pytest.mark.far
def test_set_up_and_environment_reach_the_program(road):
    road.run(
        HEAD
        + "app: {command: 'echo $A-$B-$C', setup: ['export A=one'], env: {B: '{{ n }}', C: 'a b;c'}}\nmatrix: {n: [2]}\n"
    )
    assert road.output("n-2.baseline.r1") == "one-2-a b;c\n"


NASTY = [
    "a b",
    "'",
    '"',
    "; touch pwned",
    "$(touch pwned)",
    "`touch pwned`",
    "two\nlines",
    "é漢🙂",
    "-rf",
    "$HOME",
    "\\",
]


@pytest.mark.far
def test_no_parameter_breaks_out_of_its_argument_on_the_whole_road(road):
    values = ", ".join(json.dumps(v, ensure_ascii=False) for v in NASTY)
    done = road.run(
        HEAD + "app: {command: [printf, '%s', '{{ v }}'], env: {V: '{{ v }}'}}\nmatrix: {v: [" + values + "]}\n"
    )
    assert done.returncode == 0, done.stderr
    runs = road.status()["runs"]
    assert [r["params"]["v"] for r in runs] == NASTY
    assert [road.output(r["id"]) for r in runs] == NASTY
    assert not list(road.home.rglob("pwned"))


@pytest.mark.far(quick=True)
def test_the_programs_files_are_beside_it_and_reports_of_runs_do_not_mix(road):
    (road.home / "app").mkdir()
    (road.home / "app" / "prog.sh").write_text("cat data.txt; echo mine > out.txt")
    (road.home / "app" / "data.txt").write_text("data\n")
    road.run(HEAD + "app: {command: bash prog.sh, files: [app/prog.sh, app/data.txt]}\nrepeats: 2\n", exits=0)
    assert [road.output(r) for r in road.runs()] == ["data\n", "data\n"]


@pytest.mark.far
def test_a_figure_that_is_not_printed_is_absent_with_an_error_and_not_zero(road):
    done = road.run(HEAD + "app: {command: echo nothing, figures: {f: {regex: 'f=(.*)', unit: s}}}\n", exits=1)
    assert "stdout: required figure f was not found in the program's output" in done.stderr
    assert json.loads(road.nsw("summarize", "--json").stdout)["cases"][0]["figures"] == []


@pytest.mark.far
def test_the_build_step_is_done_once_and_its_product_is_beside_the_program(road):
    (road.home / "make.sh").write_text("echo built >> log; echo 'echo hello' > prog.sh")
    done = road.run(
        HEAD + "app: {command: bash prog.sh, files: [make.sh], build: {command: bash make.sh}}\nrepeats: 3\n"
    )
    assert done.returncode == 0, done.stderr
    assert {road.output(r) for r in road.runs()} == {"hello\n"}
    assert (road.scratch / "app" / "log").read_text() == "built\n"


def test_a_build_step_that_fails_ends_the_campaign_with_what_it_printed(road):
    (road.home / "make.sh").write_text("echo 'prog.cu(3): error: expected a ;' >&2; exit 2")
    done = road.run(HEAD + "app: {command: 'true', files: [make.sh], build: {command: bash make.sh}}\n", exits=2)
    assert "the build step failed with exit status 2: bash make.sh" in done.stderr
    assert "  | prog.cu(3): error: expected a ;" in done.stderr


def test_a_host_pass_is_profiled_and_its_functions_are_in_the_answer(road):
    (road.home / "prog.py").write_text("def busy():\n    return sum(range(2000000))\nbusy()\n")
    done = road.run(
        HEAD.replace("[baseline]", "[baseline, host: {tool: cprofile}]")
        + "app: {command: '{{ site.python }} prog.py', files: [prog.py]}\n"
    )
    assert done.returncode == 0, done.stderr
    (case,) = json.loads(road.nsw("summarize", "--json").stdout)["cases"]
    assert any("sum" in f["name"] for f in case["functions"])


def test_a_host_pass_of_what_is_no_python_is_absent_with_the_reason(road):
    done = road.run(HEAD.replace("[baseline]", "[baseline, host: {tool: cprofile}]") + "app: {command: ls -l}\n")
    assert done.returncode == 0, done.stderr
    assert "missing: pass host (1 run): cProfile profiles Python programs; the command starts with 'ls'" in done.stdout


@pytest.mark.far
def test_provenance_is_written_once_a_job_and_host(road):
    road.run(HEAD + "app: {command: 'true'}\nrepeats: 4\n")
    (place,) = (road.scratch / "provenance").iterdir()
    facts = dict(line.split("=", 1) for line in (place / "host").read_text().splitlines())
    assert facts["kernel"].startswith("Linux")
    assert int(facts["cpus"]) > 0


@pytest.mark.nsys
def test_a_timeline_by_a_real_nsys_is_collected_and_read(road):
    (road.home / "prog.py").write_text("import time\nfor _ in range(50): time.sleep(0.001)\n")
    done = road.run(
        HEAD.replace("[baseline]", "[timeline: {tool: nsys, trace: [osrt, nvtx]}]")
        + "app: {command: '{{ site.python }} prog.py', files: [prog.py]}\n"
    )
    done = retried(done, *road.runs(), road.nsw)
    assert done.returncode == 0, done.stdout + done.stderr
    shown = json.loads(road.nsw("summarize", "--table", "osrt_summary", "--json").stdout)
    assert any("nanosleep" in r["name"] or "select" in r["name"] for r in shown["rows"])
    assert all(r["run"] == "case.timeline.r1" or r["run"].endswith("timeline.r1") for r in shown["rows"])


PROGRAM_OF_RANGES = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "nvtx3/nvToolsExt.h"
int main(int count, char **words) {
  for (int i = 0; i < (count > 1 ? atoi(words[1]) : 4); i++) {
    nvtxRangePushA("first"); usleep(20000); nvtxRangePop();
    nvtxRangePushA("block"); nvtxRangePushA("step"); usleep(20000); nvtxRangePop(); nvtxRangePop();
  }
  puts("ran to its end");
}
"""


@pytest.fixture
def windowed(road):
    """Runs the program of ranges with a timeline of a window; its ranges by name."""
    headers = Path(shutil.which("nsys")).resolve().parent / "nvtx" / "include"
    if not headers.is_dir() or shutil.which("cc") is None:
        pytest.skip("this nsys has no headers of NVTX, or there is no C compiler")
    (road.home / "prog.c").write_text(PROGRAM_OF_RANGES)
    build = ["cc", f"-I{headers}", road.home / "prog.c", "-o", road.home / "prog", "-ldl", "-lpthread"]
    subprocess.run(build, check=True, capture_output=True)

    def run(window, returncode=0, command="./prog"):
        timeline = f"[timeline: {{tool: nsys, trace: [nvtx], {window}}}]"
        done = road.run(HEAD.replace("[baseline]", timeline) + f"app: {{command: {command}, files: [prog]}}\n")
        done = retried(done, *road.runs(), road.nsw)  # an error of the window itself is none that a retry cures
        assert done.returncode == returncode, done.stdout + done.stderr
        assert any("ran to its end" in file.read_text() for file in road.root.rglob("stdout"))
        rows = json.loads(road.nsw("summarize", "--table", "nvtx_summary", "--json").stdout)["rows"]
        return {row["name"]: row["calls"] for row in rows}

    return run


@pytest.mark.nsys
def test_a_timeline_within_a_range_holds_its_first_instance_alone_and_the_program_runs_on(windowed):
    assert windowed("within: block") == {"block": 1, "step": 1}


@pytest.mark.nsys
def test_a_timeline_of_several_ranges_is_read_as_one(windowed, road):
    assert windowed("within: {nvtx: block, count: 3}") == {"block": 3, "step": 3}
    assert "no problem" in road.nsw("problems").stdout


@pytest.mark.nsys
def test_a_window_that_caught_less_than_was_asked_for_is_an_error(windowed, road):
    assert windowed("within: {nvtx: block, count: 9}", returncode=1) == {"block": 4, "step": 4}
    assert "nsys captured 4 of 9 ranges 'block'" in road.nsw("problems").stdout


@pytest.mark.nsys
def test_a_timeline_by_the_clock_does_not_end_the_program(windowed):
    # 12 s: much longer than nsys takes to end
    assert 0 < windowed("for: 1s", command="./prog 300")["block"] < 300


@pytest.mark.nsys
@pytest.mark.parametrize("window", ["1s", "60s"])
def test_a_program_that_fails_after_or_within_a_window_by_the_clock_is_a_failed_run(road, window):
    (road.home / "prog.sh").write_text("sleep 6\nexit 7\n")
    done = road.run(
        HEAD.replace("[baseline]", f"[timeline: {{tool: nsys, trace: [nvtx], for: {window}}}]")
        + "app: {command: bash prog.sh, files: [prog.sh]}\n"
    )
    done = retried(done, *road.runs(), road.nsw)
    assert done.returncode == 1
    assert "exit status 7" in done.stdout + done.stderr


def test_a_timeline_within_a_range_that_no_tool_can_begin_at_is_refused(road):
    for timeline, words in (
        ("{tool: nvprof, within: step}", "nvprof records the whole program"),
        ("{trace: [cuda], within: step}", "`within` needs nvtx traced"),
        ("{within: 'a@b'}", "nsys cannot begin at a range with '@' in its name"),
    ):
        done = road.run(HEAD.replace("[baseline]", f"[timeline: {timeline}]") + "app: {command: 'true'}\n")
        assert (done.returncode, words in done.stderr) == (2, True), done.stderr


def test_a_pass_whose_profiler_is_missing_is_absent_and_the_others_are_done(road):
    road.environment["PATH"] = "/usr/bin:/bin"
    done = road.run(HEAD.replace("[baseline]", "[baseline, timeline: {tool: nvprof}]") + "app: {command: 'true'}\n")
    assert done.returncode == 0, done.stderr
    assert "missing: pass timeline (1 run): nvprof is not on PATH" in done.stdout


def test_a_recipe_of_which_nothing_can_be_done_is_refused(road):
    road.environment["PATH"] = "/usr/bin:/bin"
    done = road.run(HEAD.replace("[baseline]", "[timeline: {tool: nvprof}]") + "app: {command: 'true'}\n", exits=2)
    assert "no run of this recipe is possible on site here" in done.stderr
    assert not road.root.exists()


def test_the_sites_scratch_folder_takes_variables_of_this_machine(road):
    road.environment["PLACE"] = str(road.home / "far away")
    (road.home / "sites.yaml").write_text(
        "nsw: 1\nsites: {here: {scheduler: local, gpus: {per_node: 0}, scratch: $PLACE/nsw}}\n"
    )
    done = road.run(HEAD + "app: {command: echo hello}\n", exits=0)
    assert list((road.home / "far away" / "nsw").glob("*/runs/*/attempt-1/stdout"))
    del road.environment["PLACE"]
    done = road.run(HEAD + "app: {command: echo hello}\n", exits=2)
    assert "and set its variables" in done.stderr


def test_a_scratch_folder_that_cannot_be_made_is_told_before_there_is_a_campaign(road):
    file = road.home / "occupied"
    file.write_text("no folder")
    (road.home / "sites.yaml").write_text(
        f"nsw: 1\nsites:\n  here: {{scheduler: local, gpus: {{per_node: 0}},\n    scratch: '{file}/nsw'}}\n"
    )
    done = road.run(HEAD + "app: {command: echo hello}\n", exits=2)
    assert "sites.yaml:4:14: scratch is " in done.stderr
    assert "occupied is no folder" in done.stderr
    assert not road.root.exists()


@pytest.mark.far
def test_a_build_that_uses_a_parameter_is_done_once_for_each_of_its_values(road):
    (road.home / "make.sh").write_text('echo "$1" >>built; echo "echo $1" >prog.sh\n')
    app = "app: {command: bash prog.sh, files: [make.sh], build: {command: 'bash make.sh {{ kind }}'}}\n"
    road.run(HEAD + app + "matrix: {kind: [one, two], n: [1, 2]}\n", exits=0)
    assert road.output("kind-one_n-2.baseline.r1") == "one\n"
    assert road.output("kind-two_n-1.baseline.r1") == "two\n"
    scratch = road.scratch
    assert (scratch / "app-kind-one" / "built").read_text() == "one\n"
    assert (scratch / "app-kind-two" / "built").read_text() == "two\n"
