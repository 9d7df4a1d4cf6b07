"""The table of causes: docs/causes.md is made of it, and rules name nothing else."""

import re
import subprocess
import sys
from pathlib import Path

from nsw.analysis.rules.causes import causes

ROOT = Path(__file__).parents[2]


def test_the_page_of_causes_is_current():
    done = subprocess.run([sys.executable, ROOT / "tools" / "causes_page.py", "--check"], check=False, cwd=ROOT)
    assert done.returncode == 0, "run: python tools/causes_page.py"


def test_each_cause_has_an_id_in_kebab_case_and_a_remedy_for_any_framework():
    for name, cause in causes().items():
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
        assert cause.remedy().endswith(".")
        assert cause.measured_by in {"counters", "timeline", "host"}
        assert cause.group in {"kernels", "timeline", "gpus", "host", "healthy"}


def test_a_remedy_is_in_the_words_of_the_framework_where_they_differ():
    reads = causes()["scalar-reads"]
    assert ".item()" in reads.remedy("pytorch")
    assert ".item()" not in reads.remedy()
    assert reads.remedy("fortran") == reads.remedy()


def test_what_looks_alike_is_named_by_its_id():
    named = {word for cause in causes().values() for word in re.findall(r"\b[a-z0-9]+(?:-[a-z0-9]+)+\b", cause.alike)}
    assert {word for word in named if word in causes()} >= {"uncoalesced-access", "occupancy-enough", "data-loader"}
