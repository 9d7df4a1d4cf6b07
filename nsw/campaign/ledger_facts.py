"""The table `meta` of an open ledger: facts of a campaign, each with the type of its key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from nsw.campaign.ledger_base import LedgerBase
from nsw.campaign.ledger_meta_keys import CALLS, CREATED, SITE_DATA, is_site, withdrawals_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nsw.campaign.ledger_meta_keys import Key

T = TypeVar("T")


class LedgerFacts(LedgerBase):
    """The table `meta` of an open ledger."""

    def meta(self, key: Key[T]) -> T:
        """A fact of the campaign.

        Raises:
            CampaignError: The ledger holds another thing than nsw writes.
        """
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key.name,)).fetchone()
        if not row:
            return key.absent()
        if not isinstance(row[0], str):
            raise self._damaged(f"{key.name} is not text")
        try:
            return key.parse(row[0])
        except ValueError as fault:
            raise self._damaged(f"{key.name} {fault}") from None

    def set_meta(self, key: Key[T], value: T) -> None:
        """Write a fact of the campaign."""
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key.name, key.text(value)))

    def site(self) -> dict[str, Any]:
        """The site as it was when the campaign began, as data."""
        return self.meta(SITE_DATA)

    def checked_site(self) -> dict[str, Any]:
        """The same, of a ledger that somebody else may have written.

        Raises:
            CampaignError: It is not a site.
        """
        site = self.site()
        if not is_site(site):
            raise self._damaged(f"{SITE_DATA.name} is not a site")
        return site

    def created(self) -> float:
        """When the campaign began, in Unix seconds."""
        return self.meta(CREATED)

    def calls(self) -> dict[str, int]:
        """How often each command of the scheduler was run for this campaign."""
        return self.meta(CALLS)

    def set_calls(self, calls: Mapping[str, int]) -> None:
        """Write that down."""
        self.set_meta(CALLS, dict(calls))

    def withdrawals(self, task: str) -> int:
        """How often nsw withdrew an attempt of this run or build and submitted it again."""
        return self.meta(withdrawals_of(task))

    def count_withdrawal(self, task: str) -> None:
        """One more."""
        self.set_meta(withdrawals_of(task), self.withdrawals(task) + 1)

    def has_login_shell(self) -> bool:
        """Whether jobs of the campaign's site start in a login shell."""
        return bool(self.site().get("login_shell"))
