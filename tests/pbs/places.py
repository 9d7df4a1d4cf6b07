"""A fake PBS as a place where campaigns are carried out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fakes.place import FakePlace

if TYPE_CHECKING:
    from pathlib import Path

    from .double import Double


class Pbs(FakePlace):
    """The fake PBS, whose server is a process of its own."""

    scheduler_name, submits, lists, commands = "pbs", "qsub", "qstat", "pbs/bin"

    def __init__(self, work: Path, double: Double) -> None:
        super().__init__(work, double.root)
        object.__setattr__(self, "double", double)

    double: Double

    def is_now(self, job: str, **other: str) -> None:
        """As every fake's."""
        self.double.control("_is_now", id=job, **other)

    def listed(self, campaign: str) -> dict[tuple[str, str], int]:
        """How many tasks each job has, by its name and id, as the server knows them."""
        del campaign  # nobody else uses it
        return {(name, str(seq)): tasks for seq, name, tasks in self.double.control("_jobs")["jobs"]}
