"""What Python users get has types: mypy --strict accepts a right program and refuses every line of a wrong one."""

import re
import subprocess
import sys
from pathlib import Path

from nsw.api.results import Answers, Tables
from nsw.present.emit import FLAT
from nsw.tables.schema import TABLES

HERE = Path(__file__).parent


def mypy(*files: str) -> subprocess.CompletedProcess[str]:
    """With the project's cache, in which nsw's own modules are."""
    words = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context", "--no-pretty"]
    return subprocess.run(
        [*words, *(str(HERE / f) for f in files)], capture_output=True, text=True, check=False, cwd=HERE.parents[1]
    )


def test_mypy_accepts_the_right_program_and_refuses_each_line_of_the_wrong_one():
    done = mypy("good.py", "wrong.py")
    found = dict(re.findall(r"wrong\.py:(\d+): error: .*\[([a-z-]+)\]$", done.stdout, re.MULTILINE))
    lines = enumerate((HERE / "wrong.py").read_text().splitlines(), 1)
    wanted = {str(number): line.partition("  # ")[2] for number, line in lines if "  # " in line}
    assert found == wanted, done.stdout + done.stderr
    assert "good.py" not in done.stdout


def test_every_table_is_declared():
    assert set(declared(Tables)) == set(TABLES), "declare it in nsw/api/reading.py"
    assert set(declared(Answers)) == set(FLAT), "declare it in nsw/api/campaigns.py"


def declared(kind: type) -> list[str]:
    """The names under `if TYPE_CHECKING` of a class."""
    import ast
    import inspect
    import textwrap

    (made,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    block = next(node for node in made.body if isinstance(node, ast.If))
    return [node.target.id for node in block.body if isinstance(node, ast.AnnAssign)]
