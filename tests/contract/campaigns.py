"""Whole campaigns on any batch system: the recipe and the site of a test, and what became of its runs."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Protocol

from nsw.engine.driven import ledger_to_read
from nsw.engine.folder import CampaignFolder
from nsw.engine.ledger_rows import State
from nsw.errors import CommandResult
from nsw.schedulers.adapter import Watched
from nsw.schedulers.model import Native, Phase
from nsw.site.names import ADAPTERS

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from nsw.schedulers.adapter import Adapter

SITES = """
nsw: 1
sites:
  s: {scheduler: SCHEDULER, ACCOUNTlimits: {LIMITS}}
"""
RECIPE = """
nsw: 1
name: many
app:
  command: bash -c 'echo {{ n }} >>WORK/ran; BODY'
matrix:
  n: {range: [1, COUNT]}
passes: [baseline: {}]
resources: {gpus: 0, time: 4mEXTRA}
"""
RUN = ("run", "recipe.yaml", "--site", "s", "--sites", "sites.yaml", "--root", "campaigns", "--yes")
PATIENCE_S = 300  # on a busy machine an nsw alone takes a minute to start
ACCOUNTS = ("pbs", "cobalt", "lsf")  # systems whose fakes know an account


class Place(Protocol):
    """A folder to work in, beside a batch system."""

    @property
    def work(self) -> Path:
        """The folder."""

    @property
    def scheduler_name(self) -> str:
        """As a site names it."""

    def nsw(self, *words: str, exits: int | None = None) -> subprocess.CompletedProcess[str]:
        """Run nsw to its end, in the folder."""

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command there."""


def words(
    place: Place, count: int, body: str = "true", limits: str = "max_in_flight: 16", extra: str = ""
) -> tuple[str, ...]:
    """Write a recipe and a site; the words that carry it out."""
    text = RECIPE.replace("COUNT", str(count)).replace("WORK", str(place.work)).replace("BODY", body)
    (place.work / "recipe.yaml").write_text(text.replace("EXTRA", extra))
    account = "account: proj, " if place.scheduler_name in ACCOUNTS else ""
    sites = SITES.replace("SCHEDULER", place.scheduler_name).replace("ACCOUNT", account).replace("LIMITS", limits)
    (place.work / "sites.yaml").write_text(sites)
    return RUN


def ran(place: Place) -> list[int]:
    """Which programs ran, each as often as it did."""
    file = place.work / "ran"
    return sorted(int(n) for n in file.read_text().split()) if file.exists() else []


def folder(place: Place) -> Path:
    """The campaign's."""
    (found,) = (p for p in (place.work / "campaigns").iterdir() if not p.name.startswith("."))
    return found


def runs(place: Place) -> list[tuple[str, str]]:
    """State and reason of each run."""
    with ledger_to_read(CampaignFolder(folder(place))) as ledger:
        return [(str(run.state), run.reason or "") for run in ledger.runs()]


def wait_until(is_true: Callable[[], bool], nsw: subprocess.Popen[bytes] | None = None) -> None:
    """Return when it is true; fail after PATIENCE_S, or when the nsw that should make it true has ended before."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_true():
        assert nsw is None or nsw.poll() is None or is_true(), f"nsw ended with {nsw.returncode}"
        assert time.monotonic() < deadline, f"it is not true after {PATIENCE_S} s"
        time.sleep(0.02)


def until_go(place: Place, which: str = "true") -> str:
    """A body of which the run that is named waits for the file `go`."""
    return f"[ {{{{ n }}}} != {which} ] || until [ -e {place.work}/go ]; do sleep 0.05; done"


@dataclass(frozen=True)
class Submitted:
    """What the ledger knows of the jobs that a campaign submitted."""

    ids: list[str] = field(default_factory=list)
    queued: int = 0


def submitted(place: Place) -> Submitted:
    """The ids that the batch system gave, and how many runs it has."""
    with ledger_to_read(CampaignFolder(folder(place))) as ledger:
        counts = ledger.counts()
        natives = [native for native in ledger.native_ids().values() if native]
    return Submitted(natives, sum(counts.get(s, 0) for s in (State.SUBMITTED, State.QUEUED, State.RUNNING)))


def _adapter(place: Place) -> Adapter:
    made: Adapter = resolve_name(ADAPTERS[place.scheduler_name])()
    return made


def in_queue(place: Place) -> list[str]:
    """The jobs of the campaign that wait or run, as the system lists them."""
    ids = {native.job for text in submitted(place).ids if (native := Native.parse(text))}
    adapter = _adapter(place)
    asked = [Watched("", Native.parse(text), str(place.work)) for text in submitted(place).ids]
    command = adapter.queue_command(asked)
    done = place.run(*command)
    lines = adapter.parse_queue(CommandResult(tuple(command), done.returncode, done.stdout, done.stderr))
    assert lines is not None, done
    return [line.job for line in lines if line.job in ids and line.answer.phase in {Phase.QUEUED, Phase.RUNNING}]


def words_that_cancel(place: Place, number: int) -> Sequence[str]:
    """The command by which a person cancels the task of the run with that number."""
    with ledger_to_read(CampaignFolder(folder(place))) as ledger:
        run = ledger.runs()[number - 1]
        native = Native.parse(ledger.native_id(run.submission or ""))
    assert native is not None
    command = _adapter(place).cancel_command([Watched(run.submission or "", native, str(place.work), (run.task,))])
    assert command
    return command
