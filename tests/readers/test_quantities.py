"""Printed numbers: value and half-width, nothing lost and nothing invented."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsw.readers.text.quantities import digits, duration, number, parse_integer, percent, rate, size, split_unit


@pytest.mark.parametrize(
    ("text", "unit", "value", "pm"),
    [
        ("4.2567ms", None, 4256700, 50),
        ("3.10810s", None, 3108100000, 5000),
        ("302.355298", "ms", 302355298, 0.5),
        ("1.024000e-03", "ms", 1024, 0.0005),
        ("312ns", None, 312, 0.5),
        ("1,234.5 usec", None, 1234500, 50),
    ],
)
def test_durations_are_in_ns_with_the_half_width_of_the_last_digit(text, unit, value, pm):
    assert duration(text, unit) == (value, pytest.approx(pm))


@pytest.mark.parametrize(
    "text", ["-", "", "n/a", "nan", "ms", "1.2.3ms", "1,23ms", "5 parsecs", "1" * 70, "1e99ns", "1e-99ns"]
)
def test_what_is_no_duration_is_none(text):
    assert duration(text) is None


def test_sizes_and_rates_have_the_tools_kilo():
    assert size("4.0000KB", base=1024) == (4096, pytest.approx(0.0512))
    assert size("4.0000KB") == (4000, pytest.approx(0.05))
    assert size("4KiB") == (4096, 512)
    assert size("24B") == (24, None)
    assert rate("19.105MB/s", base=1024) == pytest.approx((19.105 * 2**20, 0.0005 * 2**20))
    assert rate("19.105MB", base=1024) is None


def test_thousands_are_separated_in_groups_of_three_only():
    assert number("4,963,609,951.19").value == 4963609951.19
    assert number("62.604.198", ",") == (62604198, None)
    assert number("84,0", ",") == (84, 0.05)
    assert number("84,0") is None
    assert parse_integer("12,319,469") == 12319469
    assert parse_integer("12.5") is None


@pytest.mark.parametrize("text", ["1234,567", "1,2345", ",123", "12,34,567"])
def test_marks_that_separate_no_thousands_make_no_number(text):
    assert number(text) is None


def test_exponents_and_blanks_are_read_as_they_are_printed():
    assert number("1e3") == (1000, None)
    assert number(".5e+1") == (5, None)
    assert number(" 7.5 ") == (7.5, 0.05)


@pytest.mark.parametrize("text", ["4 Bottles", "4 KBx", "4 K", "4"])
def test_what_only_begins_as_a_unit_of_size_is_none(text):
    assert size(text) is None


@pytest.mark.parametrize("text", ["1.2.3MB/s", "MB/s", "5 MB/h", "5 cows/s"])
def test_what_is_no_rate_is_none(text):
    assert rate(text) is None


def test_percentages_are_of_a_hundred():
    assert percent("41.68%") == (41.68, 0.005)


def test_units_are_split_off():
    assert split_unit("64.607GB/s") == ("64.607", "GB/s")
    assert split_unit("Low (2)") == ("", "Low (2)")


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12, places=6))
def test_digits_say_exactly_what_was_printed(value):
    found = digits(f"{value:f}")
    assert Decimal(found.mantissa).scaleb(found.exponent) == value


@given(st.text(max_size=80), st.sampled_from([".", ","]))
def test_any_text_is_a_quantity_or_none(text, mark):
    for read in (digits, number):
        read(text, mark)
    for read in (parse_integer, percent, duration, size, rate):
        read(text)
