"""`nsw run` killed at its first start can always be continued: there is no campaign, or a whole one."""

import json
import subprocess
import sys
from pathlib import Path


def killed(seed: int, kills: int, folder: Path) -> dict:
    script = Path(__file__).with_name("first_start.py")
    done = subprocess.run([sys.executable, script, str(seed), str(kills), folder], capture_output=True, text=True,
                          check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_kills_at_the_first_start_leave_nothing_or_a_campaign_to_resume(tmp_path):
    found = killed(1, 12, tmp_path)
    assert not found["faults"]
    assert sum(found["left"].values()) == 12
