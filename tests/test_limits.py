"""Limits of time and memory are of the whole process, so that its threads take turns."""

import resource
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from nsw.apart import child_processes_without_limits, limited_block


def test_one_thread_at_a_time_computes_within_limits():
    before = resource.getrlimit(resource.RLIMIT_AS)
    inside, together = [], set()

    def compute(number):
        with limited_block("a plan"):
            inside.append(number)
            time.sleep(0.001)  # lets the others run
            together.add(len(inside))
            inside.remove(number)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(compute, range(40)))
    assert together == {1}
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_a_program_started_by_a_process_without_limits_leaves_those_of_other_threads_alone(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(resource, "setrlimit", lambda *_: pytest.fail("a limit was set"))
        with child_processes_without_limits():
            pass
