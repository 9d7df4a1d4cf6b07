"""A campaign in a container that truly is started: charliecloud needs neither root nor a daemon."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import home, nsw, recipe  # noqa: F401  fixtures

PROGRAMS = ("bash", "cat")
WORK = """\
echo "in $(cat /etc/box) at $PWD"
echo "$A|$B|$(cat /mnt/x)|$1" > figures.txt
"""


@pytest.fixture
def image(tmp_path):
    """A folder that is an image: bash, cat, and their libraries."""
    folder = tmp_path / "image"
    for name in ("bin", "dev", "etc", "home", "mnt", "proc", "root", "sys", "tmp", "usr/bin"):
        (folder / name).mkdir(parents=True)
    for name in ("passwd", "group", "hosts", "resolv.conf"):
        (folder / "etc" / name).touch()
    (folder / "etc/box").write_text("a box\n")
    for program in (shutil.which(name) for name in PROGRAMS):
        libraries = re.findall(
            r"/\S+", subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
        )
        for source in (program, *libraries):
            target = folder / (f"bin/{Path(source).name}" if source == program else source[1:])
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    return folder


def test_a_run_is_in_the_container_with_its_folders_variables_and_words(nsw, recipe, home, image, monkeypatch):  # noqa: F811
    if shutil.which("ch-run") is None or subprocess.run(["unshare", "-Ur", "true"], check=False).returncode:
        pytest.skip("charliecloud, or user namespaces")
    monkeypatch.setenv("USER", "me")
    (home / "work.sh").write_text(WORK)
    (home / "data").mkdir()
    (home / "data/x").write_text("mounted")
    container = f"{{runtime: charliecloud, image: {image}, mounts: ['{home}/data:/mnt'], env: {{B: 'x,y'}}}}"
    app = f"{{command: bash work.sh 'c  d', files: [work.sh], env: {{A: '1 2'}}, container: {container}}}"
    assert nsw("run", recipe(app), "-s", "here").code == 0
    run = next(home.glob("campaigns/*/scratch/runs/*/attempt-1"))
    assert (run / "figures.txt").read_text() == "1 2|x,y|mounted|c  d\n"
    assert f"in a box at {run}" in nsw("logs").out
