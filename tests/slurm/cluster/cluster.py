#!/usr/bin/env python3
"""A real Slurm on this machine for tests: `cluster.py up FOLDER`, `cluster.py down FOLDER`; needs root.

Everything (munge, slurmctld, four slurmd with fake GPUs, and with --accounting slurmdbd and MariaDB) lives below
FOLDER, with sockets and keys of its own; nothing outside is changed but missing Debian packages and the
submitting user. `up` is idempotent. Clients need SLURM_CONF=FOLDER/etc/slurm.conf.
"""

from __future__ import annotations

import argparse
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

CONF = Path(__file__).resolve().parent / "conf"
PACKAGES = Path(__file__).resolve().parents[2] / "tools" / "debian_packages.py"
NOT_INSTALLED = 3  # exit status: Slurm is not here, and could not be installed
NODES = ("volta1", "volta2", "ampere1", "ampere2")
FOLDERS = ("state", "run", "log", "spool", "dev", "etc", *(f"spool/{node}" for node in NODES))
ACCOUNT = "research"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("up", "down"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--accounting", action="store_true", help="with slurmdbd and MariaDB")
    parser.add_argument("--user", default="nswtest", help="who submits; made when missing")
    parser.add_argument("--port", type=int, default=26810, help="first of nine ports")
    parser.add_argument("--min-job-age", type=int, default=300)
    asked = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("cluster.py: needs root (sudo)")
    cluster = Cluster(asked.folder.resolve(), asked.port, accounting=asked.accounting, min_job_age=asked.min_job_age)
    if asked.action == "up":
        groups = ("slurm", *(("slurm-accounting",) if asked.accounting else ()))
        if subprocess.run([sys.executable, PACKAGES, *groups], check=False).returncode:
            raise SystemExit(NOT_INSTALLED)
        cluster.up(asked.user)
        print(f"SLURM_CONF={cluster.conf}")
    else:
        cluster.down()


class Cluster:
    """Daemons below one folder."""

    def __init__(self, root: Path, port: int, *, accounting: bool, min_job_age: int) -> None:
        self.root = root
        self.conf = root / "etc" / "slurm.conf"
        self.accounting = accounting
        self.values = {
            "root": str(root), "host": socket.gethostname().split(".")[0], "cluster": f"nsw{port}", "ctld_port": port,
            "dbd_port": port + 1, "mysql_port": port + 2, "node_port": port + 3, "node_port_2": port + 4,
            "node_port_3": port + 5, "node_port_4": port + 6, "min_job_age": min_job_age,
        }  # fmt: skip
        self.env = os.environ | {"SLURM_CONF": str(self.conf)}

    def up(self, user: str) -> None:
        ensure_user(user)
        self.write_files()
        self.start_munge()
        if self.accounting:
            self.start_database()
            self.start_accounting(user)
        self.start_slurm()

    def down(self) -> None:
        """End every daemon, the dependent ones first; state and logs stay."""
        names = [*(f"slurmd.{n}" for n in NODES), "slurmctld", "slurmdbd"]
        files = [*(self.root / "run" / f"{n}.pid" for n in names), self.root / "mysql/mysqld.pid",
                 self.root / "munge/munged.pid"]  # fmt: skip
        for file in files[: len(NODES)]:
            stop(file)
        for pid in self.stepds():  # one that could not tell the controller of its end would try for ever
            os.kill(pid, signal.SIGKILL)
        for file in files[len(NODES) :]:
            stop(file)

    def stepds(self) -> list[int]:
        """The processes of this cluster that watch over jobs."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                name, environment = (folder / "comm").read_text(), (folder / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if name.startswith("slurmstepd") and f"SLURM_CONF={self.conf}".encode() in environment:
                found.append(int(folder.name))
        return found

    def write_files(self) -> None:
        for name in FOLDERS:
            (self.root / name).mkdir(parents=True, exist_ok=True)
        for number in range(8):
            device = self.root / "dev" / f"nvidia{number}"
            if not device.exists():
                os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
                device.chmod(0o666)
        accounting = (
            self.filled("accounting.conf") if self.accounting else "AccountingStorageType=accounting_storage/none"
        )
        for name in ("gres.conf", "cgroup.conf", "slurmdbd.conf", "slurm.conf"):
            file = self.root / "etc" / name
            file.write_text(self.filled(name, accounting=accounting))
            file.chmod(0o600 if name == "slurmdbd.conf" else 0o644)

    def filled(self, name: str, **more: str) -> str:
        return Template((CONF / name).read_text()).substitute(self.values | more)

    def start_munge(self) -> None:
        home = self.root / "munge"
        home.mkdir(mode=0o755, exist_ok=True)
        shutil.chown(home, "munge", "munge")
        key = home / "munge.key"
        if not key.exists():
            key.write_bytes(os.urandom(128))
            key.chmod(0o600)
            shutil.chown(key, "munge", "munge")
        if not alive(home / "munged.pid"):
            files = {
                "key-file": "munge.key",
                "socket": "munge.sock",
                "pid-file": "munged.pid",
                "log-file": "munged.log",
                "seed-file": "munged.seed",
            }
            self.run("runuser", "-u", "munge", "--", "munged", *(f"--{k}={home / v}" for k, v in files.items()))
        wait_for("munge", lambda: self.works("munge", "-n", "-S", str(home / "munge.sock")))

    def start_database(self) -> None:
        home = self.root / "mysql"
        if not (home / "mysql").is_dir():
            home.mkdir(mode=0o700, exist_ok=True)
            shutil.chown(home, "mysql", "mysql")
            self.run("mariadb-install-db", "--user=mysql", f"--datadir={home}", "--skip-test-db",
                     "--auth-root-authentication-method=normal")  # fmt: skip
        if not alive(home / "mysqld.pid"):
            subprocess.Popen(
                ["mariadbd", "--no-defaults", "--user=mysql", f"--datadir={home}", f"--socket={home}/s.sock",
                 f"--pid-file={home}/mysqld.pid", "--bind-address=127.0.0.1", f"--port={self.values['mysql_port']}",
                 "--innodb-buffer-pool-size=128M", "--innodb-lock-wait-timeout=900",
                 "--innodb-flush-log-at-trx-commit=0", f"--log-error={home}/mysqld.log"],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        client = ("--no-defaults", "-uroot", "-S", f"{home}/s.sock")
        wait_for("mariadb", lambda: self.works("mariadb-admin", *client, "ping"))
        self.run("mariadb", *client, "-e", (
            "create database if not exists slurm_acct_db;"
            "create user if not exists slurm@'127.0.0.1' identified by 'slurm';"
            "grant all on slurm_acct_db.* to slurm@'127.0.0.1';"
            "create user if not exists slurm@localhost identified by 'slurm';"
            "grant all on slurm_acct_db.* to slurm@localhost;"))  # fmt: skip

    def start_accounting(self, user: str) -> None:
        if not alive(self.root / "run/slurmdbd.pid"):
            self.run("slurmdbd")
        wait_for("slurmdbd", lambda: self.works("sacctmgr", "-n", "list", "cluster"))
        name = str(self.values["cluster"])
        for kind, item, more in (("cluster", name, ()), ("account", ACCOUNT, (f"Cluster={name}",)),
                                 ("user", user, (f"Account={ACCOUNT}",))):  # fmt: skip
            known = self.run("sacctmgr", "-n", "-P", "list", kind, f"format={kind}").split()
            if item not in known:
                self.run("sacctmgr", "-i", "-Q", "add", kind, item, *more)

    def start_slurm(self) -> None:
        if not alive(self.root / "run/slurmctld.pid"):
            self.run("slurmctld")
        wait_for("slurmctld", lambda: "is UP" in self.run("scontrol", "ping"))
        for node in NODES:
            if not alive(self.root / f"run/slurmd.{node}.pid"):
                self.run("slurmd", "-N", node)
        for node in NODES:
            self.works("scontrol", "update", f"nodename={node}", "state=resume")
        wait_for("nodes", self.nodes_up)

    def nodes_up(self) -> bool:
        up = self.run("sinfo", "-h", "-N", "-t", "idle,mix,alloc", "-o", "%N").split()
        return set(NODES) <= set(up)

    def run(self, *argv: str) -> str:
        done = subprocess.run(
            argv, env=self.env, cwd=self.root, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode != 0 and argv[0] != "scontrol":
            raise SystemExit(f"cluster.py: {' '.join(argv)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def works(self, *argv: str) -> bool:
        return (
            subprocess.run(argv, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode
            == 0
        )


def ensure_user(name: str) -> None:
    try:
        pwd.getpwnam(name)
    except KeyError:
        subprocess.run(["useradd", "-m", "-s", "/bin/bash", name], check=True)


def pid_of(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


def alive(file: Path) -> bool:
    """Whether the process of a pid file lives; a zombie does not (orphans may be reaped late)."""
    pid = pid_of(file)
    try:
        return pid is not None and Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def stop(file: Path) -> None:
    pid = pid_of(file)
    if pid is None or not alive(file):
        return
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + 15
    while alive(file) and time.monotonic() < deadline:
        time.sleep(0.05)
    if alive(file):
        os.kill(pid, signal.SIGKILL)


def wait_for(what: str, ready: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            raise SystemExit(f"cluster.py: {what} did not come up within {seconds:g} s")
        time.sleep(0.05)


if __name__ == "__main__":
    main()
