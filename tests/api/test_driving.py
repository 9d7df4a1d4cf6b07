"""`nsw.run` and `nsw.resume`: events as they happen, after a kill, in a thread, two at a time."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import get_args

import pytest

import nsw
from nsw.errors import CampaignLockedError, InputError, UsageError
from nsw.events import Finished, Message, ReportsRead, RunChanged, RunsEnded, Started

FIGURE = "{command: 'echo f={{ n }}', figures: {f: {regex: 'f=(.*)', unit: s}}}"


def states(events):
    return [(e.run.id, str(e.run.state)) for e in events if isinstance(e, RunChanged)]


def ended(events):
    return [id_ for id_, state in states(events) if state == "done"]


def test_a_campaign_is_driven_while_its_events_are_taken(recipe):
    running = nsw.run(recipe(FIGURE, "matrix: {n: [1, 2, 3]}\n"), "here", set={"n": [2, 3, 4]}, exclude={"n": 4})
    assert running.campaign.counts == {"planned": 2}
    events = list(running)
    kinds = [type(e) for e in events if isinstance(e, Started | RunsEnded | ReportsRead | Finished)]
    assert kinds == [Started, RunsEnded, ReportsRead, ReportsRead, Finished]
    assert sorted(ended(events)) == ["n-2.baseline.r1", "n-3.baseline.r1"]
    assert [(e.over, e.total) for e in events if isinstance(e, RunChanged)][-1] == (2, 2)
    assert events[-1] == Finished({"done": 2}, good=True)
    assert str(events[-1]) == "2 runs: 2 done"
    campaign = running.campaign
    assert campaign.good
    assert dict(zip(campaign.tables.figures["n"], campaign.tables.figures["value"], strict=True)) == {2: 2.0, 3: 3.0}


def test_wait_gives_the_campaign_and_hands_each_event_over(recipe, capsys):
    campaign = nsw.run(recipe("{command: 'exit {{ n }}'}", "matrix: {n: [0, 3]}\n"), "here").wait(print)
    printed = capsys.readouterr()
    assert "2/2 " in printed.out
    assert "failed" in printed.out
    assert "exit status 3" in printed.out
    assert printed.err == ""
    assert not campaign.good
    assert campaign.counts == {"done": 1, "failed": 1}
    with pytest.raises(UsageError, match="no run matches"):
        nsw.retry(campaign, exclude="n-4")
    again = nsw.retry(campaign, runs="n-3").wait()
    assert list(again.runs[again.runs["n"] == 3]["attempt"]) == [2]


def test_nothing_is_printed_by_itself(recipe, capfd):
    nsw.run(recipe("{command: 'true'}"), "here").wait()
    assert capfd.readouterr() == ("", "")


def test_who_leaves_the_loop_leaves_the_campaign_to_be_resumed(recipe):
    with nsw.run(recipe("{command: 'sleep 0.2; true'}", "matrix: {n: [1, 2, 3]}\n"), "here") as running:
        next(e for e in running if isinstance(e, RunChanged) and e.run.state == "done")
    assert not running.driving
    left = running.campaign
    assert left.counts.get("done", 0) < 3
    events = list(nsw.resume(left))
    assert events[-1] == Finished({"done": 3}, good=True)
    assert set(left.runs["attempt"]) == {1}
    assert "interrupted" in (left.folder / "log.txt").read_text()


def test_ctrl_c_leaves_runs_alone_and_the_campaign_free(recipe, home):
    running = nsw.run(recipe(f"{{command: 'until [ -e {home}/go ]; do sleep 0.05; done'}}"), "here")

    def press(event):
        if isinstance(event, RunChanged) and event.run.state == "running":
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        running.wait(press)
    assert not running.driving
    assert "done" not in running.campaign.counts
    (home / "go").touch()
    again = nsw.resume(running.campaign).wait()
    assert (again.good, list(again.runs["attempt"])) == (True, [1])


def test_a_campaign_whose_program_was_killed_is_resumed(recipe, home):
    name = recipe("{command: 'echo x >> {{ mark }}; sleep 0.2'}", f"matrix: {{n: [1, 2, 3], mark: ['{home}/marks']}}\n")
    script = (
        "import nsw, os, signal\n"
        f"for event in nsw.run({name!r}, 'here'):\n"
        "    if isinstance(event, nsw.events.RunChanged) and event.run.state == 'done':\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == -9, done.stderr
    campaign = nsw.open()
    assert campaign.counts != {"done": 3}
    assert nsw.resume(campaign).wait().good
    assert (home / "marks").read_text() == "x\n" * 3


def test_in_a_thread_of_a_notebook_or_a_server(recipe):
    """Where no handler of signals can be set: the campaign is made here and driven there."""
    running = nsw.run(recipe(FIGURE, "matrix: {n: [1, 2]}\n"), "here")
    events: list[nsw.events.Event] = []
    thread = threading.Thread(target=lambda: events.extend(running))
    thread.start()
    thread.join(300)
    assert not thread.is_alive()
    assert sorted(ended(events)) == ["n-1.baseline.r1", "n-2.baseline.r1"]
    assert running.campaign.good


def test_two_campaigns_in_one_process_by_turns_and_in_threads(recipe):
    one = nsw.run(recipe(FIGURE, "matrix: {n: [1, 2]}\n"), "here")
    two = nsw.run(recipe(FIGURE, "matrix: {n: [3, 4]}\n", "other.yaml"), "here")
    seen = {one: [], two: []}
    while any(not isinstance(events[-1] if events else None, Finished) for events in seen.values()):
        for running, events in seen.items():
            if (event := next(running, None)) is not None:
                events.append(event)
    assert [sorted(ended(events)) for events in seen.values()] == [
        ["n-1.baseline.r1", "n-2.baseline.r1"], ["n-3.baseline.r1", "n-4.baseline.r1"],
    ]  # fmt: skip
    both = [nsw.run("r.yaml", "here"), nsw.run("other.yaml", "here")]
    threads = [threading.Thread(target=running.wait) for running in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert [list(running.campaign.tables.figures["value"]) for running in both] == [[1, 2], [3, 4]]


def test_a_campaign_is_driven_once_at_a_time(recipe):
    running = nsw.run(recipe("{command: 'true'}"), "here")
    with running:
        assert isinstance(next(running), Started)
        with pytest.raises(CampaignLockedError):
            nsw.resume(running.campaign)
    assert nsw.resume(running.campaign).wait().good


def test_a_fault_comes_behind_what_happened_before_it(recipe, monkeypatch):
    def failing(self):
        self.emit(Message("about to fail"))
        raise nsw.errors.CampaignError("it fails")
        yield

    monkeypatch.setattr("nsw.campaign.running.Running._carry_out_planned", failing)
    running = nsw.run(recipe("{command: 'true'}"), "here")
    assert next(running) == Message("about to fail")
    with pytest.raises(nsw.errors.CampaignError, match="it fails"):
        next(running)


def test_a_build_that_fails_ends_the_campaign(recipe):
    running = nsw.run(recipe("{command: 'true', build: {command: 'echo no; false'}}"), "here")
    events: list[nsw.events.Event] = []
    with pytest.raises(nsw.errors.CampaignError, match="the build step failed"):
        events.extend(running)
    assert Started in {type(event) for event in events}
    assert not running.driving


def test_faults_are_those_of_nsw_errors(recipe, home):
    with pytest.raises(InputError) as caught:
        nsw.run(recipe("{command: 'true', figurs: {}}"), "here")
    assert caught.value.diagnostics[0].hint == "did you mean 'figures'?"
    with pytest.raises(UsageError, match="the recipe has no gpu"):
        nsw.run(recipe("{command: 'true'}"), "here", set={"gpu": 1})
    with pytest.raises(UsageError, match="which a recipe cannot hold"):
        nsw.run("r.yaml", "here", set={"repeats": object()})
    with pytest.raises(UsageError, match=r"3.33 node-hours.*nothing was submitted") as caught:
        nsw.run(recipe("{command: 'true'}", "repeats: 100\n"), "dear")
    assert caught.value.hint == "yes=True starts it"
    assert not (home / "campaigns").exists()


def test_runs_are_added_to_a_campaign(recipe):
    campaign = nsw.run(recipe(FIGURE, "matrix: {n: [1, 2]}\n"), "here").wait()
    same = nsw.run("r.yaml", into=campaign).wait()
    assert (same.id, same.counts) == (campaign.id, {"done": 2})
    more = nsw.run("r.yaml", into=campaign, set={"n": [1, 2, 3]}).wait()
    assert (more.id, more.counts, more.good) == (campaign.id, {"done": 3}, True)
    assert set(more.runs["attempt"]) == {1}
    with pytest.raises(UsageError, match="a campaign keeps its own"):
        nsw.run("r.yaml", "here", into=campaign)


def test_a_retry_may_change_the_time_limit(recipe):
    campaign = nsw.run(recipe("{command: 'exit 3'}"), "here").wait()
    again = nsw.retry(campaign, time="7m").wait()
    assert list(again.runs["attempt"]) == [2]
    with pytest.raises(UsageError, match="time: "):
        nsw.retry(campaign, time="soon")


@pytest.fixture
def other(recipe, home):
    """A campaign of another process that runs on this machine until the file `go` is there."""
    recipe(f"{{command: 'touch {home}/begun; until [ -e {home}/go ]; do sleep 0.05; done'}}", name="other.yaml")
    process = subprocess.Popen([sys.executable, "-m", "nsw", "run", "other.yaml", "-s", "here", "--set", "resources.time=1h"],
                               cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    while not (home / "begun").exists():
        assert process.poll() is None
        time.sleep(0.02)
    yield process
    (home / "go").touch()
    assert process.wait(timeout=300) == 0


def test_a_campaign_waits_for_that_of_another_process_or_starts_beside_it(recipe, other):
    name = recipe("{command: '[ -e cure ]'}")
    waiting = nsw.run(name, "here")
    first = next(event for event in waiting if isinstance(event, Message))
    assert "waits for its turn" in first.text
    waiting.close()
    assert waiting.campaign.counts == {"planned": 1}
    assert nsw.resume(waiting.campaign, now=True).wait().counts == {"failed": 1}
    assert nsw.retry(waiting.campaign, now=True).wait().counts == {"failed": 1}
    assert nsw.run(name, "here", now=True).wait().counts == {"failed": 1}
    assert other.poll() is None


def test_a_dry_run_makes_nothing(recipe, home):
    planned = nsw.dry_run(recipe("{command: 'echo {{ n }}'}", "matrix: {n: [1, 2]}\n"), "here", case={"n": 2})
    assert list(planned.runs["id"]) == ["n-2.baseline.r1"]
    assert list(planned.runs["n"]) == [2]
    assert "echo" in "".join(planned.scripts.values())
    assert not (home / "campaigns").exists()


def test_the_program_that_reads_is_not_run_a_second_time_by_its_helpers(tmp_path):
    """A script without `if __name__ == "__main__":` would start its campaign again in each process that reads."""
    script = tmp_path / "script.py"
    script.write_text(
        "from pathlib import Path\n"
        "from nsw.readers.detect import read_many\n"
        "print('begun')\n"
        "print(len(list(read_many([Path(__file__)] * 4, workers=2))))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=120)
    assert (done.stdout, done.stderr) == ("begun\n4\n", "")


def test_every_kind_of_event_has_a_name_and_a_line():
    kinds = get_args(nsw.events.Event)
    assert {kind.__name__ for kind in kinds} == set(nsw.events.__all__) - {"Event"}
    assert not [kind for kind in kinds if kind.__str__ is object.__str__]


def test_every_public_name_is_listed_and_there():
    assert set(nsw.__all__) <= set(dir(nsw))
    script = "import nsw; print(all(getattr(nsw, name) for name in nsw.__all__))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=Path("/"))
    assert done.stdout == "True\n", done.stderr
