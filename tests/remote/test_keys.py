"""How a person is let in: certificates, keys with a passphrase, and an agent, over both transports."""

import os
import signal
import subprocess

import pytest

from nsw.errors import UnreachableError
from nsw.transport.model import connect

from .conftest import SSHD, Server
from .test_one_time_codes import RECIPE, at_a_terminal

PASSPHRASE = "correct horse"
SITES = """
nsw: 1
sites:
  box:
    scheduler: local
    transport: {{kind: {kind}, host: far, config: '{config}'}}
    scratch: '{scratch}'
"""


def keygen(*words):
    subprocess.run(["ssh-keygen", "-q", *map(str, words)], check=True, capture_output=True)


@pytest.fixture(params=["openssh", "ssh"])
def kind(request, monkeypatch):
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return request.param


@pytest.fixture
def certified(tmp_path):
    """A server that takes certificates of an authority, and no key by itself."""
    if SSHD is None or os.geteuid() != 0:
        pytest.skip("no sshd, or not root")
    keygen("-t", "ed25519", "-N", "", "-f", tmp_path / "authority")
    one = Server(tmp_path / "sshd", more=f"TrustedUserCAKeys {tmp_path}/authority.pub")
    one.start()
    (one.folder / "authorized_keys").write_text("")
    yield one
    one.stop(sessions=True)


def sign(server, user):
    """A certificate of the client's key, beside it."""
    keygen("-s", server.folder.parent / "authority", "-I", "me", "-n", user, "-V", "+1h", server.folder / "id.pub")


def way(server, kind):
    return connect({"transport": {"kind": kind, "host": "far", "config": str(server.config)}}, None)


def assert_let_in(server, kind):
    transport = way(server, kind)
    done = transport.run(["echo", "in"], timeout=60)
    assert done.stdout == "in\n", done.stderr
    transport.close()


def test_a_certificate_beside_its_key_lets_in(certified, kind):
    sign(certified, certified.user)
    assert_let_in(certified, kind)
    assert "ED25519-CERT" in (certified.folder / "log").read_text()


def test_a_certificate_that_the_configuration_names_lets_in(certified, kind):
    sign(certified, certified.user)
    (certified.folder / "id-cert.pub").rename(certified.folder / "elsewhere.pub")
    certified.config.write_text(certified.config.read_text() + f"  CertificateFile {certified.folder}/elsewhere.pub\n")
    assert_let_in(certified, kind)


def test_a_certificate_of_somebody_else_is_refused_with_what_to_do(certified, kind):
    sign(certified, "somebody-else")
    with pytest.raises(UnreachableError) as refused:
        way(certified, kind).read_many(["/x"])
    assert "ssh-add -l" in refused.value.hint or "open a connection first" in refused.value.hint


@pytest.fixture
def agent(tmp_path):
    """An agent of one's own: its socket."""
    path = tmp_path / "agent.sock"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", path], stdout=subprocess.PIPE)
    process.stdout.readline()  # printed when it listens
    yield path
    process.send_signal(signal.SIGTERM)
    process.wait()
    process.stdout.close()


def add(agent, key, passphrase=""):
    """Let an agent keep a key, with its certificate where there is one."""
    program = agent.with_name("askpass")
    program.write_text(f"#!/bin/sh\necho '{passphrase}'\n")
    program.chmod(0o700)
    env = os.environ | {"SSH_AUTH_SOCK": str(agent), "SSH_ASKPASS": str(program), "SSH_ASKPASS_REQUIRE": "force"}
    subprocess.run(["ssh-add", "-q", key], check=True, env=env, stdin=subprocess.DEVNULL)


def test_a_certificate_of_the_agent_lets_in(certified, kind, agent, monkeypatch):
    sign(certified, certified.user)
    add(agent, certified.folder / "id")
    (certified.folder / "id").unlink()
    monkeypatch.setenv("SSH_AUTH_SOCK", str(agent))
    assert_let_in(certified, kind)


@pytest.fixture
def encrypted(server):
    """A server, and a key with a passphrase that it takes."""
    keygen("-p", "-P", "", "-N", PASSPHRASE, "-f", server.folder / "id")
    return server


def test_an_encrypted_key_of_the_agent_lets_in_without_a_question(encrypted, kind, agent):
    add(agent, encrypted.folder / "id", PASSPHRASE)
    encrypted.config.write_text(encrypted.config.read_text() + f"  IdentityAgent {agent}\n")
    assert_let_in(encrypted, kind)


def test_without_a_terminal_an_encrypted_key_hangs_nothing_and_the_way_out_is_named(encrypted, kind):
    with pytest.raises(UnreachableError) as refused:
        way(encrypted, kind).read_many(["/x"])
    hint = {"ssh": f"`ssh-add {encrypted.folder / 'id'}` once", "openssh": "open a connection first"}[kind]
    assert hint in refused.value.hint


def campaign(server, folder, answer):
    """A campaign at a terminal, where somebody answers for the passphrase: exit status, and what was shown."""
    (folder / "recipe.yaml").write_text(RECIPE)
    text = SITES.format(kind="ssh", config=server.config, scratch=folder / "scratch")
    (folder / "sites.yaml").write_text(text)
    words = ["run", "recipe.yaml", "--site", "box", "--sites", "sites.yaml", "--yes", "--root", "campaigns"]
    return at_a_terminal(words, folder, answer, b"passphrase of ")


def test_a_passphrase_is_asked_once_for_a_whole_campaign_and_shown_nowhere(encrypted, tmp_path):
    code, shown = campaign(encrypted, tmp_path, PASSPHRASE)
    assert code == 0, shown
    assert shown.count("passphrase of") == 1
    assert PASSPHRASE not in shown
    for file in (tmp_path / "campaigns").rglob("*"):
        assert not file.is_file() or PASSPHRASE.encode() not in file.read_bytes()


def test_a_passphrase_is_asked_once_though_a_jump_host_takes_the_same_key(encrypted, tmp_path):
    text = encrypted.config.read_text()
    encrypted.config.write_text(f"{text}  ProxyJump jump\n{text.replace('Host far', 'Host jump')}")
    code, shown = campaign(encrypted, tmp_path, PASSPHRASE)
    assert code == 0, shown
    assert shown.count("passphrase of") == 1


def test_a_wrong_passphrase_is_one_clear_error(encrypted, tmp_path):
    code, shown = campaign(encrypted, tmp_path, "wrong")
    assert code == 3, shown
    assert f"thepassphrasedoesnotfit{encrypted.folder / 'id'}" in "".join(shown.split())
    assert "Traceback" not in shown


def test_a_key_without_a_passphrase_is_tried_before_one_is_asked_for(encrypted):
    keygen("-t", "ed25519", "-N", "", "-f", encrypted.folder / "other")
    (encrypted.folder / "authorized_keys").write_text((encrypted.folder / "other.pub").read_text())
    encrypted.config.write_text(encrypted.config.read_text() + f"  IdentityFile {encrypted.folder}/other\n")
    assert_let_in(encrypted, "ssh")  # nobody could be asked here
