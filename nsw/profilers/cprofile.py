"""cProfile: Python's own profiler, for the host side; it needs nothing that Python lacks."""

from __future__ import annotations

import re

from nsw.profilers.model import Profiled, Request

TOOL = "cprofile"
ONE_PROCESS = True
EXECUTABLE: str | None = None

_PYTHON = re.compile(r"(.*/)?(python|pypy)[\d.]*")
_REPORT = "host"
# interpreter options that take a value of their own, before the script's name
_WITH_VALUE = frozenset({"-W", "-X", "--check-hash-based-pycs"})


def is_python(word: str) -> bool:
    """Whether a command's first word starts a Python interpreter."""
    return _PYTHON.fullmatch(word) is not None


def profile(request: Request) -> Profiled:
    """`python -m cProfile -o FILE SCRIPT ...`, for a command that starts a Python script or module."""
    program = request.program
    if not program or not is_python(program[0]):
        first = program[0] if program else ""
        return Profiled(impossible=f"cProfile profiles Python programs; the command starts with {first!r}")
    at = _script_position(program)
    if at is None:
        return Profiled(impossible="cProfile needs a script or -m MODULE; `python -c` cannot be profiled so")
    if request.per_rank:
        # $1 interpreter words, then the script; the report's name needs a variable of the rank's own shell
        report = f'{_REPORT}.rank"${{{request.rank_variable}:-0}}".pstats'
        text = f'n=$1; shift; exec "${{@:1:n}}" -m cProfile -o {report} "${{@:n+1}}"'
        wrapped = ("bash", "-c", text, "nsw", str(at), *program[:at], *request.options, *program[at:])
        return Profiled(wrapped, reports=(f"{_REPORT}*.pstats",))
    command = (*program[:at], "-m", "cProfile", "-o", f"{_REPORT}.pstats", *request.options, *program[at:])
    return Profiled(command, reports=(f"{_REPORT}.pstats",))


def _script_position(program: tuple[str, ...]) -> int | None:
    """Where the script (or `-m`) stands behind the interpreter and its options."""
    at = 1
    while at < len(program):
        word = program[at]
        if word == "-m" or not word.startswith("-"):
            return at
        if word in {"-c", "-"}:
            return None
        at += 2 if word in _WITH_VALUE else 1
    return None
