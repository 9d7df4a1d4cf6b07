"""A browser, the demo's page, and one with names that are markup."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nsw.analysis.blocks import Bars, Column, Curve, Evidence, Finding, Note, Table
from nsw.present.page import EvidenceRows, page

from . import browser as browsers

RECIPE = Path(__file__).parents[2] / "recipes" / "alexnet_scaling.yaml"
HOSTILE = (
    '<img src=x onerror="window.hacked=1">', "</script><script>window.hacked=1</script>", "<!--<script>",
    "'\"><svg onload=window.hacked=1>", "{{ 7*7 }}", "javascript:window.hacked=1", "\u202egpj.exe", "=1+1",
)  # fmt: skip


def pytest_collection_modifyitems(items):
    if browsers.MISSING:
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=browsers.MISSING))


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    with browsers.browser(tmp_path_factory.mktemp("profile")) as made:
        yield made


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """The page that `nsw report` writes of the demo."""
    root = tmp_path_factory.mktemp("demo of the page")
    environment = os.environ | {"NSW_ROOT": str(root)}
    for words in (["run", str(RECIPE), "--site", "demo"], ["report", "-o", "demo.html"]):
        subprocess.run(
            [sys.executable, "-m", "nsw", *words], check=True, env=environment, cwd=root, capture_output=True
        )
    return root / "demo.html"


@pytest.fixture(scope="session")
def comparison(demo):
    """The page of a comparison of two parts of the demo."""
    (campaign,) = (path for path in demo.parent.iterdir() if path.is_dir())
    words = ["compare", f"{campaign}:gpus=1", f"{campaign}:gpus=4", "-o", "comparison.html"]
    subprocess.run([sys.executable, "-m", "nsw", *words], check=True, cwd=demo.parent, capture_output=True)
    return demo.parent / "comparison.html"


@pytest.fixture(scope="session")
def hostile(tmp_path_factory):
    """A page whose every name is markup or worse."""
    columns = (Column("case", "case", "name"), Column("time", "time", "ns"))
    names = [*HOSTILE, *(f"kernel {n}" for n in range(30))]
    rows = tuple((name, float(at)) for at, name in enumerate(names))
    proof = (Evidence("figures", HOSTILE),)
    blocks = [
        Note("headline", HOSTILE[0], tone="heading"), Note("note", HOSTILE[1]),
        Table("answer", title=HOSTILE[1], columns=columns, rows=rows, evidence=proof),
        Table("others", title=HOSTILE[0], columns=columns, rows=rows, evidence=proof),
        Bars("bars", title=HOSTILE[3], columns=columns, rows=rows, evidence=proof, label="case", value="time"),
        Curve("curve", title=HOSTILE[0], columns=columns, rows=rows, evidence=proof, x="case", y="time"),
        *(Finding("f", name, evidence=proof) for name in HOSTILE),
        *(Note("case", name, tone="heading", case=name) for name in HOSTILE),
        *(Table("hotspots", title=name, columns=columns, rows=rows, case=name) for name in HOSTILE),
    ]  # fmt: skip
    behind = [
        EvidenceRows("figures", [{"case": name, name: name, "n": at} for at, name in enumerate(names)], HOSTILE[1])
    ]
    conditions = [(name, {name: name}) for name in HOSTILE]
    file = tmp_path_factory.mktemp("hostile") / "hostile.html"
    file.write_text(page(HOSTILE[1], blocks, behind=behind, conditions=conditions, commands=HOSTILE))
    return file
