"""The kernels that were launched inside an NVTX range, counted as ncu counts them."""

import csv
from pathlib import Path

import pytest

from nsw.analysis.guided import LaunchRequest, Within, choose_kernel_launches, kernels_launched_in_range, range_names

# what ncu 2025.3 measured on an H100 of order.cu, filter by filter
MEASURED = Path(__file__).parents[1] / "fixtures" / "h100" / "order.csv"
STEPS = 6


def timeline():
    """order.cu as a timeline has it: in each step an alpha outside the range, two inside with a beta between them."""
    kernels, calls, ranges = [], [], []
    now = correlation = 0
    for step in range(STEPS):
        for name, launches in (
            ("outside", [("alpha", 100 + step)]),
            ("step", [("alpha", 200 + 10 * step), ("beta", 200 + 10 * step), ("alpha", 201 + 10 * step)]),
        ):
            begun = now
            for kernel, grid in launches:
                now, correlation = now + 10, correlation + 1
                calls.append({"pid": 1, "tid": 7, "correlation": correlation, "start_ns": now, "duration_ns": 5})
                kernels.append({"kind": "kernel", "pid": 1, "correlation": correlation, "name": kernel, "grid": grid,
                                "start_ns": now + 1000, "duration_ns": 5})  # fmt: skip
            now += 10
            ranges.append({"style": "pushpop", "domain": None, "name": name, "pid": 1, "tid": 7, "start_ns": begun,
                           "duration_ns": now - begun})  # fmt: skip
    return kernels, calls, ranges


def inside(within, *, change=lambda ranges: ranges):
    kernels, calls, ranges = timeline()
    return kernels_launched_in_range(kernels, calls, change(ranges), within)


def alphas(rows):
    return [row["grid"] for row in rows if row["name"] == "alpha"]


@pytest.mark.parametrize("row", [*csv.DictReader(MEASURED.read_text().splitlines())], ids=lambda row: row["filter"])
def test_ordinals_count_as_ncu_counts_them(row):
    instances = {int(n) for n in row["instances"].split()}
    kernels = inside(Within("step", instances=instances)) if row["range"] else timeline()[0]
    there = alphas(kernels)
    ordinals = [int(n) for n in row["ordinals"].split()]
    assert [there[o - 1] for o in ordinals if o <= len(there)] == [int(g) for g in row["grids"].split()]


def test_the_launches_that_are_chosen_are_those_of_the_range():
    found = choose_kernel_launches(inside(Within("step")), LaunchRequest(names=("alpha",), sample=3), "ncu")
    assert {row.ordinal for row in found.picked} <= set(range(1, 2 * STEPS + 1))
    assert found.launches + found.extrapolated == 2 * STEPS


def test_a_push_pop_range_holds_the_launches_of_its_own_thread_and_a_start_end_range_of_its_process():
    def elsewhere(ranges):
        return [row | {"tid": 8} for row in ranges]

    assert inside(Within("step"), change=elsewhere) == []
    both = inside(
        Within("step", start_end=True), change=lambda r: [row | {"style": "startend"} for row in elsewhere(r)]
    )
    assert len(both) == 3 * STEPS


def test_a_range_in_a_range_does_not_hide_the_rest_of_the_outer_one():
    def nested(ranges):
        whole = {**ranges[0], "name": "step", "start_ns": 0, "duration_ns": 10**6}
        return [whole, *ranges]

    assert len(inside(Within("step"), change=nested)) == 4 * STEPS


def test_domain_and_name_must_be_those_that_are_asked_for():
    assert inside(Within("step", domain="torch")) == []
    assert inside(Within("stop")) == []
    assert range_names(timeline()[2], Within("stop")) == ["outside", "step"]
