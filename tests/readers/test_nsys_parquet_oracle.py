"""What nsys exports as Parquet or Arrow is read as its SQLite export is: every table, every row, every figure."""

import shutil
import sqlite3
import subprocess
import sys

import pytest

from nsw.readers import Options, read
from nsw.tables import TABLES, full_rows
from tests.nsys_faults import profiled

ALL = Options(frozenset(TABLES))
PROGRAM = """
import nvtx, os, threading, time

def work(name):
    for n in range(20):
        with nvtx.annotate(f"{name} {n % 3}", domain="steps"):
            with nvtx.annotate("inner"):
                time.sleep(0.0005)
            os.stat("/")

threads = [threading.Thread(target=work, args=(f"thread {n}",)) for n in range(2)]
for thread in threads:
    thread.start()
nvtx.mark("began", domain="steps")
handle = nvtx.start_range("both", domain="steps")
for thread in threads:
    thread.join()
nvtx.end_range(handle)
"""


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.stdout + done.stderr


def everything(path):
    """All tables as lists of rows, and what is said."""
    report = read(path, ALL)
    return {name: list(full_rows(name, data)) for name, data in report.tables.items()}, [
        (p.severity, p.message) for p in report.problems
    ]


def exported(nsys, report, kind, *options):
    out = report.with_name(f"{report.stem}-{kind}")
    said = run(nsys, "export", "--type", kind, "-f", "true", *options, "-o", str(out), str(report))
    if not out.exists():
        pytest.skip(f"this nsys exports no {kind}: {said[-200:]}")
    return out


@pytest.fixture(scope="module")
def recorded(nsys, nvtx, tmp_path_factory):
    """The report of a program with threads and NVTX ranges, marks and domains."""
    folder = tmp_path_factory.mktemp("recorded")
    program, report = folder / "program.py", folder / "run.nsys-rep"
    program.write_text(PROGRAM)
    options = ["--trace=osrt,nvtx", "--sample=none", "--cpuctxsw=none", "-f", "true"]
    said = profiled(lambda: run(nsys, "profile", *options, "-o", str(report), sys.executable, str(program)))
    if not report.exists():
        pytest.skip(f"this nsys cannot profile here: {said[-300:]}")
    return report


@pytest.mark.nsys
@pytest.mark.parametrize("kind", ["parquetdir", "arrowdir"])
@pytest.mark.parametrize("lazy", ["true", "false"])
def test_a_recorded_report_is_read_alike_from_every_export(nsys, recorded, kind, lazy):
    folder = exported(nsys, recorded, kind, f"--lazy={lazy}")
    tables, problems = everything(exported(nsys, recorded, "sqlite"))
    assert {"osrt_summary", "nvtx_summary", "facts"} <= tables.keys()
    ranges = {(r["domain"], r["name"]): r["calls"] for r in tables["nvtx_summary"]}
    assert ranges["steps", "thread 0 1"] == 7
    assert everything(folder) == (tables, problems)


@pytest.fixture(scope="module")
def as_parquet(nsys, complete, filled, tmp_path_factory):
    """The filled database with the columns and types that this nsys itself gives to Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    typed = exported(nsys, complete.with_suffix(".nsys-rep"), "parquetdir", "--lazy=false")
    out = tmp_path_factory.mktemp("filled_pqtdir")
    with sqlite3.connect(filled) as connection:
        connection.text_factory = lambda raw: raw.decode(errors="replace")
        for file in typed.iterdir():
            schema = pq.read_schema(file)
            names = ", ".join(f'"{name}"' for name in schema.names)
            values = list(zip(*connection.execute(f"SELECT {names} FROM {file.stem}"), strict=True))
            values = values or [()] * len(schema)
            arrays = [_typed(v, field.type) for v, field in zip(values, schema, strict=True)]
            pq.write_table(pa.Table.from_arrays(arrays, names=schema.names), out / file.name)
    connection.close()
    return out


def _typed(values, type_):
    """The column as Arrow: SQLite has no booleans and no unsigned integers."""
    import pyarrow as pa

    if pa.types.is_boolean(type_):
        values = [None if v is None else bool(v) for v in values]
    if pa.types.is_unsigned_integer(type_):  # the highest bit of an id is the sign of SQLite's integers
        values = [None if v is None else v % (1 << type_.bit_width) for v in values]
    if pa.types.is_string(type_):
        values = [None if v is None else str(v) for v in values]
    return pa.array(values, type_)


@pytest.mark.nsys
def test_gpu_work_is_read_alike_from_parquet_with_the_types_of_nsys(as_parquet, filled):
    tables, problems = everything(filled)
    assert tables.keys() >= TABLES.keys() & {
        "gpu_summary", "gpu_trace", "api_summary", "api_trace", "osrt_summary", "um_summary", "nvtx_summary",
        "nvtx_gpu_summary", "openacc_summary", "openmp_summary", "communication", "facts",
    }  # fmt: skip
    got, said = everything(as_parquet)
    for name, wanted in tables.items():
        assert got[name] == wanted, name
    assert got.keys() == tables.keys()
    assert said == problems


@pytest.mark.nsys
def test_gpu_work_is_read_alike_from_arrow(as_parquet, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    for file in as_parquet.iterdir():
        table = pq.read_table(file)
        with pa.OSFile(str(tmp_path / f"{file.stem}.arrow"), "wb") as raw, pa.ipc.new_stream(raw, table.schema) as out:
            out.write_table(table, max_chunksize=97)
    assert everything(tmp_path) == everything(as_parquet)


@pytest.mark.nsys
def test_tables_that_the_export_left_out_as_empty_change_nothing(as_parquet, tmp_path):
    import pyarrow.parquet as pq

    kept = tmp_path / "lazy"
    shutil.copytree(as_parquet, kept)
    for file in kept.iterdir():
        if pq.read_metadata(file).num_rows == 0:
            file.unlink()
    assert len(list(kept.iterdir())) < len(list(as_parquet.iterdir()))
    assert everything(kept) == everything(as_parquet)
