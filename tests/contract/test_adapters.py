"""What every scheduler adapter promises (nsw/schedulers/adapter.py), over all that are registered."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name

import pytest

from nsw.errors import CommandResult
from nsw.recipe.load import _detect_by_text
from nsw.resources import templates_folder
from nsw.schedulers.adapter import Adapter, Request, Required, Watched
from nsw.schedulers.create import Owner, is_shared, owner_of, schedulers_of_commands
from nsw.schedulers.local import Host
from nsw.schedulers.model import Native, Submission
from nsw.site.names import ADAPTERS, SUBMITS

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Sample:
    """What the system prints on a submission, the id in it, and an array's id where that is another."""

    printed: str
    job: str
    array: str | None = None


# a new adapter needs a line here
SAMPLES = {
    "slurm": Sample("123\n", "123"),
    "pbs": Sample("12.pbs0\n", "12.pbs0", "12[].pbs0"),
    "cobalt": Sample("1234\n", "1234"),
    "lsf": Sample("Job <101> is submitted to queue <normal>.\n", "101"),
    "sge": Sample("12.1-3:1\n", "12"),
    "flux": Sample("ƒM7Zq9AKHno\n", "M7Zq9AKHno"),
    "host": Sample("123.456\n", "123.456"),
}
NAMES = (*ADAPTERS, "host")
LOG = "/c/my campaign/jobs/nsw-abc"


def adapter_of(name: str) -> Adapter:
    made: Adapter = Host() if name == "host" else resolve_name(ADAPTERS[name])()
    return made


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def adapter(name: str) -> Adapter:
    return adapter_of(name)


def request(*tasks: int, **more: object) -> Request:
    sent = Submission("nsw-abc", "j1", Path("/c/j1.sh"), 2, tasks)
    return Request(sent, "/c/my campaign/j1.sh", LOG, **more)


def answered(adapter: Adapter, stdout: str = "", stderr: str = "", code: int = 0, **more: object) -> CommandResult:
    return CommandResult(tuple(adapter.queue_command([])), code, stdout, stderr, **more)


def native(adapter: Adapter, name: str, *tasks: int) -> Native:
    sample = SAMPLES[name]
    job = sample.array or sample.job if len(tasks) > 1 else sample.job
    return Native.of_submission(request(*tasks).submission, job, adapter.capabilities.first_index)


def watched(adapter: Adapter, name: str, *tasks: int) -> Watched:
    return Watched("nsw-abc", native(adapter, name, *tasks), LOG, tasks)


def most(adapter: Adapter) -> tuple[int, ...]:
    return (3, 4, 5) if adapter.capabilities.arrays else (3,)


def test_every_registered_adapter_has_its_template_its_docs_and_its_sample_here(name):
    assert name in SAMPLES
    if name != "host":
        assert (templates_folder() / "job" / f"{name}.sh.j2").exists()
        assert f"`{name}` |" in (ROOT / "docs" / "schedulers.md").read_text()


def test_an_adapter_must_fill_in_twelve_members_at_most():
    """The attributes without a value, and the methods that are abstract; each says what it must promise."""
    unset = {name for name in Required.__annotations__ if not hasattr(Adapter, name)}
    methods = Adapter.__abstractmethods__
    assert len(unset) + len(methods) <= 12
    assert len(inspect.getsource(Required).splitlines()) <= 60
    assert all(getattr(Adapter, name).__doc__ for name in methods)


def test_the_words_of_an_adapter_are_set(name, adapter):
    for word in ("name", "marker", "submit", "queue"):
        assert getattr(adapter, word)
    assert SUBMITS.get(name, adapter.submit) == adapter.submit  # a new adapter needs none
    assert bool(adapter.history) == (type(adapter).history_commands is not Adapter.history_commands)
    assert not adapter.capabilities.throttle or adapter.capabilities.arrays


def test_a_job_script_of_the_system_is_known_for_one_in_the_place_of_a_recipe(adapter, name):
    if name != "host":
        other = _detect_by_text(f"#!/bin/bash\n{adapter.marker} -N x\n", "job")
        assert other is not None
        assert other.description == f"a job script, with lines of {adapter.marker}"


def test_a_submission_holds_its_name_its_log_and_its_script_as_words_of_their_own(adapter):
    tasks = most(adapter)
    argv = adapter.submit_command(request(*tasks))
    assert argv == adapter.submit_command(request(*tasks))
    assert all(isinstance(word, str) for word in argv)
    assert any("nsw-abc" in word for word in argv)
    assert any(LOG in word for word in argv)
    assert ("/c/my campaign/j1.sh" in argv) != adapter.capabilities.script_on_stdin


def test_attempt_and_first_task_reach_the_script(adapter):
    argv = adapter.submit_command(request(7))
    if adapter.capabilities.arguments:
        assert argv[-2:] == ["2", "7"]
    else:
        assert any("NSW_ATTEMPT=2" in word and "NSW_TASK=7" in word for word in argv)


def test_an_adapter_whose_command_others_have_too_says_how_it_is_recognized(adapter, name):
    if name != "host" and is_shared(adapter):
        assert adapter.known_by or adapter.products


def test_a_machine_is_recognized_by_what_the_adapters_say():
    assert schedulers_of_commands({"sbatch", "qsub"}) == ["slurm"]  # Slurm's package brings a qsub of its own
    assert schedulers_of_commands({"qsub", "qconf"}) == ["sge"]
    assert set(schedulers_of_commands({"qsub"})) == {"pbs", "cobalt", "sge"}
    assert schedulers_of_commands({"nvidia-smi"}) == []
    assert owner_of("qsub", "pbs_version = 23.06.06") == Owner("OpenPBS or PBS Professional", "pbs")
    assert owner_of("qsub", "Version: 6.1.2") == Owner("Torque", "")
    assert owner_of("qsub", "unknown option") is None


def test_only_an_id_is_an_id(adapter, name):
    assert adapter.parse_submitted(answered(adapter, SAMPLES[name].printed)) == SAMPLES[name].job
    for printed in ("", "\n", "NOTICE: maintenance on Monday\n"):
        assert adapter.parse_submitted(answered(adapter, printed)) is None


@pytest.mark.parametrize(
    "how",
    [
        {"code": -1, "timed_out": True},
        {"code": 139, "stderr": "Segmentation fault"},
        {"code": 1},
        {"code": 1, "stderr": "the site's wrapper could not write its log"},
    ],
    ids=["timeout", "crash", "silence", "wrapper"],
)
def test_a_failure_that_is_not_understood_is_no_refusal(adapter, how):
    """Refused means certainly not accepted: else nsw would submit a second time what runs already."""
    assert adapter.refusal(answered(adapter, **how)) is None
    assert not adapter.is_full(answered(adapter, **how))


def test_a_success_is_neither_transient_nor_full(adapter, name):
    good = answered(adapter, SAMPLES[name].printed)
    assert not adapter.transient(good)
    assert not adapter.is_full(good)


@pytest.mark.parametrize(
    "how",
    [
        {"code": -1, "timed_out": True},
        {"code": 127, "stderr": "bash: no such command"},
        {"code": 1, "stderr": "connection refused"},
    ],
    ids=["timeout", "missing", "refused"],
)
def test_a_listing_that_failed_says_nothing_about_any_job(adapter, name, how):
    asked = tuple(adapter.queue_command([watched(adapter, name, 3)]))
    failed = CommandResult(asked, how["code"], "", how.get("stderr", ""), timed_out=how.get("timed_out", False))
    assert adapter.parse_queue(failed) is None


@pytest.mark.parametrize("code", [-1, 127], ids=["timeout", "missing"])
def test_a_history_that_could_not_be_asked_says_nothing_about_any_job(adapter, name, code):
    for command in adapter.history_commands([watched(adapter, name, 3)]):
        failed = CommandResult(tuple(command), code, "", "bash: no such command", timed_out=code < 0)
        assert adapter.parse_history(failed) is None


def test_the_names_of_tasks_are_read_as_they_are_written(adapter, name):
    single = native(adapter, name, 3)
    assert adapter.parse_job(adapter.job_of(single, 3)) == (single.job, None)
    if adapter.capabilities.arrays:
        array = native(adapter, name, 3, 4, 5)
        names = [adapter.job_of(array, task) for task in (3, 4, 5)]
        first = adapter.capabilities.first_index
        assert [adapter.parse_job(text) for text in names] == [(array.job, first + n) for n in range(3)]
        assert len({adapter.log_name("nsw-abc", array, task) for task in (3, 4, 5)}) == 3


def test_nothing_is_ended_by_no_command_and_tasks_by_one(adapter, name):
    assert adapter.cancel_command([]) is None
    tasks = most(adapter)
    some = Watched("nsw-abc", native(adapter, name, *tasks), LOG, tasks[:1])
    ended = adapter.cancel_command([some])
    assert ended is not None
    if len(tasks) > 1:
        assert ended != adapter.cancel_command([watched(adapter, name, *tasks)])


def test_a_cancel_that_was_cut_off_is_no_success(adapter):
    assert adapter.cancelled(answered(adapter))
    assert not adapter.cancelled(answered(adapter, code=-1, timed_out=True))


# what a system prints, and with which exit status, when all that it was to hold had ended
NOT_HELD = {
    "slurm": ("Invalid job id specified for job 12\n", 1),
    "pbs": ("qhold: Unknown Job Id 12.pbs0\nqhold: Job has finished 13.pbs0\n", 35),
    "cobalt": ("   No jobs found.\nFailed to match any jobs\n", 0),
    "lsf": ("Job <12>: Job has already finished\n", 255),
    "sge": ('denied: job "12" does not exist\n', 1),
    "flux": ("flux-job: job is inactive\n", 1),
    "host": ("", 0),
}


def test_nothing_is_held_by_no_command_and_what_had_ended_is_no_fault(adapter, name):
    if not adapter.capabilities.hold:
        assert adapter.hold_command([watched(adapter, name, 3)], hold=True) is None
        return
    some = [watched(adapter, name, *most(adapter))]
    assert adapter.hold_command([], hold=True) is None
    assert adapter.hold_command(some, hold=True) != adapter.hold_command(some, hold=False)
    stderr, code = NOT_HELD[name]
    assert adapter.is_hold_accepted(answered(adapter, stderr=stderr, code=code))
    assert adapter.is_hold_accepted(answered(adapter))
    assert not adapter.is_hold_accepted(answered(adapter, stderr="cannot connect to server\n", code=255))
    assert not adapter.is_hold_accepted(answered(adapter, code=-1, timed_out=True))


def test_a_script_on_a_site_is_never_asked_about_with_a_question_that_lists_nothing(adapter, name):
    assert adapter.queue_command([watched(adapter, name, 3)])
    assert adapter.queue_command([Watched("nsw-abc", None, LOG, (3,))])
    assert adapter.sign_of_life_command()
