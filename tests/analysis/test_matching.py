"""Launches that a timeline chose against those that the counters pass measured."""

from nsw.analysis.guided import (
    LaunchRequest,
    choose_kernel_launches,
    chosen_launch_rows,
    match_chosen_launches,
    unmatched_launch_sentences,
)


def traced(name, grid, duration=100):
    return {"kind": "kernel", "name": f"void {name}<float>(float *)", "short_name": name, "duration_ns": duration,
            "start_ns": 0, "mangled_name": f"_Z{name}", "grid_x": grid, "grid_y": 1, "grid_z": 1, "block_x": 128,
            "block_y": 1, "block_z": 1}  # fmt: skip


TRACE = [row | {"correlation": n} for n, row in enumerate([traced("gemm", 8), traced("relu", 2)] * 6)]
CHOSEN = chosen_launch_rows(
    choose_kernel_launches(TRACE, LaunchRequest(cover=1.0, sample=2), "ncu").picked, "case.timeline.r1"
)


def measured(*some, **more):
    return [
        {"kernel": f"void {name}<float>(float*)", "short_name": name, "mangled_name": None, "launch_id": n,
         "grid": f"({grid}, 1, 1)", "block_size": "(128, 1, 1)", **more}
        for n, (name, grid) in enumerate(some)
    ]  # fmt: skip


def states(rows):
    return [(row["short_name"], row.get("ordinal"), row["state"], row["launch_id"]) for row in rows]


def test_each_chosen_launch_is_found_by_its_kernel_and_its_place():
    ordinals = sorted({row["ordinal"] for row in CHOSEN})
    assert len(ordinals) == 2
    rows = match_chosen_launches(CHOSEN, measured(("gemm", 8), ("relu", 2), ("gemm", 8), ("relu", 2)))
    assert states(rows) == [("gemm", ordinals[0], "measured", 0), ("gemm", ordinals[1], "measured", 2),
                            ("relu", ordinals[0], "measured", 1), ("relu", ordinals[1], "measured", 3)]  # fmt: skip
    assert unmatched_launch_sentences(rows) == []
    assert {row["duration_ns"] for row in rows} == {100}  # of the timeline
    assert {row["chosen_from"] for row in rows} == {"case.timeline.r1"}


def test_launches_that_did_not_happen_are_reported():
    rows = match_chosen_launches(CHOSEN, measured(("gemm", 8), ("relu", 2), ("gemm", 8)))
    ((text, fix),) = unmatched_launch_sentences(rows)
    assert (
        text
        == "launches moved between the passes: 1 of 4 launches chosen from case.timeline.r1 were not measured: 1 of relu"
    )
    assert "launches: {skip: 10, count: 3}" in fix


def test_a_launch_of_another_shape_is_other_work():
    rows = match_chosen_launches(CHOSEN, measured(("gemm", 8), ("relu", 2), ("gemm", 16), ("relu", 2)))
    assert [row["state"] for row in rows] == ["measured", "other shape", "measured", "measured"]
    ((text, _),) = unmatched_launch_sentences(rows)
    ordinal = max(row["ordinal"] for row in CHOSEN)
    assert f"such as launch {ordinal} of gemm: (16, 1, 1) x (128, 1, 1) instead of (8, 1, 1) x (128, 1, 1)" in text


def test_what_came_unasked_is_reported():
    rows = match_chosen_launches(
        CHOSEN, measured(("gemm", 8), ("relu", 2), ("gemm", 8), ("relu", 2), ("relu", 2), ("tanh", 2))
    )
    assert [row["state"] for row in rows].count("unexpected") == 2
    ((text, _),) = unmatched_launch_sentences(rows)
    assert text.endswith("2 launches were measured that the timeline did not choose: 1 of relu, 1 of tanh")


def test_the_first_rank_is_compared_and_an_unknown_shape_matches():
    other = measured(("tanh", 1), rank=1)
    mine = measured(("gemm", 8), ("relu", 2), ("gemm", 8), ("relu", 2), rank=0)
    assert unmatched_launch_sentences(match_chosen_launches(CHOSEN, [*other, *mine])) == []
    unknown = [row | {"grid": None, "block_size": None} for row in CHOSEN]
    assert {row["state"] for row in match_chosen_launches(unknown, mine)} == {"measured"}


def test_reading_again_matches_again():
    once = match_chosen_launches(CHOSEN, measured(("gemm", 8), ("tanh", 1)))
    again = match_chosen_launches(once, measured(("gemm", 8), ("relu", 2), ("gemm", 8), ("relu", 2)))
    assert [row["state"] for row in again] == ["measured"] * 4
