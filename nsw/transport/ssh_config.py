"""What the user's ssh_config says of a host, as `ssh -G` resolves it: Include, Match and ProxyJump in full."""

from __future__ import annotations

import getpass
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsw.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["HostConfig", "configuration", "options", "resolve"]

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


def resolve(host: str, settings: Mapping[str, Any]) -> HostConfig:
    """The configuration of a host.

    Args:
        host: Its name or alias; an address ssh://USER@HOST:PORT for a jump host.
        settings: What the site says of its transport: config, user, port, identity.

    Raises:
        UnreachableError: ssh does not understand the configuration.
    """
    words = configuration([*options(settings), "--", host]) or _without_ssh(host, settings)
    alias, hostname, port, login = (words.get(key, [host])[0] for key in ("host", "hostname", "port", "user"))
    proxy, jumps = (words.get(key, ["none"])[0] for key in ("proxycommand", "proxyjump"))
    tokens = {"h": hostname, "p": port, "r": login, "n": alias, "u": getpass.getuser(), "%": "%"}
    own_identity = [str(settings["identity"])] if settings.get("identity") else []
    return HostConfig(
        alias=alias,
        hostname=hostname,
        port=int(port),
        user=login,
        identities=_identities([*own_identity, *words.get("identityfile", [])]),
        certificates=_existing(words.get("certificatefile", [])),
        agent=_agent(words.get("identityagent", ["SSH_AUTH_SOCK"])[0], tokens),
        identities_only=words.get("identitiesonly", ["no"])[0] == "yes",
        known_hosts=_existing(" ".join(words["userknownhostsfile"] + words["globalknownhostsfile"]).split()),
        host_key_alias=words.get("hostkeyalias", [None])[0],
        jumps=() if jumps == "none" else tuple(j if "://" in j else f"ssh://{j}" for j in jumps.split(",")),
        proxy_command=None if proxy == "none" else _expanded(proxy, tokens),
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


def _without_ssh(host: str, settings: Mapping[str, Any]) -> dict[str, list[str]]:
    return {
        "hostname": [host],
        "port": [str(settings.get("port") or 22)],
        "user": [str(settings.get("user") or getpass.getuser())],
        "identityfile": ["~/.ssh/id_ed25519", "~/.ssh/id_rsa"],
        "userknownhostsfile": ["~/.ssh/known_hosts"],
        "globalknownhostsfile": ["/etc/ssh/ssh_known_hosts"],
    }


def _expanded(text: str, tokens: Mapping[str, str]) -> str:
    """With ssh_config's tokens replaced, which `ssh -G` leaves as they are; a token of another kind stays."""
    return re.sub(r"%(.)", lambda match: tokens.get(match[1], match[0]), text)


def _agent(text: str, tokens: Mapping[str, str]) -> str | None:
    """The socket that ssh_config's IdentityAgent names: a path, or a variable that holds one."""
    if text == "SSH_AUTH_SOCK":
        return None
    if text.startswith("$"):
        return os.environ.get(text[1:].strip("{}"), "none")
    return text if text == "none" else os.path.expanduser(_expanded(text, tokens))  # noqa: PTH111


def _identities(files: list[str]) -> tuple[str, ...]:
    """Private keys that exist, and those whose public half does: it names a key of the agent."""
    paths = (os.path.expanduser(file) for file in files)  # noqa: PTH111
    return tuple(dict.fromkeys(path for path in paths if _existing([path, f"{path}.pub"])))


def _existing(files: list[str]) -> tuple[str, ...]:
    paths = (os.path.expanduser(file) for file in files)  # noqa: PTH111
    return tuple(dict.fromkeys(path for path in paths if os.path.isfile(path)))  # noqa: PTH113
