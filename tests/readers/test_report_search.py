"""The same reports are found below folders by the commands and from Python."""

from pathlib import Path

import pytest

import nsw
from nsw.apart import Limits
from nsw.cli import reading
from nsw.cli.output import Target
from nsw.readers.detect import ReportSearch, read_many

REPORT = """==1== Profiling result:
            Type  Time(%)      Time     Calls       Avg       Min       Max  Name
 GPU activities:  100.00%  1.5000ms         1  1.5000ms  1.5000ms  1.5000ms  gemm
"""


@pytest.fixture
def folder(tmp_path):
    for name, text in (("a.txt", REPORT), ("notes.md", "nothing"), ("broken.ncu-rep", "none"), ("below/b.txt", REPORT)):
        path = tmp_path / "all" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "all"


def searched(*named):
    search = ReportSearch()
    found = list(search.drop_unrecognised_reports(read_many(list(search.find_files_to_read(named)), workers=1)))
    return search, [report.path for report in found]


def test_files_below_a_folder_are_read_once_and_others_are_counted(folder):
    search, found = searched(folder)
    assert [Path(path).name for path in found] == ["a.txt", "broken.ncu-rep", "b.txt"]
    assert (search.folders, search.reports, len(search.searched)) == ([folder], 3, 4)
    for again in (folder / "below", folder / "a.txt"):
        assert sorted(searched(folder, again)[1]) == sorted(found)
        assert sorted(searched(again, folder)[1]) == sorted(found)


def test_a_file_that_is_named_is_there_though_it_is_no_report(folder):
    _, found = searched(folder / "notes.md", folder)
    assert str(folder / "notes.md") in found


@pytest.mark.parametrize("also", ["", "a.txt", "notes.md", "below"])
def test_python_and_the_command_read_the_same_files(folder, also, capsys):
    named = [folder, folder / also] if also else [folder]
    made = nsw.read(named)
    assert list(made.files["report"]) == searched(*named)[1]
    reading.read(named, ["gpu_summary"], target=Target("csv"), limits=Limits())
    assert capsys.readouterr().out.count("gemm") == 2 * len(made.tables.gpu_summary)  # name and short name
