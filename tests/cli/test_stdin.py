"""`nsw read -`: a report on standard input is read as one in a file is, under the name <stdin>."""

import csv
import gzip
import json
import os
import pty
import subprocess
import sys

import pytest

TRACE = json.dumps({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2, "pid": 0, "tid": 1,
                                     "args": {"device": 0, "stream": 1}}]}).encode()  # fmt: skip


def piped(home, data: bytes, *words: str, **more) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "nsw", "read", *words]
    return subprocess.run(command, input=data, capture_output=True, cwd=home, check=False, timeout=300, **more)


@pytest.mark.parametrize("data", [TRACE, gzip.compress(TRACE, mtime=0)], ids=["plain", "packed"])
def test_a_report_on_standard_input_is_read(home, data):
    done = piped(home, data, "-", "--json")
    assert (done.returncode, done.stderr) == (0, b"")
    (report,) = json.loads(done.stdout)["reports"]
    assert report["path"] == "<stdin>"
    assert report["tables"]["gpu_summary"][0]["name"] == "k"


def test_it_goes_together_with_files_and_counts_once(home):
    (home / "t.json").write_bytes(TRACE)
    done = piped(home, TRACE, "-", "t.json", "-", "-f", "csv", "-t", "gpu_summary")
    assert [r["report"] for r in csv.DictReader(done.stdout.decode().splitlines())] == ["<stdin>", "t.json"]


def test_what_is_wrong_with_it_names_it_and_no_hidden_file(home):
    done = piped(home, b"NVR\0junk", "-")
    assert done.returncode == 1
    assert b"<stdin>" in done.stdout
    assert b"nsw-stdin" not in done.stdout + done.stderr


def test_nothing_at_all_is_said_with_what_may_be_the_cause(home):
    done = piped(home, b"", "-")
    assert done.returncode == 2
    assert b"standard input was empty" in done.stderr
    assert b"2>&1 | nsw read -" in done.stderr


def test_nothing_of_it_stays_behind(home, tmp_path):
    (tmp_path / "tmp").mkdir()
    assert piped(home, TRACE, "-", env=os.environ | {"TMPDIR": str(tmp_path / "tmp")}).returncode == 0
    assert not list((tmp_path / "tmp").iterdir())


def test_on_a_terminal_it_says_how_to_end_what_is_typed(home):
    master, slave = pty.openpty()
    nsw = subprocess.Popen(
        [sys.executable, "-m", "nsw", "read", "-"], stdin=slave, stdout=slave, stderr=slave, cwd=home
    )
    os.close(slave)
    said = b""
    while b"Ctrl-D" not in said:
        said += os.read(master, 1000)
    os.write(master, b"hello\n\x04")
    try:
        while more := os.read(master, 1000):
            said += more
    except OSError:  # the other end is closed
        pass
    assert nsw.wait(timeout=300) == 1
    assert b"no known report format" in said
    os.close(master)


def test_no_file_at_all_points_to_it(nsw):
    assert "| nsw read -" in nsw("read").err
