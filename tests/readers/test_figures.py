"""A program's own numbers, found in what it printed."""

import math
import random
import re
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from nsw.readers import program_figures


def spec(regex, pick="last"):
    return SimpleNamespace(regex=regex, pick=pick, unit="1/s")


@pytest.fixture
def figures(tmp_path):
    def found(output, wanted):
        file = tmp_path / "stdout"
        file.write_bytes(output.encode())
        return program_figures.read_figure_rows(file, wanted)

    return found


@pytest.fixture
def value(figures):
    def found(output, regex=r"rate=(\S+)", pick="last"):
        (row,) = figures(output, {"rate": spec(regex, pick)})
        return row["value"], row["matches"]

    return found


@pytest.mark.parametrize(
    ("pick", "expected"),
    [("first", 5), ("last", 2), ("sum", 10), ("mean", 10 / 3), ("max", 5)],
)
def test_one_of_several(value, pick, expected):
    found, matches = value("rate=5\nrate=3\nrate=2\n", pick=pick)
    assert found == pytest.approx(expected)
    assert matches == 3


@pytest.mark.parametrize("pick", ["last", "sum", "mean", "max"])
@pytest.mark.parametrize("bad", ["nan", "inf", "-inf"])
def test_a_run_that_diverged_has_no_value_though_it_had_one_before(value, pick, bad):
    assert value(f"rate=5\nrate={bad}\n", pick=pick) == (None, 2)


def test_what_is_no_number_is_no_match(value):
    assert value("rate=n/a\nrate=3,14\n") == (None, 0)
    assert value("rate=1,234.5\n") == (1234.5, 1)
    assert not math.isnan(value("rate=7\nrate=oops\n")[0])


def test_a_match_that_is_no_number_is_named(figures):
    wanted = {"rate": spec(r"rate=(\S+)")}
    assert [row.get("no_number") for row in figures("rate=abc\nrate=5ms\n", wanted)] == ["5ms"]
    assert [row.get("no_number") for row in figures("rate=abc\nrate=5\n", wanted)] == [None]
    assert [row.get("no_number") for row in figures("nothing\n", wanted)] == [None]


def test_the_first_line_with_a_number_is_kept(figures):
    (row,) = figures("rate=abc\n took 804 ms, rate=5\nrate=7\n", {"rate": spec(r"rate=(\S+)")})
    assert row["line"] == " took 804 ms, rate=5"
    (row,) = figures("rate=8", {"rate": spec(r"rate=(\S+)")})
    assert row["line"] == "rate=8"


PATTERNS = (
    r"rate=([\d.]+)", r".*rate=([\d.]+)", r"^rate=(.*)$", r"step\s+(\d+)", r"(?<=e)=(\S+)", r"\bspeed: (\S+)\n",
    r"head\n.*\n.*?(\d+)$", r"(\d+)\s*\Z", r"\A(\d+)", r"(\d*)",
)  # fmt: skip
WORDS = ("rate=", "1.5", "23", "step", "\n", "\n", "\r\n", "\r", " ", " ", "speed: ", "head\n", "é", "x", "=7,")


@pytest.mark.parametrize("length", [1, 300, 20_000])
@pytest.mark.parametrize("seed", range(5))
def test_in_pieces_the_same_is_found_as_in_the_whole(figures, monkeypatch, seed, length):
    for name, size in (("_WINDOW", 1 << 11), ("_OVERLAP", 1 << 9), ("_LINE", 1 << 8), ("_BEFORE", 1 << 6)):
        monkeypatch.setattr(program_figures, name, size)
    dice = random.Random(seed)
    output = "".join(dice.choice(WORDS) for _ in range(length))
    lines = output.replace("\r\n", "\n").replace("\r", "\n")
    for pattern in PATTERNS:
        texts = [match[1] or "" for match in re.finditer(pattern, lines, re.MULTILINE)]
        numbers = [number for number in map(program_figures._parse_number, texts) if number is not None]
        first, last, total = (figures(output, {"f": spec(pattern, pick)})[0] for pick in ("first", "last", "sum"))
        assert last["matches"] == len(numbers), pattern
        if numbers:
            assert (first["value"], last["value"]) == (numbers[0], numbers[-1]), pattern
            assert total["value"] == pytest.approx(sum(numbers)), pattern


@pytest.mark.parametrize("regex", [r"loss=([\d.]+)", r".*loss=([\d.]+)", r"\bloss=([\d.]+) "])
@pytest.mark.parametrize("before", [0, 2000, 2044, 2048, 3060, 3070, 4080, 4090, 4096, 6140, 65_530, 262_140, 262_144])
def test_a_number_anywhere_in_a_long_line_is_whole(value, regex, before):
    words = "word " * (before // 5) + "x" * (before % 5)
    assert value(f"begin\n{words} loss=12345.675 {words}\nend\n", regex) == (12345.675, 1)


def test_a_long_line_is_searched_in_time(figures):
    wanted = {"late": spec(r".*loss=([\d.]+)"), "rate": spec(r"rate=(\S+)")}
    late, rate = figures(f"{'x' * 200_000}\nrate=3\n", wanted)  # 17 s where it is searched whole
    assert "too_slow" not in late
    assert (late["value"], rate["value"]) == (None, 3)


def test_an_expression_that_explodes_is_given_up_and_the_others_are_not(figures, monkeypatch):
    monkeypatch.setattr(program_figures, "_SECONDS", 0.3)
    bad, good = figures(f"{'a' * 40}c\nrate=3\n", {"bad": spec("(a+)+b"), "rate": spec(r"rate=(\S+)")})
    assert (bad["value"], bad["too_slow"]) == (None, True)
    assert good["value"] == 3


def test_in_a_thread_too_an_expression_that_explodes_is_given_up(figures):
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(figures, f"{'a' * 40}c\nrate=3\n", {"bad": spec("(a+)+b"), "rate": spec(r"rate=(\S+)")})
        bad, good = asked.result(120)
    assert bad["too_slow"]
    assert good["value"] == 3


def test_what_is_printed_over_itself_is_a_line_each_time(value):
    progress = "".join(f"\rstep {n} rate={n}.5" for n in range(1, 4))
    assert value(progress, r"^step \d+ rate=(\S+)$", "sum") == (7.5, 3)


def test_sums_that_no_number_holds_are_no_value(value):
    assert value("rate=1e308\nrate=1e308\n", pick="mean") == (None, 2)
