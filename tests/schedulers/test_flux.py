"""Flux's adapter alone: its directives, its ids and what its listing says."""

from __future__ import annotations

import pytest

from nsw.errors import CommandResult, RefusedError
from nsw.plan.model import Job, Resources, Run
from nsw.schedulers.flux import Flux
from nsw.schedulers.model import Phase

FLUX = Flux()


def job(**needs):
    resources = Resources(**needs)
    run = Run("r", "c", {}, "baseline", "baseline", None, 1, ("true",), {}, resources)
    return Job("j", resources, ((run,),))


def head(**needs):
    return FLUX.directives(job(**needs), "/c")


def listed(*lines, code=0):
    return FLUX.parse_queue(CommandResult(("flux",), code, "".join(f"{line}\n" for line in lines), ""))


def test_a_slot_is_what_the_job_has_of_a_node():
    assert head(nodes=2, gpus=8, tasks=8, cpus_per_task=4, queue="batch", account="proj") == [
        "# flux: --nodes=2 --nslots=2 --cores-per-slot=16",
        "# flux: --gpus-per-slot=4",
        f"# flux: --time-limit={job().walltime_s}s",
        "# flux: --queue=batch",
        "# flux: --setattr=bank=proj",
    ]


@pytest.mark.parametrize("written", ["#flux: --cwd=/x", "# FLUX: --cwd=/x", "--cwd=/x"])
def test_all_directives_have_one_marker_as_flux_demands(written):
    assert head(extra=(written,))[-1] == "# flux: --cwd=/x"


@pytest.mark.parametrize(("key", "needs"), [("memory", {"memory_bytes": 1}), ("gpus", {"gpus": 3, "nodes": 2})])
def test_what_flux_cannot_count_is_refused_by_its_key(key, needs):
    with pytest.raises(RefusedError) as caught:
        head(**needs)
    assert caught.value.key == key


@pytest.mark.parametrize("printed", ["ƒM7Zq9AKHno", "fM7Zq9AKHno"])
def test_an_id_is_the_same_with_either_letter(printed):
    (line,) = listed(f"{printed}^RUN^^^16^me^nsw-abc^^")
    assert (line.job, line.name, line.owner, line.answer.phase) == ("M7Zq9AKHno", "nsw-abc", "me", Phase.RUNNING)


def test_an_empty_listing_has_no_jobs_and_a_failed_one_says_nothing():
    assert listed("NOTICE: maintenance on Monday") == []
    assert listed(code=1) is None


@pytest.mark.parametrize(
    ("columns", "clean", "cancelled", "over_time", "by_itself"),
    [
        ("COMPLETED^0^16^me^n^^", True, False, False, False),
        ("FAILED^3^16^me^n^^", False, False, False, True),
        ("FAILED^-9^16^me^n^exec^killed", False, False, False, True),
        ("CANCELED^-128^16^me^n^cancel^not wanted ^ any more", False, True, False, False),
        ("TIMEOUT^142^16^me^n^timeout^resource allocation expired", False, False, True, False),
        ("FAILED^^16^me^n^alloc^unsatisfiable request", False, False, False, False),
    ],
)
def test_how_a_job_ended_is_told_by_its_result(columns, clean, cancelled, over_time, by_itself):
    (line,) = listed(f"ƒM7Z^INACTIVE^{columns}")
    found = line.answer
    assert found.phase is Phase.ENDED
    assert (found.clean, found.cancelled, found.over_time, found.by_itself) == (clean, cancelled, over_time, by_itself)


@pytest.mark.parametrize(
    ("printed", "key"),
    [("'x' is not a valid queue", "queue"), ("job submission to batch is disabled: no", "queue"),
     ("Unsatisfiable request", None)],
)  # fmt: skip
def test_a_known_sentence_is_a_refusal(printed, key):
    found = FLUX.refusal(CommandResult(("flux", "batch"), 1, "", f"flux-batch: ERROR: [Errno 22] {printed}\n"))
    assert found is not None
    assert found.key == key
