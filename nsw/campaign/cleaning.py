"""What a campaign that is over left on its site: how much it is, and its removal."""

from __future__ import annotations

import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nsw.campaign import folder as folders
from nsw.campaign.added_jobs import TOOLS
from nsw.campaign.ledger import ENDED, Ledger, Reading, State
from nsw.campaign.ledger_meta_keys import CLEANED, OWNED_BY, PREPARED, SCRATCH, SITE
from nsw.campaign.runs_by_name import as_named
from nsw.campaign.select_runs import Selection, selected
from nsw.campaign.site_folder_cleanup import freed, remove, space_of
from nsw.errors import CampaignError
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsw.campaign.site_folder_cleanup import Space
    from nsw.transport.commands import Fence
    from nsw.transport.model import Transport

_ALL: Final = Selection()
_LOOK: Final = ("true",)
_LOOK_S: Final = 60.0  # for the site to say who owns a campaign


@dataclass(frozen=True, slots=True)
class Leftovers:
    """A campaign's folder on its site, while the connection is open and no other nsw may drive the campaign.

    Attributes:
        space: What is in it.
        where: The site and the folder.
    """

    space: Space
    where: str
    _folder: folders.CampaignFolder
    _ledger: Ledger
    _transport: Transport

    @property
    def is_gone(self) -> bool:
        """Whether nothing is there any more."""
        return not self.space.spare and not self.space.kept

    def freed(self, *, everything: bool) -> int:
        """Bytes that a removal would free."""
        return freed((*self.space.spare, *self.space.kept) if everything else self.space.spare)

    def remove(self, *, everything: bool) -> None:
        """Remove what is nsw's own or has a copy here; with `everything` also what was never brought.

        Raises:
            FencedError: An nsw elsewhere owns the campaign.
            CommandError: Something could not be removed.
            UnreachableError: The site gave no answer; doing it again removes the rest.
        """
        fence = _fence(self._folder, self._ledger, self._transport, self.space)
        if self.space.whole:
            self._ledger.set_meta(PREPARED, False)  # a retry sends scripts and files again
        remove(self._transport, self.space, everything=everything, fence=fence)
        if self.space.whole:
            self._ledger.set_meta(CLEANED, time.time())


@contextmanager
def on_site(folder: folders.CampaignFolder, selection: Selection = _ALL) -> Iterator[Leftovers]:
    """Look at what a campaign left on its site, or some of its runs.

    Raises:
        UsageError: No run is meant.
        CampaignError: The campaign is not over, or its reports are not read yet.
        CampaignLockedError: Another process drives it.
        FencedError: It is not over, and an nsw elsewhere owns it.
        UnreachableError: The site cannot be reached.
    """
    from nsw.campaign.takeover_archive import noting_owner
    from nsw.transport.model import connect

    with folders.locked(folder), Ledger(folder.ledger) as ledger:
        scratch = ledger.meta(SCRATCH)
        fault = _not_over(folder, ledger)
        with closing(connect(ledger.site())) as transport, noting_owner(ledger):
            made = [(build.id, build.app) for build in ledger.builds()]
            made += [(row.id, TOOLS) for row in ledger.reductions()]  # what they made was brought, or made in vain
            space = space_of(folder, transport, scratch, made)
            fence = _fence(folder, ledger, transport, space)
            if fault is not None:
                if fence is not None:  # of another nsw's campaign all that the hint advises would be refused
                    fence.passed(_LOOK, transport.run(fence.around(_LOOK), timeout=_LOOK_S))
                raise fault
            if selection:
                space = space.of_runs({run.id for run in selected(ledger, ledger.runs(), selection)})
            yield Leftovers(space, f"{ledger.meta(SITE)}:{scratch}", folder, ledger, transport)


def _fence(folder: folders.CampaignFolder, ledger: Ledger, transport: Transport, space: Space) -> Fence | None:
    """The right to change the folder, where an nsw elsewhere may own the campaign."""
    from nsw.transport.commands import Fence

    token = ledger.meta(OWNED_BY) if transport.remote else None
    # an earlier clean may have taken the file
    return Fence(space.folder, token, folder.id) if token and space.owned else None


def _not_over(folder: folders.CampaignFolder, ledger: Ledger) -> CampaignError | None:
    """Why nothing may be removed yet; None where the campaign is over and read."""
    counts = ledger.counts()
    left = sum(n for state, n in counts.items() if state not in ENDED)
    if left:
        return CampaignError(
            f"{folder.id} is not over: {plural(left, 'run')} may still need its folder on the site",
            hint=f"`nsw resume {as_named(folder)}` finishes it, `nsw cancel {as_named(folder)}` abandons it",
        )
    unread = list(ledger.runs(states=(State.DONE, State.FAILED), reading=Reading.COLLECTED))
    missing = list(ledger.runs(states=[State.DONE], reading=Reading.NONE))
    if unread or missing:
        some = [*unread, *missing]
        return CampaignError(
            f"{folder.id}: {plural(len(some), 'run')} not read yet, such as {some[0].id}",
            hint=f"`nsw resume {as_named(folder)}` reads the reports that are here",
        )
    return None
