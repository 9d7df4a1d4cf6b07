"""The git repository that holds a program: its commit, and the program's files as they were at another one.

Git runs programs that a repository's configuration names: that of another user is not asked, as new versions of git
have it themselves. In one of this user, which may be an archive of others, none is run: hooks, monitors, filters,
and what brings objects that a partial clone lacks. Submodules, which have configurations of their own, count by
their commit.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nsw.errors import UsageError
from nsw.recipe.model import LockedGit
from nsw.safe_files import open_to_read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.errors import CommandResult
    from nsw.transport.model import Transport

__all__ = ["Revision", "check_out", "git_state", "resolve_commit"]

_GIT_S: Final = 30.0
# with none of the programs that a repository's configuration may name, but filters, which have names of their own
_GIT: Final = (
    "env", "GIT_ALLOW_PROTOCOL=", "GIT_OPTIONAL_LOCKS=0",
    "git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--literal-pathspecs",
)  # fmt: skip
_POINTER: Final = b"version https://git-lfs.github.com/spec/"


class _Git:
    """Git in a folder that it may be asked about.

    Args:
        folder: The folder.
        transport: This machine.
        filters: Words that turn off the filters of the repository.
    """

    def __init__(self, folder: Path, transport: Transport, filters: Sequence[str]) -> None:
        self.folder = folder
        self._transport = transport
        self._filters = filters

    def __call__(self, *words: str, index: Path | None = None, stdin: bytes = b"") -> CommandResult:
        index_setting = (f"GIT_INDEX_FILE={index}",) if index else ()
        argv = [_GIT[0], *index_setting, *_GIT[1:], *self._filters, "-C", str(self.folder), *words]
        return self._transport.run(argv, timeout=_GIT_S, without=("GIT_",), stdin=stdin)

    def line(self, *words: str) -> str | None:
        """What a command prints, on one line; None where it fails."""
        done = self(*words)
        return done.stdout.rstrip("\n") if done.returncode == 0 else None


def _git(folder: Path, transport: Transport) -> _Git | None:
    """Git in a folder; None where nsw does not ask it."""
    try:
        if _belongs_to_others(folder):
            return None
    except OSError:
        return None
    setting_names = _Git(folder, transport, ())("config", "--null", "--name-only", "--get-regexp", r"^filter\.").stdout
    filters = [name for name in setting_names.split("\0") if name]
    if any("=" in name for name in filters):  # -c could not turn it off
        return None
    return _Git(folder, transport, [word for name in filters for word in ("-c", f"{name}=")])


def _belongs_to_others(folder: Path) -> bool:
    """Whether a folder, or the repository that git finds around it, belongs to another user."""
    real = folder.resolve()
    around = (
        candidate
        for candidate in (real, *real.parents)
        if any(os.path.lexists(candidate / name) for name in (".git", "HEAD"))
    )
    top = next(around, real)
    checked_paths = (real, top, *(name for name in (top / ".git", top / "HEAD") if os.path.lexists(name)))
    return any(candidate.lstat().st_uid not in {os.geteuid(), 0} for candidate in checked_paths)


def git_state(folder: Path, transport: Transport) -> LockedGit | None:
    """The commit that a folder is at, and whether it was changed since; None outside git, or where it is not asked."""
    git = _git(folder, transport)
    head = git.line("rev-parse", "--verify", "HEAD") if git else None
    if git is None or head is None:
        return None
    changed = git.line("status", "--porcelain", "--ignore-submodules=dirty", "--", ".")
    return LockedGit(folder=str(folder), commit=head, dirty=changed != "")


def resolve_commit(folder: Path, name: str, transport: Transport) -> str | None:
    """The commit of a branch, a tag or another name in the repository around a folder; None: there is no such."""
    git = None if name.startswith("-") else _git(folder, transport)
    return git.line("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}") if git else None


@dataclass(frozen=True, slots=True)
class Revision:
    """Files as they were at a commit.

    Attributes:
        git: The commit.
        files: Where they are now; those that git does not have are where they were.
        shared: The names of the latter.
    """

    git: LockedGit
    files: tuple[Path, ...]
    shared: tuple[str, ...]


def check_out(files: Sequence[Path], commit: str, into: Path, transport: Transport) -> Revision:
    """Files and folders of a repository as a commit has them, written into an empty folder.

    A folder comes with what git has of it there. What git has by now and had not at that commit is left out; what it
    does not have at all stays as it is.

    Args:
        files: The files, the first of them in the repository.
        commit: The commit.
        into: The folder.
        transport: This machine.

    Raises:
        UsageError: Git cannot write them, or has none of them at that commit.
    """
    home = files[0].absolute().parent
    inside = _git(home, transport)
    top = inside.line("rev-parse", "--show-toplevel") if inside else None
    git = _git(Path(top), transport) if top else None
    if git is None:
        raise UsageError(f"git cannot be asked about {home}")
    index, checkout = into / "index", into / "files"
    _require(git("read-tree", commit, index=index), commit)
    from_git: list[Path] = []
    shared: list[Path] = []
    for file in files:
        name = os.path.relpath(file.absolute().parent.resolve() / file.name, git.folder.resolve())
        below = not name.startswith("..")
        names = git("ls-files", "-z", "--", name, index=index).stdout if below else ""
        if names:
            written = git("checkout-index", "-z", "--stdin", f"--prefix={checkout}/", index=index, stdin=names.encode())
            _require(written, commit)
            from_git.append(checkout / name)
        elif not below or not git.line("ls-files", "--", name):
            shared.append(file)
    if not from_git:
        raise UsageError(f"commit {commit[:12]} of {git.folder} has none of the program's files (app.files)")
    _refuse_pointers(checkout)
    state = LockedGit(folder=str(home), commit=commit, dirty=False)
    return Revision(state, (*from_git, *shared), tuple(file.name for file in shared))


def _require(done: CommandResult, commit: str) -> None:
    if done.returncode != 0:
        raise UsageError(f"git cannot write the files of commit {commit[:12]}: {done.stderr.strip()}")


def _refuse_pointers(folder: Path) -> None:
    """Raise where Git LFS keeps a file: nsw runs none of the programs that would bring it."""
    for file in folder.rglob("*"):
        if file.is_file() and not file.is_symlink():
            with open_to_read(file) as stream:
                if stream.read(len(_POINTER)) == _POINTER:
                    raise UsageError(
                        f"{file.relative_to(folder)} is kept by Git LFS, from which nsw takes nothing",
                        hint="check that commit out, `nsw run` it, and name the folder of its campaign instead",
                    )
