"""Matrix products of known size on an H200: what ncu counted is 2 m n k FLOP, by the portable names, within 1 %."""

import csv
import gzip
import re
from pathlib import Path

import pytest

from nsw.metrics import find_metric
from nsw.metrics.catalogue import evaluate_expression, metric_names_in_expression
from nsw.readers import read
from nsw.tables import full_rows

GEMM = Path(__file__).parents[1] / "fixtures" / "h200" / "counters" / "gemm.raw.csv.gz"
TENSOR = {
    "fp64": "tensor_ops_fp64", "tf32": "tensor_ops_tf32", "fp16": "tensor_ops_fp16", "bf16": "tensor_ops_bf16",
    "fp8": "tensor_ops_fp8", "int8": "tensor_ops_int8", "triton16": "tensor_ops_fp16",
}  # fmt: skip


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """FLOP of each product, (kind, m, n, k) -> portable name -> sum over its kernels."""
    file = tmp_path_factory.mktemp("gemm") / "gemm.raw.csv"
    file.write_bytes(gzip.decompress(GEMM.read_bytes()))
    with file.open() as lines:
        ranges = {
            row["ID"]: re.search(r"(\w+?)x(\d+)x(\d+)x(\d+)", " ".join(row.values())) for row in csv.DictReader(lines)
        }
    found = {}
    for row in full_rows("metrics", read(file).tables["metrics"]):
        name = ranges[str(row["launch_id"])]
        key = (name[1], *map(int, name.groups()[1:]))
        of = found.setdefault(key, {})
        for name, number in ((row["portable"], row["portable_value"]), (row["metric"], row["value"])):
            if name and number is not None:
                of[name] = of.get(name, 0) + number
    return found


@pytest.mark.parametrize("kind", TENSOR)
@pytest.mark.parametrize("size", [(1024, 1024, 1024), (2048, 4096, 1024)])
def test_tensor_cores_count_two_operations_a_multiplication(counted, kind, size):
    m, n, k = size
    assert counted[kind, m, n, k][TENSOR[kind]] == pytest.approx(2 * m * n * k, rel=0.01)


@pytest.mark.parametrize("size", [(1024, 1024, 1024), (2048, 4096, 1024), (4096, 4096, 4096)])
def test_fp32_products_are_counted_by_instructions(counted, size):
    """flop_count_sp: an addition and a multiplication each fused multiply-add."""
    m, n, k = size
    of = counted["fp32", m, n, k]
    (expression, *_) = find_metric("flop_count_sp").ncu.expressions
    assert evaluate_expression(
        expression, {name: of.get(name, 0.0) for name in metric_names_in_expression(expression)}
    ) == pytest.approx(2 * m * n * k, rel=0.01)


def test_a_tile_that_does_not_fit_executes_more_than_the_product_needs(counted):
    """256 x 512 x 768 in tiles of 24 columns: an eighth of the work is padding."""
    assert counted["bf16", 256, 512, 768]["tensor_ops_bf16"] == pytest.approx(1.125 * 2 * 256 * 512 * 768, rel=1e-6)
