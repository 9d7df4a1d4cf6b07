"""Make recordings of what record.py wrote: python pack.py FOLDER..."""

from __future__ import annotations

import gzip
import sys
import tempfile
from pathlib import Path

from recordings import FOLDER, columns_of, packed, scrubbed_counters

MOST_BYTES = 100_000
SHORTEST_CALLS_NS = (10_000, 100_000, 1_000_000, 10_000_000)  # system calls that are kept, until a recording is small


def main() -> None:
    """Pack each timeline and each page of counters."""
    FOLDER.mkdir(exist_ok=True)
    for folder in map(Path, sys.argv[1:]):
        for path in sorted((folder / "timelines").glob("*.sqlite.gz")):
            with tempfile.NamedTemporaryFile(suffix=".sqlite") as file:
                file.write(gzip.decompress(path.read_bytes()))
                file.flush()
                for shortest in SHORTEST_CALLS_NS:
                    small = packed(columns_of(Path(file.name), shortest))
                    if len(small) <= MOST_BYTES:
                        break
            (FOLDER / f"{path.name.removesuffix('.sqlite.gz')}.timeline.xz").write_bytes(small)
            if len(small) > MOST_BYTES:
                print(f"{path.name}: {len(small)} bytes")
        for path in sorted((folder / "counters").glob("*.csv")):
            (FOLDER / f"{path.stem}.counters.xz").write_bytes(scrubbed_counters(path.read_text()))
    total = sum(path.stat().st_size for path in FOLDER.iterdir())
    print(f"{len(list(FOLDER.iterdir()))} files, {total / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
