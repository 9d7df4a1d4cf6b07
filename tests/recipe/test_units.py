"""Durations, sizes, percentages, amounts: what is read, what is refused, and that writing reads back."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsw.recipe import units
from nsw.recipe.units import Fault


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10m", 600),
        ("1h30m", 5400),
        ("90s", 90),
        ("1.5h", 5400),
        ("2 days", 172800),
        ("1 hour 5 min", 3900),
        ("01:30:00", 5400),
        ("1-00:00:00", 86400),
        ("0:00:30", 30),
    ],
)
def test_durations(text, seconds):
    assert units.parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("d day days", 86400),
        ("h hr hour hours", 3600),
        ("m min mins minute minutes", 60),
        ("s sec secs second seconds", 1),
    ],
)
def test_units_of_time_may_be_spelled_out(words, seconds):
    assert {units.parse_duration(f"2 {word}") for word in words.split()} == {2 * seconds}


def test_units_of_size_are_powers_of_1024_however_they_are_written():
    for power, letter in enumerate("KMGTP", 1):
        assert {units.parse_size(f"2{letter}{rest}") for rest in ("", "B", "iB", "i")} == {2 * 1024**power}
    assert {units.parse_size(f"2{word}") for word in ("B", "byte", "bytes")} == {2}
    assert [units.format_size(size) for size in (1023, 1024, 1536, 1 << 30)] == ["1023B", "1K", "1536B", "1G"]


@pytest.mark.parametrize(
    "text",
    [10, 1.5, "10", "", "m", "10x", "30m1h", "1h1h", "10:00", "0s", "0.3s", "-5m", "99999d", True, None, [], "1h 5"],
)
def test_no_durations(text):
    with pytest.raises(Fault):
        units.parse_duration(text)


@pytest.mark.parametrize(
    ("text", "size"), [("32G", 32 << 30), ("512 MiB", 512 << 20), ("1.5T", 3 << 39), ("100B", 100), ("8gb", 8 << 30)]
)
def test_sizes(text, size):
    assert units.parse_size(text) == size


@pytest.mark.parametrize("text", [32, "32", "32X", "G", "0G", "-1G", None, "1.23456B", "32Gx"])
def test_no_sizes(text):
    with pytest.raises(Fault):
        units.parse_size(text)


@pytest.mark.parametrize(("text", "share"), [("90%", 0.9), ("100 %", 1.0), ("0.5%", 0.005)])
def test_percentages(text, share):
    assert units.parse_percent(text) == share


@pytest.mark.parametrize("text", [90, 0.9, "90", "0%", "101%", "-5%", None])
def test_no_percentages(text):
    with pytest.raises(Fault):
        units.parse_percent(text)


def test_amounts():
    assert str(units.parse_amount("1 node-hour")) == "1 node-hour"
    assert units.parse_amount("0.5 GPU-hours") == units.Amount(0.5, "gpu-hour")


@pytest.mark.parametrize("text", [1, "1", "node-hour", "1 node-houer", "1 core-hour", None])
def test_no_amounts(text):
    with pytest.raises(Fault):
        units.parse_amount(text)


def test_canaries():
    assert [
        units.parse_canary(word).is_wanted(5) for word in ("on", "off", "runs above 5", "runs above 4", True, False)
    ] == [
        True,
        False,
        False,
        True,
        True,
        False,
    ]


@given(st.integers(1, 10**8))
def test_what_is_written_reads_back(number):
    assert units.parse_duration(units.format_duration(number)) == number
    assert units.parse_size(units.format_size(number)) == number


@given(st.integers(1, 10**6))
def test_percentages_read_back(number):
    assert units.parse_percent(units.format_percent(number / 10**6)) == pytest.approx(number / 10**6)


@given(st.text(max_size=20))
def test_any_text_is_read_or_refused(text):
    for parse in (units.parse_duration, units.parse_size, units.parse_percent, units.parse_amount, units.parse_canary):
        with contextlib.suppress(Fault):
            parse(text)
