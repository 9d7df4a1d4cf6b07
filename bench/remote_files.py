"""Bringing files from a site over ssh and openssh, beside scp and rsync: one large file and a thousand small ones.

A real sshd on the loopback serves; client and server share the cores. The ways take turns, so that a busy machine slows
all of them. Then the same with 50 ms of delay (bench/network/delayed.py), with a fifth of the bytes and a tenth of the
files, of which scp brings five a second. `scp, sums` is scp with what nsw does beside it: both sides compute the file's
hash, one after the other. CPU is that of both sides and of all their processes.
Needs root, sshd and ssh. `python bench/remote_files.py [MIB [TIMES]]`.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsw.transport.model import Transport

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "tests"))

from remote.conftest import SSHD, Server, free_port  # noqa: E402  after the path

from nsw.transport.model import connect  # noqa: E402

MIB = int(sys.argv[1]) if len(sys.argv) > 1 else 500
TIMES = int(sys.argv[2]) if len(sys.argv) > 2 else 3
SMALL = 1000
DELAY_MS = 50
WANTED = "wanted, of scp's rate for the large file: openssh 80 %, ssh 70 %"


def used(sshd: Server) -> float:
    """CPU seconds of this process and the sshd, and of all that both have started."""
    assert sshd.process is not None
    facts: dict[int, list[str]] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            facts[int(file.parent.name)] = file.read_text().rpartition(")")[2].split()
    ours = {os.getpid(), sshd.process.pid}
    while more := {pid for pid, words in facts.items() if int(words[1]) in ours} - ours:
        ours |= more
    return sum(int(number) for pid in ours for number in facts[pid][11:15]) / os.sysconf("SC_CLK_TCK")


def in_turns(ways: dict, here: Path, sshd: Server) -> dict[str, list[tuple[float, float]]]:
    """The seconds and the CPU seconds of each way's tries, fastest first."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(TIMES):
        for name, work in ways.items():
            shutil.rmtree(here, ignore_errors=True)
            here.mkdir()
            before, start = used(sshd), time.perf_counter()
            work()
            took = time.perf_counter() - start
            found[name].append((took, used(sshd) - before))
    return {name: sorted(tries) for name, tries in found.items()}


def measure(title: str, config: Path, sshd: Server, top: Path, size: int, count: int) -> None:
    here, large, many = top / "here", top / f"{size}.bin", top / f"{count}-files"
    many.mkdir()
    for n in range(count):
        (many / f"{n}.txt").write_text(f"file {n}\n" * 20)
    with large.open("wb") as file:
        for _ in range(size):
            file.write(os.urandom(1 << 20))
    ssh = ["-F", str(config)]

    def scp(*words: object) -> None:
        subprocess.run(["scp", "-q", *ssh, *map(str, words), str(here)], check=True)

    def rsync(*words: object) -> None:
        subprocess.run(["rsync", "-a", "-e", f"ssh -F {config}", *map(str, words), str(here)], check=True)

    def scp_and_sums() -> None:
        scp(f"far:{large}")
        for where in (["ssh", *ssh, "far"], []):
            file = large if where else here / large.name
            subprocess.run([*where, "openssl", "dgst", "-sha256", str(file)], check=True, stdout=subprocess.DEVNULL)

    first: dict[str, Callable[[], object]] = {"scp": lambda: scp(f"far:{large}"), "scp, sums": scp_and_sums}
    second: dict[str, Callable[[], object]] = {"scp": lambda: scp("-r", f"far:{many}")}
    if shutil.which("rsync"):
        first["rsync"] = lambda: rsync(f"far:{large}")
        second["rsync"] = lambda: rsync(f"far:{many}")
    for kind in ("openssh", "ssh"):
        transport = connect({"transport": {"kind": kind, "host": "far", "config": str(config)}}, str(top / "scratch"))
        transport.run(["true"], timeout=60)

        def some(transport: Transport = transport) -> None:
            listed = transport.list_many({str(many): ["*"]})[str(many)]
            transport.get_many([(f"{many}/{e.name}", here / e.name) for e in listed])

        first[f"nsw {kind}"] = lambda t=transport: t.get_many([(str(large), here / "large")])
        second[f"nsw {kind}"] = some
    one, thousand = in_turns(first, here, sshd), in_turns(second, here, sshd)
    print(f"{title}, load {os.getloadavg()[0]:.1f}")
    middle = TIMES // 2
    for name, tries in one.items():
        share = 100 * one["scp"][middle][0] / tries[middle][0]
        rate = f"{size / tries[0][0]:5.0f} MiB/s best, {size / tries[middle][0]:5.0f} median ({share:3.0f} % of scp)"
        small = f"; {count} files in {thousand[name][0][0]:5.2f} s" if name in thousand else ""
        print(f"  {name:12} {size} MiB: {rate}, {tries[0][1]:5.2f} s of CPU{small}", flush=True)
    large.unlink()


def delayed(sshd: Server, top: Path) -> tuple[subprocess.Popen[bytes], Path]:
    """A network with a delay in front of the server, and the configuration to get through it."""
    port = free_port()
    words = [sys.executable, str(ROOT / "bench" / "network" / "delayed.py"), str(port), str(sshd.port), str(DELAY_MS)]
    network = subprocess.Popen(words, stdout=subprocess.PIPE)
    assert network.stdout is not None
    network.stdout.readline()
    keys = sshd.folder / "known_hosts"
    keys.write_text(keys.read_text() + keys.read_text().replace(f":{sshd.port} ", f":{port} "))
    config = top / "delayed"
    config.write_text(sshd.config.read_text().replace(f"Port {sshd.port}", f"Port {port}"))
    return network, config


def main() -> None:
    if SSHD is None or os.geteuid() != 0:
        print("skipped: no sshd, or not root")
        return
    with tempfile.TemporaryDirectory(prefix="nsw-bench-") as text:
        top = Path(text)
        sshd = Server(top / "sshd", more="Subsystem sftp internal-sftp")
        sshd.start()
        print(f"{os.cpu_count()} cores, Python {platform.python_version()}; {TIMES} tries in turns; {WANTED}")
        measure("loopback", sshd.config, sshd, top, MIB, SMALL)
        network, config = delayed(sshd, top)
        try:
            measure(f"{DELAY_MS} ms of delay", config, sshd, top, max(1, MIB // 5), SMALL // 10)
        finally:
            network.kill()
            sshd.stop(sessions=True)
    sys.stdout.flush()
    os._exit(0)  # paramiko's threads wait for ever


if __name__ == "__main__":
    main()
