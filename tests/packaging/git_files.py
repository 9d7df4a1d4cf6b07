"""The files that git tracks."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def tracked(*folders: str) -> list[Path]:
    """The tracked files that are there, of some folders or of all; skips the test where git cannot tell."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", *folders], cwd=ROOT, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        pytest.skip("no git here")
    if listed.returncode:  # an unpacked archive; or a checkout of another user, which git does not open
        lines = listed.stderr.splitlines() or ["no reason given"]
        pytest.skip(f"git does not list the checkout's files: {lines[0]}")
    if not listed.stdout:  # an archive that was unpacked in another checkout
        pytest.skip("git tracks no files here")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]
