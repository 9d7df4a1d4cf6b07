"""PyTorch's profiler around a Python program that knows nothing of it: operators, shapes, memory, FLOP, a trace.

The program runs as `python -c CODE SCRIPT ...` in the place of `python SCRIPT ...`; with `steps` the calls of any
optimizer count the training steps, and only some are recorded.
"""

from __future__ import annotations

from typing import Final

from nsw.profilers.cprofile import script_position_or_refusal
from nsw.profilers.model import Profiled, Request
from nsw.resources import shipped_text

TOOL = "torch"
ONE_PROCESS = True
EXECUTABLE: str | None = None

REPORT: Final = "host"
TRACE: Final = ".pt.trace.json"
TABLE: Final = ".operators.txt"


def profile(request: Request) -> Profiled:
    """`python -c CODE CONFIGURATION SCRIPT ...`, with the program's own exit status."""
    program = request.program
    at = script_position_or_refusal(program, "PyTorch's profiler")
    if isinstance(at, Profiled):
        return at
    if request.options:
        return Profiled(impossible="PyTorch's profiler takes no options: `record` and `steps` say what is recorded")
    code = shipped_text("profilers/torch_bootstrap.py")
    skip, count = request.steps or (0, 0)
    variable = request.rank_variable if request.per_rank else ""
    configuration = f"{request.folder}{REPORT}:{variable}:{skip}:{count}:{','.join(request.record)}"
    command = (*program[:at], "-c", code, configuration, *program[at:])
    return Profiled(command, reports=(f"{REPORT}*{TRACE}", f"{REPORT}*{TABLE}"))
