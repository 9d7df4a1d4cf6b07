"""A run's files on the site -> the campaign's folder."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from nsw.campaign.unpack_reduction import unpack
from nsw.safe_files import read_plain
from nsw.tables.unpacking_limit import shown
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.ledger import RunRow
    from nsw.transport.model import Entry, Transport

PACKED: Final = ".gz"  # of what a reduction makes
_WORTH_A_LINE: Final = 1 << 20  # bytes
_CLAIM = "claim"
AGAIN = "again"  # a line for each other job that found the run claimed
KEPT_FILES = ("stdout", "stderr", _CLAIM, "status", "after.log", AGAIN, "ranks.tsv")


def run_folder(scratch: str, run: str, attempt: int) -> str:
    """The folder of an attempt of a run on the site."""
    return f"{scratch}/runs/{run}/attempt-{attempt}"


def run_of(reduction: str) -> str:
    """The run whose reports a reduction reduces."""
    from nsw.plan.model import REDUCTION  # here: `nsw status` looks at no plan

    return reduction.removesuffix(REDUCTION)


def collect(
    folder: CampaignFolder,
    transport: Transport,
    scratch: str,
    runs: Sequence[RunRow],
    *,
    everything: bool = False,
    say: Callable[[str], object] = lambda _text: None,
) -> None:
    """Bring the reports and the output of runs; those of earlier attempts move aside.

    Args:
        folder: The campaign's folder here.
        transport: The way to the site.
        scratch: The campaign's folder there.
        runs: The runs.
        everything: All files that they left.
        say: Prints a line for the user: what is brought and how large it is, before it is.

    Raises:
        UnreachableError: The connection was lost; doing it again brings what is missing.
        CommandError: A file cannot be brought.
    """
    sources = {run_folder(scratch, run.id, run.attempt): run for run in runs}
    more = ("*",) if everything else ()
    listed = transport.list_many({source: (*run.reports, *KEPT_FILES, *more) for source, run in sources.items()})
    wanted: list[tuple[str, Path]] = []
    for source, run in sources.items():
        target = folder.reports / run.id
        if run.attempt > 1:
            _set_aside(target, run.attempt)
        # the claim names the attempt of the files, so it is brought first, in case nsw is killed in between
        entries = sorted(listed[source], key=lambda entry: entry.name != _CLAIM)
        wanted += [(f"{source}/{entry.name}", target / entry.name) for entry in entries]
    _say_size(transport, listed, say)
    transport.get_many(wanted)


def collect_reduced(
    folder: CampaignFolder,
    transport: Transport,
    scratch: str,
    reductions: Mapping[str, int],
    *,
    say: Callable[[str], object] = lambda _text: None,
) -> dict[str, str]:
    """Bring what reductions made of runs' reports, and unpack it beside what the runs left.

    Args:
        folder: The campaign's folder here.
        transport: The way to the site.
        scratch: The campaign's folder there.
        reductions: Their ids, each with the attempt that was done.
        say: Prints a line for the user: what is brought and how large it is, before it is.

    Returns:
        The reductions whose files are of no use, each with the reason.

    Raises:
        UnreachableError: The connection was lost; doing it again brings what is missing.
        CommandError: A file cannot be brought.
        CampaignError: One cannot be written here.
    """
    sources = {run_folder(scratch, id_, attempt): id_ for id_, attempt in reductions.items()}
    listed = transport.list_many(dict.fromkeys(sources, (f"*{PACKED}",)))
    wanted = {
        f"{source}/{entry.name}": (id_, folder.reports / run_of(id_) / entry.name)
        for source, id_ in sources.items() for entry in listed[source]
    }  # fmt: skip
    _say_size(transport, listed, say)
    transport.get_many([(there, here) for there, (_, here) in wanted.items()])
    wrong: dict[str, str] = {}
    for id_, packed in wanted.values():
        if (why := unpack(packed, packed.with_name(packed.name.removesuffix(PACKED)))) is not None:
            wrong[id_] = why
    return wrong


def _say_size(transport: Transport, listed: Mapping[str, Sequence[Entry]], say: Callable[[str], object]) -> None:
    """Print how much comes from a site elsewhere; little is not worth a line."""
    sizes = [entry.size for entries in listed.values() for entry in entries]
    if transport.remote and sum(sizes) >= _WORTH_A_LINE:
        say(f"brings {plural(len(sizes), 'file')} of {plural(len(listed), 'run')}: {shown(sum(sizes))}")


def brought_folder(folder: CampaignFolder, run: str, attempt: int) -> Path | None:
    """Where the files of an attempt were brought to; None where they were not."""
    target = folder.reports / run
    return next((one for one in (target, target / f"attempt-{attempt}") if attempt_of(one) == attempt), None)


def started_again(folder: CampaignFolder, run: str) -> str | None:
    """Which other jobs started a run that was claimed already, as a sentence; None for none."""
    lines = (read_tail(folder.reports / run / AGAIN) or b"").decode(errors="replace").split()
    jobs = list(dict.fromkeys(lines))
    return f"job {', '.join(jobs)} started it a second time and left it alone" if jobs else None


def note_second_job(folder: CampaignFolder, run: str, job: str) -> None:
    """Add a job that found the run done, where it has not written that down itself: that leaves no mark in the run."""
    file = folder.reports / run / AGAIN
    known = read_tail(file) or b""
    if job not in known.decode(errors="replace").split() and file.parent.is_dir():
        file.unlink(missing_ok=True)  # it may be the very file of the site
        file.write_bytes(known + f"{job}\n".encode())


def _set_aside(target: Path, attempt: int) -> None:
    old = [p for p in target.iterdir() if p.is_file()] if target.is_dir() else []
    number = attempt_of(target)
    if not old or number == attempt:  # an nsw that was killed had begun to bring this one
        return
    if number is None:
        number = 1
        while (target / f"attempt-{number}").exists():
            number += 1
    aside = target / f"attempt-{number}"
    aside.mkdir(exist_ok=True)
    for file in sorted(old, key=lambda file: file.name == _CLAIM):
        file.rename(aside / file.name)


def attempt_of(target: Path) -> int | None:
    """Which attempt the files in a run's folder here are of, by the claim among them."""
    claim = read_tail(target / _CLAIM) or b""
    found = re.search(rb"^attempt=(\d+)$", claim, re.MULTILINE)
    return int(found[1]) if found else None


def read_tail(path: Path, limit: int = 4096) -> bytes | None:
    """The last bytes of a collected file; None when there is none, or no plain file: a FIFO would be waited for."""
    with suppress(OSError):
        return read_plain(path, last=limit)
    return None
