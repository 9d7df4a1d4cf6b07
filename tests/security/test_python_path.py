"""Python files of the current folder are not nsw's: not for the program, its workers, nor the demo in a run's folder."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import nsw
from nsw.readers.detect import read_many

TRACES = 2


@pytest.fixture
def hostile(tmp_path):
    """A folder with a module of every name in Python's library, of which each leaves a trace when it is imported."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    names = [*sys.stdlib_module_names, "typer", "pandas", "pyarrow", "numpy", "yaml", "rich", "jinja2", "pydantic"]
    for name in names:
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name + ' '!r})\n")
    return folder


def without_what_python_asks_first(folder: Path) -> None:
    """Take away what `python -m` imports before it looks for any program: there only -P helps."""
    while in_it(folder, sys.executable, "-m", "no_such_module", traceback=True) and (asked := ran(folder).split()):
        for name in asked:
            (folder / f"{name}.py").unlink()
        (folder.parent / "ran").unlink()


def ran(folder: Path) -> str:
    trace = folder.parent / "ran"
    return trace.read_text() if trace.exists() else ""


def large(folder: Path) -> list[str]:
    """Files so large that several processes read them."""
    for number in range(TRACES):
        with (folder / f"{number}.csv").open("wb") as file:
            file.write(b"no report\n")
            file.truncate(12_000_000)
    return [f"{number}.csv" for number in range(TRACES)]


def in_it(folder: Path, *words: str, traceback: bool = False, **env: str) -> subprocess.CompletedProcess[str]:
    known = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, env=known | env, timeout=120)
    assert traceback or "Traceback" not in done.stderr, done.stderr
    return done


def test_the_folder_runs_its_modules_where_python_is_let(hostile):
    """The attack itself, so that the tests below mean something."""
    in_it(hostile, sys.executable, "-c", "import typing")
    assert "typing" in ran(hostile)


PROGRAM = Path(sys.executable).with_name("nsw")
WAYS = {
    "program": [str(PROGRAM)],
    "-P": [sys.executable, "-P", "-m", "nsw"],
    "-m": [sys.executable, "-m", "nsw"],
    "-Bmnsw": [sys.executable, "-Bmnsw"],
    "-E": [sys.executable, "-E", "-m", "nsw"],
}


@pytest.mark.parametrize("way", WAYS)
def test_neither_nsw_nor_its_workers_import_from_the_current_folder(hostile, way):
    if way == "program" and not PROGRAM.exists():
        pytest.skip("nsw is not installed as a program here")
    if way not in {"program", "-P"}:
        without_what_python_asks_first(hostile)
    done = in_it(hostile, *WAYS[way], "read", *large(hostile))
    assert "0.csv" in done.stderr + done.stdout
    assert ran(hostile) == ""


def test_the_demo_does_not_import_what_an_application_brings(hostile, tmp_path):
    (tmp_path / "train.py").write_text("")
    shutil.copy(Path(nsw.__file__).parents[1] / "recipes" / "apps" / "train.py", hostile / "train.py")
    recipe = Path(nsw.__file__).parents[1] / "recipes" / "alexnet_scaling.yaml"
    names = ["train.py", *(f"{name}.py" for name in ("json", "typing", "pathlib", "lzma", "hashlib", "dataclasses"))]
    text = recipe.read_text().replace("[apps/train.py]", str(names)).replace("gpus: [1, 2, 4]", "gpus: [1]")
    (hostile / "r.yaml").write_text(text.replace("batch: [8, 16, 32, 128]", "batch: [8]"))
    done = in_it(
        hostile, sys.executable, "-P", "-m", "nsw", "run", "r.yaml", "--site", "demo", "--root", "../campaigns"
    )
    assert done.returncode == 0, done.stderr
    assert ran(hostile) == ""


def test_an_entry_of_pythonpath_that_means_the_current_folder_gives_the_workers_nothing(hostile, monkeypatch):
    """The workers start afresh; the program itself has begun when it can look at the variable."""
    monkeypatch.chdir(hostile)
    monkeypatch.setenv("PYTHONPATH", f":.:{hostile.parent}")
    reports = list(read_many([Path(name) for name in large(hostile)], workers=2))
    assert len(reports) == TRACES
    assert os.environ["PYTHONPATH"] == f":.:{hostile.parent}"
    assert "PYTHONSAFEPATH" not in os.environ
    assert ran(hostile) == ""


def test_where_nsw_is_from_the_current_folder_it_still_runs_and_looks_there_last():
    root = Path(nsw.__file__).parents[1]
    code = "import runpy, sys; sys.argv = ['-m', '--version']; sys.orig_argv = ['python', '-m', 'nsw', '--version']"
    done = in_it(
        root, sys.executable, "-c", f"{code}; sys.path.insert(0, {str(root)!r}); import nsw; print(sys.path[-1])"
    )
    assert done.stdout == f"{root}\n"
    assert in_it(root, sys.executable, "-m", "nsw", "--version").stdout.startswith("nsw ")


def test_other_programs_keep_their_current_folder(tmp_path):
    package = tmp_path / "other"
    package.mkdir()
    (package / "__init__.py").write_text("import nsw\n")
    (package / "__main__.py").write_text("import sys; print(sys.path[0])\n")
    assert in_it(tmp_path, sys.executable, "-m", "other").stdout == f"{tmp_path}\n"
