"""The formats that nsw reads: a new format is a new file and an entry in data/formats.toml.

Another package registers a module with `FORMAT`, a `Format` of this file, and the two functions of
`nsw.readers.model.Reader`:

    [project.entry-points."nsw.readers"]
    rpd-top = "rpd_nsw.top"
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from typing import Final

from nsw.resources import entry_points_of, toml_data

GROUP: Final = "nsw.readers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A report format.

    Args:
        id: The `format` of a Report.
        tool: Who writes it.
        module: What reads it; of another package's format its entry point says it.
        meaning: What it is, in a line.
        versions: Of the tool or the format, as far as files of them have been read.
        tables: What is read, by the names of nsw.tables.schema.
        unread: What such files may hold and nsw leaves: it is said of the file where it is there.
        proofs: Tests and fixtures, below tests/, that show it.
        folder: The report is a folder.
        unpacks: The reader unpacks gzip itself; for others nsw unpacks a file first.
        max_certainty: How sure its reader can be at most. One that cannot be surer than another is need not be loaded.
        begins: What its files begin with, after blanks; of other files the reader is not loaded. Empty: with anything.
        suffixes: Names that make a file one of it, whatever it begins with.
        words: One of them is in each of its reports, by which one behind another tool's is looked for. Empty: none is.
    """

    id: str
    tool: str
    meaning: str
    versions: str
    tables: tuple[str, ...]
    unread: str
    module: str = ""
    proofs: tuple[str, ...] = ()
    folder: bool = False
    unpacks: bool = False
    max_certainty: int = 100
    begins: tuple[bytes, ...] = ()
    suffixes: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    def matches_beginning_or_suffix(self, head: bytes, suffix: str) -> bool:
        """Whether a file that begins and is named so can be of this format."""
        return not self.begins or suffix in self.suffixes or head.lstrip(_BLANKS).startswith(self.begins)


_BLANKS = b"\xef\xbb\xbf\xff\xfe\0 \t\r\n\x0b\x0c"  # byte-order marks are left out too


def _read_own_formats() -> tuple[Format, ...]:
    """The formats of data/formats.toml, in its order."""
    content = toml_data("readers/data/formats.toml")
    formats = []
    for row in content["format"]:
        names = [content["groups"][name[1:]] if name.startswith("*") else [name] for name in row["tables"]]
        begins = (beginning.encode("latin-1") for beginning in row.get("begins", ()))
        lists = {"tables": chain.from_iterable(names), "begins": begins}
        lists |= {key: row.get(key, ()) for key in ("proofs", "suffixes", "words")}
        formats.append(Format(**row | {key: tuple(entries) for key, entries in lists.items()}))
    return tuple(formats)


FORMATS: Final = _read_own_formats()


def all_formats() -> tuple[Format, ...]:
    """All formats: nsw's own and those of other packages that can be loaded."""
    return (*FORMATS, *load_package_formats()[0])


@cache
def load_package_formats() -> tuple[tuple[Format, ...], tuple[str, ...]]:
    """The formats of other packages, and a sentence for each that cannot be loaded; the errors of these are caught."""
    formats, faults = [], []
    for name, path in entry_points_of(GROUP).items():
        try:
            format_ = importlib.import_module(path).FORMAT
            if not isinstance(format_, Format):
                raise TypeError("its FORMAT is no nsw.readers.registry.Format")  # noqa: TRY301
            formats.append(replace(format_, module=path))
        except Exception as fault:  # noqa: BLE001  a broken package must not spoil nsw's own formats
            faults.append(f"the reader {name} ({path}) of another package cannot be loaded: {fault}")
    return tuple(formats), tuple(faults)
