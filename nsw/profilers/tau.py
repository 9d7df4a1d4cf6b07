"""TAU: a profile of each thread, by its libraries loaded into the program (tau_exec) or into Python (tau_python).

Built from its documentation and from profiles that others published; it was not run.
"""

from __future__ import annotations

from typing import Final

from nsw.profilers.cprofile import is_python_interpreter, script_position
from nsw.profilers.model import MACHINERY, Profiled, Request, unknown_analysis_reason, words_with_report_path

TOOL = "tau"
ONE_PROCESS = True
EXECUTABLE: str | None = "tau_exec"

_REPORT: Final = "host"
_STARTED: Final = ("bash", "-c", 'mkdir -p "$0"; export PROFILEDIR="$PWD/$0"; exec "$@"')
_EXEC, _PYTHON = "tau_exec", "tau_python"
# for the jobs
SHELL: Final = r"""# the profiles, out of their folders: NAME[.MULTI__METRIC].profile.NODE.CONTEXT.THREAD
nsw_tau_flatten() {    # NAME
  local folder file
  for folder in "$1"*.tau; do
    for file in "$folder"/profile.* "$folder"/*/profile.*; do
      [ -e "$file" ] || continue
      file=${file#"$folder"/}
      mv "$folder/$file" "${folder%.tau}.${file//\//.}" || exit
    done
  done
}
"""


def profile(request: Request) -> Profiled:
    """`tau_exec OPTION... PROGRAM`; knobs are TAU's variables, such as TAU_METRICS."""
    if (reason := unknown_analysis_reason(request, TOOL, ())) is not None:
        return Profiled(impossible=reason)
    variables = tuple(f"{name}={_NUMBERS.get(value, value)}" for name, value in request.knobs)
    command = (*(("env", *variables) if variables else ()), *_tau_command(request))
    return Profiled(
        words_with_report_path(request, _STARTED, f"{_REPORT}.tau", command),
        reports=(f"{_REPORT}*profile.*",),
        after=(("bash", MACHINERY, "tau_flatten", _REPORT),),
    )


_NUMBERS: Final = {"true": "1", "false": "0"}


def _tau_command(request: Request) -> tuple[str, ...]:
    """The program under tau_exec, a Python script under tau_python, which names Python's functions."""
    program = request.program
    at = script_position(program) if program and is_python_interpreter(program[0]) else None
    if at is None or program[at] == "-m":
        return (request.path, *request.options, *program)
    arguments = tuple(f"-tau-python-args={word}" for word in program[1:at])
    tool = request.path.removesuffix(_EXEC) + _PYTHON
    return (tool, *request.options, f"-tau-python-interpreter={program[0]}", *arguments, *program[at:])
