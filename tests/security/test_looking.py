"""Looking changes nothing: status, ls, logs and summarize in folders that another user made; only an owner drives."""

import json
import os
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from nsw.engine.driven import ledger_to_read, write_state
from nsw.engine.folder import STATE, CampaignFolder, is_driven, locked
from nsw.engine.ledger import Ledger
from nsw.engine.ledger_rows import NOTE, SITE, SITE_DATA
from nsw.engine.recipe_lock import git_state
from nsw.errors import CampaignError
from nsw.plan.model import Plan
from nsw.transport.local import LocalTransport

from .conftest import RECIPE, SITES, change_ledger, state

LOOKS = (
    ["status", "--runs"],
    ["status", "--json"],
    ["logs", "n-3"],
    ["summarize"],
    ["summarize", "--table", "figures"],
    ["summarize", "--format", "html"],
)
DRIVES = (["resume"], ["retry"], ["throttle", "2"], ["fetch", "--yes"])

# one that is killed within a write: with a small cache SQLite has written some of it to the file already
TORN = """
import os, signal, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA cache_size = 1")
db.execute("BEGIN IMMEDIATE")
db.executemany("INSERT INTO meta VALUES (?, ?)", (("note" if n == 1 else str(n), "x" * 500) for n in range(500)))
os.kill(os.getpid(), signal.SIGKILL)
"""
MAGIC = bytes.fromhex("d9d505f920a163d7")


def tear(ledger: Path) -> Path:
    """Leave a hot journal beside a ledger."""
    killed = subprocess.run([sys.executable, "-c", TORN, ledger], check=False)
    assert killed.returncode == -signal.SIGKILL
    return ledger.with_name(ledger.name + "-journal")


def name_in_journal(journal: Path, victim: Path) -> None:
    """End a journal as that of a change of several databases ends: with the name of a file that SQLite deletes."""
    data, name = journal.read_bytes(), bytes(victim)
    page = 4096
    at = -(-len(data) // page) * page
    total = sum(struct.unpack(f"{len(name)}b", name)) & 0xFFFFFFFF  # SQLite adds up C's char, which has a sign on x86
    end = struct.pack(">I", 0x40000000 // page + 1) + name + struct.pack(">II", len(name), total) + MAGIC
    journal.write_bytes(data.ljust(at, b"\0") + end)


@pytest.fixture
def ledger(tmp_path):
    folder = tmp_path / "t-20260101-000000-aaaa"
    folder.mkdir()
    with Ledger(folder / "campaign.db", create=True) as book:
        book.add_plan(Plan("n", "s", (), ()))
        book.set_meta(SITE, "s")
        book.set_meta(SITE_DATA, {"name": "s", "scheduler": "local", "transport": {"kind": "local"}})
    return folder / "campaign.db"


# --- the journal that names a file ----------------------------------------------------------------------------------


def test_a_journal_that_names_a_file_costs_that_file_when_sqlite_is_let(ledger, tmp_path):
    """The attack itself, so that the tests below mean something."""
    dear = tmp_path / "dear"
    dear.write_text("dear")
    name_in_journal(tear(ledger), dear)
    with sqlite3.connect(ledger) as db:
        db.execute("SELECT count(*) FROM meta").fetchone()
    db.close()
    assert not dear.exists()


def test_a_write_cut_short_is_taken_back_in_a_copy_by_who_looks(ledger, tmp_path, monkeypatch):
    CampaignFolder(ledger.parent).trust()
    tear(ledger)
    before = state(tmp_path)
    (temporary := tmp_path.with_name(tmp_path.name + "-tmp")).mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    with ledger_to_read(CampaignFolder(ledger.parent)) as book:
        assert (book.meta(SITE), book.meta(NOTE)) == ("s", None)
        assert len(list(temporary.iterdir())) == 1
    assert list(temporary.iterdir()) == []
    assert state(tmp_path) == before


@pytest.mark.parametrize("what", ["link", "fifo", "folder"])
def test_what_is_no_plain_state_is_refused(ledger, tmp_path, what):
    folder, real = CampaignFolder(ledger.parent), tmp_path / "real.json"
    file = folder.path / STATE
    with Ledger(ledger) as book:
        write_state(folder, book)
    file.rename(real)
    {"link": lambda: file.symlink_to(real), "fifo": lambda: os.mkfifo(file), "folder": file.mkdir}[what]()
    with pytest.raises(CampaignError), ledger_to_read(folder):
        pass


# --- the lock -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["link", "dangling", "fifo", "other"])
def test_a_lock_that_is_none_is_neither_written_nor_waited_for(tmp_path, what):
    folder, dear = CampaignFolder(tmp_path / "c"), tmp_path / "dear"
    folder.path.mkdir()
    if what != "dangling":
        dear.write_text("dear and long enough to be cut")
    {"fifo": lambda: os.mkfifo(folder.lock), "other": lambda: folder.lock.hardlink_to(dear)}.get(
        what, lambda: folder.lock.symlink_to(dear)
    )()
    folder.trust()
    before = state(tmp_path)
    assert not is_driven(folder)
    with pytest.raises(CampaignError), locked(folder):
        pass
    assert state(tmp_path) == before


def test_a_look_at_the_lock_leaves_no_trace_and_hinders_nobody(tmp_path):
    folder = CampaignFolder(tmp_path)
    folder.trust()
    before = state(tmp_path)
    assert not is_driven(folder)
    assert state(tmp_path) == before
    with locked(folder):
        assert is_driven(folder)
    assert not is_driven(folder)


def test_where_a_file_system_shows_every_file_as_one_users_a_campaign_is_driven(tmp_path, monkeypatch):
    """As sshfs does: what the user's state folder has of the campaign is that owner."""
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    CampaignFolder(tmp_path).trust()
    with locked(CampaignFolder(tmp_path)):
        assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "token"]


# --- files that a program of a run leaves ---------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["link", "fifo", "folder", "socket"])
def test_what_is_no_plain_file_on_the_site_is_absent_and_never_waited_for(tmp_path, monkeypatch, what):
    monkeypatch.chdir(tmp_path)  # the whole name may be too long for a socket
    dear, file = tmp_path / "dear", tmp_path / "status"
    dear.write_text("state=done")
    transport, plug = LocalTransport(), socket.socket(socket.AF_UNIX)
    with plug:
        {"link": lambda: file.symlink_to(dear), "fifo": lambda: os.mkfifo(file), "folder": file.mkdir,
         "socket": lambda: plug.bind(file.name)}[what]()  # fmt: skip
    assert transport.read_many([str(file)]) == {str(file): None}
    assert transport.tail(str(file), 100) is None


# --- from a second user ---------------------------------------------------------------------------------------------


def test_a_campaign_of_another_user_can_be_looked_at_and_stays_as_it_is(campaign_of, victim, neighbour):
    folder = campaign_of(neighbour)
    before = state(neighbour.home)
    for words in LOOKS:
        done = victim.nsw(*words, "-c", folder)
        assert done.returncode in {0, 1}, done.stderr
        assert "belongs to user" in done.stdout or words[0] != "status" or "--json" in words
    assert "f=3" in victim.nsw("logs", "n-3", "-c", folder).stdout
    assert "n-3.baseline.r1" in victim.nsw("status", "--runs", folder).stdout
    assert "2 runs" in victim.nsw("ls", "--root", folder.parent).stdout
    assert (
        "nsw.open"
        not in victim.run(
            sys.executable, "-P", "-c", "import nsw, sys; nsw.open(sys.argv[1]).tables.figures", folder
        ).stderr
    )
    assert state(neighbour.home) == before
    assert list(victim.temporary.iterdir()) == []


def test_a_campaign_of_another_user_is_not_driven(campaign_of, victim, neighbour):
    folder = campaign_of(neighbour)
    subprocess.run(["chmod", "-R", "a+rwX", folder], check=True)
    change_ledger(
        folder,
        ("UPDATE tasks SET state = 'planned' WHERE state = 'failed'", ()),
    )
    before = state(neighbour.home)
    for words in (*DRIVES, ["cancel"]):
        done = victim.nsw(*words, "-c", folder, exits=2)
        assert f"belongs to user {neighbour.uid}: nsw acts only for campaigns of your own" in done.stderr, words
        assert "recipe.lock.yaml` starts your own" in done.stderr
    assert {path: of for path, of in state(neighbour.home).items() if path != str(folder)} == {
        path: of for path, of in before.items() if path != str(folder)
    }


def test_no_command_connects_to_the_site_that_another_user_s_campaign_names(campaign_of, victim, neighbour):
    """The campaign chooses the configuration of ssh, which names what is run to reach a host."""
    folder = campaign_of(neighbour)
    site = {"name": "here", "scheduler": "slurm", "scratch": "/tmp",
            "transport": {"kind": "openssh", "host": "x", "config": "/evil"}}  # fmt: skip
    change_ledger(
        folder,
        ("UPDATE meta SET value = ? WHERE key = 'site_data'", (json.dumps(site),)),
        ("UPDATE tasks SET state = 'running' WHERE state = 'failed'", ()),
    )
    (victim.home / ".config" / "nsw").mkdir(parents=True)
    for name, text in (
        ("r.yaml", RECIPE.replace("[0, 3]", "[0, 4]")),
        (".config/nsw/sites.yaml", SITES),
        ("ssh", "#!/bin/sh\necho >~/CALLED\n"),
    ):
        (victim.home / name).write_text(text)
    (victim.home / "ssh").chmod(0o755)
    victim.owns(victim.home)
    path = f"{victim.home}:{os.environ['PATH']}"
    for words in (
        ["fetch", "--yes", "-c"], ["watch", "--once"], ["status", "--runs"], ["logs", "n-3", "--follow", "-c"], ["problems"],
        ["cancel"], ["clean", "--yes"], ["reread"], ["run", "r.yaml", "--yes", "--into"],
    ):  # fmt: skip
        victim.nsw(*words, folder, PATH=path)
        assert not (victim.home / "CALLED").exists(), words


def test_the_lock_of_another_user_leads_to_no_file_of_who_looks(campaign_of, victim, neighbour):
    folder, dear = campaign_of(neighbour), victim.home / "dear"
    dear.write_text("dear")
    victim.owns(dear)
    (folder / "lock").unlink()
    (folder / "lock").symlink_to(dear)
    for words in (["status", folder], ["ls", "--root", folder.parent], ["resume", folder]):
        victim.nsw(*words)
    assert dear.read_text() == "dear"


def test_the_journal_of_another_user_deletes_no_file_of_who_looks(campaign_of, victim, neighbour):
    folder, dear = campaign_of(neighbour), victim.home / "dear"
    dear.write_text("dear")
    victim.owns(dear)
    name_in_journal(tear(folder / "campaign.db"), dear)
    subprocess.run(["chmod", "-R", "a+rwX", folder], check=True)
    neighbour.owns(folder)
    for words in (["status", folder], ["ls", "--root", folder.parent], ["resume", folder]):
        done = victim.nsw(*words)
        assert done.returncode in {0, 2}
    assert dear.read_text() == "dear"


@pytest.mark.parametrize("what", ["link", "folder", "fifo"])
def test_the_files_of_another_user_s_campaign_are_that_user_s(campaign_of, victim, neighbour, what):
    """What leads to a file of whoever looks is not shown; what never answers is not waited for."""
    folder, dear = campaign_of(neighbour), victim.home / "dear"
    dear.mkdir()
    (output,) = folder.glob("scratch/runs/n-3*/attempt-1/stdout")
    for file, text in (
        (output, "dear words"),
        (folder / "recipe.lock.yaml", "dear: words"),
        (folder / "tables" / "figures.parquet", "dear"),
    ):
        (dear / file.name).write_text(text)
        if what == "folder" and file.parent != folder:
            continue
        file.unlink()
        os.mkfifo(file) if what == "fifo" else file.symlink_to(dear / file.name)
    if what == "folder":
        for parent in (output.parent, folder / "tables"):
            subprocess.run(["rm", "-r", parent], check=True)
            parent.symlink_to(dear)
    neighbour.owns(folder)
    victim.owns(dear)
    logs = victim.nsw("logs", "n-3", "-c", folder)
    assert (logs.returncode, "dear" in logs.stdout) == (0, False), logs.stderr
    for words in (["summarize", folder], ["summarize", folder, "--table", "figures", "--json"]):
        done = victim.nsw(*words, exits=2)
        assert (
            "belongs to" in done.stderr
            or "is not a file" in done.stderr
            or "not a regular file" in done.stderr
            or "symbolic link" in done.stderr
        )


@pytest.mark.parametrize("below", ["", "scratch/runs/n-3.baseline.r1/attempt-1", "reports/n-3.baseline.r1"])
def test_no_file_of_a_campaign_is_waited_for(campaign_of, victim, neighbour, below):
    folder = campaign_of(neighbour)
    files = [file for file in (folder / below).iterdir() if file.is_file()]
    assert len(files) > 3
    for file in files:
        aside = file.rename(file.with_name("aside"))
        os.mkfifo(file)
        neighbour.owns(file)
        for words in (["logs", "n-3.baseline.r1"], *([] if below else [["status"], ["summarize"]])):
            assert victim.nsw(*words, "-c", folder).returncode in {0, 1, 2}, (words, file)  # or it takes too long
        aside.replace(file)


def test_a_campaign_that_is_read_only_can_be_looked_at(campaign_of, victim):
    folder = campaign_of(victim)
    subprocess.run(["chmod", "-R", "a-w", folder.parent], check=True)
    before = state(victim.home)
    for words in LOOKS:
        done = victim.nsw(*words, "-c", folder)
        assert done.returncode in {0, 1}, done.stderr
    assert victim.nsw("ls").returncode == 0
    assert "cannot be driven" in victim.nsw("resume", folder).stderr
    assert state(victim.home) == before


def test_with_none_named_it_is_this_user_s_newest(campaign_of, victim, neighbour):
    own, other = campaign_of(victim), campaign_of(neighbour)
    planted = other.rename(own.parent / "t-20991231-235959-ffff")
    subprocess.run(["chmod", "-R", "a+rX", own.parent], check=True)
    assert own.name in victim.nsw("status").stdout
    assert planted.name in victim.nsw("status", planted.name).stdout


def test_with_none_named_it_is_the_one_that_began_last_adopted_or_not_and_its_name_is_printed(campaign_of, victim):
    first = campaign_of(victim)
    copied = shutil.copytree(first, first.parent / "t-20991231-235959-ffff")
    victim.owns(copied)
    seen = victim.nsw("query", "select 1")
    assert (seen.returncode, seen.stderr.splitlines()[0]) == (0, f"the newest campaign: {copied.name}")


def test_git_is_not_asked_of_a_repository_of_another_user(victim, neighbour):
    """Git runs what a repository's configuration names; new versions refuse by themselves, older ones do not."""
    code = (
        "import sys; from pathlib import Path; from nsw.engine.recipe_lock import git_state;"
        " from nsw.transport.local import LocalTransport; print(git_state(Path(sys.argv[1]), LocalTransport()))"
    )
    if not shutil.which("git"):
        pytest.skip("no git here")
    for user in (victim, neighbour):
        user.run("git", "init", "-q")
        user.run("git", "-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "--allow-empty", "-m", "m")
        user.run("git", "config", "core.fsmonitor", f"touch {user.temporary}/PWNED; true")
        (user.home / "file").write_text("")
    (victim.home / ".gitconfig").write_text("[safe]\n\tdirectory = *\n")  # as git of before 2022
    (inside := neighbour.home / "of_the_victim").mkdir()
    victim.owns(inside)
    (planted := victim.home / "planted").mkdir()
    shutil.copytree(neighbour.home / ".git", planted / ".git")
    victim.owns(planted)
    neighbour.owns(planted / ".git")
    bare = neighbour.home / "bare"
    neighbour.run("git", "init", "-q", "--bare", bare)
    neighbour.run("git", "-C", bare, "config", "core.fsmonitor", f"touch {neighbour.temporary}/PWNED; true")
    (bare / "of_the_victim").mkdir()
    victim.owns(bare / "of_the_victim")
    own, *others = (
        victim.run(sys.executable, "-P", "-c", code, folder).stdout
        for folder in (victim.home, neighbour.home, inside, planted, bare / "of_the_victim")
    )
    assert "commit=" in own
    assert set(others) == {"None\n"}
    assert not list(victim.temporary.iterdir())


@pytest.mark.skipif(not shutil.which("git"), reason="no git here")
@pytest.mark.parametrize("planted", ["planted", "plant\udced"])  # a name that is no UTF-8 is turned off too
def test_no_program_that_a_repository_names_is_run(tmp_path, planted):
    """A folder that came as an archive belongs to who unpacked it, with the configuration of who made it."""
    ran = tmp_path / "ran"
    ran.mkdir()
    repository = tmp_path / "repository"

    def git(*words, cwd=repository):
        who = ("-c", "user.name=n", "-c", "user.email=e", "-c", "protocol.file.allow=always")
        return subprocess.run(["git", *who, *words], cwd=cwd, check=True, capture_output=True, text=True).stdout

    for folder in (repository, tmp_path / "part"):
        folder.mkdir()
        git("init", "-q", cwd=folder)
        (folder / "file").write_text("as it was\n")
        git("add", ".", cwd=folder)
        git("commit", "-qm", "m", cwd=folder)
    git("submodule", "add", "-q", str(tmp_path / "part"), "part")
    (repository / ".gitattributes").write_bytes(os.fsencode(f"* filter={planted}\n"))
    git("add", ".")
    git("commit", "-qm", "with a part")
    for name in ("clean", "smudge"):
        git("config", f"filter.{planted}.{name}", f"touch {ran}/{name}; cat")
    git("config", f"filter.{planted}.required", "true")
    for name, folder in (("own", repository), ("part", repository / "part")):
        git("config", "core.fsmonitor", f"touch {ran}/monitor-of-{name}; false", cwd=folder)
    hook = repository / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {ran}/hook\n")
    hook.chmod(0o755)
    os.utime(repository / "file", (1, 1))  # so that its content is looked at
    state = git_state(repository, LocalTransport())
    assert (state.commit, state.dirty) == (git("rev-parse", "HEAD").strip(), False)
    assert not list(ran.iterdir())
    git("status")  # it would have
    assert {"clean", "hook", "monitor-of-own", "monitor-of-part"} <= {file.name for file in ran.iterdir()}
    (repository / "file").write_text("changed\n")
    assert git_state(repository, LocalTransport()).dirty


def test_a_folder_of_the_site_that_another_user_made_first_is_not_used(victim, neighbour):
    """The scratch folder may be one that everybody writes, as /scratch: whoever makes the campaign's first owns it."""
    code = (
        "import sys; from nsw.engine.handover import _MODES, _make_site_folder; from nsw.transport.local import LocalTransport;"
        " _make_site_folder(LocalTransport(), sys.argv[1], _MODES['nobody'])"
    )
    scratch, dear = neighbour.home, victim.home / "dear"
    scratch.chmod(0o1777)
    dear.mkdir(mode=0o755)
    victim.owns(dear)
    (scratch / "link").symlink_to(dear)
    (scratch / "folder").mkdir()
    (scratch / "folder").chmod(0o777)
    neighbour.owns(scratch)
    words = (sys.executable, "-P", "-c", code)
    for name in ("link", "folder"):
        done = victim.run(*words, scratch / name)
        assert "cannot be made and closed to other users" in done.stderr, name
        assert subprocess.run([*words, scratch / name], check=False, capture_output=True).returncode != 0  # root's too
    assert dear.stat().st_mode & 0o777 == 0o755
    assert victim.run(*words, scratch / "own").returncode == 0
