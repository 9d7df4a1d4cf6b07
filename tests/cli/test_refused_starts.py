"""A start that is refused leaves no campaign: the newest stays the one that ran."""

import json
import os

import pytest

SITES = """
nsw: 1
sites:
  here: {{scheduler: local, gpus: {{per_node: 0}}}}
  there: {{scheduler: local, gpus: {{per_node: 0}}, scratch: {scratch}}}
"""


@pytest.fixture
def left(nsw, recipe, home):
    """Runs a recipe on a site with this scratch folder: what nsw reported, and the campaigns that there are."""
    recipe("{command: 'true'}")
    assert nsw("run", "r.yaml", "-s", "here").code == 0

    def run(scratch, *words):
        (home / "sites.yaml").write_text(SITES.format(scratch=scratch))
        done = nsw("run", "r.yaml", "-s", "there", *words)
        assert done.code != 0
        campaigns = json.loads(nsw("ls", "--json").out)["campaigns"]
        assert [path.name for path in (home / "campaigns").iterdir()] == [one["campaign"] for one in campaigns]
        return done, [one["site"] for one in campaigns]

    return run


def test_a_scratch_that_cannot_be_made_leaves_no_campaign(left, home):
    (home / "file").write_text("")
    for scratch in ("/proc/nowhere", home / "file", home / "file/below"):
        done, sites = left(scratch)
        assert str(scratch) in done.err
        assert sites == ["here"]
        assert "nsw resume" not in done.err


def test_a_scratch_that_cannot_be_written_leaves_no_campaign(left, home):
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    (home / "closed").mkdir(mode=0o500)
    done, sites = left(home / "closed")
    assert "cannot be written" in done.err
    assert sites == ["here"]


def test_a_scratch_in_which_a_folder_cannot_be_closed_leaves_no_campaign(left, home, monkeypatch):
    (home / "bin").mkdir()
    (home / "bin/chmod").write_text("#!/bin/sh\necho Operation not permitted >&2; exit 1\n")
    (home / "bin/chmod").chmod(0o755)
    monkeypatch.setenv("PATH", f"{home}/bin{os.pathsep}{os.environ['PATH']}")
    done, sites = left(home / "scratch")
    assert "Operation not permitted" in done.err
    assert sites == ["here"]
