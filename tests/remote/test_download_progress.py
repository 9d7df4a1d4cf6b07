"""How far files have come is told by few events, shown by a bar on a terminal and by a line now and then elsewhere."""

import io

import pytest

from nsw.campaign.fetch import DownloadProgress, watch_downloads
from nsw.engine.events import Downloading
from nsw.present.status_view import DownloadLines, download_line, download_row
from nsw.present.terminal import console

MIB = 1 << 20


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def told(clock, steps, total):
    """The events of a transfer: (seconds since the step before, bytes that are here) each."""
    seen = []
    progress = DownloadProgress(seen.append, clock)
    for later, done in steps:
        clock.now += later
        progress(done, total)
    return seen


def test_a_transfer_that_is_over_at_once_is_not_worth_an_event(clock):
    assert told(clock, [(0, 0), (0.1, 50), (0.1, 100)], 100) == []


def test_a_long_one_is_told_twice_a_second_with_its_rate_and_at_its_end(clock):
    seen = told(clock, [(0.01, n * MIB) for n in range(1001)], 1000 * MIB)
    assert 15 <= len(seen) <= 25
    assert all(event.rate == pytest.approx(100 * MIB, rel=0.01) for event in seen)
    assert (seen[-1].done, seen[-1].seconds_left) == (1000 * MIB, 0)
    middle = next(event for event in seen if event.done >= 500 * MIB)
    assert middle.seconds_left == pytest.approx((1000 * MIB - middle.done) / (100 * MIB), rel=0.01)


def test_the_rate_is_that_of_the_last_seconds_and_of_what_came_now(clock):
    seen = told(clock, [(0, 90), (1, 91), *[(1, 92 + n) for n in range(20)]], 200)
    assert seen[0].rate == 1, "what an earlier transfer left came in no time"
    assert seen[-1].rate == 1
    fast = told(clock, [(0, 0), (1, 1), (100, 2), (1, 12), (1, 22)], 50)
    assert fast[-1].rate > 5


def test_transfers_after_one_another_each_have_a_rate_of_their_own(clock):
    seen = []
    progress = DownloadProgress(seen.append, clock)
    for _ in range(2):
        for done in (0, 50, 100):
            progress(done, 100)
            clock.now += 10
    assert [(event.done, event.rate) for event in seen] == [(50, 5), (100, 5)] * 2


def test_a_log_gets_a_line_now_and_then_and_none_for_what_is_quick(clock):
    lines = []
    shown = DownloadLines(lines.append, clock)
    for done in range(1, 1001):
        clock.now += 0.1
        shown.show(Downloading(done * MIB, 1000 * MIB, 10 * MIB))
    assert len(lines) == 4, lines  # at 30, 60 and 90 s, and at its end
    assert lines[0].startswith("downloading: 302.0 MiB of 1,000.0 MiB, 10.49 MB/s, 1 min 10 s left"), lines
    assert "left" not in lines[-1]
    for done in (1, 2):
        shown.show(Downloading(done, 2, None))
    assert len(lines) == 4


@pytest.mark.parametrize("seen", [Downloading(0, 1, None), Downloading(1023 << 30, 9999 << 30, 98_765_432.1)])
def test_the_bar_and_what_it_says_fit_80_columns(seen, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    stream = io.StringIO()
    console(stream).print(download_row(seen))
    (line,) = stream.getvalue().splitlines()
    assert len(line) <= 80
    assert download_line(seen) in line


def test_a_real_transfer_is_told_to_its_last_byte(far, tmp_path):
    (tmp_path / "there").write_bytes(b"x" * (5 * MIB))
    ticks = iter(range(10_000))
    seen = []
    watch_downloads(far, seen.append)
    far.progress = DownloadProgress(seen.append, lambda: float(next(ticks)))
    far.get_many([(str(tmp_path / "there"), tmp_path / "here")])
    assert seen
    assert (seen[-1].done, seen[-1].total) == (5 * MIB, 5 * MIB)
    assert [event.done for event in seen] == sorted(event.done for event in seen)
