"""A host that asks for a one-time code after the key: asked once, at the terminal, and written nowhere.

The server is paramiko's, since PAM modules that check codes cannot be taken for granted; it runs real commands.
"""

import os
import pty
import select
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress

import paramiko
import pytest

from .conftest import free_port

CODE = "492039"
SITES = """
nsw: 1
sites:
  coded:
    scheduler: local
    transport: {{kind: ssh, host: far, config: {config}}}
    scratch: {scratch}
"""


class CodedServer(paramiko.ServerInterface):
    """Takes one key, then the code."""

    def __init__(self, key, asked):
        self.key, self.asked = key, asked
        self.partial = False

    def get_allowed_auths(self, _user):
        return "keyboard-interactive" if self.partial else "publickey"

    def check_auth_publickey(self, _user, key):
        if key.asbytes() != self.key:
            return paramiko.AUTH_FAILED
        self.partial = True
        return paramiko.AUTH_PARTIALLY_SUCCESSFUL

    def check_auth_interactive(self, _user, _kinds):
        self.asked.append("asked")
        return paramiko.InteractiveQuery("", "Two-factor login\x1b[31m", ("Verification code: ", False))

    def check_auth_interactive_response(self, answers):
        return paramiko.AUTH_SUCCESSFUL if self.partial and answers == [CODE] else paramiko.AUTH_FAILED

    def check_channel_request(self, _kind, _number):
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel, command):
        threading.Thread(target=execute, args=(channel, command.decode()), daemon=True).start()
        return True


def execute(channel, command):
    """Run a command with its streams on the channel."""
    process = subprocess.Popen(
        ["/bin/bash", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    )

    def feed():
        while data := channel.recv(1 << 16):
            try:
                process.stdin.write(data)
            except OSError:
                break
        process.stdin.close()

    def drain(stream, send):
        while data := stream.read(1 << 16):
            try:
                send(data)
            except OSError:
                break

    threading.Thread(target=feed, daemon=True).start()
    errors = threading.Thread(target=drain, args=(process.stderr, channel.sendall_stderr), daemon=True)
    errors.start()
    drain(process.stdout, channel.sendall)
    errors.join()
    status = process.wait()
    with suppress(EOFError, OSError):  # nsw may have hung up
        channel.send_exit_status(status)
        channel.close()
    for stream in (process.stdout, process.stderr):
        stream.close()


class Coded:
    """The server, and the files of a laptop that knows it."""

    def __init__(self, folder):
        self.folder, self.asked, self.connections = folder, [], []
        host, own = paramiko.ECDSAKey.generate(), paramiko.RSAKey.generate(2048)
        own.write_private_key_file(str(folder / "id"))
        self.listener = socket.create_server(("127.0.0.1", port := free_port()))
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {host.get_name()} {host.get_base64()}\n")
        (folder / "config").write_text(
            f"Host far\n  HostName 127.0.0.1\n  Port {port}\n  User me\n  IdentityFile {folder}/id\n"
            f"  IdentitiesOnly yes\n  UserKnownHostsFile {folder}/known_hosts\n"
        )
        (folder / "sites.yaml").write_text(SITES.format(config=folder / "config", scratch=folder / "scratch"))
        threading.Thread(target=self.serve, args=(host, own.asbytes()), daemon=True).start()

    def serve(self, host, key):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            transport = paramiko.Transport(connection)
            transport.add_server_key(host)
            transport.start_server(server=CodedServer(key, self.asked))
            self.connections.append(transport)

    def close(self):
        self.listener.close()
        for transport in self.connections:
            transport.close()


@pytest.fixture
def coded(tmp_path):
    server = Coded(tmp_path)
    yield server
    server.close()


def at_a_terminal(words, folder, answer, question=b"Verification code: "):
    """Run nsw at a terminal where somebody answers what it asks; exit status and all that the terminal showed."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execv(sys.executable, [sys.executable, "-m", "nsw", *words])
    shown, answered = b"", False
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            data = os.read(terminal, 1 << 16)
        except OSError:  # the child has closed it
            break
        if not data:
            break
        shown += data
        if not answered and question in shown:
            os.write(terminal, answer.encode() + b"\n")
            answered = True
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), shown.decode(errors="replace")


RECIPE = """
nsw: 1
name: coded
app: {command: 'echo run {{ n }}'}
matrix: {n: [1, 2]}
passes: [baseline: {}]
resources: {gpus: 0, time: 1m}
"""


def test_a_code_is_asked_once_for_a_whole_campaign_and_written_nowhere(coded):
    (coded.folder / "recipe.yaml").write_text(RECIPE)
    words = ["run", "recipe.yaml", "--site", "coded", "--sites", "sites.yaml", "--yes", "--root", "campaigns"]
    code, shown = at_a_terminal(words, coded.folder, CODE)
    assert code == 0, shown
    assert coded.asked == ["asked"]
    assert "far asks: Verification code: " in shown
    assert "Two-factor login" in shown
    assert "\x1b[31m" not in shown.split("Verification")[0]
    assert CODE not in shown
    (campaign,) = (coded.folder / "campaigns").iterdir()
    assert (campaign / "reports/n-2.baseline.r1/stdout").read_text() == "run 2\n"
    for file in [*campaign.rglob("*"), *(coded.folder / "scratch").rglob("*")]:
        assert not file.is_file() or CODE.encode() not in file.read_bytes()


def test_a_wrong_code_is_one_clear_error(coded):
    words = ["sites", "check", "coded", "--sites", "sites.yaml"]
    code, shown = at_a_terminal(words, coded.folder, "000000")
    assert code == 3
    assert "far rejected the answer" in " ".join(shown.split())
    assert "run the command again" in " ".join(shown.split())
    assert "Traceback" not in shown


def test_without_a_terminal_nothing_hangs_and_the_way_out_is_named(coded):
    done = subprocess.run(
        [sys.executable, "-m", "nsw", "sites", "check", "coded", "--sites", "sites.yaml"],
        cwd=coded.folder, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    assert done.returncode == 3
    said = " ".join((done.stdout + done.stderr).split())
    assert "Verification code: and there is no terminal to answer on" in said
    assert done.stdout.startswith("bad      login")
    assert "a ControlMaster" in said
    assert "Traceback" not in said
    assert "(paramiko" not in said
