"""ncu's source page: the line of the worst access, and what local memory holds. Recorded on an H100."""

import lzma
from dataclasses import replace

import pytest

from nsw.analysis.guided import ncu_launch_filter, pick_launch_per_kernel
from nsw.analysis.kernels import kernel_table_of_report
from nsw.analysis.rules.counters import kernel_advice_text
from nsw.analysis.source_lines import SourceLines, source_lines
from nsw.readers.detect import read
from tests.analysis.test_diagnosis import FOLDER, recordings


def source_metrics(case, folder):
    page = folder / f"{case}.source.csv"
    page.write_bytes(lzma.decompress((FOLDER / "recordings" / f"{case}.source.xz").read_bytes()))
    return read(page).tables["source_metrics"]


@pytest.mark.parametrize(
    ("case", "lines"),
    [
        ("k01", {"global": "kernels.cu:13, 28 of 32 bytes unused"}),
        ("k02", {"global": "kernels.cu:34, 28 of 32 bytes unused"}),  # of its stores: its loads are beside them
        ("k06", {"shared": "kernels.cu:42, 97 % of its passes are conflicts"}),
        ("k08", {"local": "kernels.cu:212"}),
        ("k14", {}),  # atomics on few addresses waste no bytes
    ],
)
def test_the_line_of_the_worst_access_is_named(tmp_path, case, lines):
    (page,) = source_lines(source_metrics(case, tmp_path)).values()
    assert page.has_lines
    assert {memory: str(line) for memory, line in page.worst.items()} == lines


def local_access(at, instruction, executed):
    return {"kernel": "k(int *)", "file": None, "line": None, "address": f"0x{at}", "source": instruction,
            "metric": "Instructions Executed", "value": executed, "text": None}  # fmt: skip


@pytest.mark.parametrize(
    ("address", "share"), [("R1+0x10", 0.0), ("R1", 0.0), ("R22", 1.0), ("R2+0x4", 1.0), ("R10", 1.0)]
)
def test_spills_are_at_constants_on_the_stack_and_arrays_at_computed_addresses(address, share):
    rows = [local_access(1, f"      STL.64 [{address}], R5", 9.0), local_access(2, f"@P0 LDL R9, [{address}]", 1.0)]
    (page,) = source_lines([*rows, local_access(3, "LDG.E R9, desc[UR4][R1.64]", 50.0)]).values()
    assert page == SourceLines(has_lines=False, worst={}, indexed=share)


@pytest.mark.parametrize(
    ("indexed", "advice"), [(0.97, "constant indices or shared memory"), (0.0, "allow more registers")]
)
def test_the_source_page_decides_between_spills_and_arrays_where_registers_do_not(tmp_path, indexed, advice):
    (kernel,) = kernel_table_of_report(read(recordings.unpack("k08", tmp_path)["counters"]).tables)
    kernel = replace(kernel, registers=32.0, source=SourceLines(has_lines=True, worst={}, indexed=indexed))
    assert kernel_advice_text(kernel, 100.0) == advice


def chosen(kernel, ordinal, launch_id):
    return {"kernel": f"{kernel}()", "short_name": kernel, "mangled_name": f"_Z1{kernel}v", "ordinal": ordinal,
            "grid": None, "block_size": None, "duration_ns": 5, "launch_id": launch_id}  # fmt: skip


def test_a_launch_of_each_kernel_is_measured_once_more_at_as_few_ordinals_as_can_be():
    rows = [chosen("a", 3, 1), chosen("a", 7, 2), chosen("b", 7, 3), chosen("c", 7, 4), chosen("b", 9, None)]
    picked = pick_launch_per_kernel(rows, [1, 2, 3])
    assert [(pick.short_name, pick.ordinal) for pick in picked] == [("a", 7), ("b", 7)]
    assert ncu_launch_filter(picked)[-1] == "::regex:^(_Z1av|_Z1bv)$:^(7)$"


def test_launches_that_come_along_once_more_are_expected():
    rows = [chosen("a", 3, 1), chosen("a", 7, 2), chosen("b", 7, 3), chosen("d", 3, 5)]
    picked = pick_launch_per_kernel(rows, [1, 3, 2, 5])
    assert [(pick.short_name, pick.ordinal) for pick in picked] == [("a", 3), ("a", 7), ("b", 7), ("d", 3)]
    assert ncu_launch_filter(picked)[-1] == "::regex:^(_Z1av|_Z1bv|_Z1dv)$:^(3|7)$"
