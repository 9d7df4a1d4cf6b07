"""Make recordings of what record.py wrote: python pack.py FOLDER..."""

from __future__ import annotations

import gzip
import json
import lzma
import re
import sys
import tempfile
from pathlib import Path

from recordings import FOLDER, columns_of, counters_by_case, cut, packed, scrubbed_counters

MOST_BYTES = 100_000
SHARES = (1.0, 0.75, 0.5, 0.35, 0.25, 0.15)  # of the kernels, until a recording is small


def smallest(export: Path) -> bytes:
    """A reduced export, packed: with fewer system calls, then less of its end, until it is small."""
    for shortest, share in ((10_000, 1.0), (100_000, 1.0), *((1_000_000, share) for share in SHARES)):
        small = packed(cut(columns_of(export, shortest), share))
        if len(small) <= MOST_BYTES:
            break
    return small


def main() -> None:
    """Pack each timeline and each page of counters."""
    FOLDER.mkdir(exist_ok=True)
    for folder in map(Path, sys.argv[1:]):
        for path in sorted((folder / "timelines").glob("*.sqlite.gz")):
            with tempfile.NamedTemporaryFile(suffix=".sqlite") as file:
                file.write(gzip.decompress(path.read_bytes()))
                file.flush()
                small = smallest(Path(file.name))
            (FOLDER / f"{path.name.removesuffix('.sqlite.gz')}.timeline.xz").write_bytes(small)
            if len(small) > MOST_BYTES:
                print(f"{path.name}: {len(small)} bytes")
        pages = {path.stem: scrubbed_counters(path.read_text()) for path in (folder / "counters").glob("*.csv")}
        for letter in sorted({case[0] for case in pages}):
            own = {case: page for case, page in pages.items() if case[0] == letter}
            text = json.dumps(dict(sorted((counters_by_case(letter) | own).items())), indent=0, ensure_ascii=False)
            (FOLDER / f"{letter}.counters.xz").write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
        for path in sorted((folder / "sources").glob("*.csv")):
            text = re.sub(r'"/[^"]*/', '"', path.read_text())
            (FOLDER / f"{path.stem}.source.xz").write_bytes(lzma.compress(text.encode(), preset=9))
    total = sum(path.stat().st_size for path in FOLDER.iterdir())
    print(f"{len(list(FOLDER.iterdir()))} files, {total / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
