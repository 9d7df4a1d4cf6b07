"""The demo's recordings: complete, as recorded, and noticed when damaged."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import nsw.resources
from nsw.demo import Recording, extract, find, recordings
from nsw.errors import NswError


def test_every_case_of_the_recipe_is_recorded_once():
    found = [(r.params["gpus"], r.params["batch"], r.pass_kind) for r in recordings()]
    assert sorted(found) == sorted((g, b, "timeline") for g, b in itertools.product((1, 2, 4), (8, 16, 32, 128)))


@pytest.mark.parametrize("name", [r.name for r in recordings()])
def test_a_recording_extracts_to_the_case_that_its_index_entry_says(name: str, tmp_path: Path):
    recording = find(name)
    report, printed = extract(recording, tmp_path / "new folder")
    assert hashlib.sha256(report.read_bytes()).hexdigest() == recording.files[0].sha256
    with closing(sqlite3.connect(report)) as database:
        gpus = database.execute("SELECT count(DISTINCT deviceId) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()[0]
    assert gpus == recording.params["gpus"]
    line = re.search(r"gpus=(\d+) batch=(\d+) images_per_sec=[\d.]+", printed.read_text())
    assert line
    assert (int(line[1]), int(line[2])) == (recording.params["gpus"], recording.params["batch"])
    assert sorted(p.name for p in (tmp_path / "new folder").iterdir()) == sorted(f.name for f in recording.files)


def changed(recording: Recording, **change: object) -> Recording:
    file = dataclasses.replace(recording.files[0], **change)
    return dataclasses.replace(recording, files=(file,))


@pytest.mark.parametrize("change", [{"sha256": "0" * 64}, {"size": 1000}], ids=["other content", "shorter"])
def test_a_file_that_is_not_what_was_recorded_is_refused_and_not_left(change: dict[str, object], tmp_path: Path):
    with pytest.raises(NswError, match=r"alexnet-g4-b8-16\.xz is damaged"):
        extract(changed(find("alexnet-g4-b8"), **change), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "damage", [lambda b: b[: len(b) // 2], lambda b: b"\0" * 64 + b[64:]], ids=["cut", "overwritten"]
)
def test_a_damaged_archive_is_named(damage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    recording = find("alexnet-g4-b8")
    stored = nsw.resources.recordings_folder(recording.collection).joinpath(recording.files[0].stored).read_bytes()
    (tmp_path / recording.files[0].stored).write_bytes(damage(stored))
    monkeypatch.setattr(nsw.resources, "recordings_folder", lambda _: tmp_path)
    with pytest.raises(NswError, match=r"alexnet-g4-b8-16\.xz is damaged"):
        extract(recording, tmp_path / "out")


def test_unknown_names_are_refused_with_those_there_are():
    with pytest.raises(NswError) as refused:
        find("alexnet-g3-b8")
    assert "alexnet-g2-b16" in (refused.value.hint or "")
    with pytest.raises(NswError) as refused:
        recordings("vgg")
    assert "alexnet-4xH200" in (refused.value.hint or "")


def test_replaying_leaves_the_report_and_prints_what_the_program_printed(tmp_path: Path):
    checkout = str(Path(nsw.resources.__file__).parents[1])
    result = subprocess.run(
        [sys.executable, "-m", "nsw.demo", "alexnet-g4-b128"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": checkout}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert result.stdout == "arch=alexnet gpus=4 batch=128 images_per_sec=50110.1 loss=6.9073\n"
    assert [p.name for p in tmp_path.iterdir()] == ["alexnet-g4-b128.sqlite"]
