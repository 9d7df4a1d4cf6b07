"""Text of others, made harmless where it goes out: a terminal, JSON, CSV. Names of files and kernels may be anything.

A terminal gets U+FFFD for what would steer it or turn the direction of writing. JSON keeps the data true: it has the
escape of four hexadecimal digits for such a character. CSV, which knows no escape, gets U+FFFD too, and ' before what a
spreadsheet would take for a formula. Parquet holds texts as they are.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import Any, Final, TextIO

# Control characters but tab and line feed (C0, DEL, C1); marks of direction and other characters that are not seen;
# line separators; interlinear and tag characters; surrogates, which stand for bytes that are no text. Letters that are
# blank (fillers of Hangul, vowels of Khmer, the empty pattern of Braille): with them a name looks like another one.
# U+200C, U+200D and the selectors U+FE00 to U+FE0F stay: scripts and emoji need them.
_STEERS: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff"
    "\ufeff\ufff0-\ufffb\U000e0000-\U000e0fff"
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
)
_STEERING: Final = re.compile(f"[{_STEERS}]")
_INSTEAD: Final = "\N{REPLACEMENT CHARACTER}"
_FORMULA: Final = re.compile(r"[\s\ufffd]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\n]")  # also those of full width


def escape_controls(text: str) -> str:
    """Text of several lines without what steers a terminal; line ends and tabs stay."""
    return _replace_control_characters(text, _INSTEAD)


def _replace_control_characters(text: str, instead: str | Callable[[re.Match[str]], str]) -> str:
    return text if text.isascii() and text.isprintable() else _STEERING.sub(instead, text)


def clean_line(text: object) -> str:
    """Text of one line without what steers a terminal."""
    line = str(text)
    return (
        line if line.isascii() and line.isprintable() else escape_controls(line).replace("\n", " ").replace("\t", " ")
    )


def print_untrusted(text: str, file: TextIO | None = None) -> None:
    """Print a text in which names of others may be, on stdout or another stream."""
    print(escape_controls(text), file=file or sys.stdout)


def as_json(value: Any, **options: Any) -> str:
    """JSON in UTF-8 that no terminal obeys and that is the same data."""
    return _replace_control_characters(json.dumps(value, ensure_ascii=False, allow_nan=False, **options), _json_escape)


def as_csv_cell(value: Any) -> Any:
    """A value of CSV: numbers as they are, texts that steer nothing and that no spreadsheet works out."""
    if not isinstance(value, str):
        return value
    text = value.replace("\r\n", "\n").replace("\r", "\n") if "\r" in value else value  # it would end the row
    text = escape_controls(text)
    return "'" + text if _FORMULA.match(text) else text


def _json_escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
