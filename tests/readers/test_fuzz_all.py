"""Every reader, through the door that users take, on damaged files of every format.

Whatever the bytes: no exception, an end, an answer that says why when it has no rows, values that JSON can hold,
and columns that the schema has. The seeds are whole reports (fuzz_seeds.py) that are cut, spliced, flipped,
written in another encoding or put behind one another.
"""

from __future__ import annotations

import importlib.util
import json
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nsw.readers import Options, ncu_binary, ncu_tool, nsys_binary, read
from nsw.readers.detect import detect
from nsw.readers.model import Sample
from nsw.readers.registry import FORMATS
from nsw.tables import TABLES, rows

_spec = importlib.util.spec_from_file_location("fuzz_seeds", Path(__file__).with_name("fuzz_seeds.py"))
fuzz_seeds = importlib.util.module_from_spec(_spec)
sys.modules["fuzz_seeds"] = fuzz_seeds
_spec.loader.exec_module(fuzz_seeds)

RUNAWAY = 20  # s: a guard; a file takes some 10 ms
EXAMPLES = 50


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    return fuzz_seeds.make(tmp_path_factory.mktemp("seeds"))


@pytest.fixture(scope="module", autouse=True)
def no_tools():
    """NVIDIA's own readers stay out of it: they crash on damaged files, which is tested where they are run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nsys_binary, "find_nsys", list)
        patch.setattr(ncu_tool, "find_ncu", list)
        patch.setattr(ncu_binary, "find_ncu", list)
        patch.setattr(ncu_binary, "extract_command", lambda _: None)
        yield


class Runaway(BaseException):
    """Nothing that a reader catches."""


def _runaway(*_):
    raise Runaway


def check(path, options=None):
    before = signal.signal(signal.SIGALRM, _runaway)
    signal.alarm(RUNAWAY)
    try:
        report = read(path, options or Options())
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    held = 0
    for name, data in report.tables.items():
        columns = set(TABLES[name].names)
        given_columns = {c for r in data for c in r} if isinstance(data, list) else set(data.column_names)
        assert given_columns <= columns, name
        for row in rows(name, data):
            json.dumps(row, allow_nan=False)
            held += 1
    errors = [p for p in report.problems if p.severity == "error"]
    assert held or errors
    assert all(p.message for p in report.problems)
    json.dumps([p.message for p in report.problems])
    # a reader knows its own faults: what `read` had to catch for it is a fault of nsw
    assert not [p for p in errors if p.message.startswith("damaged or unknown variant")], errors
    return report


NAMES = [
    "nvprof-summary.txt", "nvprof-trace.txt", "nvprof-metrics.csv", "trace.json", "out.prof", "a.nvvp", "a.nsys-rep",
    *(p.name.removesuffix(".gz") if ".json" not in p.suffixes else p.name
      for p in sorted(fuzz_seeds.FIXTURES.iterdir()) if p.suffix not in {".py", ".md"}),
]  # fmt: skip


def test_the_names_are_those_of_the_seeds(seeds):
    assert sorted(seeds) == sorted(NAMES)


def test_the_seeds_are_of_all_formats_that_are_files(seeds, tmp_path):
    found = set()
    for name, data in seeds.items():
        path = tmp_path / name
        path.write_bytes(data)
        found.add(check(path).format)
    assert found >= {f.id for f in FORMATS if not f.folder}


place = st.floats(0, 1)
damage = st.one_of(
    st.tuples(st.just("cut"), place),
    st.tuples(st.just("head off"), place),
    st.tuples(st.just("splice"), place, place, place),
    st.tuples(st.just("flip"), st.lists(st.tuples(place, st.integers(1, 255)), min_size=1, max_size=12)),
    st.tuples(st.just("insert"), place, st.binary(min_size=1, max_size=40)),
    st.tuples(st.just("encode"), st.sampled_from(["utf-16", "utf-16-le", "utf-8-sig", "cp1252"])),
    st.tuples(st.just("ends"), st.sampled_from([b"\r\n", b"\r", b"\n\n"])),
    st.tuples(st.just("join"), st.sampled_from(NAMES), place),
    st.tuples(st.just("digits"), st.sampled_from([b"9" * 400, b"-", b"1e999", b"nan", b"1,2.3.4", b""]), place),
)


def damaged(data, how, seeds):
    def at(fraction):
        return int(fraction * len(data))

    match how:
        case "cut", where:
            return data[: at(where)]
        case "head off", where:
            return data[at(where) :]
        case "splice", a, b, where:
            return data[: at(where)] + data[min(at(a), at(b)) : max(at(a), at(b))] + data[at(where) :]
        case "flip", several:
            changed = bytearray(data)
            for where, bits in several:
                if changed:
                    changed[min(at(where), len(changed) - 1)] ^= bits
            return bytes(changed)
        case "insert", where, more:
            return data[: at(where)] + more + data[at(where) :]
        case "encode", encoding:
            return data.decode("latin-1").encode(encoding, errors="replace")
        case "ends", ends:
            return data.replace(b"\n", ends)
        case "join", other, where:
            return data[: at(where)] + seeds[other]
        case "digits", number, where:
            start = next((i for i in range(at(where), len(data)) if data[i : i + 1].isdigit()), len(data))
            end = next((i for i in range(start, len(data)) if not data[i : i + 1].isdigit()), len(data))
            return data[:start] + number + data[end:]
    raise AssertionError(how)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(damage, min_size=1, max_size=3), st.booleans())
def test_damage_is_said_and_never_raised(name, seeds, tmp_path, several, traces):
    data = seeds[name]
    for how in several:
        data = damaged(data, how, seeds)[:1_500_000]
    path = tmp_path / name
    path.write_bytes(data)
    check(path, Options(frozenset({"gpu_trace", "api_trace"})) if traces else Options())


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=2000), st.sampled_from(["", ".csv", ".json", ".nvvp", ".ncu-rep", ".sqlite", ".gz", ".txt"]))
def test_any_bytes_under_any_name(tmp_path, data, suffix):
    path = tmp_path / f"file{suffix}"
    path.write_bytes(data)
    check(path)


def test_damaged_parts_of_a_folder(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path / "export"
    folder.mkdir()
    kernels = pa.table({"start": [1, 50], "end": [9, 70], "demangledName": [1, 1], "correlationId": [1, 2]})
    pq.write_table(kernels, folder / "CUPTI_ACTIVITY_KIND_KERNEL.parquet")
    pq.write_table(pa.table({"id": [1], "value": ["k"]}), folder / "StringIds.parquet")
    pq.write_table(pa.table({"utcTime": ["2026-01-01"]}), folder / "TARGET_INFO_SESSION_START_TIME.parquet")
    whole = (folder / "CUPTI_ACTIVITY_KIND_KERNEL.parquet").read_bytes()
    assert check(folder).format == "nsys-parquet"
    for end in range(0, len(whole), 97):
        (folder / "CUPTI_ACTIVITY_KIND_KERNEL.parquet").write_bytes(whole[:end])
        check(folder)


def test_a_reader_that_cannot_look_at_a_file_does_not_keep_it_from_the_others(seeds, tmp_path, monkeypatch):
    def broken(_):
        raise ValueError("no")

    monkeypatch.setattr("nsw.readers.nsys_sqlite.sniff", broken)
    path = tmp_path / "a.txt"
    path.write_bytes(seeds["nvprof-summary.txt"])
    found = detect(Sample(path))
    assert found is not None
    assert found[0].id == "nvprof-text"
