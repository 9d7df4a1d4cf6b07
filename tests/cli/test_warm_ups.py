"""Warm-up runs go before the repeats: in the plan and its price, in the ledger, in no table and no statistics."""

import json

APP = "{command: 'echo f={{ n }}', figures: {f: {regex: 'f=(.*)', unit: s}}}"


def test_warm_ups_are_planned_and_priced(nsw, recipe):
    recipe(APP, "matrix: {n: [1, 2]}\nrepeats: 2\nwarmup: 1\n")
    said = nsw("plan", "r.yaml", "-s", "here")
    assert "2 cases, 6 runs (2 of them to warm up)" in said.out
    assert "they may run on different nodes, or at the same time" in said.out  # max_in_flight is 2 here
    data = json.loads(nsw("plan", "r.yaml", "-s", "here", "--json").out)
    assert [(r["id"], r["repeat"]) for r in data["runs"]][:3] == [
        ("n-1.baseline.w1", 0), ("n-1.baseline.r1", 1), ("n-1.baseline.r2", 2),
    ]  # fmt: skip
    without = json.loads(nsw("plan", "r.yaml", "-s", "here", "--json", "--set", "warmup=0").out)
    assert data["node_hours_at_most"] == 1.5 * without["node_hours_at_most"]
    alone = nsw("plan", "r.yaml", "-s", "local")
    assert "different nodes" not in alone.out


def test_a_pass_says_how_many_it_wants(nsw, recipe, home):
    recipe(APP, "matrix: {n: [1]}\nwarmup: 2\n")
    text = (home / "r.yaml").read_text()
    (home / "r.yaml").write_text(text.replace("[baseline]", "[baseline, {baseline: {name: cold, warmup: 0}}]"))
    runs = json.loads(nsw("plan", "r.yaml", "-s", "here", "--json").out)["runs"]
    assert [r["id"] for r in runs] == ["n-1.baseline.w1", "n-1.baseline.w2", "n-1.baseline.r1", "n-1.cold.r1"]


def test_what_they_print_is_in_no_statistics(nsw, recipe, home):
    # a first run prints 100, later ones 2: only the warm-up is the first
    command = "mkdir first 2>/dev/null && echo f=100 || echo f=2".replace("first", str(home / "first"))
    recipe(APP.replace("echo f={{ n }}", command), "warmup: 1\nrepeats: 2\n")
    nsw("run", "r.yaml", "-s", "local", exits=0)
    runs = json.loads(nsw("status", "--json").out)["runs"]
    assert {r["id"]: (r["state"], r["reading"], r["repeat"]) for r in runs} == {
        "case.baseline.w1": ("done", "read", 0),
        "case.baseline.r1": ("done", "read", 1),
        "case.baseline.r2": ("done", "read", 2),
    }
    assert "f=100" in nsw("logs", "w1").out
    (row,) = json.loads(nsw("summarize", "--table", "figures", "--json").out)["rows"]
    assert (row["median"], row["runs"]) == (2, 2)


def test_a_recipe_without_passes_runs_the_program_alone(nsw, recipe, home):
    recipe(APP, "matrix: {n: [1]}\n")
    (home / "r.yaml").write_text((home / "r.yaml").read_text().replace("passes: [baseline]\n", ""))
    runs = json.loads(nsw("plan", "r.yaml", "-s", "here", "--json").out)["runs"]
    assert [(r["id"], r["tool"]) for r in runs] == [("n-1.baseline.r1", None)]


def test_an_outlier_is_named_in_the_answer_the_summary_and_the_problems(nsw, recipe, home):
    # the third of four runs prints 5 times as much
    command = f"echo x >>{home}/n; if [ $(wc -l <{home}/n) = 3 ]; then echo f=50; else echo f=10; fi"
    recipe(APP.replace("echo f={{ n }}", command), "repeats: 4\n")
    what = "f is 50.00 s, 5 times the median of 4 repeats (10.00 s)"
    said = nsw("run", "r.yaml", "-s", "local", exits=0)
    assert f"outlier: case.baseline.r3: {what}" in said.out
    assert f"outlier: case.baseline.r3: {what}" in nsw("summarize").out
    (one,) = json.loads(nsw("summarize", "--json").out)["outliers"]
    assert (one["run"], one["factor"]) == ("case.baseline.r3", 5)
    assert f"warning: case.baseline.r3: an outlier: {what}" in nsw("problems").out
