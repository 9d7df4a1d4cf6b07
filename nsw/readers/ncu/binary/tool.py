"""Finding an ncu and running it, or `ncu_report`, on a report that may crash them."""

from __future__ import annotations

import importlib.util
import shlex
import signal
import sys
from importlib import metadata
from pathlib import Path
from typing import Final

from nsw.readers.installed_tools import ToolFault, find_tool, run_tool

TIMEOUT: Final = 300.0  # s; a report of a thousand launches with all sections takes some 20
_PLACES: Final = (
    "/opt/nvidia/nsight-compute/*/ncu",
    "/opt/nvidia/hpc_sdk/Linux_*/*/profilers/Nsight_Compute/ncu",
    "/usr/local/NVIDIA-Nsight-Compute*/ncu",
    "/usr/local/cuda*/bin/ncu",
    "/usr/local/cuda*/nsight-compute*/ncu",
    "/usr/lib/nsight-compute/ncu",
)
_FULL_NAMES: Final = ("--rename-kernels", "off")
_LAST_WORDS: Final = 300  # characters of a tool's last line that are told


def find_ncu() -> list[str]:
    """The ncu to try, best first."""
    return find_tool("ncu", _PLACES)


def import_command(ncu: str, report: Path, page: str) -> list[str]:
    """The command that prints a page of a report as CSV, in base units: these are printed in full."""
    return [ncu, "--import", str(report), "--page", page, "--csv", "--print-units", "base"]


def print_page(ncu: str, report: Path, page: str, output: Path) -> str | None:
    """Have an ncu print a page of a report; what went wrong, or None.

    Since 2024 ncu shortens the names of kernels (and cuts some to pieces) unless told not to; an older one does not
    know that option.
    """
    command = import_command(ncu, report, page)
    failure = run([*command, *_FULL_NAMES], output)
    return run(command, output) if failure is not None and _FULL_NAMES[0].lstrip("-") in failure else failure


def shown(command: list[str]) -> str:
    """A command as a user would type it."""
    return shlex.join(command)


def extract_command(report: Path) -> list[str] | None:
    """The command that prints a report by `ncu_report`; None where that package of PyPI is not installed.

    The module of the same name in an Nsight Compute of 2024 and before is not taken: it has no units, or wrong ones.
    """
    try:
        metadata.version("ncu_report")
    except metadata.PackageNotFoundError:
        return None
    if importlib.util.find_spec("ncu_report") is None:
        return None
    program = Path(__file__).with_name("extract.py")
    # -P: neither the program's folder nor the current one may shadow a module
    return [sys.executable, "-P", str(program), str(report)]


def run(command: list[str], output: Path) -> str | None:
    """Run a command with its standard output in a file; what went wrong, or None."""
    try:
        status, errors = run_tool(command, TIMEOUT, output)
    except ToolFault as fault:
        return str(fault)
    if status == 0:
        return None
    if status < 0:
        return f"crashed ({signal.Signals(-status).name}) on this file"
    with output.open(encoding="utf-8", errors="replace") as file:
        said = file.read(4096)
    lines = [line for line in (errors + "\n" + said).splitlines() if line.strip()]
    told = next((line for line in lines if "==ERROR==" in line), lines[-1] if errors.strip() and lines else "")
    return f"exit status {status}" + (f": {told.strip()[:_LAST_WORDS]}" if told else "")
