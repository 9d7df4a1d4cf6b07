"""What is packed is unpacked to a limit, and said: the limit, and the option that raises it."""

import gzip
import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nsw import apart as unpacking
from nsw.readers import Options, read, untrusted_files
from nsw.readers.pytorch import kineto_events
from nsw.tables import full_rows

EVENT = {"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2, "args": {"device": 0, "stream": 7}}
HEAD = b'{"schemaVersion": 1, "deviceProperties": [], "traceEvents": [\n'
KB = 1024


def trace(events):
    return HEAD + b",\n".join([json.dumps(EVENT).encode()] * events) + b"]}"


@pytest.fixture
def packed(tmp_path):
    """A trace of some 100 kB in some 1 kB."""
    path = tmp_path / "a.pt.trace.json.gz"
    path.write_bytes(gzip.compress(trace(1000)))
    return path


def test_a_trace_that_unpacks_to_more_than_is_allowed_is_refused_with_the_option(packed):
    report = read(packed, Options(max_unpacked=50 * KB))
    (problem,) = report.problems
    assert not report.tables
    assert "unpack to more than 50.0 KiB" in problem.message
    assert "--max-unpacked" in problem.fix
    assert read(packed, Options(max_unpacked=200 * KB)).tables["gpu_summary"][0]["calls"] == 1000


def test_by_default_a_file_unpacks_to_fifty_times_its_size_and_at_least_to_some(packed, monkeypatch):
    assert not read(packed).problems
    monkeypatch.setattr(unpacking, "_MIN_ALLOWANCE", 10 * KB)
    assert packed.stat().st_size * 50 < len(trace(1000))
    assert "unpack to more than" in read(packed).problems[0].message


def test_a_trace_that_says_less_of_itself_is_read_to_the_limit(tmp_path, monkeypatch):
    """The size at the end of a gzip file is that of its last part only, and anyone may write it."""
    path = tmp_path / "a.pt.trace.json.gz"
    for module in (kineto_events, untrusted_files):
        monkeypatch.setattr(module, "_WINDOW", 10 * KB)
    path.write_bytes(gzip.compress(trace(1000)) + gzip.compress(b"\n"))
    report = read(path, Options(max_unpacked=50 * KB))
    (problem,) = report.problems
    assert "everything before this point was read" in problem.message
    assert "--max-unpacked" in problem.fix
    assert 100 < report.tables["gpu_summary"][0]["calls"] < 1000


def test_a_cut_trace_whose_last_bytes_are_a_large_number_is_read_as_far_as_it_goes(tmp_path):
    path = tmp_path / "a.pt.trace.json.gz"
    path.write_bytes(gzip.compress(trace(1000), compresslevel=0)[:-500])  # the last bytes are letters
    report = read(path, Options(max_unpacked=200 * KB))
    assert report.tables["gpu_summary"][0]["calls"] > 900
    assert "unpack to" not in report.problems[0].message


def export(folder, ending, **tables):
    """An export of nsys as a folder of packed files."""
    folder.mkdir()
    basic = {"META_DATA_EXPORT": pa.table({"name": ["a"], "value": ["b"]}), "StringIds": strings(["k"])}
    for name, table in (basic | tables).items():
        path = folder / f"{name}.{ending}"
        if ending == "parquet":
            pq.write_table(table, path, compression="zstd")
            continue
        packed = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema, options=packed) as stream:
            stream.write_table(table)
    return folder


def strings(texts):
    return pa.table({"id": list(range(len(texts))), "value": texts})


def calls(count):
    zeros = pa.array([0] * count)
    return pa.table(dict.fromkeys(("start", "end", "nameId", "globalTid", "returnValue", "correlationId"), zeros))


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_one_long_text_in_many_rows_of_an_export_is_read(tmp_path, ending):
    many = strings(["k" * 100_000] * 500)  # 50 MB in some kilobytes
    folder = export(tmp_path / "e", ending, CUPTI_ACTIVITY_KIND_RUNTIME=calls(3), StringIds=many)
    assert read(folder).tables["api_summary"][0]["calls"] == 3


def test_an_arrow_stream_whose_places_lead_out_of_it_is_damaged(tmp_path):
    """Arrow itself reads what a buffer's length promises."""
    folder = export(tmp_path / "e", "arrow", CUPTI_ACTIVITY_KIND_RUNTIME=calls(3))
    path = folder / "CUPTI_ACTIVITY_KIND_RUNTIME.arrow"
    whole = path.read_bytes()
    for at in range(0, len(whole) - 8, 4):
        path.write_bytes(whole[:at] + b"\xff\xff\xff\x7f" + whole[at + 4 :])
        report = read(folder)
        assert report.problems or report.tables["api_summary"]


def test_a_pipe_given_by_name_is_not_waited_for(tmp_path):
    path = tmp_path / "a.csv"
    os.mkfifo(path)
    held = os.open(path, os.O_RDWR)  # a reader that opened it would find something, and not wait
    try:
        os.write(held, trace(3))
        (problem,) = read(path).problems
    finally:
        os.close(held)
    assert problem.message == "a pipe, not a file"
    assert "nsw read -" in problem.fix


def test_a_device_is_not_read():
    assert read(Path("/dev/zero")).problems[0].message == "a device, not a file"


def test_events_that_are_none_are_counted(tmp_path):
    path = tmp_path / "a.pt.trace.json"
    path.write_bytes(HEAD + b"1," * 50_000 + b"1]}")
    assert "50001 damaged events were skipped" in [p.message for p in read(path).problems]


def test_an_event_without_its_end_does_not_swallow_those_behind_it(tmp_path, monkeypatch):
    path = tmp_path / "a.pt.trace.json"
    monkeypatch.setattr(kineto_events, "_LARGEST", 1 << 20)
    events = b",".join([json.dumps(EVENT).encode()] * 60_000)
    path.write_bytes(trace(1)[:-2] + b',{"ph":[' + events + b"]}")
    report = read(path)
    assert "1 damaged events were skipped" in [p.message for p in report.problems]
    assert report.tables["gpu_summary"][0]["calls"] == 60_000  # and the one before, less the first behind it


def test_rows_are_the_same_however_they_are_packed(tmp_path):
    table = calls(10)
    wanted = read(export(tmp_path / "p", "parquet", CUPTI_ACTIVITY_KIND_RUNTIME=table)).tables["api_summary"]
    found = read(export(tmp_path / "a", "arrow", CUPTI_ACTIVITY_KIND_RUNTIME=table)).tables["api_summary"]
    assert list(full_rows("api_summary", found)) == list(full_rows("api_summary", wanted))
