"""nsw acts only for campaigns that it made, or that the user adopted; what others made is looked at, and stays there."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from nsw.campaign import status
from nsw.engine import read, trust
from nsw.engine.driven import ledger_to_read, write_state
from nsw.engine.folder import CampaignFolder
from nsw.engine.ledger import Ledger
from nsw.engine.ledger_rows import NAME, SITE_DATA
from nsw.errors import CampaignError

from .conftest import RECIPE, change_ledger, state

ACTS = (
    ["resume"], ["retry"], ["cancel"], ["throttle", "2"], ["fetch", "--yes"], ["clean", "--everything", "--yes"], ["reread"],
    ["watch", "--once"], ["logs", "n-3", "--follow"], ["logs", "n-3"], ["run", "r.yaml", "--yes", "--into"],
)  # fmt: skip
LOOKS = (["status"], ["status", "--json"], ["summarize"], ["problems"], ["logs", "n-0"])


def calls(user) -> Path:
    """Programs that a hostile site would have nsw start, first on PATH: each writes the file CALLED."""
    folder = user.home / "bin"
    folder.mkdir()
    for name in ("ssh", "nsys", "squeue", "sbatch", "scancel"):
        (folder / name).write_text(f"#!/bin/sh\necho $0 >>{user.home}/CALLED\n")
        (folder / name).chmod(0o755)
    user.owns(folder)
    return folder


def hostile(folder: Path, programs: Path) -> None:
    """Let a campaign name a site and programs, and have a run under way there."""
    site = {"name": "here", "scheduler": "slurm", "transport": {"kind": "openssh", "host": "x"},
            "profilers": {"nsys": str(programs / "nsys")}}  # fmt: skip
    change_ledger(
        folder,
        ("UPDATE meta SET value = ? WHERE key = 'site_data'", (json.dumps(site),)),
        ("UPDATE tasks SET state = 'running', submission = 's' WHERE state = 'failed'", ()),
    )


def unpacked(folder: Path, user) -> Path:
    """A copy of a campaign, as from an archive that somebody sent."""
    copy = user.home / "unpacked" / folder.name
    copy.parent.mkdir()
    shutil.copytree(folder, copy, symlinks=True)
    user.owns(copy.parent)
    return copy


def test_a_campaign_from_an_archive_is_looked_at_and_nothing_is_started_for_it(campaign_of, victim):
    copy, programs = unpacked(campaign_of(victim), victim), calls(victim)
    hostile(copy, programs)
    (victim.home / "r.yaml").write_text(RECIPE)
    before = state(copy)
    path = f"{programs}:{os.environ['PATH']}"
    for words in ACTS:
        done = victim.nsw(*words, *([copy] if words[-1] == "--into" else ["-c", copy]), PATH=path, exits=2)
        assert "was made elsewhere" in done.stderr, words
        assert f"nsw adopt {copy}` trusts it" in done.stderr, words
    for words in LOOKS:
        assert victim.nsw(*words, "-c", copy, PATH=path).returncode in {0, 1, 2}, words
    assert "no site or scheduler was asked" in victim.nsw("status", copy, PATH=path).stdout
    assert not (victim.home / "CALLED").exists()
    assert state(copy) == before


def test_the_profiler_that_a_campaign_from_an_archive_names_is_not_run(campaign_of, victim):
    copy, programs = unpacked(campaign_of(victim), victim), calls(victim)
    hostile(copy, programs)
    report = copy / "reports" / "n-0.baseline.r1" / "a.nsys-rep"
    report.write_bytes(b"x")
    change_ledger(
        copy,
        ("UPDATE tasks SET reports = '[\"*.nsys-rep\"]'", ()),
    )
    victim.owns(copy)
    code = "import nsw, sys; nsw.open(sys.argv[1]).tables.gpu_trace"
    done = victim.run(sys.executable, "-P", "-c", code, copy)
    assert "was made elsewhere" in done.stderr
    assert not (victim.home / "CALLED").exists()


def test_to_clean_a_campaign_from_an_archive_removes_nothing_elsewhere(campaign_of, victim):
    copy = unpacked(campaign_of(victim), victim)
    dear = victim.home / "dear" / copy.name
    dear.mkdir(parents=True)
    (dear / "thesis").write_text("dear")
    victim.owns(dear.parent)
    change_ledger(
        copy,
        ("UPDATE meta SET value = ? WHERE key = 'scratch'", (str(dear),)),
    )
    assert "was made elsewhere" in victim.nsw("clean", copy, "--everything", "--yes").stderr
    assert (dear / "thesis").read_text() == "dear"


def test_to_adopt_shows_what_nsw_would_do_and_asks(campaign_of, victim):
    folder = campaign_of(victim)
    copy = unpacked(folder, victim)
    alone = victim.nsw("adopt", copy, exits=2)
    assert "no terminal" in alone.stderr
    for what in ("host: ", "scheduler local", "programs: ", "echo f={{ n }}", f"scratch: {folder}/scratch", "notify: "):
        assert what in alone.stderr, what
    assert "was made elsewhere" in victim.nsw("resume", copy).stderr
    assert victim.nsw("adopt", copy, "--yes").returncode == 0
    assert copy.stat().st_mode & 0o007 == 0
    assert victim.nsw("retry", "-c", copy).returncode == 1  # its run fails again
    moved = copy.rename(copy.parent / "moved")
    assert victim.nsw("retry", "-c", moved).returncode == 1
    copied = victim.home / "copied"
    victim.run("cp", "-a", moved, copied)
    assert "was made elsewhere" in victim.nsw("retry", "-c", copied).stderr


def test_what_lies_beside_a_ledger_changes_nothing_of_what_was_shown(campaign_of, victim):
    copy = unpacked(campaign_of(victim), victim)
    ledger, other = copy / "campaign.db", victim.home / "other.db"
    with sqlite3.connect(ledger) as db:
        db.execute("PRAGMA journal_mode = wal")
    db.close()
    shutil.copy(ledger, other)
    with sqlite3.connect(other) as db:
        db.execute("UPDATE meta SET value = '\"not shown\"' WHERE key = 'scratch'")
        db.commit()
        shutil.copy(f"{other}-wal", f"{ledger}-wal")
    db.close()
    victim.owns(copy)
    assert "not shown" not in victim.nsw("adopt", copy, "--yes").stderr
    with sqlite3.connect(ledger) as db:
        assert "not shown" not in str(db.execute("SELECT value FROM meta").fetchall())
    db.close()
    assert sorted(path.name for path in copy.glob("campaign.db*")) == ["campaign.db"]


def test_python_adopts_only_with_a_yes(campaign_of, victim):
    copy = unpacked(campaign_of(victim), victim)
    code = "import nsw, sys; print(nsw.adopt(sys.argv[1], yes=len(sys.argv) > 2).counts)"
    refused = victim.run(sys.executable, "-P", "-c", code, copy)
    assert "UsageError" in refused.stderr
    assert "programs: " in refused.stderr
    assert "'done': 1" in victim.run(sys.executable, "-P", "-c", code, copy, "yes").stdout


def test_a_campaign_of_another_user_or_that_everybody_may_write_is_not_adopted(campaign_of, victim, neighbour):
    other = campaign_of(neighbour)
    done = victim.nsw("adopt", other, "--yes")
    assert (done.returncode, "nsw acts only for campaigns of your own" in done.stderr) == (2, True)
    copy = unpacked(other, victim)
    copy.chmod(0o777)
    done = victim.nsw("adopt", copy, "--yes")
    assert (done.returncode, "everyone can write to campaign" in done.stderr) == (2, True)
    copy.chmod(0o755)
    neighbour.owns(copy.parent) and victim.owns(copy)  # the neighbour may rename it
    done = victim.nsw("adopt", copy, "--yes")
    assert (done.returncode, "could replace what nsw runs" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("tables", "is a link"),
        ("scripts", "can be written by everyone"),
        ("scripts/of-neighbour", "belongs to user"),
        ("app/attempt-1/of-neighbour", "belongs to user"),
    ],
)
def test_a_campaign_with_links_or_files_of_others_is_not_adopted(campaign_of, victim, neighbour, what, said):
    copy = unpacked(campaign_of(victim), victim)
    if what == "tables":
        (copy / what).rename(victim.home / "tables")
        (copy / what).symlink_to(victim.home / "tables")
    elif what == "scripts":
        (copy / what).chmod(0o777)
    else:
        if not (copy / what).parent.is_dir():
            (copy / what).parent.mkdir(parents=True)
            for made in ((copy / what).parent.parent, (copy / what).parent):
                victim.owns(made)
        (copy / what).touch()
        neighbour.owns(copy / what)
    done = victim.nsw("adopt", copy, "--yes")
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_to_adopt_shows_what_it_could_end_and_copy(campaign_of, victim):
    copy = unpacked(campaign_of(victim), victim)
    columns = "case_id, params, pass_name, pass_kind, tool, repeat, task, gpus, reports, app"
    change_ledger(
        copy,
        ("UPDATE submissions SET native_id = '4242.99'", ()),
        ("UPDATE tasks SET state = 'running' WHERE submission IS NOT NULL", ()),
        (
            (
                "INSERT INTO submissions (name, job, tasks, attempt, gpus, state, created, native_id)"
                " VALUES ('reduce', 'reduce', '[0]', 1, 0, 'submitted', 0, '4343.99')"
            ),
            (),
        ),
        (
            (
                f"INSERT INTO tasks (kind, place, id, job, state, submission, attempt, {columns}) SELECT 'reduction', place,"
                f" id || '.reduction', 'reduce', 'running', 'reduce', 1, {columns} FROM tasks WHERE kind = 'run' LIMIT 1"
            ),
            (),
        ),
        ("INSERT OR REPLACE INTO meta VALUES ('origins', ?)", (json.dumps([["/home/me/secret.txt", []]]),)),
    )
    lock = copy / "recipe.lock.yaml"  # bash starts what BASH_ENV names
    lock.write_text(
        re.sub(r"(?m)^  env: .*$", "  env: {BASH_ENV: /tmp/theirs, MY_TOKEN: dear}", lock.read_text(), count=1)
    )
    said = victim.nsw("adopt", copy).stderr
    assert "could end: 4242.99" in said
    assert "4343.99" in said  # the job of a reduction, which cancel would end too
    assert "/home/me/secret.txt" in said
    assert '"BASH_ENV": "/tmp/theirs"' in said
    assert "dear" not in said


def test_a_folder_that_gets_the_inode_of_a_campaign_is_not_that_campaign(campaign_of, victim):
    """File systems use inodes again: an archive that is unpacked where a campaign was may get its inode."""
    folder = campaign_of(victim)
    known = victim.home / ".local/state/nsw/campaigns" / (folder / "token").read_text()
    owner, inode, born, *device = known.read_text().split()
    if born == "0":
        pytest.skip("this file system does not tell when a folder was made")
    assert victim.nsw("retry", "-c", folder).returncode == 1
    known.write_text(" ".join([owner, inode, "1.000000000", *device]))
    assert "was made elsewhere" in victim.nsw("retry", "-c", folder).stderr


def test_a_state_folder_of_others_or_that_others_may_write_is_not_believed(campaign_of, victim, neighbour):
    folder = campaign_of(victim)
    known = victim.home / ".local/state/nsw/campaigns"
    known.chmod(0o777)
    assert "was made elsewhere" in victim.nsw("retry", "-c", folder).stderr
    known.chmod(0o700)
    assert victim.nsw("retry", "-c", folder).returncode == 1
    known.chmod(0o755)  # readable for the victim
    neighbour.owns(known)
    assert "was made elsewhere" in victim.nsw("retry", "-c", folder).stderr


def test_a_stranger_s_folder_in_the_place_of_a_campaign_is_not_driven(campaign_of, victim, neighbour):
    folder, other = campaign_of(victim), campaign_of(neighbour)
    folder.rename(folder.with_name("aside"))
    shutil.copytree(other, folder)
    shutil.copy(folder.with_name("aside") / "token", folder / "token")  # were it known
    neighbour.owns(folder)
    os.chown(folder / "token", victim.uid, victim.uid)
    assert "acts only for campaigns of your own" in victim.nsw("resume", folder).stderr


def test_completion_opens_no_ledger_of_others(campaign_of, victim):
    folder = campaign_of(victim)
    copy = unpacked(folder, victim)
    for campaign, names in ((folder, ["n-0.baseline.r1", "n-3.baseline.r1"]), (copy, [])):
        line = f"nsw logs -c {campaign} "
        done = victim.nsw(
            _NSW_COMPLETE="complete_fish", _TYPER_COMPLETE_ARGS=line, _TYPER_COMPLETE_FISH_ACTION="get-args"
        )
        assert done.stdout.split() == names


# --- opened once ----------------------------------------------------------------------------------------------------


@pytest.fixture
def strange(tmp_path):
    """A campaign that nsw did not make, with a report's status, open."""
    folder = CampaignFolder(tmp_path / "t-20260101-000000-aaaa")
    (folder.reports / "r1").mkdir(parents=True)
    (folder.reports / "r1" / "status").write_text("its own")
    with Ledger(folder.ledger, create=True) as ledger:
        ledger.set_meta(NAME, "its own")
        ledger.set_meta(SITE_DATA, {"name": "s", "scheduler": "local", "transport": {"kind": "local"}})
        write_state(folder, ledger)
    assert not folder.trusted
    return folder


def test_another_folder_that_gets_the_name_meanwhile_is_not_read(strange):
    assert strange.owner == os.geteuid()  # it is open by now
    strange.path.rename(strange.path.with_name("aside"))
    (strange.reports / "r1").mkdir(parents=True)
    (strange.reports / "r1" / "status").write_text("dear")
    (strange.path / "state.json").write_text("dear")
    assert strange.tail(strange.reports / "r1" / "status") == b"its own"
    for _ in range(2):
        with ledger_to_read(strange) as ledger:
            assert ledger.meta(NAME) == "its own"


def test_a_link_that_leads_elsewhere_meanwhile_changes_nothing(strange, tmp_path):
    link, other = tmp_path / "link", tmp_path / "other"
    link.symlink_to(strange.path)
    other.mkdir()
    folder = CampaignFolder(link)
    folder.trust()
    link.unlink()
    link.symlink_to(other)
    assert folder.trusted
    assert folder.path == folder.ledger.parent == strange.path


def test_sqlite_never_opens_a_ledger_of_others_here(strange, monkeypatch):
    opened = []
    real = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda path, *args, **how: opened.append(str(path)) or real(path, *args, **how)
    )
    status.list_campaigns(strange.path.parent)
    for _ in range(2):
        with ledger_to_read(strange) as ledger:
            assert ledger.meta(NAME) == "its own"
    assert set(opened) == {":memory:"}


@pytest.mark.parametrize("what", ["reports", "reports/r1", "reports/r1/status"])
def test_no_link_below_the_folder_is_followed(strange, tmp_path, what):
    dear = tmp_path / "dear"
    (dear / "r1").mkdir(parents=True)
    for file in (dear / "r1" / "status", dear / "status"):
        file.write_text("dear")
    place = strange.path / what
    shutil.rmtree(place) if place.is_dir() else place.unlink()
    place.symlink_to({"reports": dear, "reports/r1": dear / "r1"}.get(what, dear / "status"))
    assert strange.tail(strange.reports / "r1" / "status") is None
    assert strange.tail(strange.path / "reports" / ".." / ".." / "dear" / "status") is None
    assert what == "reports/r1/status" or strange.names(strange.path / what) == []


# --- the record -----------------------------------------------------------------------------------------------------


def test_a_trace_of_a_foreign_campaign_is_refused_with_all_that_it_lacks(tmp_path, monkeypatch):
    monkeypatch.setattr(read, "reports_of", lambda *_: [tmp_path / "a.nsys-rep"])
    for is_readable, message in ((True, "was made elsewhere$"), (False, "and its reports need an nsys: none is found")):
        monkeypatch.setattr(read, "is_readable", lambda _, is_readable=is_readable: is_readable)
        with pytest.raises(CampaignError, match=message):
            read.read_traces(CampaignFolder(tmp_path), None, [None], [])


def test_the_record_is_bound_to_owner_inode_and_file_system(tmp_path, monkeypatch):
    folder = CampaignFolder(tmp_path)
    with pytest.raises(CampaignError, match="was made elsewhere"):
        folder.require_trust()
    folder.trust()
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    known = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "nsw" / "campaigns"
    assert known.stat().st_mode & 0o777 == 0o700
    assert CampaignFolder(tmp_path).trusted
    for name in ("st_uid", "st_ino"):
        real = os.fstat(folder.directory)
        record = (known / (tmp_path / "token").read_text()).read_text()
        assert str(getattr(real, name)) in record.split()
    monkeypatch.setattr(trust, "_file_system_id", lambda *_: "another")
    assert not CampaignFolder(tmp_path).trusted


def test_a_file_system_without_a_number_of_its_own_is_known_by_what_is_mounted():
    """NFS, Lustre, overlay: the kernel numbers each mount anew."""
    descriptor = os.open("/proc", os.O_RDONLY)
    try:
        assert os.major(os.fstat(descriptor).st_dev) == 0
        assert trust._file_system_id(descriptor, os.fstat(descriptor).st_dev) == "proc proc"
    finally:
        os.close(descriptor)


def test_a_token_that_is_a_path_leads_nowhere(tmp_path):
    (tmp_path / "token").write_text("../../../etc/passwd")
    assert not CampaignFolder(tmp_path).trusted


# --- places ---------------------------------------------------------------------------------------------------------

WHO = "could replace what nsw runs"


def run(user, root: Path, *more: object):
    (user.home / "r.yaml").write_text(RECIPE.replace("[0, 3]", "[0]"))
    user.owns(user.home / "r.yaml")
    return user.nsw("run", user.home / "r.yaml", "--root", root, *more)


def test_no_campaign_is_made_where_a_stranger_could_replace_it(victim, neighbour):
    """Whoever owns a folder above it, or may write there, can put other scripts in its place."""
    there = neighbour.home / "deep" / "campaigns"
    there.mkdir(parents=True)
    neighbour.owns(neighbour.home)
    there.chmod(0o777)
    inside = there / "of_the_victim"
    inside.mkdir()
    victim.owns(inside)
    (victim.home / "link").symlink_to(inside)
    (victim.home / "open").mkdir()
    victim.owns(victim.home)
    (victim.home / "open").chmod(0o777)
    for root in (there, inside, victim.home / "link", victim.home / "link" / "new", victim.home / "open" / "new"):
        done = run(victim, root)
        assert (done.returncode, WHO in done.stderr) == (2, True), (root, done)
        assert f"from {root}/t-" in done.stderr  # the campaign's path, and not the one of the half-made folder
    assert list(inside.iterdir()) == []
    assert "belongs to user" in run(victim, inside).stderr
    assert "everyone can write to" in run(victim, victim.home / "open").stderr
    (victim.home / "open").chmod(0o1777)  # as /tmp
    assert run(victim, victim.home / "open" / "new").returncode == 0


def test_a_link_of_a_stranger_on_the_way_is_none_to_follow(victim, neighbour):
    sticky = victim.home.parent / "sticky"
    sticky.mkdir()
    sticky.chmod(0o1777)
    (sticky / "link").symlink_to(victim.home)
    os.lchown(sticky / "link", neighbour.uid, neighbour.uid)
    done = run(victim, sticky / "link" / "campaigns")
    assert (done.returncode, WHO in done.stderr) == (2, True)


def test_a_site_may_trust_the_owner_of_a_project_folder(victim, neighbour):
    project = neighbour.home / "project"
    (project / "victim").mkdir(parents=True)
    neighbour.owns(project)
    victim.owns(project / "victim")
    sites = victim.home / "own.yaml"
    for trusted, code in (("", 2), (f", trusted_owners: [{neighbour.uid}]", 0)):
        sites.write_text(
            f"nsw: 1\nsites:\n  here: {{scheduler: local, gpus: {{per_node: 0}}, scratch: {project}/victim/s{trusted}}}\n"
        )
        victim.owns(sites)
        done = run(victim, victim.home / "campaigns", "--sites", sites, "--site", "here")
        assert (done.returncode, WHO in done.stderr) == (code, code == 2), done


def test_an_owner_whom_nobody_knows_is_a_warning(victim, neighbour):
    place = victim.home.parent / "squashed"
    (place / "victim").mkdir(parents=True)
    os.chown(place, 65534, 65534)
    victim.owns(place / "victim")
    done = run(victim, place / "victim")
    assert done.returncode == 0, done
    assert f"the owner of {place} is unknown" in " ".join(done.stderr.split())


def test_members_of_a_group_that_may_write_are_trusted(victim):
    place = victim.home / "shared"
    place.mkdir()
    victim.owns(place)
    place.chmod(0o775)
    assert run(victim, place).returncode == 0
    subprocess.run(["chmod", "o+w", place], check=True)
    assert WHO in run(victim, place).stderr
