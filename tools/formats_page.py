"""Write docs/formats.md from nsw/readers/data/formats.toml: `python tools/formats_page.py [--check]`."""

from __future__ import annotations

import sys
from pathlib import Path

from nsw.readers.nsys.stats.reports import REPORTS, TABLES, unread_reason
from nsw.readers.registry import FORMATS, Format

PAGE = Path(__file__).parents[1] / "docs" / "formats.md"
_HEAD = """# Formats

<!-- made by tools/formats_page.py from nsw/readers/data/formats.toml: change it there -->

The formats that `nsw read` reads, their versions, what nsw does not read, and the fixture or test (below `tests/`) that
proves it. nsw recognises a file by its content, not by its name. If it cannot read a file, or a part of it, nsw reports
why as a problem beside the tables. `nsw/tables/schema.csv` describes the tables.

nsw also reads a file of any format that is packed with gzip or xz, from a copy below TMPDIR that it then removes. For
archives and other packers it prints the command that unpacks them.

A packed file may unpack to fifty times its size, and at least to 256 MiB. nsw refuses larger ones;
`nsw read --max-unpacked 20G` raises the limit. Memory and time of reading have limits too ([security.md](security.md));
`--max-memory 64G` and `--max-time 5h` raise them.

## Damaged reports

Rows that break an invariant are left out and reported (`nsw/readers/invariants.py`): negative times, times of more than
ten years, a mean outside the least and the greatest, a total below the greatest, shares above 100 %, one ID for two
kernels. Figures in an unknown unit, with another decimal mark than the rest of the file or under damaged titles are
absent and reported.

Other damage is not found: a figure, a name or a text that is wrong in the file is read as it stands, and a row that is
there twice counts twice.
"""


def page() -> str:
    """The page as it should be."""
    rows = [f"| [{f.id}](#{f.id}) | {f.tool} | {f.meaning} |" for f in FORMATS]
    index = "\n".join(["| format | tool | what it is |", "|---|---|---|", *rows])
    return "\n".join([_HEAD, index, *(_section(f) for f in FORMATS)])


def _section(format_: Format) -> str:
    proofs = ", ".join(f"[{p}](../tests/{p})" for p in format_.proofs)
    return f"""
## {format_.id}

- What: {format_.meaning}{" (a folder)" if format_.folder else ""}
- Versions: {format_.versions}
- Read: {", ".join(format_.tables)}
- Not read: {format_.unread}
- Proof: {proofs}
{_nsys_reports() if format_.id == "nsys-stats" else ""}"""


def _nsys_reports() -> str:
    """What becomes of each report of `nsys stats`, by its names until 2022 and since."""
    groups: dict[str, list[str]] = {}
    for name, kind in REPORTS.items():
        meaning = TABLES.get(kind) or f"not read: {unread_reason(name).reason}"
        groups.setdefault(meaning, []).append(f"`{name}`")
    rows = [f"| {', '.join(names)} | {meaning} |" for meaning, names in groups.items()]
    return "\n" + "\n".join(["| report of nsys stats | becomes |", "|---|---|", *rows]) + "\n"


def main() -> None:
    """Write the page, or with --check only say whether it is current."""
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page())
    elif PAGE.read_text() != page():
        sys.exit(f"{PAGE} is not current: python tools/formats_page.py")


if __name__ == "__main__":
    main()
