"""What the answer says of nsys's samples: which part of the iteration uses the tensor cores."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path

import pytest

from nsw.analysis.answer.registry import answer_blocks
from nsw.analysis.blocks import Note, Table
from nsw.analysis.of_reports import ReadReport, summarize_reports
from nsw.readers import read
from nsw.readers.model import Options

FIXTURE = Path(__file__).resolve().parents[1] / "fixtures" / "h100" / "sampled.sqlite.gz"


def answer(folder: Path, *statements: str, steps: str | None = None) -> tuple[list[Table], list[str]]:
    """Tables and sentences on GPU metrics of the recording, after changes to its database."""
    path = folder / "sampled.sqlite"
    path.write_bytes(gzip.decompress(FIXTURE.read_bytes()))
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    summary = summarize_reports("r", [ReadReport("r", read(path, Options(steps=steps)).tables)])
    blocks = [block for block in answer_blocks(summary) if block.name == "gpu metrics"]
    return [b for b in blocks if isinstance(b, Table)], [b.text for b in blocks if isinstance(b, Note)]


def test_a_sentence_says_in_which_kernels_the_tensor_cores_are_active(tmp_path):
    (table,), sentences = answer(tmp_path)
    (sentence,) = sentences
    assert sentence == (
        "r: the tensor cores are active 61 % of an iteration: 94 % of the time of GEMM kernels (65 % of an iteration),"
        " 0 % of the time of elementwise kernels (22 % of an iteration)"
    )
    shares = {row[1]: dict(zip((c.name for c in table.columns), row, strict=True)) for row in table.rows}
    assert shares["elementwise kernels"]["dram_read_pct"] == pytest.approx(89, abs=1)  # and what it writes
    assert shares["range upload"]["pcie_rx_pct"] == pytest.approx(91, abs=1)
    parts = ("computing", "copies", "idle")
    assert sum(shares[part]["time_pct"] for part in parts) == pytest.approx(shares["iteration"]["time_pct"])
    assert "nvlink_rx_pct" not in shares["iteration"]  # no column that no row has


def test_a_part_without_enough_samples_has_a_reason_and_no_share(tmp_path):
    (table,), sentences = answer(tmp_path, "DELETE FROM GPU_METRICS WHERE (timestamp / 100000) % 20 != 0")
    assert "idle" not in {row[1] for row in table.rows}
    assert "r: no GPU metrics of the part idle: 0 samples of 2,000 us, and 5 are needed" in sentences


def test_without_iterations_it_is_the_run_that_is_spoken_of(tmp_path):
    _, sentences = answer(
        tmp_path, "DELETE FROM NVTX_EVENTS", "DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE start > 30000000"
    )
    assert sentences[0].startswith("r: the tensor cores are active")
    assert "% of the run" in sentences[0]
    assert "iteration" not in sentences[0]


def test_without_the_metric_of_tensor_cores_nothing_is_said_of_them(tmp_path):
    (table,), sentences = answer(tmp_path, "DELETE FROM TARGET_INFO_GPU_METRICS WHERE metricName LIKE 'Tensor%'")
    assert not any("tensor" in sentence for sentence in sentences)
    assert "tensor_pct" not in {column.name for column in table.columns}


def test_reports_without_samples_have_neither(tmp_path):
    assert answer(tmp_path, "DROP TABLE GPU_METRICS") == ([], [])
