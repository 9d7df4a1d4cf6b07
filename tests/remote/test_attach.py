"""A campaign is taken over from another machine, over a real sshd; the former owner is fenced off."""

import gzip
import io
import subprocess
import tarfile
import time
from pathlib import Path

import pytest

import nsw
from nsw.campaign import attach as attaching
from nsw.engine.folder import STATE
from nsw.engine.handover import ARCHIVE, RECIPE, fetch_stored_state, pack, unpack
from nsw.engine.ledger import Ledger
from nsw.engine.ledger_rows import NOTE, SITE_DATA
from nsw.errors import CampaignError, FencedError
from nsw.events import Finished, RunChanged, Started
from nsw.transport.commands import Fence, take_ownership

from .test_campaign import cluster, killed_when_a_run_began  # noqa: F401  a fixture

ONE = pytest.mark.parametrize("cluster", ["ssh"], indirect=True)


def until(condition, process=None, seconds=120):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


@ONE
def test_another_machine_takes_a_campaign_over_and_the_former_owner_submits_nothing_more(cluster):  # noqa: F811
    gate = cluster.work / "gate"
    (cluster.work / "prog.sh").write_text(
        f'while [ ! -e {gate} ]; do sleep 0.1; done; echo "$1" >>{cluster.ran_file}; echo speed=$1'
    )
    sites = (cluster.work / "sites.yaml").read_text().replace("lost_after: 20s", "max_array: 1, max_in_flight: 1")
    (cluster.work / "sites.yaml").write_text(sites)
    words = ("--site", "cluster", "--sites", "sites.yaml")
    former = cluster.start(*cluster.run_words())  # one job at a time: two runs are not submitted yet
    claimed = lambda n: list(cluster.scratch.glob(f"*/*/runs/n-{n}.*/attempt-1/claim"))  # noqa: E731
    until(lambda: claimed(1), former)
    (campaign,) = (p.name for p in (cluster.work / "campaigns").iterdir())
    listed = cluster.nsw("attach", *words)
    assert campaign in listed.stdout, listed.stderr
    present = cluster.start("attach", campaign[:5], *words, "--yes", "--root", "elsewhere")
    there = next(cluster.scratch.glob("*/*"))
    until(lambda: (there / "owner").read_text().startswith("2 "), present)
    gate.touch()
    _, said = former.communicate(timeout=120)
    out, err = present.communicate(timeout=240)
    assert former.returncode == 2, said
    assert f"{campaign} was taken over by root@" in said
    assert "nsw attach" in said
    assert present.returncode == 0, err + out
    assert "taken over from root@" in err
    assert cluster.ran() == ["1", "2", "3"]  # none of them twice
    here = cluster.work / "elsewhere" / campaign
    assert (here / "reports/n-1.baseline.r1/stdout").read_text() == "speed=1\n"
    assert (here / "tables/figures.parquet").exists()
    again = cluster.nsw("resume", campaign, "--root", "campaigns")
    assert again.returncode == 2
    assert "was taken over by" in again.stderr
    cancelled = cluster.nsw("cancel", campaign, "--root", "campaigns")
    assert (cancelled.returncode, "was taken over by" in cancelled.stderr) == (2, True), cancelled
    status = cluster.nsw("status", campaign, "--root", "campaigns")
    assert "taken over by root@" in status.stdout, "and not: nsw resume goes on"
    assert f"nsw attach {campaign}` takes it back" in status.stdout
    assert "nsw resume" not in status.stdout
    cleaned = cluster.nsw("clean", campaign, "--root", "campaigns", "--yes", "--everything")
    assert cleaned.returncode == 2
    assert "was taken over by" in cleaned.stderr, "and not: it is not over, resume or cancel it"
    assert (there / "owner").exists()
    assert f"nsw attach {campaign}` takes it back" in " ".join(said.split())
    back = cluster.nsw("attach", campaign, "--sites", "sites.yaml", "--root", "campaigns")
    assert back.returncode == 0, back.stderr
    assert "taken over" not in cluster.nsw("status", campaign, "--root", "campaigns").stdout
    assert (cluster.work / "campaigns" / campaign / "reports/n-3.baseline.r1/stdout").read_text() == "speed=3\n"
    assert cluster.ran() == ["1", "2", "3"]


@ONE
def test_python_takes_a_campaign_over_and_goes_on_with_it(cluster, monkeypatch):  # noqa: F811
    killed_when_a_run_began(cluster)
    (campaign,) = (p.name for p in (cluster.work / "campaigns").iterdir())
    monkeypatch.chdir(cluster.work)
    running = nsw.attach(campaign[:5], "cluster", sites="sites.yaml", yes=True, root="elsewhere")
    events = list(running)
    assert [type(event) for event in (events[0], events[-1])] == [Started, Finished]
    assert events[-1].good
    ended = {event.run.id for event in events if isinstance(event, RunChanged) and event.run.state == "done"}
    assert ended <= {f"n-{n}.baseline.r1" for n in (1, 2, 3)}
    assert ended  # at least those that had not begun
    assert cluster.ran() == ["1", "2", "3"]  # none of them twice
    found = nsw.open(campaign, root="elsewhere")
    assert (found.good, found.counts) == (True, {"done": 3})
    assert sorted(found.tables.figures["value"]) == [1, 2, 3]
    with pytest.raises(CampaignError, match="was taken over by"):
        nsw.resume(campaign, root="campaigns").wait()


@ONE
def test_what_the_site_gives_after_it_was_shown_is_shown_too(cluster, monkeypatch):  # noqa: F811
    killed_when_a_run_began(cluster)
    (campaign,) = (p.name for p in (cluster.work / "campaigns").iterdir())
    monkeypatch.chdir(cluster.work)
    real, calls = attaching.fetch_stored_state, []

    def changing(transport, there, folder):
        ledger = real(transport, there, folder)
        calls.append(folder)
        if len(calls) == 2:
            recipe = folder / "recipe.lock.yaml"
            recipe.write_text(recipe.read_text() + "notify: touch theirs\n")
        return ledger

    monkeypatch.setattr(attaching, "fetch_stored_state", changing)
    shown = []
    with attaching.campaigns_on_site("cluster", [Path("sites.yaml")]) as found:
        found.attach(campaign, Path("elsewhere"), lambda _, lines: shown.append(lines), print)
    assert ["touch theirs" in str(lines) for lines in shown] == [False, True]


def test_a_take_over_waits_for_the_submission_that_is_under_way_and_stops_the_next(far, tmp_path):
    scratch, log = tmp_path / "c-1", tmp_path / "log"
    scratch.mkdir()
    token = take_ownership(far, str(scratch), "c-1", "1 aa", "1 aa", "me@here")
    assert token == "1 aa"
    fence = Fence(str(scratch), token, "c-1")
    submission = fence.fenced_command(["bash", "-c", f"echo begun >>{log}; sleep 1; echo submitted >>{log}"])
    under_way = subprocess.Popen(submission)
    until(log.exists)
    assert take_ownership(far, str(scratch), "c-1", "0 bb", "*", "you@there") == "2 bb"
    assert log.read_text().split() == ["begun", "submitted"]
    under_way.wait()
    with pytest.raises(FencedError, match="taken over by you@there"):
        fence.unfenced_result(["true"], far.run(fence.fenced_command(["bash", "-c", f"echo late >>{log}"]), timeout=60))
    assert log.read_text().split() == ["begun", "submitted"]
    with pytest.raises(FencedError):
        take_ownership(far, str(scratch), "c-1", "1 aa", "1 aa", "me@here")
    mine = Fence(str(scratch), "2 bb", "c-1")
    argv = ["bash", "-c", "echo out; echo err >&2; exit 3"]
    done = mine.unfenced_result(argv, far.run(mine.fenced_command(argv), timeout=60))
    assert (done.returncode, done.stdout, done.stderr, list(done.argv)) == (3, "out\n", "err\n", argv)


@pytest.mark.parametrize(
    ("archive", "match"),
    [
        (b"", "damaged|lacks"),
        (b"no archive", "damaged"),
        (pack(b"state", b"recipe")[:60], "damaged|lacks"),
    ],
)
def test_a_damaged_hand_over_is_refused(archive, match, tmp_path):
    with pytest.raises(CampaignError, match=match):
        unpack(archive, tmp_path)
    unpack(pack(b"state", b"recipe"), tmp_path)
    assert [(tmp_path / name).read_bytes() for name in (STATE, RECIPE)] == [b"state", b"recipe"]


def test_a_hand_over_with_anything_else_in_it_is_refused(tmp_path):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as made:
        info = tarfile.TarInfo("../evil")
        made.addfile(info, io.BytesIO(b""))
    with pytest.raises(CampaignError, match="never writes"):
        unpack(file.getvalue(), tmp_path)


def test_a_header_of_a_hand_over_gets_no_memory_for_what_it_announces(tmp_path):
    info = tarfile.TarInfo("pax")
    info.type, info.size = tarfile.XHDTYPE, 1 << 33
    state = tarfile.TarInfo(STATE)
    state.size = 1 << 33
    for header, match in ((info, "never writes"), (state, "more than any campaign's")):
        with pytest.raises(CampaignError, match=match):
            unpack(gzip.compress(header.tobuf(tarfile.GNU_FORMAT)), tmp_path)
    assert not (tmp_path / STATE).exists()


def test_a_campaigns_state_that_its_owner_replaces_meanwhile_is_read_whole(far, tmp_path):
    there = tmp_path / "scratch"
    (there / ARCHIVE).parent.mkdir(parents=True)
    with Ledger(tmp_path / "campaign.db", create=True) as ledger:
        ledger.set_meta(SITE_DATA, {"name": "s", "scheduler": "local", "transport": {"kind": "local"}})
        for name, size in (("a", 1 << 20), ("b", 2 << 20)):
            ledger.set_meta(NOTE, name * size)
            (there / name).write_bytes(pack(ledger.dump().encode(), b"nsw: 1"))
    (there / ARCHIVE).write_bytes((there / "a").read_bytes())
    loop = 'while cp "$1/b" "$1/n" && mv "$1/n" "$2" && cp "$1/a" "$1/n" && mv "$1/n" "$2"; do :; done'
    with subprocess.Popen(["bash", "-c", loop, "owner", there, there / ARCHIVE]) as owner:
        try:
            sizes = set()
            for _ in range(40):
                fetch_stored_state(far, str(there), tmp_path)
                sizes.add((tmp_path / STATE).stat().st_size >> 20)
        finally:
            owner.kill()
    assert sizes <= {1, 2}
