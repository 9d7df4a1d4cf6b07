"""docs/reference.md is what the models say."""

import subprocess
import sys
from pathlib import Path

from nsw.site.names import schedulers, transports

ROOT = Path(__file__).parents[2]


def test_the_reference_page_is_current():
    done = subprocess.run([sys.executable, ROOT / "tools" / "reference_page.py", "--check"], check=False, cwd=ROOT)
    assert done.returncode == 0, "run: python tools/reference_page.py"


def test_what_the_plan_refuses_is_marked_and_the_sections_of_sites_are_one_line():
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8").splitlines()
    line = {text.split("`")[1]: text for text in page if text.startswith("| `")}
    for key, later, here in (
        ("scheduler", (), schedulers()),
        ("transport.kind", (), transports()),
    ):
        assert all(f"{name} (not yet)" in line[key] for name in later)
        assert not any(f"{name} (not yet)" in line[key] for name in here)
    assert "vtune (not yet)" in line["passes[].host.tool"]
    assert "not yet" not in line["passes[].timeline.tool"]
    assert not any(key.startswith("sites.") for key in line)
