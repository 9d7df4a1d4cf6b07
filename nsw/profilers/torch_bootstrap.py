"""Run a script or module under PyTorch's profiler: `python -c THIS NAME:VARIABLE:SKIP:COUNT:RECORD SCRIPT ...`.

nsw hands the text of this file to the site's Python, which needs PyTorch and nothing of nsw. Leaves NAME.pt.trace.json
(a trace for Perfetto and TensorBoard) and NAME.operators.txt (the table of operators); with VARIABLE set in the
environment NAME.rankN. The program's own exit status and exceptions stay.
"""

from __future__ import annotations

import atexit
import os
import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_STACK = 5  # functions of Python that an operator is told apart by
_PYTHON = re.compile(r".+\(\d+\): |<built-in |nn\.Module: ")  # a function: `file.py(12): name`


def stack_options(torch: Any) -> dict[str, Any]:
    """What makes PyTorch 2 note the stack of each operator; nothing for versions that do so without."""
    try:
        return {"experimental_config": torch._C._profiler._ExperimentalConfig(verbose=True)}  # noqa: SLF001  # no public one
    except (AttributeError, TypeError):
        return {}


def start_profiler(words: str) -> Callable[[], None]:
    """Start the profiler; returns a function that ends it and writes the reports once."""
    name, variable, skip, count, record_names = words.split(":")
    if variable:
        name += ".rank" + os.environ.get(variable, "0")
    recorded = set(filter(None, record_names.split(",")))
    import torch
    from torch import profiler as tp

    activities = [tp.ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(tp.ProfilerActivity.CUDA)
    first, steps = int(skip), int(count)
    done: list[bool] = []

    def write(profile: Any) -> None:
        if done:
            return
        done.append(True)
        profile.export_chrome_trace(name + ".pt.trace.json")
        depth = _STACK if "stacks" in recorded else 0
        events = profile.key_averages(group_by_input_shape="shapes" in recorded, group_by_stack_n=depth)
        events[:] = [event for event in events if not _PYTHON.match(event.key)]  # which newer ones count as operators
        table = events.table(row_limit=-1, max_name_column_width=200, max_shapes_column_width=200)
        Path(name + ".operators.txt").write_text(table)

    plan = tp.schedule(wait=max(first - 1, 0), warmup=min(first, 1), active=steps, repeat=1) if steps else None
    profile = tp.profile(
        activities=activities,
        schedule=plan,
        on_trace_ready=write if steps else None,
        record_shapes="shapes" in recorded or "flops" in recorded,
        profile_memory="memory" in recorded,
        with_stack="stacks" in recorded,
        with_flops="flops" in recorded,
        **(stack_options(torch) if "stacks" in recorded else {}),
    )
    if steps:
        from torch.optim.optimizer import register_optimizer_step_post_hook

        register_optimizer_step_post_hook(lambda *_: None if done else profile.step())
    profile.start()

    def end() -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        if not done:
            profile.stop()
        if steps and not done:
            print("nsw: the program ended before the steps that were to be recorded", file=sys.stderr)
        elif not steps:
            write(profile)

    return end


def run_program_under_profiler() -> None:
    """Run the program that the words name."""
    words, program = sys.argv[1], sys.argv[2:]
    end = start_profiler(words)
    ended: list[bool] = []

    def once() -> None:
        if not ended:
            ended.append(True)
            end()

    atexit.register(once)
    is_module = program[0] == "-m"
    sys.argv = program[1:] if is_module else program
    # as Python does: the script's folder, or the current one for a module, comes first
    sys.path[0] = str(Path.cwd() if is_module else Path(program[0]).resolve().parent)
    try:
        if is_module:
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(sys.argv[0], run_name="__main__")
    finally:
        once()


run_program_under_profiler()
