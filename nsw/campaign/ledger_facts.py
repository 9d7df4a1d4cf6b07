"""Facts of a campaign as its ledger keeps them: a text by key, some of them JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

from nsw.campaign.ledger_values import LATEST, parsed
from nsw.errors import CampaignError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
    from pathlib import Path

_T = TypeVar("_T", dict[str, Any], list[Any])


class LedgerFacts:
    """The table `meta` of an open ledger."""

    _db: sqlite3.Connection
    _path: Path

    def meta(self, key: str) -> str | None:
        """A fact of the campaign."""
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        if row and not isinstance(row[0], str):
            raise self._damaged(f"{key} is no text")
        return row[0] if row else None

    def set_meta(self, key: str, value: str) -> None:
        """Write a fact of the campaign."""
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def data(self, key: str, kind: type[_T]) -> _T:
        """A fact of the campaign that is kept as JSON, of this kind (dict, list); an empty one where there is none."""
        text = self.meta(key)
        try:
            return parsed(text, kind) if text else kind()
        except ValueError as fault:
            raise self._damaged(f"{key} {fault}") from None

    def site(self) -> dict[str, Any]:
        """The site as it was when the campaign began, as data."""
        return self.data("site_data", dict)

    def created(self) -> float:
        """When the campaign began, in Unix seconds."""
        try:
            when = float(self.meta("created") or 0)
        except ValueError:
            when = -1.0
        if not 0 <= when < LATEST:
            raise self._damaged("when it began is no time")
        return when

    def calls(self) -> dict[str, int]:
        """How often each command of the scheduler was run for this campaign."""
        found = self.data("calls", dict)
        if not all(isinstance(n, int) for n in found.values()):
            raise self._damaged("calls are no numbers")
        return found

    def set_calls(self, calls: Mapping[str, int]) -> None:
        """Write that down."""
        self.set_meta("calls", json.dumps(calls))

    def has_login_shell(self) -> bool:
        """Whether jobs of the campaign's site start in a login shell."""
        return bool(self.site().get("login_shell"))

    def _damaged(self, what: str) -> CampaignError:
        return CampaignError(f"{self._path} is damaged: {what}")
