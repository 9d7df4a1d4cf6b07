"""Who the others wait for: simulated jobs with planted ranks, and a recording of four H200s."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nsw.analysis.answer.registry import answer_blocks
from nsw.analysis.clocks import clocks_by_report
from nsw.analysis.stragglers import OF_STRAGGLERS, find_stragglers
from nsw.analysis.summary import CampaignData, ReportRequest, summarize
from nsw.readers import read
from tests import recorded

from .made import make_run

PATH = Path(__file__).parents[2] / "bench" / "stragglers.py"
spec = importlib.util.spec_from_file_location("bench_stragglers", PATH)
bench = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = bench
spec.loader.exec_module(bench)

JOB = bench.Job(
    16, None, "rank", slower=0.2, scatter=0.01, spikes=0.0, segments=3, overlapped=True
)  # two nodes, no rank is late
CLOCK_US = 20e3


def simulated(seed=1, **changes):
    return bench.simulated(replace(JOB, **changes), np.random.default_rng(seed))


@pytest.mark.parametrize("overlapped", [False, True])
@pytest.mark.parametrize("cause", bench.CAUSES)
def test_a_rank_that_is_late_throughout_is_first_with_the_kind_of_its_cause(cause, overlapped):
    tables, names, _ = simulated(cause=cause, overlapped=overlapped)
    first, second, *_ = find_stragglers(tables)
    assert [first.name] == names
    assert first.late
    assert first.cause == bench.IDS[cause]
    assert first.why
    assert first.cost_pct > 5
    assert not second.late


@pytest.mark.parametrize(("who", "count"), [("now and then", 1), ("in turn", 2), ("node", 1)])
def test_ranks_that_are_late_now_and_then_or_in_turn_and_a_slow_node_are_named(who, count):
    tables, names, _ = simulated(cause="clock", who=who, seed=3)
    assert {entry.name for entry in find_stragglers(tables) if entry.late} == set(names)
    assert len(names) == count


def test_how_much_longer_kernels_take_is_told_in_per_cent():
    tables, _, _ = simulated(cause="clock")
    assert find_stragglers(tables)[0].why.startswith("all of its kernels take 20 % longer")


RACKS = replace(JOB, ranks=64, who="rack", cause="clock", rack=2)


def test_a_rack_is_named_where_all_of_its_nodes_are_late_and_only_there():
    tables, names, _ = bench.simulated(RACKS, np.random.default_rng(1))
    late = [entry for entry in find_stragglers(tables, bench.racks(RACKS)) if entry.late]
    assert [entry.name for entry in late] == names
    assert (late[0].rack, late[0].node) == (names[0].removeprefix("rack "), None)
    assert late[0].why.startswith("both of its nodes are late; all of its kernels take 20 % longer")
    # one of two nodes, and one of four
    tables, names, _ = simulated(ranks=64, cause="clock", who="node")
    for size in (2, 4):
        racks = {f"node{node}": f"r{node // size}" for node in range(8)}
        entries = find_stragglers(tables, racks)
        assert [entry.name for entry in entries if entry.late] == names
        assert entries[0].rack == racks[names[0]]


def test_racks_are_of_nodes_by_their_name_without_the_domain_and_some_may_be_in_none():
    tables, names, _ = bench.simulated(RACKS, np.random.default_rng(1))
    for name, rows in tables.items():
        tables[name] = [row | {"host": f"{row['host']}.site.org"} for row in rows]
    racks = {node: rack for node, rack in bench.racks(RACKS).items() if node != "node0" and rack != "r3"}
    entries = find_stragglers(tables, racks)
    assert entries[0].name == names[0] == "rack r2"
    assert {entry.rack for entry in entries if entry.node == "node0.site.org"} == {None}
    assert {entry.rack for entry in entries if entry.node == "node1.site.org"} == {"r0"}
    assert not any(entry.name in {"rack r0", "rack r3"} for entry in entries)


def test_the_answer_names_the_rack_and_what_to_do_with_it():
    tables, _, _ = bench.simulated(RACKS, np.random.default_rng(1))
    run = make_run(pass_name="timeline", pass_kind="timeline")
    found = [row | {"run": "r"} for row in tables["phase_summary"] if row["summary"] == "gpu_summary"]
    data = CampaignData("c", "s", None, [run], tables | {"gpu_summary": found}, racks=bench.racks(RACKS))
    summary = summarize(data, ReportRequest())
    text = next(finding.text for finding in summary.findings if finding.cause == "late-rank-heat")
    assert text.startswith("Rack r2 comes last to 100 % of the collectives")
    assert "Its nodes share power, cooling and a switch: report it" in text
    (table,) = [block for block in answer_blocks(summary) if block.name == "stragglers"]
    assert [column.title for column in table.columns][:3] == ["who", "node", "rack"]
    assert table.rows[0][:3] == ("rack r2", None, "r2")


@pytest.mark.parametrize("cause", ["clock", "data"])
def test_of_a_node_with_one_rank_that_is_late_now_and_then_the_rank_is_named(cause):
    tables, names, _ = simulated(ranks=32, cause=cause, who="now and then", scatter=0.018, overlapped=False)
    assert [entry.name for entry in find_stragglers(tables) if entry.late] == names


@pytest.mark.parametrize("seed", range(4))
def test_nobody_is_late_where_all_ranks_are_alike(seed):
    tables, _, _ = simulated(seed=seed, spikes=0.001)
    assert not any(entry.late for entry in find_stragglers(tables))


def test_a_rank_that_is_late_on_every_node_is_the_programs_own():
    tables, names, _ = simulated(cause="work", who="rank")
    for name, rows in tables.items():
        tables[name] = rows + [row | {"run": "s", "host": f"other-{row['host']}"} for row in rows]
    first = find_stragglers(tables)[0]
    assert [first.name] == names
    assert "it was late on 2 nodes: the program's own" in first.why


def test_what_a_late_rank_costs_is_what_the_job_takes_longer():
    lengths, costs = [], []
    for cause in ("host", None):
        tables, _, _ = simulated(cause=cause, overlapped=False, scatter=0.0)
        lengths.append(np.median([row["med_ns"] for row in tables["iterations"]]))
        costs.append(find_stragglers(tables)[0].cost_ns)
    assert costs[0] == pytest.approx(lengths[0] - lengths[1], rel=0.05)


def test_a_clock_that_was_low_is_the_reason_where_it_was_sampled():
    tables, names, _ = simulated(cause="clock")
    late = int(names[0].split()[1])
    tables["ranks"] = [{"run": "r", "rank": rank, "gpus": f"GPU-{rank}"} for rank in range(JOB.ranks)]
    tables["conditions"] = [
        {
            "run": "r",
            "gpu": f"GPU-{rank}",
            "sm_mhz": 1410 if rank == late else 1980,
            "heat_limited_pct": 60.0 * (rank == late),
        }
        for rank in range(JOB.ranks)
    ]
    why = find_stragglers(tables)[0].why
    assert "its clock is 1,410 MHz, that of the others 1,980, held down by heat" in why


@pytest.mark.parametrize(
    ("column", "value", "cause", "why"),
    [("blocks", 1200, "uneven-work", "its launches have 20 % more blocks"),
     ("blocks", 1030, "late-rank-heat", "a lower clock, or another process on its GPU"),
     ("delayed_pct", 30.0, "late-rank-shared-gpu", "30 % of their time in launches that take far longer than the same")],
)  # fmt: skip
def test_more_blocks_are_more_work_and_launches_delayed_now_and_then_another_process(column, value, cause, why):
    tables, names, _ = simulated(cause="clock")
    late = int(names[0].split()[1])
    use = {"blocks": 1000, "delayed_pct": 0.0, "iterations": 10}
    tables["gpu_use"] = [
        {**row, **use} | ({column: value} if row["rank"] == late else {"iterations": 20, "blocks": 2000})
        for row in {row["rank"]: row for row in tables["collectives"]}.values()
    ]
    straggler = find_stragglers(tables)[0]
    assert straggler.cause == cause
    assert why in straggler.why


def test_clocks_of_reports_agree_within_20_us_by_their_collectives():
    tables, _, planted = simulated(cause="host")
    assert max(bench._clock_errors(tables, planted)) < CLOCK_US
    clocks = clocks_by_report(tables["collectives"])
    assert set(clocks) == {str(rank) for rank in range(JOB.ranks)}
    clock = clocks["5"]
    assert clock.from_reference(clock.to_reference(3e9)) == pytest.approx(3e9, abs=1)


def test_reports_that_share_too_few_collectives_have_no_common_clock():
    tables, _, _ = simulated()
    assert clocks_by_report(tables["collectives"][:5]) == {}


@pytest.fixture(scope="module")
def alexnet(tmp_path_factory):
    path = tmp_path_factory.mktemp("alexnet") / "report.sqlite"
    path.write_bytes(recorded.alexnet("g4-b8"))
    return read(path).tables


def test_the_first_gpu_of_the_recorded_alexnet_holds_the_others_up_by_its_host(alexnet):
    tables = {name: [row | {"run": "r", "report": "a"} for row in alexnet.get(name, [])] for name in OF_STRAGGLERS}
    first, *others = find_stragglers(tables)
    assert (first.name, first.late, first.cause) == ("GPU 0", True, "late-rank-host")
    assert not any(entry.late for entry in others)


def test_the_parts_between_collectives_fill_the_steady_state(alexnet):
    for row in alexnet["iterations"]:
        mine = [r for r in alexnet["collectives"] if (r["pid"], r["device"]) == (row["pid"], row["device"])]
        assert len(mine) == 4 * row["steady"]
        assert {r["iteration"] for r in mine} == set(range(row["warmup"], row["iterations"]))
        span = mine[-1]["start_ns"] - mine[0]["start_ns"]
        parts = sum(r[part] for r in mine[1:] for part in ("computing_ns", "copies_ns", "idle_ns", "alone_ns"))
        assert parts - mine[-1]["alone_ns"] + mine[0]["alone_ns"] == pytest.approx(span, rel=0.01)
        assert all(0 <= r["alone_ns"] <= r["duration_ns"] for r in mine)
