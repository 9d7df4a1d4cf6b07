"""Damaged reports of Nsight Compute: no exception escapes, and no number appears that was not printed."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nsw.readers.model import Options
from nsw.readers.ncu import csv_reader as ncu_csv
from nsw.readers.ncu import text_reader as ncu_text
from nsw.tables.parquet_tables import full_rows

CSV = (
    '==PROF== Connected to process 42\n"ID","Process ID","Kernel Name","Section Name","Metric Name","Metric Unit",'
    '"Metric Value","Rule Name","Rule Type"\n"0","42","k(int, char)","S","Duration","us","628.03",\n'
    '"0","42","k(int, char)","S","Cycles","cycle","659,062",\n"0","42","k(int, char)","S","","","","R","OPT"\nbye\n'
)
TEXT = (
    "[42] app@127.0.0.1\n  k(int *) (64, 1, 1)x(16, 4, 1), Context 1, Stream 7, Device 0, CC 8.6\n    Section: S\n"
    "    ----------- ----------- ------------\n    Metric Name Metric Unit Metric Value\n"
    "    ----------- ----------- ------------\n    Duration             us       628.03\n"
    "    Cycles            cycle      659,062\n    ----------- ----------- ------------\n    OPT   Do.\n"
    "          More.\n"
)
PIECES = ['"', "\n", ",", "\r", "\0", '"\n"', "-----", "(!)", "9" * 400, "1e999", ", Context 1", " ", "\ufffd", "=="]
edit = st.tuples(st.integers(0, 700), st.integers(0, 60), st.sampled_from(["", *PIECES]))


def damaged(text, edits):
    for at, length, piece in edits:
        start = at % (len(text) + 1)
        text = text[:start] + piece + text[start + length :]
    return text


def check(read, path, text):
    path.write_text(text, encoding="utf-8", newline="")
    report = read(path, Options())
    found = {n: list(full_rows(n, t)) for n, t in report.tables.items()}
    digits = re.sub(r"[^0-9.]", "", text)
    for metric in found.get("metrics", []):
        for column in ("value", "min", "max", "avg"):
            if metric[column]:
                plain = re.sub(r"\.0$", "", format(abs(metric[column]), ".15g"))
                assert plain in digits or "e" in plain
    return found


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=st.lists(edit, min_size=1, max_size=4))
def test_damaged_csv(tmp_path, edits):
    text = damaged(CSV * 2 if len(edits) % 2 else CSV, edits)
    exact = check(ncu_csv.read, tmp_path / "r.csv", text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ncu_csv, "LARGE", 0)
        assert check(ncu_csv.read, tmp_path / "r.csv", text) == exact


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=st.lists(edit, min_size=1, max_size=4))
def test_damaged_text(tmp_path, edits):
    check(ncu_text.read, tmp_path / "r.txt", damaged(TEXT, edits))
