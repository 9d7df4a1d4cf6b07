"""`nsw read` in its plain form needs no parser of command lines, and means the same as with it."""

import subprocess
import sys

import pytest

from nsw.cli import main, reading
from nsw.cli.plain_read import plain_read

PLAIN = (
    "a.csv", "a.csv b.csv", "-", "a.csv --table metrics", "a -t gpu_trace -t api_trace", "a --json", "a -f csv",
    "a --format table", "a -o x.csv", "a --output folder/ --format parquet", "--format json a b", "a -o x.json",
)  # fmt: skip
OTHERS = (
    "", "--formats", "a --formats", "a --json --format csv", "a --format xml", "a --table", "a --table=metrics", "a -tm",
    "a -- -b", "a --top 3", "--help", "a --steps step", "a -o", "a --nothing", "a -f json -f csv", "a -t -",
)  # fmt: skip


def arguments(*given, **named):
    names = ("files", "tables", "formats", "format", "output", "max_unpacked", "steps", "where", "launch", "top")
    usual = {"max_unpacked": None, "steps": None, "where": (), "launch": None, "top": None}
    return usual | dict(zip(names, given, strict=False)) | named


@pytest.mark.parametrize("line", PLAIN)
def test_it_means_the_same_as_with_the_parser(monkeypatch, line):
    met = []
    monkeypatch.setattr(reading, "read", lambda *given, **named: met.append(arguments(*given, **named)) or 0)
    plain = plain_read(["read", *line.split()])
    assert plain is not None
    plain()
    main._parsed(["read", *line.split()])
    assert met[0] == met[1]
    assert type(met[0]["output"]) is type(met[1]["output"])


@pytest.mark.parametrize("line", OTHERS)
def test_what_is_written_in_another_way_is_left_to_the_parser(line):
    assert plain_read(["read", *line.split()]) is None
    assert plain_read(["read", "a", ""]) is None
    assert plain_read(["status", *line.split()]) is None


def test_a_small_report_is_read_without_what_takes_long_to_load(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text(
        "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
        "100.0,200,2,100.0,100.0,100,100,0.0,gemm\n"
    )
    code = (
        "import sys; from nsw.cli.main import run; code = run(sys.argv[1:])\n"
        "print(code, [m for m in ('typer', 'pydantic', 'numpy', 'pyarrow', 'pandas', 'subprocess', 'difflib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, "read", str(file)], check=True, capture_output=True, text=True)
    assert "gemm" in done.stdout
    assert done.stdout.endswith("0 []\n")
