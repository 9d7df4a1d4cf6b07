"""Ranges of numbers as expressions: each number within fits, and no other."""

import re

import pytest

from nsw.profilers.kernel_filters import regex_of_number_range, regex_of_numbers


@pytest.mark.parametrize("first", [1, 2, 9, 10, 11, 19, 37, 99, 100, 101, 250])
@pytest.mark.parametrize("count", [0, 1, 8, 9, 10, 89, 90, 99, 163, None])
def test_a_range_fits_its_numbers_only(first, count):
    last = None if count is None else first + count
    fits = re.compile(regex_of_number_range(first, last))
    wanted = {n for n in range(1200) if n >= first and (last is None or n <= last)}
    assert {n for n in range(1200) if fits.search(str(n))} == wanted


def test_it_stays_short():
    assert regex_of_number_range(11, 13) == "^(1[1-3])$"
    assert (
        regex_of_number_range(1, 999_999)
        == "^([1-9]|[1-9][0-9]|[1-9][0-9]{2}|[1-9][0-9]{3}|[1-9][0-9]{4}|[1-9][0-9]{5})$"
    )


def test_single_numbers():
    assert regex_of_numbers([14, 2, 2]) == "^(2|14)$"
