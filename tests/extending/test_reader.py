"""docs/extending/reader.md: its module and its entry in the registry read a report, and say what is damaged."""

import sys

import pytest

from nsw.readers import detect, registry
from nsw.readers.registry import Format

from .packages import block

REPORT = """"Name","Calls","TotalDurationNs","AverageNs","Percentage"
"void gemm<float>(float*)",10,2000,200,80.0
"copy(int*)",5,500,100,20.0
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The page's reader, in the registry."""
    (tmp_path / "rocprof_stats.py").write_text(block("reader.md", "python"))
    monkeypatch.syspath_prepend(tmp_path)
    entry = eval(block("reader.md", "python", 1), {"Format": Format})  # text of our own
    made = Format(entry.id, entry.tool, "rocprof_stats", entry.meaning, entry.versions, entry.tables, entry.unread, ())
    monkeypatch.setattr(registry, "FORMATS", (*registry.FORMATS, made))
    monkeypatch.setattr(detect, "FORMATS", registry.FORMATS)
    yield entry
    sys.modules.pop("rocprof_stats", None)


def test_the_page_reads_a_report(installed, tmp_path):
    from nsw.api.results import read

    file = tmp_path / "results.stats.csv"
    file.write_text(REPORT)
    report = read(file)
    assert list(report.files["format"]) == [installed.id]
    rows = report.tables.gpu_summary
    assert list(rows["short_name"]) == ["gemm", "copy"]
    assert list(rows["total_ns"]) == [2000.0, 500.0]


def test_a_damaged_row_is_said_with_its_line(installed, tmp_path):
    from nsw.readers.detect import read

    file = tmp_path / "results.stats.csv"
    file.write_text(REPORT + "cut,1\n")
    report = read(file)
    assert [(p.severity, p.line) for p in report.problems] == [("error", 4)]
    assert len(report.tables["gpu_summary"]) == 2
