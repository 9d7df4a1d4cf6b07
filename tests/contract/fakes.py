"""Each fake batch system as a place where campaigns are carried out."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.cobalt.places import Cobalt
from tests.fakes.place import FakePlace, Flux, Sge, Slurm
from tests.lsf.conftest import Lsf
from tests.pbs.double import Double
from tests.pbs.places import Pbs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SYSTEMS: dict[str, type[FakePlace]] = {place.scheduler_name: place for place in (Slurm, Cobalt, Lsf, Sge, Flux)}


@contextmanager
def fake(name: str, root: Path) -> Iterator[FakePlace]:
    """A fake in a folder of its own, quick where the real system takes seconds.

    One job or task runs at a time, and the others wait. Slurm, LSF and Grid Engine do an array's tasks one after the other.
    """
    work, state = root / "w", root / name
    work.mkdir()
    try:
        yield from _fake(name, work, state)
    finally:
        (work / "go").touch()  # ends the programs that wait for it (`until_go`), also of a cancelled run


def _fake(name: str, work: Path, state: Path) -> Iterator[FakePlace]:
    if name == "pbs":
        with Double(state, kill_delay=0.3, mom_poll=0.2, retry_delivery=0.3) as double:
            double.settings(node={"ncpus": 1, "ngpus": 0, "mem": "8gb"})
            yield Pbs(work, double)
        return
    state.mkdir()
    place = SYSTEMS[name](work, state)
    place.settings(**({"nodes": 1, "kill_s": 0.3} if name == "cobalt" else {}))
    yield place
