"""The batch systems of a site that fails: a real Slurm, the doubles of PBS and Cobalt. What each prints when it goes wrong."""

from __future__ import annotations

import getpass
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nsw.schedulers.cobalt import Cobalt
from nsw.schedulers.pbs import Pbs
from nsw.schedulers.slurm import Slurm
from tests.cobalt.places import BIN as COBALT_BIN
from tests.cobalt.places import Cobalt as CobaltPlace
from tests.far.place import USER
from tests.pbs.double import FAKE as FAKE_PBS
from tests.pbs.double import Double
from tests.slurm.places import Real

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsw.schedulers.adapter import Adapter

NAMES = ("slurm", "pbs", "cobalt")
DOUBLES = ("pbs", "cobalt")
REMOTE = ("openssh", "ssh")
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
# lines of bash in front of a command: it does its work, and fails by what a site's wrapper prints
ACCEPTED_AND_FAILED = '"$REAL" "$@" >/dev/null; echo "wrapper: cannot write its log" >&2; exit 1'


def ways(*short: str, systems: tuple[str, ...] = NAMES, kinds: tuple[str, ...] = REMOTE) -> pytest.MarkDecorator:
    """Run a test on each system over each transport: those in `short` always, the others in the long form.

    Args:
        short: Systems with transports, such as `pbs-ssh`.
        systems: What the long form goes over.
        kinds: Likewise; `local` is no transport, and not for Slurm, whose tests without one are in tests/slurm.
    """
    some = []
    for system in systems:
        for kind in kinds:
            marks = [pytest.mark.slurm] if system == "slurm" else []
            if system == "slurm" and kind == "local":
                continue
            marks += [] if f"{system}-{kind}" in short else [pytest.mark.soak]
            some.append(pytest.param(system, kind, marks=marks, id=f"{system}-{kind}"))
    return pytest.mark.parametrize(("system", "kind"), some, indirect=["system"])


@dataclass
class System:
    """A batch system, and how its commands go wrong: each fault is a line of bash.

    Args:
        name: As a site names it.
        adapter: How nsw speaks to it.
        user: Who logs in where it is.
        environment: Variables that its commands need; PATH is where they are.
        commands: What nsw calls.
        submits: The one that submits.
        lists: The one that lists jobs.
        down: A command cannot reach the server.
        not_submitted: The same, of the one that submits.
        gone: A list without the jobs that were asked for.
        others: Commands beside these that go wrong in the way of `down`.
    """

    name: str
    adapter: Adapter
    user: str
    environment: dict[str, str]
    commands: tuple[str, ...]
    submits: str
    lists: str
    down: str
    not_submitted: str
    gone: str
    others: tuple[str, ...]

    def tasks(self, campaign: str) -> int:
        """How many tasks were submitted for a campaign, as the system itself counts them."""
        raise NotImplementedError

    def hold(self) -> None:
        """No job begins."""
        raise NotImplementedError

    def release(self) -> None:
        """Jobs begin again."""
        raise NotImplementedError

    def delete_first(self) -> None:
        """A person deletes the first task that was submitted."""
        raise NotImplementedError


class RealSlurm(System):
    """A Slurm that other tests may use at the same time.

    Args:
        conf: Its configuration.
    """

    def __init__(self, conf: Path) -> None:
        self.conf = conf
        super().__init__(
            "slurm", Slurm(), USER, {"SLURM_CONF": str(conf), "PATH": SYSTEM_PATH},
            ("sbatch", "squeue", "sacct", "scontrol", "scancel"), "sbatch", "squeue",
            down='echo "slurm_load_jobs error: Unable to contact slurm controller (connect failure)" >&2; exit 1',
            not_submitted='echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2;'
            " exit 1",
            gone="exit 0",
            others=("scontrol",),
        )  # fmt: skip

    def place(self, work: Path) -> Real:
        """As its user sees it."""
        return Real(self.conf, USER, accounting=False, work=work)

    def tasks(self, campaign: str) -> int:
        return sum(self.place(Path("/")).listed(campaign).values())


class FakePbs(System):
    """A double of PBS that nobody else uses.

    Args:
        double: It.
    """

    def __init__(self, double: Double) -> None:
        self.double = double
        self._counted = 0
        refused = 'echo "Connection refused" >&2; echo "{}: cannot connect to server pbs0 (errno=15010)" >&2; exit {}'
        super().__init__(
            "pbs", Pbs(), getpass.getuser(), double.env | {"PATH": f"{FAKE_PBS / 'bin'}:{SYSTEM_PATH}"},
            ("qsub", "qstat", "qselect", "qdel", "qalter"), "qsub", "qstat",
            down=refused.format("qstat", 255),
            not_submitted=refused.format("qsub", 162),
            gone='for id; do case $id in [0-9]*) echo "qstat: Unknown Job Id $id" >&2 ;; esac; done; exit 153',
            others=("qselect",),
        )  # fmt: skip

    def tasks(self, campaign: str) -> int:
        """Since it was last asked."""
        del campaign
        before, self._counted = self._counted, sum(tasks for _, _, tasks in self.double.control("_jobs")["jobs"])
        return self._counted - before

    def hold(self) -> None:
        self.double.hold()

    def release(self) -> None:
        self.double.release()

    def delete_first(self) -> None:
        assert self.double.command("qdel", "1[0].pbs0").returncode == 0


class FakeCobalt(System):
    """A double of Cobalt that nobody else uses.

    Args:
        place: It.
    """

    def __init__(self, place: CobaltPlace) -> None:
        self.place = place
        self._counted = 0
        names = ("NSW_FAKE_COBALT", "NSW_FAKE_PYTHON")
        refused = r"""printf '%s\n' "{}<Fault 20: 'Exception  : error: [Errno 111] Connection refused'>" >&2; exit 1"""
        super().__init__(
            "cobalt", Cobalt(), getpass.getuser(),
            {name: place.env[name] for name in names} | {"PATH": f"{COBALT_BIN}:{SYSTEM_PATH}"},
            ("qsub", "qstat", "qdel"), "qsub", "qstat",
            down=refused.format("component error: XMLRPC failure "),
            not_submitted=refused.format(""),
            gone="exit 1",
            others=("qdel",),
        )  # fmt: skip

    def tasks(self, campaign: str) -> int:
        """Since it was last asked."""
        del campaign
        before, self._counted = self._counted, self.place.cqm()["next"] - 1
        return self._counted - before

    def hold(self) -> None:
        self.place.run("cqadm", "--stopq", "default")

    def release(self) -> None:
        self.place.run("cqadm", "--startq", "default")

    def delete_first(self) -> None:
        self.place.run("qdel", "1")


@contextmanager
def double(name: str, folder: Path) -> Iterator[System]:
    """A double of PBS or Cobalt with its state in an empty folder, quick where the real one takes seconds."""
    if name == "pbs":
        with Double(folder / "pbs", kill_delay=0.3, mom_poll=0.2, retry_delivery=0.3) as pbs:
            yield FakePbs(pbs)
        return
    place = CobaltPlace(folder, folder / "cobalt")
    place.state.mkdir()
    place.settings(kill_s=0.3)
    try:
        yield FakeCobalt(place)
    finally:
        if left := list(place.cqm()["jobs"]):
            place.run("qdel", *left)
