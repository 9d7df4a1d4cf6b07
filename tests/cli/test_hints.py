"""What remains on the screen: the verdict last, warnings short, and commands that work as they are printed."""

import io
import os
import re
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from nsw.cli.output import print_on_stderr
from nsw.present import summary_view
from nsw.present import terminal as typed
from nsw.present.problems import shorten_line

PROGRAM = Path(sys.executable).with_name("nsw")


@pytest.fixture
def as_if_typed(monkeypatch):
    def call(word, on_path=None):
        typed.program.cache_clear()
        monkeypatch.setattr(sys, "argv", [word])
        monkeypatch.setattr(typed.shutil, "which", lambda _: on_path)
        return typed.with_typed_command("see `nsw logs RUN`")

    yield call
    typed.program.cache_clear()


def test_hints_name_the_program_as_it_was_typed(as_if_typed, tmp_path):
    mine = tmp_path / "bin" / "nsw"
    mine.parent.mkdir()
    mine.touch()
    assert as_if_typed(str(mine), on_path=str(mine)) == "see `nsw logs RUN`"
    assert as_if_typed(str(mine)) == "see `nsw logs RUN`"
    assert as_if_typed(".venv/bin/nsw") == "see `.venv/bin/nsw logs RUN`"
    assert as_if_typed(str(mine), on_path="/usr/bin/true") == f"see `{shlex.quote(str(mine))} logs RUN`"
    script = tmp_path / "nsw"
    script.write_text(f'#!/bin/sh\nexec {mine} "$@"\n')
    assert as_if_typed(str(mine), on_path=str(script)) == "see `nsw logs RUN`"
    assert as_if_typed("/x/nsw/__main__.py") == f"see `{shlex.quote(sys.executable)} -m nsw logs RUN`"
    assert (
        as_if_typed("/x/nsw/__main__.py", on_path=sys.executable)
        == f"see `{Path(sys.executable).name} -m nsw logs RUN`"
    )
    assert as_if_typed("/x/pytest/__main__.py") == "see `nsw logs RUN`"
    assert as_if_typed("pytest") == "see `nsw logs RUN`"


@pytest.mark.skipif(not PROGRAM.exists(), reason="nsw is not installed beside this Python")
def test_the_closing_hint_works_as_it_is_printed(tmp_path):
    environment = os.environ | {"PATH": f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"}
    run = partial(subprocess.run, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    done = run([PROGRAM, "run", "alexnet_scaling", "--site", "demo", "--root", tmp_path / "a root"])
    assert done.returncode == 0, done.stderr
    (hint,) = re.findall(r"`([^`]* summarize [^`]*)` has all tables and findings", done.stdout)
    (page,) = re.findall(r"`([^`]* report [^`]*)` writes this as a page", done.stderr)
    whole = page.replace(" report ", " problems ")  # of recordings a run names none: nothing can be done about them
    for command in (hint, page, whole):
        again = run(shlex.split(command))
        assert again.returncode == 0, again.stderr
    assert done.stdout.startswith("90 % efficiency at gpus=4, batch=128; 67 % at batch=8")
    assert "GPU-hours" not in done.stderr
    assert "profile with an nsys as new as the CUDA driver" in run(shlex.split(whole)).stdout


def test_the_answer_of_a_run_knows_every_line_that_is_printed_below_it(nsw, monkeypatch):
    below = []
    monkeypatch.setattr(summary_view, "show_summary", lambda *_, **options: below.extend(options["below"]))
    said = nsw("run", "alexnet_scaling", "-s", "demo", "--yes", "--case", "gpus=1", "--case", "batch=8")
    assert below[0] == "1 run: 1 done"
    assert said.err.endswith("\n".join([*below, ""]))


def test_a_long_warning_ends_with_a_word():
    text = "warning: " + "word " * 60
    short = shorten_line(text)
    assert len(short) <= 160
    assert short.endswith("word ...")
    assert shorten_line("warning: short") == "warning: short"


def test_problems_of_a_campaign_without_any(nsw, good):
    assert nsw("problems").out == f"{good.name}: no problem\n"
    assert '"problems": []' in nsw("problems", "--json").out


def test_sentences_on_stderr_break_between_words_and_commands_stay_whole(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    monkeypatch.setenv("COLUMNS", "40")
    print_on_stderr("28 files would be removed, which frees 448 bytes; `nsw fetch --file '*'` downloads files of runs")
    lines = shown.getvalue().splitlines()
    assert max(map(len, lines)) <= 40
    assert any("fetch --file '*'`" in line for line in lines)
    assert (
        shown.getvalue().split()
        == (
            f"28 files would be removed, which frees 448 bytes; {typed.with_typed_command('`nsw fetch')} --file '*'` downloads files of runs"
        ).split()
    )
