"""Print what a campaign shows, briefly, and what a person may want to do next."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from nsw.campaign.answers import how_to_repeat, is_good, summary_of
from nsw.campaign.ledger import Ledger, Reading, State
from nsw.campaign.selection import as_named, as_option
from nsw.errors import Exit
from nsw.wording import headline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.campaign.folder import CampaignFolder


def answer(folder: CampaignFolder, ledger: Ledger, only: Sequence[str] | None = None) -> int:
    """Print what the campaign shows, briefly; 1 when something failed, of all or of those runs that were asked for."""
    from nsw.present.problems import show_short
    from nsw.present.status_view import calls_line
    from nsw.present.summary_view import show_summary
    from nsw.present.terminal import console

    out = console()
    summary = summary_of(folder, ledger)
    problems, command = ledger.problems(), f"nsw problems {as_named(folder)}"
    show_summary(out, summary, brief=True, before_findings=lambda: show_short(out, problems, command))
    err = console(sys.stderr)
    err.print(headline(ledger.counts(), ledger.incomplete(), ledger.unreadable()))
    if calls := calls_line(ledger.calls()):
        err.print(calls)
    for line in _next_steps(folder, ledger):
        err.print(line)
    return exit_code(ledger, only)


def _next_steps(folder: CampaignFolder, ledger: Ledger) -> list[str]:
    """What a person may want to see now: why something failed, and what is there."""
    bad = [r for r in ledger.runs() if r.state in {State.FAILED, State.LOST} or r.reading is Reading.INCOMPLETE]
    steps, named, which = [], as_named(folder), as_option(folder)
    if bad:
        again = how_to_repeat(folder, ledger, which)
        steps.append(f"`nsw logs {bad[0].id}{which}` prints its output; {again}")
    if ledger.counts().get(State.DONE):
        steps.append(f"`nsw summarize {named}` has each case in full; tables are in {folder.tables}")
    return steps


def exit_code(ledger: Ledger, only: Sequence[str] | None = None) -> int:
    """0 when all is good that was asked for, else 1."""
    return Exit.GOOD if is_good(ledger, only) else Exit.SOME_FAILED
