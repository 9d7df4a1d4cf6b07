"""Recorded runs that the site `demo` replays: real reports, so that nsw can be seen at work with no GPU.

The recordings are package data, compressed; an index says what each is and what its files must hash to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nsw.errors import NswError
from nsw.safe_files import replacing_file

COLLECTION = "alexnet-4xH200"

NOTE = (
    "Recorded on 2026-11-21 on 4 NVIDIA H200 of one host (driver 580.159.04, CUDA 13.0, PyTorch 2.11.0, "
    "Nsight Systems 2024.2.3); nothing was measured here."
)

_CHUNK = 1 << 20  # bytes


@dataclass(frozen=True, slots=True)
class RecordedFile:
    """One file of a recording.

    Args:
        name: What it is called when extracted.
        stored: What it is in, in the package; `.xz` when compressed, perhaps with others.
        offset: Bytes of others before it there.
        size: Bytes when extracted.
        sha256: Of the extracted file.
    """

    name: str
    stored: str
    offset: int
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded run.

    Args:
        name: Unique in its collection, such as `alexnet-g2-b16`.
        params: The case: gpus and batch.
        pass_kind: The pass that was recorded.
        command: The words that were run.
        files: The report, and what the program printed (`NAME.out`).
        collection: The folder of recordings it belongs to.
    """

    name: str
    params: Mapping[str, int]
    pass_kind: str
    command: tuple[str, ...]
    files: tuple[RecordedFile, ...]
    collection: str


def recordings(collection: str = COLLECTION) -> tuple[Recording, ...]:
    """All recordings of a collection.

    Raises:
        NswError: There is no such collection.
    """
    import json

    from nsw.resources import recordings_folder

    index = json.loads(recordings_folder(collection).joinpath("index.json").read_text(encoding="utf-8"))
    return tuple(_recording(entry, collection) for entry in index["recordings"])


def _recording(entry: Mapping[str, Any], collection: str) -> Recording:
    return Recording(
        name=entry["name"],
        params=entry["params"],
        pass_kind=entry["pass"],
        command=tuple(entry["command"]),
        files=tuple(RecordedFile(f["name"], f["stored"], f["offset"], f["bytes"], f["sha256"]) for f in entry["files"]),
        collection=collection,
    )


def find(name: str, collection: str = COLLECTION) -> Recording:
    """The recording of that name.

    Raises:
        NswError: There is none; the hint names those there are.
    """
    recordings_by_name = {recording.name: recording for recording in recordings(collection)}
    if name not in recordings_by_name:
        raise NswError(f"there is no recording {name}", hint=f"there are: {', '.join(recordings_by_name)}")
    return recordings_by_name[name]


def extract(recording: Recording, target: Path) -> list[Path]:
    """Writes the files of a recording into a folder, and makes sure that they are what was recorded.

    A file appears under its name only when it is whole. Files of the same names are replaced.

    Args:
        recording: One of `recordings()`.
        target: The folder; made when missing.

    Returns:
        The paths, in the order of the recording's files.

    Raises:
        NswError: A stored file is damaged.
    """
    target.mkdir(parents=True, exist_ok=True)
    return [_extract_file(recording, file, target) for file in recording.files]


def _extract_file(recording: Recording, file: RecordedFile, target: Path) -> Path:
    import hashlib

    path = target / file.name
    digest = hashlib.sha256()
    with replacing_file(path) as out:
        for chunk in _chunks(recording, file):
            digest.update(chunk)
            out.write(chunk)
        if digest.hexdigest() != file.sha256:
            raise _damage_error(file, f"its SHA-256 is {digest.hexdigest()}, recorded was {file.sha256}")
    return path


def _chunks(recording: Recording, file: RecordedFile) -> Iterator[bytes]:
    """The file's bytes, decompressed, a piece at a time."""
    import lzma
    from contextlib import nullcontext

    from nsw.resources import recordings_folder as folder_of

    stored = folder_of(recording.collection).joinpath(file.stored)
    with stored.open("rb") as raw, lzma.open(raw) if file.stored.endswith(".xz") else nullcontext(raw) as stream:
        try:
            stream.seek(file.offset)
            left = file.size
            while chunk := stream.read(min(left, _CHUNK)):
                left -= len(chunk)
                yield chunk
        except (lzma.LZMAError, EOFError) as error:
            raise _damage_error(file, str(error)) from error


def _damage_error(file: RecordedFile, reason: str) -> NswError:
    return NswError(f"the recording {file.stored} is damaged: {reason}", hint="install nsw again")
