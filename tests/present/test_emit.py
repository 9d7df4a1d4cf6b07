"""Data for machines: JSON without what JSON has not, CSV that no spreadsheet executes, Parquet of any values."""

import csv
import io
import json
import math

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsw.analysis.blocks import Ceiling
from nsw.errors import NswError, UsageError
from nsw.present.emit import as_csv, as_json, as_parquet, without_nonfinite


def test_json_carries_its_version_and_no_nan(capsys):
    as_json({"a": float("nan"), "b": [float("inf"), {"c": (1.5, -float("inf"))}], "d": "é\x1b"})
    text = capsys.readouterr().out
    assert json.loads(text) == {"nsw_json": 1, "a": None, "b": [None, {"c": [1.5, None]}], "d": "é\x1b"}
    assert "NaN" not in text
    assert "Infinity" not in text
    assert "\x1b" not in text
    assert text.endswith("\n")


def test_a_dataclass_is_an_object_of_its_fields_and_an_iterator_a_list(capsys):
    point = Ceiling("DRAM", math.inf, 3e12)
    as_json({"some": iter([point, point]), "none": iter(()), "one": {"of": (point,)}})
    data = {"name": "DRAM", "y": None, "slope": 3e12, "source": None}
    assert json.loads(capsys.readouterr().out) == {
        "nsw_json": 1, "some": [data, data], "none": [], "one": {"of": [data]},
    }  # fmt: skip


@settings(max_examples=50, deadline=None)
@given(
    st.recursive(
        st.none() | st.floats() | st.text() | st.integers(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)
    )
)
def test_finite_values_can_be_written_strictly(value):
    json.dumps(without_nonfinite(value), allow_nan=False)


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "=cmd|' /C calc'!A0"])
def test_no_cell_of_csv_is_a_formula(capsys, cell):
    as_csv([{"name": cell, "n": -5}], ("name", "n"))
    _head, row = list(csv.reader(io.StringIO(capsys.readouterr().out, newline="")))
    assert row == ["'" + cell.replace("\r", "\n"), "-5"]


def test_a_cell_that_begins_with_a_line_break_is_none_either(capsys):
    as_csv([{"name": "\n=1+1"}, {"name": " =1+1"}], ("name",))
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out, newline="")))[1:]
    assert [row[0][0] for row in rows] == ["'", "'"]


def test_csv_keeps_texts_and_leaves_absent_values_empty(capsys):
    as_csv([{"a": 'x,"y"\nz', "b": None}, {"a": "漢"}], ("a", "b"))
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out, newline="")))
    assert rows == [["a", "b"], ['x,"y"\nz', ""], ["漢", ""]]


def test_the_heads_of_csv_are_no_formulas_either(capsys):
    as_csv([{"=a": 1}], ("=a",))
    assert capsys.readouterr().out.splitlines()[0] == "'=a"


def test_parquet_takes_columns_of_mixed_values(tmp_path):
    file = tmp_path / "x.parquet"
    as_parquet(
        [{"v": 1, "w": 1, "x": None}, {"v": "tiled", "w": 2.5}, {"v": True, "w": None}], ("v", "w", "x"), file, "note"
    )
    table = pq.read_table(file)
    assert table.to_pydict() == {"v": ["1", "tiled", "True"], "w": [1.0, 2.5, None], "x": [None, None, None]}
    assert table.schema.metadata[b"nsw_note"] == b"note"


def test_parquet_needs_a_file_that_can_be_written(tmp_path):
    with pytest.raises(UsageError, match="writes a file"):
        as_parquet([], (), None)
    with pytest.raises(NswError, match="cannot be written"):
        as_parquet([{"a": 1}], ("a",), tmp_path / "none" / "x.parquet")
