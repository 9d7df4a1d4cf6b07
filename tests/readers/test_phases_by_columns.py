"""Phases of a trace in memory are the same whether its rows are dicts or columns of Arrow."""

import random

import pyarrow as pa
import pytest

from nsw.readers.model import PHASE_TABLES, Options, Report
from nsw.readers.timeline.process_phases import add_phases
from nsw.readers.timeline.statistics import ABSENT, text_codes, whole_numbers
from nsw.tables import to_arrow

STEPS = 20
KERNELS = ("gemm", "relu", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "sgd", "gemm")
EVERY = Options(tables=frozenset(PHASE_TABLES))


def traces(seed, **of_operations):
    """Rows of gpu_trace and api_trace, in random order: each step launches its kernels and copies once."""
    dice = random.Random(seed)
    work, calls = [], []
    now = 1_000_000
    for number in range(STEPS * len(KERNELS)):
        now += dice.randrange(1000, 5000)
        origin = {"block": 0, "pid": 7}
        calls.append(origin | {"name": "cudaLaunchKernel", "start_ns": now - 900, "duration_ns": 300,
                               "correlation": number})  # fmt: skip
        name = KERNELS[number % len(KERNELS)]
        row = {"kind": "kernel", "name": f"{name}(int)", "short_name": name, "mangled_name": f"_Z{name}{number}"}
        if number % len(KERNELS) == 1:
            row = {"kind": "memcpy", "name": "[CUDA memcpy HtoD]", "short_name": "[CUDA memcpy HtoD]", "bytes": 64.0}
        row |= {"start_ns": now, "duration_ns": dice.randrange(100, 900), "device": 0}
        work.append(origin | row | ({"correlation": number} if number % 7 else {}) | of_operations)
    calls += [calls[5] | {"start_ns": None}, calls[5] | {"correlation": None}, calls[9] | {"start_ns": 1}]
    work += [work[0] | {"kind": "um", "name": "[Unified Memory page faults]", "start_ns": None, "block": 3}]
    dice.shuffle(work)
    dice.shuffle(calls)
    return work, calls


def in_chunks(table, rows):
    """The rows in Arrow: several chunks, texts as codes, only the columns that have values."""
    whole = to_arrow(table, rows)
    whole = whole.select([c for c in whole.column_names if whole[c].null_count < len(whole)])
    return pa.concat_tables([_with_codes(whole.slice(at, 17)) for at in range(0, len(whole), 17)])


def _with_codes(part):
    columns = [c.dictionary_encode() if c.type == pa.string() else c for c in part.columns]
    return pa.table(columns, part.column_names)


def phases_of(work, calls):
    report = Report("trace.csv", tables={"gpu_trace": work, "api_trace": calls})
    add_phases(report, EVERY)
    return {name: report.tables[name] for name in PHASE_TABLES if name in report.tables}


@pytest.mark.parametrize("seed", range(8))
def test_rows_and_columns_have_the_same_phases(seed):
    work, calls = traces(seed)
    found = phases_of(work, calls)
    assert set(found) == set(PHASE_TABLES)
    assert found["iterations"][0]["iterations"] >= STEPS - 1
    for changed in (to_arrow, in_chunks):
        assert phases_of(changed("gpu_trace", work), changed("api_trace", calls)) == found
    assert {(row["block"], row["rank"], row["pid"]) for rows in found.values() for row in rows} == {(0, None, 7)}


def test_of_calls_with_one_correlation_id_the_last_launched():
    work, calls = traces(1)
    calls = [call | {"start_ns": call["start_ns"] or 1} for call in calls]
    again = [call | {"start_ns": 10**9} for call in calls] + calls
    assert phases_of(work, again) == phases_of(in_chunks("gpu_trace", work), in_chunks("api_trace", again))
    alone = [row for row in phases_of(work, again)["phase_summary"] if row["summary"] != "api_summary"]
    assert alone == [row for row in phases_of(work, calls)["phase_summary"] if row["summary"] != "api_summary"]


@pytest.mark.parametrize("made", [lambda _, rows: rows, to_arrow, in_chunks])
@pytest.mark.parametrize("change", [{"start_ns": None}, {"duration_ns": None}, {"rank": 1}, {"block": 1}])
def test_what_is_not_known_to_be_one_process_or_has_no_times_is_not_split(made, change):
    work, calls = traces(1)
    at = next(i for i, row in enumerate(work) if row["kind"] == "kernel")
    work[at] |= change
    assert phases_of(made("gpu_trace", work), made("api_trace", calls)) == {}


@pytest.mark.parametrize("made", [lambda rows: rows, pa.Table.from_pylist])
def test_a_column_is_numbers_and_which_of_them_are_known(made):
    data = made([{"a": 1.5, "b": 3}, {"a": None, "b": 2**62 + 1}, {"a": float("nan"), "b": None}, {"a": 1e30, "b": 4}])
    values, known = whole_numbers(data, "a")
    assert (values.tolist(), known.tolist()) == ([1, ABSENT, ABSENT, ABSENT], [True, False, False, False])
    values, known = whole_numbers(data, "b")
    assert (values.tolist(), known.tolist()) == ([3, 2**62 + 1, ABSENT, 4], [True, True, False, True])
    values, known = whole_numbers(data, "c")
    assert (values.tolist(), known.any()) == ([ABSENT] * 4, False)


@pytest.mark.parametrize("made", [lambda rows: rows, pa.Table.from_pylist])
def test_texts_are_numbered_by_their_first_rows(made):
    data = made([{"a": text} for text in ("b", "a", None, "b", "c")])
    codes, texts = text_codes(data, "a")
    assert (codes.tolist(), texts) == ([0, 1, 2, 0, 3], ["b", "a", "", "c"])
    codes, texts = text_codes(data, "a", codes > 1)
    assert (codes.tolist(), texts) == ([0, 1], ["", "c"])
    assert text_codes(data, "z")[1] == [""]
