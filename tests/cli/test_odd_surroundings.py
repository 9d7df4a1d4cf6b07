"""What a person's environment may hold, and a container may lack: nsw works there all the same."""

import io
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from nsw.present.terminal import console
from nsw.readers.detect import read_many
from nsw.resources import user_folder
from nsw.site.names import user_file

SUMMARY = """==1== Profiling result:
            Type  Time(%)      Time     Calls       Avg       Min       Max  Name
 GPU activities:  100.00%  1.000ms         1  1.000ms  1.000ms  1.000ms  kernel_{n}
"""


@pytest.mark.parametrize(
    ("columns", "width"),
    [("60", 60), ("0", 100_000), ("", 100_000), ("-1", 100_000), ("wide", 100_000), (None, 100_000)],
)
def test_a_width_that_is_none_is_not_taken(columns, width, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    assert console(io.StringIO()).width == width


@pytest.mark.parametrize("name", ["POSIXLY_CORRECT", "NSW_SCRATCH"])
def test_a_variable_of_the_person_s_own_changes_no_job(nsw, recipe, home, monkeypatch, tmp_path, name):
    monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    recipe("{command: echo done, setup: ['source /no/such/file || true', 'unset -f nothing']}")
    nsw("run", "r.yaml", "-s", "here", exits=0)
    assert not (tmp_path / "elsewhere").exists()


@pytest.fixture
def homeless(monkeypatch):
    """A user without a home and without an entry in the user database, as in a container under a number."""

    def unknown(uid):
        raise KeyError(uid)

    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)


def test_a_user_without_a_home_plans_and_runs_where_nsw_can_note_whose_campaign_it_is(
    nsw, recipe, homeless, monkeypatch, tmp_path
):
    assert user_file() is None
    with pytest.raises(OSError, match="you have no home folder: set HOME, or XDG_CACHE_HOME"):
        user_folder("cache")
    recipe("{command: echo done}")
    for words in (["sites"], ["plan", "r.yaml", "-s", "here"]):
        assert (said := nsw(*words)).code == 0, said.err
    refused = nsw("run", "r.yaml", "-s", "here")
    assert (refused.code, "set HOME, or XDG_STATE_HOME" in refused.err) == (2, True)
    assert not Path("campaigns").exists()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert (said := nsw("run", "r.yaml", "-s", "here")).code == 0, said.err
    refused = nsw("init", "--site", "x")
    assert (refused.code, "name the file with --output, or set HOME" in refused.err) == (2, True)
    assert "define it in a file that `--sites` or NSW_SITES names\n" in nsw("plan", "r.yaml", "-s", "zzz").err


def test_an_empty_home_is_none(homeless, monkeypatch):
    monkeypatch.setenv("HOME", "")
    assert user_file() is None


def test_where_processes_cannot_share_locks_reports_are_read_one_by_one(tmp_path, monkeypatch):
    """As where /dev/shm may not be written."""

    def refuse(*_args, **_more):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("concurrent.futures.ProcessPoolExecutor", refuse)
    files = [tmp_path / f"{n}.txt" for n in range(3)]
    for n, file in enumerate(files):
        file.write_text(SUMMARY.format(n=n))
    found = [report.tables["gpu_summary"][0]["name"] for report in read_many(files, workers=2)]
    assert found == ["kernel_0", "kernel_1", "kernel_2"]


def test_a_lock_has_a_descriptor_where_few_are_allowed(tmp_path):
    code = (
        "import os, sys; from nsw.schedulers.local import with_high_number;"
        " print(with_high_number(os.open(sys.argv[1], os.O_RDONLY)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)),
    )  # fmt: skip
    assert 32 <= int(done.stdout) < 64
