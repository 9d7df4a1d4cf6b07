"""What the user's ssh_config says of a host, as `ssh -G` resolves it: Include, Match and ProxyJump in full."""

from __future__ import annotations

import getpass
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsw.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import Mapping

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


def resolve(host: str, *, config: str | None = None, given: Mapping[str, object] | None = None) -> HostConfig:
    """The configuration of a host.

    Args:
        host: Its name or alias; `user@host:port` for a jump host.
        config: Another file than ~/.ssh/config.
        given: What the site says: user, port, identity.

    Raises:
        UnreachableError: ssh does not understand the configuration.
    """
    given = dict(given or {})
    user, at, rest = host.rpartition("@")
    name, colon, port = rest.rpartition(":")
    if at:
        given["user"] = user
    if colon and port.isdigit():
        given["port"], rest = int(port), name
    words = _asked(rest, config, given)
    hostname, port_there = words.get("hostname", [rest])[0], words.get("port", ["22"])[0]
    login = words.get("user", [getpass.getuser()])[0]
    proxy = words.get("proxycommand", ["none"])[0]
    tokens = {"h": hostname, "p": port_there, "r": login, "n": rest, "u": getpass.getuser(), "%": "%"}
    jumps = words.get("proxyjump", ["none"])[0]
    identity = given.get("identity")
    own = [os.path.expanduser(str(identity))] if identity else []  # noqa: PTH111
    known = " ".join(words.get("userknownhostsfile", []) + words.get("globalknownhostsfile", [])).split()
    return HostConfig(
        alias=rest,
        hostname=hostname,
        port=int(port_there),
        user=login,
        identities=_identities([*own, *words.get("identityfile", ["~/.ssh/id_ed25519", "~/.ssh/id_rsa"])]),
        certificates=_existing(words.get("certificatefile", [])),
        agent=_agent(words.get("identityagent", ["SSH_AUTH_SOCK"])[0], tokens),
        identities_only=words.get("identitiesonly", ["no"])[0] == "yes",
        known_hosts=_existing(known or ["~/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts"]),
        host_key_alias=words.get("hostkeyalias", [None])[0],
        jumps=() if jumps == "none" else tuple(jumps.split(",")),
        proxy_command=None if proxy == "none" else _expanded(proxy, tokens),
    )


def checks_host_keys(host: str, *, config: str | None = None) -> bool:
    """Whether the user's ssh refuses a host whose key has changed; without an ssh on this machine it is not asked.

    Raises:
        UnreachableError: ssh does not understand the configuration.
    """
    return _asked(host, config, {}).get("stricthostkeychecking", ["ask"])[0] not in {"no", "off", "false"}


def _expanded(text: str, tokens: Mapping[str, str]) -> str:
    """With ssh_config's tokens replaced, which `ssh -G` leaves as they are; a token of another kind stays."""
    return re.sub(r"%(.)", lambda found: tokens.get(found[1], found[0]), text)


def _agent(text: str, tokens: Mapping[str, str]) -> str | None:
    """The socket that ssh_config's IdentityAgent names: a path, or a variable that holds one."""
    if text == "SSH_AUTH_SOCK":
        return None
    if text.startswith("$"):
        return os.environ.get(text[1:].strip("{}"), "none")
    return text if text == "none" else os.path.expanduser(_expanded(text, tokens))  # noqa: PTH111


def _asked(host: str, config: str | None, given: Mapping[str, object]) -> dict[str, list[str]]:
    """The lines of `ssh -G`; without an ssh on this machine only what the site says."""
    if shutil.which("ssh") is None:
        return {key: [str(given[key])] for key in ("user", "port") if given.get(key)}
    argv = ["ssh", "-G"]
    if config:
        argv += ["-F", os.path.expanduser(config)]  # noqa: PTH111
    if given.get("user"):
        argv += ["-l", str(given["user"])]
    if given.get("port"):
        argv += ["-p", str(given["port"])]
    try:
        done = subprocess.run(
            [*argv, "--", host], capture_output=True, text=True, timeout=_SECONDS, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise UnreachableError(f"`ssh -G {host}` gave no answer: does ~/.ssh/config run a command?") from None
    if done.returncode != 0:
        raise UnreachableError(f"`ssh -G {host}`: {done.stderr.strip()}", hint="correct your ~/.ssh/config")
    found: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        key, _, value = line.partition(" ")
        found.setdefault(key.lower(), []).append(value)
    return found


def _identities(files: list[str]) -> tuple[str, ...]:
    """Private keys that exist, and those whose public half does: it names a key of the agent."""
    paths = (os.path.expanduser(file) for file in files)  # noqa: PTH111
    return tuple(dict.fromkeys(path for path in paths if _existing([path, f"{path}.pub"])))


def _existing(files: list[str]) -> tuple[str, ...]:
    paths = (os.path.expanduser(file) for file in files)  # noqa: PTH111
    return tuple(dict.fromkeys(path for path in paths if os.path.isfile(path)))  # noqa: PTH113
