"""`app.build: {where: login}` behind a real sshd: a task like any other, whose end neither nsw nor a connection decides."""

from __future__ import annotations

import json
import signal
import time
from typing import TYPE_CHECKING

import pytest

from nsw.engine.collect import parse_status
from nsw.engine.driven import ledger_to_read
from nsw.engine.folder import CampaignFolder
from nsw.engine.ledger_rows import State

from .test_campaign import RECIPE, cluster  # noqa: F401  the fixture

if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import Popen

    from nsw.engine.ledger_rows import BuildRow

    from .test_campaign import Cluster

ONE = pytest.mark.parametrize("cluster", ["openssh"], indirect=True)
BUILD = "  build: {command: sh make.sh, where: login}\n  figures:"
MAKE = 'echo built >>"WORK/built"; echo compiling; until [ -e "WORK/go" ]; do sleep 0.1; done; END\n'


@pytest.fixture
def building(cluster) -> Cluster:  # noqa: F811
    """A campaign whose build waits for the file `go`."""
    recipe = RECIPE.replace("  figures:", BUILD).replace("[prog.sh]", "[prog.sh, make.sh]")
    (cluster.work / "recipe.yaml").write_text(recipe)
    write(cluster, "true")
    return cluster


def write(site: Cluster, end: str) -> None:
    (site.work / "make.sh").write_text(MAKE.replace("WORK", str(site.work)).replace("END", end))


def wait_until(condition: Callable[[], object], process: Popen[str] | None = None, limit: float = 600.0) -> None:
    deadline = time.monotonic() + limit
    while not condition():
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "the awaited condition did not come true"
        time.sleep(0.05)


def begun(site: Cluster) -> Popen[str]:
    """An nsw whose build runs, and which knows that."""
    process = site.start(*site.run_words())
    wait_until(lambda: list(site.work.glob("campaigns/[!.]*/campaign.db")), process)
    wait_until(lambda: build(site).state is State.RUNNING, process)
    return process


def build(site: Cluster) -> BuildRow:
    (file,) = site.work.glob("campaigns/[!.]*/campaign.db")
    with ledger_to_read(CampaignFolder(file.parent)) as ledger:
        (row,) = ledger.builds()
    return row


def built(site: Cluster) -> int:
    return len((site.work / "built").read_text().split())


@ONE
def test_it_goes_on_without_nsw_and_the_next_one_finds_it(building):
    process = begun(building)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (building.work / "go").touch()
    done = building.nsw("resume", "--root", "campaigns")
    assert done.returncode == 0, done.stderr
    assert (built(building), build(building).state, building.ran()) == (1, State.DONE, ["1", "2", "3"])


def test_a_cut_connection_does_not_end_it(building):
    process = begun(building)
    building.server.cut()
    seen = building.server.logins()
    wait_until(lambda: building.server.logins() > seen, process)  # it is asked about once more
    (building.work / "go").touch()
    _, said = process.communicate(timeout=600)
    assert process.returncode == 0, said
    assert (built(building), build(building).state, building.ran()) == (1, State.DONE, ["1", "2", "3"])


@ONE
def test_status_and_logs_show_it_while_it_runs_and_it_knows_its_own_id(building):
    process = begun(building)
    (shown,) = json.loads(building.nsw("status", "--root", "campaigns", "--json").stdout)["builds"]
    assert (shown["state"], shown["where"], shown["attempt"]) == ("running", "login", 1)
    wait_until(lambda: "compiling" in building.nsw("logs", "build", "--root", "campaigns").stdout, process)
    (claim,) = building.scratch.glob("*/*/runs/build/attempt-1/claim")
    row = build(building)
    (file,) = building.work.glob("campaigns/[!.]*/campaign.db")
    with ledger_to_read(CampaignFolder(file.parent)) as ledger:
        native = ledger.native_id(row.submission)
    assert parse_status(claim.read_bytes()).job_id == native  # else another job would be believed about it
    (building.work / "go").touch()
    _, said = process.communicate(timeout=600)
    assert process.returncode == 0, said


@ONE
def test_nsw_cancel_ends_it(building):
    process = begun(building)
    assert building.nsw("cancel", "--root", "campaigns").returncode == 0
    process.communicate(timeout=600)
    assert build(building).state is State.CANCELLED
    (claim,) = building.scratch.glob("*/*/runs/build/attempt-1/claim")
    assert not claim.with_name("status").exists() or "state=done" not in claim.with_name("status").read_text()
    assert building.ran() == []


@ONE
def test_one_that_fails_fails_its_runs_and_is_built_again_by_a_retry(building):
    write(building, "echo 'prog.cu(3): error: no such thing' >&2; exit 2")
    (building.work / "go").touch()
    done = building.nsw(*building.run_words())
    assert done.returncode == 2
    assert "the build step failed with exit status 2: sh make.sh" in done.stderr
    assert "  | prog.cu(3): error: no such thing" in done.stderr
    assert "retry --update-app`, which builds again" in done.stderr
    status = json.loads(building.nsw("status", "--root", "campaigns", "--json").stdout)
    assert status["counts"] == {"failed": 3}
    assert {run["reason"].partition(";")[0] for run in status["runs"]} == {
        "its build failed: exit status 2: prog.cu(3): error: no such thing"
    }
    write(building, "true")
    again = building.nsw("retry", "--update-app", "--sites", "sites.yaml", "--root", "campaigns")
    assert again.returncode == 0, again.stderr
    assert "the build step failed" not in again.stderr
    assert building.ran() == ["1", "2", "3"]
