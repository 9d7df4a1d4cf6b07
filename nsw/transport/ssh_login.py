"""Host keys verified, then a login: agent, keys, certificates, and what the host asks a person for."""

from __future__ import annotations

import base64
import hashlib
import sys
from typing import TYPE_CHECKING

import paramiko

from nsw.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsw.transport.ssh_config import HostConfig

_TRIES = 5  # keys offered; servers end the connection after six
_ASKED = "keyboard-interactive"


def verify(transport: paramiko.Transport, host: HostConfig) -> None:
    """Compare the host's key with known_hosts; called between key exchange and login.

    Raises:
        UnreachableError: The key is unknown, or another than before.
    """
    key = transport.get_remote_server_key()
    known = known_keys(host)
    digest = base64.b64encode(hashlib.sha256(key.asbytes()).digest()).decode().rstrip("=")
    what = f"{key.get_name()} SHA256:{digest}"
    if not known:
        raise UnreachableError(
            f"the host key of {host.alias} ({host.known_as}) is not known: {what}",
            hint=f"compare this fingerprint with what the site publishes, then `ssh {host.alias}` once by hand",
        )
    if not any(one.asbytes() == key.asbytes() for one in known):
        raise UnreachableError(
            f"the host key of {host.alias} ({host.known_as}) is another than before: {what}. Somebody may be"
            " listening in, or the site has new keys",
            hint=f"ask the site; for new keys: `ssh-keygen -R '{host.known_as}'`, then `ssh {host.alias}` by hand",
        )


def known_keys(host: HostConfig) -> list[paramiko.PKey]:
    """The keys that known_hosts has for a host."""
    found: list[paramiko.PKey] = []
    for file in host.known_hosts:
        keys = paramiko.HostKeys()
        keys.load(file)
        entry = keys.lookup(host.known_as)
        found += [] if entry is None else list(entry.values())
    return found


def log_in(transport: paramiko.Transport, host: HostConfig) -> None:
    """Log in with keys, and with what a person answers where the host asks.

    Raises:
        UnreachableError: The host takes none of it.
    """
    try:
        transport.auth_none(host.user)
    except paramiko.BadAuthenticationType as fault:
        allowed = list(fault.allowed_types)
    except paramiko.AuthenticationException:
        allowed = ["publickey", _ASKED]
    else:
        return
    tried: list[str] = []
    further = allowed
    if "publickey" in allowed:
        for name, key in _keys(host):
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
    if _ASKED in further:
        _answer(transport, host)
        if transport.is_authenticated():
            return
    offered = f"; offered: {', '.join(tried)}" if tried else "; there was no key to offer"
    raise UnreachableError(
        f"{host.user}@{host.alias} was not let in (the host takes {', '.join(allowed)}{offered})",
        hint="`ssh-add -l` lists the agent's keys; user and identity can be named at the site's transport",
    )


def _keys(host: HostConfig) -> Iterator[tuple[str, paramiko.PKey]]:
    """The agent's keys, then those of files."""
    wanted = {_public(file) for file in host.identities} if host.identities_only else None
    for kept in paramiko.Agent().get_keys():
        if wanted is None or kept.asbytes() in wanted:
            yield f"{kept.get_name()} of the agent", kept
    for file in host.identities:
        key = _of_file(file)
        if key is not None:
            yield file, key


def _public(file: str) -> bytes:
    try:
        with open(f"{file}.pub", encoding="utf-8") as stream:  # noqa: PTH123
            return base64.b64decode(stream.read().split()[1])
    except (OSError, ValueError, IndexError):
        return b""


def _of_file(file: str) -> paramiko.PKey | None:
    try:
        return paramiko.PKey.from_path(file)
    except (paramiko.PasswordRequiredException, TypeError):  # encrypted
        secret = ask(f"passphrase of {file}: ", echo=False)
        try:
            return paramiko.PKey.from_path(file, secret.encode())  # type: ignore[arg-type]  # the stubs say str
        except (paramiko.SSHException, ValueError, TypeError) as fault:
            raise UnreachableError(f"{file} cannot be used: {fault}", hint="`ssh-add` keeps it in the agent") from None
    except (paramiko.SSHException, ValueError, OSError):  # of a kind that paramiko does not know
        return None


def _answer(transport: paramiko.Transport, host: HostConfig) -> None:
    unasked: list[UnreachableError] = []

    # in paramiko's own thread, which prints what is raised there
    def answers(title: str, instructions: str, prompts: Sequence[tuple[str, bool]]) -> list[str]:
        for text in (title, instructions):
            if text.strip():
                print(_plain(text), file=sys.stderr)
        try:
            return [ask(f"{host.alias} asks: {_plain(prompt)}", echo=echo) for prompt, echo in prompts]
        except UnreachableError as fault:
            unasked.append(fault)
            return ["" for _ in prompts]

    try:
        transport.auth_interactive(host.user, answers)
    except paramiko.SSHException:
        if unasked:
            raise unasked[0] from None
        raise UnreachableError(f"{host.alias} did not take the answer") from None


def ask(prompt: str, *, echo: bool) -> str:
    """What a person answers; never logged.

    Raises:
        UnreachableError: There is no terminal to ask at.
    """
    import getpass

    if not sys.stdin.isatty():
        raise UnreachableError(
            f"{prompt.strip()} and there is no terminal to ask at",
            hint="open a connection by hand and let nsw reuse it: transport: {kind: openssh}, with a ControlMaster",
        )
    if not echo:
        return getpass.getpass(prompt)
    print(prompt, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().rstrip("\n")


def _plain(text: str) -> str:
    return "".join(sign for sign in text if sign.isprintable() or sign == " ")
