"""The time limits that a plan shows are those that the batch system is asked for."""

from __future__ import annotations

import io
import re

import pytest

from nsw.campaign.planning import make_plan
from nsw.present.plan_view import plan_data, show_plan
from nsw.present.terminal import console
from nsw.schedulers.create import adapter_of

RECIPE = """nsw: 1
name: t
app: {command: ./prog}
passes: [baseline]
repeats: 3
resources: {gpus: 0, time: %ds}
"""
ABOUT = "the time of its runs plus 60 s"


def planned(tmp_path, scheduler, seconds):
    (tmp_path / "recipe.yaml").write_text(RECIPE % seconds)
    (tmp_path / "sites.yaml").write_text(f"nsw: 1\nsites:\n  s: {{scheduler: {scheduler}, scratch: /s}}\n")
    return make_plan(str(tmp_path / "recipe.yaml"), "s", [tmp_path / "sites.yaml"]).plan


def shown(plan):
    text = io.StringIO()
    show_plan(console(text), plan, [])
    return text.getvalue()


@pytest.mark.parametrize(
    ("scheduler", "seconds", "asked", "limit", "about"),
    [
        ("cobalt", 120, 300, "5 min", f"{ABOUT}, in steps of 1 min, at least 5 min)"),
        ("cobalt", 301, 420, "7 min", f"{ABOUT}, in steps of 1 min, at least 5 min)"),
        ("lsf", 130, 240, "4 min", f"{ABOUT}, in steps of 1 min)"),
        ("slurm", 130, 190, "3 min 10 s", f"{ABOUT})"),
    ],
)
def test_the_limit_and_the_cost_are_what_is_asked_for(tmp_path, scheduler, seconds, asked, limit, about):
    plan = planned(tmp_path, scheduler, seconds)
    assert plan_data(plan)["jobs"][0]["walltime_s"] == asked
    assert plan.node_hours == pytest.approx(3 * asked / 3600)
    text = shown(plan)
    assert re.search(rf" {limit} +baseline", text)
    assert about in text


@pytest.mark.parametrize(("scheduler", "line"), [("cobalt", "#COBALT -t "), ("lsf", "#BSUB -W ")])
@pytest.mark.parametrize("seconds", [1, 60, 239, 240, 241, 3600])
def test_the_line_in_the_script_says_the_same(tmp_path, scheduler, line, seconds):
    plan = planned(tmp_path, scheduler, seconds)
    (job,) = plan.jobs
    (minutes,) = [said.removeprefix(line) for said in adapter_of(scheduler).directives(job, "/s") if line in said]
    assert plan.requested_time_s(job) == 60 * int(minutes)
