"""Bringing files from a site over ssh and openssh, beside scp and rsync: one large file and a thousand small ones.

A real sshd on the loopback serves; client and server share the cores. Needs root, sshd and ssh.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nsw.transport.create import connect

ROOT = Path(__file__).parents[1]
MIB = 500
SMALL = 1000
TIMES = 3


def server(folder: Path):
    """The sshd that the tests use."""
    spec = importlib.util.spec_from_file_location("remote_conftest", ROOT / "tests" / "remote" / "conftest.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    if module.SSHD is None or os.geteuid() != 0:
        return None
    one = module.Server(folder, more="Subsystem sftp internal-sftp")
    one.start()
    return one


def best(work, folder: Path) -> float:
    """The least seconds of some tries."""
    found = []
    for _ in range(TIMES):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="nsw-bench-") as text:
        top = Path(text)
        sshd = server(top / "sshd")
        if sshd is None:
            print("skipped: no sshd, or not root")
            return
        large, many, here = top / "large", top / "many", top / "here"
        with large.open("wb") as file:
            for _ in range(MIB):
                file.write(os.urandom(1 << 20))
        many.mkdir()
        for n in range(SMALL):
            (many / f"{n}.txt").write_text(f"file {n}\n" * 20)
        print(f"{os.cpu_count()} cores, Python {platform.python_version()}, best of {TIMES}")
        config = ["-F", str(sshd.config)]
        ways = {
            "scp": (
                lambda: subprocess.run(["scp", "-q", *config, f"far:{large}", here], check=True),
                lambda: subprocess.run(["scp", "-q", "-r", *config, f"far:{many}", here], check=True),
            ),
        }
        if shutil.which("rsync"):
            shell = f"ssh -F {sshd.config}"
            ways["rsync"] = (
                lambda: subprocess.run(["rsync", "-a", "-e", shell, f"far:{large}", here], check=True),
                lambda: subprocess.run(["rsync", "-a", "-e", shell, f"far:{many}", here], check=True),
            )
        for kind in ("openssh", "ssh"):
            site = {"transport": {"kind": kind, "host": "far", "config": str(sshd.config)}}
            transport = connect(site, str(top / "scratch"))
            transport.run(["true"], timeout=60)

            def some(transport=transport):
                listed = transport.list_many({str(many): ["*"]})[str(many)]
                transport.get_many([(f"{many}/{e.name}", here / e.name) for e in listed])

            ways[f"nsw {kind}"] = (lambda t=transport: t.get_many([(str(large), here / "large")]), some)
        for name, (one, several) in ways.items():
            seconds, thousand = best(one, here), best(several, here)
            rate = f"{MIB} MiB in {seconds:5.2f} s: {MIB / seconds:6.0f} MiB/s"
            print(f"{name:12} {rate}; {SMALL} files in {thousand:5.2f} s")
        sshd.stop(sessions=True)


if __name__ == "__main__":
    main()
