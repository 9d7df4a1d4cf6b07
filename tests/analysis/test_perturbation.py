"""What timeline and host passes change of the program, against its baseline."""

import io
from dataclasses import replace
from types import SimpleNamespace

from rich.console import Console

from nsw.analysis.answer import notes
from nsw.analysis.cases import summarize_cases
from nsw.analysis.figures import Figure, profiler_perturbations
from nsw.analysis.rules.profiler_cost import profiler_slowdown
from nsw.present.summary_view import show_blocks

from .made import case


def run(pass_name, kind, seconds, *, state="done"):
    return SimpleNamespace(case_id="n-1", pass_name=pass_name, pass_kind=kind, state=state, seconds=seconds)


def figure(pass_name, profiled, *values):
    some = sorted(values)
    return Figure("speed", "images/s", pass_name, profiled, some[len(some) // 2], some[0], some[-1], len(some))


def perturbed(figures, runs):
    return replace(case(n=1, others=figures), perturbation=tuple(profiler_perturbations(figures, runs)))


RUNS = [run("baseline", "baseline", 10.0), run("timeline", "timeline", 12.0), run("counters", "counters", 90.0)]
FIGURES = (figure("baseline", False, 99, 100, 101), figure("timeline", True, 79, 80, 81),
           figure("counters", True, 1, 1, 1))  # fmt: skip


def test_each_figure_and_the_run_time_are_compared_with_the_baseline_and_counters_are_not():
    found = perturbed(FIGURES, RUNS).perturbation
    assert [(p.pass_name, p.figure, p.baseline, p.profiled, round(p.change_pct), p.certain) for p in found] == [
        ("timeline", "speed", 100, 80, -20, True),
        ("timeline", "run time", 10.0, 12.0, 20, None),
    ]


def test_without_a_baseline_and_of_runs_that_failed_there_is_nothing():
    assert perturbed(FIGURES[1:], RUNS[1:]).perturbation == ()
    failed = [RUNS[0], run("timeline", "timeline", 1.0, state="failed")]
    assert perturbed((), failed).perturbation == ()


def shown(of):
    out = io.StringIO()
    show_blocks(Console(file=out, width=100), notes.perturbation_blocks(SimpleNamespace(cases=[of])), "always")
    return out.getvalue()


def test_cases_in_which_a_pass_changed_the_same_are_one_warning_that_names_them(monkeypatch):
    def changed(speed):
        figures = (figure("baseline", False, 100), figure("timeline", True, speed))
        return replace(perturbed(figures, [run("timeline", "timeline", 1.0)]), id=f"n-{speed}")

    cases = [changed(speed) for speed in (150, 1500, 20, 130, 101)]

    def warning():
        (note,) = (block for block in notes.perturbation_blocks(SimpleNamespace(cases=cases)) if block.kind == "note")
        return note.text

    assert warning() == (
        "warning: pass timeline changed speed of 4 cases by more than 10 %: take shares from it, and times from the"
        " baseline; pass and baseline ran only once, so it may be scatter (n-1500 15x higher, n-20 5x lower, n-150 +50 %, n-130 +30 %)"
    )
    monkeypatch.setattr(notes, "_MAX_CASES", 2)
    assert warning().endswith("(n-1500 15x higher, n-20 5x lower, and 2 more)")


def test_twice_and_more_is_a_factor_in_the_table_too():
    found = perturbed((), times([0.014], [2.936]))
    assert "210x" in shown(found)
    assert "20,8" not in shown(found)


def test_a_change_above_the_share_is_a_warning_that_says_what_to_do():
    text = shown(perturbed(FIGURES, RUNS))
    assert "-20.0 %" in text
    assert (
        "warning: pass timeline changed speed of n-1 by -20 %, more than 10 %: take shares from it, and times from the"
        " baseline" in " ".join(text.split())
    )
    assert text.count("warning: ") == 1  # the run time says the same again
    once = (figure("baseline", False, 100), figure("timeline", True, 80))
    assert "; pass and baseline ran only once, so it may be scatter" in shown(perturbed(once, RUNS))


def times(baseline, timeline):
    return [*(run("baseline", "baseline", s) for s in baseline), *(run("timeline", "timeline", s) for s in timeline)]


def test_the_run_time_of_a_short_program_tells_nothing_of_its_steady_state():
    """On an H100: a program of 0.6 s takes 2.9 s under nsys, and does as many steps a second as without it."""
    for runs in (times([0.645], [2.91]), times([0.64, 0.65, 0.66], [2.8, 2.9, 3.0])):
        found = perturbed((), runs)
        text = shown(found)
        assert "warning" not in text
        assert "profiler's start?" in text


def test_a_run_time_that_the_programs_own_slowness_explains_is_not_called_a_start():
    """cProfile slows Python itself: 3.8 times by the program's figure, and the run takes 3.9 times as long."""
    slow = (figure("baseline", False, 100), figure("timeline", True, 26))
    assert "profiler's start" not in shown(perturbed(slow, times([0.967], [3.83])))
    little = (figure("baseline", False, 100), figure("timeline", True, 85))
    assert "profiler's start" in shown(perturbed(little, times([0.6], [2.9])))


def test_a_longer_run_time_is_a_warning_where_repeats_show_it_with_what_it_does_not_tell():
    assert "warning" not in shown(perturbed((), times([100.0], [130.0])))
    assert "pass and baseline ran once" in shown(perturbed((), times([100.0], [130.0])))
    assert " baseline ran once" in shown(perturbed((), times([100.0], [130.0, 131.0])))
    found = perturbed((), times([100.0, 101.0], [130.0, 131.0]))
    text = " ".join(shown(found).split())
    assert "changed run time of n-1 by +30 %" in text
    assert "how much of that falls on the steady state is not known" in text


def test_scatter_and_small_changes_are_shown_without_a_warning():
    wide = (figure("baseline", False, 60, 100, 130), figure("torch", True, 70, 80, 90))
    text = shown(perturbed(wide, [run("torch", "host", 1.0)]))
    assert "within the scatter" in text
    assert "warning" not in text
    small = (figure("baseline", False, 100), figure("torch", True, 95))
    assert "warning" not in shown(perturbed(small, [run("torch", "host", 1.0)]))
    assert shown(case(n=1)) == ""


def test_a_pass_that_records_a_window_tells_nothing_of_how_much_the_profiler_slows_the_program():
    runs = [
        SimpleNamespace(id=name, params={}, **vars(run(name, name, seconds)))
        for name, seconds in (("baseline", 10.0), ("timeline", 14.0))
    ]
    figures = [
        {"run": name, "name": "speed", "value": value, "unit": "images/s"}
        for name, value in (("baseline", 100.0), ("timeline", 20.0))
    ]
    (halted,) = summarize_cases(runs, {"figures": figures}, 1.0, windowed={"timeline"})
    (slowed,) = summarize_cases(runs, {"figures": figures}, 1.0)
    assert halted.perturbation == ()
    assert profiler_slowdown(replace(halted, traced_by="timeline")) == 1
    assert profiler_slowdown(replace(slowed, traced_by="timeline")) == 5
