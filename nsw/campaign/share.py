"""What is given to others: looked through for secrets and names, and written whole or not at all."""

from __future__ import annotations

import html
import io
import json
import re
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nsw.errors import NswError, UsageError
from nsw.recipe.secrets import secret_parts
from nsw.safe_files import replacing
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from nsw.campaign.anonymous import Names

_SHORT: Final = 8  # characters: a shorter secret is looked for as a whole word
_LISTED: Final = 10
_MODE: Final = 0o666  # as far as the umask lets it
_BEGIN: Final = (1980, 1, 1, 0, 0, 0)  # no file tells when it was made


@dataclass(frozen=True, slots=True)
class Leak:
    """What must not leave, and where it was met.

    Attributes:
        item: The file of the share.
        line: Its line, from 1.
        what: What it is, without a secret itself.
        is_secret: Whether it is a secret, and no name.
    """

    item: str
    line: int
    what: str
    is_secret: bool


def leaks_in(
    items: Mapping[str, bytes], names: Names, secrets: Mapping[str, str], own_lines: Collection[str] = ()
) -> list[Leak]:
    """What of known secrets, users and hosts is in files, however they write it; each once a file.

    Args:
        items: The files by name.
        names: Whose users and hosts are looked for, as whole words and parts of paths.
        secrets: Values, each with the name of its variable.
        own_lines: Lines that every page of nsw has.
    """
    other_names = {*names.hosts.values()}
    looked_for = {word for word, kind in names.kinds.items() if kind in {"host", "user"}} - other_names
    words = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(looked_for, key=len, reverse=True)))})(?!\w)")
    forms = [(_secret_pattern(value), name) for value, name in secrets.items()]

    def leaks_of(item: str, data: bytes) -> Iterator[Leak]:
        for number, line in enumerate((item, *data.decode().splitlines())):
            if line in own_lines:
                continue
            yield from (Leak(item, number, f"the value of {name}", True) for form, name in forms if form.search(line))
            if next(secret_parts(line), None) is not None:
                yield Leak(item, number, "a password, key or signature in a URL or connection string", True)
            for word in dict.fromkeys(words.findall(line)) if looked_for else ():
                yield Leak(item, number, f"the {names.kinds[word]} name {word}", False)

    leaks: dict[tuple[str, str], Leak] = {}
    for item, data in items.items():
        for leak in leaks_of(item, data):
            leaks.setdefault((item, leak.what), leak)
    return list(leaks.values())


def _secret_pattern(value: str) -> re.Pattern[str]:
    """What matches a secret as it is, and as JSON, HTML and CSV write it."""
    forms = {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    forms |= {html.escape(form) for form in forms} | {value.replace('"', '""')}
    forms |= {line for form in forms for line in form.splitlines() if len(line) >= _SHORT}  # of a key, each line
    pattern = "|".join(map(re.escape, sorted(forms, key=len, reverse=True)))
    return re.compile(rf"(?<!\w)(?:{pattern})(?!\w)" if len(value) < _SHORT else pattern)


def refuse_leaks(leaks: Collection[Leak]) -> None:
    """Refuse to write what holds a secret or a name.

    Raises:
        UsageError: It does; it says where, and what to do.
    """
    if not leaks:
        return
    lines = [f"{leak.item}, line {leak.line}: {leak.what}" for leak in leaks][:_LISTED]
    more = f"\n  and {len(leaks) - _LISTED} more" if len(leaks) > _LISTED else ""
    hints = []
    if any(leak.is_secret for leak in leaks):
        hints.append("--hide-kernels replaces names of kernels and NVTX ranges; --rename OLD=NEW any other text")
    if not all(leak.is_secret for leak in leaks):
        hints.append("--rename WORD=OTHER replaces a name; --rename WORD=WORD lets one stay that names nobody")
    raise UsageError(
        f"nothing was written: {plural(len(leaks), 'text')} must not leave\n  " + "\n  ".join(lines) + more,
        hint="; ".join(hints),
    )


def zip_of(items: Mapping[str, bytes]) -> bytes:
    """The files as a zip, which is the same for the same files."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in items.items():
            entry = zipfile.ZipInfo(name, _BEGIN)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, data)
    return stream.getvalue()


def write_whole(file: Path, data: bytes) -> None:
    """Write a file in the place of what has its name, whole or not at all; through no link.

    Raises:
        NswError: It cannot be written.
    """
    try:
        with replacing(file, _MODE) as stream:
            stream.write(data)
    except OSError as fault:
        raise NswError(f"{file} cannot be written: {fault.strerror or fault}") from None
