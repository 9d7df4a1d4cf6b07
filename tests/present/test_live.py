"""The line of a running program: its job, node and last words as far as they fit, and nothing that steers."""

import pytest

from nsw.engine.events import Progress, RunChanged
from nsw.engine.ledger_rows import State
from nsw.present.status_view import Watch, elapsed_and_left, running_line

from .test_terminal import run_row

ID = "gpus-4_batch-128_precision-tf32.timeline.r1"


def line(width, said="step 7 of 20 loss 0.12", job="4711_3", host="gpu07.cluster", id_=ID):
    run = run_row(id=id_, state=State.RUNNING, started=100.0, ended=None, host=host)
    return running_line(run, 112.0, Progress({id_: said}, {id_: job} if job else {}, None), width)


@pytest.mark.parametrize("width", [70, 80, 100, 140])
def test_a_line_fits_and_keeps_what_a_person_asks_with(width):
    shown = line(width)
    assert len(shown) <= width
    for fact in ("12 s", "job 4711_3", "gpu07.cluster", "gpus-4", "r1"):
        assert fact in shown


def test_the_last_words_are_shown_where_there_is_room_and_cut_at_their_end():
    assert line(140).endswith("step 7 of 20 loss 0.12")
    assert line(100, id_="short").endswith("step 7 of 20 loss 0.12")
    shown = line(100, said="x" * 300, id_="short")
    assert shown.endswith("xxx…")
    assert len(shown) == 100
    assert "step 7 of 20 loss 0.12" in line(100), "a long name gives up its middle for them"


def test_what_a_program_prints_steers_nothing():
    assert "\x1b" not in line(140, said="\x1b[2Jgone\x07")


def test_so_far():
    assert elapsed_and_left(200, 720) == "3 min 20 s so far, about 12 min left"
    assert elapsed_and_left(5, None) == "5.00 s so far"
    assert elapsed_and_left(None, None) == ""


@pytest.mark.parametrize(("done", "left"), [(1, True), (2, False)])
def test_nothing_is_left_once_all_runs_are_over(done, left):
    watch = Watch(None)
    watch._counts, watch._total, watch._progress = {"done": done, "running": 2 - done}, 2, Progress({}, {}, 20.0)
    texts = [str(part) for part in watch._live_view().renderables]
    assert any("s left" in text for text in texts) is left
    assert any("so far" in text for text in texts)


@pytest.mark.parametrize("width", [80, 100])
def test_status_keeps_the_reason_and_the_job_where_columns_go(width, monkeypatch):
    import io

    from nsw.present.status_view import show_status
    from nsw.present.terminal import console

    class Screen(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "dumb")
    stream = Screen()
    run = run_row(id=ID, state=State.FAILED, detail="exit status 1: RuntimeError: CUDA out of memory on device 3")
    head = {"campaign": "c", "site": "s", "driven": True, "note": None, "absent": [], "next": [], "builds": []}
    show_status(console(stream), head, {"failed": 1}, [run], [], {ID: "4711_3"}, every_run=False)
    text = stream.getvalue()
    assert "4711_3" in text
    assert "on device 3" in " ".join(text.split())
    assert "RuntimeError:" in text
    assert all(len(line.rstrip()) <= width for line in text.splitlines())


@pytest.mark.parametrize(("count", "lines"), [(12, 1), (3, 3)])
def test_runs_that_were_refused_together_share_a_line_with_their_number(count, lines, capsys):
    reason = "qsub refused the job: Unknown queue"
    watch = Watch(None)
    for turn in (0, 1):  # a second group of the same reason is told too
        for n in range(count):
            run = run_row(id=f"n-{n}.baseline.r1", state=State.FAILED, started=None, ended=None, detail=reason)
            watch.show(RunChanged(run, turn * count + n + 1, 2 * count, count))
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2 * lines
    if lines == 1:
        assert said[0] == f"12/24 failed    n-0.baseline.r1 and 11 more: {reason}"
        assert said[1].startswith("24/24 failed    n-0.baseline.r1 and 11 more")
