"""Nsight Compute's printed values: which mark is the decimal one, what is a number, what is absent."""

import pytest

from nsw.readers.ncu.values import (
    NumberMarks,
    PrintedValue,
    ValueParser,
    decide_decimal_mark,
    name_or_unit_is_number,
    parse_integer,
    time_in_ns,
)


@pytest.mark.parametrize(
    ("printed", "marks"),
    [
        (["7.59"], NumberMarks(".")),
        (["7,59"], NumberMarks(",")),
        (["0,123"], NumberMarks(",")),  # no group of thousands begins with a lonely zero
        (["1234,567"], NumberMarks(",")),  # nor with four digits
        (["-0,123"], NumberMarks(",")),
        (["1,234,567"], NumberMarks(".")),  # what repeats separates groups
        (["1.234.567"], NumberMarks(",")),
        (["1,234.5"], NumberMarks(".")),
        (["1.234,5"], NumberMarks(",")),
        (["1,234"], NumberMarks(guessed=True)),
        (["1,234", "7"], NumberMarks(guessed=True)),  # a later number that tells nothing takes no doubt away
        (["1,234", "5,67"], NumberMarks(",")),
        (["12", "x"], NumberMarks()),
        (["copy(int, int)", "2,5 mm", "v1.2"], NumberMarks()),  # text proves nothing, whatever marks are in it
        (["1,234 threads"], NumberMarks()),
        (["7.59", "3,18", "1.25"], NumberMarks(".")),  # one cell is no proof against the others
        (["7,59", "3.18", "1,25"], NumberMarks(",")),
    ],
)
def test_the_decimal_mark_is_what_the_numbers_prove(printed, marks):
    assert decide_decimal_mark((text, None) for text in printed) == marks


@pytest.mark.parametrize(("values", "marks"), [
    ([("3,18", "Ghz"), ("10,688", "cycle"), ("7.232", "us")], NumberMarks(".")), ([("10,688", "us")], NumberMarks(guessed=True)),
    ([("10.688", "inst"), ("3.18", "Ghz"), ("1.000", "block")], NumberMarks(",")),
])  # fmt: skip
def test_a_count_of_thousands_tells_what_groups_digits(values, marks):
    assert decide_decimal_mark(values) == marks


@pytest.mark.parametrize("text", ["", "-", "n/a", "N/A", "nan", "-nan", "inf", "-inf", "no data", "(!) n/a"])
def test_what_ncu_prints_for_no_number_is_absent(text):
    assert ValueParser()(text) == PrintedValue()


@pytest.mark.parametrize(
    ("text", "mark", "value"),
    [
        ("12,319,469", ".", PrintedValue(12319469.0)),
        ("12.319.469", ",", PrintedValue(12319469.0)),
        ("7.59", ".", PrintedValue(7.59, 0.005)),
        ("7,590", ",", PrintedValue(7.59, 0.0005)),
        (" -7.5 ", ".", PrintedValue(-7.5, 0.05)),
        ("12,34", ".", PrintedValue(text="12,34")),
        ("45 (15; 30)", ".", PrintedValue(45.0, None, "45 (15; 30)")),
        ("Low (2)", ".", PrintedValue(text="Low (2)")),
    ],
)
def test_values_are_numbers_with_their_half_width_or_text(text, mark, value):
    assert ValueParser(NumberMarks(mark))(text) == value


def test_a_number_is_no_name_and_no_unit_of_a_metric():
    assert name_or_unit_is_number("12.5", "%")
    assert name_or_unit_is_number("Duration", "12.5")
    assert not name_or_unit_is_number("Duration", "us")
    assert not name_or_unit_is_number("Duration", None)
    assert not name_or_unit_is_number("2 Eligible Warps", "")


def test_times_are_moved_to_ns_digit_by_digit():
    assert time_in_ns(0.1 + 0.2, "us") == 300.00000000000004
    assert time_in_ns(1e-07, "second") == 100.0
    assert time_in_ns(5.0, "ns") == 5.0
    assert time_in_ns(5.0, "cycle") is None
    assert time_in_ns(5.0, None) is None


def test_ids_and_counts_fit_a_column_of_64_bits():
    assert parse_integer(" 7 ") == 7
    assert parse_integer("9" * 18) == 10**18 - 1
    assert [parse_integer(text) for text in (None, "", "-1", "7.0", "9" * 19, "\u00b2", "\u0663")] == [None] * 7
