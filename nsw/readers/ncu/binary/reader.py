"""`.ncu-rep` and `.nsight-cuprof-report`: the format is NVIDIA's own, so their `ncu_report` or an ncu reads it.

Both run as processes of their own: they crash on some damaged and some old files.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nsw.readers.model import Options, Report
from nsw.readers.ncu.binary.tool import extract_command, find_ncu, import_command, print_page, run, shown
from nsw.readers.ncu.csv import reader as ncu_csv
from nsw.readers.ncu.results import Results
from nsw.readers.ncu.rules_and_problems import section_title
from nsw.readers.ncu.session import tool_version
from nsw.readers.ncu.values import Value

if TYPE_CHECKING:
    from nsw.readers.model import Sample
    from nsw.tables.data import Row

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
    report = Report(str(path), tool="ncu", format="ncu-binary", tool_version=_made_by(path))
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            report.error("does not begin with NVR, as every Nsight Compute report does", fix="copy it again")
            return report
    failures: list[str] = []
    with tempfile.TemporaryDirectory(prefix="nsw-ncu-", ignore_cleanup_errors=True) as folder:
        output = Path(folder) / "output.csv"
        if _by_module(report, path, options, output, failures):
            return report
        for ncu in find_ncu()[:_TRIES]:
            if _by_tool(report, ncu, path, options, output, failures):
                return report
    _explain(report, path, failures)
    return report


def _by_module(report: Report, path: Path, options: Options, output: Path, failures: list[str]) -> bool:
    command = extract_command(path.absolute())
    if command is None:
        return False
    if (failure := run(command, output)) is not None:
        failures.append(f"ncu_report: {failure}")
        return False
    results = Results()
    with output.open(encoding="utf-8") as lines:
        for line in lines:
            _take(results, json.loads(line))
    if results.empty:
        failures.append("ncu_report: found no launch in it")
        return False
    results.fill(report, options)
    return True


def _take(results: Results, action: dict[str, Any]) -> None:
    """One launch as `ncu_extract` printed it."""
    columns: Row = {"block": 0, **{c: action[c] for c in _LAUNCH}}
    columns |= {c: None if action[c] is None else int(action[c]) for c in ("device", "context", "stream")}
    launch = results.launch(action["launch_id"], **columns)
    for name, unit, number, text in action["metrics"]:
        value = Value(None if number is None else float(number), None, text)
        results.metric(launch, (None, name, None, unit), value)
    for rule in action["rules"]:
        results.rule(launch, **rule | {"section": section_title(rule["section"] or "") or None})


def _by_tool(report: Report, ncu: str, path: Path, options: Options, output: Path, failures: list[str]) -> bool:
    """Whether this ncu printed the raw page; rules and facts come from its other pages."""
    read: dict[str, Report] = {}
    for page in ("raw", "details", "session"):
        failure = print_page(ncu, path.absolute(), page, output)
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
    report.tool_version = (tool_version(facts) if isinstance(facts, list) else None) or report.tool_version
    return True


def _explain(report: Report, path: Path, failures: list[str]) -> None:
    command = shown(import_command("ncu", path, "raw")) + " > report.csv"
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


def _made_by(path: Path) -> str | None:
    """The version of the ncu that made the report: text in its header, or in the session at its end."""
    with path.open("rb") as file:
        found = _VERSION.search(file.read(_LOOKED_AT))
        if found is None and (rest := path.stat().st_size - _LOOKED_AT) > 0:
            file.seek(-min(rest, _LOOKED_AT), 2)
            found = _VERSION.search(file.read(_LOOKED_AT))
    return found[1].decode() if found else None
