"""Tables of campaigns as they are stored: one that is none, and one that takes more memory than it may."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nsw.apart import Limits, run_isolated
from nsw.errors import LimitError
from nsw.tables import to_arrow
from nsw.tables.parquet_tables import StoredTableError, read_stored_rows, read_stored_table

LONG = 1_000_000
ROW = {"run": "r", "report": "a", "kind": "kernel", "name": "k" * LONG, "total_ns": 1, "calls": 1}


@pytest.fixture
def table(tmp_path):
    """Some kilobytes that are a gigabyte as Arrow has it."""
    path = tmp_path / "gpu_summary.parquet"
    with pq.ParquetWriter(path, to_arrow("gpu_summary", [ROW]).schema, compression="zstd") as file:
        for _ in range(10):
            file.write_table(to_arrow("gpu_summary", [ROW] * 100))
    return path


def opened(how, path):
    with path.open("rb") as file:
        return len(how(file, "gpu_summary"))


def test_a_table_that_takes_more_memory_than_it_may_is_refused(table):
    assert table.stat().st_size < LONG
    with pytest.raises(LimitError, match="reading it takes more than 900 MiB"):
        run_isolated(opened, read_stored_table, table, subject="reading it", size=0, limits=Limits(memory=900 << 20))
    assert opened(read_stored_rows, table) == 1000  # one long text is there once


@pytest.mark.parametrize("how", [read_stored_rows, read_stored_table])
def test_a_file_that_is_no_such_table_or_damaged_is_an_error(table, how):
    whole = table.read_bytes()
    pq.write_table(pa.table({"run": ["r"], "report": ["a"], "calls": ["many"]}), table)
    with pytest.raises(StoredTableError, match="its column calls holds string"):
        opened(how, table)
    pq.write_table(pa.table({"run": ["r"]}), table)
    with pytest.raises(StoredTableError, match="it has no column report"):
        opened(how, table)
    table.write_bytes(b"PAR1" + b"\xff" * 100 + whole[104:])
    with pytest.raises((pa.ArrowException, OSError)):
        opened(how, table)
