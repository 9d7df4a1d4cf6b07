"""`nsw run` on the fake Cobalt, from recipe to answer, with what goes wrong on the way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nsw.cli.main import run
from nsw.engine.ledger import Ledger
from nsw.errors import CommandResult
from nsw.recipe import load as recipes
from nsw.schedulers.batch import BatchScheduler, Limits
from nsw.schedulers.cobalt import Cobalt as Adapter
from nsw.schedulers.model import Phase, Submission
from nsw.transport.commands import PATIENT
from nsw.transport.local import LocalTransport
from tests.contract.campaigns import PATIENCE_S, folder, ran, runs, until_go, wait_until, words

if TYPE_CHECKING:
    from .places import Cobalt


def states(place: Cobalt) -> list[str]:
    return [job["state"] for job in place.cqm()["jobs"].values()]


def test_runs_are_done_once_whatever_the_sites_filter_and_the_users_environment_print(cobalt):
    filtered(cobalt, 'echo "Job 12345 routed to queue \\"debug\\"." >&2\necho queue=debug')
    cobalt.nsw(*words(cobalt, 6, "[ {{ n }} != 5 ] || exit 3"), QSTAT_HEADER="User:State", exits=1)
    assert ran(cobalt) == [1, 2, 3, 4, 5, 6]
    assert [state for state, _ in runs(cobalt)] == ["done"] * 4 + ["failed", "done"]


def test_no_recipe_is_parsed_twice_and_submissions_of_one_command_are_committed_together(cobalt, monkeypatch):
    parsed, open_before = [], []
    load, submitted = recipes.load_recipe_text, Ledger.record_native_id

    def counted(text: str, file: str) -> recipes.LoadedRecipe:
        parsed.append(text)
        return load(text, file)

    def watched(self: Ledger, *words: object) -> None:
        open_before.append(self._db.in_transaction)
        submitted(self, *words)

    monkeypatch.setattr(recipes, "load_recipe_text", counted)
    monkeypatch.setattr(Ledger, "record_native_id", watched)
    for name, value in cobalt.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(cobalt.work)
    assert run(list(words(cobalt, 5))) == 0
    assert len(parsed) == len(set(parsed)) == 2  # to read; to notify and to answer, with the versions that were used
    assert open_before == [True] * 5


def filtered(place: Cobalt, text: str) -> None:
    """A site's filter, a shell script."""
    file = place.work / "filter"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    place.settings(filter=str(file))


@pytest.mark.parametrize(
    ("extra", "refuses", "said", "key"),
    [
        (", queue: nosuch", "", "trying to add job to non-existent queue 'nosuch'", "queue"),
        (", queue: debug", "", "Walltime greater than the 'debug' queue max walltime of 00:04:00", "time"),
        (", nodes: 17", "", "node count out of realistic range", "nodes"),
        (', extra: ["#COBALT --attrs a=b=c"]', "", "Improperly formatted argument to attrs : a=b=c", "extra"),
        ("", "Project is required: use -A", "Project is required: use -A", "account"),
        ("", "the filesystems attribute is not set", "the filesystems attribute is not set", "extra"),
    ],
    ids=["queue", "walltime", "nodes", "attrs", "account", "filesystems"],
)  # fmt: skip
def test_a_refusal_is_shown_at_the_line_that_asks_for_it(cobalt, extra, refuses, said, key):
    if extra == ", queue: debug":
        cobalt.run("cqadm", "--setq", "maxtime=00:04:00", "debug")
    elif refuses:
        filtered(cobalt, f"echo '{refuses}' >&2; exit 1")
    done = cobalt.nsw(*words(cobalt, 1, extra=extra))
    told = done.stderr + done.stdout
    assert done.returncode == 1
    assert said in told
    place = "sites.yaml:4:" if key == "account" else "recipe.yaml:9:"
    assert f"resources.{key} at {place}" in told
    assert "Traceback" not in told
    assert ran(cobalt) == []


def test_a_plan_says_that_each_task_is_a_job_of_cobalt(cobalt):
    shown = cobalt.nsw("plan", *words(cobalt, 24)[1:6])
    assert "24 runs, 1 job" in shown.stdout, shown
    assert "Cobalt has no job arrays: each of the 24 tasks is a job of its own there" in shown.stdout
    assert "no job arrays" not in cobalt.nsw("plan", *words(cobalt, 1)[1:6]).stdout


def test_a_folder_whose_blanks_cobalt_drops_is_refused_before_there_is_a_campaign(cobalt):
    script = cobalt.work / "a b" / "x.sh"
    script.parent.mkdir()
    script.touch(0o755)
    assert f"command {cobalt.work}/ab/x.sh not found" in cobalt.run("qsub", "-n", "1", "-t", "5", str(script)).stderr
    run_words = words(cobalt, 1)
    sites = cobalt.work / "sites.yaml"
    sites.write_text(sites.read_text().replace("account:", f"scratch: {cobalt.work}/scratch, account:"))
    done = cobalt.nsw(*run_words[:-3], "--root", "a b", "--yes", exits=2)
    assert "Cobalt finds no job script in" in done.stderr
    assert "--root" in done.stderr
    assert list(script.parent.iterdir()) == [script]


def test_of_a_dead_queue_manager_one_sentence_is_shown_with_a_hint_that_fits(cobalt):
    run_words = words(cobalt, 1)
    cobalt.settings(down="cqm")
    assert len(cobalt.run("qstat", "-Q").stderr) > 2000
    refused = "`qstat`: component error: XMLRPC failure <Fault 20: 'error: [Errno 111] Connection refused'>"
    done = cobalt.nsw(*run_words, exits=3)
    assert refused in " ".join(done.stderr.split())
    assert "its server does not answer: try again later" in done.stderr
    checked = cobalt.nsw("sites", "check", "s", "--sites", "sites.yaml").stdout
    assert refused in " ".join(checked.split())
    for said in (done.stderr, checked):
        assert "TRACEBACK" not in said
        assert "No handlers" not in said


def test_a_cancel_that_a_dead_queue_manager_does_not_hear_is_carried_out_by_the_nsw_that_drives(cobalt):
    cobalt.settings(nodes=1, kill_s=0.3)
    process = cobalt.start(*words(cobalt, 2, until_go(cobalt, "1")))
    wait_until(lambda: ran(cobalt) == [1] and runs(cobalt)[1][0] == "queued", process)
    for _ in range(PATIENT):
        cobalt.fault(
            "qdel", rc=1, stderr="component error: XMLRPC failure <Fault 20: '[Errno 111] Connection refused'>"
        )
    assert cobalt.nsw("cancel", "--root", "campaigns").returncode == 0
    assert process.wait(timeout=PATIENCE_S) == 1
    assert [state for state, _ in runs(cobalt)] == ["cancelled", "cancelled"]
    wait_until(lambda: not cobalt.cqm()["jobs"])
    assert ran(cobalt) == [1]


def test_a_cancel_that_a_dead_queue_manager_does_not_hear_is_carried_out_by_the_next_nsw(cobalt):
    process = cobalt.start(*words(cobalt, 1, until_go(cobalt, "1")))
    wait_until(lambda: ran(cobalt) == [1], process)
    process.kill()
    process.wait()
    cobalt.settings(down="cqm", kill_s=0.3)
    done = cobalt.nsw("cancel", "--root", "campaigns", exits=3)
    assert "nsw remembers it" in done.stderr
    cobalt.settings(kill_s=0.3)
    assert cobalt.nsw("resume", "--root", "campaigns").returncode == 1
    assert runs(cobalt)[0][0] == "cancelled"
    wait_until(lambda: not cobalt.cqm()["jobs"])


def test_an_outage_costs_no_run(cobalt):
    process = cobalt.start(*words(cobalt, 3, until_go(cobalt, "2")))
    wait_until(lambda: ran(cobalt) == [1, 2, 3])
    cobalt.settings(down="all", kill_s=0.3)
    (cobalt.work / "go").touch()
    wait_until((cobalt.state / "unanswered").exists, process)
    cobalt.settings(kill_s=0.3)
    assert process.wait(timeout=PATIENCE_S) == 0
    assert ran(cobalt) == [1, 2, 3]


def test_a_job_that_somebody_deletes_is_reported_and_the_others_go_on(cobalt):
    process = cobalt.start(*words(cobalt, 2, until_go(cobalt, "1")))
    wait_until(lambda: ran(cobalt) == [1, 2])
    cobalt.run("qdel", "1", "2")
    assert process.wait(timeout=PATIENCE_S) == 1
    (first, second) = runs(cobalt)
    assert first[0] in {"failed", "cancelled"}
    assert "deleted" in first[1]
    assert second == ("done", "")


def test_a_job_over_its_time_limit_says_so(cobalt):
    cobalt.settings(minute_s=0.1, kill_s=0.3)
    cobalt.nsw(*words(cobalt, 1, "sleep 60"), exits=1)
    ((state, reason),) = runs(cobalt)
    assert state == "failed"
    assert "time limit" in reason


def test_a_job_that_the_site_holds_waits_with_what_to_do_and_goes_on_when_it_is_released(cobalt):
    filtered(cobalt, "echo user_hold=True")
    process = cobalt.start(*words(cobalt, 1))
    wait_until(lambda: len(cobalt.cqm()["jobs"]) == 1)
    wait_until(lambda: "`qrls 1`" in runs(cobalt)[0][1])
    assert runs(cobalt)[0][0] == "queued"
    cobalt.run("qrls", "1")
    assert process.wait(timeout=PATIENCE_S) == 0


def test_a_job_that_waits_for_one_that_failed_is_given_up_with_the_reason(cobalt):
    cobalt.run("cqadm", "--stopq", "default")
    process = cobalt.start(*words(cobalt, 1, limits="lost_after: 2s"))
    wait_until(lambda: len(cobalt.cqm()["jobs"]) == 1, process)
    other = cobalt.work / "other.sh"
    other.write_text("#!/bin/bash\nexit 3\n")
    other.chmod(0o755)
    cobalt.run("qsub", "-t", "10", "-n", "1", str(other))
    cobalt.run("qalter", "--dependencies", "2", "1")
    cobalt.run("cqadm", "--startq", "default")
    assert process.wait(timeout=PATIENCE_S) == 1
    ((state, reason),) = runs(cobalt)
    assert state == "failed"
    assert reason.endswith("a job that it depends on failed, and it would wait for ever (dep_fail)")
    wait_until(lambda: not cobalt.cqm()["jobs"])
    assert ran(cobalt) == []


def test_an_id_given_out_twice_is_not_taken_for_the_job_that_was_lost(cobalt):
    """Cobalt forgets what it had not saved, and gives its ids to other jobs."""
    cobalt.run("cqadm", "--stopq", "default")
    process = cobalt.start(*words(cobalt, 1, limits="max_in_flight: 16, lost_after: 2s"))
    wait_until(lambda: len(cobalt.cqm()["jobs"]) == 1)
    cobalt.crash()
    other = cobalt.work / "other.sh"
    other.write_text("#!/bin/bash\n")
    other.chmod(0o755)
    assert cobalt.run("qsub", "-t", "10", "-n", "1", str(other)).stdout.strip() == "1"
    cobalt.run("cqadm", "--startq", "default")
    assert process.wait(timeout=PATIENCE_S) == 0
    assert ran(cobalt) == [1]


def test_of_a_packed_job_that_was_killed_only_what_did_not_finish_is_done_again(cobalt):
    process = cobalt.start(*words(cobalt, 3, until_go(cobalt, "2"), limits="runs_per_job: 3"))
    wait_until(lambda: ran(cobalt) == [1, 2])
    cobalt.run("qdel", "1")
    assert process.wait(timeout=PATIENCE_S) == 1
    (cobalt.work / "go").touch()
    cobalt.nsw("retry", "--root", "campaigns", exits=0)
    assert ran(cobalt) == [1, 2, 2, 3]


class Counted(LocalTransport):
    """Counts round trips to a Cobalt that takes everything."""

    trips = 0

    def make_folders(self, folders):
        del folders

    def run(self, argv, **_more):
        self.trips += 1
        rows = "".join(f"{job}  me  queued  nsw-{job}\n" for job in argv[3:])
        return CommandResult(tuple(argv), 0, "JobID  User  State   JobName\n======================\n" + rows, "")

    def run_many(self, commands, **_more):
        self.trips += 1
        return [CommandResult(tuple(argv), 0, f"{argv[-1]}\n", "site filter: 5 notes\n") for argv in commands]


def test_a_hundred_jobs_are_submitted_and_polled_in_two_remote_commands():
    way = Counted()
    it = BatchScheduler(Adapter(), way, "/scratch/c", "c", Limits(in_flight=100))
    script = Path("j.sh")
    sent = [Submission(f"nsw-{n}", "j", script, 1, (n,)) for n in range(1, 101)]
    together = it.can.submissions_per_command
    outcomes = [one for at in range(0, 100, together) for one in it.submit(sent[at : at + together])]
    assert [outcome.native for outcome in outcomes] == [str(n) for n in range(1, 101)]
    assert way.trips == 1
    told = it.poll([replace(one, native_id=outcome.native) for one, outcome in zip(sent, outcomes, strict=True)])
    assert way.trips == 2
    assert {answer.phase for answers in told.values() for answer in answers.values()} == {Phase.QUEUED}


def test_a_poll_of_very_many_jobs_is_read_to_its_end():
    rows = "".join(f"{job}  me  running  nsw-{job}\n" for job in range(100_000))
    answer = CommandResult(("qstat",), 0, "JobID  User  State   JobName\n======================\n" + rows, "")
    assert len(Adapter().parse_queue(answer) or ()) == 100_000


def test_a_campaign_s_lockfile_asks_for_nothing_that_cobalt_has_no_option_for(cobalt):
    assert cobalt.nsw(*words(cobalt, 1, f"[ -e {cobalt.work}/go ]")).returncode == 1
    (cobalt.work / "go").touch()
    cobalt.nsw("retry", "--time", "6m", "--sites", "sites.yaml", "--root", "campaigns", exits=0)
    (lock,) = cobalt.work.glob("campaigns/*/recipe.lock.yaml")
    assert "exclusive: false" in lock.read_text()
    cobalt.nsw("run", str(lock), "--site", "s", "--sites", "sites.yaml", "--root", "campaigns", "--yes", exits=0)


GONE = "is missing on the site (scripts/nsw-*.sh), so nothing was begun"
FULL = "the job could not write its files: the disk or the quota of the site's scratch folder is full"


@pytest.mark.parametrize(("said", "is_gone"), [(GONE, True), (FULL, False)], ids=["gone", "full"])
def test_a_job_that_finds_no_shared_file_or_no_room_begins_nothing_and_says_so(cobalt, said, is_gone):
    process = cobalt.start(*words(cobalt, 2, until_go(cobalt, "1"), limits="max_in_flight: 1"))
    wait_until(lambda: ran(cobalt) == [1])
    (shared,) = folder(cobalt).glob("scratch/scripts/nsw-*.sh")
    text = shared.read_text()
    shared.unlink()
    if not is_gone:
        shared.write_text(text.replace("exec {nsw_claim}>claim;", "exec {nsw_claim}>/dev/full; : >claim;"))
    (cobalt.work / "go").touch()
    assert process.wait(timeout=PATIENCE_S) == 1
    assert ran(cobalt) == [1]
    ((first, _), (second, why)) = runs(cobalt)
    assert (first, second) == ("done", "failed")
    assert said in why
