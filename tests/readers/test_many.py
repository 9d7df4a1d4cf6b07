"""Many reports at once: the order of the files, and a reading process that dies."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nsw.readers.detect import read_many, takes_long_to_read

SUMMARY = """==1== Profiling result:
            Type  Time(%)      Time     Calls       Avg       Min       Max  Name
 GPU activities:  100.00%  {n}.000ms         1  {n}.000ms  {n}.000ms  {n}.000ms  kernel_{n}
"""


@pytest.fixture
def files(tmp_path):
    paths = [tmp_path / f"{n:02}.txt" for n in range(1, 25)]
    for n, path in enumerate(paths, 1):
        path.write_text(SUMMARY.format(n=n))
    return paths


def names(reports):
    return [report.tables["gpu_summary"][0]["name"] for report in reports]


@pytest.mark.parametrize("workers", [1, 2])
def test_reports_come_in_the_order_of_the_files(files, workers):
    assert names(read_many(files, workers=workers)) == [f"kernel_{n}" for n in range(1, 25)]


def test_a_damaged_file_among_many_spoils_only_itself(files):
    files[5].write_bytes(b"\x00\x01nothing known")
    reports = list(read_many(files, workers=2))
    assert [bool(r.tables) for r in reports] == [n != 5 for n in range(24)]
    assert reports[5].problems[0].severity == "error"


def children(of: int | None = None) -> list[int]:
    """Processes started by this one, or that one, that read reports (not multiprocessing's own helper)."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[1]) == (of or os.getpid()) and b"spawn_main" in (stat.parent / "cmdline").read_bytes():
                found.append(int(stat.parent.name))
        except OSError:
            continue
    return found


def test_when_a_reading_process_dies_the_others_files_are_read_all_the_same(files):
    reports = read_many(files, workers=2)
    first = next(reports)
    for child in children():
        os.kill(child, signal.SIGKILL)
    assert names([first, *reports]) == [f"kernel_{n}" for n in range(1, 25)]


def test_few_small_files_are_read_without_other_processes(files, tmp_path):
    assert not takes_long_to_read(files)
    assert len(list(read_many(files))) == 24
    assert children() == []
    large = tmp_path / "large.txt"
    with large.open("wb") as file:
        file.truncate(50_000_000)
    assert not takes_long_to_read([large])  # one file is read by one process
    assert takes_long_to_read([large, *files])
    assert takes_long_to_read(files * 50)


def test_whoever_stops_asking_leaves_no_process_behind(files):
    reports = read_many(files, workers=2)
    next(reports)
    assert children()
    reports.close()
    assert children() == []


def alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_an_interrupt_ends_all_at_once_without_a_traceback(files, tmp_path):
    """As a terminal sends it: to every process of the group."""
    ask = "import sys; from nsw.cli.main import run; sys.exit(run(sys.argv[1:]))"
    few = [str(f) for f in files] * 40
    command = [sys.executable, "-c", ask, "read", *few, "--format", "parquet", "-o", str(tmp_path / "tables")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as process:
        while not children(process.pid) and process.poll() is None:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert children(process.pid) == []
    while alive(process.pid):  # what helped the group's processes ends with them
        time.sleep(0.01)
