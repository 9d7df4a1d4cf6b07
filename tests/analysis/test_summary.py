"""The summary of a campaign: what the recipe asked for, and of chosen cases only what is theirs."""

from nsw.analysis.summary import CampaignData, ReportRequest, summarize

from .made import figure_row, gpu_row, make_run

SPEEDS = {1: 100.0, 2: 60.0, 4: 30.0}


def summary(**asked):
    """A figure in images/s of three cases, of which the last two copy much."""
    runs = [make_run(f"r{n}", f"n-{n}", params={"n": n}) for n in SPEEDS]
    tables = {
        "figures": [figure_row(value, run=f"r{n}", unit="images/s") for n, value in SPEEDS.items()],
        "gpu_summary": [gpu_row("k", 60, run=f"r{n}") for n in SPEEDS]
        + [gpu_row("HtoD", 90, kind="memcpy", run=f"r{n}") for n in (2, 4)],
        "functions": [{"run": "r1", "name": "f", "own_ns": 5, "calls": 1}],
    }
    return summarize(CampaignData("c", "s", "note", runs, tables, ["one is absent"]), ReportRequest(**asked))


def test_what_is_better_is_what_the_recipe_says():
    found = summary(axis="n", figure="speed", kind="strong", higher_is_better=False)
    assert [p.speedup for p in found.curve.points] == [1, 100 / 60, 100 / 30]
    found = summary(compare="n", baseline=1, figure="speed", higher_is_better=False)
    assert [v.ratio for v in found.variants] == [1, 100 / 60, 100 / 30]
    assert (found.compared, found.compared_to, found.curve) == ("n", 1, None)


def test_nothing_is_compared_that_was_not_asked_for():
    found = summary()
    assert (found.curve, found.variants, found.missing, found.note) == (None, (), ("one is absent",), "note")
    assert [case.id for case in found.cases] == ["n-1", "n-2", "n-4"]
    assert summary(compare="n").variants == ()


def test_of_chosen_cases_only_what_is_theirs_is_shown_with_the_ratios_of_the_whole():
    whole = summary(axis="n", figure="speed", compare="n", baseline=1)
    assert [f.cases for f in whole.findings] == [("n-2", "n-4")]
    assert [f.cases for f in whole.only({"n-4"}).findings] == [("n-4",)]
    assert [case.id for case in whole.only({"n-4"}).context] == ["n-1"]
    part = whole.only({"n-2", "n-4"})
    assert [f.cases for f in part.findings] == [("n-2", "n-4")]
    assert set(part.hits) == {"n-2", "n-4"}
    part = part.only({"n-4"})
    assert [case.id for case in part.cases] == ["n-4"]
    assert [(p.at, p.speedup) for p in part.curve.points] == [(1, 1.0), (4, 0.3)]  # beside its baseline
    assert [(v.variant, v.ratio) for v in part.variants] == [(1, 1.0), (4, 0.3)]
    assert summary().only({"n-4"}).curve is None
