"""Columns: those of rows that are chosen and joined are the same as of a list of rows."""

import pytest

from nsw.tables.columns import Columns

ROWS = [{"name": f"k{at}", "ns": at} for at in range(4)] + [{"name": "k4"}]


@pytest.mark.parametrize("places", [[], [0, 1, 2, 3, 4], [1, 2], [0, 3], [4, 2]])
def test_chosen_rows_are_those_at_their_places(places):
    chosen = Columns.from_rows(ROWS).at(places)
    assert [*chosen.rows("name", "ns")] == [(ROWS[at]["name"], ROWS[at].get("ns")) for at in places]
    assert len(chosen) == len(places)


def test_joined_rows_follow_each_other_and_a_column_is_made_once():
    made = []
    part = Columns(1, lambda name: made.append(name) or [name])
    joined = Columns.joined([part, Columns.from_rows(ROWS), part])
    assert joined["name"] == ["name", "k0", "k1", "k2", "k3", "k4", "name"]
    assert (len(joined), joined["name"], made) == (7, joined["name"], ["name"])
