"""What a case shows: shares of the whole, copies with their bandwidth, figures with their range."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsw.analysis import cases
from nsw.analysis.cases import Link, summarize_cases
from nsw.analysis.comparison import least_disturbed_figure
from nsw.tables.columns import Columns

from .made import figure_row, gpu_row, make_run


def largest_shares(rows, cover):
    return cases.largest_shares(Columns.from_rows(rows), cover)


def rows(*totals, kind="kernel"):
    return [gpu_row(f"k{n}", total, kind=kind) for n, total in enumerate(totals)]


def names(shares):
    return [s.name for s in shares]


def test_the_largest_that_together_take_the_cover_are_listed_and_no_more():
    assert names(largest_shares(rows(50, 30, 15, 5), 0.8)) == ["k0", "k1"]
    assert names(largest_shares(rows(50, 30, 15, 5), 0.81)) == ["k0", "k1", "k2"]
    assert [s.cumulative_pct for s in largest_shares(rows(50, 30, 15, 5), 0.9)] == [50, 80, 95]


def test_a_cover_of_all_lists_all_that_took_time():
    assert names(largest_shares(rows(5, 3, 2), 1)) == ["k0", "k1", "k2"]
    assert names(largest_shares(rows(5, 3, 0), 1)) == ["k0", "k1"]


def test_equal_times_stand_in_the_order_of_their_names():
    assert names(largest_shares(list(reversed(rows(10, 10, 10))), 1)) == ["k0", "k1", "k2"]


def test_nothing_and_no_time_give_nothing():
    assert largest_shares([], 0.9) == ()
    assert largest_shares(rows(0, 0), 0.9) == ()
    assert largest_shares([gpu_row("k", None)], 0.9) == ()


def test_equal_names_of_several_reports_are_one_and_a_copy_of_that_name_is_another():
    found = largest_shares([gpu_row("k", 60, calls=2), gpu_row("k", 20, calls=1), gpu_row("k", 20, kind="memcpy")], 1)
    assert [(s.kind, s.total_ns, s.calls, s.share_pct) for s in found] == [("kernel", 80, 3, 80), ("memcpy", 20, 1, 20)]


@given(st.lists(st.integers(0, 10**12), max_size=30), st.floats(0.01, 1))
def test_shares_are_parts_of_one_whole_and_the_list_is_as_short_as_it_can_be(totals, cover):
    found = largest_shares(rows(*totals), cover)
    whole = sum(totals)
    if not whole:
        assert found == ()
        return
    shares = [s.share_pct for s in found]
    assert shares == sorted(shares, reverse=True)
    assert found[-1].cumulative_pct >= 100 * cover - 1e-9
    assert found[-1].cumulative_pct == pytest.approx(math.fsum(shares), abs=1e-6)
    assert all(s.cumulative_pct < 100 * cover + 1e-9 for s in found[:-1])


def summary(tables, runs=None, cover=0.9):
    (case,) = summarize_cases(runs or [make_run()], tables, cover)
    return case


def test_copies_have_a_bandwidth_where_bytes_and_time_are_known():
    case = summary({"gpu_summary": [gpu_row("HtoD", 2e9, kind="memcpy", total_bytes=10**9),
                                    gpu_row("set", 0, kind="memset", total_bytes=5)]})  # fmt: skip
    assert [(c.name, c.total_bytes, c.bytes_per_s) for c in case.copies] == [("HtoD", 10**9, 5e8), ("set", 5, None)]


def test_copies_of_unknown_size_have_no_bandwidth_also_when_only_one_report_does_not_know():
    case = summary(
        {"gpu_summary": [gpu_row("HtoD", 10, kind="memcpy", total_bytes=100), gpu_row("HtoD", 10, kind="memcpy")]}
    )
    (copy,) = case.copies
    assert (copy.total_ns, copy.total_bytes, copy.bytes_per_s) == (20, None, None)


def test_gpu_time_counts_kernels_copies_and_sets_and_kernel_time_only_kernels():
    case = summary({"gpu_summary": [gpu_row("k", 60), gpu_row("g", 10, kind="graph"), gpu_row("c", 30, kind="memcpy")]})
    assert (case.gpu_ns, case.kernel_ns) == (100, 70)


def link_facts(rate, width, device=0):
    values = {"gpu_linkRate": rate, "gpu_linkWidth": width}
    return [{"run": "r", "key": key, "value": value, "device": device} for key, value in values.items()]


def test_the_link_of_a_case_is_what_all_its_gpus_have():
    def link(*facts):
        rows = {"gpu_summary": [gpu_row("k", 1.0)], "facts": [row for each in facts for row in each]}
        (case,) = summarize_cases([make_run()], rows, 0.9)
        return case.link

    x8 = link_facts(8000.0, 8.0)
    assert (
        link(x8) == link(x8, link_facts(8000.0, 8.0, device=1)) == Link("PCIe 3 x8", pytest.approx(7.877e9, rel=1e-3))
    )
    assert link(x8, link_facts(8000.0, 16.0, device=1)) is None
    assert link(link_facts(8001.0, 8.0)) is None
    assert link() is None


def test_what_no_report_tells_is_absent_and_not_zero():
    case = summary({})
    assert (case.gpu_ns, case.kernel_ns, case.communication_pct) == (None, None, None)
    assert (case.hotspots, case.copies, case.figures, case.reports) == ((), (), (), 0)


def test_communication_is_ncclss_part_of_gpu_time():
    tables = {
        "gpu_summary": [gpu_row("k", 75), gpu_row("ncclDevKernel", 25)],
        "communication": [
            {"run": "r", "library": "nccl", "total_ns": 25},
            {"run": "r", "library": "mpi", "total_ns": 99},
        ],
    }
    assert summary(tables).communication_pct == 25


def test_reports_and_gpus_are_counted_once_each():
    tables = {
        "gpu_summary": [gpu_row("k", 1), gpu_row("l", 1), gpu_row("k", 1, report="b")],
        "facts": [
            {"run": "r", "key": "gpu_name", "text": text} for text in ("NVIDIA L4", "NVIDIA A100", "NVIDIA L4", None)
        ] + [{"run": "r", "key": "host_name", "text": "n1"}],
    }  # fmt: skip
    case = summary(tables)
    assert (case.reports, case.gpus) == (2, ("NVIDIA A100", "NVIDIA L4"))


def test_a_row_without_times_or_calls_adds_nothing():
    rows_ = [gpu_row(name, 10, calls=3, kind=kind) for name, kind in (("k", "kernel"), ("HtoD", "memcpy"))]
    rows_ += [gpu_row(name, None, calls=None, kind=kind) for name, kind in (("k", "kernel"), ("HtoD", "memcpy"))]
    case = summary({"gpu_summary": rows_}, cover=1)
    assert [(s.name, s.total_ns, s.calls) for s in case.hotspots] == [("k", 10, 3), ("HtoD", 10, 3)]
    assert [(c.total_ns, c.calls) for c in case.copies] == [(10, 3)]


def test_what_is_shown_is_the_short_name_and_what_counts_is_the_whole_one():
    rows_ = [gpu_row(f"void gemm<{t}>()", 10) | {"short_name": "gemm"} for t in ("int", "float")]
    found = largest_shares(rows_, 1)
    assert [(s.name, s.short_name) for s in found] == [("void gemm<float>()", "gemm"), ("void gemm<int>()", "gemm")]


def test_rows_of_other_runs_do_not_count():
    case = summary({"gpu_summary": [gpu_row("k", 60), gpu_row("k", 40, run="another")]})
    assert case.gpu_ns == 60


def test_a_figure_is_the_median_of_its_runs_with_their_range_and_says_whether_it_was_profiled():
    runs = [make_run(f"r{n}") for n in range(3)] + [make_run("p", pass_name="timeline", pass_kind="timeline")]
    values = {"r0": 10.0, "r1": 30.0, "r2": 11.0, "p": 7.0}
    case = summary({"figures": [figure_row(v, run=r) for r, v in values.items()]}, runs)
    free, held = case.figures
    assert (free.median, free.least, free.most, free.runs, free.profiled) == (11, 10, 30, 3, False)
    assert (held.median, held.runs, held.profiled) == (7, 1, True)
    assert least_disturbed_figure(case, "speed") is free
    assert least_disturbed_figure(case, "other") is None


def test_a_figure_that_only_a_profiled_run_gave_is_taken_and_says_so():
    run = make_run("p", pass_name="timeline", pass_kind="timeline")
    assert least_disturbed_figure(summary({"figures": [figure_row(7.0, run="p")]}, [run]), "speed").profiled


def test_functions_of_one_name_in_two_places_are_two():
    rows = [{"run": "r", "name": "f", "file": "a.py", "line": 1, "self_s": 3.0, "calls": 1},
            {"run": "r", "name": "f", "file": "b.py", "line": 1, "self_s": 1.0, "calls": 1}]  # fmt: skip
    assert [(f.name, f.total_ns) for f in summary({"functions": rows}, cover=1).functions] == [
        ("f (a.py:1)", 3e9),
        ("f (b.py:1)", 1e9),
    ]


def test_repeats_are_averaged_so_that_cases_of_more_or_fewer_good_runs_compare():
    runs = [make_run(f"r{n}") for n in (1, 2, 3)]
    per_run = [gpu_row("k", 30, calls=4, run="r1"), gpu_row("k", 50, calls=5, run="r2"),
               gpu_row("HtoD", 20, kind="memcpy", total_bytes=100, run="r1")]  # fmt: skip
    case = summary({"gpu_summary": per_run}, runs)  # r3 failed
    assert (case.gpu_ns, case.kernel_ns, case.measured) == (50, 40, 2)
    assert [(s.name, s.total_ns, s.calls, s.share_pct) for s in case.hotspots][0] == ("k", 40, 4.5, 80)  # noqa: RUF015
    assert [(c.total_ns, c.total_bytes, c.bytes_per_s) for c in case.copies] == [(10, 50, 5e9)]


def test_a_table_that_two_passes_give_is_taken_of_the_first():
    runs = [make_run("a", pass_name="timeline", pass_kind="timeline"), make_run("b", pass_name="host")]
    case = summary({"gpu_summary": [gpu_row("k", 30, run="a"), gpu_row("k", 31, run="b")]}, runs)
    assert (case.gpu_ns, case.measured) == (30, 1)


def test_imports_are_no_share_of_the_programs_functions():
    """`marshal.loads` leads a short program's profile, and is nothing that the program does."""
    rows = [{"run": "r", "name": "marshal.loads", "self_s": 4.0, "import_s": 4.0, "calls": 9},
            {"run": "r", "name": "work", "self_s": 1.0, "import_s": 0.0, "calls": 1},
            {"run": "r", "name": "compile", "self_s": 2.0, "import_s": 1.0, "calls": 3}]  # fmt: skip
    case = summary({"functions": rows}, cover=1)
    assert [(f.name, f.total_ns, f.share_pct) for f in case.functions] == [("compile", 1e9, 50), ("work", 1e9, 50)]
    assert case.import_ns == 5e9
    assert summary({"functions": [rows[0] | {"import_s": None}]}).import_ns is None
