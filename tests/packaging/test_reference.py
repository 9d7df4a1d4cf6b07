"""docs/reference.md is what the models say."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_reference_page_is_current():
    done = subprocess.run([sys.executable, ROOT / "tools" / "reference_page.py", "--check"], check=False, cwd=ROOT)
    assert done.returncode == 0, "run: python tools/reference_page.py"
