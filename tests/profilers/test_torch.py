"""PyTorch's profiler around a program: its place in the command line, and that the program does not notice."""

import os
import subprocess
import sys
import textwrap

import pytest

from nsw.profilers import torch
from nsw.profilers.model import Request

# stands in for PyTorch: what the wrapper calls, and when
FAKE = '''
"""A profiler that says what is asked of it."""
import types, sys
cuda = types.SimpleNamespace(is_available=lambda: False)

class ProfilerActivity:
    CPU = "cpu"

def schedule(**how):
    return how

class Averages(list):
    def table(self, **how):
        return " ".join(event.key for event in self)

EVENTS = ["aten::mm", "train.py(12): step", "<built-in method mm of type object>", "nn.Module: Net_0", "my (1) range"]
_C = types.SimpleNamespace(_profiler=types.SimpleNamespace(_ExperimentalConfig=dict))

class profile:
    def __init__(self, **how):
        self.how, self.steps = how, 0
        print("profile", {k: v for k, v in how.items() if v and k != "on_trace_ready"}, file=sys.stderr)
    def start(self): print("start", file=sys.stderr)
    def stop(self): print("stop", file=sys.stderr)
    def step(self):
        self.steps += 1
        plan = self.how["schedule"]
        if self.steps == plan["wait"] + plan["warmup"] + plan["active"]:
            self.how["on_trace_ready"](self)
    def export_chrome_trace(self, name): open(name, "w").write("{}")
    def key_averages(self, **how):
        print("averages", {k: v for k, v in how.items() if v}, file=sys.stderr)
        return Averages(types.SimpleNamespace(key=key) for key in EVENTS)

profiler = types.SimpleNamespace(ProfilerActivity=ProfilerActivity, profile=profile, schedule=schedule)
hooks = []
'''
OPTIMIZER = """
import torch
def register_optimizer_step_post_hook(hook): torch.hooks.append(hook)
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "lib" / "torch" / "optim").mkdir(parents=True)
    (tmp_path / "lib" / "torch" / "__init__.py").write_text(FAKE)
    (tmp_path / "lib" / "torch" / "optim" / "__init__.py").write_text("")
    (tmp_path / "lib" / "torch" / "optim" / "optimizer.py").write_text(OPTIMIZER)
    return tmp_path


def run(place, script, *program, **how):
    (place / "my prog.py").write_text(textwrap.dedent(script))
    done = torch.profile(Request("", program or (sys.executable, "-W", "ignore", "my prog.py", "a b"), **how))
    env = {**os.environ, "PYTHONPATH": str(place / "lib"), "RANK": "2"}
    return subprocess.run(done.command, cwd=place, env=env, capture_output=True, text=True, check=False)


def left(place):
    return {p.name: p.read_text() for p in place.glob("host*")}


def test_a_script_runs_as_it_would_and_leaves_its_trace_and_table(place):
    found = run(place, "import sys\nprint(__name__, sys.argv, sys.path[0] == sys.argv[0][:0] or sys.path[0])\n",
                record=("shapes", "flops", "memory", "stacks"))  # fmt: skip
    assert (found.returncode, found.stdout) == (0, f"__main__ ['my prog.py', 'a b'] {place}\n")
    told = found.stderr.splitlines()
    for word in (
        "record_shapes",
        "with_flops",
        "profile_memory",
        "with_stack",
        "'experimental_config': {'verbose': True}",
    ):
        assert word in told[0]
    assert told[1:] == ["start", "stop", "averages {'group_by_input_shape': True, 'group_by_stack_n': 5}"]
    # functions of Python, which newer versions count among operators, are none
    assert left(place) == {"host.pt.trace.json": "{}", "host.operators.txt": "aten::mm my (1) range"}


def test_only_what_is_asked_for_is_recorded(place):
    told = run(place, "", record=()).stderr.splitlines()
    assert (told[0], told[-1]) == ("profile {'activities': ['cpu']}", "averages {}")


def test_a_module_runs_as_a_module(place):
    (place / "pack").mkdir()
    (place / "pack" / "go.py").write_text("import sys\nprint(__name__, __package__, sys.argv[1:])\n")
    found = run(place, "", sys.executable, "-m", "pack.go", "x")
    assert found.stdout == "__main__ pack ['x']\n"


@pytest.mark.parametrize(
    ("end", "code"), [("sys.exit(3)", 3), ("sys.exit()", 0), ("raise ValueError('spoilt')", 1), ("pass", 0)]
)
def test_the_program_ends_as_it_would_and_the_reports_are_there(place, end, code):
    found = run(place, f"import sys\n{end}\n")
    assert found.returncode == code
    assert ("spoilt" in found.stderr) == ("spoilt" in end)
    assert set(left(place)) == {"host.pt.trace.json", "host.operators.txt"}


STEPS = "import torch\nfor n in range({n}):\n    [hook() for hook in torch.hooks]\n"


def test_steps_are_counted_by_the_optimizer_and_reports_bear_the_rank(place):
    found = run(place, STEPS.format(n=9), steps=(2, 3), per_rank=True, rank_variable="RANK")
    assert "'schedule': {'wait': 1, 'warmup': 1, 'active': 3, 'repeat': 1}" in found.stderr
    assert "stop" not in found.stderr.splitlines()
    assert set(left(place)) == {"host.rank2.pt.trace.json", "host.rank2.operators.txt"}


def test_steps_that_never_came_are_told(place):
    found = run(place, STEPS.format(n=2), steps=(2, 3))
    assert found.stderr.splitlines()[-1] == "nsw: the program ended before the steps that were to be recorded"
    assert left(place) == {}


@pytest.mark.parametrize(
    ("program", "told"),
    [(("./prog",), "profiles Python programs"), (("python", "-c", "x"), "needs a script or -m MODULE")],
)
def test_what_cannot_be_profiled_so_is_told(program, told):
    assert told in torch.profile(Request("", program)).impossible


def test_options_have_no_meaning():
    assert "takes no options" in torch.profile(Request("", ("python", "x.py"), options=("-v",))).impossible
