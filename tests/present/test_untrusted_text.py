"""Text of others goes out harmless by every way: the terminal, JSON, CSV; and every way is one of these."""

import ast
import csv
import io
import json
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsw.present.emit import as_csv
from nsw.present.summary_view import rows_markdown
from nsw.present.terminal import TextTable, console
from nsw.present.untrusted_text import as_csv_cell, as_json, clean_line, escape_controls, print_untrusted

ROOT = Path(__file__).parents[2]
STEERS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\U000e0000-\U000e007f]"
)
EVIL = "a\x1b]0;owned\x07\x9b2J\x7f\x85\u202e\u2066\u200f\u061c\u2028\ufeff\udc9b\U000e0041z"
ANY = st.text(st.characters())  # surrogates too


def test_a_terminal_gets_nothing_that_steers_it(capsys):
    print_untrusted(EVIL)
    for text in (capsys.readouterr().out, escape_controls(EVIL), clean_line(EVIL)):
        assert not STEERS.search(text)
        assert text[0] == "a"
        assert "owned" in text


def test_scripts_and_emoji_that_need_joiners_stay():
    text = "\u0645\u06cc\u200c\u062e \U0001f469\u200d\U0001f52c é 漢\t\n"
    assert escape_controls(text) == text


BLANK = [
    "\u034f", "\u115f", "\u1160", "\u17b4", "\u17b5", "\u180b", "\u180e", "\u200b", "\u2060", "\u2800", "\u3164", "\uffa0",
    "\ufff0", "\U0001bca0", "\U0001d173", "\U000e0001", "\U000e0041", "\U000e0100", "\U000e0fff",
]  # fmt: skip


@pytest.mark.parametrize("blank", BLANK, ids=[f"{ord(c):x}" for c in BLANK])
def test_letters_that_are_not_seen_are_shown_on_every_way_out(blank, capsys):
    name = f"my{blank}kernel"
    print_untrusted(name)
    console().print(TextTable(None, ["name"], [[name]]))
    console().print(name)
    as_csv([{"name": name}], ("name",))
    print(rows_markdown(name, [{"name": name}], ["name"]))
    out = capsys.readouterr().out
    assert blank not in out
    assert out.count("my\ufffdkernel") == 6
    written = as_json([name])
    assert blank not in written
    assert json.loads(written) == [name]


@given(ANY)
def test_json_is_the_same_data_and_steers_nothing(text):
    written = as_json({text: [text]})
    assert json.loads(written) == {text: [text]}
    assert not STEERS.search(written)
    written.encode()  # also a byte of a file's name that is no text


@given(ANY)
def test_a_cell_of_csv_steers_nothing_and_is_no_formula(text):
    cell = as_csv_cell(text)
    assert not STEERS.search(cell)
    seen = "".join(c for c in cell if unicodedata.category(c)[0] not in "CZ" and c != "\ufffd")
    assert not seen.startswith(("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"))
    cell.encode()


@pytest.mark.parametrize(
    "text", ["\x1b=1", "\ufeff=1", "\u200b@a", "\u202e+1", "\u00a0=1", "\uff1d1", "\uff0d1", "\x00\t=1"]
)
def test_a_formula_behind_what_is_not_seen_is_one(text):
    assert as_csv_cell(text)[0] == "'"


def test_numbers_stay_numbers(capsys):
    as_csv([{"n": -5, "x": -1.5e-3, "t": "-5", "b": True}], ("n", "x", "t", "b"))
    assert list(csv.reader(io.StringIO(capsys.readouterr().out)))[1] == ["-5", "-0.0015", "'-5", "True"]


# Words of nsw's own alone, or a shell's own quoting.
PRINTS = {"completion.py", "reading.py", "main.py", "planning.py", "untrusted_text.py"}


@pytest.mark.parametrize("folder", ["cli", "present"])
def test_nothing_is_printed_past_it(folder):
    for file in (ROOT / "nsw" / folder).glob("*.py"):
        calls = [n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.Call)]
        named = {ast.unparse(call.func) for call in calls}
        assert "print" not in named or file.name in PRINTS, file
        assert not named & {"json.dump", "csv.writer"} or file.name in {"emit.py", "planning.py"}, file
        assert "json.dumps" not in named or file.name == "untrusted_text.py", file
