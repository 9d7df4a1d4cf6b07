"""What the window of a timeline saves, as a plan says it by the reports of earlier campaigns."""

import pytest

from nsw.campaign import start
from nsw.engine.folder import CampaignFolder
from nsw.engine.tables import put_rows
from nsw.plan.model import Job, Plan, Resources, Run
from nsw.recipe.load import load_recipe_text

RECIPE = "nsw: 1\nname: n\napp: {{command: 'true'}}\npasses: [timeline: {}]\n"
RUN = Run("c.timeline.r1", "c", {}, "timeline", "timeline", "nsys", 1, ("true",), {}, Resources(), ("timeline*",))
PLAN = Plan("n", "s", ("c",), (Job("j", Resources(), ((RUN,),)),), notes=("first",))
WHOLE, FIVE, CLOCK = "{}", "{within: {nvtx: step, count: 5}}", "{after: 60s, for: 10s}"


@pytest.fixture
def campaigns(tmp_path, monkeypatch):
    """Earlier campaigns, newest first: adds one with a timeline and a report of so many bytes."""
    earlier = []
    monkeypatch.setattr(start, "earlier_campaigns", lambda *_: iter(earlier))

    def add(name, timeline, size):
        folder = CampaignFolder(tmp_path / name)
        folder.tables.mkdir(parents=True)
        folder.recipe.write_text(RECIPE.format(timeline))
        (folder.reports / RUN.id).mkdir(parents=True)
        (folder.reports / RUN.id / "timeline.nsys-rep").write_bytes(bytes(size))
        put_rows(folder, "nvtx_summary", RUN.id, [{"name": "step", "calls": 400, "style": "pushpop", "total_ns": 1.0}])
        put_rows(folder, "facts", RUN.id, [{"key": "duration_ns", "value": 600e9, "unit": "ns"}])
        earlier.insert(0, (folder, [RUN]))

    return add


def note(timeline):
    noted = start.with_window_notes(PLAN, load_recipe_text(RECIPE.format(timeline)).recipe, None)
    assert noted.notes[0] == "first"
    return noted.notes[1:]


def test_without_an_earlier_timeline_it_is_not_known(campaigns):
    assert note(WHOLE) == ()
    (sentence,) = note(FIVE)
    assert sentence.startswith("timeline: what its window saves is not known: no earlier campaign")
    campaigns("n-1", FIVE, 1 << 20)
    assert note(FIVE) == ("timeline: its window left 1.000 MiB in n-1",)


def test_of_a_timeline_of_the_whole_program_it_is_a_share(campaigns):
    campaigns("n-1", WHOLE, 80 << 20)
    head = "timeline: the reports of the whole program took 80.00 MiB in n-1"
    assert note(FIVE) == (f"{head}; its window is 5 of 400 ranges 'step', about 1.2 % of it",)
    assert note(CLOCK) == (f"{head}; its window is 10s of 10m, about 1.7 % of it",)
    assert note("{after: 9m}") == (f"{head}; its window is 1m of 10m, about 10.0 % of it",)
    assert note("{within: cuda_profiler_api}") == (f"{head}; how much of it is in the window is not known",)


def test_where_both_were_measured_it_is_what_they_took(campaigns):
    campaigns("n-1", WHOLE, 80 << 20)
    campaigns("n-2", FIVE, 2 << 20)
    campaigns("n-3", CLOCK, 5 << 20)  # another window
    assert note(FIVE) == (
        "timeline: the reports of the whole program took 80.00 MiB in n-1, its window 2.000 MiB in n-2: 97.5 % less",
    )
