"""Packs the demo's recordings: `python tools/pack_recordings.py FOLDER`, with NAME.sqlite and NAME.out of each there.

nsys' own list of the GPU metrics that it could have sampled (180 kB in each report) is left out, and so are the
names of the machine's other processes.

Reports in one archive share what they have in common (some 50 kB each), but a report is read by unpacking those before
it: small reports share an archive, large ones do not.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

RECORDINGS = Path(__file__).resolve().parents[1] / "nsw" / "demo" / "recordings" / "alexnet-4xH200"
BATCHES = {1: [(8, 16, 32, 128)], 2: [(8, 16), (32, 128)], 4: [(8, 16), (32, 128)]}  # GPUs -> its archives
PRINTED = "printed.out"  # one file of all outputs: each file costs 200 bytes of the wheel


def main(folder: Path) -> None:
    """Write the archives, the outputs and their entries in index.json."""
    index = json.loads((RECORDINGS / "index.json").read_text(encoding="utf-8"))
    entries = {(entry["params"]["gpus"], entry["params"]["batch"]): entry for entry in index["recordings"]}
    for old in [*RECORDINGS.glob("*.xz"), *RECORDINGS.glob("*.out")]:
        old.unlink()
    printed_before = b""
    for gpus, archives in BATCHES.items():
        for batches in archives:
            stored, together = f"alexnet-g{gpus}-b{'-'.join(map(str, batches))}.xz", b""
            for entry in (entries[gpus, batch] for batch in batches):
                leave_out_unused_rows(folder / f"{entry['name']}.sqlite")
                report, printed = ((folder / f"{entry['name']}.{end}").read_bytes() for end in ("sqlite", "out"))
                entry["files"] = [
                    described(f"{entry['name']}.sqlite", report) | {"stored": stored, "offset": len(together)},
                    described(f"{entry['name']}.out", printed) | {"stored": PRINTED, "offset": len(printed_before)},
                ]
                printed_before += printed
                together += report
            (RECORDINGS / stored).write_bytes(packed(together))
    (RECORDINGS / PRINTED).write_bytes(printed_before)
    head = json.dumps({key: value for key, value in index.items() if key != "recordings"})[:-1]
    lines = ",\n".join(json.dumps(entry) for entry in index["recordings"])
    (RECORDINGS / "index.json").write_text(f'{head}, "recordings": [\n{lines}]}}\n', encoding="utf-8")


def leave_out_unused_rows(report: Path) -> None:
    """Delete the list of GPU metrics and the names of processes from an export, and the room that they took."""
    with closing(sqlite3.connect(report)) as export:
        export.execute("DELETE FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'GpuMetricsConfig'")
        export.execute("DELETE FROM PROCESSES")
        export.commit()
        export.execute("VACUUM")


def packed(content: bytes) -> bytes:
    """The smallest of what xz makes of it by the settings that suit tables of integers."""
    filters = (
        {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "lp": 0, "pb": bits} for bits in (0, 1, 2)
    )
    return min((lzma.compress(content, filters=[setting]) for setting in filters), key=len)


def described(name: str, content: bytes) -> dict[str, Any]:
    """What the index says of a file's content."""
    return {"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
