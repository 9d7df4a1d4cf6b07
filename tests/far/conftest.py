"""Sites behind `far` and beside it, on which staged campaigns are carried out."""

from __future__ import annotations

import getpass
import shutil
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from nsw.schedulers.cobalt import Cobalt
from nsw.schedulers.local import Host
from nsw.schedulers.pbs import Pbs
from nsw.schedulers.slurm import Slurm
from nsw.transport.local import LocalTransport
from tests.cobalt.places import Cobalt as CobaltPlace
from tests.pbs.double import Double

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


ADAPTERS = {"slurm": Slurm, "local": Host, "pbs": Pbs, "cobalt": Cobalt}


def behind(far: Far, work: Path, scheduler: str) -> Site:
    """A site behind `far`; `local` is the machine itself."""
    site = {"transport": {"kind": "far", "host": far.user, "config": str(far.control)}}
    adapter = ADAPTERS[scheduler]()
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


@contextmanager
def double_of(scheduler: str, folder: Path) -> Iterator[dict[str, str]]:
    """A double of PBS or Cobalt, and the environment that its commands need."""
    if scheduler == "pbs":
        with Double(folder / "pbs", kill_delay=0.3, mom_poll=0.2, retry_delivery=0.3) as double:
            yield double.env
        return
    place = CobaltPlace(folder, folder / "cobalt")
    place.state.mkdir()
    place.settings(kill_s=0.3)
    names = ("NSW_FAKE_COBALT", "NSW_FAKE_PYTHON", "PATH")
    yield {name: place.env[name] for name in names}


@pytest.fixture(params=["pbs", "cobalt"])
def qsub_site(request: pytest.FixtureRequest) -> Iterator[tuple[Far, Site]]:
    """A double of PBS or Cobalt behind `far`, where the jobs are this user's as the double's are."""
    if (why := missing()) is not None:
        pytest.skip(why)
    # Cobalt takes no blanks
    with folder_of_both("nsw-far-") as both, double_of(request.param, both) as environment:
        far = Far(both, getpass.getuser(), **environment)
        yield far, behind(far, both, request.param)


@pytest.fixture(params=["pbs", "cobalt"])
def near_qsub(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A double of PBS or Cobalt on this machine."""
    with double_of(request.param, tmp_path) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(tmp_path)
        (tmp_path / "scratch").mkdir()
        way = LocalTransport
        yield Site(
            request.param,
            ADAPTERS[request.param](),
            lambda _scratch, mark: way(mark),
            str(tmp_path / "scratch"),
            tmp_path,
        )


@pytest.fixture
def near_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """The fake Slurm on this machine."""
    from tests.slurm.places import Fake

    Fake(tmp_path, monkeypatch)
    (tmp_path / "scratch").mkdir()
    return Site("slurm", Slurm(), lambda _scratch, mark: LocalTransport(mark), str(tmp_path / "scratch"), tmp_path)
