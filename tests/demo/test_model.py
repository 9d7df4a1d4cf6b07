"""`nsw model` on a campaign with three values of a parameter, each measured once."""

import json


def test_three_values_of_one_run_each_predict_nothing_and_what_to_measure_is_printed(demo):
    done = demo.nsw("model", "--over", "gpus", exits=0)
    assert "3 values of gpus do not determine a law (5 may): each was measured once" in done.stdout
    assert "measure 5 values of gpus or more, with `repeats: 3` in each pass" in done.stdout


def test_parts_of_an_iteration_and_kernel_classes_have_rows_of_each_series(demo):
    rows = json.loads(demo.nsw("model", "--over", "batch", "--json").stdout)["rows"]
    four = {row["name"]: row for row in rows if row["param_gpus"] == 4}
    assert {"images_per_sec", "iteration", "computing", "communication alone", "idle", "NCCL", "GEMM"} <= set(four)
    assert four["iteration"]["first"] < four["iteration"]["last"]
    assert four["iteration"]["value"] is None
    assert "batch=512 is beyond what was measured (8 to 128)" in four["iteration"]["missing"]


def test_between_measured_values_a_law_predicts(demo):
    rows = json.loads(demo.nsw("model", "--over", "batch", "--at", "64", "--json").stdout)["rows"]
    figure = next(row for row in rows if row["name"] == "images_per_sec" and row["param_gpus"] == 4)
    assert 25_702 < figure["value"] < 50_111


def test_a_page_has_the_figure_of_a_proposal_and_it_is_drawn_alone(demo, tmp_path):
    page, figure = tmp_path / "page.html", tmp_path / "figure.svg"
    assert demo.nsw("report", "--proposal", "-o", str(page)).returncode == 0
    text = page.read_text()
    assert "efficiency of weak scaling, images_per_sec" in text
    assert "GPU-hours for a million images" in text
    assert demo.nsw("report", "--proposal", "-o", str(figure)).returncode == 0
    drawn = figure.read_text()
    assert drawn.startswith("<svg")
    assert drawn.count("data-row") == 12
