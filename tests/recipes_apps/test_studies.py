"""The studies: each page has its recipe, its pictures and its place in the index; what it says of the document's numbers.

The documents' tables that are whole: of 001 (AlexNet) three of nvprof, in tests/fixtures/documents; of 003 the ranges of
Figure 11, in tests/analysis/test_effective.py; of 004 PyTorch's, in tests/readers/test_torch_table.py. Torn are nvprof's tables of
000 (names over several lines) and 002's pair of GEMM (names apart from their rows); the pages quote their times.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from nsw.readers import Options, read
from nsw.tables import full_rows

ROOT = Path(__file__).resolve().parents[2]
STUDIES = ROOT / "docs" / "studies"
PAGES = sorted(path for path in STUDIES.glob("*.md") if path.name != "README.md")
DOCUMENTS = ROOT / "tests" / "fixtures" / "documents"


def links(page: Path) -> list[str]:
    return [link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", page.read_text())]


@pytest.mark.parametrize("page", [*PAGES, STUDIES / "README.md"], ids=lambda page: page.name)
def test_what_a_page_links_to_is_there(page: Path):
    assert [link for link in links(page) if not (STUDIES / link).exists()] == []


def test_every_study_is_in_the_index_with_its_recipe():
    index = links(STUDIES / "README.md")
    assert [page.name for page in PAGES if page.name not in index] == []
    assert all(f"../../recipes/{page.stem}.yaml" in index for page in PAGES)


def test_every_picture_is_on_a_page():
    shown = {link for page in PAGES for link in links(page)}
    assert [path.name for path in STUDIES.glob("*.svg") if path.name not in shown] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_yaml_of_a_page_is_that_of_a_recipe(page: Path):
    """Line by line, without comments and what the page leaves out as `...`."""
    recipes = "\n".join((STUDIES / link).read_text() for link in links(page) if link.endswith(".yaml"))
    lines = {re.sub(r" *#.*", "", line).strip() for line in recipes.splitlines()}
    for block in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL):
        shown = [re.sub(r" *#.*", "", line).strip() for line in block.splitlines()]
        assert [line for line in shown if line not in lines and "..." not in line] == []


def test_theta_runs_the_course_s_commands():
    words = ["render", "recipes/theta_mnist_cpu.yaml", "--site", "theta", "--sites", "recipes/sites/theta.yaml"]
    case = ["--case", "threads=64,layout=nchw", "--pass", "hotspots", "--pass", "snapshot"]
    scripts = subprocess.run(
        [sys.executable, "-m", "nsw", *words, *case], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    page = (STUDIES / "theta_mnist_cpu.md").read_text()
    (block,) = re.findall(r"```text\n(aprun .*?)```", page, re.DOTALL)
    commands = block.replace("\n  ", " ").splitlines()
    assert len(commands) == 2
    assert all(command in scripts for command in commands)


@pytest.fixture
def alexnet() -> list[list[dict]]:
    """The rows of the three tables: one GPU at batch 16, four at 16 and 128."""
    report = read(DOCUMENTS / "alexnet-nvprof.txt", Options())
    assert [problem for problem in report.problems if problem.severity == "error"] == []
    found: dict[int, list[dict]] = {}
    for row in full_rows("gpu_summary", report.tables["gpu_summary"]):
        found.setdefault(row["block"], []).append(row)
    return list(found.values())


def share(table: list[dict], name: str) -> float:
    return sum(row["time_pct"] for row in table if name in row["name"])


def test_the_share_of_nccl_of_the_document_is_that_of_the_page(alexnet):
    page = (STUDIES / "alexnet_scaling.md").read_text()
    assert [len(table) for table in alexnet] == [10, 8, 13]
    for table, batch in zip(alexnet[1:], (16, 128), strict=True):
        assert f"| {batch} |" in page
        assert f"= {share(table, 'nccl'):.1f} % |" in page


def test_updating_the_weights_takes_the_same_time_at_every_batch(alexnet):
    for table in alexnet:
        two = [row["total_ns"] / 1e6 for row in table if "PointwiseApply2" in row["name"]]
        assert len(two) == 2
        assert all(89 < ms < 93 for ms in two)


@pytest.mark.parametrize(
    ("page", "before", "after", "gain"),
    [
        ("gemm_batching.md", 575.72, 198.11, 2.91),
        ("gemm_batching.md", 53.55, 18.03, 2.97),
        ("amp_networks.md", 1.539, 1.905, 0.81),
        ("amp_networks.md", 2.344, 3.433, 0.68),
        ("amp_networks.md", 55.807, 48.876, 1.14),
        ("amp_networks.md", 1126, 601.84, 1.87),
        ("amp_networks.md", 2282, 714.885, 3.19),
    ],
)
def test_a_gain_is_the_ratio_of_its_times(page: str, before: float, after: float, gain: float):
    (line,) = [
        line
        for line in (STUDIES / page).read_text().splitlines()
        if line.startswith("|") and f"{before:,}" in line and f"{after:,}" in line
    ]
    assert f"| {gain} |" in line
    assert round(before / after, 2) == gain
