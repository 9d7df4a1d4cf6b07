"""A program or recipe that has changed since its campaign began: the old copy is run, and that is said."""

import pytest

PROGRAM = "echo {}; test -e {}/cure\n"


@pytest.fixture
def begun(nsw, recipe, home):
    """A campaign whose runs failed; its program came from a file and from a folder."""
    (home / "apps").mkdir()
    (home / "apps" / "go.sh").write_text(PROGRAM.format("old", home))
    (home / "lib").mkdir()
    (home / "lib" / "part.txt").write_text("part")
    said = nsw("run", recipe("{command: bash go.sh, files: [apps/go.sh, lib]}", "repeats: 2\n"), "-s", "here", exits=1)
    assert "changed since" not in said.err
    return home


def test_a_retry_says_what_has_changed_and_runs_the_copy(nsw, begun):
    (begun / "apps" / "go.sh").write_text(PROGRAM.format("new", begun))
    said = nsw("retry", "case.baseline.r1")
    assert "warning: apps/go.sh has changed since this campaign began: its copy of 20" in said.err
    assert "`nsw retry --update-app` takes the new one, and so does a new `nsw run`" in " ".join(said.err.split())
    assert "\nold\n" in nsw("logs", "case.baseline.r1").out


def test_the_recipe_and_files_of_folders_count_and_what_comes_by_itself_does_not(nsw, begun):
    (begun / "lib" / "__pycache__").mkdir()
    (begun / "lib" / "__pycache__" / "x.pyc").write_bytes(b"x")
    assert "changed since" not in nsw("retry").err
    (begun / "r.yaml").write_text((begun / "r.yaml").read_text() + "# more\n")
    (begun / "lib" / "part.txt").write_text("other")
    said = " ".join(nsw("retry").err.split())
    assert "warning: r.yaml, lib/part.txt have changed since this campaign began: their copies of" in said
    assert (
        "`nsw retry --update-app` takes the new one of the program; `nsw run r.yaml --into CAMPAIGN` repeats what"
        in said
    )


def test_nothing_is_said_of_what_did_not_change_or_is_gone_or_has_no_run_left(nsw, begun):
    assert "changed" not in nsw("retry").err
    (begun / "apps" / "go.sh").unlink()
    (begun / "cure").touch()
    assert "changed" not in nsw("retry").err
    (begun / "r.yaml").write_text("")
    assert "changed" not in nsw("resume").err
    assert "changed" not in nsw("retry").err


def test_a_campaign_that_goes_on_says_it_too(nsw, recipe, home):
    assert nsw("run", recipe("{command: 'exit {{ n }}'}", "matrix: {n: [1, 2]}\ncanary: on\n"), "-s", "here").code == 1
    (home / "r.yaml").write_text((home / "r.yaml").read_text() + "# more\n")
    said = " ".join(nsw("resume").err.split())
    assert "warning: r.yaml has changed since this campaign began" in said
    assert "`nsw run r.yaml --into CAMPAIGN` repeats what the new recipe changes" in said
    assert "--update-app" not in said  # which copies the program alone
