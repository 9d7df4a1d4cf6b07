"""The answer to a listing of folders on a site; names in it are not trusted."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING

from nsw.errors import UnreachableError
from nsw.transport.model import Entry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def parse_listing(answer: bytes, folders: Mapping[str, Sequence[str]]) -> dict[str, list[Entry]]:
    """The entries of each folder that match its patterns.

    Raises:
        UnreachableError: A folder could not be listed, or the answer is cut short.
    """
    words = iter(answer.decode(errors="surrogateescape").split("\0"))
    found: dict[str, list[Entry]] = {}
    for folder, patterns in folders.items():
        what = next(words, "")
        if what not in {"folder", "absent"}:
            raise UnreachableError(f"{folder} cannot be listed")
        entries: list[Entry] = []
        while what == "folder" and (word := next(words, None)) != "end":
            kind, _, rest = (word or "").partition("\t")
            size, _, path = rest.partition("\t")
            name = path.removeprefix(f"{folder}/")
            if word is None or not size.isdigit():
                raise UnreachableError(f"{folder} cannot be listed: the site's answer is cut short")
            plain = name not in {"", ".", ".."} and not any(sign in name for sign in "/\n\r")
            if plain and kind.startswith("regular") and any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
                entries.append(Entry(name, int(size)))
        found[folder] = sorted(entries, key=lambda entry: entry.name)
    return found
