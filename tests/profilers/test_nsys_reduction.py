"""The command that reduces a run's reports on the site, in a shell, with an nsys that is a script."""

from __future__ import annotations

import gzip
import lzma
import shutil
import subprocess
import sys

import pytest

from nsw.profilers import shell_functions_of_profiler
from nsw.resources import reducer_script
from tests.remote.reduced import EXPORT, make_nsys


@pytest.fixture
def scratch(tmp_path):
    """A campaign's folder on a site, with a run that was cut off and a second attempt that is done."""
    for attempt, state in ((1, "failed"), (2, "done")):
        home = tmp_path / "runs" / "a.timeline.r1" / f"attempt-{attempt}"
        home.mkdir(parents=True)
        (home / "status").write_text(f"state={state}\n")
    (tmp_path / "tools").mkdir()
    shutil.copy(reducer_script(), tmp_path / "tools" / "reduce_export.py")
    (tmp_path / "runs" / "a.timeline.r1.reduce" / "attempt-1").mkdir(parents=True)
    (home / "timeline.rank0.nsys-rep").write_bytes(gzip.decompress(EXPORT.read_bytes()))
    return tmp_path


def reduce(scratch, *, text: str = shell_functions_of_profiler("nsys"), python: bool = True):
    tool = scratch / "nsight" / "nsys"
    if not tool.exists():
        make_nsys(tool.parent)
    programs = scratch / "bin"
    programs.mkdir(exist_ok=True)
    if python and not (programs / "python3").exists():
        (programs / "python3").symlink_to(sys.executable)
    for name in ("bash", "gzip", "mv", "rm", "cp", "cat"):
        if not (programs / name).exists():
            (programs / name).symlink_to(shutil.which(name))
    text = text.replace("/usr/bin/python3", "/nowhere/python3")
    return subprocess.run(
        ["bash", "-c", f'{text}\nnsw_nsys_reduce "$@"', "nsw", tool, "timeline", "a.timeline.r1"], cwd=home(scratch), text=True, check=False,
        capture_output=True, env={"PATH": str(programs)},
    )  # fmt: skip


def home(scratch):
    return scratch / "runs" / "a.timeline.r1.reduce" / "attempt-1"


def left(scratch):
    return {path.name for path in home(scratch).iterdir()}


def test_each_report_becomes_one_small_file_and_nothing_else_is_left(scratch):
    done = reduce(scratch)
    assert done.returncode == 0, done.stderr
    assert left(scratch) == {"timeline.rank0.sqlite.xz"}
    assert lzma.decompress((home(scratch) / "timeline.rank0.sqlite.xz").read_bytes()).startswith(b"SQLite format 3")
    assert "of the export's" in done.stdout


def test_without_a_python_the_whole_export_is_packed_and_that_is_said(scratch):
    done = reduce(scratch, python=False)
    assert done.returncode == 0, done.stderr
    assert "no python3 with sqlite3 was found here: the whole export is packed" in done.stderr
    packed = home(scratch) / "timeline.rank0.sqlite.gz"
    assert gzip.decompress(packed.read_bytes()) == gzip.decompress(EXPORT.read_bytes())
    assert left(scratch) == {packed.name}


def test_a_python_too_old_or_without_sqlite_is_none(scratch):
    (scratch / "bin").mkdir()
    bad = scratch / "bin" / "python3"
    bad.write_text("#!/bin/bash\nexit 1\n")
    bad.chmod(0o755)
    done = reduce(scratch)
    assert (done.returncode, left(scratch)) == (0, {"timeline.rank0.sqlite.gz"})
    assert "the whole export is packed" in done.stderr


def test_a_python_without_lzma_packs_with_gzip(scratch):
    (scratch / "bin").mkdir()
    bare = scratch / "bin" / "python3"
    bare.write_text(f'#!/bin/bash\n[ "$2" != "import lzma" ] || exit 1\nexec {sys.executable} "$@"\n')
    bare.chmod(0o755)
    done = reduce(scratch)
    assert done.returncode == 0, done.stderr
    assert left(scratch) == {"timeline.rank0.sqlite.gz"}
    assert "of the export's" in done.stdout


def test_what_jobs_exported_themselves_needs_no_nsys(scratch):
    there = scratch / "runs" / "a.timeline.r1" / "attempt-2"
    (there / "timeline.rank0.nsys-rep").rename(there / "timeline.sqlite")
    assert reduce(scratch).returncode == 0
    assert left(scratch) == {"timeline.sqlite.xz"}
    assert (there / "timeline.sqlite").exists()
    assert "export" not in (scratch / "nsight" / "calls").read_text()


@pytest.mark.parametrize(
    ("what", "said"),
    [("no report", "a.timeline.r1 left no report"), ("not done", "no attempt of a.timeline.r1 is done"),
     ("no nsys", "nsight/nsys: "), ("damaged", "cannot be reduced"), ("broken", "no licence today")],
)  # fmt: skip
def test_what_goes_wrong_is_a_failure_with_its_reason(scratch, what, said):
    there = scratch / "runs" / "a.timeline.r1" / "attempt-2"
    make_nsys(scratch / "nsight")
    if what == "no report":
        (there / "timeline.rank0.nsys-rep").unlink()
    elif what == "not done":
        (there / "status").write_text("state=failed\n")
    elif what == "no nsys":
        (scratch / "nsight" / "nsys").write_text("#!/nowhere/bash\n")
    elif what == "damaged":
        (there / "timeline.rank0.nsys-rep").write_bytes(b"SQLite format 3\0" + b"\1" * 4000)
    else:
        (scratch / "nsight" / "broken").touch()
    done = reduce(scratch)
    assert done.returncode != 0
    assert said in done.stderr
    assert not [name for name in left(scratch) if name.endswith((".gz", ".xz", ".part"))]
