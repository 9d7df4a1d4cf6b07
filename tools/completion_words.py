"""Writes nsw/cli/words.json, which completion reads, from the commands and options of nsw.cli.commands."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from nsw.cli.commands import app  # noqa: E402
from nsw.cli.completion import SHIPPED, text_of  # noqa: E402

if __name__ == "__main__":
    SHIPPED.write_text(text_of(app), encoding="utf-8")
    sys.stdout.write(f"{SHIPPED}\n")
