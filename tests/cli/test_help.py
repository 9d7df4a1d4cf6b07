"""`nsw help TOPIC` and the manual page: what the docs say, in an installed nsw too."""

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from nsw.cli.application import COMMANDS
from nsw.cli.topics import TOPICS, text_of
from nsw.site.load import read_sites

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("topic", TOPICS)
def test_a_topic_prints_its_page(nsw, topic):
    said = nsw("help", topic, exits=0)
    words = text_of(topic).split()
    assert len(words) > 40
    assert words[1] in said.out  # of the title, behind #


def test_a_section_is_printed_alone_and_of_its_table_the_keys_that_are_meant():
    assert text_of("recipe").startswith("## Recipe\n")
    assert "| `app.command` |" in text_of("recipe")
    assert "## Site" not in text_of("recipe")
    assert text_of("site").startswith("## Site\n")
    assert "| `app.figures.NAME.regex` |" in text_of("figures")
    assert "| `app.command` |" not in text_of("figures")
    assert "### Figures" in text_of("figures")
    assert "### Passes" not in text_of("figures")  # a heading whose keys are all left out
    assert "| `passes[].counters` |" in text_of("passes")


def test_help_site_begins_with_a_sites_file_that_loads(tmp_path):
    (file,) = re.findall(r"```yaml\n(.*?)```", text_of("site"), re.DOTALL)
    (tmp_path / "sites.yaml").write_text(file)
    (loaded,) = read_sites(tmp_path / "sites.yaml", requested=True)
    assert (loaded.site.name, loaded.site.scheduler) == ("mycluster", "slurm")


def test_words_of_programs_keep_their_backticks_and_links_their_words(nsw):
    said = nsw("help", "environment")
    assert "`NSW_ROOT`" in said.out
    assert "(`nsw help layout`)" in said.out
    assert "](" not in said.out


def test_no_topic_is_called_like_a_command_and_all_are_listed(nsw):
    assert not set(TOPICS) & set(COMMANDS)
    listed = nsw("help").out
    assert all(topic in listed for topic in TOPICS)
    said = nsw("help", "exit-code", exits=2)
    assert "did you mean 'exit-codes'?" in said.err
    assert "Usage: nsw plan" in nsw("help", "plan").out


def test_the_wheel_holds_the_pages_of_the_topics():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    pages = {f"docs/{page}": f"nsw/_data/docs/{page}" for page, _, _ in TOPICS.values()}
    assert {path: target for path, target in included.items() if path.startswith("docs/")} == pages


def test_the_manual_page_is_that_of_todays_commands():
    spec = importlib.util.spec_from_file_location("man_page", ROOT / "tools" / "man_page.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.PAGE.read_text() == tool.text(), "docs/nsw.1 is out of date: python tools/man_page.py"


@pytest.mark.skipif(not shutil.which("man"), reason="no man")
def test_man_shows_each_command_without_a_warning():
    shown = subprocess.run(
        ["man", "--warnings", "-l", ROOT / "docs" / "nsw.1"], capture_output=True, text=True, check=True,
        env={"MANWIDTH": "200", "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANROFFOPT": "-c", "TERM": "dumb"},
    )  # fmt: skip
    assert shown.stderr == ""
    assert all(f"nsw {name}" in shown.stdout for name in COMMANDS)
    assert "NSW_ROOT" in shown.stdout


def test_help_names_what_a_first_day_looks_for(nsw):
    compare, read = (" ".join(nsw(command, "--help").out.replace("│", " ").split()) for command in ("compare", "read"))
    for word in ("case", "figure", "kernel", "class", "range", "metric", "function"):
        assert word in compare.partition("--by")[2].partition("--same")[0]
    assert "PNG needs nsw's extra `png`" in compare
    assert ".nsys-rep, .sqlite" in read
    assert "--formats lists all" in read


def test_a_png_without_its_extra_names_it(nsw, home, monkeypatch):
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    head = '"ID","Kernel Name","gpu__time_duration.sum"\n"","","ns"\n'
    for side, ns in (("before", 800_000), ("after", 100_000)):
        (home / f"{side}.csv").write_text(head + f'"0","void charge(int)","{ns}"\n')
    refused = nsw("compare", "before.csv", "after.csv", "-o", "plot.png", exits=2)
    assert "needs the package resvg-py" in refused.err
    assert "pip install 'nsw[png]'" in refused.err


def test_a_page_that_a_topic_names_is_a_topic_or_a_page_of_the_docs(nsw):
    said = " ".join(nsw("help", "answers").out.split())
    assert "`nsw help tables`" in " ".join(nsw("help", "python").out.split())
    assert "docs/causes.md has all" in said
    named = [word for word in re.findall(r"\S+\.md", said) if not word.startswith(("docs/", "(docs/"))]
    assert named == []
