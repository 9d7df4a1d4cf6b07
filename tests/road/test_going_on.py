"""Campaigns that are interrupted, killed, cancelled, retried: nothing is lost, nothing finished is repeated."""

import os
import random
import shutil
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

PATIENCE_S = 300  # on a busy machine an nsw alone takes a minute to start
HEAD = "nsw: 1\nname: t\npasses: [baseline]\nresources: {gpus: 0, time: 10m}\n"


def counting(road, repeats: int, seconds: float = 0.05) -> str:
    """A recipe whose every execution leaves a line in a file of the road's folder."""
    return (
        HEAD + f"repeats: {repeats}\n"
        f"app: {{command: \"echo $PWD >> '{road.home}/done.txt'; sleep {seconds}\"}}\n"
    )  # fmt: skip


def executions(road) -> list[str]:
    file = road.home / "done.txt"
    return file.read_text().splitlines() if file.exists() else []


def wait_until(condition, limit: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, "the awaited condition did not come true"
        time.sleep(0.005)


@pytest.mark.far
@pytest.mark.parametrize("seed", range(6))
def test_killed_at_any_moment_and_resumed_each_run_is_done_exactly_once(road, seed):
    dice = random.Random(seed)
    recipe = road.recipe(counting(road, 12, 0.03))
    nsw = road.start("run", str(recipe), "--site", "here")
    wait_until(lambda: road.root.exists() and any(road.root.glob("[!.]*/campaign.db")))
    for _ in range(3):
        enough = len(executions(road)) + dice.randrange(1, 4)
        wait_until(lambda enough=enough, nsw=nsw: len(executions(road)) >= enough or nsw.poll() is not None)
        time.sleep(dice.random() * 0.02)  # the moment is the point of this test
        nsw.kill()
        nsw.communicate()
        nsw = road.start("resume")
    _, err = nsw.communicate(timeout=PATIENCE_S)
    assert nsw.returncode == 0, err
    assert {r["state"] for r in road.runs().values()} == {"done"}
    assert len(executions(road)) == 12
    assert len(set(executions(road))) == 12


@pytest.mark.far
def test_ctrl_c_ends_nsw_with_130_and_leaves_what_runs_alone(road):
    text = counting(road, 4, 0).replace("sleep 0", f"until [ -e '{road.home}/go' ]; do sleep 0.02; done")
    nsw = road.start("run", str(road.recipe(text)), "--site", "here")
    wait_until(lambda: len(executions(road)) >= 2)
    nsw.send_signal(signal.SIGINT)
    _, err = nsw.communicate(timeout=PATIENCE_S)
    assert nsw.returncode == 130
    assert "nsw resume" in err
    (road.home / "go").touch()
    assert road.nsw("resume").returncode == 0
    assert len(executions(road)) == 4


@pytest.mark.far
def test_a_second_nsw_on_a_campaign_is_refused_and_names_the_first(road):
    program = f"echo $PWD >> '{road.home}/done.txt'; until [ -e '{road.home}/go' ]; do sleep 0.02; done"
    nsw = road.start("run", str(road.recipe(HEAD + f'repeats: 2\napp: {{command: "{program}"}}\n')), "--site", "here")
    wait_until(lambda: len(executions(road)) >= 1)
    second = road.nsw("resume", exits=2)
    assert f"is driven by process {nsw.pid} on" in second.stderr
    assert road.status()["driven"] is True
    (road.home / "go").touch()
    assert nsw.wait(timeout=PATIENCE_S) == 0
    nsw.communicate()
    assert len(executions(road)) == 2


@pytest.mark.far
def test_a_run_that_is_killed_is_failed_with_the_reason_and_retry_does_it_again(road):
    text = (
        HEAD + f"app: {{command: \"echo x >> '{road.home}/done.txt'; [ -e '{road.home}/ok' ] || kill -9 $PPID $$\"}}\n"
    )
    road.run(text, exits=1)
    (run,) = road.runs().values()
    assert run["state"] == "failed"
    (road.home / "ok").touch()
    assert road.nsw("retry").returncode == 0
    (run,) = road.runs().values()
    assert (run["state"], run["attempt"], len(executions(road))) == ("done", 2, 2)


@pytest.mark.far
def test_a_job_that_dies_without_a_word_is_failed_and_not_waited_for(road):
    nsw = road.start("run", str(road.recipe(counting(road, 1, 600))), "--site", "here")
    wait_until(lambda: len(executions(road)) == 1)
    claim = next(road.scratch.glob("runs/*/attempt-1/claim"))
    job = next(line for line in claim.read_text().splitlines() if line.startswith("job_id=")).split("=")[1]
    os.killpg(int(job.partition(".")[0]), signal.SIGKILL)  # of a machine elsewhere with the time when it began
    nsw.communicate(timeout=PATIENCE_S)
    assert nsw.returncode == 1
    (run,) = road.runs().values()
    assert run["state"] == "failed"
    assert "in the middle of this run" in run["reason"]  # elsewhere it is known that its processes were killed
    for left in alive_in(road):  # its program, which has a process group of its own
        os.kill(int(left), signal.SIGKILL)


@pytest.mark.far(quick=True)
def test_cancel_ends_what_runs_with_its_children_and_keeps_what_is_done(road):
    text = counting(road, 3, 600).replace("sleep 600", "[ -e first ] || sleep 600 & wait")
    nsw = road.start("run", str(road.recipe(text)), "--site", "one")
    wait_until(lambda: len(executions(road)) == 1)
    road.nsw("cancel", exits=0)
    nsw.communicate(timeout=PATIENCE_S)
    assert nsw.returncode == 1
    assert {r["state"] for r in road.runs().values()} == {"cancelled"}
    assert len(executions(road)) == 1
    wait_until(lambda: not alive_in(road))


def alive_in(road) -> list[str]:
    """Processes whose working directory is below the campaign's folder on the site."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str((process / "cwd").readlink()).startswith(f"{road.scratch}/"):
                found.append(process.name)
        except OSError:
            continue
    return found


@pytest.mark.far
def test_cancel_of_a_campaign_that_nobody_drives(road):
    nsw = road.start("run", str(road.recipe(counting(road, 3, 600))), "--site", "one")
    wait_until(lambda: len(executions(road)) == 1)
    nsw.kill()
    nsw.communicate()
    assert road.nsw("cancel").returncode == 0
    assert {r["state"] for r in road.runs().values()} == {"cancelled"}
    wait_until(lambda: not alive_in(road))


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGHUP], ids=lambda sign: sign.name)
def test_a_signal_that_ends_nsw_leaves_the_words_of_ctrl_c(road, sign):
    before = signal.signal(sign, signal.SIG_DFL)  # under `nohup make test` nsw would inherit that it ignores SIGHUP
    nsw = road.start("run", str(road.recipe(counting(road, 2, 600))), "--site", "one")
    signal.signal(sign, before)
    wait_until(lambda: len(executions(road)) == 1)
    nsw.send_signal(sign)
    said = nsw.communicate(timeout=PATIENCE_S)[1]
    assert nsw.returncode == 130
    assert "1 run in flight that nsw leaves alone" in said
    assert f"nsw resume {road.campaign.name}`" in said
    assert "interrupted" in (road.campaign / "log.txt").read_text()
    assert road.nsw("cancel").returncode == 0


@pytest.mark.far(quick=True)
def test_a_folder_on_the_site_that_was_removed_is_made_again_with_the_program_in_it(road):
    (road.home / "p.sh").write_text(f"[ -e '{road.home}/ok' ]")
    assert road.run(HEAD + "app: {command: bash p.sh, files: [p.sh]}\n").returncode == 1
    (road.home / "ok").touch()
    shutil.rmtree(road.scratch)
    done = road.nsw("retry", exits=0)
    assert f"{road.scratch} was removed: nsw makes it again" in " ".join(done.stderr.split())


def test_retry_with_nothing_to_retry_says_so(road):
    road.run(HEAD + "app: {command: 'true'}\n")
    done = road.nsw("retry", exits=0)
    assert "nothing to retry" in done.stderr


def test_retry_of_a_run_that_did_not_fail_or_is_not_there_is_refused(road):
    road.run(HEAD + "app: {command: 'true'}\nmatrix: {n: [1]}\n")
    assert "did not fail" in road.nsw("retry", "n-1.baseline.r1").stderr
    assert "did you mean 'n-1.baseline.r1'?" in road.nsw("retry", "n-1.baselin.r1").stderr


@pytest.mark.far
def test_reports_are_read_again_when_reading_was_cut_short(road):
    road.run(HEAD + "app: {command: 'echo f=1', figures: {f: {regex: 'f=(.*)', unit: s}}}\n")
    ledger = road.campaign / "campaign.db"
    import sqlite3

    with sqlite3.connect(ledger) as db:
        db.execute("UPDATE tasks SET reading = 'collected'")
    db.close()
    told = road.nsw("summarize").stdout
    assert "not in these numbers: 1 run done and not read yet, such as case.baseline.r1: `" in told
    assert "nsw resume` reads" in told
    assert road.nsw("resume").returncode == 0
    rows = __import__("json").loads(road.nsw("summarize", "--table", "figures", "--json").stdout)["rows"]
    assert len(rows) == 1


@pytest.mark.far
def test_an_earlier_attempts_output_is_kept_aside(road):
    road.run(HEAD + f"app: {{command: \"echo out; [ -e '{road.home}/ok' ]\"}}\n")
    (road.home / "ok").touch()
    road.nsw("retry")
    kept = sorted(p.relative_to(road.campaign / "reports").parts[1:] for p in road.campaign.glob("reports/**/stdout"))
    assert kept == [("attempt-1", "stdout"), ("stdout",)]


@pytest.mark.far
def test_how_many_run_at_a_time_is_changed_while_they_run(road):
    text = (
        HEAD
        + f"""repeats: 5
app: {{command: "echo $PWD >> '{road.home}/done.txt'; until [ -e '{road.home}/go' ]; do sleep 0.02; done"}}
"""
    )
    nsw = road.start("run", str(road.recipe(text)), "--site", "one")
    wait_until(lambda: len(executions(road)) == 1)
    done = road.nsw("throttle", "3")
    assert "3 tasks at a time; 5 runs not over" in done.stdout
    assert "nsw resume" not in done.stderr
    wait_until(lambda: len(executions(road)) == 3)
    wait_until(lambda: road.status()["counts"] == {"submitted": 2, "running": 1, "planned": 2}
               or road.status()["counts"] == {"running": 3, "planned": 2})  # fmt: skip
    (road.home / "go").touch()
    _, err = nsw.communicate(timeout=PATIENCE_S)
    assert nsw.returncode == 0, err
    assert len(executions(road)) == 5


def test_a_campaign_of_an_nsw_too_old_is_refused_with_what_to_do(road):
    assert road.run(counting(road, 1)).returncode == 0
    (file,) = road.root.glob("[!.]*/campaign.db")
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA user_version = 1")
    done = road.nsw("status", exits=2)
    assert "was written by an older nsw (state version 1; this nsw reads" in done.stderr
    assert "recipe.lock.yaml" in done.stderr
    assert road.nsw("ls").returncode == 0
