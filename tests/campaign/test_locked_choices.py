"""The choices of a lockfile hold for the same chip, tools, files and passes; else they are made again, with a warning."""

from dataclasses import replace
from pathlib import Path

import pytest

from nsw.engine import stages
from nsw.engine.folder import CampaignFolder
from nsw.engine.ledger import Ledger
from nsw.engine.ledger_rows import RECORDED, Choice
from nsw.engine.recipe_lock import Basis, chips_of, choice_mismatch, complete_lock, lock_choices, read_basis
from nsw.errors import CommandResult
from nsw.recipe.model import Lock
from tests.campaign.stand_ins import Met

BASIS = Basis("NVIDIA A100", {"ncu": "2024.1", "driver": "535.1"}, {"prog.sh": "0a"}, ({"counters": {"cover": 0.9}},))
WORDS = ("--kernel-name", "regex:a|b", "--launch-skip", "0")
THEN = Choice(WORDS, 60, "n-1.timeline.r1", "2 kernels")
RECIPE = "nsw: 1\nname: t\nlock: {version: '0', site: s, date: d, files: {prog.sh: 0a}}\npasses: [{counters: {cover: 0.9}}]\n"
HOSTS = "host=a\nncu=2024.1\n=\nindex, name, uuid, driver_version\n0, NVIDIA A100, GPU-1, 535.1\n"


class Run:
    id = "n-1.counters.r1"


class Source:
    id = "n-1.timeline.r1"


class Folder(CampaignFolder):
    trusted = True

    def __init__(self, path):
        super().__init__(path.parent if path else Path())
        self.recipe, self.tables = path, self.path


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    monkeypatch.setattr(stages, "_limit_by_plan", lambda _folder, _run, choice: choice)  # there is no recipe here
    with Ledger(tmp_path / "campaign.db", create=True) as made:
        made.set_meta(RECORDED, lock_choices({Run.id: THEN}, BASIS).model_dump(mode="json"))
        yield made


def choose(ledger, basis, run=Run):
    chooser = Met(Folder(None), ledger, basis)
    found = []
    for _ in range(2):
        try:
            found.append(chooser.choose(run, [Source]))
        except Exception:  # noqa: BLE001  there is no recipe to choose from: it was tried
            found.append(None)
    return found, chooser.said, chooser.warned


def test_recorded_choices_hold_where_everything_is_as_it_was(ledger):
    found, said, warned = choose(ledger, BASIS)
    assert found == [THEN, THEN]
    assert set(warned) == {
        "what n-1.counters.r1 measures is not compared with n-1.timeline.r1: the lockfile does not name the launches"
    }
    assert "as the lockfile records it: 2 kernels" in said[0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"chip": "NVIDIA H100"}, "the chip was NVIDIA A100, and here it is NVIDIA H100"),
        ({"tools": {"ncu": "2025.1", "driver": "535.1"}}, "ncu was 2024.1, and here it is 2025.1"),
        ({"tools": {"ncu": "2024.1"}}, "driver was 535.1, and here it is not known"),
        ({"files": {"prog.sh": "0b"}}, "files of the application have changed"),
        ({"passes": ({"counters": {"cover": 0.8}},)}, "the passes of the recipe have changed"),
    ],
)
def test_they_are_made_again_with_one_warning_where_something_is_not(ledger, change, said):
    found, _, warned = choose(ledger, replace(BASIS, **change))
    assert found == [None, None]
    assert warned == [f"the lockfile's choice does not apply here, and nsw chooses again: {said}"]


def test_a_run_of_which_the_lockfile_knows_nothing_is_chosen_for_without_a_warning(ledger):
    class Other:
        id = "n-2.counters.r1"

    found, _, warned = choose(ledger, BASIS, Other)
    assert (found, warned) == ([None, None], [])


class Transport:
    def run(self, argv, **_more):
        return CommandResult(tuple(argv), 0, HOSTS, "")


def test_a_finished_campaign_records_its_choices_and_what_they_follow_from(tmp_path, ledger):
    folder = Folder(tmp_path / "recipe.lock.yaml")
    folder.recipe.write_text(RECIPE)
    ledger.record_choice(Run.id, THEN)
    complete_lock(folder, ledger, Transport(), "/scratch")
    from nsw.engine.recipe_lock import read_locked

    lock = Lock.model_validate(read_locked(folder)[1]["lock"])
    assert lock.choices == lock_choices({Run.id: THEN}, BASIS)
    assert choice_mismatch(lock.choices, read_basis(folder, ledger, Transport(), "/scratch")) is None


def test_the_chip_is_what_the_jobs_met():
    assert chips_of(HOSTS) == "NVIDIA A100"
    assert chips_of("host=a\n") is None
