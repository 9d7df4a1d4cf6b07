"""0 good, 1 some failed, 2 bad input, 3 unreachable: for each command; errors are one `error:` on stderr."""

import json
import subprocess
import sys

import pytest

from .conftest import HEAD


def refused(said, *words, code=2):
    """The command was refused on stderr, with these words, and printed nothing else."""
    assert said.code == code, said
    assert said.err.startswith("error: ") or "\nerror: " in said.err
    assert said.out == ""
    for word in words:
        assert word in said.err


GOOD = [
    ["status"], ["status", "--runs"], ["status", "--json"], ["status", "-f", "csv"], ["summarize"],
    ["summarize", "--json"], ["summarize", "--table", "figures", "-f", "csv"], ["ls"], ["ls", "--json"],
    ["ls", "-f", "csv"], ["logs", "r1"], ["resume"], ["retry"], ["cancel"], ["sites"], ["sites", "--json"],
    ["sites", "-f", "csv"], ["schema", "recipe"], ["schema", "sites"], ["read", "--formats"],
    ["read", "--formats", "--json"], ["plan", "r.yaml", "-s", "here"], ["plan", "r.yaml", "-s", "here", "--json"],
    ["plan", "r.yaml", "-s", "here", "-f", "csv"], ["render", "r.yaml", "-s", "here"],
    ["render", "r.yaml", "-s", "here", "--into", "scripts"], ["--version"], ["--help"], ["run", "--help"], [],
    ["status", "-f", "parquet", "-o", "s.parquet"], ["summarize", "--table", "figures", "-f", "parquet", "-o", "s.parquet"],
]  # fmt: skip


def test_what_goes_well_ends_with_0(nsw, good):
    codes = {" ".join(words): nsw(*words).code for words in GOOD}
    assert codes == dict.fromkeys(codes, 0)


def test_json_of_every_command_is_one_object_with_its_version(nsw, good):
    for words in (w for w in GOOD if "--json" in w):
        data = json.loads(nsw(*words).out)
        assert data["nsw_json"] == 1, words


def test_a_campaign_with_a_failed_run_ends_with_1_and_looking_at_it_too(nsw, failing):
    assert nsw("resume").code == 1
    assert nsw("summarize").code == 1
    assert nsw("retry").code == 1
    assert nsw("status").code == 0
    assert "exit status 3" in nsw("status", "--json").out
    assert nsw("ls").code == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["plan", "none.yaml"], ["there is no recipe none.yaml", "shipped recipes"]),
        (["plan", "cpu_quickstar"], ["did you mean 'cpu_quickstart.yaml'?"]),
        (["render", "none.yaml"], ["there is no recipe"]),
        (["run", "none.yaml"], ["there is no recipe"]),
        (["plan", "cpu_quickstart", "-s", "hero"], ["there is no site 'hero'", "did you mean 'here'?"]),
        (["plan", "cpu_quickstart", "--sites", "none.yaml"], ["none.yaml: cannot be read"]),
        (["sites", "--sites", "none.yaml"], ["none.yaml: cannot be read"]),
        (["status"], ["there is no campaign", "nsw run RECIPE"]),
        (["status", "nope"], ["no campaign 'nope'", "nsw ls"]),
        (["resume"], ["there is no campaign"]),
        (["retry"], ["there is no campaign"]),
        (["cancel"], ["there is no campaign"]),
        (["summarize"], ["there is no campaign"]),
        (["logs", "r1"], ["there is no campaign"]),
        (["logs"], ["there is no campaign"]),
        (["read"], ["no file was named"]),
        (["read", "x", "--table", "gpu_sumary"], ["did you mean 'gpu_summary'?"]),
        (["schema", "nothing"], ["'DOCUMENT': 'nothing' is not one of"]),
        (["throttle", "many"], ["'N': it is not a whole number"]),
        (["throttle", "--", "-1"], ["'N': it must be at least 0"]),
        (["plan"], ["Missing argument", "nsw plan --help"]),
        (["plan", "cpu_quickstart", "--site"], ["requires an argument"]),
        (["sttus"], ["there is no command 'sttus'", "did you mean 'status'?"]),
        (["diff"], ["there is no command 'diff'", "did you mean 'nsw compare'?"]),
        (["demo"], ["there is no command 'demo'", "did you mean 'nsw run alexnet_scaling --site demo'?"]),
        (["perfetto"], ["there is no command 'perfetto'", "did you mean 'nsw export --trace'?"]),
        (
            ["compare", "a", "b"],
            [
                "'a' is no campaign, baseline, run or report here: no campaign 'a' under",
                "a case of a campaign is CAMPAIGN:CASE",
            ],
        ),
        (["gate", "a", "b", "--rule", "speed: -2%"], ["'a' is no campaign, baseline, run or report here"]),
        (["summarize", "."], ["the folder . is no campaign", "nsw read ."]),
        (["gate", "a", "b", "--rule", "speed: 2"], ["--rule 'speed: 2'", "-2%"]),
        (["status", "--jsn"], ["No such option: --jsn", "--json"]),
        (["status", "--format", "xml"], ["'xml'"]),
        (["logs", "r", "-n", "many"], ["--lines"]),
        (["plan", "cpu_quickstart", "-f", "parquet"], ["--format parquet writes a file", "--output"]),
    ],
)
def test_bad_input_ends_with_2_and_says_what_to_do(nsw, words, told):
    refused(nsw(*words), *told)


def test_a_bad_recipe_is_told_with_its_places_by_every_command_that_takes_one(nsw, home):
    (home / "bad.yaml").write_text(HEAD + "app: {comand: x}\nrepeats: none\n")
    for command in ("plan", "render", "run"):
        refused(nsw(command, "bad.yaml", "-s", "here"), "bad.yaml:5:", "bad.yaml:6:", "did you mean 'command'?", "^")
    assert not (home / "campaigns").exists()


def test_of_a_recipe_that_is_not_there_the_hint_names_those_that_are(nsw, home):
    (home / "mine").mkdir()
    (home / "mine" / "bench.yaml").write_text(HEAD)
    refused(nsw("run", "mine/bnch.yaml", "-s", "here"), "there is no recipe", "did you mean 'mine/bench.yaml'?")
    refused(nsw("run", "mine/qwertyuiop.yaml", "-s", "here"), "hint: files there: mine/bench.yaml; shipped recipes: ")
    refused(nsw("run", "none/x.yaml", "-s", "here"), "hint: shipped recipes: ")


def test_a_bad_sites_file_is_told_with_its_place(nsw, home):
    (home / "sites.yaml").write_text("nsw: 1\nsites:\n  here: {schedular: local}\n")
    refused(nsw("sites"), "sites.yaml:3:", "did you mean 'scheduler'?")


def test_a_site_without_its_scheduler_ends_with_3_and_submits_nothing(nsw, recipe, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    refused(nsw("run", recipe("{command: 'true'}"), "-s", "batch", "--yes"), "sinfo", code=3)


def test_what_concerns_one_run_or_case_names_the_nearest(nsw, good):
    refused(nsw("logs", "baselin.r"), "there is no run")
    refused(nsw("logs", "baseline"), "which run? there are 2", "case.baseline.r2  done")
    refused(nsw("summarize", "--case", "cas"), "did you mean 'case'?")
    refused(nsw("summarize", "--table", "figure"), "did you mean 'figures'?")
    refused(nsw("retry", "nothing"), f"there is no run nothing in {good.name}, the newest campaign", "-c")
    refused(nsw("retry", "nothing", "-c", good.name), f"there is no run nothing in {good.name}\n")
    path = f"{good}/reports/case.baseline.r2/stdout"
    refused(nsw("logs", path), f"not by a path: case.baseline.r2 -c {good.name}")
    refused(nsw("logs", f"{good}/reports"), f"`nsw status --runs -c {good.name}` lists")


def test_a_campaign_may_be_named_by_folder_id_or_its_beginning(nsw, good):
    for named in (str(good), good.name, good.name[:5]):
        assert nsw("status", named).code == 0


def test_nothing_is_asked_without_a_terminal_and_a_dear_plan_is_refused(nsw, recipe, home):
    (home / "sites.yaml").write_text(
        "nsw: 1\nsites:\n  here: {scheduler: local, gpus: {per_node: 0}, confirm_above: 1 node-hour}\n"
    )
    name = recipe("{command: 'true'}", "repeats: 100\n")
    refused(nsw("run", name, "-s", "here"), "3.33 node-hours", "--yes")
    assert not (home / "campaigns").exists()


@pytest.mark.parametrize("words", [["--help"], ["schema", "recipe"], ["read", "--formats"], ["metrics", "ls"]])
def test_a_reader_that_has_enough_is_no_failure(words):
    """`nsw ... | head -1`: the pipe is closed before nsw has printed all."""
    program = subprocess.Popen(
        [sys.executable, "-m", "nsw", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    program.stdout.close()
    _, said = program.communicate(timeout=300)
    assert (program.returncode, said) == (0, "")


def test_what_libraries_do_at_the_end_of_a_process_spoils_no_exit_code(home):
    """Arrow's threads ended one small campaign of seven with SIGABRT, after its answer."""
    code = (
        "import atexit, ctypes, sys; libc = ctypes.CDLL(None); libc.__cxa_atexit(libc.abort, None, None);"
        " atexit.register(print, 'what waits for the end');"
        " from nsw.cli.main import main; sys.argv = ['nsw', 'sites']; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=home)
    assert (done.returncode, done.stderr) == (0, "")
    assert "built in" in done.stdout
    assert done.stdout.endswith("what waits for the end\n")
