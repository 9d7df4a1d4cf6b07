"""A Parquet file whose footer says that it is small, while its pages are not: what the pages say counts."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nsw.readers.detect import read
from nsw.readers.model import Options
from nsw.tables import as_arrow
from nsw.tables.parquet_tables import PageError, StoredTableError, stored_rows, stored_table, unpacked_sizes
from nsw.tables.unpacking_limit import TooMuchError

LONG = 1_000_000
ROW = {"run": "r", "report": "a", "kind": "kernel", "name": "k" * LONG, "total_ns": 1, "calls": 1}


def varint(number):
    """A number as the footer has it."""
    number, digits = number << 1, []
    while number:
        digits.append(number & 127 | 128)
        number >>= 7
    return bytes([*digits[:-1], digits[-1] & 127])


def as_small(path):
    """The file with a footer that says that each column, and all of them, unpack to one byte."""
    groups = pq.ParquetFile(path).metadata.row_group(0)
    sizes = {groups.column(n).total_uncompressed_size for n in range(groups.num_columns)} | {groups.total_byte_size}
    data = path.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    text = data[footer:]
    for size in sizes:
        if size > LONG // 2:
            known = varint(size)
            text = text.replace(known, b"\x82" + b"\x80" * (len(known) - 2) + b"\x00")  # 1, as long as what it replaces
    path.write_bytes(data[:footer] + text)
    assert pq.ParquetFile(path).metadata.row_group(0).total_byte_size == 1
    return path


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "gpu_summary.parquet"
    pq.write_table(as_arrow("gpu_summary", [ROW]), path, compression="zstd", write_statistics=False)
    return path


@pytest.mark.parametrize("how", [stored_rows, stored_table])
def test_what_a_table_unpacks_to_is_known_before_it_is_unpacked(table, how):
    counting = pa.proxy_memory_pool(before := pa.default_memory_pool())
    with as_small(table).open("rb") as file:
        pa.set_memory_pool(counting)
        try:
            with pytest.raises(TooMuchError):
                how(file, "gpu_summary", LONG)
        finally:
            pa.set_memory_pool(before)
    assert counting.max_memory() < LONG
    with table.open("rb") as file:
        assert len(how(file, "gpu_summary", 100 * LONG)) == 1


def test_what_an_export_unpacks_to_is_known_before_it_is_unpacked(tmp_path):
    pq.write_table(pa.table({"name": ["a"], "value": ["b"]}), tmp_path / "META_DATA_EXPORT.parquet")
    path = tmp_path / "StringIds.parquet"
    pq.write_table(pa.table({"id": [0], "value": ["k" * LONG]}), path, compression="zstd", write_statistics=False)
    zeros = {key: [0] for key in ("start", "end", "nameId", "globalTid", "returnValue", "correlationId")}
    pq.write_table(pa.table(zeros), tmp_path / "CUPTI_ACTIVITY_KIND_RUNTIME.parquet")
    as_small(path)
    counting = pa.proxy_memory_pool(before := pa.default_memory_pool())
    pa.set_memory_pool(counting)
    try:
        report = read(tmp_path, Options(max_unpacked=LONG // 2))
    finally:
        pa.set_memory_pool(before)
    assert any("StringIds" in one.message and "unpack to more" in one.message for one in report.problems)
    assert counting.max_memory() < LONG


@pytest.mark.parametrize(
    "options", [{}, {"data_page_version": "2.0"}, {"use_dictionary": False}, {"compression": "none"}]
)
def test_the_pages_are_those_that_an_honest_footer_counts(tmp_path, options):
    path = tmp_path / "t.parquet"
    rows = [ROW | {"name": f"k{n % 7000}", "calls": n} for n in range(50_000)]
    pq.write_table(as_arrow("gpu_summary", rows), path, row_group_size=20_000, data_page_size=10_000, **options)
    footer = pq.ParquetFile(path).metadata
    said = sum(footer.row_group(n).total_byte_size for n in range(footer.num_row_groups))
    with path.open("rb") as file:
        found = list(unpacked_sizes(file, footer))
    assert len(found) > 30
    assert 0.8 * said < sum(found) <= said  # which counts the headers too


def test_a_table_without_rows_has_no_pages(tmp_path):
    """As nsys exports tables that stayed empty: their pages are said to begin at byte 0."""
    pq.write_table(pa.table({"start": pa.array([], pa.int64()), "name": pa.array([], pa.string())}), tmp_path / "t")
    footer = pq.ParquetFile(tmp_path / "t").metadata
    assert footer.num_row_groups == 1
    with (tmp_path / "t").open("rb") as file:
        assert list(unpacked_sizes(file, footer)) == []


def test_pages_that_are_none_are_an_error_whatever_is_there(table):
    whole = table.read_bytes()
    footer = pq.ParquetFile(table).metadata
    for byte in range(256):
        with pytest.raises(PageError):
            list(unpacked_sizes(io.BytesIO(bytes([byte]) * 5000 + b"\x00" * 100), footer))
    table.write_bytes(b"PAR1" + b"\xff" * 100 + whole[104:])
    with table.open("rb") as file, pytest.raises(StoredTableError):
        stored_rows(file, "gpu_summary")
