"""Phases of traces that nvprof printed, as text and as CSV: by the kernels that repeat."""

import pytest

from nsw.readers import Options, read
from nsw.tables import full_rows

STEPS = 12
KERNELS = (("gemm", 5), ("relu", 3), ("sgd", 2))  # us
TEXT = "==7== NVPROF is profiling process 7, command: ./train\n==7== Profiling result:\n"
TEXT_TITLES = (
    "   Start  Duration            Grid Size      Block Size     Regs*    SSMem*    DSMem*      Size  Throughput  "
    "SrcMemType  DstMemType           Device   Context    Stream  Name\n"
)
CSV_TITLES = (
    '"Start","Duration","Grid X","Grid Y","Grid Z","Block X","Block Y","Block Z","Registers Per Thread","Static SMem",'
    '"Dynamic SMem","Size","Throughput","SrcMemType","DstMemType","Device","Context","Stream","Name","Correlation_ID"\n'
    "us,us,,,,,,,,KB,B,MB,GB/s,,,,,,,\n"
)
DEVICE = "Tesla V100-SXM2 (0)"


def events(steps):
    """Start and duration in us, name: a copy before all, then steps of three kernels, 1 us apart."""
    yield 1, 900, "[CUDA memcpy HtoD]"
    start = 1000
    for _ in range(steps):
        for name, took in KERNELS:
            yield start, took, f"{name}(float*)"
            start += took + 1


def as_text(steps=STEPS):
    lines = []
    for start, took, name in events(steps):
        how = (
            "                    -               -         -         -         -  1.0000MB  1.1GB/s    Pageable      Device"
            if name.startswith("[") else
            "              (8 1 1)        (32 1 1)        16        0B        0B         -         -           -           -"
        )  # fmt: skip
        lines.append(f"{start}.000us  {took}.0000us  {how}  {DEVICE}         1         7  {name}\n")
    return TEXT + TEXT_TITLES + "".join(lines)


def as_csv(steps=STEPS):
    lines = []
    for number, (start, took, name) in enumerate(events(steps)):
        how = ',,,,,,,,,1.000,1.1,"Pageable","Device"' if name.startswith("[") else "8,1,1,32,1,1,16,0.0,0,,,,"
        lines.append(f'{start}.000000,{took}.000000,{how},"{DEVICE}","1","7","{name}",{number}\n')
    return TEXT + CSV_TITLES + "".join(lines)


def tables(tmp_path, text, **options):
    path = tmp_path / "trace.log"
    path.write_text(text)
    report = read(path, Options(**options))
    assert [p for p in report.problems if p.severity == "error"] == []
    return {name: list(full_rows(name, data)) for name, data in report.tables.items()}


@pytest.mark.parametrize("made", [as_text, as_csv])
def test_a_printed_trace_whose_kernels_repeat_has_phases(tmp_path, made):
    found = tables(tmp_path, made())
    phases = {row["phase"]: row for row in found["phases"]}
    assert phases["setup"]["gpu_ns"] == 900_000
    assert phases["steady"]["iterations"] == STEPS
    assert {row["found_by"] for row in found["phases"]} == {"kernel_sequence"}
    (row,) = found["iterations"]
    assert row["med_ns"] == 13_000
    steady = [r for r in found["phase_summary"] if r["phase"] == "steady"]
    assert {r["short_name"]: (r["calls"], r["total_ns"]) for r in steady} == {
        name: (STEPS, took * 1000 * STEPS) for name, took in KERNELS
    }


def test_a_trace_that_does_not_repeat_has_no_phases(tmp_path):
    assert "phases" not in tables(tmp_path, as_text(steps=3))


def test_phases_alone_may_be_asked_for(tmp_path):
    assert set(tables(tmp_path, as_text(), tables=frozenset({"phases"}))) == {"phases"}
    assert set(tables(tmp_path, as_text(), tables=frozenset({"gpu_trace"}))) == {"gpu_trace"}
