"""What all tests share: the profilers and machines that some need, and by what name the others are skipped."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import hypothesis
import pytest

from tests.surroundings import leave_surroundings

# the same examples each time: a test says something of the change, not of the dice; NSW_EXPLORE=1 throws them
# and of no machine: how long an example takes fails nothing
TIMELESS = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("steady", derandomize=True, **TIMELESS)
hypothesis.settings.register_profile("explore", **TIMELESS)
hypothesis.settings.load_profile("explore" if os.environ.get("NSW_EXPLORE") else "steady")
with suppress(ImportError, AttributeError):  # versions that make no examples so
    from hypothesis.internal.conjecture import providers

    # Hypothesis makes examples of the constants in all modules that a process has loaded: after other tests a test would
    # have other examples, and fail in some orders only
    if not os.environ.get("NSW_EXPLORE") and callable(providers._get_local_constants):
        no_constants = providers._local_constants
        providers._get_local_constants = lambda: no_constants

MOST_BYTES = 8  # of a test's name
# whole folders that wait for batch systems, servers and processes, while the others compute
WAITING = {"cobalt", "contract", "far", "faults", "lsf", "pbs", "remote", "road", "sge", "slurm", "transport"}
# the files that take longest begin first, so that none is left alone at the end
LONGEST = ("contract/test_campaigns", "remote/test_tables", "faults/test_site", "slurm/test_crash", "cobalt/test_crash",
           "remote/test_campaign", "pbs/test_double", "slurm/test_both")  # fmt: skip
OWN_FOLDER = pytest.StashKey[Path]()
GET_NSYS = Path(__file__).parent / "tools" / "get-nsys"


def pytest_configure(config: pytest.Config) -> None:
    """Puts an nsys on PATH: the one that NSW_NSYS names, that of PATH, or the one that `make test` fetched.

    Then leaves the surroundings of whoever runs the tests; each process of pytest-xdist does so for itself.
    """
    config.option.loadscopereorder = False  # pytest-xdist would begin with the files of most tests: the shortest ones
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # a shell starts `make test &` so, and every program under test would inherit it: Ctrl-C would do nothing
        signal.signal(signal.SIGINT, signal.default_int_handler)
    nsys = os.environ.pop("NSW_NSYS", "") or shutil.which("nsys") or fetched_nsys()
    if nsys:
        os.environ["PATH"] = f"{Path(nsys).absolute().parent}{os.pathsep}{os.environ['PATH']}"
    if config.option.color == "auto":  # what they say of colours is for pytest
        asked = os.environ.get("PY_COLORS") or ("0" if os.environ.get("NO_COLOR") else "")
        asked = asked or ("1" if os.environ.get("FORCE_COLOR") else "")
        config.option.color = {"0": "no", "1": "yes"}.get(asked, "auto")
    if interval := os.environ.get("NSW_SWITCH_INTERVAL"):  # seconds after which Python changes threads
        sys.setswitchinterval(float(interval))
    config.stash[OWN_FOLDER] = leave_surroundings()


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(config.stash[OWN_FOLDER], ignore_errors=True)


@pytest.fixture(autouse=True)
def _own_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Campaigns of one test wait for those of that test alone."""
    session = os.environ["XDG_RUNTIME_DIR"]
    monkeypatch.setenv("XDG_RUNTIME_DIR", tempfile.mkdtemp(dir=session))


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Names bytes by their length: packed ones hold the time, and the processes that share the tests compare names."""
    return f"{argname}-{len(val)}-bytes" if isinstance(val, bytes) and len(val) > MOST_BYTES else None


def fetched_nsys() -> str:
    return subprocess.run([GET_NSYS, "--where"], capture_output=True, text=True, check=False).stdout.strip()


def mixed(items: list[pytest.Item]) -> list[pytest.Item]:
    """Orders files so that those that wait and those that compute run side by side, and the longest begin first."""
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    here = Path(__file__).parent
    names = {path: path.relative_to(here).with_suffix("").as_posix() for path in files}
    kinds = [[path for path in files if (path.parent.name in WAITING) is waits] for waits in (True, False)]
    place = {path: at / len(kind) for kind in kinds for at, path in enumerate(kind)}
    place |= {path: LONGEST.index(name) - len(LONGEST) for path, name in names.items() if name in LONGEST}
    return [item for path in sorted(files, key=lambda path: (place[path], names[path])) for item in files[path]]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skips by name what needs something that this machine has not; what takes many minutes is left to `make soak`."""
    if config.option.markexpr != "soak":
        long = [item for item in items if item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if not item.get_closest_marker("soak")]
    if config.option.numprocesses or hasattr(config, "workerinput"):
        items[:] = mixed(items)
    missing = {"nsys": "no nsys: NSW_NSYS, PATH or tests/tools/get-nsys would give one", "gpu": "no NVIDIA GPU"}
    if shutil.which("nsys"):
        del missing["nsys"]
    if Path("/dev/nvidiactl").exists():
        del missing["gpu"]
    for item in items:
        for marker, why in missing.items():
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=why))
