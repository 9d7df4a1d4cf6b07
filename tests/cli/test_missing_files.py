"""A file beside the recipe that the runs did not find is named with what sends it; retry reports what it repeats."""

from pathlib import Path

import pytest

APP = "{command: 'cat %s{{ n }}', files: []}"


@pytest.fixture
def failed(nsw, recipe, home):
    (home / "data").mkdir()
    (home / "data" / "in.1").write_text("x")
    (home / "data" / "in.2").write_text("x")
    return nsw("run", recipe(APP % "data/in.", "matrix: {n: [1, 2]}\n"), "-s", "here", exits=1)


def test_what_sends_a_missing_file_is_named_instead_of_retry(nsw, failed):
    (folder,) = Path("campaigns").iterdir()
    advice = (
        "data/in.1 is beside the recipe but not sent along: add data to app.files, then"
        f" `nsw run r.yaml --into {folder.name}`"
    )
    for text in (failed.err, nsw("status").out):
        assert advice in text
        assert "nsw retry" not in text
    text = Path("r.yaml").read_text()
    Path("r.yaml").write_text(text.replace("files: []", "files: [data]"))
    assert nsw("run", "r.yaml", "--into", folder.name).code == 0


def test_a_failure_for_another_reason_is_repeated(nsw, failing):
    assert "repeats what did not succeed" in nsw("status").out


def test_retry_reports_what_it_repeats(nsw, failing):
    assert "again: 1 run: 1 failed" in nsw("retry").err
