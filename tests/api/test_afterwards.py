"""What Python does with a campaign that it does not drive: look on, bring files, clean up."""

import threading

import pytest

import nsw
from nsw.errors import CampaignError, UsageError
from nsw.events import RunChanged, Started


def test_a_campaign_that_another_drives_is_followed_to_its_end(recipe, home):
    running = nsw.run(
        recipe("{command: 'until [ -e HOME/go ]; do sleep 0.05; done'}".replace("HOME", str(home))), "here"
    )
    thread = threading.Thread(target=running.wait)
    thread.start()
    try:
        while not running.driving or running.campaign.counts != {"running": 1}:
            assert thread.is_alive()
        with running.campaign.watch() as watching:
            seen = [next(watching), next(watching)]
            (home / "go").touch()
            seen += watching
    finally:
        (home / "go").touch()
        thread.join(300)
    assert isinstance(seen[0], Started)
    states = [str(event.run.state) for event in seen if isinstance(event, RunChanged)]
    assert states[:1] == ["running"]
    assert watching.counts() == {"done": 1}


def test_one_that_nobody_drives_is_looked_at_once_and_nothing_changes(recipe, tmp_path):
    go = tmp_path / "go"  # without it the second run is not over
    command = f"{{command: \"bash -c '[ {{{{ n }}}} = 1 ] || until [ -e {go} ]; do sleep 0.05; done'\"}}"
    with nsw.run(recipe(command, "matrix: {n: [1, 2]}\n"), "here") as running:
        next(e for e in running if isinstance(e, RunChanged) and e.run.state == "done")
    campaign = running.campaign
    try:
        before = campaign.counts
        watching = campaign.watch(once=True)
        assert isinstance(next(watching), Started)
        list(watching)
        assert watching.advice is not None
        assert "nobody drives it: `nsw resume" in watching.advice
        assert campaign.counts == before
    finally:
        go.touch()


def test_what_it_left_is_removed_once_it_is_over(recipe):
    with nsw.run(recipe("{command: 'echo x >model'}"), "here") as running:
        next(running)
        with pytest.raises(CampaignError):
            running.campaign.clean()
    campaign = nsw.resume(running.campaign).wait()
    scratch = campaign.folder / "scratch"
    assert campaign.clean() > 0
    assert [p.name for p in scratch.rglob("*") if p.is_file()] == ["model"]
    assert campaign.clean() == 0
    assert campaign.clean(everything=True) == 2
    assert not scratch.exists()
    assert campaign.clean(everything=True) == 0
    assert campaign.good


def test_a_campaign_of_this_machine_is_not_to_be_attached(home):
    with pytest.raises(UsageError, match="site here is this machine"):
        nsw.attach("t-1", "here")
