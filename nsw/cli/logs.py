"""`nsw logs`: what a run or a build printed, at its end or while it goes on."""

from __future__ import annotations

import re
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsw.campaign import folder as folders
from nsw.campaign.collect import brought_folder, run_folder
from nsw.campaign.job_ids import job_ids
from nsw.campaign.ledger import ENDED, BuildRow, Ledger, RunRow
from nsw.campaign.meta import SCRATCH
from nsw.campaign.ownership import owner_if_other, tail
from nsw.campaign.select_runs import Selection, named, selected
from nsw.errors import Exit, NswError, UnreachableError
from nsw.service.runs_by_name import as_named, campaign_of_words, one_of, the_one

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsw.campaign.folder import CampaignFolder
    from nsw.transport.model import Transport

_MOST_SHOWN = 1 << 26  # bytes
_FIRST = 1 << 16  # bytes of what is followed that are shown at once
_LONGEST = 1 << 16  # characters of a line that has no end
_PAUSE_S = 1.0
_PATIENCE = 30  # looks in a row that may fail
_BREAK = re.compile(r"\r\n|[\r\n]")


def logs(
    run: str | None, campaign: str | None, root: Path | None, lines: int, selection: Selection, *, follow: bool
) -> int:
    """The end of a run's output; with `follow` also what it prints from now on, until it ends.

    Raises:
        UsageError: No run is meant, or several are.
        UnreachableError: The site does not answer and nothing was brought.
    """
    folder, words = campaign_of_words([run] if run is not None else [], campaign, root)
    row = _row(folder, words[0] if words else None, selection)
    if follow:
        return _follow(folder, row, lines)
    _show(folder, row, lines)
    return Exit.GOOD


def _row(folder: CampaignFolder, run: str | None, selection: Selection) -> RunRow | BuildRow:
    with Ledger(folder.ledger, read_only=True) as ledger:
        known: list[RunRow | BuildRow] = selected(ledger, [*ledger.builds(), *ledger.runs()], selection)
        if run is None:
            return the_one(known)
        # a reduction is shown when it is named in full: its output is of interest when it failed
        exact = [row for row in (*known, *ledger.reductions()) if row.id == run]
        several = exact or named(run, known, job_ids(ledger, known))
        return the_one(several) if several else one_of(known, run)


def _show(folder: CampaignFolder, row: RunRow | BuildRow, lines: int) -> None:
    from nsw.present.terminal import console

    out = console()
    out.print(_headline(row), style="bold")
    if row.attempt == 0:
        out.print("it has not begun")
    source = _Source(folder, row)
    for name in ("stdout", "stderr"):
        _show_end(out, source.output(name), name, lines)
    if row.submission:
        _show_end(out, source.job_log(), "job script", lines)
    for note in source.notes:
        out.print(note, style="dim")


def _headline(row: RunRow | BuildRow) -> str:
    why = f", {row.reason}" if row.reason else ""
    return f"{row.id}: {row.state}{why}" + (f", attempt {row.attempt}" if row.attempt > 1 else "")


class _Source:
    """Where the output of a run is read: what was brought of this attempt, else the site's own files.

    Another user's campaign names a site and a folder of that user's choice: no connection is made, and only files of
    that user on this machine are read.
    """

    def __init__(self, folder: CampaignFolder, row: RunRow | BuildRow) -> None:
        from nsw.schedulers.create import adapter_of
        from nsw.schedulers.host import Host
        from nsw.schedulers.native import Native
        from nsw.schedulers.places import LOGIN

        with Ledger(folder.ledger, read_only=True) as ledger:
            self._site, self._scratch = ledger.site(), ledger.meta(SCRATCH)
            native = ledger.native_id(row.submission) if row.submission else None
            on_login = ledger.place_of(row.job) == LOGIN
        adapter = Host() if on_login else adapter_of(self._site.get("scheduler", "local"))
        self._folder, self._row = folder, row
        self._brought = None if isinstance(row, BuildRow) else brought_folder(folder, row.id, row.attempt)
        self._log = f"{row.submission}.log"
        if adapter is not None and row.submission:
            self._log = adapter.log_name(row.submission, Native.parse(native), row.task)
        self._transport: Transport | None = None
        self.notes: list[str] = []

    def output(self, name: str) -> bytes | None:
        """The end of `stdout` or `stderr`."""
        if self._brought is not None and self._row.state in ENDED:
            brought = tail(self._folder.path, (self._brought / name,), _MOST_SHOWN)
            if brought is not None:
                return brought
        return self._there(f"{run_folder(self._scratch, self._row.id, self._row.attempt)}/{name}", needed=True)

    def job_log(self) -> bytes | None:
        """The end of what the job's script itself printed."""
        return self._there(f"{self._scratch}/jobs/{self._log}", needed=self._brought is None)

    def _there(self, path: str, *, needed: bool) -> bytes | None:
        if owner_if_other(self._folder.path):
            return tail(self._folder.path, (Path(path),), _MOST_SHOWN)
        from nsw.transport.create import connect

        try:
            # without the folder's lock, which who drives it holds
            self._transport = self._transport or connect(self._site)
            return self._transport.tail(path, _MOST_SHOWN)
        except NswError as fault:
            if needed:
                raise
            self.notes.append(f"what its job's script printed is on the site, which does not answer: {fault.message}")
            return None


def _show_end(out: Any, content: bytes | None, name: str, lines: int) -> None:
    from nsw.present.text_of_others import clean

    text = (content or b"").decode(errors="replace").splitlines()
    if not text:
        return
    chosen = text[-lines:] if lines else text
    out.print(
        f"--- {name}" + (f" (last {lines} of {len(text)} lines)" if lines and len(text) > lines else ""),
        style="dim",
    )
    for line in chosen:
        out.print(clean(line), soft_wrap=True)


def _follow(folder: CampaignFolder, row: RunRow | BuildRow, lines: int) -> int:
    """Print what a run prints until it is over; later attempts of it are followed too."""
    from nsw.present.terminal import console
    from nsw.transport.create import connect

    if row.state in ENDED or owner_if_other(folder.path):
        _show(folder, row, lines)
        return Exit.GOOD
    out = console()
    with Ledger(folder.ledger, read_only=True) as ledger:
        site, scratch = ledger.site(), ledger.meta(SCRATCH)
    try:
        with closing(connect(site)) as transport:
            it = _Following(folder, transport, scratch, lines, out.print)
            while row.state not in ENDED:
                row = it.attempt(row) if row.attempt else it.begun(row)
                if not folders.is_driven(folder) and row.state not in ENDED:
                    what = "is over" if row.attempt and it.is_over(row) else "is not over"
                    out.print(f"{row.id} {what}, and no nsw drives its campaign: `nsw resume {as_named(folder)}`")
                    return Exit.GOOD
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    return Exit.GOOD


class _Following:
    """Follows a run from attempt to attempt."""

    def __init__(
        self, folder: CampaignFolder, transport: Transport, scratch: str, lines: int, put: Callable[..., object]
    ) -> None:
        self._folder = folder
        self._transport = transport
        self._scratch = scratch
        self._lines = lines
        self._put = put
        self._shown = ""

    def begun(self, row: RunRow | BuildRow) -> RunRow | BuildRow:
        """The row once it has an attempt or is over, or nobody drives it."""
        while row.attempt == 0 and row.state not in ENDED and folders.is_driven(self._folder):
            self._show(row)
            time.sleep(_PAUSE_S)
            row = _now(self._folder, row.id)
        self._show(row)
        return row

    def attempt(self, row: RunRow | BuildRow) -> RunRow | BuildRow:
        """Print an attempt's output as it grows; the row once the attempt is over, or a later one has begun.

        Raises:
            UnreachableError: The site did not answer for long.
        """
        from nsw.campaign.growing_files import GrowingFiles

        home = run_folder(self._scratch, row.id, row.attempt)
        paths = [f"{home}/stdout", f"{home}/stderr"]
        files, printer = GrowingFiles(self._transport, paths, _FIRST), _Lines(self._put, self._lines or None)
        failures = 0
        while True:
            self._show(row)
            now = _now(self._folder, row.id)
            over = now.attempt != row.attempt or now.state in ENDED
            try:
                # asked before the files, so that nothing is missed that it printed last
                over = over or (not folders.is_driven(self._folder) and self.is_over(row))
                added = files.added()
                failures = 0
            except UnreachableError:
                over, added, failures = False, {}, failures + 1
                if failures > _PATIENCE:
                    raise
            for path in paths:
                printer.add(path.rpartition("/")[2], added.get(path, b""))
            if over and not added:
                printer.end()
                self._show(now)
                return now
            row = now if now.attempt == row.attempt else row
            if not added:
                time.sleep(_PAUSE_S)

    def is_over(self, row: RunRow | BuildRow) -> bool:
        """Whether the attempt itself says that it is over."""
        from nsw.campaign.status_files import read_status

        status = read_status(self._transport, run_folder(self._scratch, row.id, row.attempt))
        return status is not None and status.state in {"done", "failed", "withdrawn"}

    def _show(self, row: RunRow | BuildRow) -> None:
        """How it stands, where that is news."""
        if (text := _headline(row)) != self._shown:
            self._put(text, style="bold")
            self._shown = text


def _now(folder: CampaignFolder, id_: str) -> RunRow | BuildRow:
    with Ledger(folder.ledger, read_only=True) as ledger:
        others: list[RunRow | BuildRow] = [*ledger.builds(), *ledger.reductions()]
        found: Sequence[RunRow | BuildRow] = ledger.runs_named([id_]) or [one for one in others if one.id == id_]
    return found[0]


class _Lines:
    """Prints whole lines of several streams, each part under the name of its stream where that changes."""

    def __init__(self, put: Callable[..., object], first: int | None) -> None:
        self._put = put
        self._first = first
        self._rest: dict[str, str] = {}
        self._last = ""
        self._decoders: dict[str, Any] = {}

    def add(self, stream: str, content: bytes) -> None:
        """What came of a stream."""
        import codecs

        if not content:
            return
        decoder = self._decoders.get(stream)
        first = decoder is None
        decoder = self._decoders.setdefault(stream, codecs.getincrementaldecoder("utf-8")("replace"))
        *whole, rest = _BREAK.split(self._rest.get(stream, "") + decoder.decode(content))
        if len(rest) > _LONGEST:
            whole, rest = [*whole, rest], ""
        self._rest[stream] = rest
        self._print(stream, whole[-self._first :] if first and self._first else whole)

    def end(self) -> None:
        """What has no line's end."""
        for stream, rest in self._rest.items():
            self._print(stream, [rest] if rest else [])
        self._rest.clear()

    def _print(self, stream: str, lines: Sequence[str]) -> None:
        from nsw.present.text_of_others import clean

        if lines and stream != self._last:
            self._put(f"--- {stream}", style="dim")
            self._last = stream
        for line in lines:
            self._put(clean(line), soft_wrap=True)
