"""A column of quantities has one unit, in its heading."""

import pytest

from nsw.quantities import (
    duration,
    format_change,
    format_magnitude,
    format_rate_change,
    format_time_change,
    in_one_unit,
    percent,
    rate,
    size,
)


@pytest.mark.parametrize(
    ("head", "cells", "found"),
    [
        ("time>", [duration(3.6e6), duration(760_000)], ("time (ms)>", ["3.600", "0.760"])),
        ("time>", [duration(3.6e6), duration(12_000)], ("time (us)>", ["3,600.0", "12.00"])),
        ("time>", [duration(9e9), duration(30)], ("time (ms)>", ["9,000.0", "0.0000300"])),
        ("rate>", [rate(2.317e12), rate(53.2e9)], ("rate (GB/s)>", ["2,317.0", "53.20"])),
        ("time>", [duration(1.2e8), duration(394)], ("time (us)>", ["120,000.0", "0.394"])),
        ("time>", [duration(12), None, "-", ""], ("time (ns)>", ["12", None, "-", ""])),
        ("time>", [duration(0)], ("time (ns)>", ["0"])),
        ("size>", [size(3 << 30), size(1 << 29)], ("size (GiB)>", ["3.000", "0.500"])),
        ("speed>", [rate(4.8e12)], ("speed (TB/s)>", ["4.800"])),
        ("share>", [percent(99.96), percent(0.04)], ("share (%)>", ["100.0", "0.0"])),
        ("mixed>", [duration(5), percent(1)], ("mixed>", ["5 ns", "1.0 %"])),
        ("name", ["a", None], ("name", ["a", None])),
        ("told>", [duration(5), "about a second"], ("told>", ["5 ns", "about a second"])),
    ],
)
def test_a_column_of_quantities_has_one_unit(head, cells, found):
    assert in_one_unit(head, cells) == found


@pytest.mark.parametrize(
    ("percent_more", "text"),
    [(12.34, "+12.3 %"), (-40.0, "-40.0 %"), (0.0, "+0.0 %"), (99.0, "+99.0 %"), (20867.8, "210x higher"),
     (1e8, "1,000,001x higher"), (-99.982, "5,556x lower"), (-100.0, "0x")],
)  # fmt: skip
def test_a_change_of_twice_and_more_is_a_factor(percent_more, text):
    assert format_change(percent_more) == text


def test_a_large_change_of_a_time_or_a_speed_is_a_factor_that_is_no_fraction():
    assert (format_time_change(-93.4), format_time_change(20867.8), format_time_change(-50.0)) == (
        "15x faster",
        "210x slower",
        "2x faster",
    )
    assert (format_rate_change(-99.0), format_rate_change(-100.0), format_rate_change(-9.6)) == (
        "100x slower",
        "0x",
        "9.6 % slower",
    )


@pytest.mark.parametrize(
    ("percent_more", "text"),
    [(12.34, "12.3 %"), (-80.0, "80.0 %"), (99.0, "99.0 %"), (900.0, "10 times"), (7630.0, "77 times")],
)
def test_in_a_sentence_a_change_of_twice_and_more_is_a_factor(percent_more, text):
    assert format_magnitude(percent_more) == text
