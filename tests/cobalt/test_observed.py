"""What the adapter makes of what a real Cobalt 1.0.33 printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nsw.errors import CommandResult
from nsw.schedulers.cobalt import Cobalt
from tests.fakes import transcripts

COBALT = Cobalt()
OBSERVED = Path(__file__).parent / "observed"
# transcript:line of a refused qsub -> the key of `resources` that asks for it
KEYS = {
    "02:23": "nodes", "02:27": "time", "02:39": "queue", "02:44": "time", "02:64": "time", "02:82": "nodes", "02:86": "nodes",
    "02:90": "extra", "02:100": "extra", "02:110": "extra", "02:140": "extra", "02:144": "extra", "04:5": "nodes",
    "11:16": "account", "11:45": "queue", "11:59": "queue", "11:94": "time", "11:99": "time",
}  # fmt: skip
OUTSIDE = ("01:118", "02:31", "02:35", "02:122", "02:126", "02:130", "11:21")  # refused, by no key of a recipe
FULL, OUTAGES, USAGE = ("11:112",), ("12:16", "12:112"), ("02:1", "02:12")


def answers(command: str) -> dict[str, CommandResult]:
    """The answers to a command, by transcript and line."""
    found = {}
    for path in sorted(OBSERVED.glob("*.txt")):
        for exchange in transcripts.read(path):
            wrapped = re.fullmatch(
                r"su alice -c '(?:cd \S+; )?(?:export )?PATH=\S+; (.*)'( 2>&1)?", exchange.command, re.DOTALL
            )
            words = re.sub(r"^(time )?(timeout \d+ )?", "", wrapped[1] if wrapped else exchange.command).split()
            if words[0] == command and not {"--help", "--version", "-I"} & {*words}:
                name = f"{path.name[:2]}:{exchange.line}"
                found[name] = CommandResult(tuple(words), exchange.code, exchange.stdout, exchange.stderr)
    return found


def test_every_accepted_submission_has_its_id():
    accepted = {name: result for name, result in answers("qsub").items() if result.returncode == 0}
    ids = {name: COBALT.parse_submitted(result) for name, result in accepted.items()}
    assert len(ids) > 60
    assert all(text is not None and text.isdigit() for text in ids.values())
    assert not any(COBALT.refusal(result) for result in accepted.values())


def test_every_refused_submission_is_recognized_with_the_key_that_asks_for_it():
    refused = {name: result for name, result in answers("qsub").items() if result.returncode != 0}
    known = {name: COBALT.refusal(result) for name, result in refused.items()}
    assert {name: refusal.key for name, refusal in known.items() if refusal and refusal.key} == KEYS
    assert [name for name, refusal in known.items() if refusal and refusal.key is None] == [*OUTSIDE, *FULL]
    assert [name for name, refusal in known.items() if refusal is None] == [*USAGE, *OUTAGES]
    assert all("<Fault" not in refusal.message and "\n" not in refusal.message for refusal in known.values() if refusal)


def test_a_full_queue_and_an_outage_are_recognized():
    results = answers("qsub")
    assert [name for name, result in results.items() if COBALT.is_full(result)] == [*FULL]
    assert [name for name, result in results.items() if COBALT.transient(result)] == [*OUTAGES]


@pytest.mark.parametrize("command", ["qhold", "qrls", "qdel"])
def test_only_an_outage_makes_a_hold_or_a_cancel_fail(command):
    results = answers(command)
    assert results
    for name, result in results.items():
        assert COBALT.is_hold_accepted(result) == (result.returncode == 0 and "Fault" not in result.stderr), name
