"""cProfile: Python's own profiler, for the host side; it needs nothing that Python lacks."""

from __future__ import annotations

import re

from nsw.profilers.model import Profiled, Request, words_with_report_path

TOOL = "cprofile"
ONE_PROCESS = True
EXECUTABLE: str | None = None

_PYTHON = re.compile(r"(.*/)?(python|pypy)[\d.]*")
_REPORT = "host"
# cProfile's own command line, which swallows the SystemExit of the program: `sys.exit(1)` would end as a success.
# In words that every Python of a site knows.
_BOOTSTRAP = """\
import cProfile, sys
ends, runctx = [], cProfile.Profile.runctx
def remembering(*words):
    try:
        return runctx(*words)
    except SystemExit as end:
        ends.append(end.code)
        raise
cProfile.Profile.runctx = remembering
cProfile.main()
sys.exit(*ends)
"""
# interpreter options that take a value of their own, before the script's name
_WITH_VALUE = frozenset({"-W", "-X", "--check-hash-based-pycs"})


def is_python_interpreter(word: str) -> bool:
    """Whether a command's first word starts a Python interpreter."""
    return _PYTHON.fullmatch(word) is not None


def profile(request: Request) -> Profiled:
    """`python -m cProfile -o FILE SCRIPT ...` with the program's own exit status, for a Python script or module."""
    program = request.program
    at = script_position_or_refusal(program, "cProfile")
    if isinstance(at, Profiled):
        return at
    command = words_with_report_path(
        request,
        (*program[:at], "-c", _BOOTSTRAP, "-o"),
        f"{request.folder}{_REPORT}.pstats",
        (*request.options, *program[at:]),
    )
    every = "*" if request.per_rank else ""
    return Profiled(command, reports=(f"{_REPORT}{every}.pstats",))


def script_position_or_refusal(program: tuple[str, ...], tool: str) -> int | Profiled:
    """Where the script (or `-m`) is, or why a tool cannot profile the program."""
    if not program or not is_python_interpreter(program[0]):
        first = program[0] if program else ""
        return Profiled(impossible=f"{tool} profiles Python programs; the command starts with {first!r}")
    at = script_position(program)
    if at is None:
        return Profiled(impossible=f"{tool} needs a script or -m MODULE; `python -c` cannot be profiled so")
    return at


def script_position(program: tuple[str, ...]) -> int | None:
    """The index of the script (or of `-m`) in the command, behind the interpreter and its options; None without one."""
    at = 1
    while at < len(program):
        word = program[at]
        if word == "-m" or not word.startswith("-"):
            return at
        if word in {"-c", "-"}:
            return None
        at += 2 if word in _WITH_VALUE else 1
    return None
