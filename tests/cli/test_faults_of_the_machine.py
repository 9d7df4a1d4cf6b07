"""A full disk, a damaged file, a folder that may not be entered: one line on stderr, never a traceback."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from nsw.version import __version__

from .conftest import in_folder


def refused(said, *words):
    assert said.code == 2, said
    assert said.err.startswith("error: ")
    assert "Traceback" not in said.err
    for word in words:
        assert word in said.err


LOOKS = (["status"], ["summarize"], ["logs", "r1"], ["resume"], ["retry"], ["cancel"])


def test_a_damaged_state_is_told_by_every_command_that_needs_it(nsw, good):
    (good / "campaign.db").write_bytes(b"no database at all, and long enough for a header" * 20)
    for words in LOOKS:
        refused(nsw(*words), "campaign.db is damaged")


def test_a_state_damaged_in_its_middle_is_told_too(nsw, good):
    file = good / "campaign.db"
    data = bytearray(file.read_bytes())
    page = int.from_bytes(data[16:18], "big")
    data[page:] = os.urandom(len(data) - page)
    file.write_bytes(data)
    for words in LOOKS:
        refused(nsw(*words))


def test_a_campaign_of_another_version_is_left_alone(nsw, good):
    with sqlite3.connect(good / "campaign.db") as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    for words in LOOKS:
        refused(nsw(*words), "was written by a newer nsw (state version 99")


def test_a_state_of_a_run_that_a_newer_nsw_knows_is_refused_with_the_version_of_this_one(nsw, good):
    with closing(sqlite3.connect(good / "campaign.db")) as db, db:
        db.execute("UPDATE tasks SET state = 'paused'")
    for words in (("summarize",), ("status",), ("resume",)):
        refused(nsw(*words), f"a run is 'paused', which nsw {__version__} does not know")


def test_the_list_of_campaigns_names_the_damaged_one_and_shows_the_others(nsw, good):
    bad = good.with_name("bad-20260101-000000-aaaa")
    bad.mkdir()
    (bad / "campaign.db").write_bytes(b"x" * 5000)
    said = nsw("ls", exits=0)
    assert "2 runs: 2 done" in said.out
    assert "campaign.db is damaged: file is not a database" in said.out


def test_a_recipe_that_was_kept_and_is_damaged_now_is_told(nsw, good):
    (good / "recipe.lock.yaml").write_text("nsw: [")
    refused(nsw("summarize"), "recipe.lock.yaml:")


def test_a_table_that_is_damaged_is_told(nsw, good):
    (good / "tables" / "figures.parquet").write_bytes(b"PAR1 and no more")
    refused(nsw("summarize"), "figures.parquet")


@pytest.mark.parametrize("what", ["damaged", "empty", "link", "fifo", "folder"])
def test_a_table_to_which_nothing_can_be_added_is_told_and_left(nsw, failing, home, what):
    table, dear = failing / "tables" / "figures.parquet", home / "dear"
    dear.write_text("dear")
    table.unlink(missing_ok=True)
    {"damaged": lambda: table.write_bytes(b"PAR1 and no more"), "empty": lambda: table.write_bytes(b""), "folder": table.mkdir,
     "link": lambda: table.symlink_to(dear), "fifo": lambda: os.mkfifo(table)}[what]()  # fmt: skip
    said = nsw("retry")
    assert (said.code, "figures.parquet is damaged, and nothing can be added to it" in said.err) == (2, True), said
    assert dear.read_text() == "dear"


def test_a_link_in_the_place_of_what_is_being_written_is_not_written_through(nsw, failing, home):
    dear = home / "dear"
    dear.write_text("dear")
    for name in ("tables/figures.part", "recipe.lock.part"):
        (failing / name).symlink_to(dear)
    (failing / "tables" / "my own.parquet").write_bytes(b"of a person")
    assert nsw("retry").code == 1
    assert dear.read_text() == "dear"


def test_a_root_that_is_a_file_is_told(nsw, home, recipe):
    (home / "file").write_text("")
    name = recipe("{command: 'true'}")
    refused_words = nsw("run", name, "-s", "here", "--root", "file", exits=2)
    assert "cannot be made: Not a directory" in refused_words.err
    assert nsw("render", name, "-s", "here", "--into", "file").code == 2


def test_a_folder_that_may_not_be_entered_is_told(nsw, monkeypatch):
    def no(*_):
        raise PermissionError(13, "Permission denied", "/secret/campaigns")

    monkeypatch.setattr("nsw.engine.folder.find", no)
    refused(nsw("status"), "/secret/campaigns: Permission denied")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter any folder")
def test_a_folder_that_this_user_may_not_enter_is_told(nsw, good):
    good.parent.chmod(0)
    try:
        refused(nsw("status", str(good)), "Permission denied")
    finally:
        good.parent.chmod(0o755)


@pytest.fixture
def tiny(home):
    """A file system with room for next to nothing."""
    folder = home / "tiny"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root can mount a tiny file system")
    words = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder]
    if not shutil.which("mount") or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("no tmpfs can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_is_told_and_half_a_campaign_is_not_left(nsw, tiny, recipe):
    (tiny / "fill").write_bytes(b"x" * 40000)
    said = nsw("run", recipe("{command: 'true'}", "repeats: 300\n"), "-s", "here", "--root", tiny, exits=2)
    assert "error: " in said.err
    assert [p.name for p in tiny.iterdir()] == ["fill"]


def test_a_full_disk_for_what_is_printed_is_told(home):
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-m", "nsw", "sites", "--json"], stdout=full, stderr=subprocess.PIPE,
                              text=True, check=False, cwd=home)  # fmt: skip
    assert done.returncode == 2
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


@pytest.mark.parametrize("words", [["schema", "recipe"], ["sites", "--json"], ["read", "--formats"]])
def test_a_reader_that_has_gone_is_no_error_to_speak_of(home, words):
    done = subprocess.run(["bash", "-c", '"$@" | true', "nsw", sys.executable, "-m", "nsw", *words], cwd=home,
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.stderr == ""


def test_the_interpreters_own_message_is_not_what_ctrl_c_gives(nsw, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("nsw.campaign.status.status", interrupted)
    assert nsw("status").code == 130


def test_shipped_recipes_are_found_by_name_away_from_the_checkout(tmp_path):
    for name in ("cpu_quickstart", "cpu_quickstart.yaml", "recipes/cpu_quickstart.yaml"):
        said = in_folder(tmp_path, "plan", name, exits=0)
        assert "as shipped with nsw" in said.err
    said = in_folder(tmp_path, "plan", "elsewhere/cpu_quickstart.yaml", exits=2)
