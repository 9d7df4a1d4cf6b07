"""What was sampled beside a program: read, said in the answer, and what is not compared because of it."""

import gzip
import math
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsw.analysis.certainty import Floor
from nsw.analysis.compared_screen import comparison_blocks
from nsw.analysis.conditions import condition_blocks, incomparable_reason
from nsw.analysis.gate import Outcome, judge_rules
from nsw.analysis.sides import Side, compare_sides
from nsw.analysis.summary import CampaignData, ReportRequest, summarize
from nsw.campaign.compare import compare
from nsw.readers.conditions import condition_rows, energy_figure_rows, energy_with_error_joules
from nsw.recipe.units import parse_tolerance
from nsw.tables.schema import TABLES

from .made import KERNEL

RECORDED = Path(__file__).parents[1] / "fixtures" / "conditions"

# of one H100 (driver 580.159.04) sampled ten times a second: when NVML's own counter of energy was read, and its joules
COUNTED = {
    "steady": (1795878801.830, 1795878834.829, 21334.7),  # matrix products without a pause
    "variable": (1795878834.858, 1795878863.403, 13319.7),  # with pauses of 0.1 to 0.9 s
}


def sampled(tmp_path: Path, *, load: str = "steady", every: int = 1, text: str | None = None) -> Path:
    """A file as the job leaves it: rows of the recording, each so-manieth."""
    head, *rows = gzip.decompress((RECORDED / f"h100-{load}.csv.gz").read_bytes()).decode().splitlines()
    file = tmp_path / "conditions.txt"
    file.write_text("\n".join(["node=n1", head, rows[0], head, *rows[1::every], text or ""]))
    return file


@pytest.mark.parametrize("load", COUNTED)
@pytest.mark.parametrize("every", [1, 2])
def test_the_energy_is_within_one_percent_of_the_gpus_own_counter(load, every, tmp_path):
    start, end, joules = COUNTED[load]
    (row,) = condition_rows(sampled(tmp_path, load=load, every=every), start_s=start, end_s=end)
    assert row["energy_j"] == pytest.approx(joules, rel=0.01)
    assert 0 < row["energy_error_j"] < 0.03 * joules
    assert row["missing"] is None


def test_a_gpu_under_its_power_limit_is_described(tmp_path):
    (row,) = condition_rows(sampled(tmp_path), start_s=None, end_s=None)
    assert (row["host"], row["gpu"], row["sm_mhz"]) == ("n1", "GPU-5285cf6b-5b5f-7e9a-657a-6d5f982c4a79", 1365)
    assert (row["power_limited_pct"], row["heat_limited_pct"], row["memory_before_mib"]) == (100, 0, 1103)
    assert {*row} <= set(TABLES["conditions"].column_names)


def test_a_steady_state_of_few_samples_has_no_energy_and_the_reason(tmp_path):
    (row,) = condition_rows(sampled(tmp_path, every=10), start_s=None, end_s=None)
    assert "energy_j" not in row
    assert row["missing"] == "27 samples of the GPU at work, and its energy needs 50"
    assert energy_figure_rows([row], []) == []


def test_a_node_without_gpus_has_its_load_and_a_line_that_is_cut_off_is_passed_over(tmp_path):
    file = tmp_path / "conditions.txt"
    stat = "host,{}.5,7.00 3 2 9/300 17,{} 0 {} {} 0 0 0 {},2000000 2200000"
    file.write_text(
        "\n".join(["node=n1", stat.format(10, 0, 0, 0, 0), stat.format(20, 500, 250, 1200, 50), "host,30.5,7.0"])
    )
    (row,) = condition_rows(file, start_s=1.0, end_s=2.0)
    assert (row["load_before"], row["cores"], row["cpu_busy_pct"], row["steal_pct"]) == (7, 2, 40, 2.5)
    assert (row["cpu_mhz"], row["missing"]) == (2100, "no GPU was sampled: nvidia-smi is not there")


def test_what_nvidia_smi_says_of_its_failure_is_the_reason(tmp_path):
    file = tmp_path / "conditions.txt"
    file.write_text("node=n1\nNVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n")
    (row,) = condition_rows(file, start_s=None, end_s=None)
    assert row["missing"].startswith("no GPU was sampled: NVIDIA-SMI has failed")


# --- the arithmetic of energy ---------------------------------------------------------------------------------------

POWERS = st.lists(st.floats(0, 1500), min_size=2, max_size=60)


@given(POWERS, st.floats(0.05, 2))
def test_energy_lies_between_the_least_and_the_most_power_times_the_time(watts, interval):
    times = [number * interval for number in range(len(watts))]
    joules, error = energy_with_error_joules(times, watts, start_s=0, end_s=times[-1])
    assert min(watts) * times[-1] - 1e-6 <= joules <= max(watts) * times[-1] + 1e-6
    assert error >= 0


@given(st.floats(0, 1500), st.integers(2, 60), st.floats(-5, 5), st.floats(0.1, 50))
def test_constant_power_has_no_error_wherever_it_begins(watt, count, start, length):
    joules, error = energy_with_error_joules(range(count), [watt] * count, start_s=start, end_s=start + length)
    assert joules == pytest.approx(watt * length, abs=1e-6)
    assert error == pytest.approx(0, abs=1e-6)


@given(POWERS, st.floats(0.1, 0.9))
def test_the_energies_of_two_parts_add_up_to_that_of_both(watts, share):
    times = list(range(len(watts)))
    middle = share * times[-1]
    parts = [
        energy_with_error_joules(times, watts, start_s=a, end_s=b)[0] for a, b in ((0, middle), (middle, times[-1]))
    ]
    assert sum(parts) == pytest.approx(energy_with_error_joules(times, watts, start_s=0, end_s=times[-1])[0], abs=1e-6)


def test_power_that_swings_faster_than_the_samples_has_a_large_error():
    times = [number / 5 for number in range(100)]
    calm = energy_with_error_joules(times, [400.0] * 100, start_s=0, end_s=19.8)[1]
    swinging = energy_with_error_joules(
        times, [100.0 + 600 * (number % 2) for number in range(100)], start_s=0, end_s=19.8
    )[1]
    assert calm == 0
    assert swinging > 0.5 * 400 * 19.8


def test_energy_is_told_for_what_the_figures_count():
    rows = [{"energy_j": 1000.0, "power_w": 200.0}, {"energy_j": 3000.0, "power_w": 300.0}]
    figures = [
        {"name": "speed", "value": 250.0, "unit": "images/s"}, {"name": "step", "value": 20.0, "unit": "ms/step"},
        {"name": "loss", "value": 0.1, "unit": None}, {"name": "rate", "value": 0.0, "unit": "tokens/s"},
    ]  # fmt: skip
    energies = {
        row["name"]: (row["value"], row["unit"]) for row in energy_figure_rows(rows, figures, [{"med_ns": 4e6}])
    }
    assert energies == {
        "energy": (4000, "J"), "energy_per_image": (2, "J/image"), "energy_per_step": (10, "J/step"),
        "energy_per_iteration": (2, "J/iteration"),
    }  # fmt: skip


# --- what is said of it, and what is not compared -------------------------------------------------------------------

ALIKE = dict.fromkeys(TABLES["conditions"].column_names) | {
    "host": "n1", "gpu": "GPU-1", "sm_mhz": 1980.0, "memory_mhz": 2619.0, "memory_before_mib": 0.0,
    "busy_before_pct": 0.0, "temperature_c": 60.0, "power_limited_pct": 0.0, "heat_limited_pct": 0.0, "cores": 64,
    "load_before": 0.0, "steal_pct": 0.0, "ecc_errors": 0.0,
}  # fmt: skip
SHARED = {"memory_before_mib": 41000.0, "busy_before_pct": 97.0}
LOADED = {"load_before": 70.0}


@dataclass
class Run:
    id: str
    case_id: str = "case"
    params: dict = field(default_factory=dict)
    pass_name: str = "baseline"
    pass_kind: str = "baseline"
    repeat: int = 1
    submission: str = "s"
    seconds: float = 60.0
    state: str = "done"
    host: str | None = None
    gpus: int = 1
    tool: str | None = None


def side(name: str, speed: float, *, in_blocks: bool = False, **sampled_values) -> Side:
    runs = [Run(f"{name}.r{number}", repeat=number) for number in range(1, 7)]
    figures = [
        {"run": run.id, "name": "speed", "value": speed * (1 + run.repeat / 1000), "unit": "images/s"} for run in runs
    ]
    rows = [ALIKE | sampled_values | {"run": run.id} for run in runs]
    source = "one" if in_blocks else name
    return Side(name, source, runs, {"figures": figures, "conditions": rows}, figure="speed", in_blocks=in_blocks)


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"sm_mhz": 1410.0}, "not comparable: clocks 1,980 against 1,410 MHz"),
        ({"memory_mhz": 1593.0}, "not comparable: memory clocks 2,619 against 1,593 MHz"),
        (SHARED, "not comparable: a GPU was shared with somebody on the second side alone"),
        (LOADED, "not comparable: a host was loaded on the second side alone"),
        ({"steal_pct": 12.0}, "not comparable: a host was loaded on the second side alone"),
    ],
)
def test_a_side_that_was_disturbed_is_not_comparable_and_never_slower(other, reason):
    (row,) = compare_sides(side("A", 1000), side("B", 700, **other))
    assert (row.verdict, row.missing, row.estimate) == ("cannot tell", reason, None)


def test_sides_that_were_alike_are_compared():
    assert compare_sides(side("A", 1000), side("B", 700, sm_mhz=1950.0))[0].verdict == "slower"
    assert compare_sides(side("A", 1000, **SHARED), side("B", 700, **SHARED))[0].verdict == "slower"
    assert incomparable_reason([], [ALIKE | SHARED]) is None  # of the first side nothing is known


def test_pairs_of_one_job_are_compared_though_the_clocks_differ():
    (row,) = compare_sides(side("A", 1000, in_blocks=True), side("B", 700, in_blocks=True, sm_mhz=1410.0))
    assert row.verdict == "slower"


@pytest.mark.parametrize(("speed", "words"), [(712, "the same within"), (600, "16 % slower")])
def test_figures_of_compute_bound_sides_are_scaled_to_equal_clocks_beside_the_refusal(monkeypatch, speed, words):
    first, second = side("A", 1000), side("B", speed, sm_mhz=1410.0)
    assert compare(first, second).at_equal_clocks == ()  # without counters nobody knows what binds them
    counted = [replace(one, counters=dict, floors={"speed": Floor(0.005, 0.005, 11)}) for one in (first, second)]
    assert compare(*counted).at_equal_clocks == ()  # and these have none of any kernel
    monkeypatch.setattr("nsw.campaign.compare.is_compute_bound", lambda _: True)
    comparison = compare(*counted)
    (row,) = comparison.rows
    assert (row.verdict, row.missing) == ("cannot tell", "not comparable: clocks 1,980 against 1,410 MHz")
    (finding,) = [block for block in comparison_blocks(comparison) if block.name == "equal clocks"]
    assert f"speed at equal clocks: {words}" in finding.text
    assert "Both sides are compute-bound" in finding.text


def test_memory_clocks_that_differ_are_not_scaled(monkeypatch):
    monkeypatch.setattr("nsw.campaign.compare.is_compute_bound", lambda _: True)
    sides = [replace(side("A", 1000), counters=dict), replace(side("B", 700, memory_mhz=1593.0), counters=dict)]
    assert compare(*sides).at_equal_clocks == ()


def test_a_gate_over_unlike_clocks_is_undecided_with_the_reason():
    comparison = compare(side("A", 1000), side("B", 700, sm_mhz=1410.0), by="figure")
    (judged,) = judge_rules(comparison, {"speed": parse_tolerance("-2%")})
    assert (judged.outcome, judged.why) == (Outcome.UNDECIDED, "not comparable: clocks 1,980 against 1,410 MHz")


def blocks(*rows):
    runs = [Run(f"case.r{number}", repeat=number) for number, _ in enumerate(rows, 1)]
    tables = {"conditions": [ALIKE | row | {"run": run.id} for row, run in zip(rows, runs, strict=True)]}
    return condition_blocks(summarize(CampaignData("c", "here", None, runs, tables), ReportRequest()))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (SHARED, "41,000 MiB were in use before case.r1 began, at 97 % utilisation"),
        (LOADED, "70 processes ran on its 64 cores before the program began"),
        ({"heat_limited_pct": 34.0, "sm_mhz": 1410.0}, "heat held the clock down for 34 %"),
        ({"power_limited_pct": 92.0, "sm_mhz": 1605.0, "sm_max_mhz": 1980.0},
         "the power limit held the clock down for 92 % of the steady state (1,605 of 1,980 MHz at"),
        ({"setting_limited_pct": 100.0, "sm_mhz": 1410.0, "sm_max_mhz": 1980.0}, "a set clock held the clock"),
        ({"ecc_errors": 2.0}, "uncorrected ECC errors"),
    ],
)  # fmt: skip
def test_what_disturbed_a_run_is_said_with_its_evidence(row, words):
    table, note = blocks(row)
    assert words in note.text
    assert (table.evidence, note.evidence) == (note.evidence, table.evidence)
    assert note.evidence[0].table == "conditions"


@pytest.mark.parametrize("highest", [1980.0, None])
@pytest.mark.parametrize("limit", ["power_limited_pct", "setting_limited_pct"])
def test_a_limit_that_cost_no_speed_is_not_said(limit, highest):
    assert len(blocks({limit: 100.0, "sm_mhz": 1965.0 if highest else 1410.0, "sm_max_mhz": highest})) == 1


def test_clocks_that_differ_between_runs_are_said_and_those_near_each_other_are_not():
    assert len(blocks({}, {"sm_mhz": 1930.0})) == 1
    *_, note = blocks({}, {"sm_mhz": 1755.0, "power_limited_pct": 60.0})
    assert "1,755 MHz in case.r2 and 1,980 MHz in case.r1, under the power limit" in note.text


def test_numbers_of_energy_are_finite(tmp_path):
    (row,) = condition_rows(sampled(tmp_path, text="2026/11/28 15:13:54.87"), start_s=None, end_s=None)
    assert all(math.isfinite(value) for value in row.values() if isinstance(value, float))


@pytest.mark.parametrize(("seconds", "held"), [(1.5, 900 * 2**20), (0.5, None)])
def test_a_kernel_knows_what_its_program_held_on_the_gpu(seconds, held):
    run = Run("c.baseline.r1")
    row = dict.fromkeys(TABLES["conditions"].column_names) | {
        "run": run.id, "start_s": 0.0, "end_s": seconds, "interval_s": 0.2, "memory_before_mib": 100.0,
    }  # fmt: skip
    rows = [row | {"gpu": f"GPU-{at}", "memory_mib": 1000.0 - at} for at in range(2)]
    data = CampaignData("c", "", None, [run], {"conditions": rows}, kernels={run.case_id: (KERNEL,)})
    summary = summarize(data, ReportRequest())
    assert [kernel.program_bytes for kernel in summary.cases[0].kernels] == [held]
