"""Stages in the ledger: which runs wait until another pass of their case was read, and what was chosen for them."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping

STAGES_SCHEMA = """
CREATE TABLE needs (run TEXT PRIMARY KEY, source TEXT NOT NULL, ready INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE TABLE choices (run TEXT PRIMARY KEY, arguments TEXT NOT NULL, limit_s INTEGER, source TEXT NOT NULL,
  made REAL NOT NULL, note TEXT NOT NULL) WITHOUT ROWID;
"""
# of a table of runs: those whose task holds nothing that still waits for an earlier stage
READY = (
    " AND NOT EXISTS (SELECT 1 FROM needs n JOIN runs w ON w.id = n.run WHERE n.ready = 0 AND w.state = 'planned'"
    " AND w.job = runs.job AND w.task = runs.task)"
)


@dataclass(frozen=True, slots=True)
class Choice:
    """What an earlier stage decided for a run.

    Attributes:
        arguments: The words that the run's command gets.
        limit_s: Time limit of the run in seconds; None for that of the plan.
        source: The run whose tables decided.
        note: What was chosen, for people; becomes part of the lockfile.
    """

    arguments: tuple[str, ...]
    limit_s: int | None
    source: str
    note: str = ""


class LedgerStages:
    """The tables `needs` and `choices` of an open ledger."""

    _db: sqlite3.Connection

    def _has_stages(self) -> bool:
        """Whether the ledger has these tables; those of earlier versions have not."""
        found = self._db.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'needs'").fetchone()
        return found is not None

    def add_needs(self, needs: Mapping[str, str]) -> None:
        """Write down that runs wait: run -> CASE.PASS, of which any repeat that was read will do."""
        self._db.executemany("INSERT INTO needs (run, source) VALUES (?, ?)", needs.items())

    def waiting_for_stages(self) -> dict[str, list[str]]:
        """The planned runs that wait, by the CASE.PASS that they wait for, in the plan's order."""
        if not self._has_stages():
            return {}
        found = self._db.execute(
            "SELECT n.source, n.run FROM needs n JOIN runs r ON r.id = n.run"
            " WHERE n.ready = 0 AND r.state = 'planned' ORDER BY r.seq"
        )
        waiting: dict[str, list[str]] = {}
        for source, run in found:
            waiting.setdefault(source, []).append(run)
        return waiting

    def sources_of(self, source: str) -> list[str]:
        """The runs of a CASE.PASS that are no warm-up, in the plan's order."""
        found = self._db.execute(
            "SELECT id FROM runs WHERE case_id || '.' || pass_name = ? AND repeat > 0 ORDER BY seq", (source,)
        )
        return [run for (run,) in found]

    def release_stage(self, runs: Iterable[str]) -> None:
        """Nothing keeps these runs from being submitted any more."""
        self._db.executemany("UPDATE needs SET ready = 1 WHERE run = ?", [(run,) for run in runs])

    def hold_stage(self, runs: Iterable[str]) -> None:
        """These runs wait for their source again, and lose their choice."""
        some = [(run,) for run in runs]
        if some and self._has_stages():
            self._db.executemany("UPDATE needs SET ready = 0 WHERE run = ?", some)
            self._db.executemany("DELETE FROM choices WHERE run = ?", some)

    def dependents(self, runs: Iterable[str]) -> list[str]:
        """The runs that wait, or waited, for the CASE.PASS of any of these."""
        if not self._has_stages():
            return []
        found: list[str] = []
        for run in runs:
            found += [
                id_
                for (id_,) in self._db.execute(
                    "SELECT n.run FROM needs n JOIN runs s ON s.case_id || '.' || s.pass_name = n.source"
                    " WHERE s.id = ?",
                    (run,),
                )
            ]
        return list(dict.fromkeys(found))

    def choose_for(self, run: str, choice: Choice) -> None:
        """Write down a choice."""
        self._db.execute(
            "INSERT OR REPLACE INTO choices VALUES (?, ?, ?, ?, ?, ?)",
            (run, json.dumps(choice.arguments), choice.limit_s, choice.source, time.time(), choice.note),
        )

    def choices(self) -> dict[str, Choice]:
        """What was chosen, by run."""
        if not self._has_stages():
            return {}
        found = self._db.execute("SELECT run, arguments, limit_s, source, note FROM choices")
        return {run: _choice(arguments, limit, source, note) for run, arguments, limit, source, note in found}


def _choice(arguments: str, limit_s: Any, source: str, note: str) -> Choice:
    words = json.loads(arguments)
    return Choice(tuple(map(str, words)), None if limit_s is None else int(limit_s), source, note)
