"""Makes the virtual environment that every `make` target runs in: `python3 bootstrap.py [--dev]`.

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
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[2]
STAMP = "nsw-setup.json"


def main() -> None:
    """Parses the command line and brings the environment up to date."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--venv", default=".venv", help="folder of the environment, below the checkout (%(default)s)")
    parser.add_argument("--dev", action="store_true", help="also what the tests need")
    options = parser.parse_args()
    venv = ROOT / options.venv
    with lock(ROOT / ".cache" / "setup.lock"):
        old = read_stamp(venv)
        # an environment once made for the tests stays one: `make demo` after `make test` has nothing to do
        want = stamp(venv, dev=options.dev or bool(old.get("dev")))
        if old != want:
            set_up(venv, want)


def set_up(venv: Path, want: dict[str, str | bool]) -> None:
    """Creates or updates the environment; the stamp comes last, so that a broken set-up is done again."""
    say(f"Setting up nsw in {venv.name} (once; about a minute, 300 MB).")
    (venv / STAMP).unlink(missing_ok=True)
    if not usable(venv):
        create(venv)
    install(venv, ["--editable", str(ROOT), *(dev_requirements() if want["dev"] else [])])
    (venv / STAMP).write_text(json.dumps(want, indent=1) + "\n", encoding="utf-8")
    say(f"Ready: {Path(venv.name) / 'bin' / 'nsw'}")


def stamp(venv: Path, *, dev: bool) -> dict[str, str | bool]:
    """What an environment is made from: it is current when all of this is unchanged."""
    return {
        "dev": dev,
        "pyproject": hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest(),
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
    say("Creating the environment" + ("." if has_pip else "; this Python comes without pip, so pip is fetched first."))
    made = subprocess.run(
        [sys.executable, "-m", "venv", *([] if has_pip else ["--without-pip"]), venv],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode:
        fail(
            f"python -m venv failed:\n{made.stdout}{made.stderr}",
            "Is the disk full, or the folder read-only?",
        )
    if not has_pip:
        add_pip(venv)


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
    run_pip([str(venv / "bin" / "python"), str(wheel / "pip"), "install", "--no-index", str(wheel)])


def install(venv: Path, what: list[str]) -> None:
    """Runs `pip install` in the environment."""
    run_pip([str(venv / "bin" / "python"), "-m", "pip", "install", "--no-input", *what])


def run_pip(command: list[str]) -> None:
    """Runs pip; one short line a library on the terminal, everything in .cache/setup.log."""
    log: list[str] = []
    full = [*command, "--disable-pip-version-check", "--progress-bar=off", "--no-color"]
    with subprocess.Popen(full, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT) as process:
        assert process.stdout
        for line in process.stdout:
            log.append(line)
            show_progress(line)
    path = ROOT / ".cache" / "setup.log"
    path.write_text("".join(log), encoding="utf-8")
    if process.returncode:
        fail(
            f"pip could not install what nsw needs:\n{''.join(log[-12:])}",
            "Is the network up? Behind a proxy set HTTPS_PROXY, for your own package index PIP_INDEX_URL;\n"
            f"  then try again. All that pip said is in {path.relative_to(ROOT)}.",
        )


def show_progress(line: str) -> None:
    """Turns a line of pip into a line for the user, or into nothing."""
    words = line.split()
    if line.startswith("Collecting "):
        say(f"  fetching {words[1]}")
    elif line.startswith("Installing collected packages:"):
        say(f"  installing {len(words) - 3} packages")


def dev_requirements() -> list[str]:
    """The dev group of pyproject.toml, read here because `pip install --group` needs pip 25.1."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    return [str(requirement) for requirement in groups["dev"]]


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
