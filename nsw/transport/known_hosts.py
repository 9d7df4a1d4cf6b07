"""What known_hosts files have of a host, as OpenSSH finds it: hashed names, patterns, and revoked keys."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import paramiko

from nsw.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_SECONDS = 20


@dataclass(frozen=True, slots=True)
class KnownKeys:
    """The keys that a host may have, those that it may not have, and whether an authority may sign others.

    `named`: there is a line with a key for it, perhaps of a kind that paramiko does not know.
    """

    good: tuple[paramiko.PKey, ...] = ()
    revoked: tuple[paramiko.PKey, ...] = ()
    has_authority: bool = False
    named: bool = False


def look_up(name: str, files: Sequence[str]) -> KnownKeys:
    """What these files have of a host.

    Args:
        name: The host as known_hosts has it: `[host]:port` where the port is not 22.
        files: known_hosts files that exist.

    Raises:
        UnreachableError: ssh-keygen, which reads them, does not end.
    """
    return _sorted_by_marker([line for file in files for line in _lines(name, file)])


def _lines(name: str, file: str) -> Iterator[str]:
    """The lines of a file that are about a host; without ssh-keygen those that a pattern chooses are missed."""
    if shutil.which("ssh-keygen") is None:
        with open(file, encoding="utf-8", errors="replace") as stream:  # noqa: PTH123
            yield from (line for line in stream if _of_host(line, name))
        return
    try:
        done = subprocess.run(
            ["ssh-keygen", "-F", name, "-f", file], capture_output=True, text=True, errors="replace",
            timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise UnreachableError(
            f"`ssh-keygen -F {name} -f {file}` gave no answer in {_SECONDS} s, so the host key cannot be compared",
            hint=f"check that {file} can be read: its file system may hang",
        ) from None
    yield from done.stdout.splitlines()


def _of_host(line: str, name: str) -> bool:
    """Whether a line names the host, in full or hashed."""
    words = line.split()
    names = words[1 if words and words[0].startswith("@") else 0 :][:1]
    return any(
        one == name or (one.startswith("|1|") and paramiko.HostKeys.hash_host(name, one) == one)
        for one in ",".join(names).split(",")
    )


def _key(line: str) -> paramiko.PKey | None:
    """The key of a line; None for a remark, and for a key of a kind that paramiko does not know."""
    if not line.strip() or line.startswith("#"):
        return None
    try:
        entry = paramiko.hostkeys.HostKeyEntry.from_line(line)
    except paramiko.hostkeys.InvalidHostKey:
        return None
    return None if entry is None else entry.key


def _sorted_by_marker(lines: Iterable[str]) -> KnownKeys:
    found: dict[str, list[paramiko.PKey]] = {"": [], "@revoked": [], "@cert-authority": []}
    named = False
    for line in lines:
        named = named or bool(line.strip() and line[0] not in "#@")
        marker, _, rest = line.partition(" ") if line.startswith("@") else ("", "", line)
        if marker in found and (key := _key(rest)) is not None:
            found[marker].append(key)
    return KnownKeys(tuple(found[""]), tuple(found["@revoked"]), bool(found["@cert-authority"]), named)
