"""What `pip install` brings: a wheel that works away from its checkout."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from tests.packaging.git_files import ROOT, tracked


def names(*folders: str) -> list[str]:
    """The tracked files of some folders, as they are called within the checkout."""
    return [path.relative_to(ROOT).as_posix() for path in tracked(*folders)]


MOST_BYTES = 7_000_000  # that a person waits for


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("wheel"))


def built(folder: Path) -> Path:
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(folder.glob("nsw-*.whl"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a clean environment with the wheel; nsw's libraries are lent, its checkout is not."""
    folder = tmp_path_factory.mktemp("a clean environment")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    target = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", "-q", wheel]
    subprocess.run(pip, check=True)
    # a path alone: the .pth file of the editable install in that folder is not followed
    (Path(target) / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def run(python: Path, cwd: Path, *words: str) -> str:
    result = subprocess.run([python, "-I", *words], cwd=cwd, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_wheel_holds_every_template_recipe_recording_and_data_file(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
    wanted = {f"nsw/_data/{name}" for name in names("templates", "recipes")} | set(names("nsw"))
    assert len(wanted) > 30
    assert wanted - inside == set()


def test_the_wheel_holds_nothing_of_the_checkout_but_nsw(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
        assert not [name for name in archive.namelist() if "__pycache__" in name]
    assert {top for top in tops if not top.endswith((".dist-info", ".data"))} == {"nsw"}


def test_a_second_build_has_the_same_bytes_and_both_are_small(wheel: Path, tmp_path: Path):
    assert built(tmp_path).read_bytes() == wheel.read_bytes()
    assert wheel.stat().st_size <= MOST_BYTES


def test_the_installed_nsw_has_its_manual_page_and_the_pages_of_its_topics(python: Path, tmp_path: Path):
    assert (python.parents[1] / "share" / "man" / "man1" / "nsw.1").read_text().startswith(".TH NSW 1")
    assert "submitted jobs continue" in run(python, tmp_path, "-m", "nsw", "help", "exit-codes")


def test_the_extra_all_leaves_out_the_proprietary_reader():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = {name for text in extras["all"] for name in re.findall(r"[a-z]+", text.partition("[")[2])}
    assert named == set(extras) - {"all", "ncu"}


def test_the_installed_nsw_finds_its_own_files(python: Path, tmp_path: Path):
    code = (
        "import nsw, nsw.resources as r, nsw.demo as d, pathlib\n"
        "print(nsw.__file__)\n"
        "print(r.recipes_folder() / 'apps' / 'train.py')\n"
        "print(next(r.templates_folder().rglob('*.j2')))\n"
        "print(*d.extract(d.find('alexnet-g1-b8'), pathlib.Path('out')))\n"
    )
    package, recipe, template, extracted = run(python, tmp_path, "-c", code).splitlines()
    home = Path(package).parent
    assert str(ROOT) not in package
    assert Path(recipe) == home / "_data" / "recipes" / "apps" / "train.py"
    assert Path(recipe).is_file()
    assert Path(template).is_relative_to(home / "_data" / "templates")
    assert extracted == "out/alexnet-g1-b8.sqlite out/alexnet-g1-b8.out"


def test_the_installed_command_plans_a_shipped_recipe(python: Path, tmp_path: Path):
    nsw = python.parent / "nsw"
    command = [nsw, "plan", "alexnet_scaling", "--site", "demo"]
    planned = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert planned.returncode == 0, planned.stderr
    assert "12 cases" in planned.stdout


def test_a_zipped_nsw_finds_its_own_files(wheel: Path, tmp_path: Path):
    code = (
        f"import sys; sys.path.insert(0, {str(wheel)!r})\n"
        "import nsw, nsw.resources as r\n"
        "print(nsw.__file__)\n"
        "print((r.recipes_folder() / 'apps' / 'train.py').read_text()[:3])\n"
    )
    package, text = run(Path(sys.executable), tmp_path, "-c", code).splitlines()
    assert package.startswith(str(wheel))
    assert text == '"""'


def test_a_checkout_uses_the_files_that_people_edit():
    from nsw.resources import recipes_folder, templates_folder

    assert recipes_folder() == ROOT / "recipes"
    assert templates_folder() == ROOT / "templates"
