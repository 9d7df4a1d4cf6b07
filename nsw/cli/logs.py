"""`nsw logs`: what a run or a build printed, at its end or while it goes on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nsw.campaign.logs import MOST_SHOWN, Grown, LeftAlone, Output, can_be_followed, find_row, follow
from nsw.campaign.selection import campaign_argument, campaign_of_words, campaign_option
from nsw.engine.ledger_rows import ENDED, missing_results
from nsw.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from nsw.campaign.selection import Selection
    from nsw.engine.folder import CampaignFolder
    from nsw.engine.ledger_rows import BuildRow, RunRow

_LONGEST = 1 << 16  # characters of a line that are shown
_MOST_LINES = 2_000_000  # that are shown: the rest of a file takes gigabytes as texts
_AT_ONCE = 10_000  # lines that are printed at once
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
    row = find_row(folder, words[0] if words else None, selection, follow=follow)
    if follow and can_be_followed(folder, row):
        return _follow(folder, row, lines)
    _show(folder, row, lines)
    return Exit.GOOD


def _show(folder: CampaignFolder, row: RunRow | BuildRow, lines: int) -> None:
    from nsw.present.terminal import console

    out = console()
    out.print(_headline(folder, row), style="bold")
    if row.attempt == 0:
        out.print("it has not begun")
    with Output(folder, row) as output:
        for name in ("stdout", "stderr"):
            _show_end(out, output.read_end(name), name, lines)
        _show_end(out, output.job_log(), "job script", lines)
    for note in output.notes:
        out.print(note, style="dim")


def _headline(folder: CampaignFolder, row: RunRow | BuildRow) -> str:
    lacks = missing_results(row)
    reason = f"{lacks} (`nsw problems{campaign_option(folder)}`)" if lacks else row.reason
    reason_text = f", {reason}" if reason else ""
    return f"{row.id}: {row.state}{reason_text}" + (f", attempt {row.attempt}" if row.attempt > 1 else "")


def _show_end(out: Any, content: bytes | None, name: str, lines: int) -> None:
    from nsw.present.terminal import size
    from nsw.present.untrusted_text import clean, say

    if not content:
        return
    output = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n").removesuffix(b"\n")
    lines = min(lines or _MOST_LINES, _MOST_LINES)
    count = output.count(b"\n") + 1
    omissions = [f"last {lines} of {count} lines"] if count > lines else []
    omissions += [f"its last {size(len(content))}"] if len(content) >= MOST_SHOWN else []
    out.print(f"--- {name}" + (f" ({' of '.join(omissions)})" if omissions else ""), style="dim")
    chosen = output.rsplit(b"\n", lines)[-lines:]
    for first in range(0, len(chosen), _AT_ONCE):
        say("\n".join(clean(_shortened(line)) for line in chosen[first : first + _AT_ONCE]))


def _shortened(line: bytes) -> str:
    omitted = len(line) - _LONGEST
    return line[:_LONGEST].decode(errors="replace") + (f"… ({omitted:,} more bytes)" if omitted > 0 else "")


def _follow(folder: CampaignFolder, row: RunRow | BuildRow, lines: int) -> int:
    """Print what a run prints until it is over; later attempts of it are followed too."""
    from nsw.present.terminal import console

    out = console()
    last_headline, attempt, printer = "", 0, _Lines(out.print, lines or None)
    try:
        for news in follow(folder, row):
            match news:
                case Grown():
                    if news.attempt != attempt:
                        attempt, printer = news.attempt, _Lines(out.print, lines or None)
                    printer.add(news.stream, news.content)
                case LeftAlone(over=over):
                    printer.end()
                    ending = "is over" if over else "is not over"
                    out.print(
                        f"{row.id} {ending}, and no nsw drives its campaign: `nsw resume {campaign_argument(folder)}`"
                    )
                case now:
                    if (text := _headline(folder, now)) == last_headline:
                        continue
                    if now.attempt != attempt or now.state in ENDED:
                        printer.end()
                    out.print(text, style="bold")
                    last_headline = text
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    printer.end()
    return Exit.GOOD


class _Lines:
    """Prints whole lines of several streams, each part under the name of its stream where that changes."""

    def __init__(self, print_line: Callable[..., object], first: int | None) -> None:
        self._print_line = print_line
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
        *whole_lines, rest = _BREAK.split(self._rest.get(stream, "") + decoder.decode(content))
        if len(rest) > _LONGEST:
            whole_lines, rest = [*whole_lines, rest], ""
        self._rest[stream] = rest
        self._print(stream, whole_lines[-self._first :] if first and self._first else whole_lines)

    def end(self) -> None:
        """What has no line's end."""
        for stream, rest in self._rest.items():
            self._print(stream, [rest] if rest else [])
        self._rest.clear()

    def _print(self, stream: str, lines: Sequence[str]) -> None:
        from nsw.present.untrusted_text import clean

        if lines and stream != self._last:
            self._print_line(f"--- {stream}", style="dim")
            self._last = stream
        for line in lines:
            self._print_line(clean(line), soft_wrap=True)
