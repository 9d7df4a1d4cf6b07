"""Blocks that only plots show: sweeps, heat maps, where time goes, what changed, one iteration as a timeline."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from nsw.analysis.answer.comparisons import figure_by_parameter_blocks, scaling_blocks, time_by_class_blocks
from nsw.analysis.blocks import Bars, Curve, Evidence, HeatMap, StackedBars
from nsw.analysis.cases import CaseSummary
from nsw.analysis.comparison import scaling_curve
from nsw.analysis.figures import Figure
from nsw.analysis.iteration_lanes import iteration_lanes
from nsw.analysis.spent import Part, Spent
from nsw.analysis.summary import Summary


def case(figure=1.0, unit="s", spent=None, **params):
    name = "_".join(f"{key}-{value}" for key, value in params.items())
    figures = (Figure.from_values("speed", unit, "baseline", (figure - 0.1, figure, figure + 0.1), profiled=False),)
    return CaseSummary(name, params, 1, None, None, None, figures=figures, spent=spent)


def summary(*cases, curve=None):
    return Summary("c", "s", None, 0.9, cases, curve, (), None, None, "speed", (), ())


def test_a_figure_over_a_parameter_of_numbers_is_a_curve_with_its_ranges():
    (curve,) = figure_by_parameter_blocks(summary(*(case(n * 1.0, n=n) for n in (1, 2, 3))))
    assert isinstance(curve, Curve)
    assert (curve.x, curve.y, curve.series) == ("param.n", "figure", ())
    assert curve.rows[1] == (2, 2.0, (1.9, 2.1))


def test_words_and_two_values_are_bars_and_two_parameters_a_heat_map_too():
    bars, heat = figure_by_parameter_blocks(summary(*(case(n * 1.0, net=net, n=n) for net in "ab" for n in (1, 2))))
    assert isinstance(bars, Bars)
    assert isinstance(heat, HeatMap)
    assert (heat.x, heat.y, heat.value, heat.others) == ("param.n", "param.net", "figure.speed", ())
    assert heat.rows[1] == ("a", 2, 2.0, (1.9, 2.1))
    assert len(heat.rows) == 4
    assert figure_by_parameter_blocks(summary(case(n=1))) == []


def test_figures_and_metrics_of_the_hottest_kernel_are_chosen_of_a_heat_map_each():
    def measured(n, net):
        kernels = [SimpleNamespace(short_name=f"{name} of {net}", metrics={"ipc": n * of, "sm_throughput": 9.0 * n, "blocks": 4.0})
                   for name, of in (("hottest", 1.0), ("other", 7.0))]  # fmt: skip
        loss = Figure.from_values("loss", None, "baseline", (0.5 / n,), profiled=False)
        made = case(n * 1.0, net=net, n=n)
        return replace(
            made, kernels=tuple(kernels) if n < 3 else (), figures=(*made.figures, *([loss] if n > 1 else []))
        )

    heat, metrics = (
        block for block in figure_by_parameter_blocks(summary(*(measured(n, net) for net in "ab" for n in (1, 2, 3))))
        if isinstance(block, HeatMap)
    )  # fmt: skip
    assert (heat.title, heat.value, heat.others) == ("figures by n and net", "figure.speed", ("figure.loss",))
    assert heat.rows[:2] == (("a", 1, 1.0, (0.9, 1.1), None), ("a", 2, 2.0, (1.9, 2.1), 0.25))
    assert metrics.title == "metrics of the hottest kernel by n and net"
    assert (metrics.value, metrics.others) == ("metric.sm_throughput", ("metric.ipc",)), "blocks are the same in all"
    assert metrics.rows == (
        ("a", 1, "hottest of a", 9.0, 1.0), ("a", 2, "hottest of a", 18.0, 2.0),
        ("b", 1, "hottest of b", 9.0, 1.0), ("b", 2, "hottest of b", 18.0, 2.0),
    )  # fmt: skip
    assert metrics.evidence == (Evidence("kernels", ("net-a_n-1", "net-a_n-2", "net-b_n-1", "net-b_n-2")),)


@pytest.mark.parametrize(
    ("kind", "unit", "figures", "ideals"),
    [("strong", "s", (8.0, 5.0), (8.0, 4.0)), ("weak", "s", (8.0, 10.0), (8.0, 8.0)),
     ("weak", "images/s", (8.0, 12.0), (8.0, 16.0))],
)  # fmt: skip
def test_the_ideal_is_the_figure_at_full_efficiency(kind, unit, figures, ideals):
    cases = [case(figure, unit, gpus=n) for n, figure in zip((1, 2), figures, strict=True)]
    curve = scaling_curve(cases, axis="gpus", kind=kind, figure="speed")
    block = scaling_blocks(summary(*cases, curve=curve))[0]
    assert block.ideals == pytest.approx(ideals)


PARTS = (
    Part("GEMM", 6e6, 3, "gemm", 6e6), Part("NCCL", 5e6, 1, "nccl", 5e6), Part("copies", 2e6, 1, "copy", 2e6),
    Part("layout", 2e6, 1, "nchw", 2e6),
)  # fmt: skip
DIVIDED = Spent(
    is_iteration=True, span_ns=10e6, parts=PARTS, fp32_ns=0.0, short_pct=0.0, operations=6, computing_pct=40.0,
    copies_pct=10.0, exposed_pct=20.0, idle_pct=30.0,
)  # fmt: skip


def test_an_iteration_is_divided_into_parts_that_add_up_to_it():
    (block,) = time_by_class_blocks(summary(case(spent=DIVIDED, n=1)))
    assert isinstance(block, StackedBars)
    row = dict(zip([column.title for column in block.columns], block.rows[0], strict=True))
    assert row == pytest.approx({
        "case": "n-1", "GEMM": 3e6, "layout": 1e6, "copies alone": 1e6, "NCCL alone": 2e6, "idle": 3e6,
    })  # fmt: skip


def test_gpu_time_is_divided_where_there_are_no_iterations():
    whole = replace(DIVIDED, is_iteration=False, span_ns=None, computing_pct=None)
    (block,) = time_by_class_blocks(summary(case(spent=whole, n=1)))
    assert block.title == "where GPU time goes"
    assert sum(block.rows[0][1:]) == pytest.approx(15e6)


def operation(start, length, *, report="r", pid=1, stream=7, name="gemm"):
    return {"report": report, "pid": pid, "device": pid - 1, "stream": stream, "kind": "kernel", "name": name,
            "short_name": name, "start_ns": start, "duration_ns": length}  # fmt: skip


def iteration(number, start, length, *, report="r", pid=1, phase="steady"):
    return {"report": report, "pid": pid, "iteration": number, "phase": phase, "start_ns": start,
            "duration_ns": length}  # fmt: skip


ITERATIONS = [iteration(0, 0, 900, phase="warmup"), iteration(1, 1000, 100), iteration(2, 2000, 120),
              iteration(3, 3000, 500)]  # fmt: skip


def test_the_iteration_of_median_duration_is_shown_cut_to_its_time():
    gpu = [operation(1_990, 20), operation(2_050, 30), operation(2_110, 50), operation(3_000, 5)]
    nvtx = [
        {"report": "r", "pid": 1, "name": name, "start_ns": start, "duration_ns": length, "tid": 1}
        for name, start, length in (("step", 1_900, 400), ("forward", 2_010, 40), ("backward", 2_060, 70))
    ]
    block = iteration_lanes("c", gpu, nvtx, ITERATIONS)
    assert block.title == "iteration 2 of c"
    boxes = [(row[1], row[2], row[3], row[4]) for row in block.rows]
    assert boxes == [
        ("NVTX", 0.0, 120, "step"), ("NVTX, level 2", 10, 40, "forward"), ("NVTX, level 2", 60, 60, "backward"),
        ("stream 7", 0.0, 10, "gemm"), ("stream 7", 50, 30, "gemm"), ("stream 7", 110, 10, "gemm"),
    ]  # fmt: skip
    assert iteration_lanes("c", gpu, nvtx, []) is None


def test_reports_of_other_clocks_begin_at_their_own_start():
    gpu = [operation(2_000, 10), operation(70_005, 10, report="r2", pid=2)]
    block = iteration_lanes("c", gpu, [], [*ITERATIONS, iteration(2, 70_000, 120, report="r2", pid=2)])
    assert [(row[0], row[2]) for row in block.rows] == [("GPU 0", 0.0), ("GPU 1", 5)]


def test_streams_of_several_gpus_have_a_lane_each_and_a_context_names_no_process():
    gpu = [operation(2_000, 10) | {"device": device} for device in (0, 1)]
    steps = [row | {"device": 1} for row in ITERATIONS]
    block = iteration_lanes("c", gpu, [], steps)
    assert [(row[0], row[1]) for row in block.rows] == [("GPU 1", "GPU 0, stream 7"), ("GPU 1", "GPU 1, stream 7")]
    both = [*steps, *(row | {"device": 0} for row in ITERATIONS)]
    assert {row[0] for row in iteration_lanes("c", gpu, [], both).rows} == {"GPU 0, 1"}


SHARES = ("sms_active_pct", "tensor_pct", "dram_read_pct", "dram_write_pct", "pcie_rx_pct", "pcie_tx_pct",
          "nvlink_rx_pct", "nvlink_tx_pct")  # fmt: skip


def sample(start, length, **shares):
    """A row of gpu_metric_trace of process 1."""
    return (
        dict.fromkeys(SHARES)
        | {"report": "r", "pid": 1, "device": 0, "start_ns": start, "duration_ns": length}
        | shares
    )


def test_samples_are_lanes_whose_height_is_their_share():
    gpu = [operation(2_000, 50)]
    samples = [sample(1_980 + 20 * n, 20, tensor_pct=10.0 * n, dram_read_pct=30, dram_write_pct=5) for n in range(9)]
    block = iteration_lanes("c", gpu, [], ITERATIONS, samples)
    level = next(n for n, column in enumerate(block.columns) if column.name == "level_pct")
    boxes = [(row[1], row[2], row[3], row[4], row[level]) for row in block.rows]
    assert boxes[0] == ("stream 7", 0.0, 50, "gemm", None)
    assert boxes[1:7] == [
        ("tensor cores", 20.0 * n, 20, f"tensor cores {10 * n + 10} %", 10 * n + 10) for n in range(6)
    ]
    assert set(boxes[7:]) == {("DRAM", 20.0 * n, 20, "DRAM 35 %", 35) for n in range(6)}
    assert block.level == ("level_pct",)
    assert iteration_lanes("c", gpu, [], ITERATIONS).level == ()


def test_the_threads_that_run_longest_are_lanes_above_the_ranges():
    gpu = [operation(2_000, 50)]
    threads = [
        {"report": "r", "pid": pid, "tid": tid, "name": f"t{tid}", "start_ns": 2_000 + 10 * tid, "duration_ns": length}
        for pid, tid, length in ((1, 1, 10), (1, 2, 60), (1, 3, 50), (1, 4, 40), (1, 5, 30), (1, 6, 0.5), (9, 7, 90))
    ]
    block = iteration_lanes("c", gpu, [], ITERATIONS, (), threads)
    assert [row[1] for row in block.rows] == ["CPU, t2 2", "CPU, t3 3", "CPU, t4 4", "CPU, t5 5", "stream 7"]
    assert block.rows[0][2:6] == (20, 60, "t2 on a CPU", "CPU")


def test_samples_of_a_long_iteration_become_a_hundred_means():
    gpu, steps = [operation(0, 100_000)], [iteration(0, 0, 100_000)]
    block = iteration_lanes("c", gpu, [], steps, [sample(10 * n, 10, tensor_pct=n % 2 * 100) for n in range(10_000)])
    means = [row for row in block.rows if row[1] == "tensor cores"]
    assert len(means) == 100
    assert {(row[3], row[4], row[-1]) for row in means} == {(1_000, "tensor cores 50 %", 50)}
    assert len([row for row in block.unmerged if row[1] == "tensor cores"]) == 2_000


def test_neighbours_that_cannot_be_seen_become_one_box():
    gpu = [operation(2_000 + n, 0.5, stream=n % 3, name=f"gemm {n}") for n in range(100)]
    block = iteration_lanes("c", gpu, [], ITERATIONS, boxes=10)
    assert len(block.rows) <= 10
    assert sum(row[6] for row in block.rows) == 100
    assert "short operations, the longest gemm" in block.rows[0][4]
    assert [row[4] for row in block.unmerged if row[1] == "stream 1"] == [f"gemm {n}" for n in range(1, 100, 3)]


def test_boxes_for_zooming_are_merged_only_where_they_are_too_many(monkeypatch):
    gpu = [operation(2_000 + 12 * (n // 3) + 2 * (n % 3), 1, name=f"gemm {n}") for n in range(30)]
    assert iteration_lanes("c", gpu, [], ITERATIONS).unmerged == (), "the picture has all"
    monkeypatch.setattr("nsw.analysis.iteration_lanes.ZOOMED", 12)
    block = iteration_lanes("c", gpu, [], ITERATIONS, boxes=2)
    assert len(block.rows) <= 2 < len(block.unmerged) <= 12
    assert sum(row[6] for row in block.unmerged) == 30
