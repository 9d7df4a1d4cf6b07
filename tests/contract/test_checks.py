"""A recipe's checks on every batch system: the job writes down what only it sees, and a retry replaces an invalid run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsw.site.names import ADAPTERS

from .campaigns import ran, runs, words
from .fakes import fake

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .fakes import FakePlace

CHECKS = """
check:
- {regex: 'nan', never: true}
- {file: 'out-{{ n }}', at_least: 4B}
- {command: 'grep -q fine out-{{ n }} || { echo out-{{ n }} is bad; exit 3; }'}
"""


@pytest.fixture(params=list(ADAPTERS))
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FakePlace]:
    with fake(request.param, tmp_path) as found:
        yield found


def test_invalid_runs_are_told_by_what_the_job_wrote_down_and_a_retry_does_only_them_again(place):
    body = f"[ {{{{ n }}}} != 2 ] || [ -e {place.work}/cure ] || echo nan; echo fine >out-{{{{ n }}}};"
    body += f" [ {{{{ n }}}} != 3 ] || [ -e {place.work}/cure ] || echo worse >out-3"
    argv = words(place, 3, body)
    recipe = place.work / "recipe.yaml"
    recipe.write_text(recipe.read_text() + CHECKS)
    place.nsw(*argv, exits=1)
    (first, _), (second, nan), (third, worse) = runs(place)
    assert (first, second, third) == ("done", "invalid", "invalid")
    assert nan == "check 1: 'nan' matches, which must never be: stdout:1: nan"
    assert worse.endswith("ended with exit status 3: checks.log:1: out-3 is bad")
    (place.work / "cure").touch()
    place.nsw("retry", "--root", "campaigns", exits=0)
    assert ran(place) == [1, 2, 2, 3, 3]
    assert {state for state, _ in runs(place)} == {"done"}
