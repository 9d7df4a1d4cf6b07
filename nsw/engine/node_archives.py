"""Files that each node of a run packed, with the reports of its ranks: unpacked here, each file by itself."""

from __future__ import annotations

import shutil
import tarfile
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from nsw.errors import CampaignError
from nsw.profilers.model import NODE_ARCHIVES
from nsw.safe_files import open_to_read, read_plain, replacing_file, write_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["is_unpacked", "unpack_node_archives"]


def unpack_node_archives(home: Path, reports: Sequence[str]) -> None:
    """Put the reports of each node's archive in its place; a damaged archive stays, beside what is whole in it.

    Args:
        home: The folder with what was collected of a run.
        reports: The shell patterns of its reports; an archive with another name in it is damaged.

    Raises:
        CampaignError: A report cannot be written, as on a full disk.
    """
    for archive in sorted(home.glob(NODE_ARCHIVES)) if NODE_ARCHIVES in reports else ():
        try:
            names = _unpack(archive, [pattern for pattern in reports if pattern != NODE_ARCHIVES])
            write_text(_list_of(home, archive.name), "".join(names))
        except tarfile.TarError:  # reading reports it, as any other report that is damaged
            continue
        except OSError as fault:
            raise CampaignError(f"{archive} cannot be unpacked: {fault.strerror or fault}") from None
        archive.unlink()


def _unpack(archive: Path, patterns: Sequence[str]) -> list[str]:
    """Unpack plain files; returns a line `BYTES NAME` for each."""
    names = []
    with open_to_read(archive) as raw, tarfile.open(fileobj=raw, mode="r:") as tar:
        for member in tar:
            source = tar.extractfile(member) if member.type in {tarfile.REGTYPE, tarfile.AREGTYPE} else None
            is_report = any(fnmatchcase(member.name, pattern) for pattern in patterns)
            if source is None or not is_report or "/" in member.name:
                raise tarfile.TarError(f"{member.name!r} is no report")
            with replacing_file(archive.with_name(member.name)) as target:
                shutil.copyfileobj(source, target, 1 << 20)
            names.append(f"{member.size} {member.name}\n")
    return names


def _list_of(home: Path, archive: str) -> Path:
    return home / f".{archive}.unpacked"  # hidden: it is no report


def is_unpacked(home: Path, name: str) -> bool:
    """Whether the file `name` of a run is an archive of a node whose reports are all here still.

    Args:
        home: The folder with what was collected of the run.
        name: The file's name.
    """
    try:
        lines = read_plain(_list_of(home, name)).decode().splitlines() if fnmatchcase(name, NODE_ARCHIVES) else []
        files = [line.partition(" ") for line in lines]
        return bool(files) and all((home / file).stat().st_size == int(size) for size, _, file in files)
    except (OSError, ValueError):
        return False
