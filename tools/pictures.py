"""Draws docs/pictures/page.png, README's picture: the page of the demo in Chromium, as `make pictures` does.

python tools/pictures.py
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "pictures" / "page.png"
SIZE = "1240,680"  # px
MOST = 150_000  # bytes, in a repository that people clone
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", f"--window-size={SIZE}",
)  # fmt: skip


def main() -> None:
    """Write the picture."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("pictures.py: no chromium: `sudo tests/tools/debian_packages.py browser` installs it")
    with tempfile.TemporaryDirectory(prefix="nsw-pictures-") as name:
        folder = Path(name)
        environment = os.environ | {"NSW_ROOT": str(folder / "campaigns"), "PYTHONPATH": str(ROOT)}
        for words in (
            ["run", str(ROOT / "recipes/alexnet_scaling.yaml"), "--site", "demo"],
            ["report", "-o", "page.html"],
        ):
            nsw = [sys.executable, "-m", "nsw", *words]
            subprocess.run(nsw, check=True, env=environment, cwd=folder, stdout=subprocess.DEVNULL)
        shot = folder / "page.png"
        words = [chromium, *FLAGS, f"--user-data-dir={folder / 'profile'}", f"--screenshot={shot}"]
        subprocess.run([*words, (folder / "page.html").as_uri()], check=True, stderr=subprocess.DEVNULL)
        size = shot.stat().st_size
        if size > MOST:
            raise SystemExit(f"pictures.py: the picture has {size:,} bytes, more than {MOST:,}")
        PICTURE.parent.mkdir(exist_ok=True)
        shutil.copyfile(shot, PICTURE)
        print(f"{PICTURE}: {size:,} bytes")


if __name__ == "__main__":
    main()
