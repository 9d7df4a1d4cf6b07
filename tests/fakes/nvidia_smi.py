"""A fake nvidia-smi: an H100 as driver 580.159.04 showed it under load, row after row, at the time of today.

It knows the fields that the real one listed (fixtures/conditions) but those of NSW_FAKE_SMI_WITHOUT, and refuses others
in its words. NSW_FAKE_SMI names a file of its GPUs, one UUID a line; NSW_FAKE_SMI_CLOCK is the SM's, MHz; with
NSW_FAKE_SMI_TIMES its time passes so many times as fast.
"""

import csv
import gzip
import os
import re
import sys
import time
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

RECORDED = Path(__file__).resolve().parents[1] / "fixtures" / "conditions"
NAMES = {"clocks.sm": "clocks.current.sm", "clocks.mem": "clocks.current.memory"}  # that it heads the column with
RECORDED_AS = {"power.draw": "power.draw.average", "clocks_throttle_reasons.active": "clocks_event_reasons.active"}


def known() -> str:
    lacks = os.environ.get("NSW_FAKE_SMI_WITHOUT", "").split()
    lines = (RECORDED / "help-query-gpu.txt").read_text().splitlines()
    for field in lacks:
        lines = [re.sub(rf'"{re.escape(field)}"(?: or )?', "", line) for line in lines]
    return "\n".join(lines)


def main(words: list[str]) -> int:
    gpus = Path(os.environ["NSW_FAKE_SMI"]).read_text().split()
    if "-L" in words:
        for at, uuid in enumerate(gpus):
            print(f"GPU {at}: NVIDIA H100 80GB HBM3 (UUID: {uuid})")
        return 0
    if "--help-query-gpu" in words:
        print(known())
        return 0
    query = next((word for word in words if word.startswith("--query-gpu=")), None)
    if query is None or not any(word.startswith("--format=csv") for word in words):
        print(f"Invalid combination of input arguments: {words}. Please run 'nvidia-smi -h' for help.")
        return 1
    fields = query.partition("=")[2].split(",")
    for field in fields:
        if f'"{field}"' not in known():
            print(f'Field "{field}" is not a valid field to query.\n')
            return 2
    chosen = [gpus.index(gpu) if gpu in gpus else int(gpu) for gpu in words[words.index("-i") + 1].split(",")] \
        if "-i" in words else range(len(gpus))  # fmt: skip
    if any(gpu >= len(gpus) for gpu in chosen):
        print("No devices were found")
        return 6
    with gzip.open(RECORDED / "h100-steady.csv.gz", "rt") as file:
        head, *rows = list(csv.reader(file, skipinitialspace=True))
    titles = {title.partition(" ")[0]: title for title in head}
    columns = [titles.get(RECORDED_AS.get(field, NAMES.get(field, field)), field) for field in fields]
    heads = [NAMES.get(field, field) + column[len(column.partition(" ")[0]) :]
             for field, column in zip(fields, columns, strict=True)]  # fmt: skip
    print(", ".join(heads), flush=True)
    every = int(words[words.index("-lms") + 1]) / 1000 if "-lms" in words else None
    times = float(os.environ.get("NSW_FAKE_SMI_TIMES") or 1)
    start = datetime.now(UTC)
    for at in count():
        row = dict(zip(head, rows[0 if every is None else min(at + 20, len(rows) - 20)], strict=True))
        for gpu in chosen:
            moment = datetime.now(UTC) if times == 1 else start + timedelta(seconds=at * (every or 0))
            now = moment.strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]
            values = row | {"timestamp": now, "uuid": gpus[gpu], "index": str(gpu)}
            if clock := os.environ.get("NSW_FAKE_SMI_CLOCK"):
                values["clocks.current.sm [MHz]"] = clock
            if every is None:
                values["memory.used [MiB]"] = "0"  # nobody is there before the program
            print(
                ", ".join(values.get(column or field, "[N/A]") for column, field in zip(columns, fields, strict=True)),
                flush=True,
            )
        if every is None:
            return 0
        time.sleep(every / times)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
