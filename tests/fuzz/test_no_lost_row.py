"""A row that damage takes out of the tables leaves a problem: right, or refused in so many words."""

from __future__ import annotations

import re

import pytest

from nsw.readers import read
from nsw.tables import full_rows

from . import seeds, shifts
from .damage import EXPLORES
from .test_no_invented_number import thinned

TEXTS = seeds.texts(*seeds.ROWS_OF_CPU)
MOST = 5000 if EXPLORES else 80  # of each kind of damage to a report
# What stands in ncu's text without any mark of its own: advice that lost the word that begins it is any text.
UNMARKED = {"details.txt": {"rules"}}


def taken(path, text):
    """Tables less those that are not held to this, and the messages."""
    path.write_text(text, newline="")
    report = read(path)
    kept = report.tables.keys() - UNMARKED.get(path.name, set())
    return {t: list(full_rows(t, report.tables[t])) for t in kept}, {p.message for p in report.problems}


@pytest.mark.parametrize("damage", [shifts.variants, shifts.garbled], ids=["a word is missing", "a number is garbled"])
@pytest.mark.parametrize("name", sorted(TEXTS))
def test_a_row_that_is_lost_is_told_of(name, damage, tmp_path):
    whole, said = taken(tmp_path / name, TEXTS[name])
    lines = TEXTS[name].split("\n")
    for what, text in thinned(damage(TEXTS[name]), MOST):
        changed = re.match(r"line (\d+)", what)
        if changed and not re.search(r"\d", lines[int(changed[1]) - 1]):
            continue  # a table whose titles are damaged is not known for one
        found, told = taken(tmp_path / name, text)
        if shifts.lost(whole, found):
            assert told - said, what


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_a_row_that_a_cut_ends_in_is_read_or_told_of(name, tmp_path):
    _, said = taken(tmp_path / name, TEXTS[name])
    for what, text in thinned(shifts.cuts(TEXTS[name]), MOST):
        cut, told = taken(tmp_path / name, text)
        whole, _ = taken(tmp_path / name, text + TEXTS[name][len(text) :].split("\n")[0] + "\n")
        whole.pop("launches", None)  # the line that begins one holds no figure
        if shifts.lost(whole, cut):
            assert told - said, what
