"""`nsw history` and `nsw gate --history`: campaigns of many nights, made of one that was really run."""

from __future__ import annotations

import csv
import json
import os
import re
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import yaml

import nsw as api
from nsw.campaign import history
from nsw.engine.folder import CampaignFolder
from tests.nights import make_nights

APP = "{command: 'echo f=$((100 * {{ n }})) g=7', figures: {f: {regex: 'f=(.*) ', unit: images/s}, g: {regex: 'g=(.*)', unit: s}}}"
STATES = Path(__file__).parents[1] / "fixtures/campaigns"


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))  # it knows no campaigns of other tests


@pytest.fixture
def first(nsw, recipe):
    """A campaign of two cases with two runs each."""
    nsw("run", recipe(APP, "matrix: {n: [1, 2]}\nrepeats: 2\n"), "-s", "here", exits=0)
    return next(Path("campaigns").iterdir())


def factors(nights, step=1.0, at=None):
    """Noise of half a per cent, times the step from a night on."""
    noise = np.exp(0.005 * np.random.default_rng(1).standard_normal(nights))
    return list(noise * np.where(np.arange(nights) < (nights // 2 if at is None else at), 1.0, step))


@pytest.fixture
def slower(first):
    """Twelve nights; from the seventh on both cases are 5 % slower, with another driver and commit."""

    def lock(night, text):
        recipe, after = yaml.safe_load(text), night >= 6
        recipe["lock"]["git"] = {"commit": ("b" if after else "a") * 40, "dirty": False, "folder": "/somewhere"}
        recipe["lock"]["tools"] = {
            "driver": "560.1" if after else "550.1",
            "nvcc": "13.1" if night >= 7 else "13.0",
            "ncu": f"2026.{night % 2}",
            "nsys": "2026.4" if night >= 2 else "2026.3",
        }
        return yaml.safe_dump(recipe)

    return make_nights(first, factors(12, 0.95), figure="f", lock=lock)


def test_a_step_of_ten_times_and_more_is_a_factor(nsw, first):
    make_nights(first, factors(12, 20.0), figure="f")
    assert "20 times higher, better, since" in nsw("history").out
    assert "20x higher on" in nsw("history").out


def test_a_line_for_each_case_has_its_last_step_and_what_changed_with_it(nsw, slower):
    done = nsw("history", exits=0)
    lines = done.out.splitlines()
    assert lines[0].startswith("f of t: 12 campaigns")
    assert [line.split()[0] for line in lines if "% on" in line] == ["n=1", "n=2"]
    (sentence,) = [line for line in lines if "worse, since" in line]
    assert "and 1 more case" in sentence
    assert f"nsw compare {slower[5].name} {slower[6].name}" in done.out
    assert "no step" in nsw("history", "g").out
    assert "driver 550.1 to 560.1; nvcc 13.0 to 13.1 (1 night later)" in sentence.replace(", nvcc", "; nvcc")


def test_the_data_have_steps_nights_and_cases(nsw, slower, home):
    data = json.loads(nsw("history", "--json").out)
    assert (data["recipe"], data["figure"], data["campaigns"]) == ("t", "f", 12)
    for case, step in zip(data["cases"], data["steps"], strict=True):
        assert (case["nights"], case["since"], case["missing"]) == (12, slower[6].name, None)
        assert (step["before"], step["since"], step["worse"]) == (slower[5].name, slower[6].name, True)
        assert step["step_pct"] == pytest.approx(-5, abs=1)
        assert step["conditions"] == [
            {"name": "driver", "before": "550.1", "after": "560.1", "nights": 0},
            {"name": "nvcc", "before": "13.0", "after": "13.1", "nights": 1},
        ]
        assert step["programs"].startswith("aaaaaaaaaaaa and bbbbbbbbbbbb")
    assert nsw("history", "-o", "h.csv").code == 0
    rows = list(csv.DictReader((home / "h.csv").read_text().splitlines()))
    assert len(rows) == 24
    assert [row["campaign"] for row in rows if row["step_pct"]] == [slower[6].name] * 2


def test_cases_sites_times_and_folders_choose(nsw, slower, home):
    assert len(json.loads(nsw("history", "--case", "n=2", "--json").out)["cases"]) == 1
    assert json.loads(nsw("history", "--since", "5d", "--json").out)["campaigns"] in {4, 5}
    assert "too few nights: " in nsw("history", "--since", "5d").out
    for words, reason in (
        (["h"], "measured: f, g"), (["--recipe", "u"], "there is no campaign of u"), (["--site", "there"], "--site"),
        (["--case", "n=9"], "--case leaves no case"), (["--root", "nowhere"], "no campaign in nowhere"),
    ):  # fmt: skip
        done = nsw("history", *words, exits=2)
        assert reason in done.err, done.err


def test_campaigns_in_other_folders_are_found_and_a_damaged_one_is_named(nsw, slower, tmp_path, monkeypatch):
    (slower[3] / "tables" / "figures.parquet").write_bytes(b"no table")
    monkeypatch.chdir(tmp_path)
    done = nsw("history")
    assert "11 campaigns" in done.out
    assert f"{slower[3].name} is left out: " in done.out
    assert str(slower[6]) in done.out.replace("\n", "")  # a name that works from here


def test_what_was_measured_is_kept_until_the_campaign_changes(nsw, slower, monkeypatch):
    before = nsw("history", "--json").out
    read = []
    measure = history._measured_fields
    monkeypatch.setattr(history, "_measured_fields", lambda folder: read.append(folder.id) or measure(folder))
    assert nsw("history", "--json").out == before
    assert read == []
    os.utime(slower[2] / "tables")
    nsw("history")
    assert read == [slower[2].name]


def test_a_damaged_file_of_kept_values_is_named(nsw, slower):
    nsw("history")
    from nsw.resources import user_folder

    (user_folder("state") / "history.parquet").write_bytes(b"x" * 5000)
    done = nsw("history", exits=2)
    assert "history.parquet is damaged" in done.err
    assert "remove it" in done.err


@pytest.mark.parametrize("state", [3, 4])
def test_campaigns_of_an_earlier_state_are_part_of_a_history(nsw, home, state):
    with tarfile.open(STATES / f"state-{state}.tar.xz") as packed:
        packed.extractall(home, filter="data")
    folder = next(home.glob("**/campaign.db")).parent
    CampaignFolder(folder).trust()
    done = nsw("history", "--root", folder.parent, exits=0)
    assert "too few nights: 1 of 6" in done.out


def test_a_campaign_that_was_made_elsewhere_is_read_too(nsw, slower, tmp_path):
    for folder in slower:
        (folder / "token").unlink()
    assert json.loads(nsw("history", "--json").out)["steps"][0]["since"] == slower[6].name


def test_a_gate_fails_on_a_step_for_the_worse_until_a_baseline_accepts_it(nsw, slower):
    failed = nsw("gate", "--history", exits=4)
    assert failed.out.startswith("Gate failed: f of t: 2 steps for the worse")
    assert f"nsw baseline set NAME {slower[-1].name}" in failed.out
    data = json.loads(nsw("gate", "--history", "t", "--json").out)
    assert (data["outcome"], len(data["steps"])) == ("failed", 2)
    assert nsw("baseline", "set", "main", slower[2].name).code == 0  # before the step: it accepts nothing
    assert nsw("gate", "--history").code == 4
    assert nsw("baseline", "set", "main", slower[8].name).code == 0
    passed = nsw("gate", "--history")
    assert (passed.code, passed.err) == (0, "")
    assert passed.out.startswith("Gate passed")


def test_a_note_on_the_first_night_accepts_a_step_and_one_that_all_nights_have_does_not(nsw, slower):
    def note(folders, text):
        for folder in folders:
            with closing(sqlite3.connect(folder / "campaign.db")) as ledger, ledger:
                ledger.execute("INSERT OR REPLACE INTO meta VALUES ('note', ?)", (json.dumps(text),))

    note(slower, "nightly")
    assert nsw("gate", "--history").code == 4
    note(slower[6:], "checks on, slower by intent")
    assert nsw("gate", "--history").code == 0


def test_a_gate_does_not_decide_by_few_nights_and_takes_no_rule(nsw, first):
    done = nsw("gate", "--history", exits=5)
    assert "too few nights: 1 of 6" in done.out
    for words in (["--rule", "f: -2%"], ["a", "b"], ["-f", "junit"]):
        assert nsw("gate", "--history", *words).code == 2


def test_a_gate_passes_where_a_step_is_for_the_better(nsw, first):
    make_nights(first, factors(12, 1.05), figure="f")
    assert "better, since" in nsw("history").out
    assert nsw("gate", "--history").code == 0


def test_the_same_is_there_for_python(slower):
    found = api.history("f", cases="n=1")
    assert repr(found) == "<nsw history: f of t, 12 campaigns>"
    assert list(found.cases["since"]) == [slower[6].name]
    assert list(found.steps["after"]) == [slower[6].name]
    assert len(found.nights) == 12


def test_of_a_campaign_of_pairs_the_side_after_the_change_counts(nsw, recipe):
    nsw("run", recipe(APP, "matrix: {n: [2]}\n"), "-s", "here", "--against", "n=1", "--yes", exits=0)
    data = json.loads(nsw("history", "f", "--json").out)
    assert [(case["case"], case["last"]) for case in data["cases"]] == [("n=2", 200)]


def test_the_page_says_what_stepped_and_draws_a_line_a_level(nsw, slower):
    nsw("history", "-o", "history.html", exits=0)
    text = Path("history.html").read_text()
    assert "n=1 (and 1 more case): 5.0 % lower, worse, since" in text.replace("4.9 %", "5.0 %").replace(
        "5.1 %", "5.0 %"
    )
    assert "<h1>2 of 2 cases stepped, 2 for the worse</h1>" in text
    pictures = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(pictures) == 2  # a case each
    for picture in pictures:
        assert picture.count("<path") >= 2  # before the step and since
        assert len(re.findall(r">since \d{4}-\d\d-\d\d<", picture)) == 2
        assert "f (images/s) (from " in picture  # not from zero, where 5 % would be hardly seen
