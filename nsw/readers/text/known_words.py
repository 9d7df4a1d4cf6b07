"""Words that profilers print or record, such as titles of tables: data/known_words.csv says what each stands for."""

from __future__ import annotations

import re

from nsw.resources import csv_rows

__all__ = ["meaning_by_pattern", "meaning_by_word"]


def meaning_by_word(table: str) -> dict[str, str]:
    """What each word stands for: a column of nsw's tables, the key of a fact, a kind, the pattern of a cell.

    Args:
        table: The words of one tool and kind; where several words have a meaning together, `|` is between them.
    """
    rows = csv_rows("readers/data/known_words.csv")
    return {row["word"]: row["meaning"] for row in rows if row["table"] == table}


def meaning_by_pattern(table: str, *, flags: re.RegexFlag = re.NOFLAG) -> list[tuple[re.Pattern[str], str]]:
    """Of a table whose words are regular expressions, each with what it stands for, in the order to try them."""
    return [(re.compile(word, flags), meaning) for word, meaning in meaning_by_word(table).items()]
