"""Bringing files from a site over ssh and openssh, beside scp and rsync: one large file and a thousand small ones.

A real sshd on the loopback serves; client and server share the cores. The ways take turns, so
that a busy machine slows all of them. Needs root, sshd and ssh. `python bench/remote_files.py [MIB [TIMES]]`.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "tests"))

from remote.conftest import SSHD, Server  # noqa: E402  after the path

from nsw.transport.create import connect  # noqa: E402

MIB = int(sys.argv[1]) if len(sys.argv) > 1 else 500
TIMES = int(sys.argv[2]) if len(sys.argv) > 2 else 3
SMALL = 1000
WANTED = "wanted, of scp's rate for the large file: openssh 80 %, ssh 70 %"


def in_turns(ways: dict, here: Path) -> dict[str, list[float]]:
    """The seconds of each way's tries, least first."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(TIMES):
        for name, work in ways.items():
            shutil.rmtree(here, ignore_errors=True)
            here.mkdir()
            start = time.perf_counter()
            work()
            found[name].append(time.perf_counter() - start)
    return {name: sorted(seconds) for name, seconds in found.items()}


def measure(title: str, sshd: Server, top: Path, large: Path, many: Path) -> None:
    here = top / "here"
    config = ["-F", str(sshd.config)]
    scp = ["scp", "-q", *config]
    first = {"scp": lambda: subprocess.run([*scp, f"far:{large}", here], check=True)}
    second = {"scp": lambda: subprocess.run([*scp, "-r", f"far:{many}", here], check=True)}
    if shutil.which("rsync"):
        rsync = ["rsync", "-a", "-e", f"ssh -F {sshd.config}"]
        first["rsync"] = lambda: subprocess.run([*rsync, f"far:{large}", here], check=True)
        second["rsync"] = lambda: subprocess.run([*rsync, f"far:{many}", here], check=True)
    for kind in ("openssh", "ssh"):
        site = {"transport": {"kind": kind, "host": "far", "config": str(sshd.config)}}
        transport = connect(site, str(top / "scratch"))
        transport.run(["true"], timeout=60)

        def some(transport=transport):
            listed = transport.list_many({str(many): ["*"]})[str(many)]
            transport.get_many([(f"{many}/{e.name}", here / e.name) for e in listed])

        first[f"nsw {kind}"] = lambda t=transport: t.get_many([(str(large), here / "large")])
        second[f"nsw {kind}"] = some
    one, thousand = in_turns(first, here), in_turns(second, here)
    print(title)
    for name, seconds in one.items():
        middle = seconds[len(seconds) // 2]
        share = 100 * one["scp"][len(seconds) // 2] / middle
        rate = f"{MIB / seconds[0]:6.0f} MiB/s best, {MIB / middle:6.0f} median ({share:3.0f} % of scp)"
        print(f"  {name:12} {MIB} MiB: {rate}; {SMALL} files in {thousand[name][0]:5.2f} s")


def main() -> None:
    if SSHD is None or os.geteuid() != 0:
        print("skipped: no sshd, or not root")
        return
    with tempfile.TemporaryDirectory(prefix="nsw-bench-") as text:
        top = Path(text)
        sshd = Server(top / "sshd", more="Subsystem sftp internal-sftp")
        sshd.start()
        large, many = top / "large", top / "many"
        with large.open("wb") as file:
            for _ in range(MIB):
                file.write(os.urandom(1 << 20))
        many.mkdir()
        for n in range(SMALL):
            (many / f"{n}.txt").write_text(f"file {n}\n" * 20)
        machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, load {os.getloadavg()[0]:.0f}"
        print(f"{machine}; {TIMES} tries in turns; {WANTED}")
        measure("loopback", sshd, top, large, many)
        sshd.stop(sessions=True)
    sys.stdout.flush()
    os._exit(0)  # paramiko's threads wait for ever


if __name__ == "__main__":
    main()
