"""The fake PBS answers the transcripts' commands as the real OpenPBS did."""

from __future__ import annotations

import pytest

from .double import Double
from .replay import SKIPPED, Replay, without_chance
from .transcripts import FOLDER, Step, all_steps, read

FILES = sorted(FOLDER.glob("*.txt"))
FIRST = {"08": 46, "09": 49, "10": 55, "11": 69, "12": 76, "13": 78, "14": 104, "15": 113, "16": 115, "17": 117,
         "18": 119, "19": 130, "20": 171, "21": 201, "02": 9, "03": 20, "04": 24, "05": 26, "06": 40, "07": 43}  # fmt: skip

EARLIER = Step("07", 0, "qsub ok.sh", "alice", "/home/alice/w")  # a job that file 08 lists


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_answers_as_the_real_one(path, tmp_path):
    root = tmp_path / "p"
    faults = []
    with Double(root, clock="virtual", first=FIRST.get(path.name[:2], 1), managers=["root"]) as double:
        replay = Replay(double, root / "home", root / "spool")
        replay.prepare()
        if path.name.startswith("08"):
            replay.run(EARLIER)
        for step in read(path):
            found = replay.follow(step, without_chance)
            if found:
                faults.append(found)
    assert not faults, "\n\n".join(faults)


def test_all_but_a_few_commands_of_the_transcripts_are_compared():
    commands = [step.command for step in all_steps()]
    assert len(commands) > 500
    assert set(SKIPPED) <= set(commands)
    assert len(SKIPPED) <= 7
