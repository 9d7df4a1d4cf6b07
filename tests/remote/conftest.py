"""A real sshd of one's own on the loopback, and a client configuration that knows it."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

SSHD = shutil.which("sshd") or next((p for p in ("/usr/sbin/sshd",) if Path(p).exists()), None)

SERVER = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
PidFile {folder}/sshd.pid
AuthorizedKeysFile {folder}/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
LogLevel VERBOSE
SetEnv FROM_SSHD=yes {environment}
AcceptEnv LANG
{more}
"""
CLIENT = """
Host far
  HostName 127.0.0.1
  Port {port}
  User {user}
  IdentityFile {folder}/id
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  StrictHostKeyChecking yes
"""


KEPT: list[socket.socket] = []  # they hold their ports, and do not listen


def free_port() -> int:
    """A port that nobody listens at, and that no other process gets before a server of this test listens there."""
    KEPT.append(free := socket.socket())
    free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: so one may listen there all the same
    free.bind(("127.0.0.1", 0))
    return free.getsockname()[1]


@dataclass
class Server:
    """An sshd for one user; `more` are lines of its configuration, `environment` is that of its sessions.

    `through` is a port that clients connect to instead of its own.
    """

    folder: Path
    port: int = 0
    more: str = ""
    user: str = field(default_factory=getpass.getuser)
    through: int = 0
    environment: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen | None = None

    @property
    def config(self) -> Path:
        return self.folder / "config"

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for key in ("host_key", "id"):
            if not (self.folder / key).exists():
                subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / key], check=True)
        (self.folder / "authorized_keys").write_text((self.folder / "id.pub").read_text())
        self.port = self.port or free_port()
        called = self.through or self.port
        host = (self.folder / "host_key.pub").read_text().split()
        (self.folder / "known_hosts").write_text(f"[127.0.0.1]:{called} {host[0]} {host[1]}\n")
        given = " ".join(f"{name}={value}" for name, value in self.environment.items())
        text = SERVER.format(port=self.port, folder=self.folder, more=self.more, environment=given)
        (self.folder / "sshd_config").write_text(text)
        self.config.write_text(CLIENT.format(port=called, folder=self.folder, user=self.user))
        Path("/run/sshd").mkdir(exist_ok=True)
        log = (self.folder / "log").open("ab")
        self.process = subprocess.Popen([SSHD, "-D", "-e", "-f", self.folder / "sshd_config"], stderr=log)
        log.close()
        deadline = time.monotonic() + 120
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            assert time.monotonic() < deadline, (self.folder / "log").read_text()
            time.sleep(0.02)

    def stop(self, *, sessions: bool = False) -> None:
        """End it; with `sessions` also what it serves."""
        if self.process is None:
            return
        if sessions:
            self.cut()
        self.process.kill()
        self.process.wait()
        self.process = None

    def cut(self) -> None:
        """End every connection; what they started goes on."""
        if self.process is not None:
            subprocess.run(["pkill", "-KILL", "-P", str(self.process.pid)], check=False)

    def logins(self) -> int:
        return (self.folder / "log").read_text().count("Accepted publickey")


@pytest.fixture
def server(tmp_path):
    if SSHD is None or shutil.which("ssh") is None or os.geteuid() != 0:
        pytest.skip("no sshd, no ssh, or not root")
    one = Server(tmp_path / "sshd")
    one.start()
    yield one
    one.stop(sessions=True)


@pytest.fixture(params=["openssh", "ssh"])
def site(server, request, tmp_path):
    """A site behind the server, as data."""
    return {
        "transport": {"kind": request.param, "host": "far", "config": str(server.config)},
        "limits": {"download": "1G"},
    }


@pytest.fixture
def far(site, tmp_path):
    """The transport to it."""
    from nsw.transport.model import connect

    scratch = tmp_path / "scratch of a campaign"
    transport = connect(site, str(scratch))
    yield transport
    transport.close()
