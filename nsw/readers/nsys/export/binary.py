"""`.nsys-rep`, `.qdrep` and `.qdstrm`: the format is NVIDIA's own, so a found nsys exports it to SQLite.

An nsys is looked for in NSW_NSYS, where the site has one, on PATH and in the usual places. Without one the
problem says what to run where one is. An export that already is beside the report is used only when there
is no nsys and it is newer than the report, and then a warning names it. A .qdstrm is what is left where nsys could
not make a report; the importer that comes with nsys makes one of it first.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
from collections import Counter
from pathlib import Path

from nsw.profilers.files_of_one_recording import recording_files_from
from nsw.readers.installed_tools import ToolRunError, find_tool, run_tool
from nsw.readers.model import Options, Report, Sample
from nsw.safe_files import open_to_read

_SUFFIXES = (".nsys-rep", ".qdrep", ".qdstrm")
_MAGIC = b"NVIDIA Tegra Profiler Report"
_RAW_MAGIC = b"U3w[END]NVIDIA Nsight Systems Stream"
_VERSION = re.compile(rb"nsight-?systems(?:-cli)?[/-](20\d\d\.\d{1,2}\.\d{1,2})", re.IGNORECASE)  # in paths
_LOOKED_AT = 16 << 20  # bytes
_IMPORTERS = "host-linux*/QdstrmImporter"  # below the folder of an installation
_TIMEOUT = 600.0  # s; 10 million events take about a minute
_TRIES = 3  # different nsys


def sniff(sample: Sample) -> int:
    """Certain by its first words, which .nsys-rep and .qdrep share; likely by its suffix."""
    if sample.head.startswith((_MAGIC, _RAW_MAGIC)):
        return 100
    return 80 if sample.suffix in _SUFFIXES and sample.is_binary else 0


def read(path: Path, options: Options) -> Report:
    """Export the report into a temporary folder and read that."""
    from nsw.readers.nsys.export import sqlite  # with numpy, which who only looks for an nsys does not need

    report = Report(str(path), tool="nsys", format="nsys-binary")
    failures: list[str] = []
    tools = _site_nsys(options.nsys) + find_nsys()
    with tempfile.TemporaryDirectory(prefix="nsw-nsys-", ignore_cleanup_errors=True) as folder:
        exports = {file: Path(folder) / f"timeline.{n}.sqlite" for n, file in enumerate(recording_files_from(path), 1)}
        for tool in list(dict.fromkeys(tools))[:_TRIES]:
            every = (_try_export(tool, file, exported, Path(folder)) for file, exported in exports.items())
            failure = next((failure for failure in every if failure is not None), None)
            if failure is None:
                return _fill_from(report, sqlite.read(exports[path], options))
            failures.append(f"{tool}: {failure}")
    return _report_without_nsys(report, path, options, failures)


def find_nsys() -> list[str]:
    """The nsys to try, best first."""
    return find_tool("nsys")


def has_nsys(site_nsys: str | None = None) -> bool:
    """Whether this machine has an nsys to read reports with; `site_nsys` is that of the site."""
    return any(shutil.which(tool) for tool in (*_site_nsys(site_nsys), *find_nsys()))


def is_readable(report: Path, site_nsys: str | None = None) -> bool:
    """Whether a report needs no nsys that exports it, or this machine has one, or a newer export beside the report."""
    return report.suffix not in _SUFFIXES or has_nsys(site_nsys) or _has_newer_export(report)


def _has_newer_export(report: Path) -> bool:
    export = report.with_suffix(".sqlite")
    return export.exists() and export.stat().st_mtime_ns > report.stat().st_mtime_ns


def _site_nsys(site_nsys: str | None) -> list[str]:
    """The nsys of the site that a report comes from, where this machine has it too."""
    usable = site_nsys and "NSW_NSYS" not in os.environ and shutil.which(site_nsys)
    return [usable] if usable else []


def export_command(report: Path) -> str:
    """The command that a user can run where an nsys is."""
    target = report.with_suffix(".sqlite")
    if report.suffix == ".qdstrm":
        imported = report.with_suffix(".nsys-rep")
        first = shlex.join(["QdstrmImporter", "-i", str(report), "-o", str(imported)])
        return f"{first} && {export_command(imported)}"
    return shlex.join(_export_words("nsys", target, report))


def _export_words(tool: str, target: Path, report: Path) -> list[str]:
    return [tool, "export", "--type", "sqlite", "--force-overwrite", "true", "-o", str(target), str(report)]


def _try_export(tool: str, path: Path, target: Path, folder: Path) -> str | None:
    """What went wrong, or None."""
    link = folder / f"report{path.suffix}"  # whatever nsys leaves beside its input is left here
    link.unlink(missing_ok=True)
    link.symlink_to(path.absolute())
    target.unlink(missing_ok=True)
    if _is_raw(path):
        imported = folder / "imported.nsys-rep"
        failure = _import_raw(tool, link, imported)
        if failure is not None:
            return failure
        link = imported
    return _make_file(_export_words(tool, target, link), target)


def _is_raw(path: Path) -> bool:
    with open_to_read(path) as file:
        return path.suffix == ".qdstrm" or file.read(len(_RAW_MAGIC)) == _RAW_MAGIC


def _import_raw(tool: str, raw: Path, imported: Path) -> str | None:
    """Make a report of a .qdstrm with the importer of the same installation; what went wrong, or None."""
    imported.unlink(missing_ok=True)
    homes = [p.parent.parent for p in (Path(tool).absolute(), Path(tool).resolve())]
    importer = next((str(p) for home in homes for p in sorted(home.glob(_IMPORTERS)) if os.access(p, os.X_OK)), None)
    if importer is None:
        return "a .qdstrm must be imported first, and there is no QdstrmImporter beside this nsys"
    failure = _make_file([importer, "-i", str(raw), "-o", str(imported)], imported)
    return failure and f"QdstrmImporter: {failure}"


def _make_file(command: list[str], target: Path) -> str | None:
    """Have a tool make a file; what went wrong, or None: the exit status says little, the file counts."""
    try:
        _, output = run_tool(command, _TIMEOUT)
    except ToolRunError as fault:
        return str(fault)
    if target.exists() and target.stat().st_size:
        return None
    return _last_words(output) or "it made no file and printed nothing"


def _last_words(output: str) -> str:
    """The last lines that say something; a progress bar says nothing."""
    lines = [line.strip() for line in re.split(r"[\r\n]+", output)]
    return " ".join([x for x in lines if x and "%" not in x][-3:])[-500:]


def _fill_from(report: Report, exported: Report) -> Report:
    report.tool_version = exported.tool_version
    report.tables = exported.tables
    report.problems += exported.problems
    return report


def _report_without_nsys(report: Report, path: Path, options: Options, failures: list[str]) -> Report:
    from nsw.readers.nsys.export import sqlite

    reason = "; ".join(failures) if failures else "no nsys is found here (NSW_NSYS, PATH, /opt/nvidia)"
    existing = path.with_suffix(".sqlite")
    if _has_newer_export(path):
        _fill_from(report, sqlite.read(existing, options))
        report.warn(f"read from {existing.name} beside the report, which is newer than the report: {reason}")
        return report
    older = f"; {existing.name} beside it is older than the report and not used" if existing.exists() else ""
    importer = " (QdstrmImporter is in host-linux-x64 of the nsys that recorded it)" if path.suffix == ".qdstrm" else ""
    report.error(
        f"cannot be exported to SQLite: {reason}{older}",
        fix=f"run `{export_command(path)}` on a machine with {_least_nsys_text(path)}{importer}, and read the .sqlite",
    )
    return report


def _least_nsys_text(path: Path) -> str:
    """The oldest nsys that can read a report: the one that made it, where its paths tell."""
    with open_to_read(path) as file:
        versions = Counter(match[1].decode() for match in _VERSION.finditer(file.read(_LOOKED_AT)))
    return f"nsys {versions.most_common(1)[0][0]} or newer" if versions else "an nsys as new as the report"
