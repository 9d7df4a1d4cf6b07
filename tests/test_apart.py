"""A function in a process with limits: each way in which it ends badly is an error that says so."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nsw.apart import Limits, run_isolated
from nsw.errors import LimitError, UsageError

MB = 1 << 20


def process():
    return os.getpid()


def grow():
    return "x" * (900 * MB)


def spin():
    while True:
        pass


def spin_natively():
    """In one call of a library: no signal handler of Python's runs meanwhile."""
    sum(range(10**12))


def die(number):
    os.kill(os.getpid(), number)


def refuse():
    raise UsageError("no", hint="never")


def break_down():
    return 1 // 0


def core_and_memory():
    from nsw.apart import child_processes_without_limits

    with child_processes_without_limits():
        shown = subprocess.run(["bash", "-c", "ulimit -Sc; ulimit -Sv"], capture_output=True, text=True, check=True)
    return [resource.getrlimit(resource.RLIMIT_CORE)[0], *shown.stdout.split()]


def pandas_of_arrow():
    import pyarrow as pa

    return pa.array([1, None]).to_pylist(), "pandas" in sys.modules


def call(function, *args, **limits):
    return run_isolated(function, *args, subject="reading x", size=0, limits=Limits(**limits))


def test_it_runs_in_another_process_and_gives_its_result():
    assert call(process) not in {os.getpid(), None}


@pytest.mark.parametrize(
    ("function", "args", "said"),
    [
        (grow, (), "reading x takes more than 500 MiB"),
        (spin, (), "reading x takes more than 1 s"),
        (spin_natively, (), "reading x takes more than 1 s"),
        (die, (signal.SIGKILL,), "reading x: the process that did it was killed"),
        (die, (signal.SIGSEGV,), r"reading x: the process that did it crashed \(SIGSEGV\)"),
    ],
)
def test_what_takes_too_much_or_crashes_is_an_error(function, args, said):
    with pytest.raises(LimitError, match=said):
        call(function, *args, memory=500 * MB, seconds=1)


def test_the_hint_names_the_options():
    with pytest.raises(LimitError) as caught:
        run_isolated(spin, subject="it", size=0, limits=Limits(seconds=0.2, command="nsw summarize c"))
    assert "`nsw summarize c --max-memory 64G --max-time 5h`" in caught.value.hint


def test_an_exception_comes_back_with_its_hint_and_a_bug_with_its_place():
    with pytest.raises(UsageError, match="no") as caught:
        call(refuse)
    assert caught.value.hint == "never"
    with pytest.raises(ZeroDivisionError) as bug:
        call(break_down)
    assert "in break_down" in bug.value.__notes__[0]


def test_exporters_have_the_limits_of_the_user():
    own = ["unlimited" if n == resource.RLIM_INFINITY else str(n)
           for n in (resource.getrlimit(resource.RLIMIT_CORE)[1], resource.getrlimit(resource.RLIMIT_AS)[1])]  # fmt: skip
    assert call(core_and_memory) == [0, *own]


def test_arrow_does_not_load_pandas():
    assert call(pandas_of_arrow) == ([1, None], False)


PROGRAM = """
import os, sys, time
sys.path[:0] = {path!r}
from nsw import apart
apart.allow_fork()
unprinted = sys.stdout.write("before ")
def work():
    print("inside", apart.is_isolated(), flush=True)
    {does}
print(apart.run_isolated(work, subject="it", size=0), "after")
"""


def program(does):
    text = PROGRAM.format(path=[str(Path(__file__).parents[1])], does=does)
    return subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_in_nsws_own_program_it_is_a_copy_of_this_process():
    out, err = program("return os.getpid() != os.getppid()").communicate(timeout=60)
    assert (out, err) == ("before inside True\nTrue after\n", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_it_ends_with_the_process_that_asked(number):
    with program("print(os.getpid(), flush=True); time.sleep(600)") as asking:
        assert asking.stdout.readline() == "before inside True\n"
        child = int(asking.stdout.readline())
        asking.send_signal(number)
        asking.communicate(timeout=60)
    while Path(f"/proc/{child}").exists():  # the pytest run has its own limit of time
        time.sleep(0.01)
