"""Links that another user put where nsw writes: they cost nobody a file, and lead to none."""

import cProfile
import json
import os
import shutil
from pathlib import Path

import pytest

from nsw.cli.output import Target
from tests.cli.conftest import HEAD, in_folder


@pytest.fixture
def precious(tmp_path):
    """A file of who uses nsw, elsewhere."""
    path = tmp_path / "precious"
    path.write_text("mine")
    return path


@pytest.fixture
def shared(tmp_path, monkeypatch):
    """A folder where others may write."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("NSW_ROOT", "NSW_SITES", "NSW_SITE"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "shared"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_unfinished_file_of_a_table_follows_no_link(shared, precious, form):
    cProfile.runctx("sum(())", {}, {}, str(shared / "x.pstats"))
    (shared / "out").mkdir()
    (shared / "out" / f".functions.{form}.part").symlink_to(precious)
    said = in_folder(shared, "read", "x.pstats", "-f", form, "-o", "out/")
    assert said.code == 0, said
    assert precious.read_text() == "mine"
    assert (shared / "out" / f"functions.{form}").is_file()
    assert not (shared / "out" / f"functions.{form}").is_symlink()


def test_scripts_follow_no_link(shared, precious):
    (shared / "r.yaml").write_text(HEAD + "app: {command: echo}\n")
    assert in_folder(shared, "render", "r.yaml", "--into", "out").code == 0
    (script, *_) = (shared / "out").glob("*.sh")
    text = script.read_text()
    script.unlink()
    script.symlink_to(precious)
    assert in_folder(shared, "render", "r.yaml", "--into", "out").code == 0
    assert precious.read_text() == "mine"
    assert script.read_text() == text


@pytest.mark.parametrize("words", [("--", "echo"), ("--from", "cpu_quickstart")], ids=str)
def test_a_first_recipe_is_not_written_where_a_link_leads_that_leads_nowhere(shared, tmp_path, words):
    (shared / "recipe.yaml").symlink_to(tmp_path / "new")
    said = in_folder(shared, "init", "-o", "recipe.yaml", *words)
    assert said.code == 2, said
    assert "recipe.yaml already exists" in said.err
    assert not (tmp_path / "new").exists()


def test_a_table_in_a_folder_goes_in_the_place_of_a_link(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "figures.csv").symlink_to(precious)
    Target("csv", tmp_path / "out").of_table("figures").put_rows([{"a": 1}], ["a"])
    assert precious.read_text() == "mine"
    assert (tmp_path / "out" / "figures.csv").read_text() == "a\n1\n"


def test_output_is_not_written_through_a_link_of_another_user_and_through_ones_own_it_is(shared, victim, neighbour):
    folder, dear = victim.home.parent / "theirs", victim.home / "dear"
    folder.mkdir()
    for name, user in (("own", victim), ("out", neighbour)):
        (link := folder / f"{name}.json").symlink_to(dear)
        user.owns(link)
    folder.chmod(0o777)
    dear.write_text("dear")
    victim.owns(dear)
    refused = victim.nsw("sites", "--json", "-o", folder / "out.json", exits=2)
    assert "it is a link that" in refused.stderr
    assert dear.read_text() == "dear"
    assert victim.nsw("sites", "--json", "-o", folder / "own.json").returncode == 0
    assert "nsw_json" in dear.read_text()


def _next_processes() -> range:
    """The numbers of processes that are started soon."""
    last = int(Path("/proc/loadavg").read_text().split()[-1])
    return range(last, last + 1500)


def test_a_baseline_is_written_through_no_link_of_another_user(campaign_of, victim, neighbour):
    campaign = campaign_of(victim)
    (dear := victim.home / "dear").write_text("dear")
    victim.owns(dear)
    root = neighbour.home / "campaigns"
    shutil.copytree(campaign, root / campaign.name)
    neighbour.owns(root)
    root.chmod(0o777)
    for process in _next_processes():
        neighbour.owns_link(root / f".baselines.json.{process}", dear)
    done = victim.nsw("baseline", "set", "main", campaign.name, "--root", root)
    assert (done.returncode, dear.read_text()) == (0, "dear"), done.stderr
    assert json.loads((root / "baselines.json").read_text()) == {"main": campaign.name}


@pytest.mark.parametrize("kind", ["fifo", "link"])
def test_baselines_of_another_user_that_are_no_file_are_an_error_and_not_waited_for(
    campaign_of, victim, neighbour, kind
):
    root = campaign_of(victim).parent
    (dear := victim.home / "dear.json").write_text("{}")
    victim.owns(dear)
    if kind == "fifo":
        os.mkfifo(root / "baselines.json", 0o644)
        neighbour.owns(root / "baselines.json")
    else:
        neighbour.owns_link(root / "baselines.json", dear)
    done = victim.nsw("baseline", "ls", "--root", root, exits=2)
    assert "baselines.json cannot be read" in done.stderr
