"""VTune and APS as scripts: they take the words of their documentation, refuse others, and print made-up reports.

A result is a folder. It has no report before it is finalised where the collection left that for later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fakes import intel_reports as printed

if TYPE_CHECKING:
    from pathlib import Path

VTUNE = r"""#!/bin/bash
tool=${0##*/}
echo "$@" >>"${0%/*}/calls"
fail() { echo "${tool%-cl}: Error: $*" >&2; exit 1; }
case $1 in
--version) echo "Intel(R) VTune(TM) Profiler 2025.0.1 (build 629235) Command Line Tool"; exit ;;
-collect)
  analysis=$2; shift 2
  final=1
  while [[ ${1-} == -* && $1 != -- ]]; do case $1 in
    -knob) [[ $2 == *=* ]] || fail "Cannot find knob $2"; shift 2 ;;
    -finalization-mode=deferred | -finalization-mode=none) final=; shift ;;
    -result-dir | -r) result=$2; shift 2 ;;
    -strategy) shift 2 ;;
    -start-paused | -data-limit=*) shift ;;
    *) fail "Unknown option $1" ;;
  esac; done
  [ "${1-}" = -- ] || fail "no application"
  shift
  mkdir "$result" || fail "0x4000002c (Invalid result directory)"
  echo "$analysis" >"$result/analysis"
  [ -z "$final" ] || touch "$result/final"
  echo "vtune: Collection started." >&2
  "$@"; code=$?
  echo "vtune: Collection stopped." >&2
  exit "$code" ;;
-finalize)
  [ "$2 $3 $4" = "-search-dir / -result-dir" ] && [ -e "$5/analysis" ] || fail "0x4000002c (Invalid result directory) $*"
  [ ! -e "${0%/*}/broken" ] || fail "no licence today"
  touch "$5/final" ;;
-report)
  [ "$3 $5 $6 $7 $8 $9" = "-result-dir -format csv -csv-delimiter comma -report-output" ] || fail "Unknown words $*"
  [ -e "$4/final" ] || fail "the result is not finalized"
  cat "${0%/*}/$2.csv" >"${10}" || fail "Unknown report $2" ;;
*) fail "Unknown option $1" ;;
esac
"""
APS = r"""#!/bin/bash
echo "$@" >>"${0%/*}/calls"
result=
while [[ ${1-} == -* && $1 != -- ]]; do case $1 in
  --version) echo "Intel(R) VTune(TM) Profiler 2025.0.1 (build 629235) Command Line Tool"; exit ;;
  --report=*) [ -e "${1#*=}/stat-0.bin" ] || { echo "aps Error: no statistics" >&2; exit 1; }
    touch aps_report_20250402_171940.html; cat "${0%/*}/report.txt"; exit ;;
  --result-dir=*) result=${1#*=} ;;
  --collection-mode=hwc | --collection-mode=mpi | --collection-mode=omp | --collection-mode=all | --stat-level=[0-5]) ;;
  *) echo "aps Error: unknown option $1" >&2; exit 1 ;;
esac; shift; done
shift
mkdir -p "$result" && touch "$result/stat-${NSW_RANK:-0}.bin"
"$@"
"""


def make_vtune(folder: Path, name: str = "vtune") -> Path:
    """The program, and the reports that it gives; beside it `calls` is written, and a file `broken` ends finalising."""
    return _make(folder, name, VTUNE, {"hotspots.csv": printed.HOTSPOTS_CSV, "summary.csv": printed.SUMMARY_CSV})


def make_aps(folder: Path) -> Path:
    """The program, and the report that it gives; beside it `calls` is written."""
    return _make(folder, "aps", APS, {"report.txt": printed.APS})


def _make(folder: Path, name: str, text: str, files: dict[str, str]) -> Path:
    folder.mkdir(exist_ok=True)
    folder.chmod(0o777)
    for file, content in {"calls": "", **files}.items():
        (folder / file).write_text(content)
        (folder / file).chmod(0o666)
    program = folder / name
    program.write_text(text)
    program.chmod(0o755)
    return program
