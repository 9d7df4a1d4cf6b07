"""What somebody reads who follows one campaign: the functions of nsw that `nsw run` of a recipe of one case calls.

    python tools/trace_run.py

Prints how many functions and files run under site `local`, and how often the file changes when the functions are read
in the order of their first calls. Only named functions count, no class bodies, comprehensions or lambdas. A call in a
thread counts too; other processes of nsw (readers, the job) do not.
"""

import atexit
import inspect
import itertools
import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parents[1]
RECIPE = """\
nsw: 1
name: traced
app:
  command: echo "time 3.5"
  figures:
    time: {regex: 'time ([0-9.]+)', unit: s}
passes: [baseline]
resources: {gpus: 0}
"""


def main() -> None:
    """Run nsw with a note of each function's first call, and print the sums."""
    calls: dict[tuple[str, str], None] = {}  # in the order of the first calls
    inside = str(ROOT / "nsw") + os.sep

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        is_named = code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<")
        if event == "call" and is_named and code.co_filename.startswith(inside):
            calls.setdefault((code.co_filename, code.co_qualname))

    folder = tempfile.mkdtemp()

    def report() -> None:
        sys.setprofile(None)
        files = [file for file, _ in calls]
        changes = sum(before != after for before, after in itertools.pairwise(files))
        shutil.rmtree(folder)
        print(f"{len(calls)} functions in {len(set(files))} files, {changes} changes of file")

    atexit.register(report)  # nsw ends its process itself, and runs these before
    os.chdir(folder)
    os.environ["HOME"] = folder
    Path("recipe.yaml").write_text(RECIPE)
    sys.path.insert(0, str(ROOT))
    sys.argv = ["nsw", "run", "recipe.yaml", "--site", "local", "--now"]
    threading.setprofile(note)
    sys.setprofile(note)
    from nsw.cli.main import main as nsw  # noqa: PLC0415 - what it calls while it is imported counts too

    nsw()


if __name__ == "__main__":
    main()
