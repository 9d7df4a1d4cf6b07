"""What of a Python profile is the import of modules."""

import subprocess
import sys

import pytest

from nsw.readers import read
from nsw.readers.host.pstats import FunctionTimes, own_seconds_within_imports
from nsw.tables import full_rows

LOAD = ("~", 0, "<built-in method marshal.loads>")
COMPILE = ("re.py", 1, "compile")
BOOT = ("<frozen importlib._bootstrap>", 1165, "_find_and_load")
MAIN = ("/app/train.py", 1, "<module>")
LIBRARY = ("/lib/asyncio/__init__.py", 1, "<module>")
WORK = ("/app/train.py", 9, "work")


def test_the_time_of_a_shared_function_goes_by_its_callers():
    entries = {
        MAIN: FunctionTimes(1.0, 20.0, {}),
        BOOT: FunctionTimes(0.5, 9.0, {MAIN: (0.5, 9.0)}),
        LIBRARY: FunctionTimes(2.0, 6.0, {BOOT: (2.0, 6.0)}),
        LOAD: FunctionTimes(4.0, 4.0, {BOOT: (4.0, 4.0)}),
        COMPILE: FunctionTimes(3.0, 3.0, {LIBRARY: (1.0, 1.0), WORK: (2.0, 2.0)}),
        WORK: FunctionTimes(5.0, 7.0, {MAIN: (5.0, 7.0)}),
    }
    found = own_seconds_within_imports(entries)
    assert found == {MAIN: 0, BOOT: 0.5, LIBRARY: 2.0, LOAD: 4.0, COMPILE: pytest.approx(1.0), WORK: 0}


def test_recursion_and_circles_of_calls_come_to_rest():
    a, b = ("x.py", 1, "a"), ("x.py", 2, "b")
    entries = {
        MAIN: FunctionTimes(1.0, 20.0, {}),
        LIBRARY: FunctionTimes(1.0, 2.0, {}),
        a: FunctionTimes(4.0, 8.0, {a: (2.0, 5.0), b: (1.0, 4.0), LIBRARY: (1.0, 4.0)}),
        b: FunctionTimes(4.0, 8.0, {a: (3.0, 6.0), MAIN: (1.0, 2.0)}),
    }
    found = own_seconds_within_imports(entries)
    share_a, share_b = found[a] / 4, found[b] / 4
    assert share_a == pytest.approx(0.5 * share_b + 0.5, abs=1e-4)
    assert share_b == pytest.approx(0.75 * share_a, abs=1e-4)


NEXT = ("~", 0, "<built-in method builtins.next>")
DECODE = ("/app/train.py", 20, "decode")


def test_time_whose_caller_the_profile_lost_is_no_import():
    """PyTorch's import drops the frames that it began in: the program's, and what these called long, have no caller."""
    entries = {
        BOOT: FunctionTimes(0.5, 3.0, {}),
        LIBRARY: FunctionTimes(2.0, 2.4, {BOOT: (2.0, 2.4)}),
        NEXT: FunctionTimes(
            0.5, 10.5, {LIBRARY: (0.4, 0.4)}
        ),  # called often by imports, and once by the program, for long
        DECODE: FunctionTimes(10.0, 10.0, {NEXT: (10.0, 10.0)}),
    }
    found = own_seconds_within_imports(entries | {MAIN: FunctionTimes(0.1, 20.0, {})})
    assert found[NEXT] == pytest.approx(0.4)
    assert found[DECODE] == pytest.approx(10 * 0.4 / 10.5)


def test_a_profile_without_callers_tells_nothing():
    assert own_seconds_within_imports({MAIN: FunctionTimes(1.0, 1.0, {})}) is None


def test_a_real_program_is_split_where_its_imports_end(tmp_path):
    """The parts are what importlib's own function takes in all, and the rest."""
    (tmp_path / "heavy.py").write_text("class A: pass\nx = sum(i * i for i in range(40000))\n")
    (tmp_path / "program.py").write_text(
        "import heavy, json\ndef work():\n    return [json.dumps(list(range(200))) for _ in range(200)]\nwork()\n"
    )
    subprocess.run([sys.executable, "-m", "cProfile", "-o", "p.pstats", "program.py"], cwd=tmp_path, check=True)
    tables = read(tmp_path / "p.pstats").tables
    found = list(full_rows("functions", tables["functions"]))
    imports = sum(r["import_s"] for r in found)
    outermost = max(r["cpu_time_s"] for r in found if r["name"] == "_find_and_load")
    assert imports == pytest.approx(outermost, rel=0.1)
    assert next(r["value"] for r in tables["facts"] if r["key"] == "import_time_s") == pytest.approx(imports)
    own = {r["name"]: r["import_s"] for r in found if r["file"] and r["file"].endswith("program.py")}
    assert own == {"<module>": 0, "work": 0} | dict.fromkeys(own.keys() - {"<module>", "work"}, 0)
    heavy = [r for r in found if r["file"] and r["file"].endswith("heavy.py")]
    assert heavy
    assert all(r["import_s"] == pytest.approx(r["self_s"]) for r in heavy)
