"""The locks of tested versions: what pyproject.toml asks for, with hashes, from no index in particular."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PYTHONS = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
RUNTIME = [*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"]]
LOCKS = {
    "requirements.txt": RUNTIME,
    "requirements-dev.txt": [*RUNTIME, *PROJECT["dependency-groups"]["dev"]],
    "requirements-docs.txt": PROJECT["dependency-groups"]["docs"],  # of an environment of its own
}


def locked(name: str) -> list[tuple[Requirement, list[str]]]:
    """Each library of a lock with its hashes."""
    text = (ROOT / "tools" / "setup" / name).read_text()
    entries = re.sub(r"^ *#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ").splitlines()
    found = []
    for entry in filter(str.strip, entries):
        requirement, *hashes = re.split(r"\s+--hash=", entry)
        found.append((Requirement(requirement), [h.strip() for h in hashes]))
    return found


def holds(requirement: Requirement, python: str, machine: str) -> bool:
    """Whether its marker takes it there."""
    there = {
        "python_version": python, "python_full_version": f"{python}.0", "platform_machine": machine, "os_name": "posix",
        "sys_platform": "linux", "implementation_name": "cpython", "platform_python_implementation": "CPython",
    }  # fmt: skip
    return requirement.marker is None or requirement.marker.evaluate(there)


@pytest.mark.parametrize("name", LOCKS)
def test_each_library_has_one_version_and_hashes(name):
    entries = locked(name)
    assert len(entries) > 20
    for requirement, hashes in entries:
        assert re.fullmatch(r"==[0-9][0-9a-z.]*", str(requirement.specifier)), requirement
        assert requirement.url is None
        assert hashes, requirement
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", one) for one in hashes), requirement


@pytest.mark.parametrize("name", LOCKS)
def test_no_index_is_named(name):
    text = (ROOT / "tools" / "setup" / name).read_text()
    assert "://" not in text
    assert not re.search(r"^\s*(-i|-f|--(?!hash=))", text, flags=re.MULTILINE)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("name", LOCKS)
def test_the_lock_is_what_pyproject_asks_for_on_every_python(name, python, machine):
    there = [r for r, _ in locked(name) if holds(r, python, machine)]
    versions = {canonicalize_name(r.name): str(r.specifier).removeprefix("==") for r in there}
    assert len(versions) == len(there), "a library is locked twice"
    for asked in map(Requirement, LOCKS[name]):
        if holds(asked, python, machine):
            version = versions.get(canonicalize_name(asked.name))
            assert version, f"{asked} is not locked: make lock"
            assert version in asked.specifier, f"{asked}: {version} is locked: make lock"


def test_both_locks_have_the_same_versions():
    of = {name: {(r.name, str(r.specifier), tuple(hashes)) for r, hashes in locked(name)} for name in LOCKS}
    assert of["requirements.txt"] < of["requirements-dev.txt"]
