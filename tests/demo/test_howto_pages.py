"""The commands of docs/howto and docs/gpu.md that need neither GPU nor cluster work, and print the words that the pages show."""

import re
import shutil
import sys

import pytest

from nsw.site.load import read_sites
from nsw.transport.ssh_login import configuration, resolve_host
from tests.demo.pages import ROOT, compared_lines

SINFO = "cpu*|up|(null)|infinite\ngpu|up|gpu:a100:4(S:0-1)|1-00:00:00"
# what a reader's machine has: Python, a Slurm that answers what it has and nothing else, and a cluster in a folder
COMMANDS = {
    "python": f'exec "{sys.executable}" "$@"',
    "sinfo": f"cat <<'TEXT'\n{SINFO}\nTEXT",
    "sacctmgr": "",
    "sbatch": "echo 'sbatch: error: Unable to contact slurm controller' >&2; exit 1",
    "ssh": 'cd "$(dirname "$0")/../mycluster" && shift && eval "$*"',
    "scp": 'cp "$(dirname "$0")/../mycluster/${1#*:}" "$2"',
    "rsync": 'cp -r "$(dirname "$0")/../mycluster/${2#*:}" "$3"',
}
# a page -> the lines that it shows of what commands print
PAGES = {
    "../gpu.md": 5,
    "cases.md": 6,
    "figure.md": 5,
    "idle.md": 4,
    "kernels.md": 2,
    "laptop.md": 1,
    "later.md": 1,
    "notebook.md": 2,
    "rank-0.md": 3,
    "read.md": 9,
    "server.md": 1,
    "site.md": 20,
    "space.md": 2,
    "timeline.md": 3,
    "variables.md": 1,
    "workstation.md": 2,
    "wrapper.md": 6,
}


@pytest.fixture
def home(tmp_path):
    """A folder with the commands of a reader's machine."""
    commands = tmp_path / ".bin"  # where tools/screens.py has nsw
    commands.mkdir()
    for name, script in COMMANDS.items():
        (commands / name).write_text(f"#!/bin/sh\n{script}\n")
        (commands / name).chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_shows_is_what_a_reader_sees(page, home, request):
    if page == "laptop.md":
        campaigns = request.getfixturevalue("demo").root
        shutil.copytree(campaigns, home / "mycluster" / "project" / "campaigns")
    shutil.copy(ROOT / "tests/fixtures/h200/tiled.sqlite.gz", home / "solver.sqlite.gz")
    shutil.copy(ROOT / "tests/fixtures/h200/naive-raw.csv.gz", home)
    assert compared_lines(f"howto/{page}", home, HOME=str(home)) == PAGES[page]


def test_the_page_on_logging_in_has_files_that_nsw_and_ssh_read(tmp_path):
    if shutil.which("ssh") is None:
        pytest.skip("no ssh")
    page = (ROOT / "docs/howto/login.md").read_text()
    blocks = re.findall(r"^```(?:text|yaml)\n# \S+\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4
    files = [tmp_path / name for name in ("jump", "jump.yaml", "coded", "coded.yaml")]
    for file, text in zip(files, blocks, strict=True):
        file.write_text(text)
    jump, jump_site, coded, coded_site = files
    transports = [entry.site.transport for file in (jump_site, coded_site) for entry in read_sites(file)]
    assert [(each.kind, each.host) for each in transports] == [("ssh", "mycluster"), ("openssh", "mycluster")]
    host = resolve_host("mycluster", {"config": str(jump)})
    assert (host.hostname, host.user, host.jumps) == ("login.cluster.example", "me", ("ssh://bastion.cluster.example",))
    settings = configuration(["-F", str(coded), "mycluster"])
    assert settings["controlmaster"] == ["auto"]
    assert settings["controlpersist"] == ["28800"]
