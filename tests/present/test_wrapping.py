"""No word of a sentence is broken, and no command that a person copies."""

import io

import pytest

from nsw.present.terminal import _EXCERPT, _parse_kernel_word, console, wrap_text

TEXT = "`nsw logs n-3_precision-tf32.baseline.r1 -c here` prints its output; `nsw retry -c here` does it again"


@pytest.fixture
def out(monkeypatch):
    import io

    class Screen(io.StringIO):
        def isatty(self):
            return True

    def at(width):
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("TERM", "xterm")
        return console(Screen())

    return at


@pytest.mark.parametrize("width", [30, 50, 60, 80, 100, 200])
def test_lines_fit_and_commands_stay_whole(out, width):
    lines = wrap_text(out(width), TEXT).split("\n")
    assert " ".join(lines) == TEXT
    for line in lines:
        assert len(line) <= width or line.count("`") == 2, "only a command may be longer than the terminal"
        assert line.count("`") % 2 == 0


def test_what_follows_a_break_stands_under_the_first_word_and_excerpts_stay(out):
    text = (
        "no such key\n  7 |   figurs: a long line that is of a file and stays\n    |   ^^^^\n  hint: one two three four"
    )
    assert wrap_text(out(24), text, used_columns=7).split("\n") == [
        "no such key",
        "  7 |   figurs: a long line that is of a file and stays",
        "    |   ^^^^",
        "  hint: one two three",
        "  four",
    ]


def test_a_pipe_gets_the_text_as_it_is(capsys):
    assert wrap_text(console(), TEXT) == TEXT


def test_kernel_names_longer_than_a_line_lose_their_middle_and_stay_distinguishable(out):
    names = [f"sm80_xmma_fprop_{'f32' * 30}_{middle}_{'nchw' * 20}_kernel__5x_cudnn" for middle in ("a", "b")]
    text = f"2 launches were not measured: {names[0]} (3), {names[1]}; see reports/{'x' * 90}.csv"
    lines = wrap_text(out(80), text).split("\n")
    cut = [word for word in " ".join(lines).split() if "…" in word]
    assert len(set(cut)) == 2
    assert all(word.startswith("sm80_") and word.rstrip(";").endswith("cudnn") for word in cut)
    assert [line for line in lines if len(line) > 80] == [f"reports/{'x' * 90}.csv"]  # which a person copies
    assert wrap_text(console(), text) == text
    assert wrap_text(out(80), f"* {names[0]} takes").startswith("* sm80_")  # the name on the line of its mark


@pytest.mark.parametrize(("word", "parts"), [
    ("f(int)", ("", "f(int", ")")), ("(gemm<float>,", ("(", "gemm<float>", ",")), ("k).;", ("", "k", ").;")),
    ("a/b", None), ("(", None), ("a.b", None), ("k" + ")" * 60_000 + "/", None),  # the last one took a minute
], ids=lambda value: str(value)[:12])  # fmt: skip
def test_a_name_of_a_kernel_is_told_from_the_marks_around_it(word, parts):
    assert _parse_kernel_word(word) == parts


def test_a_long_row_of_blanks_is_no_excerpt():
    assert not _EXCERPT.match(" " * 60_000 + "x")  # took a minute


def test_sentences_of_answers_have_the_width_of_columns_in_a_pipe(monkeypatch):
    text = "The GPU is idle 19 % of an iteration: `nsw read a.sqlite --table gaps` shows why."
    assert wrap_text(console(io.StringIO()), text, in_pipes=True) == text
    monkeypatch.setenv("COLUMNS", "50")
    lines = wrap_text(console(io.StringIO()), text, in_pipes=True).split("\n")
    assert (" ".join(lines), max(map(len, lines)) <= 50, len(lines)) == (text, True, 2)
