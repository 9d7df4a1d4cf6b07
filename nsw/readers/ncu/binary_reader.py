"""`.ncu-rep` and `.nsight-cuprof-report`: the format is NVIDIA's own, so their `ncu_report` or an ncu reads it."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import signal
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from nsw.readers.installed_tools import ToolRunError, find_tool, run_tool
from nsw.readers.model import Options, Report, Sample
from nsw.readers.ncu import csv_reader as ncu_csv
from nsw.readers.ncu.results import NcuResults, ncu_version_in_facts, section_title
from nsw.readers.ncu.values import PrintedValue
from nsw.safe_files import open_text, open_to_read
from nsw.tables.parquet_tables import Row

__all__ = ["find_ncu", "ncu_report_extract_command", "read", "sniff"]


TIMEOUT: Final = 300.0  # s; a report of a thousand launches with all sections takes some 20
_FULL_NAMES: Final = ("--rename-kernels", "off")
_LAST_WORDS: Final = 300  # characters of a tool's last line that are told


def find_ncu() -> list[str]:
    """The ncu to try, best first."""
    return find_tool("ncu")


def page_import_command(ncu: str, report: Path, page: str) -> list[str]:
    """The command that prints a page of a report as CSV, in base units: ncu prints these with all digits.

    Args:
        ncu: The ncu program.
        report: The report, a .ncu-rep file.
        page: ncu's name of the page, such as `raw`.
    """
    return [ncu, "--import", str(report), "--page", page, "--csv", "--print-units", "base"]


def print_page_to_file(ncu: str, report: Path, page: str, output: Path) -> str | None:
    """Print a page of a report into a file; returns what went wrong, or None.

    Since 2024 ncu shortens the names of kernels (and cuts some to pieces) unless an option disables that; an older ncu
    does not know the option and is run again without it.

    Args:
        ncu: The ncu program.
        report: The report, a .ncu-rep file.
        page: ncu's name of the page, such as `raw`.
        output: The file for what ncu prints.
    """
    command = page_import_command(ncu, report, page)
    failure = run_into_file([*command, *_FULL_NAMES], output)
    return run_into_file(command, output) if failure is not None and _FULL_NAMES[0].lstrip("-") in failure else failure


def ncu_report_extract_command(report: Path) -> list[str] | None:
    """The command that prints a report by `ncu_report`; None where that package of PyPI is not installed.

    The module of the same name in an Nsight Compute of 2024 and before is not taken: it has no units, or wrong ones.
    """
    try:
        metadata.version("ncu_report")
    except metadata.PackageNotFoundError:
        return None
    if importlib.util.find_spec("ncu_report") is None:
        return None
    program = Path(__file__).with_name("extract_report.py")
    # -P: neither the program's folder nor the current one may shadow a module
    return [sys.executable, "-P", str(program), str(report)]


def run_into_file(command: list[str], output: Path) -> str | None:
    """Run a command with its standard output in a file; what went wrong, or None."""
    try:
        status, errors = run_tool(command, TIMEOUT, output)
    except ToolRunError as fault:
        return str(fault)
    if status == 0:
        return None
    if status < 0:
        return f"crashed ({signal.Signals(-status).name}) on this file"
    with open_text(output, errors="replace") as file:
        printed = file.read(4096)
    lines = [line for line in (errors + "\n" + printed).splitlines() if line.strip()]
    message = next((line for line in lines if "==ERROR==" in line), lines[-1] if errors.strip() and lines else "")
    return f"exit status {status}" + (f": {message.strip()[:_LAST_WORDS]}" if message else "")


_MAGIC: Final = b"NVR\0"
_SUFFIXES: Final = (".ncu-rep", ".nsight-cuprof-report", ".nsight-cuprof")
_VERSION: Final = re.compile(rb"(20[12]\d\.\d{1,2}\.\d{1,2}(?:\.\d{1,3})?) \(build")
_TRIES: Final = 3  # different ncu
_LOOKED_AT: Final = 65536  # bytes of either end that are searched for the version
_LAUNCH: Final = (
    "launch_id", "kernel", "mangled_name", "device_name", "compute_capability", "grid", "block_size",
)  # fmt: skip


def sniff(sample: Sample) -> int:
    """Certain by its first bytes, likely by its suffix."""
    if sample.head.startswith(_MAGIC):
        return 100
    return 80 if sample.suffix in _SUFFIXES else 0


def read(path: Path, options: Options) -> Report:
    """Read the report by `ncu_report` where it is installed, else by an ncu that is found."""
    report = Report(str(path), tool="ncu", format="ncu-binary", tool_version=_ncu_version_of_report(path))
    with open_to_read(path) as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            report.error("does not begin with NVR, as every Nsight Compute report does", fix="copy it again")
            return report
    failures: list[str] = []
    with tempfile.TemporaryDirectory(prefix="nsw-ncu-", ignore_cleanup_errors=True) as folder:
        output = Path(folder) / "output.csv"
        if _read_by_ncu_report(report, path, options, output, failures):
            return report
        for ncu in find_ncu()[:_TRIES]:
            if _read_by_ncu(report, ncu, path, options, output, failures):
                return report
    _report_failures(report, path, failures)
    return report


def _read_by_ncu_report(report: Report, path: Path, options: Options, output: Path, failures: list[str]) -> bool:
    command = ncu_report_extract_command(path.absolute())
    if command is None:
        return False
    if (failure := run_into_file(command, output)) is not None:
        failures.append(f"ncu_report: {failure}")
        return False
    results = NcuResults()
    with open_text(output) as lines:
        for line in lines:
            _add_extracted_launch(results, json.loads(line))
    if results.is_empty:
        failures.append("ncu_report: found no launch in it")
        return False
    results.fill_report(report, options)
    return True


def _add_extracted_launch(results: NcuResults, action: dict[str, Any]) -> None:
    """One launch as `ncu_extract` printed it."""
    columns: Row = {"block": 0, **{c: action[c] for c in _LAUNCH}}
    columns |= {c: None if action[c] is None else int(action[c]) for c in ("device", "context", "stream")}
    launch = results.add_owner(**columns)
    for name, unit, number, text in action["metrics"]:
        value = PrintedValue(None if number is None else float(number), None, text)
        results.add_metric(launch, (None, name, None, unit), value)
    for rule in action["rules"]:
        results.add_rule(launch, **rule | {"section": section_title(rule["section"] or "") or None})


def _read_by_ncu(report: Report, ncu: str, path: Path, options: Options, output: Path, failures: list[str]) -> bool:
    """Whether this ncu printed the raw page; rules and facts come from its other pages."""
    read: dict[str, Report] = {}
    for page in ("raw", "details", "session"):
        failure = print_page_to_file(ncu, path.absolute(), page, output)
        if failure is None:
            read[page] = ncu_csv.read(output, options)
        elif page == "raw":
            failures.append(f"{ncu}: {failure}")
            return False
        else:
            report.warn(f"the {page} page is missing: {ncu}: {failure}")
    raw = read["raw"]
    if not raw.tables:
        failures.append(f"{ncu}: printed no launch")
        return False
    report.tables |= raw.tables
    report.problems += raw.problems
    for page, table in (("details", "rules"), ("session", "facts")):
        if page in read and table in read[page].tables:
            report.tables[table] = read[page].tables[table]
    facts = report.tables.get("facts")
    report.tool_version = (ncu_version_in_facts(facts) if isinstance(facts, list) else None) or report.tool_version
    return True


def _report_failures(report: Report, path: Path, failures: list[str]) -> None:
    command = shlex.join(page_import_command("ncu", path, "raw")) + " > report.csv"
    fix = f"install NVIDIA's reader (pip install 'nsw[ncu]'), or where an ncu is: {command}, and read that"
    if not failures:
        report.error(
            "a binary report; reading it needs ncu or its Python module ncu_report, and neither was found", fix=fix
        )
        return
    for failure in failures:
        report.error(f"could not be read: {failure}", fix=fix)
    if path.suffix.startswith(".nsight-cuprof"):
        report.warn(
            "an .nsight-cuprof-report is of 2018 to 2020; newer versions of ncu may not read it",
            fix="export it with the Nsight Compute (2019 or 2020) that made it",
        )


def _ncu_version_of_report(path: Path) -> str | None:
    """The version of the ncu that made the report: text in its header, or in the session at its end."""
    with open_to_read(path) as file:
        match = _VERSION.search(file.read(_LOOKED_AT))
        if match is None and (rest := path.stat().st_size - _LOOKED_AT) > 0:
            file.seek(-min(rest, _LOOKED_AT), 2)
            match = _VERSION.search(file.read(_LOOKED_AT))
    return match[1].decode() if match else None
