"""Two users of one machine, of whom one is not a friend: what they do is done by processes of their own."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from nsw.engine.driven import write_state
from nsw.engine.folder import CampaignFolder
from nsw.engine.ledger import Ledger
from tests.exits import with_exit

# no other test run has the same: some folders in /tmp are named after a user
_FIRST = 54711 + os.getpid() % 5000 * 2
UIDS = {"victim": _FIRST, "neighbour": _FIRST + 1}
# where Python or the checkout are below a folder of root's alone: to read it all, and to write nothing more
READ_ALL = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
CHECKOUT = {"PYTHONPATH": str(Path(__file__).parents[2])}  # whatever nsw is installed
SITES = "nsw: 1\nsites:\n  here: {scheduler: local, gpus: {per_node: 0}}\n"
RECIPE = """
nsw: 1
name: t
passes: [baseline]
resources: {gpus: 0, time: 1m}
app: {command: 'echo f={{ n }}; exit {{ n }}', figures: {f: {regex: 'f=(.*)', unit: s}}}
matrix: {n: [0, 3]}
"""


@dataclass(frozen=True)
class User:
    """A user with a folder that only that user can write; `temporary` is where the user's temporary files go."""

    uid: int
    home: Path
    temporary: Path
    more: tuple[str, ...] = ()  # options of setpriv

    def run(self, *words: object, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        """A command as that user."""
        become = ("setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups", *self.more)
        known = {k: v for k, v in os.environ.items() if not k.startswith(("NSW_", "XDG_", "PYTHON"))}
        return subprocess.run(
            [*become, *(str(word) for word in words)], cwd=cwd or self.home,
            env=known | {"HOME": str(self.home), "TMPDIR": str(self.temporary), "COLUMNS": "200"} | CHECKOUT | env,
            capture_output=True, text=True, check=False, timeout=120, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def nsw(self, *words: object, exits: int | None = None, **how) -> subprocess.CompletedProcess[str]:
        """An nsw as that user."""
        done = self.run(sys.executable, "-P", "-m", "nsw", *words, **how)
        assert "Traceback" not in done.stderr, done.stderr
        return with_exit(done, exits)

    def owns_link(self, link: Path, target: Path) -> None:
        """Make a link that belongs to that user."""
        link.symlink_to(target)
        os.lchown(link, self.uid, self.uid)

    def owns(self, path: Path) -> Path:
        """Give a folder or file to that user, whole."""
        for one in (path, *(path.rglob("*") if path.is_dir() and not path.is_symlink() else ())):
            os.lchown(one, self.uid, self.uid)
        return path


@pytest.fixture
def users():
    """`users["victim"]` and `users["neighbour"]`."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("two users: only root can act as both, and setpriv is needed")
    place = Path(tempfile.mkdtemp(prefix="nsw-neighbours-"))
    place.chmod(0o755)
    try:
        for more in ((), READ_ALL):
            made = {name: User(uid, place / name, place / f"tmp-{name}", more) for name, uid in UIDS.items()}
            for user in made.values():
                for folder in (user.home, user.temporary):
                    folder.mkdir(exist_ok=True)
                    folder.chmod(0o755)
                    user.owns(folder)
            if made["victim"].run("env", sys.executable, "-P", "-c", "import nsw.api").returncode == 0:
                break
        else:
            pytest.skip("two users: another user cannot read this checkout or its Python")
        yield made
    finally:
        shutil.rmtree(place)


@pytest.fixture
def victim(users) -> User:
    return users["victim"]


@pytest.fixture
def neighbour(users) -> User:
    return users["neighbour"]


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> Path:
    """A folder with a recipe, a sites file and a finished campaign: one run done, one failed."""
    home = tmp_path_factory.mktemp("finished")
    (home / "sites.yaml").write_text(SITES)
    (home / "r.yaml").write_text(RECIPE)
    words = (sys.executable, "-P", "-m", "nsw", "run", "r.yaml", "--site", "here", "--sites", "sites.yaml")
    done = subprocess.run(words, cwd=home, capture_output=True, text=True, check=False, env=os.environ | CHECKOUT)
    assert done.returncode == 1, done.stderr
    return home


@pytest.fixture
def campaign_of(finished):
    """`campaign_of(victim)`: such a campaign of a user, in that user's home; everybody can read it."""

    def made(user: User) -> Path:
        shutil.copytree(finished, user.home, symlinks=True, dirs_exist_ok=True)
        (folder,) = (user.home / "campaigns").iterdir()
        change_ledger(folder, ("UPDATE meta SET value = ? WHERE key = 'scratch'", (str(folder / "scratch"),)))
        user.owns(user.home)
        assert user.nsw("adopt", folder, "--yes").returncode == 0
        subprocess.run(["chmod", "-R", "a+rX", user.home], check=True)
        return folder

    return made


def change_ledger(folder: Path, *statements: tuple[str, tuple[object, ...]]) -> None:
    """Change a campaign's ledger, and state.json with it, as its owner could."""
    with closing(sqlite3.connect(folder / "campaign.db")) as db, db:
        for statement, values in statements:
            db.execute(statement, values)
    with Ledger(folder / "campaign.db") as ledger:
        owner = (folder / "state.json").stat()
        write_state(CampaignFolder(folder), ledger)
        os.chown(folder / "state.json", owner.st_uid, owner.st_gid)


def state(folder: Path) -> dict[str, tuple[object, ...]]:
    """What a folder holds: of each entry its kind, mode, owner, size, content and time of change."""
    found = {}
    for path in sorted((folder, *folder.rglob("*"))):
        of = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        found[str(path)] = (of.st_mode, of.st_uid, of.st_size, of.st_mtime_ns, content)
    return found
