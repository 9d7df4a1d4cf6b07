"""Classes of libraries' kernels by their names, and none of users' own."""

import csv
from pathlib import Path

import pytest

from nsw.analysis.kernel_classes import OTHER_KERNELS, classify_gpu_operation

HERE = Path(__file__).parent
NAMES = list(csv.DictReader((HERE / "kernel_names.csv").read_text().splitlines()))


@pytest.mark.parametrize(("aside", "most_wrong"), [("no", 0.0), ("yes", 0.03)], ids=["seen", "set-aside"])
def test_kernels_of_libraries_have_their_class(aside, most_wrong):
    """Those set aside were split off by a seed before the patterns were written."""
    names = [row for row in NAMES if row["aside"] == aside]
    wrong = [
        f"{row['name']}: {classify_gpu_operation(row['name'])}"
        for row in names
        if classify_gpu_operation(row["name"]) != row["class"]
    ]
    assert len(names) > 200
    assert len(wrong) <= most_wrong * len(names), "\n".join(wrong)


def test_a_name_that_a_table_of_pytorch_cuts_off_has_the_same_class_or_none():
    cut_names = [(row["name"][:52] + "...", row["class"]) for row in NAMES if len(row["name"]) > 55]
    classes = [(classify_gpu_operation(name), expected) for name, expected in cut_names]
    assert sum(given == expected for given, expected in classes) >= 0.93 * len(classes)
    assert sum(given not in {expected, OTHER_KERNELS} for given, expected in classes) <= 0.01 * len(classes)


def test_every_pattern_gives_a_class_that_a_name_of_the_list_has():
    table = Path(__file__).parents[2] / "nsw" / "analysis" / "kernel_classes.csv"
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert {row["class"] for row in rows} == {row["class"] for row in NAMES}
    assert all(row["source"] and row["date"] for row in rows)


@pytest.mark.parametrize("name", (HERE / "kernels_of_users.txt").read_text().splitlines())
def test_a_users_kernel_has_no_class_whatever_its_name(name):
    assert classify_gpu_operation(name) == OTHER_KERNELS


@pytest.mark.parametrize(
    ("printed", "name"),
    [("", "void at::native::(anonymous namespace)::max_pool_forward_nchw<float, int>(int, float const*)"),
     ("nsys", "void at::native::<unnamed>::max_pool_forward_nchw<float, int>(T2, const T1 *)"),
     ("mangled", "_ZN2at6native12_GLOBAL__N_122max_pool_backward_nchwIN3c104HalfEfEEviPKT_PKliiiiiiiiiiiiiiPS5_"),
     ("no demangler", "void at::native::(anonymous namespace)::max_pool_forward_nchw<float, i...")],
)  # fmt: skip
def test_a_name_has_its_class_however_a_tool_prints_it(printed, name):
    assert classify_gpu_operation(name) == "pooling", printed
