"""Host keys compared with known_hosts, then a login: agent, keys, certificates, and what the host asks a person for."""

from __future__ import annotations

import base64
import getpass
import hashlib
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import paramiko
from paramiko.agent import AgentSSH

from nsw.errors import HostKeyError, LoginError, UnreachableError
from nsw.safe_files import open_text, read_text

__all__ = [
    "HostConfig",
    "KnownKeys",
    "configuration",
    "known_keys_of_host",
    "log_in",
    "options",
    "resolve_host",
    "verify_host_key",
]

_TRIES = 5  # keys offered; servers end the connection after six
_INTERACTIVE = "keyboard-interactive"
_OPEN_FIRST = "open a connection by hand and let nsw reuse it: transport: {kind: openssh}, with a ControlMaster"
_KEYGEN_S = 20


@dataclass(frozen=True, slots=True)
class KnownKeys:
    """The keys that a host may have, those that it may not have, and whether an authority may sign others.

    `named`: there is a line with a key for it, perhaps of a kind that paramiko does not know.
    """

    good: tuple[paramiko.PKey, ...] = ()
    revoked: tuple[paramiko.PKey, ...] = ()
    has_authority: bool = False
    has_line: bool = False


def known_keys_of_host(name: str, files: Sequence[str]) -> KnownKeys:
    """What these files have of a host.

    Args:
        name: The host as known_hosts has it: `[host]:port` where the port is not 22.
        files: known_hosts files that exist.

    Raises:
        UnreachableError: ssh-keygen, which reads them, does not end.
    """
    return _parse_known_keys([line for file in files for line in _known_hosts_lines(name, file)])


def _known_hosts_lines(name: str, file: str) -> Iterator[str]:
    """The lines of a file for a host; without ssh-keygen, lines with a pattern are missed."""
    if shutil.which("ssh-keygen") is None:
        with open_text(file, errors="replace") as stream:
            yield from (line for line in stream if _names_host(line, name))
        return
    try:
        done = subprocess.run(
            ["ssh-keygen", "-F", name, "-f", file], capture_output=True, text=True, errors="replace",
            timeout=_KEYGEN_S, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise UnreachableError(
            f"`ssh-keygen -F {name} -f {file}` gave no answer in {_KEYGEN_S} s, so the host key cannot be compared",
            hint=f"check that {file} can be read: its file system may hang",
        ) from None
    yield from done.stdout.splitlines()


def _names_host(line: str, name: str) -> bool:
    """Whether a line names the host, in full or hashed."""
    words = line.split()
    names = words[1 if words and words[0].startswith("@") else 0 :][:1]
    return any(
        host_name == name or (host_name.startswith("|1|") and paramiko.HostKeys.hash_host(name, host_name) == host_name)
        for host_name in ",".join(names).split(",")
    )


def _parse_key(line: str) -> paramiko.PKey | None:
    """Parse the key of a line; None for a comment, and for a kind that paramiko does not support."""
    if not line.strip() or line.startswith("#"):
        return None
    try:
        entry = paramiko.hostkeys.HostKeyEntry.from_line(line)
    except paramiko.hostkeys.InvalidHostKey:
        return None
    return None if entry is None else entry.key


def _parse_known_keys(lines: Iterable[str]) -> KnownKeys:
    keys_by_marker: dict[str, list[paramiko.PKey]] = {"": [], "@revoked": [], "@cert-authority": []}
    has_line = False
    for line in lines:
        has_line = has_line or bool(line.strip() and line[0] not in "#@")
        marker, _, rest = line.partition(" ") if line.startswith("@") else ("", "", line)
        if marker in keys_by_marker and (key := _parse_key(rest)) is not None:
            keys_by_marker[marker].append(key)
    return KnownKeys(
        tuple(keys_by_marker[""]), tuple(keys_by_marker["@revoked"]), bool(keys_by_marker["@cert-authority"]), has_line
    )


def verify_host_key(transport: paramiko.Transport, host: HostConfig, known_keys: KnownKeys) -> None:
    """Compare the host's key with those of known_hosts; called between key exchange and login.

    As ssh does, where known_hosts does not name the host with its port (not 22), a key counts that it has under the
    host's name alone.

    Args:
        transport: The connection.
        host: The host at its other end.
        known_keys: What known_hosts has of it, under `host.known_as`.

    Raises:
        HostKeyError: The key is unknown, revoked, or another than before.
    """
    key = transport.get_remote_server_key()
    digest = base64.b64encode(hashlib.sha256(key.asbytes()).digest()).decode().rstrip("=")
    subject, fingerprint = f"the host key of {host.alias} ({host.known_as})", f"{key.get_name()} SHA256:{digest}"
    if _contains_key(key, known_keys.revoked):
        raise HostKeyError(
            f"{subject} is revoked: {fingerprint}", hint="ask the site's support which keys its hosts have"
        )
    if _contains_key(key, known_keys.good):
        return
    if host.known_without_port is not None and not known_keys.has_line:
        plain = known_keys_of_host(host.known_without_port, host.known_hosts)
        if _contains_key(key, plain.good) and not _contains_key(key, plain.revoked):
            return
        known_keys = replace(known_keys, has_authority=known_keys.has_authority or plain.has_authority)
    if known_keys.has_authority:
        raise HostKeyError(
            f"{subject} is not known: {fingerprint}. known_hosts has an authority that signs keys of hosts,"
            " which nsw's own"
            " connection cannot check",
            hint="your ssh can: transport: {kind: openssh}",
        )
    if not known_keys.good:
        raise HostKeyError(
            f"{subject} is not known: {fingerprint}",
            hint=f"compare this fingerprint with what the site publishes, then `ssh {host.alias}` once by hand",
        )
    raise HostKeyError(
        f"{subject} has changed: {fingerprint}. Somebody may be intercepting the connection, or the site has new keys",
        hint=f"ask the site's support; for new keys: `ssh-keygen -R '{host.known_as}'`, then"
        f" `ssh {host.alias}` by hand",
    )


def _contains_key(key: paramiko.PKey, keys: Sequence[paramiko.PKey]) -> bool:
    return any(candidate.asbytes() == key.asbytes() for candidate in keys)


def log_in(transport: paramiko.Transport, host: HostConfig, unlocked: dict[str, paramiko.PKey]) -> None:
    """Log in with keys, and with what a person answers where the host asks.

    Args:
        transport: The connection.
        host: The host at its other end.
        unlocked: Keys whose passphrase was given before, by their files; a new one is added.

    Raises:
        LoginError: The host takes none of it.
    """
    try:
        transport.auth_none(host.user)
    except paramiko.BadAuthenticationType as fault:
        allowed = list(fault.allowed_types)
    except paramiko.AuthenticationException:
        allowed = ["publickey", _INTERACTIVE]
    else:
        return
    tried: list[str] = []
    further = allowed
    if "publickey" in allowed:
        for name, key in _keys_to_offer(host, unlocked):
            if len(tried) == _TRIES:
                break
            tried.append(name)
            try:
                further = transport.auth_publickey(host.user, key)
            except paramiko.AuthenticationException:
                continue
            if not further:
                return
            break
    if _INTERACTIVE in further:
        _log_in_interactively(transport, host)
        if transport.is_authenticated():
            return
    offered = f"; offered: {', '.join(tried)}" if tried else "; there was no key to offer"
    raise LoginError(
        f"{host.user}@{host.alias} was refused (the host accepts {', '.join(allowed)}{offered})",
        hint="`ssh-add -l` lists the agent's keys; set user and identity in the site's transport",
    )


def _keys_to_offer(host: HostConfig, unlocked: dict[str, paramiko.PKey]) -> Iterator[tuple[str, paramiko.PKey]]:
    """The agent's keys, then those of files; files with a passphrase come last, to ask for as few as possible."""
    identity_blobs = [blob for file in host.identities if (blob := _read_public_key(file))]
    offered = set()
    for agent_key in _agent_keys(host.agent):
        if not host.identities_only or any(_key_body(blob) in agent_key.asbytes() for blob in identity_blobs):
            offered.add(agent_key.asbytes())
            if getattr(agent_key, "public_blob", None) is None:  # paramiko before 5.1 reads it of a certificate, too
                agent_key.public_blob = None
            yield f"{agent_key.get_name()} of the agent", agent_key
    encrypted: list[str] = []
    for file in host.identities:
        try:
            yield file, _add_certificate(paramiko.PKey.from_path(file), host.certificates)
        except (paramiko.PasswordRequiredException, TypeError):
            encrypted += [] if _read_public_key(file) in offered else [file]
        except (paramiko.SSHException, ValueError, OSError):  # of a kind that paramiko does not know
            continue
    for file in encrypted:
        if file not in unlocked:
            unlocked[file] = _decrypt_key(file)
        yield file, _add_certificate(unlocked[file], host.certificates)


def _agent_keys(path: str | None) -> Sequence[paramiko.AgentKey]:
    """The keys of the agent at this socket; none where there is no agent."""
    if path is None:
        return paramiko.Agent().get_keys()
    agent, line = AgentSSH(), socket.socket(socket.AF_UNIX)
    try:
        line.connect(path)
        # paramiko's own knows SSH_AUTH_SOCK only, and its stubs no _connect
        agent._connect(line)  # type: ignore[attr-defined]  # noqa: SLF001
    except (OSError, paramiko.SSHException):
        line.close()
        return ()
    return agent.get_keys()


def _key_body(blob: bytes) -> bytes:
    """A public key without its kind: its certificates hold the same bytes."""
    return blob[4 + int.from_bytes(blob[:4]) :]


def _add_certificate(key: paramiko.PKey, certificates: Sequence[str]) -> paramiko.PKey:
    """Add the certificate that ssh_config names for a key; paramiko loads one beside the key's file itself."""
    if key.public_blob is None:
        for file in certificates:
            try:
                if _key_body(key.asbytes()) in paramiko.pkey.PublicBlob.from_file(file).key_blob:
                    key.load_certificate(file)
            except (OSError, ValueError):
                continue
    return key


def _read_public_key(file: str) -> bytes:
    """The public half of a key; the file may itself be the public half."""
    try:
        return base64.b64decode(read_text(f"{file.removesuffix('.pub')}.pub").split()[1])
    except (OSError, ValueError, IndexError):
        return b""


def _decrypt_key(file: str) -> paramiko.PKey:
    """Ask for the passphrase of a key's file, and load the key.

    Raises:
        LoginError: Nobody can be asked for it, or the answer is wrong.
    """
    way_out = f"`ssh-add {file}` once: the agent keeps it"
    secret = _prompt_user(f"passphrase of {file}: ", echo=False, hint=way_out)
    try:
        return paramiko.PKey.from_path(file, secret.encode())  # type: ignore[arg-type]  # the stubs say str
    except (paramiko.SSHException, ValueError, TypeError):
        # what is raised depends on the file's format, and speaks of PEM where the passphrase is wrong
        raise LoginError(f"the passphrase does not fit {file}", hint=way_out) from None


def _log_in_interactively(transport: paramiko.Transport, host: HostConfig) -> None:
    unasked: list[LoginError] = []

    # in paramiko's own thread, which prints what is raised there
    def answer_prompts(title: str, instructions: str, prompts: Sequence[tuple[str, bool]]) -> list[str]:
        for text in (title, instructions):
            if text.strip():
                print(_drop_control_characters(text), file=sys.stderr)
        try:
            return [
                _prompt_user(f"{host.alias} asks: {_drop_control_characters(prompt)}", echo=echo)
                for prompt, echo in prompts
            ]
        except LoginError as fault:
            unasked.append(fault)
            return ["" for _ in prompts]

    try:
        transport.auth_interactive(host.user, answer_prompts)
    except paramiko.SSHException:
        if unasked:
            raise unasked[0] from None
        raise LoginError(
            f"{host.alias} rejected the answer",
            hint="run the command again; most hosts accept a one-time code only once",
        ) from None


def _prompt_user(prompt: str, *, echo: bool, hint: str = _OPEN_FIRST) -> str:
    """Ask the user and return the answer; never logged.

    Args:
        prompt: The question.
        echo: Whether the answer may be seen.
        hint: What to do where nobody can be asked.

    Raises:
        LoginError: There is no terminal to ask at.
    """
    if not sys.stdin.isatty():
        raise LoginError(f"{prompt.strip()} and there is no terminal to answer on", hint=hint)
    if not echo:
        return getpass.getpass(prompt)
    print(prompt, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().rstrip("\n")


def _drop_control_characters(text: str) -> str:
    return "".join(sign for sign in text if sign.isprintable() or sign == " ")


_SECONDS = 20


@dataclass(frozen=True, slots=True)
class HostConfig:
    """One host. Files are absolute; those that do not exist are left out.

    `agent` is the agent's socket, `none` for no agent, None for the one that SSH_AUTH_SOCK names.
    """

    alias: str
    hostname: str
    port: int
    user: str
    identities: tuple[str, ...] = ()
    identities_only: bool = False
    certificates: tuple[str, ...] = ()
    agent: str | None = None
    known_hosts: tuple[str, ...] = ()
    host_key_alias: str | None = None
    jumps: tuple[str, ...] = ()
    proxy_command: str | None = None

    @property
    def known_as(self) -> str:
        """The name under which known_hosts has it."""
        name = self.host_key_alias or self.hostname.lower()
        return name if self.port == 22 or self.host_key_alias else f"[{name}]:{self.port}"

    @property
    def known_without_port(self) -> str | None:
        """The name under which its key counts too where `known_as` has none; None where there is no other."""
        return None if self.port == 22 or self.host_key_alias else self.hostname.lower()


def resolve_host(host: str, settings: Mapping[str, Any]) -> HostConfig:
    """The configuration of a host.

    Args:
        host: Its name or alias; an address ssh://USER@HOST:PORT for a jump host.
        settings: What the site says of its transport: config, user, port, identity.

    Raises:
        UnreachableError: ssh does not understand the configuration.
    """
    words = configuration([*options(settings), "--", host]) or _default_config(host, settings)
    alias, hostname, port, login = (words.get(key, [host])[0] for key in ("host", "hostname", "port", "user"))
    proxy, jumps = (words.get(key, ["none"])[0] for key in ("proxycommand", "proxyjump"))
    tokens = {"h": hostname, "p": port, "r": login, "n": alias, "u": getpass.getuser(), "%": "%"}
    own_identity = [str(settings["identity"])] if settings.get("identity") else []
    return HostConfig(
        alias=alias,
        hostname=hostname,
        port=int(port),
        user=login,
        identities=_identity_files([*own_identity, *words.get("identityfile", [])]),
        certificates=_existing_files(words.get("certificatefile", [])),
        agent=_agent_socket(words.get("identityagent", ["SSH_AUTH_SOCK"])[0], tokens),
        identities_only=words.get("identitiesonly", ["no"])[0] == "yes",
        known_hosts=_existing_files(" ".join(words["userknownhostsfile"] + words["globalknownhostsfile"]).split()),
        host_key_alias=words.get("hostkeyalias", [None])[0],
        jumps=() if jumps == "none" else tuple(j if "://" in j else f"ssh://{j}" for j in jumps.split(",")),
        proxy_command=None if proxy == "none" else _expand_tokens(proxy, tokens),
    )


def options(settings: Mapping[str, Any]) -> list[str]:
    """The words that tell ssh what the site says of its transport: config, user, port."""
    config = settings.get("config")
    option_values = {
        "-F": config and os.path.expanduser(config),  # noqa: PTH111
        "-l": settings.get("user"),
        "-p": settings.get("port"),
    }
    return [word for option, value in option_values.items() if value for word in (option, str(value))]


def configuration(words: Sequence[str]) -> dict[str, list[str]]:
    """The values of each key that ssh, called with these words, would go by; none without an ssh on this machine.

    Raises:
        UnreachableError: ssh does not understand the configuration.
    """
    if shutil.which("ssh") is None:
        return {}
    try:
        done = subprocess.run(
            ["ssh", "-G", *words], capture_output=True, text=True, timeout=_SECONDS, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise UnreachableError(f"`ssh -G {words[-1]}` gave no answer: does ~/.ssh/config run a command?") from None
    if done.returncode != 0:
        raise UnreachableError(f"`ssh -G {words[-1]}`: {done.stderr.strip()}", hint="correct your ~/.ssh/config")
    values: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        key, _, value = line.partition(" ")
        values.setdefault(key.lower(), []).append(value)
    return values


def _default_config(host: str, settings: Mapping[str, Any]) -> dict[str, list[str]]:
    return {
        "hostname": [host],
        "port": [str(settings.get("port") or 22)],
        "user": [str(settings.get("user") or getpass.getuser())],
        "identityfile": ["~/.ssh/id_ed25519", "~/.ssh/id_rsa"],
        "userknownhostsfile": ["~/.ssh/known_hosts"],
        "globalknownhostsfile": ["/etc/ssh/ssh_known_hosts"],
    }


def _expand_tokens(text: str, tokens: Mapping[str, str]) -> str:
    """Replace ssh_config's tokens, which `ssh -G` leaves as they are; other tokens stay."""
    return re.sub(r"%(.)", lambda match: tokens.get(match[1], match[0]), text)


def _agent_socket(text: str, tokens: Mapping[str, str]) -> str | None:
    """The agent's socket from ssh_config's IdentityAgent: a path, or a variable with one."""
    if text == "SSH_AUTH_SOCK":
        return None
    if text.startswith("$"):
        return os.environ.get(text[1:].strip("{}"), "none")
    return text if text == "none" else os.path.expanduser(_expand_tokens(text, tokens))  # noqa: PTH111


def _identity_files(files: list[str]) -> tuple[str, ...]:
    """Private keys that exist, and those whose public half does: it names a key of the agent."""
    paths = (os.path.expanduser(file) for file in files)  # noqa: PTH111
    return tuple(dict.fromkeys(path for path in paths if _existing_files([path, f"{path}.pub"])))


def _existing_files(files: list[str]) -> tuple[str, ...]:
    paths = (os.path.expanduser(file) for file in files)  # noqa: PTH111
    return tuple(dict.fromkeys(path for path in paths if os.path.isfile(path)))  # noqa: PTH113
