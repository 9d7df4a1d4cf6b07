"""GPUs of this machine: which there are, and claims on them that two runs never share.

A claim is a lock on a file (flock) that the job's processes inherit: it ends with the last of them,
also when nsw has been killed. The files stand in one folder a user, so that campaigns see each other.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

_LINE = re.compile(r"GPU (?P<index>\d+): (?P<name>.*?) \(UUID: (?P<uuid>[\w-]+)\)")


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as nvidia-smi lists it; `index` is what CUDA_VISIBLE_DEVICES takes."""

    index: str
    name: str
    uuid: str


def detect() -> list[Gpu]:
    """The GPUs of this machine that the environment lets us use (CUDA_VISIBLE_DEVICES); none: []."""
    if not shutil.which("nvidia-smi"):
        return []
    try:
        done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    found = [Gpu(m["index"], m["name"], m["uuid"]) for m in map(_LINE.match, done.stdout.splitlines()) if m]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return found
    chosen: list[Gpu] = []
    for name in (v.strip() for v in visible.split(",")):
        named = next((g for g in found if name and (name == g.index or g.uuid.startswith(name))), None)
        if named is None:  # CUDA looks no further than the first that there is not
            break
        if named not in chosen:
            chosen.append(named)
    return chosen


def claims_folder() -> Path:
    """Where the claims of this user stand on this machine."""
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    folder = Path(base) / f"nsw-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to somebody else")
    return folder


def claim(gpus: list[Gpu], count: int, folder: Path) -> tuple[list[Gpu], list[int]] | None:
    """Claim `count` of the GPUs.

    Returns:
        The GPUs and the open file descriptors that hold the claims, to be passed to the job and then closed
        here; None when fewer are free.
    """
    taken: list[Gpu] = []
    held: list[int] = []
    for gpu in gpus:
        if len(taken) == count:
            break
        descriptor = os.open(folder / f"{gpu.uuid}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        taken.append(gpu)
        held.append(descriptor)
    if len(taken) == count:
        return taken, held
    for descriptor in held:
        os.close(descriptor)
    return None
