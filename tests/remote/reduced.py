"""A site whose nsys is a script: its reports hold a recorded export, which `nsys export` gives back."""

from __future__ import annotations

import gzip
from pathlib import Path

EXPORT = Path(__file__).parents[1] / "fixtures" / "h200" / "tiled.sqlite.gz"
# `nsys profile ... --output=NAME PROGRAM`, `nsys export --output=FILE REPORT`: as much of nsys as a campaign needs
NSYS = r"""#!/bin/bash
echo "$@" >>"${0%/*}/calls"
verb=$1; shift
while [[ ${1-} == -* ]]; do
  [[ $1 != --output=* ]] || out=${1#*=}
  shift
done
case $verb in
profile) "$@"; code=$?; cp "${0%/*}/recorded" "$out.nsys-rep"; exit $code ;;
export) while [ -e "${0%/*}/held" ]; do sleep 0.1; done
  [ ! -e "${0%/*}/broken" ] || { echo "no licence today" >&2; exit 1; }; cp "$1" "$out" ;;
*) echo "NVIDIA Nsight Systems version 2025.1.2" ;;
esac
"""
RECIPE = """
nsw: 1
name: far
app:
  command: sh prog.sh {{ n }}
  files: [prog.sh]
matrix: {n: [1, 2, 3]}
passes: [timeline]
collect: COLLECT
resources: {gpus: 0, time: 1m}
"""


def make_nsys(folder: Path, export: bytes | None = None) -> Path:
    """The program; beside it `calls` is written, a file `broken` makes exports fail, and one named `held` wait.

    Args:
        folder: Where it will be.
        export: The export that its reports give.
    """
    folder.mkdir()
    folder.chmod(0o777)
    (folder / "recorded").write_bytes(export or gzip.decompress(EXPORT.read_bytes()))
    (folder / "calls").touch()
    (folder / "calls").chmod(0o666)
    nsys = folder / "nsys"
    nsys.write_text(NSYS)
    nsys.chmod(0o755)
    return nsys


def recipe(collect: str) -> str:
    """Three runs under nsys."""
    return RECIPE.replace("COLLECT", collect)


def verbs(nsys: Path) -> list[str]:
    """What nsys was asked for, without its version."""
    calls = (nsys.parent / "calls").read_text().splitlines()
    return sorted(line.split()[0] for line in calls if line.split()[0] in {"profile", "export"})
