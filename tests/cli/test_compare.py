"""`nsw compare`, `gate`, `baseline`, and notes: two campaigns that were really run, beside each other."""

from __future__ import annotations

import json
import re
import shlex
from xml.etree import ElementTree as ET

import pytest


@pytest.fixture
def pair(nsw, recipe):
    """Two campaigns of two cases whose figure is 30 % higher in the second, each with 7 repeats."""
    one = recipe(
        "{command: 'echo f=$(({{ n }} * {{ x }}))', figures: {f: {regex: 'f=(.*)', unit: images/s}}}",
        "matrix: {n: [100, 200], x: [10]}\nrepeats: 7\nreport: {gate: {f: -2%}}\n",
    )
    assert nsw("run", one, "-s", "here", "--note", "before the fix").code == 0
    assert nsw("run", one, "-s", "here", "--set", "x=13").code == 0
    return [campaign["campaign"] for campaign in json.loads(nsw("ls", "--json").out)["campaigns"]]


def test_two_campaigns_are_compared_case_by_case(nsw, pair):
    said = nsw("compare", *pair, exits=0)
    assert "B beside A, 2 cases: 2 faster (30 %)" in said.out
    assert f"A: {pair[0]} (before the fix), B: {pair[1]}" in said.out
    assert "n=100" in said.out
    rows = json.loads(nsw("compare", *pair, "--json").out)["rows"]
    assert [row["verdict"] for row in rows] == ["faster", "faster"]
    assert rows[0]["gain_pct"] == pytest.approx(30)
    assert rows[0]["paired"] is False
    assert nsw("compare", f"{pair[0]}:n=100", f"{pair[1]}:n=200", "-f", "csv").out.count("\n") == 2


def test_a_case_that_one_older_campaign_has_is_found_and_of_several_the_hint_is_complete(nsw, recipe, pair):
    other = recipe("{command: 'echo {{ m }}'}", "matrix: {m: [1]}\n", name="other.yaml")
    assert nsw("run", other, "-s", "here").code == 0
    said = nsw("compare", "n-100_x-10", "n-200_x-10")
    assert f"A: n-100_x-10, B: n-200_x-10 of {pair[0]}" in said.out, said.err
    beside = nsw("compare", pair[0], "n-100_x-10", "n-200_x-10")  # as people type it
    assert f"A: n-100_x-10, B: n-200_x-10 of {pair[0]}" in beside.out, beside.err
    assert "CAMPAIGN CASE CASE" in nsw("compare", "a", "b", "c", "d").err
    assert nsw("run", other, "-s", "here").code == 0
    assert nsw("run", recipe("{command: 'true'}"), "-s", "here").code == 0
    refused = nsw("compare", "m-1", "m-1", exits=2)
    assert re.search(r"hint: 2 campaigns have this case: `t-\S+:m-1` is that of the newest", refused.err)


def test_two_reports_of_counters_are_compared_by_their_kernels(nsw, home):
    head = '"ID","Kernel Name","gpu__time_duration.sum","launch__grid_size"\n"","","ns",""\n'
    for name, ns in (("before", 800_000), ("after", 100_000)):
        kernel = f"void charge<{ns}>(const float *, int)"  # its parameters change, which is no other kernel
        (home / f"{name}.csv").write_text(head + f'"0","{kernel}","{ns}","4096"\n')
    said = nsw("compare", "before.csv", "after.csv")
    assert "GPU time: 8x faster (5.68x to 11x if runs scatter by 10 %), 1 run a side" in said.out
    assert "charge takes 700.0 us less" in said.out
    assert (
        "The difference is that of the GPU's work, without idle time: neither side has a timeline with iterations."
        in said.out
    )
    assert (
        "between: where the change lies if runs scatter by 10 %, which is assumed of 1 run a side. Repeats measure it."
        in said.out
    )
    assert re.search(r" 1 +probably faster\n", said.out)
    (home / "same.csv").write_text((home / "before.csv").read_text())
    assert re.search(r" 1 +cannot tell\n", same := nsw("compare", "before.csv", "same.csv").out)
    assert "cannot be told (1 equal in these runs)" in same or "equal in these runs, 1 run a side" in same
    assert "the same" not in same
    assert "by the scatter of the runs" not in said.out
    by_metric = nsw("compare", "before.csv", "after.csv", "--by", "metric").out
    assert "metrics of charge" in by_metric
    assert "5.68x to 11x" in by_metric
    (home / "alike.csv").write_text(head + '"0","void charge(const float *, int)","820000","4096"\n')
    said = nsw("compare", "before.csv", "alike.csv")
    assert "cannot tell" in said.out
    assert "One run a side decides nothing; between these two: The GPU's work takes 20.00 us more" in said.out


def test_metrics_have_units_and_begin_with_the_kernel_that_takes_most_time(nsw, home):
    """The hit rate of the short kernel changes 100 times, that of the long one by 60 points."""
    columns = ("ID", "Kernel Name", "gpu__time_duration.sum", "lts__t_sector_hit_rate.pct", "dram__bytes.sum")
    sides = {"before": (("long", 8_000_000, 10, 1 << 30), ("short", 2_000, 0.01, 1024)),
             "after": (("long", 8_100_000, 70, 1 << 30), ("short", 20_000, 1, 1024))}  # fmt: skip
    for side, kernels in sides.items():
        lines = [
            columns,
            ("", "", "ns", "%", "byte"),
            *((at, f"void {name}(int)", *rest) for at, (name, *rest) in enumerate(kernels)),
        ]
        (home / f"{side}.csv").write_text("".join(",".join(f'"{cell}"' for cell in line) + "\n" for line in lines))
    screen = nsw("compare", "before.csv", "after.csv", "--by", "metric").out
    table = [line.split() for line in screen.splitlines() if line.startswith(" ")]
    assert table[0] == ["kernel", "metric", "unit", "A", "B", "change", "between", "runs", "verdict"]
    firsts = [row[:5] for row in table if row[0] in {"long", "short"}]
    assert firsts == [["long", "duration", "ms", "8.00", "8.10"], ["short", "duration", "us", "2.00", "20.00"]]
    assert "Order: the kernel with most GPU time first" in screen
    rows = json.loads(nsw("compare", "before.csv", "after.csv", "--by", "metric", "--json").out)["rows"]
    assert [row["what"].split(" of ")[1] for row in rows] == ["long"] * (len(rows) // 2) + ["short"] * (len(rows) // 2)
    assert [row["what"] for row in rows[:2]] == ["duration of long", "l2_tex_hit_rate of long"]
    assert rows[0]["unit"] == "ns"


def test_metrics_are_gone_new_or_the_same_where_nothing_scatters(nsw, home):
    names = {  # with the values of both sides and the verdict
        "gpu__time_duration.sum": (800_000, 790_000, "cannot tell"),
        "smsp__sass_thread_inst_executed_op_fp64_pred_on.sum": (4_000_000, 0, "gone"),
        "smsp__sass_thread_inst_executed_op_fp16_pred_on.sum": (0, 4_000_000, "new"),
        "smsp__sass_thread_inst_executed_op_memory_pred_on.sum": (0, 0, "same"),
        "smsp__sass_thread_inst_executed_op_integer_pred_on.sum": (1_000_000, 970_000, "lower"),
        "lts__t_sector_hit_rate.pct": (50, 50, "same"),
    }
    units = {"gpu__time_duration.sum": "ns", "lts__t_sector_hit_rate.pct": "%"}
    lines = [["ID", "Kernel Name", *names], ["", "", *(units.get(name, "inst") for name in names)]]
    for at, side in enumerate(("before", "after")):
        rows = [*lines, ["0", "void charge(int)", *(str(values[at]) for values in names.values())]]
        (home / f"{side}.csv").write_text("".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in rows))
    rows = json.loads(nsw("compare", "before.csv", "after.csv", "--by", "metric", "--json").out)["rows"]
    assert sorted(row["verdict"] for row in rows) == sorted(verdict for *_, verdict in names.values())
    assert {row["what"]: row["verdict"] for row in rows[1:3]} == {
        "inst_fp_64 of charge": "gone", "inst_fp_16 of charge": "new",
    }  # fmt: skip
    screen = nsw("compare", "before.csv", "after.csv", "--by", "metric").out
    assert "6 metrics: 1 lower (3 %), 1 gone, 1 new, 2 the same, 1 cannot be told" in screen
    assert "no ratio" not in screen


def test_two_timelines_are_divided_as_two_cases_of_a_campaign_are(nsw, home):
    chosen = ("--case", "gpus=1", "--case", "batch=8,128")
    assert nsw("run", "alexnet_scaling", "-s", "demo", "--yes", *chosen).code == 0
    (folder,) = (home / "campaigns").glob("*-*")
    parts = []
    for sides in (
        [str(path) for b in (8, 128) for path in folder.glob(f"reports/gpus-1_batch-{b}.*/*.sqlite")],
        [f"{folder.name}:gpus-1_batch-{b}" for b in (8, 128)],
    ):
        blocks = json.loads(nsw("compare", *sides, "--json").out)["blocks"]
        (waterfall,) = (block for block in blocks if block["kind"] == "waterfall")
        parts.append([row[1:] for row in waterfall["rows"]])
        assert "parts" not in {block["name"] for block in blocks}
    assert parts[0] == parts[1]
    assert len(parts[0]) > 3
    for name, batch in (("a", 8), ("b", 128)):
        (report,) = folder.glob(f"reports/gpus-1_batch-{batch}.*/*.sqlite")
        report.rename(f"{name}.sqlite")
    assert "\nA: " not in nsw("compare", "a.sqlite", "b.sqlite", exits=0).out  # the headline names them


def test_a_cut_table_names_the_command_that_has_all_rows(nsw, home):
    head = '"ID","Kernel Name","gpu__time_duration.sum"\n"","","ns"\n'
    for side in ("before", "after"):
        rows = "".join(f'"{n}","void k{n}(int)","{(n + 1) * 1000}"\n' for n in range(18))
        (home / f"{side}.csv").write_text(head + rows)
    for words, command in (
        (
            ["compare", "before.csv", "after.csv", "--by", "kernel"],
            "nsw compare before.csv after.csv --by kernel --format csv",
        ),
        (["read", "before.csv"], "nsw read before.csv --table kernels"),
    ):
        screen = nsw(*words).out
        cut = re.search(rf"\((\d+) rows? more: `{re.escape(command)}`\)", screen)
        assert cut is not None, screen
        assert len(re.findall(r"^ k\d+ ", screen, re.MULTILINE)) + int(cut[1]) == 18
        complete = nsw(*shlex.split(command)[1:]).out
        assert all(re.search(rf"\bk{n}\b", complete) for n in range(18))


def test_a_gate_ends_with_its_outcome(nsw, pair):
    first, second = pair
    assert nsw("gate", first, second).code == 0  # by the recipe's rules
    failed = nsw("gate", second, first, exits=4)
    assert "Gate failed" in failed.out
    assert nsw("gate", second, first, "--rule", "f: -50%").code == 0
    assert nsw("gate", first, second, "--rule", "f: -2%", "--root", "nowhere").code == 2
    assert "| f: -2% |" in nsw("gate", second, first, "-f", "markdown").out.replace("\\", "")


def test_a_gate_is_a_short_comment_and_a_report_of_tests(nsw, pair, home):
    first, second = pair
    comment = nsw("gate", second, first, "--rule", "f: -2%", "-f", "markdown").out
    assert comment.startswith("<!-- nsw gate -->\n# Gate failed: ")
    assert len(comment.splitlines()) < 40
    assert nsw("gate", second, first, "--rule", "f: -2%", "-o", "gate.xml").code == 4
    suite = ET.parse(home / "gate.xml").getroot()
    assert (len(suite), suite.get("tests"), suite.get("failures"), suite.get("errors")) == (2, "2", "2", "0")


def test_a_gate_whose_rule_names_no_figure_is_a_mistake_and_never_undecided(nsw, pair):
    for words in (["--rule", "ff: -2%"], ["--rule", "f: -2%", "--rule", "ff: +2%"], ["--rule", "ff: -2% or undecided"]):
        done = nsw("gate", *pair, *words, exits=2)
        assert "neither side has a figure 'ff'" in done.err
        assert "there are: f" in done.err
    done = nsw("gate", *pair, "--rule", "images_per_sec: -2%", exits=2)
    assert "there are: f" in done.err


def test_a_gate_without_a_rule_is_a_mistake_and_never_undecided(nsw, recipe):
    one = recipe("{command: 'echo f=1', figures: {f: {regex: 'f=(.*)', unit: s}}}")
    assert nsw("run", one, "-s", "here").code == nsw("run", one, "-s", "here").code == 0
    campaigns = [campaign["campaign"] for campaign in json.loads(nsw("ls", "--json").out)["campaigns"]]
    done = nsw("gate", *campaigns, exits=2)
    assert "the gate has no rule" in done.err
    assert "--rule 'images_per_sec: -2%'" in done.err


def test_a_gate_of_a_figure_that_no_run_printed_is_undecided(nsw, recipe):
    figures = "{f: {regex: 'f=(.*)', unit: s, required: false}}"
    one = recipe(f"{{command: 'echo no', figures: {figures}}}", "report: {gate: {f: -2%}}\n")
    assert nsw("run", one, "-s", "here").code == nsw("run", one, "-s", "here").code == 0
    campaigns = [campaign["campaign"] for campaign in json.loads(nsw("ls", "--json").out)["campaigns"]]
    assert nsw("gate", *campaigns).code == 5


def test_a_recipe_whose_gate_names_no_figure_of_it_is_refused(nsw, recipe):
    one = recipe("{command: 'echo f=1', figures: {speed: {regex: 'f=(.*)', unit: s}}}", "report: {gate: {sped: -2%}}\n")
    done = nsw("plan", one, "-s", "here", exits=2)
    assert "did you mean 'speed'?" in done.err


def test_a_comparison_and_a_gate_are_pages_too(nsw, pair, home):
    for words, says in ((["compare"], "2 faster (30 %)"), (["gate"], "Gate passed")):
        assert nsw(*words, *pair, "-o", "page.html").code == 0
        page = (home / "page.html").read_text()
        assert page.startswith("<!DOCTYPE html>")
        assert says in page
        assert page.count('<th scope="col">') >= 2  # the conditions of both sides
        assert f"nsw {words[0]} {pair[0]} {pair[1]}" in page


def test_a_baseline_is_a_name_for_a_campaign(nsw, pair):
    first, second = pair
    assert nsw("baseline", "set", "main", first).code == 0
    assert nsw("gate", "main", second).code == 0
    assert nsw("compare", "main:n=100", f"{second}:n=100").code == 0
    assert first in nsw("baseline", "ls").out
    assert nsw("baseline", "rm", "main").code == 0
    assert nsw("baseline", "rm", "main").code == 2
    assert nsw("baseline", "set", "../x", first).code == 2
    assert nsw("gate", "main", second).code == 2


def test_campaigns_are_listed_by_age_with_note_and_figure(nsw, pair):
    said = nsw("ls", "--figure", "f")
    assert "before the fix" in said.out
    assert "1,000.0 .. 2,000.0" in said.out
    assert nsw("ls", "--since", "1h").out.count("images") == 0
    (first, second) = json.loads(nsw("ls", "--json", "--since", "1h", "--figure", "f").out)["campaigns"]
    assert sorted(first["medians"].values()) == [1000.0, 2000.0]
    assert sorted(second["medians"].values()) == [1300.0, 2600.0]
    assert nsw("run", "r.yaml", "-s", "here", "--into", pair[0], "--note", "x").code == 2


def test_noise_is_measured_and_kept_for_the_verdicts_of_few_pairs(nsw, home, recipe, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (home / "p.sh").write_text("echo f=$((100000 + RANDOM % 400))")
    one = recipe(
        "{command: bash p.sh, files: [p.sh], figures: {f: {regex: 'f=(.*)', unit: images/s}}}",
    )
    said = nsw("noise", one, "-s", "here", "--pairs", "4", exits=0)
    assert "f: pairs scatter by 0." in said.err
    assert nsw("run", one, "-s", "here", "--set", "app.command=bash p.sh", "--set", "repeats=3").code == 0
    assert nsw("noise", one, "-s", "here", "--pairs", "2").code == 2
    rows = json.loads(nsw("compare", "--json", json.loads(nsw("ls", "--json").out)["campaigns"][0]["campaign"]).out)
    assert rows["rows"][0]["noise_floor"] == "measured"
    assert rows["rows"][0]["paired"] is True
    assert rows["programs"] is None
    first = json.loads(nsw("ls", "--json").out)["campaigns"][0]["campaign"]
    verdict = next(line for line in nsw("compare", first).out.splitlines() if line.startswith("after beside before"))
    assert verdict in nsw("summarize", first).out.splitlines()
    assert "nothing beyond the scatter" not in nsw("summarize", first, "--full").out
    assert nsw("report", first, "-o", "p.html").code == 0
    page = (home / "p.html").read_text()
    assert "<h1>after beside before: f: " in page
    assert "Programs: " not in page


def test_a_program_that_was_changed_is_compared_with_what_the_same_runs_printed_before(nsw, home, recipe):
    (home / "p.sh").write_text("echo f=100")
    one = recipe("{command: bash p.sh, files: [p.sh], figures: {f: {regex: 'f=(.*)', unit: images/s}}}", "repeats: 7\n")
    assert nsw("run", one, "-s", "here").code == 0
    assert nsw("compare").code == 2
    (home / "p.sh").write_text("echo f=130")
    campaign = json.loads(nsw("ls", "--json").out)["campaigns"][0]["campaign"]
    assert nsw("run", one, "-s", "here", "--into", campaign).code == 0
    said = nsw("compare")
    assert "now beside earlier: f: 30 % faster" in said.out
    assert "Programs: p.sh changed" in said.out
    assert nsw("reread").code == 0
    assert nsw("compare").out == said.out


def test_rows_are_in_the_order_of_the_recipe_whatever_order_the_blocks_ran_in(nsw, recipe):
    one = recipe(
        "{command: 'echo f={{ n }}', figures: {f: {regex: 'f=(.*)', unit: s}}}",
        "matrix: {n: [6, 1, 5, 2, 4, 3]}\nrepeats: 2\ninterleave: true\n",
    )
    assert nsw("run", one, "-s", "here").code == 0
    wanted = [f"n-{n}" for n in (6, 1, 5, 2, 4, 3)]
    ran = [run["case"] for run in json.loads(nsw("status", "--json").out)["runs"]]
    assert list(dict.fromkeys(ran)) != wanted
    assert [case["id"] for case in json.loads(nsw("summarize", "--json").out)["cases"]] == wanted


def test_the_verdict_on_a_program_of_the_cpu_has_the_command_that_compares_functions(nsw, home, recipe):
    (home / "p.py").write_text("import time, sys\nt = float(sys.argv[1])\ntime.sleep(t)\nprint(f'f={t}')\n")
    one = recipe(
        "{command: 'python3 p.py {{ t }}', files: [p.py], figures: {f: {regex: 'f=(.*)', unit: s}}}",
        "matrix: {t: [0.01]}\nrepeats: 3\n",
    )
    text = (home / one).read_text()
    (home / one).write_text(text.replace("[baseline]", "[baseline: {}, host: {tool: cprofile}]"))
    assert nsw("run", one, "-s", "here").code == 0
    assert nsw("run", one, "-s", "here", "--set", "matrix.t=[0.5]").code == 0
    campaigns = [campaign["campaign"] for campaign in json.loads(nsw("ls", "--json").out)["campaigns"]]
    shown = nsw("compare", *campaigns).out
    assert "x slower" in shown
    assert "in `<built-in method time.sleep>` (cprofile)" in shown
    assert f"`nsw compare {' '.join(campaigns)} --by function` compares every function" in shown
