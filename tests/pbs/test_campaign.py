"""`nsw run` on the fake PBS, from recipe to answer, with what goes wrong on the way."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from tests.contract.campaigns import PATIENCE_S, folder, ran, runs, until_go, wait_until, words

if TYPE_CHECKING:
    from .places import Pbs


@pytest.mark.parametrize("history", [True, False], ids=["history", "no history"])
def test_runs_are_done_once_in_one_array_with_few_questions(pbs, history):
    pbs.double.settings(history=history)
    pbs.nsw(*words(pbs, 12, "[ {{ n }} != 5 ] || exit 3"), exits=1)
    assert ran(pbs) == list(range(1, 13))
    assert [state for state, _ in runs(pbs)] == ["done"] * 4 + ["failed"] + ["done"] * 7
    calls = json.loads(pbs.nsw("status", "--root", "campaigns", "--json").stdout)["scheduler_calls"]
    assert calls["qsub"] == 1
    assert set(calls) == {"qsub", "qstat"}


def test_a_version_without_array_throttles_gets_arrays_that_may_run_whole(pbs):
    pbs.double.settings(throttles=False, version="19.1.3")
    pbs.nsw(*words(pbs, 7, limits="max_in_flight: 3"), exits=0)
    assert ran(pbs) == list(range(1, 8))
    assert all(tasks <= 3 for _, _, tasks in pbs.double.control("_jobs")["jobs"])


def test_a_torque_server_is_named_as_such_before_anything_is_submitted(pbs):
    pbs.double.settings(version="6.1.2")
    done = pbs.nsw(*words(pbs, 2), exits=2)
    assert "the server is Torque 6.1.2" in done.stderr
    assert "Traceback" not in done.stderr
    assert pbs.double.control("_jobs")["jobs"] == []


def test_what_a_requeue_interrupted_is_done_again_by_the_same_job(pbs):
    def started() -> float | None:
        return json.loads(pbs.nsw("status", "--root", "campaigns", "--json").stdout)["runs"][0]["started"]

    process = pbs.start(*words(pbs, 1, until_go(pbs, "1")))
    wait_until(lambda: ran(pbs) == [1] and started() is not None)
    first = started()
    pbs.double.control("_rerun", id="1.pbs0")
    wait_until(lambda: ran(pbs) == [1, 1])
    wait_until(lambda: started() not in {None, first}, process)  # its time is that of the last start
    (pbs.work / "go").touch()
    assert process.wait(timeout=PATIENCE_S) == 0
    assert runs(pbs) == [("done", "")]
    assert len(pbs.double.control("_jobs")["jobs"]) == 1


def test_a_server_that_is_away_for_a_while_costs_no_run(pbs):
    process = pbs.start(*words(pbs, 3, until_go(pbs, "2")))
    wait_until(lambda: ran(pbs) == [1, 2, 3])
    pbs.double.down()
    (pbs.work / "go").touch()
    time.sleep(2)  # as long as nsw asks and gets no answer
    assert process.poll() is None or process.returncode == 0
    pbs.double.down(is_down=False)
    assert process.wait(timeout=PATIENCE_S) == 0
    assert ran(pbs) == [1, 2, 3]


@pytest.mark.parametrize("history", [True, False], ids=["history", "no history"])
@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("walltime", "the job was over its time limit of 1s"),
        ("mem", "out of memory: job killed: mem 1048576kb exceeded"),
    ],
)
def test_a_job_over_a_limit_of_pbs_says_which_at_once(pbs, history, limit, said):
    pbs.double.settings(history=history)
    body = "trap true TERM; while :; do sleep 0.1; done"
    process = pbs.start(
        *words(pbs, 2, f"[ {{{{ n }}}} = 2 ] && exit; {body}", "max_array: 1, lost_after: 1h", ", memory: 100M")
    )
    wait_until(lambda: ran(pbs) == [1, 2] and [state for state, _ in runs(pbs)] == ["running", "done"], process)
    pbs.double.settings(memory_kb=1 << 20) if limit == "mem" else pbs.run("qalter", "-l", "walltime=1", "1.pbs0")
    assert process.wait(timeout=PATIENCE_S) == 1
    (first, second) = runs(pbs)
    assert (first[0], second) == ("failed", ("done", ""))
    assert first[1].startswith(said)


def test_a_job_that_somebody_deletes_is_reported_and_the_others_go_on(pbs):
    process = pbs.start(*words(pbs, 2, until_go(pbs, "1"), limits="max_array: 1"))
    wait_until(lambda: ran(pbs) == [1, 2])
    jobs = {seq for seq, _, _ in pbs.double.control("_jobs")["jobs"]}
    first = min(jobs)
    pbs.double.command("qdel", f"{first}.pbs0")
    assert process.wait(timeout=PATIENCE_S) == 1
    told = dict(runs(pbs))
    assert "done" in told
    assert any("deleted" in reason for state, reason in runs(pbs) if state != "done")


def test_cancel_fails_with_the_reason_when_the_nsw_that_drives_could_not_cancel_either(pbs):
    process = pbs.start(*words(pbs, 1, until_go(pbs, "1")))
    wait_until(lambda: ran(pbs) == [1])
    for _ in range(2):
        pbs.double.fault("qdel", rc=159, stderr="qdel: Unauthorized Request 1.pbs0")
    done = pbs.nsw("cancel", "--root", "campaigns")
    assert process.wait(timeout=PATIENCE_S) == 3
    assert done.returncode == 3, done.stderr
    assert "jobs could not be cancelled" in done.stderr
    assert runs(pbs)[0][0] == "running"
    assert pbs.nsw("cancel", "--root", "campaigns").returncode == 0
    assert runs(pbs)[0][0] == "cancelled"


def test_a_job_that_can_never_run_is_reported_at_once_and_given_up_when_pbs_keeps_to_it(pbs):
    process = pbs.start(*words(pbs, 1, limits="lost_after: 6s", extra=", nodes: 1, cpus_per_task: 99"))
    wait_until(lambda: bool(list(pbs.work.glob("campaigns/[!.]*/campaign.db"))) and "T: 8" in runs(pbs)[0][1])
    assert runs(pbs)[0][0] == "queued"
    assert process.wait(timeout=PATIENCE_S) == 1
    assert runs(pbs)[0][0] == "failed"
    assert "ncpus (R: 99 A: 8 T: 8)" in runs(pbs)[0][1]


def test_what_no_node_reports_after_a_restart_of_the_server_is_waited_for(pbs):
    nodes = {"ncpus": 8, "ngpus": 0}
    pbs.double.settings(node=nodes | {"mem": "0kb"})
    process = pbs.start(*words(pbs, 2, limits="lost_after: 1s", extra=", memory: 200M"))
    wait_until(lambda: bool(pbs.double.live()), process)
    wait_until(lambda: "(R: 204800kb A: 0kb T: 0kb)" in runs(pbs)[1][1], process)
    time.sleep(3)  # longer than what is never runnable is waited for
    assert [state for state, _ in runs(pbs)] == ["queued", "queued"]
    pbs.double.settings(node=nodes | {"mem": "16gb"})
    pbs.double.control("_cycle")
    assert process.wait(timeout=PATIENCE_S) == 0
    assert ran(pbs) == [1, 2]


def test_what_waits_of_an_array_says_nothing_of_how_others_of_it_ended(pbs):
    pbs.double.settings(node={"ncpus": 1, "ngpus": 0, "mem": "8gb"})
    process = pbs.start(*words(pbs, 4, f"{until_go(pbs, '2')}; [ {{{{ n }}}} != 1 ]"))
    wait_until(lambda: ran(pbs) == [1, 2] and runs(pbs)[0][0] == "failed", process)
    listed = pbs.double.command("qstat", "-t", "-f", "1[].pbs0").stdout
    assert "Exit_status = 0" in listed.partition("Job Id: 1[3].pbs0")[2]  # the array's
    wait_until(lambda: [state for state, _ in runs(pbs)][1:] == ["running", "queued", "queued"], process)
    assert not any("put back" in reason for _, reason in runs(pbs))
    pbs.double.command("qdel", "1[2].pbs0")
    wait_until(lambda: runs(pbs)[2][0] == "cancelled", process)
    assert runs(pbs)[2][1] == "the job was deleted before it began"
    (pbs.work / "go").touch()
    assert process.wait(timeout=PATIENCE_S) == 1
    assert [state for state, _ in runs(pbs)] == ["failed", "done", "cancelled", "done"]


def test_a_job_that_a_routing_queue_deletes_is_submitted_once_and_says_why(pbs):
    pbs.double.settings(queues={"route": {"route": ["short"]}, "short": {"walltime": 60}}, default_queue="route")
    pbs.nsw(*words(pbs, 2, limits="lost_after: 2s"), exits=1)
    assert [state for state, _ in runs(pbs)] == ["failed", "failed"]
    assert "as a routing queue does when no queue behind it accepts the job" in runs(pbs)[0][1]
    calls = json.loads(pbs.nsw("status", "--root", "campaigns", "--json").stdout)["scheduler_calls"]
    assert calls["qsub"] == 1


@pytest.mark.parametrize("count", [1, 2], ids=["job", "array"])
def test_without_history_too_much_memory_is_read_from_what_the_job_printed(pbs, count):
    pbs.double.settings(memory_kb=1 << 20, history=False)
    pbs.nsw(*words(pbs, count, "sleep 300", limits="lost_after: 3s", extra=", memory: 100M"), exits=1)
    for state, reason in runs(pbs):
        assert state == "failed"
        assert "out of memory: job killed: mem 1048576kb exceeded limit 102400kb" in reason


@pytest.mark.parametrize(
    ("extra", "settings", "said", "place"),
    [
        (", queue: nosuch", {}, "Unknown queue", "resources.queue at recipe.yaml:9:"),
        (", queue: debug", {"queues": {"workq": {}, "debug": {"walltime": 60}}}, "Job violates queue",
         "resources.time at recipe.yaml:9:"),
        ("", {"hooks": [{"needs": "filesystems", "says": "filesystems is required to be set"}]}, "filesystems is required",
         "resources.extra at recipe.yaml:9:"),
        ("", {"hooks": [{"needs": "project", "says": "no active allocation"}]}, "no active", "resources.account at sites.yaml:4:"),
        (", queue: debug", {"queues": {"workq": {}, "debug": {"acl_users": ["bob"]}}}, "Unauthorized Request",
         "access list (acl_users, acl_groups, acl_hosts) does not name you"),
        (", extra: ['#PBS -l nosuch=1']", {}, "Unknown resource", "resources.extra at recipe.yaml:9:"),
        (", extra: ['#PBS -l ngpus=1']", {}, '"-lresource=" cannot be used', "resources.extra at recipe.yaml:9:"),
        (", extra: ['#PBS -l nodes=1']", {}, "Cannot be used with select", "resources.extra at recipe.yaml:9:"),
    ],
)  # fmt: skip
def test_a_refusal_is_shown_with_the_line_that_asks_for_it(pbs, extra, settings, said, place):
    pbs.double.settings(**settings)
    pbs.nsw(*words(pbs, 1, extra=extra), exits=1)
    ((state, reason),) = runs(pbs)
    assert state == "failed"
    assert f"qsub refused the job: {said}" in reason
    assert place in reason
    assert ran(pbs) == []


def test_a_retry_asks_for_the_queue_that_was_corrected_in_the_sites_file(pbs):
    run_words = words(pbs, 2)
    sites = pbs.work / "sites.yaml"
    sites.write_text(sites.read_text().replace("account:", "queue: dbug, account:"))
    assert pbs.nsw(*run_words).returncode == 1
    assert "Unknown queue" in runs(pbs)[0][1]
    sites.write_text(sites.read_text().replace("dbug", "debug"))
    done = pbs.nsw("retry", "--root", "campaigns", "--sites", "sites.yaml", exits=0)
    assert "(queue: debug)" in done.stderr
    assert ran(pbs) == [1, 2]
    assert "queue = debug" in pbs.run("qstat", "-x", "-f").stdout
    assert [path.name for path in (folder(pbs) / "scripts").iterdir() if "-2" in path.name]


def test_a_folder_that_qsub_cannot_name_is_refused_before_there_is_a_campaign(pbs):
    there = pbs.work / "Mühe"
    assert "illegal -o value" in pbs.run("qsub", "-o", f"{there}/log", "x.sh").stderr
    done = pbs.nsw(*words(pbs, 1)[:-3], "--root", str(there), "--yes", exits=2)
    assert "a character that qsub does not take in paths" in done.stderr
    assert "extra" not in done.stderr
    assert not there.exists()


def test_sites_check_names_the_default_queue_with_its_limit(pbs):
    words(pbs, 1)
    pbs.double.settings(queues={"workq": {"walltime": 7200}, "debug": {}})
    done = pbs.nsw("sites", "check", "s", "--sites", "sites.yaml")
    (line,) = (line for line in done.stdout.splitlines() if "limits" in line)
    assert "workq: jobs of at most 2 h 0 min" in line, done


def test_a_check_of_a_node_is_where_nodes_see_it_and_its_folder_waits_for_what_the_job_printed(pbs):
    words(pbs, 1)
    pbs.double.settings(exiting=1.0)
    done = pbs.nsw("sites", "check", "s", "--sites", "sites.yaml", "--node")
    assert "ran the shortest job" in done.stdout, done
    told = pbs.run("qstat", "-x", "-f", "1.pbs0").stdout
    assert "Stageout_status = 1" in told
    assert f":{pbs.work}/campaigns/.nsw-node-check-" in "".join(told.split())
    assert not (pbs.work / "campaigns").exists()


def test_runs_that_are_refused_for_one_reason_share_a_line_with_their_number(pbs):
    done = pbs.nsw(*words(pbs, 12, extra=", queue: nosuch"))
    assert [state for state, _ in runs(pbs)] == ["failed"] * 12
    (line,) = [line for line in done.stderr.splitlines() if "refused the job" in line]
    assert line.startswith("12/12 failed    n-1.baseline.r1 and 11 more: qsub refused the job: Unknown queue")
    status = pbs.nsw("status", "--root", "campaigns").stdout
    assert status.count("refused the job") == 1
    assert "and 11 more" in status


def test_text_that_a_site_prints_before_an_answer_changes_nothing(pbs):
    for command in ("qsub", "qstat", "qstat"):
        pbs.double.fault(command, noise="NOTICE: maintenance on Monday 9.30 am")
    pbs.nsw(*words(pbs, 2), exits=0)
    assert ran(pbs) == [1, 2]


def test_a_retry_of_runs_with_gaps_submits_ranges(pbs):
    first = f"[ -e {pbs.work}/go ] || [ $(( {{{{ n }}}} % 2 )) = 1 ]"
    assert pbs.nsw(*words(pbs, 5, first)).returncode == 1
    (pbs.work / "go").touch()
    assert pbs.nsw("retry", "--failed", "--root", "campaigns").returncode == 0
    assert ran(pbs) == [1, 2, 2, 3, 4, 4, 5]


def test_a_run_whose_node_dies_is_done_again_by_the_requeued_job(pbs):
    pbs.double.settings(node_fail_requeue=0.3)
    process = pbs.start(*words(pbs, 1, until_go(pbs, "1")))
    wait_until(lambda: ran(pbs) == [1])
    pbs.double.control("_lose_node")
    wait_until(lambda: "Exit_status = -20" in pbs.double.command("qstat", "-f", "1.pbs0").stdout)
    (pbs.work / "go").touch()
    pbs.double.control("_regain_node")
    pbs.double.control("_cycle")
    assert process.wait(timeout=PATIENCE_S) == 0
    assert ran(pbs) == [1, 1]
    assert runs(pbs) == [("done", "")]
    (scratch,) = (folder(pbs) / "scratch" / "runs").iterdir()
    assert {path.name for path in scratch.iterdir()} == {"attempt-1", "attempt-1.before-restart-1"}


def test_a_run_that_is_not_to_be_restarted_fails_with_its_node(pbs):
    pbs.double.settings(node_fail_requeue=0.3)
    process = pbs.start(*words(pbs, 1, until_go(pbs, "1"), extra=", extra: ['#PBS -r n']"))
    wait_until(lambda: ran(pbs) == [1])
    pbs.double.control("_lose_node")
    assert process.wait(timeout=PATIENCE_S) == 1
    ((state, reason),) = runs(pbs)
    assert (state, reason.split(";")[0]) == ("failed", "a node of the job failed in the middle of this run")
    assert "`nsw retry` runs it again" in reason


def test_what_a_sites_hook_lets_not_begin_is_submitted_again_until_it_may(pbs):
    pbs.double.settings(begin_rejects=True, mom_poll=0.02)
    process = pbs.start(*words(pbs, 1, limits="lost_after: 1s"))
    wait_until(lambda: "too many failed attempts to run" in pbs.double.command("qstat", "-f", "1.pbs0").stdout, process)
    pbs.double.settings(begin_rejects=False)
    assert process.wait(timeout=PATIENCE_S) == 0
    assert ran(pbs) == [1]
    assert len(pbs.double.control("_jobs")["jobs"]) == 2


def test_a_held_job_waits_with_its_reason_and_goes_on_when_it_is_released(pbs):
    pbs.double.hold()
    process = pbs.start(*words(pbs, 1))
    wait_until(lambda: bool(pbs.double.live()))
    pbs.double.command("qhold", "1.pbs0")
    pbs.double.release()
    wait_until(lambda: runs(pbs)[0][1] == "held by the user: `qrls 1.pbs0` releases it")
    pbs.double.command("qrls", "1.pbs0")
    assert process.wait(timeout=PATIENCE_S) == 0


def test_output_that_pbs_cannot_deliver_does_not_spoil_the_run(pbs):
    process = pbs.start(*words(pbs, 1, until_go(pbs, "1")))
    wait_until(lambda: ran(pbs) == [1])
    (log,) = (folder(pbs) / "scratch" / "jobs").glob(".start.*")
    (log.parent / f"{name_of(pbs)}.log").mkdir()  # nothing can be copied there
    (pbs.work / "go").touch()
    assert process.wait(timeout=PATIENCE_S) == 0
    assert runs(pbs) == [("done", "")]
    wait_until(lambda: "Stageout_status = 0" in pbs.double.command("qstat", "-x", "-f", "1.pbs0").stdout)


def name_of(pbs: Pbs) -> str:
    ((_, name, _),) = pbs.double.control("_jobs")["jobs"]
    return name


@pytest.mark.parametrize("good", [True, False], ids=["good build", "bad build"])
def test_runs_follow_the_job_that_builds_their_program(pbs, good):
    how = words(pbs, 2)
    build = f"build: {{command: 'sleep 1; {'true' if good else 'exit 4'}', where: job}}"
    text = (pbs.work / "recipe.yaml").read_text()
    (pbs.work / "recipe.yaml").write_text(text.replace("matrix:", f"  {build}\nmatrix:"))
    done = pbs.nsw(*how)
    assert done.returncode == (0 if good else 2), done.stderr
    assert ran(pbs) == ([1, 2] if good else [])
    assert {state for state, _ in runs(pbs)} == {"done" if good else "failed"}
    if not good:
        assert all("build" in reason for _, reason in runs(pbs))


def test_a_walltime_that_ends_a_packed_job_midway_costs_only_the_runs_that_were_not_done(pbs):
    body = f"[ {{{{ n }}}} != 2 ] || [ -e {pbs.work}/go ] || sleep 300"
    process = pbs.start(*words(pbs, 3, body, limits="runs_per_job: 3"))
    wait_until(lambda: ran(pbs) == [1, 2])
    pbs.double.command("qalter", "-l", "walltime=00:00:01", "1.pbs0")
    assert process.wait(timeout=PATIENCE_S) == 1
    told = runs(pbs)
    assert [state for state, _ in told] == ["done", "failed", "failed"]
    assert all("the job was over its time limit" in reason for _, reason in told[1:])
    (pbs.work / "go").touch()
    assert pbs.nsw("retry", "--failed", "--root", "campaigns").returncode == 0
    assert ran(pbs) == [1, 2, 2, 3]
