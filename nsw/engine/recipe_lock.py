"""The lock of a campaign: what it was made with, its git commit too, to be compared when its recipe is run again."""

from __future__ import annotations

import codecs
import csv
import hashlib
import json
import os
import time
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nsw.engine.ledger_rows import Choice
from nsw.engine.tables import load_rows
from nsw.errors import CampaignError, CommandResult, UsageError
from nsw.recipe.document import LARGEST, as_yaml, parse
from nsw.recipe.model import Lock, LockedBefore, LockedChoice, LockedChoices, LockedGit, Recipe
from nsw.safe_files import changed_names, hashes, open_to_read, write_text
from nsw.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from nsw.engine.folder import CampaignFolder
    from nsw.engine.ledger import Ledger
    from nsw.recipe.load import Before
    from nsw.transport.model import Transport


_LONGEST = 4 * LARGEST + 4  # bytes: LARGEST characters of UTF-8, and one more
_NOT_TOOLS = frozenset({"host", "kernel", "bash", "cpus", "modules", "cpu", "image"})
_READ = (
    "bash", "-c", 'cd "$1/provenance" 2>/dev/null || exit 0; cat ./*/host; echo =; cat ./*/gpus.csv 2>/dev/null', "nsw",
)  # fmt: skip
_DRIVER = 3  # column of gpus.csv
_CHOSEN_LAUNCHES = "chosen_launches"  # table


def make_lock(
    files: Iterable[tuple[str, str]], home: Path, site: str, transport: Transport, before: Lock | None
) -> Lock:
    """The lock of a campaign that begins now.

    Args:
        files: The application's files: where they are, their name beside the program.
        home: The recipe's folder, where the application is taken to be when it has no files.
        site: The site's name.
        transport: This machine, where git is asked.
        before: The lock of the recipe that is run again: with the same files they came from where it says.
    """
    files = list(files)
    file_hashes = hashes(files)
    if before is not None and before.files == file_hashes:
        git = before.git
    else:
        folder = Path(files[0][0]).absolute().parent if files else home.absolute()
        git = git_state(folder, transport)
    return Lock(
        version=__version__,
        site=site,
        date=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        files=file_hashes,
        git=git,
        choices=before.choices if before else None,
    )


def make_before_lock(
    files: Iterable[tuple[str, str]], before: Before | None, transport: Transport, locked: LockedBefore | None
) -> LockedBefore | None:
    """The program of the cases whose side is before; None where a recipe has none.

    Args:
        files: Its files: where they are, their name beside the program.
        before: What `--against` named.
        transport: This machine, where git is asked.
        locked: What the lock of the recipe that is run again says.
    """
    files = list(files)
    if before is not None:
        return LockedBefore(ref=before.ref, files=hashes(files), git=before.git)
    if locked is not None and locked.files == hashes(files):
        return locked
    if not files:
        return None
    folder = Path(files[0][0]).absolute().parent
    return LockedBefore(files=hashes(files), git=git_state(folder, transport))


def lock_differences(before: Lock, now: Lock, transport: Transport) -> list[str]:
    """Return what differs from the lock of a recipe that is run again, a sentence each, before anything runs.

    Args:
        before: The recipe's lock.
        now: The lock of the new campaign.
        transport: This machine, where git is asked.
    """
    sentences = [
        f"the lock is of {subject} {old}, and this is {new}"
        for subject, old, new in (("nsw", before.version, now.version), ("site", before.site, now.site))
        if old != new
    ]
    sentences += [
        f"app/{name} {change} since the lock was written" for name, change in _changed_files(before.files, now.files)
    ]
    changed = _changed_files(_files_before(before), _files_before(now))
    sentences += [f"app.before/{name} {change} since the lock was written" for name, change in changed]
    source = git_state(Path(before.git.folder), transport) if before.git else None
    if before.git and source and source.commit != before.git.commit:
        sentences.append(
            f"{source.folder} has gone on from commit {before.git.commit[:12]} to {source.commit[:12]}"
            f"{'; the files beside the lock are run' if before.files else ''}"
        )
    if before.git and before.git.dirty and not before.files:
        sentences.append(f"what was run then was not all in commit {before.git.commit[:12]} of {before.git.folder}")
    return sentences


def _files_before(lock: Lock) -> Mapping[str, str]:
    """The files of the side before."""
    return lock.before.files if lock.before else {}


def _changed_files(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name in changed_names(old, new):
        yield name, "was added" if name not in old else "is gone" if name not in new else "has changed"


def read_basis(folder: CampaignFolder, ledger: Ledger, transport: Transport, scratch: str) -> Basis:
    """Return what the campaign's choices follow from, as its jobs recorded it so far.

    Args:
        folder: The campaign's folder here.
        ledger: Its ledger.
        transport: The way to the site.
        scratch: The campaign's folder on the site.
    """
    recipe = read_locked(folder)[1]
    lock = recipe.get("lock")
    provenance = transport.run([*_READ, scratch], timeout=60).stdout
    chip = chips_of(provenance) or (ledger.site().get("gpus") or {}).get("chip")
    return Basis(
        chip, tools_of(provenance), _hashes_of_lock_data(lock), recipe.get("passes") or (), machine_of(provenance)
    )


def _hashes_of_lock_data(lock: Any) -> dict[str, str]:
    """As `Lock.hashes`, of a lock as data."""
    if not isinstance(lock, dict):
        return {}
    before = (lock.get("before") or {}).get("files") or {}
    return dict(lock.get("files") or {}) | {f"app.before/{name}": digest for name, digest in before.items()}


def complete_lock(folder: CampaignFolder, ledger: Ledger, transport: Transport, scratch: str) -> list[str]:
    """Write the choices, and the machine, profilers and driver that the jobs met, into the campaign's recipe.lock.yaml.

    Args:
        folder: The campaign's folder here.
        ledger: Its ledger.
        transport: The way to the site.
        scratch: The campaign's folder on the site.

    Returns:
        The tools whose versions differ from the recipe's own lock, a sentence each.
    """
    head, recipe = read_locked(folder)
    lock = recipe.get("lock")
    if not isinstance(lock, dict):
        return []
    basis = read_basis(folder, ledger, transport, scratch)
    now = {key: dict(values) for key, values in (("machine", basis.machine), ("tools", basis.tools)) if values}
    if chosen := ledger.choices():
        locked_choices = lock_choices(chosen, basis, load_rows(folder, _CHOSEN_LAUNCHES))
        now["choices"] = locked_choices.model_dump(mode="json", exclude_none=True)
    if lock != lock | now:
        write_locked(folder, head, {**recipe, "lock": lock | now})
    before = lock.get("tools") or {}
    return [
        f"{name} was {before[name]}, and here it is {version}"
        for name, version in basis.tools.items()
        if before.get(name, version) != version
    ]


def write_locked(folder: CampaignFolder, head: str, recipe: dict[str, Any]) -> None:
    """Replace the campaign's recipe.lock.yaml as a whole.

    Args:
        folder: The campaign's folder.
        head: The comments that the file begins with.
        recipe: The recipe with its lock as data.
    """
    write_text(folder.recipe, head + as_yaml(recipe))


def locked_text(folder: CampaignFolder) -> str:
    """The text of the campaign's recipe.lock.yaml, as far as its parser takes it: more than that is an error there.

    Raises:
        CampaignError: It is not UTF-8.
    """
    with folder.open(folder.recipe) as file:
        data = file.read(_LONGEST)
    try:  # the limit may cut a character in two
        return codecs.getincrementaldecoder("utf-8")().decode(data, final=len(data) < _LONGEST)
    except UnicodeDecodeError as fault:
        raise CampaignError(
            f"{folder.recipe} is not UTF-8: byte {fault.start} is {data[fault.start]:#04x}",
            hint="nsw writes UTF-8 alone: restore the file, or correct this byte in it",
        ) from None


def read_locked(folder: CampaignFolder) -> tuple[str, dict[str, Any]]:
    """The comments at the head of the campaign's recipe.lock.yaml, and the recipe as data."""
    text = locked_text(folder)
    lines = text.splitlines(keepends=True)
    head = "".join(lines[: next((i for i, line in enumerate(lines) if not line.startswith("#")), 0)])
    recipe: dict[str, Any] = parse(text, str(folder.recipe)).data
    return head, recipe


def tools_of(provenance: str) -> dict[str, str]:
    """Versions in what the jobs wrote: lines `tool=version`, a line `=`, then nvidia-smi's tables."""
    host_facts, gpus = _provenance_facts(provenance)
    versions = [(name, version) for name, version in host_facts if name not in _NOT_TOOLS]
    return dict(
        sorted(_join_values([*versions, *(("driver", row[_DRIVER]) for row in gpus if len(row) > _DRIVER)]).items())
    )


def _provenance_facts(provenance: str) -> tuple[list[tuple[str, str]], list[list[str]]]:
    """The names and values of the hosts, and the rows of their GPUs, in what the jobs wrote."""
    hosts, _, gpus = provenance.partition("\n=\n")
    facts = ((name, value.strip()) for name, _, value in (line.partition("=") for line in hosts.splitlines()))
    rows = csv.reader(gpus.splitlines(), skipinitialspace=True)
    return [(name, value) for name, value in facts if name and value], [row for row in rows if row and row[0].isdigit()]


def _join_values(facts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The values of each name, joined by ' | ' where there are several."""
    values: dict[str, set[str]] = {}
    for name, value in facts:
        values.setdefault(name, set()).add(value)
    return {name: " | ".join(sorted(several)) for name, several in values.items()}


_NAME = 1  # column of gpus.csv
_OF_HOST: Final = {"cpu": "CPU", "modules": "modules", "image": "container image"}
_OF_GPU: Final = {1: "chip", 7: "SM clock, at most", 9: "power limit", 10: "persistence mode", 11: "ECC", 12: "MIG"}


def machine_of(provenance: str) -> dict[str, str]:
    """What the jobs ran on, in what they wrote; of several unlike nodes or GPUs the values are joined by ' | '."""
    host_facts, gpus = _provenance_facts(provenance)
    facts = [(_OF_HOST[key], value) for key, value in host_facts if key in _OF_HOST]
    facts += [
        (name, row[column].strip())
        for row in gpus
        for column, name in _OF_GPU.items()
        if column < len(row) and row[column].strip()
    ]
    return _join_values(facts)


@dataclass(frozen=True, slots=True)
class Basis:
    """What a choice follows from beside the recipe.

    Attributes:
        chip: Names of the GPUs that the jobs met, else the site's; None where neither is known.
        tools: Versions of profilers and driver, by name.
        files: SHA-256 of each file of the application, by name.
        passes: The recipe's passes as data.
        machine: What the jobs ran on, by name: CPU, clocks, modules ...
    """

    chip: str | None = None
    tools: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    passes: Sequence[Any] = ()
    machine: Mapping[str, str] = field(default_factory=dict)


def _json_digest(data: object) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, default=str).encode()).hexdigest()


def chips_of(provenance: str) -> str | None:
    """Names of GPUs in what the jobs wrote; None where no nvidia-smi answered."""
    return _join_values(("chip", row[_NAME]) for row in _provenance_facts(provenance)[1] if len(row) > _NAME).get(
        "chip"
    )


def lock_choices(
    choices: Mapping[str, Choice], basis: Basis, launches: Sequence[Mapping[str, Any]] = ()
) -> LockedChoices:
    """What a lockfile records of a campaign's choices.

    Args:
        choices: By run.
        basis: What they follow from.
        launches: The rows of table chosen_launches.
    """
    chosen = [row for row in launches if row.get("ordinal") is not None]
    return LockedChoices(
        chip=basis.chip,
        tools=dict(basis.tools),
        files=_json_digest(dict(basis.files)),
        passes=_json_digest(list(basis.passes)),
        runs={
            run: LockedChoice(
                arguments=list(choice.arguments),
                limit_s=choice.limit_s,
                source=choice.source,
                note=choice.note,
                kernels=list(
                    dict.fromkeys(row["mangled_name"] or row["short_name"] for row in chosen if row["run"] == run)
                ),
                ordinals=sorted({int(row["ordinal"]) for row in chosen if row["run"] == run}),
            )
            for run, choice in choices.items()
        },
    )


def locked_choice(locked_choices: LockedChoices, run: str) -> Choice | None:
    """What was chosen for a run of that id then; None where nothing was."""
    locked = locked_choices.runs.get(run)
    return None if locked is None else Choice(tuple(locked.arguments), locked.limit_s, locked.source, locked.note)


def choice_mismatch(locked_choices: LockedChoices, now: Basis) -> str | None:
    """Why recorded choices do not hold here; None where they do."""
    return "; ".join(_basis_differences(locked_choices, now)) or None


def _basis_differences(locked_choices: LockedChoices, now: Basis) -> Iterator[str]:
    if locked_choices.chip != now.chip:
        yield f"the chip was {locked_choices.chip or 'not known'}, and here it is {now.chip or 'not known'}"
    for name in sorted({*locked_choices.tools, *now.tools}):
        old, new = locked_choices.tools.get(name, "not known"), now.tools.get(name, "not known")
        if old != new:
            yield f"{name} was {old}, and here it is {new}"
    if locked_choices.files != _json_digest(dict(now.files)):
        yield "files of the application have changed"
    if locked_choices.passes != _json_digest(list(now.passes)):
        yield "the passes of the recipe have changed"


def locked_recipe(folder: CampaignFolder) -> Recipe:
    """The recipe that the campaign carried out; the files that it names are not looked for."""
    return _parse_recipe(locked_text(folder), str(folder.recipe))


@lru_cache(maxsize=4)
def _parse_recipe(text: str, file: str) -> Recipe:
    """Parse and cache a recipe, which nothing changes afterwards: each choice of a campaign asks for it again."""
    from nsw.recipe.load import load_recipe_text

    return load_recipe_text(text, file).recipe


_GIT_S: Final = 30.0
# with none of the programs that a repository's configuration may name, but filters, which have names of their own
_GIT: Final = (
    "env", "GIT_ALLOW_PROTOCOL=", "GIT_OPTIONAL_LOCKS=0",
    "git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--literal-pathspecs",
)  # fmt: skip
_POINTER: Final = b"version https://git-lfs.github.com/spec/"


@dataclass(frozen=True, slots=True)
class _Git:
    """Git in a folder that it may be asked about.

    Args:
        folder: The folder.
        transport: This machine.
        filters: Words that turn off the filters of the repository.
    """

    folder: Path
    transport: Transport
    filters: Sequence[str]

    def __call__(self, *words: str, index: Path | None = None, stdin: bytes = b"") -> CommandResult:
        index_setting = (f"GIT_INDEX_FILE={index}",) if index else ()
        argv = [_GIT[0], *index_setting, *_GIT[1:], *self.filters, "-C", str(self.folder), *words]
        return self.transport.run(argv, timeout=_GIT_S, without=("GIT_",), stdin=stdin)

    def output_line(self, *words: str) -> str | None:
        """What a command prints, on one line; None where it fails."""
        done = self(*words)
        return done.stdout.rstrip("\n") if done.returncode == 0 else None


def _safe_git(folder: Path, transport: Transport) -> _Git | None:
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
    git = _safe_git(folder, transport)
    head = git.output_line("rev-parse", "--verify", "HEAD") if git else None
    if git is None or head is None:
        return None
    changed = git.output_line("status", "--porcelain", "--ignore-submodules=dirty", "--", ".")
    return LockedGit(folder=str(folder), commit=head, dirty=changed != "")


def resolve_commit(folder: Path, name: str, transport: Transport) -> str | None:
    """Return the commit that a name refers to in the repository around a folder.

    Args:
        folder: A folder in the repository.
        name: A branch, a tag, or another name of a commit.
        transport: The machine where git is asked.

    Returns:
        The commit's full hash; None: there is no such name, no repository, or git is not asked there.
    """
    git = None if name.startswith("-") else _safe_git(folder, transport)
    return git.output_line("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}") if git else None


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
    inside = _safe_git(home, transport)
    top = inside.output_line("rev-parse", "--show-toplevel") if inside else None
    git = _safe_git(Path(top), transport) if top else None
    if git is None:
        raise UsageError(f"git cannot be asked about {home}")
    index, checkout = into / "index", into / "files"
    _require_success(git("read-tree", commit, index=index), commit)
    from_git: list[Path] = []
    shared: list[Path] = []
    for file in files:
        name = os.path.relpath(file.absolute().parent.resolve() / file.name, git.folder.resolve())
        below = not name.startswith("..")
        names = git("ls-files", "-z", "--", name, index=index).stdout if below else ""
        if names:
            written = git("checkout-index", "-z", "--stdin", f"--prefix={checkout}/", index=index, stdin=names.encode())
            _require_success(written, commit)
            from_git.append(checkout / name)
        elif not below or not git.output_line("ls-files", "--", name):
            shared.append(file)
    if not from_git:
        raise UsageError(f"commit {commit[:12]} of {git.folder} has none of the program's files (app.files)")
    _refuse_lfs_pointers(checkout)
    state = LockedGit(folder=str(home), commit=commit, dirty=False)
    return Revision(state, (*from_git, *shared), tuple(file.name for file in shared))


def _require_success(done: CommandResult, commit: str) -> None:
    if done.returncode != 0:
        raise UsageError(f"git cannot write the files of commit {commit[:12]}: {done.stderr.strip()}")


def _refuse_lfs_pointers(folder: Path) -> None:
    """Raise where Git LFS stores a file: nsw runs none of the programs that would download it."""
    for file in folder.rglob("*"):
        if file.is_file() and not file.is_symlink():
            with open_to_read(file) as stream:
                if stream.read(len(_POINTER)) == _POINTER:
                    raise UsageError(
                        f"{file.relative_to(folder)} is stored in Git LFS, which nsw does not download",
                        hint="check that commit out, `nsw run` it, and name the folder of its campaign instead",
                    )
