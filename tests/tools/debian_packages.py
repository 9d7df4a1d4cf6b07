#!/usr/bin/env python3
"""Install the Debian packages that tests use: `debian_packages.py [GROUP...]`, without a group all; needs root.

Their daemons are not started. Several of these may run at a time: they wait for each other, and for any other apt of this
machine.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

GROUPS = {
    "slurm": ("slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins", "munge"),
    "slurm-accounting": ("slurmdbd", "mariadb-server"),
    "ssh": ("openssh-server", "openssh-client", "rsync"),
    "shells": ("fish", "zsh", "tcsh"),
    "faults": ("faketime", "btrfs-progs"),
    "queue": ("task-spooler",),
    "mpi": ("openmpi-bin", "mpich"),
    "containers": ("charliecloud",),
    "browser": ("chromium", "chromium-driver"),
    # perf is in other packages on Ubuntu, where the other groups are to be named
    "profilers": ("linux-perf", "binutils", "gcc", "libc6-dev"),
}
LOCK = Path("/var/lock/nsw-test-packages")
POLICY = Path("/usr/sbin/policy-rc.d")
PATIENCE_S = 600


def main() -> None:
    groups = sys.argv[1:] or list(GROUPS)
    if unknown := sorted({*groups} - {*GROUPS}):
        raise SystemExit(f"debian_packages.py: no group {', '.join(unknown)}; there are {', '.join(GROUPS)}")
    try:
        install([package for group in groups for package in GROUPS[group]])
    except subprocess.CalledProcessError as fault:
        raise SystemExit(f"debian_packages.py: {fault.stderr.strip()}") from None
    except OSError as fault:
        raise SystemExit(f"debian_packages.py: {fault}") from None


def install(packages: Sequence[str]) -> None:
    """Installs what is missing.

    Raises:
        CalledProcessError: apt-get failed; `stderr` is what it printed.
    """
    if all(map(installed, packages)):
        return
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        missing = [package for package in packages if not installed(package)]
        if missing:
            with no_daemons():
                apt_get("update")
                apt_get("install", "--no-install-recommends", *missing)


def installed(package: str) -> bool:
    words = ["dpkg-query", "-W", "-f", "${db:Status-Status}", package]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip() == "installed"


@contextmanager
def no_daemons() -> Iterator[None]:
    """While packages do not start their daemons."""
    made = not POLICY.exists()
    if made:
        POLICY.write_text("#!/bin/sh\nexit 101\n")
        POLICY.chmod(0o755)
    try:
        yield
    finally:
        if made:
            POLICY.unlink()


def apt_get(*words: str) -> None:
    """Runs apt-get, after any other one.

    Raises:
        CalledProcessError: It failed.
    """
    command = ["apt-get", "-q", "-y", "-o", f"DPkg::Lock::Timeout={PATIENCE_S}", *words]
    deadline = time.monotonic() + PATIENCE_S
    while True:
        done = subprocess.run(
            command, env=os.environ | {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        # apt waits for the lock of the packages, but gives up at once where another one holds that of the lists
        if done.returncode == 0 or "Could not get lock" not in done.stderr or time.monotonic() > deadline:
            done.check_returncode()
            return
        time.sleep(1)


if __name__ == "__main__":
    main()
