"""Where runs go when a command line names no site."""

import json

import pytest

from tests.cli.conftest import HEAD

SITES = """\
nsw: 1
sites:
  here: {scheduler: local, gpus: {per_node: 0}}
  there:
    scheduler: local
    default: true
    gpus: {per_node: 0}
"""


@pytest.fixture
def site_of(nsw, home, monkeypatch):
    """The site that a plan is for, and what was said."""
    monkeypatch.delenv("NSW_SITE", raising=False)
    (home / "r.yaml").write_text(HEAD + "app: {command: 'true'}\n")
    (home / "sites.yaml").unlink()
    monkeypatch.delenv("NSW_SITES")

    def plan(*words):
        said = nsw("plan", "r.yaml", "--json", *words, exits=0)
        return json.loads(said.out)["site"], said.err

    return plan


def test_the_default_of_a_sites_file_is_used_where_none_is_named(site_of, home, monkeypatch):
    (home / "my.yaml").write_text(SITES)
    assert site_of("--sites", "my.yaml") == ("there", "")
    assert site_of("--sites", "my.yaml", "--site", "here") == ("here", "")
    monkeypatch.setenv("NSW_SITE", "here")
    assert site_of("--sites", "my.yaml")[0] == "here"


def test_the_default_of_a_file_in_the_current_folder_counts_only_if_the_file_is_named(site_of, home, tmp_path):
    (home / "sites.yaml").write_text(SITES)
    site, told = site_of()
    assert site == "local"
    assert told.splitlines()[0] == (
        "warning: no site is named, so local is used: sites.yaml in the current folder is read only if you name it:"
        ' `--sites sites.yaml`, or `export NSW_SITES="$PWD/sites.yaml"`'
    )
    assert site_of("--site", "local") == ("local", "")
    assert site_of("--sites", "sites.yaml") == ("there", "")
    own = tmp_path / "config/nsw/sites.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(SITES.replace("there", "mine"))
    assert site_of() == ("mine", "")


def test_the_list_of_sites_marks_the_default(nsw, home):
    (home / "my.yaml").write_text(SITES)
    assert "there (default)" in nsw("sites", "--sites", "my.yaml").out
    rows = json.loads(nsw("sites", "--sites", "my.yaml", "--json").out)["sites"]
    assert [row["site"] for row in rows if row["default"]] == ["there"]


def test_two_defaults_are_refused_each_at_its_line(nsw, home, recipe):
    (home / "my.yaml").write_text(SITES.replace("{scheduler: local,", "{scheduler: local, default: true,"))
    said = nsw("plan", recipe("{command: 'true'}"), "--sites", "my.yaml", exits=2)
    assert "my.yaml:3:37: only one site in a file can be the default" in said.err
    assert "my.yaml:6:14: only one site in a file can be the default" in said.err
    assert "there is the default too" in said.err


@pytest.mark.parametrize("command", ["sbatch", "qsub"])
def test_local_unasked_beside_a_batch_system_warns_in_one_line(site_of, tmp_path, monkeypatch, command):
    monkeypatch.setattr("shutil.which", lambda name, **_: f"/usr/bin/{name}" if name == command else None)
    site, told = site_of()
    assert site == "local"
    assert told.count("\n") == 1
    assert f"though it has {command}" in told
    assert "--site" in told
    assert site_of("--site", "local")[1] == ""
    monkeypatch.setattr("shutil.which", lambda _name, **_: None)
    assert site_of()[1] == ""
