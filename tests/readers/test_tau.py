"""TAU's profiles, and pprof's listing of them: written by hand as TAU writes them.

Names and times were held against what hatchet 2026.2.0 reads of PROFILE.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from nsw.readers import read

CPU = Path(__file__).parents[1] / "fixtures" / "cpu"

PROFILE = (CPU / "profile.1.0.0").read_text()
SAMPLED = (CPU / "tau-sampled.0.0.0").read_text()
PPROF = (CPU / "pprof.txt").read_text()


@pytest.fixture
def report(tmp_path):
    def of(text, name="profile.1.0.0"):
        path = tmp_path / name
        path.write_text(text)
        return read(path)

    return of


def rows(report):
    return {row["name"]: row for row in report.tables["functions"]}


def facts(report):
    return {row["key"]: row.get("value", row.get("text")) for row in report.tables["facts"]}


def test_timers_are_functions_and_call_paths_are_not(report):
    found = rows(report(PROFILE))
    assert {name: (row["calls"], row["self_s"], row["cpu_time_s"]) for name, row in found.items()} == {
        ".TAU application": (1, 0.001, 9.0), "int main(int, char **)": (1, 0.049, 8.999), "step": (100, 7.5, 7.5),
        "MPI_Sendrecv()": (200, 1.4, 1.4), "MPI_Init()": (1, 0.05, 0.05),
    }  # fmt: skip
    assert sum(row["self_s"] for row in found.values()) == pytest.approx(9)
    assert (found["step"]["file"], found["step"]["line"]) == ("heat.c", 50)


def test_the_rank_is_the_node_unless_nsw_named_one(report):
    assert {row["rank"] for row in report(PROFILE).tables["functions"]} == {1}
    assert {row["rank"] for row in report(PROFILE, "host.rank3.profile.0.0.0").tables["functions"]} == {3}
    assert {row["host"] for row in report(PROFILE).tables["functions"]} == {"node7"}


def test_time_in_mpi_is_a_fact(report):
    found = facts(report(PROFILE))
    assert (found["elapsed_s"], found["mpi_s"]) == (9, pytest.approx(1.4))  # without MPI_Init
    assert found["mpi_pct"] == pytest.approx(100 * 1.4 / 9)


def test_what_was_sampled_is_counted_once(report):
    found = rows(report(SAMPLED))
    assert found[".TAU application"]["self_s"] == pytest.approx(27.977 - 27.9)
    assert (found["work"]["self_s"], found["work"]["samples"]) == (pytest.approx(25.7), 514)
    assert found["UNRESOLVED"]["module"] == "/lib/libc-2.27.so"
    assert sum(row["self_s"] for row in found.values()) == pytest.approx(27.977 + 5.466531)


@pytest.mark.parametrize(("metric", "column"), [("PAPI_TOT_CYC", "cycles"), ("PAPI_TOT_INS", "instructions")])
def test_counters_have_their_own_columns(report, metric, column):
    found = report(PROFILE.replace("MULTI_TIME", f"MULTI_{metric}").replace(">TIME<", f">{metric}<"))
    assert rows(found)["step"][column] == 7_500_000
    assert rows(found)["step"].get("self_s") is None
    assert not {"elapsed_s", "mpi_s"} & facts(found).keys()


def test_another_metric_is_refused_by_its_name(report):
    found = report(PROFILE.replace("MULTI_TIME", "MULTI_PAPI_L2_TCM").replace(">TIME<", ">PAPI_L2_TCM<"))
    assert [p.message for p in found.problems] == [
        "PAPI_L2_TCM is neither a time nor cycles or instructions, and not read"
    ]


def test_a_profile_that_is_cut_short_says_so(report):
    found = report("\n".join(PROFILE.splitlines()[:6]))
    assert [p.message for p in found.problems] == ["cut short: 4 of 9 timers are there"]


def test_a_damaged_timer_is_said(report):
    found = report(PROFILE.replace('"MPI_Init()" 1 0 50000', '"MPI_Init()" 1 0 5#000', 1))
    assert [(p.message, p.line) for p in found.problems] == [("no timer with its calls and times; left out", 10)]


def test_pprofs_tables_are_read_a_thread_at_a_time_and_its_sums_are_not(report):
    found = report(PPROF, "pprof.txt").tables["functions"]
    assert [(row["rank"], row["name"], round(row["self_s"], 9), row["cpu_time_s"]) for row in found] == [
        (0, ".TAU application", 0.000556, 131.067), (0, "int main(int, char **)", 69.13, 69.13),
        (0, "MPI_Allreduce()", 14.889, 36.577), (0, "MPI_Comm_rank()", 2.1e-8, pytest.approx(2.1e-8)),
        (1, ".TAU application", 1.002, 3601.002), (1, "step", 0.218, 0.218),
    ]  # fmt: skip
    assert found[1].get("calls") is None  # half a call, which is a mean's


def test_where_there_are_only_sums_they_are_read(report):
    found = report(PPROF[PPROF.index("FUNCTION SUMMARY (total)") :], "pprof.txt")
    assert [(row["rank"], row["name"], row["self_s"]) for row in found.tables["functions"]] == [(None, "step", 0.218)]


def test_counts_of_another_metric_are_refused(report):
    found = report(
        PPROF.replace(
            "              msec   total msec                          usec/call",
            "            counts total counts                         count/call",
        ),
        "p.txt",
    )
    assert "not in msec" in found.problems[0].message
