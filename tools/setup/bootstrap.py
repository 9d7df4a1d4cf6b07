"""Makes the virtual environment that every `make` target runs in: `python3 bootstrap.py [--dev] [--versions WHICH]`.

What it installs are the tested versions of tools/setup/requirements*.txt, each verified by its hash; or, to test, the
newest or the oldest versions that pyproject.toml allows.

Needs nothing but the standard library, no root, and no pip or ensurepip (Debian ships neither with python3).
Made once: a stamp inside the environment says what it was made from, and a second call with nothing changed
ends at once.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036  an older python3 is met before anything says that it is too old
    sys.exit(
        "error: nsw needs Python 3.11 or newer; %s is %d.%d.\n"  # noqa: UP031
        "  Name a newer one if this machine has it:  make PYTHON=python3.12 ..."
        % (sys.executable, sys.version_info[0], sys.version_info[1])
    )

import argparse
import fcntl
import hashlib
import importlib.util
import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[2]
STAMP = "nsw-setup.json"
LOCKS = {False: "tools/setup/requirements.txt", True: "tools/setup/requirements-dev.txt"}  # by --dev
VERSIONS = ("locked", "newest", "oldest")
LEAST = re.compile(r"([A-Za-z0-9._-]+)\s*>=\s*([0-9][0-9.]*)")


def main() -> None:
    """Parses the command line and brings the environment up to date."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--venv", default=".venv", help="folder of the environment, below the checkout (%(default)s)")
    parser.add_argument("--dev", action="store_true", help="also what the tests need")
    parser.add_argument("--versions", choices=VERSIONS, default="locked", help="which of all libraries (%(default)s)")
    options = parser.parse_args()
    venv = ROOT / options.venv
    with lock(ROOT / ".cache" / "setup.lock"):
        old = read_stamp(venv)
        # an environment once made for the tests stays one: `make demo` after `make test` has nothing to do
        want = stamp(venv, dev=options.dev or bool(old.get("dev")), versions=options.versions)
        if old != want:
            set_up(venv, want)


def set_up(venv: Path, want: dict[str, str | bool]) -> None:
    """Creates or updates the environment; the stamp comes last, so that a broken set-up is done again."""
    say(f"Setting up nsw in {venv.name} (once; about a minute, 440 MB).")
    (venv / STAMP).unlink(missing_ok=True)
    (ROOT / ".cache" / "setup.log").unlink(missing_ok=True)
    if not usable(venv):
        create(venv)
    install(venv, dev=bool(want["dev"]), versions=str(want["versions"]))
    (venv / STAMP).write_text(json.dumps(want, indent=1) + "\n", encoding="utf-8")
    say(f"Ready: {Path(venv.name) / 'bin' / 'nsw'}")


def stamp(venv: Path, *, dev: bool, versions: str) -> dict[str, str | bool]:
    """What an environment is made from: it is current when all of this is unchanged."""
    sources = ["pyproject.toml", *([LOCKS[dev]] if versions == "locked" else [])]
    return {
        "dev": dev,
        "versions": versions,
        "sources": hashlib.sha256(b"\0".join((ROOT / name).read_bytes() for name in sources)).hexdigest(),
        "python": sys.version,
        "base": str(Path(sys.base_prefix).resolve()),
        "place": str(venv),  # scripts and the editable install hold absolute paths: a moved checkout starts anew
    }


def read_stamp(venv: Path) -> dict[str, str | bool]:
    """The stamp of an earlier set-up; empty when there is none."""
    try:
        found = json.loads((venv / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and (venv / "bin" / "python").exists() else {}


def usable(venv: Path) -> bool:
    """True when the folder is an environment of this very Python, at this place, and has a pip."""
    question = "import sys, pip; print(sys.version, sys.base_prefix, sys.prefix, sep='\\n')"
    try:
        answer = subprocess.run(
            [venv / "bin" / "python", "-c", question], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return False
    shebang = (venv / "bin" / "pip").read_bytes()[:600] if (venv / "bin" / "pip").exists() else b""
    same = answer == f"{sys.version}\n{sys.base_prefix}\n{venv}\n"
    return same and str(venv).encode() in shebang


def create(venv: Path) -> None:
    """A fresh environment with pip in it, by ensurepip or, where that is missing, by pip's own wheel."""
    if venv.exists() and not (venv / "pyvenv.cfg").exists() and any(venv.iterdir()):
        fail(f"{venv} is in the way: it is no virtual environment.", "Move it aside, then try again.")
    shutil.rmtree(venv, ignore_errors=True)
    has_pip = importlib.util.find_spec("ensurepip") is not None
    say("Creating the environment:")
    say("  making its folders")
    carry_out([sys.executable, "-m", "venv", "--without-pip", str(venv)], "python -m venv")
    if has_pip:
        say("  unpacking pip (some seconds)")
        carry_out([str(venv / "bin" / "python"), "-m", "ensurepip", "--upgrade", "--default-pip"], "ensurepip")
    else:
        say("  fetching pip, which this Python comes without")
        add_pip(venv)


def carry_out(words: list[str], what: str) -> None:
    """Runs a step of the standard library; ends with what it printed when it fails."""
    made = subprocess.run(words, capture_output=True, text=True, check=False)
    if made.returncode:
        fail(f"{what} failed:\n{made.stdout}{made.stderr}", "Is the disk full, or the folder read-only?")


def add_pip(venv: Path) -> None:
    """Installs pip into an environment that has none, from its wheel on the package index."""
    from fetch_pip import PipFetchError, fetch_pip  # noqa: PLC0415  seldom needed

    try:
        wheel = fetch_pip(ROOT / ".cache", sys.version_info[:2])
    except PipFetchError as error:
        fail(
            str(error),
            "Install Debian's python3-venv (it brings pip along), or mend the network settings above.",
        )
    run_pip(venv, ["install", "--no-index", str(wheel)], str(wheel / "pip"))


def install(venv: Path, *, dev: bool, versions: str) -> None:
    """Installs nsw and what it needs; of locked versions only wheels whose hash is right, so that nothing is built."""
    say("Installing what nsw needs:")
    if versions == "locked":
        lock = str(ROOT / LOCKS[dev])
        run_pip(venv, ["install", "--no-input", "--only-binary=:all:", "--require-hashes", "--requirement", lock])
        # nsw itself, by the build backend that the lock brought
        here = ["--no-deps", "--no-index", "--no-build-isolation", "--editable", str(ROOT)]
        run_pip(venv, ["install", "--no-input", *here])
        return
    wanted = ["--editable", str(ROOT), *(dev_requirements() if dev else [])]
    if versions == "newest":
        wanted += ["--upgrade", "--upgrade-strategy=eager"]
    else:
        limits = venv / "oldest.txt"
        limits.write_text("".join(f"{line}\n" for line in oldest()), encoding="utf-8")
        wanted += ["--prefer-binary", "--constraint", str(limits)]
    run_pip(venv, ["install", "--no-input", *wanted])


def run_pip(venv: Path, words: list[str], *pip: str) -> None:
    """Runs the environment's pip, or another; a short line a library on the terminal, all in .cache/setup.log."""
    log: list[str] = []
    full = [str(venv / "bin" / "python"), *(pip or ("-m", "pip")), *words]
    full += ["--disable-pip-version-check", "--progress-bar=off", "--no-color"]
    with subprocess.Popen(full, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT) as process:
        assert process.stdout
        for line in process.stdout:
            log.append(line)
            show_progress(line)
    path = ROOT / ".cache" / "setup.log"
    path.parent.mkdir(exist_ok=True)
    with path.open("a", encoding="utf-8") as said:
        said.write(f"$ {' '.join(full)}\n{''.join(log)}")
    if process.returncode:
        fail(
            f"pip could not install what nsw needs:\n{''.join(log[-12:])}",
            "Is the network up? Behind a proxy set HTTPS_PROXY, for your own package index PIP_INDEX_URL;\n"
            f"  then try again. All that pip said is in {path.relative_to(ROOT)}. If this machine has no wheel of a\n"
            "  tested version (an old glibc, another processor), take what fits it:  make VERSIONS=newest ...",
        )


def show_progress(line: str) -> None:
    """Turns a line of pip into a line for the user, or into nothing."""
    words = line.split()
    if line.startswith("Collecting "):
        say(f"  fetching {words[1]}")
    elif line.startswith("Installing collected packages:"):
        count = len(words) - 3
        say("  installing nsw itself" if count == 1 else f"  installing {count} packages (the longest step)")


def dev_requirements() -> list[str]:
    """The dev group of pyproject.toml, read here because `pip install --group` needs pip 25.1."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    return [str(requirement) for requirement in groups["dev"]]


def oldest() -> list[str]:
    """The least version of each library that pyproject.toml names, as constraints."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    named = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    return [f"{match[1]}=={match[2]}" for match in map(LEAST.match, named) if match]


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Only one set-up at a time in a checkout; a second one waits and then finds it done."""
    path.parent.mkdir(exist_ok=True)
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another set-up runs in this checkout; waiting for it.")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def say(text: str) -> None:
    """One line of progress, at once also through a pipe."""
    print(text, flush=True)


def fail(what: str, todo: str) -> NoReturn:
    """Ends with what went wrong and what to do."""
    sys.exit(f"error: {what}\n  {todo}")


if __name__ == "__main__":
    main()
