"""What a Tab gives: in a bash that has sourced the script, and by the protocol of the other shells."""

import ast
import os
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nsw.analysis import blocks
from nsw.cli import completion
from nsw.cli.completion import SHIPPED, load_commands
from nsw.present.plots import _PICTURES
from nsw.resources import recipes_folder

# completed as files by the shell, or numbers
NOT_KNOWN = {
    "rename",
    "share",
    "at",
    "at_most",
    "for_model",
    "over",
    "to",
    "within",
    "rules",
    "pairs",
    "note",
    "since",
    "figure",
    "same",
    "time",
    "settings",
    "cases",
    "exclude",
    "sites",
    "root",
    "output",
    "trace",
    "script",
    "csv",
    "parquet",
    "sql",
    "sqlite",
    "ranks",
    "step",
    "into",
    "files",
    "lines",
    "running",
    "max_unpacked",
    "max_memory",
    "max_time",
    "download",
    "steps",
    "where",
    "launch",
    "top",
    "command",
    "new_site",
    "host",
}


@pytest.fixture
def bash(home, tmp_path):
    """`bash("nsw plan rec")`: what a user is offered there, in a bash that completes nsw."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "nsw").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m nsw "$@"\n')
    (programs / "nsw").chmod(0o755)
    # typer prints the script of the shell that it runs in, so one is needed; without the exit, bash would become nsw
    script = subprocess.run(
        ["bash", "--norc", "-c", '"$0" -m nsw --show-completion; exit $?', sys.executable],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    (tmp_path / "nsw.bash").write_text(script)
    text = (
        f'source {shlex.quote(str(tmp_path))}/nsw.bash; complete -p nsw >/dev/null || exit 9; COMP_WORDS=("$@"); COMP_CWORD=$(($#-1));'
        ' _nsw_completion nsw; printf "%s\\n" "${COMPREPLY[@]}"'
    )

    def offered(line: str) -> list[str]:
        words = line.split(" ")
        # as readline does: = stands alone
        words = [part for word in words for part in (word.replace("=", " = ").split(" ") if "=" in word else [word])]
        done = subprocess.run(
            ["bash", "--norc", "-c", text, "bash", *words],
            capture_output=True, text=True, cwd=home, check=False,
            env=os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"},
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.split("\n")[:-1] if done.stdout.strip() else []

    return offered


@pytest.fixture
def campaigns(nsw, recipe, home):
    """A campaign with a failed run, and a recipe and a sites file beside it, one recipe deeper."""
    assert nsw("run", recipe("{command: 'exit {{ n }}'}", "matrix: {n: [0, 3]}\n"), "-s", "here").code == 1
    (home / "more").mkdir()
    shutil.copy(home / "r.yaml", home / "more" / "deep.yaml")
    (home / "compose.yaml").write_text("services: {}\n")
    return next(Path("campaigns").iterdir()).name


def test_bash_offers_what_there_is(bash, campaigns):
    for line, offered in {
        "nsw re": ["render", "resume", "retry", "reread", "report", "read"],
        "nsw plan ": [
            "r.yaml",
            "more/deep.yaml",
            *sorted(file.name for file in recipes_folder().glob("*.yaml")),
        ],
        "nsw plan more/": ["more/deep.yaml"],
        "nsw plan r.yaml --site ": ["here", "batch", "dear", "local", "demo"],
        "nsw plan --site=he": ["here"],
        "nsw status ": [campaigns],
        "nsw logs -c " + campaigns[:3]: [campaigns],
        "nsw logs n": ["n-0.baseline.r1", "n-3.baseline.r1"],
        "nsw retry ": ["n-3.baseline.r1"],
        "nsw retry n-3.baseline.r1 ": [],
        "nsw summarize --case ": ["n-0", "n-3"],
        "nsw summarize --table sc": ["scaling"],
        "nsw read -t gpu_s": ["gpu_summary"],
        "nsw status --format ": ["table", "json", "csv", "parquet"],
        "nsw schema ": ["recipe", "sites", "answers"],
        "nsw status --f": ["--format"],
        "nsw status -f json --f": [],
        "nsw read ": [],
        "nsw --ver": ["--version"],
    }.items():
        assert bash(line) == offered, line


def test_nothing_and_no_word_is_said_where_nothing_is_known(bash, home):
    (home / "sites.yaml").write_text("sites: [\n")
    (home / "campaigns" / "x").mkdir(parents=True)
    (home / "campaigns" / "x" / "campaign.db").write_bytes(b"no database")
    assert bash("nsw plan --site ") == ["local", "demo"]
    for line in ("nsw logs ", "nsw nothing ", "nsw plan nowhere/", 'nsw plan "un', "nsw logs -c y "):
        assert bash(line) == [], line


def test_a_pass_is_one_of_the_recipe_on_the_line(bash, home):
    (home / "p.yaml").write_text(
        "nsw: 1\napp: {command: x}\npasses: [baseline, timeline: {name: first}, {timeline: }, {host: {name: h}}]\n"
    )
    (home / "q.yaml").write_text("nsw: 1\napp: {command: x}\npasses: 3\n")
    for line, offered in {
        "nsw plan p.yaml --pass ": ["baseline", "first", "timeline", "h"],
        "nsw run p.yaml --pass first --pass ": ["baseline", "timeline", "h"],
        "nsw plan p.yaml --pass=f": ["first"],
        "nsw plan hot_kernels --pass c": ["counters"],
        "nsw plan --pass ": [],
        "nsw plan q.yaml --pass ": [],
    }.items():
        assert bash(line) == offered, line


def test_what_never_answers_is_not_waited_for(bash, home):
    (home / "more").mkdir()
    os.mkfifo(home / "more" / "x.yaml")
    os.mkfifo(home / "y.yaml")
    assert bash("nsw plan mor") == []


def test_a_recipe_that_stands_for_more_than_its_size_is_not_unfolded(bash, home):
    lines = "\n".join(f"x{n}: &x{n} [*x{n - 1}, *x{n - 1}]" for n in range(1, 40))
    (home / "p.yaml").write_text(f"nsw: 1\nx0: &x0 [1, 1]\n{lines}\npasses: [{{timeline: {{name: *x39}}}}]\n")
    (home / "q.yaml").write_text("nsw: 1\npasses: " + "[" * 100_000)
    for name in ("p.yaml", "q.yaml"):
        assert bash(f"nsw plan {name} --pass ") == []


def ask(home, shell: str, line: str, **more: str) -> subprocess.CompletedProcess[str]:
    asked = {"_NSW_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": line, **more}
    return subprocess.run([sys.executable, "-m", "nsw"], capture_output=True, text=True, cwd=home, check=False,
                          env=os.environ | asked)  # fmt: skip


def test_zsh_is_answered_in_its_own_words(home):
    assert ask(home, "zsh", "nsw schema ").stdout == (
        "local -a nsw_values nsw_shown; nsw_values=($'recipe' $'sites' $'answers'); nsw_shown=($'recipe' $'sites' $'answers');"
        " compadd -d nsw_shown -a nsw_values\n"
    )
    assert r"$'throttle\x20\x20--\x20Change\x20how" in ask(home, "zsh", "nsw thr").stdout
    assert ask(home, "zsh", "nsw read ").stdout == "_files\n"


def test_a_name_is_inserted_quoted_and_none_that_steers_or_is_taken_for_an_option(bash, home):
    for name in ("x$(touch PWNED).yaml", "y\x1b[2J.yaml", "y\nz.yaml", "--sites=z.yaml"):
        (home / name).write_text("nsw: 1\napp: {}\n")
    assert bash("nsw plan x") == [r"x$'$\x28touch PWNED\x29.yaml'"]
    assert bash("nsw plan y") == []
    assert "./--sites=z.yaml" in bash("nsw plan ")
    assert bash("nsw plan 'x") == bash('nsw plan "x') == bash("nsw plan x\\") == []  # bash's own completion knows how
    (home / "quite plain.yaml").write_text("nsw: 1\napp: {}\n")
    assert bash("nsw plan quite") == ["quite$' plain.yaml'"]


def test_fish_hears_whether_files_are_meant_and_what_else(home):
    known = ask(home, "fish", "nsw plan --site he", _TYPER_COMPLETE_FISH_ACTION="get-args")
    assert known.stdout == "here\n"
    assert ask(home, "fish", "nsw plan --site=he", _TYPER_COMPLETE_FISH_ACTION="get-args").stdout == "--site=here\n"
    assert ask(home, "fish", "nsw plan --site he", _TYPER_COMPLETE_FISH_ACTION="is-args").returncode == 0
    assert ask(home, "fish", "nsw read ", _TYPER_COMPLETE_FISH_ACTION="is-args").returncode == 1
    assert "render\tPrint the job scripts" in ask(home, "fish", "nsw re", _TYPER_COMPLETE_FISH_ACTION="get-args").stdout


def test_a_shell_that_is_not_known_here_is_left_to_typer(home):
    done = ask(home, "powershell", "nsw sta", _TYPER_COMPLETE_WORD_TO_COMPLETE="sta")
    assert done.stdout.startswith("status:::")


def test_the_shipped_words_are_those_of_the_commands():
    text = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "completion_words.py"))["text"]
    assert SHIPPED.read_text(encoding="utf-8") == text(), "run: python tools/completion_words.py"


def test_every_plot_that_an_analysis_names_is_completed():
    kinds = {name for name, block in vars(blocks).items() if getattr(block, "kind", None) in _PICTURES}
    calls = [
        node
        for file in (Path(__file__).parents[2] / "nsw" / "analysis").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and node.args
        if (name := ast.unparse(node.func)) in kinds or name.endswith("_plot")
    ]
    named = {call.args[0].value for call in calls if isinstance(call.args[0], ast.Constant)}
    assert {"scaling", "roofline", "waterfall"} <= named
    assert named <= {*completion._PLOTS, *completion._OF_COMPARISONS}


def test_of_each_parameter_it_is_known_what_completes_it():
    _, commands = load_commands()
    for command in commands.values():
        for parameter in command.parameters:
            known = parameter.name in completion._BY_PARAMETER or parameter.name in NOT_KNOWN
            assert known or parameter.choices or not parameter.takes, (command.name, parameter.name)


def test_completion_loads_neither_the_parser_nor_what_reads_reports(home):
    code = (
        "import sys; from nsw.cli.completion import completions;"
        "completions(['plan'], ''); completions(['plan', '-s'], ''); completions(['summarize', '--table'], '');"
        "print(sorted({'typer', 'pydantic', 'pandas', 'numpy', 'pyarrow', 'rich', 'jinja2'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=home)
    assert done.stdout == "[]\n"


def test_many_runs_are_bounded(nsw, recipe, home, monkeypatch):
    monkeypatch.setattr(completion, "_MOST_RUNS", 3)
    assert nsw("run", recipe("{command: 'true'}", "repeats: 5\n"), "-s", "here").code == 0
    assert [item.value for item in completion.completions(["logs"], "case")] == [
        f"case.baseline.r{n}" for n in (1, 2, 3)
    ]
