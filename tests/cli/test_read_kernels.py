"""`nsw read --table kernels`: the table of kernels with their counters, as text, JSON, CSV and Parquet."""

import csv
import gzip
import io
import json
import re
import shlex
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.analysis.test_diagnosis import recordings

FIXTURES = Path(__file__).parents[1] / "fixtures" / "h200"
MIXED = FIXTURES / "ncu-mixed.csv"


def test_a_row_a_kernel_in_every_format(nsw, home):
    data = json.loads(nsw("read", str(MIXED), "--table", "kernels", "--format", "json").out)
    (row,) = data["rows"]
    assert (row["short_name"], row["measured"]) == ("matmul_coalesced", 11)
    assert 49 < row["achieved_occupancy_pct"] < 51
    assert row["report"] == str(MIXED)

    (cells,) = csv.DictReader(io.StringIO(nsw("read", str(MIXED), "--table", "kernels", "--format", "csv").out))
    assert float(cells["achieved_occupancy_pct"]) == row["achieved_occupancy_pct"]

    assert nsw("read", str(MIXED), "--table", "kernels", "--output", "kernels.parquet").code == 0
    assert pq.read_table("kernels.parquet").to_pylist()[0]["achieved_occupancy_pct"] == row["achieved_occupancy_pct"]

    assert "matmul_coalesced" in nsw("read", str(MIXED), "--table", "kernels").out


def test_rooflines_have_a_row_a_point_and_top_limits_the_kernels(nsw, home):
    raw = home / "naive.raw.csv"
    raw.write_bytes(gzip.decompress((FIXTURES / "naive-raw.csv.gz").read_bytes()))
    rows = json.loads(nsw("read", str(raw), "--table", "roofline", "--format", "json").out)["rows"]
    assert {row["level"] for row in rows} == {"DRAM", "L2", "L1"}
    assert {row["short_name"] for row in rows} == {"matmul_naive"}
    both = nsw("read", str(raw), str(MIXED), "--table", "kernels", "--format", "json", "--top", "1")
    assert [row["short_name"] for row in json.loads(both.out)["rows"]] == ["matmul_naive", "matmul_coalesced"]
    shown = nsw("read", str(raw), "--table", "roofline").out
    assert "share: flop_per_s of roof_flop_per_s" in " ".join(shown.split())
    assert "metrics: [roofline]" in nsw("read", str(MIXED), "--table", "roofline").err


def test_a_file_without_counters_and_a_second_table_are_refused(nsw, home):
    said = nsw("read", str(FIXTURES / "lenet-table.txt"), "--table", "kernels", "--format", "csv", exits=1)
    assert "none of the files holds hardware counters of kernels" in said.err
    both = nsw("read", str(MIXED), "--table", "kernels", "--table", "metrics", exits=2)
    assert "ask for it alone: --table kernels" in both.err


@pytest.mark.parametrize("recording", ["h01", "h06"])
def test_a_timeline_and_counters_of_one_program_have_one_answer_whose_command_shows_its_shares(
    nsw, recording, tmp_path
):
    paths = [str(path) for path in recordings.unpack(recording, tmp_path).values()]
    answer = nsw("read", *paths).out
    assert answer.startswith(f"{recording}.sqlite with {recording}.raw.csv: ")
    (command,) = set(re.findall(r"`nsw (read .* --table kernels)`", answer))
    rows = json.loads(nsw(*shlex.split(command), "--json").out)["rows"]
    for kernel, share in re.findall(r"\* (\S+) \((\d+) % of the kernels' time\)", answer):
        (row,) = (row for row in rows if row["short_name"] == kernel)
        assert f"{row['share_pct']:.0f}" == share
        assert row["time_from"] == "timeline"
