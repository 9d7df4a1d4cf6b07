"""Sites behind `far` and beside it, on which staged campaigns are carried out."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from nsw.schedulers.host import Host
from nsw.schedulers.slurm import Slurm
from nsw.transport.local import LocalTransport

from .far_nsw import connect
from .place import HERE, USER, Far, folder_of_both, make_user, missing
from .staged import Site

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FAKES = HERE.parent / "fakes"


@pytest.fixture
def both() -> Iterator[Path]:
    """A folder that this user and the one over there may write in."""
    if (why := missing()) is not None:
        pytest.skip(why)
    make_user()
    with folder_of_both() as folder:
        yield folder


def behind(far: Far, work: Path, scheduler: str) -> Site:
    """A site behind `far`: `slurm`, whose commands are fakes over there, or `local`, the machine itself."""
    site = {"transport": {"kind": "far", "host": USER, "config": str(far.control)}}
    adapter = Slurm() if scheduler == "slurm" else Host()
    return Site(scheduler, adapter, lambda scratch, mark: connect(site, scratch, mark), str(far.scratch), work)


def far_with_fake_slurm(folder: Path) -> Far:
    """A site with the fake Slurm, whose files the user there may read."""
    shutil.copytree(FAKES / "bin", folder / "fakes" / "bin")
    for file in ("slurm.py", "machinery.py"):
        shutil.copy(FAKES / file, folder / "fakes")
    state = folder / "fake-slurm"
    state.mkdir()
    shutil.chown(state, USER)
    path = f"{folder / 'fakes' / 'bin'}:/usr/local/bin:/usr/bin:/bin"
    return Far(folder, NSW_FAKE_SLURM=str(state), NSW_FAKE_PYTHON="/usr/bin/python3", PATH=path)


@pytest.fixture(params=["slurm, far", "the machine, far"])
def far_site(request: pytest.FixtureRequest, both: Path) -> tuple[Far, Site]:
    """Orders, and the site that they are for."""
    if request.param.startswith("slurm"):
        if subprocess.run(
            ["/usr/bin/python3", "-c", "import sys; sys.exit(sys.version_info < (3, 11))"], check=False
        ).returncode:
            pytest.skip("no Python 3.11 that another user may start")
        far, scheduler = far_with_fake_slurm(both), "slurm"
    else:
        far, scheduler = Far(both), "local"
    return far, behind(far, both, scheduler)


@pytest.fixture
def near_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """The fake Slurm on this machine."""
    from tests.slurm.places import Fake

    Fake(tmp_path, monkeypatch)
    (tmp_path / "scratch").mkdir()
    return Site("slurm", Slurm(), lambda _scratch, mark: LocalTransport(mark), str(tmp_path / "scratch"), tmp_path)
