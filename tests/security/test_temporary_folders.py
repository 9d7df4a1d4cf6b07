"""Folders with known names in /tmp, which another user may have made first."""

import shutil
from pathlib import Path

import pytest

from nsw.profilers import shell_functions_of_profiler

LOCK = f"{shell_functions_of_profiler('ncu')}\nnsw_ncu_lock"


@pytest.mark.parametrize("what", ["nothing", "folder", "link", "file"])
def test_ncu_gets_no_folder_for_temporary_files_that_another_user_made(victim, neighbour, what):
    lock = neighbour.home / "nsight-compute-lock"
    lock.touch(mode=0o600)
    neighbour.owns(neighbour.home)
    (own := victim.home / "own").mkdir()
    victim.owns(victim.home)
    known = Path(f"/tmp/nsw-ncu-{victim.uid}")
    make = {"nothing": ["true"], "folder": ["mkdir", "-m", "777", known], "link": ["ln", "-s", own, known],
            "file": ["touch", known]}[what]  # fmt: skip
    given = None
    try:
        assert neighbour.run(*make).returncode == 0
        code = 'echo "$TMPDIR"; [ -O "$TMPDIR" ] && [ ! -L "$TMPDIR" ] && stat -c %a "$TMPDIR"'
        done = victim.run("bash", "-c", f"{LOCK}; {code}", TMPDIR=str(neighbour.home))
        given, mode = done.stdout.split()
        assert (Path(given) == known, mode) == (what == "nothing", "700")
    finally:
        for path in (known, Path(given or known)):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
