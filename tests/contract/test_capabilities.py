"""What nsw does about what a batch system says of itself in its capabilities, each on a system made for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nsw.engine.submit import submission_name
from nsw.errors import CommandError, CommandResult
from nsw.plan.model import Job, Plan, Resources, Run
from nsw.resources import templates_folder
from nsw.schedulers.adapter import Adapter, Facts, Line, Refusal
from nsw.schedulers.batch import BatchScheduler, Limits
from nsw.schedulers.model import Answer, Capabilities, Native, Phase, Submission
from nsw.scripts.render import render_job
from nsw.site.names import ADAPTERS

from .test_adapters import adapter_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.schedulers.adapter import Request, Watched

MINUTE = 60


class Plain(Adapter):
    """A system whose queue and history list what a test says."""

    name = "Plain"
    marker = "#PLAIN"
    submit = "psub"
    queue = "pstat"
    history = "pacct"

    def __init__(self, **can: Any) -> None:
        self.capabilities = replace(Capabilities(), **can)  # type: ignore[misc]
        self.listed: list[Line] = []
        self.recorded: list[Line] = []

    def directives(self, job: Job, scratch: str) -> list[str]:  # noqa: ARG002
        return []

    def submit_command(self, request: Request) -> list[str]:
        return ["psub", request.submission.name]

    def parse_submitted(self, result: CommandResult) -> str | None:  # noqa: ARG002
        return "1"

    def refusal(self, result: CommandResult) -> Refusal | None:  # noqa: ARG002
        return None

    def queue_command(self, watched: Sequence[Watched], *, detail: bool = False) -> list[str]:  # noqa: ARG002
        return ["pstat"]

    def parse_queue(self, result: CommandResult) -> list[Line] | None:  # noqa: ARG002
        return self.listed

    def history_commands(self, watched: Sequence[Watched]) -> list[list[str]]:  # noqa: ARG002
        return [["pacct"]]

    def history_by_name_command(self, names: Sequence[str], minutes: int) -> list[str]:  # noqa: ARG002
        return ["pacct"]

    def parse_history(self, result: CommandResult) -> list[Line] | None:  # noqa: ARG002
        return self.recorded

    def parse_facts(self, result: CommandResult) -> Facts:  # noqa: ARG002
        return Facts(history=True)

    def cancel_command(self, watched: Sequence[Watched]) -> list[str] | None:
        return ["pdel"] if watched else None

    def hold_command(self, watched: Sequence[Watched], *, hold: bool) -> list[str] | None:
        return ["phold" if hold else "prls"] if watched else None

    def throttle_command(self, native: Native, limit: int) -> list[str]:  # noqa: ARG002
        return ["palter"]


class Spaced(Plain):
    """A system whose marker holds a blank, and has several spellings."""

    marker = "# flux:"
    marker_pattern = "# ?(?:flux|FLUX):"


def test_a_marker_may_hold_a_blank_and_have_several_spellings():
    system = Spaced()
    assert system.after_marker("#FLUX: -N 2") == " -N 2"
    assert system.options_in("# flux: --nodes=2 -N 2") == [("--nodes", "2"), ("-N", "2")]
    assert system.own_lines(["# flux: -x", "#flux: -y", "-z", "#SBATCH -x"]) == ["# flux: -x", "#flux: -y", "-z"]
    assert Plain().own_lines(["# flux: -x", "#PLAIN -y"]) == ["#PLAIN -y"]
    assert system._directive("-z") == "# flux: -z"


class Way:
    """A transport on which every command succeeds without a word."""

    remote = False

    def __init__(self) -> None:
        self.ran: list[str] = []

    def run(self, argv: Sequence[str], **_: object) -> CommandResult:
        self.ran.append(argv[0])
        return CommandResult(tuple(argv), 0, "me\n" if argv[0] == "id" else "")

    def make_folders(self, folders: Sequence[str]) -> None:
        pass

    def run_many(self, commands: Sequence[Sequence[str]], **_: object) -> list[CommandResult]:
        return [self.run(argv) for argv in commands]

    def read_many(self, paths: Sequence[str], _most: int) -> dict[str, None]:
        return dict.fromkeys(paths)


class System:
    """A batch system with these capabilities, on a clock of its own."""

    def __init__(self, lost_after_s: float = 120, **can: Any) -> None:
        self.adapter, self.way = Plain(**can), Way()
        self.now = 0.0
        self.slept: list[float] = []
        self.said: list[str] = []
        self.scheduler = BatchScheduler(
            self.adapter, self.way, "/c", "c", Limits(lost_after_s=lost_after_s),  # type: ignore[arg-type]
            say=self.said.append, clock=lambda: self.now, sleep=self.slept.append, draw=lambda: 0.5,
        )  # fmt: skip

    def phases(self, one: Submission, at: float) -> list[Phase]:
        """What a poll at this second answers for each task."""
        self.now = at
        return [answer.phase for _, answer in sorted(self.scheduler.poll([one])[one.name].items())]


def submitted(*tasks: int) -> Submission:
    return Submission("one", "j", Path("/c/j.sh"), 1, tasks, native_id="7/0" if len(tasks) > 1 else "7")


@pytest.mark.parametrize(("late", "until"), [(0, 20), (50, 50)], ids=["told at once", "told late"])
def test_an_end_that_is_told_late_is_waited_for_before_a_job_is_lost(late, until):
    system, one = System(lost_after_s=20, late_end_s=late), submitted(0)
    assert system.phases(one, 0) == [Phase.UNKNOWN]
    assert system.phases(one, until - 1) == [Phase.UNKNOWN]
    assert system.phases(one, until) == [Phase.LOST]


@pytest.mark.parametrize(("late", "until"), [(0, 5), (15, 15)], ids=["told at once", "told late"])
def test_an_end_that_is_told_late_is_waited_for_before_a_task_beside_others_is_cancelled(late, until):
    system, one = System(lost_after_s=20, arrays=True, late_end_s=late), submitted(0, 1)
    system.adapter.listed = [Line("7", (1,), "one", Answer(Phase.RUNNING))]
    system.phases(one, 0)
    assert system.phases(one, until - 1) == [Phase.UNKNOWN, Phase.RUNNING]
    assert system.phases(one, until) == [Phase.ENDED, Phase.RUNNING]


def test_an_end_that_comes_late_counts():
    system, one = System(lost_after_s=20, late_end_s=50), submitted(0)
    system.phases(one, 0)
    system.adapter.recorded = [Line("7", None, "one", Answer(Phase.ENDED, clean=True))]
    assert system.phases(one, 30) == [Phase.ENDED]


def test_a_name_that_makes_no_second_job_needs_no_second_look():
    unsure, sure = System(), System(unique_names=True)
    assert unsure.scheduler.find([submitted(0)]) == sure.scheduler.find([submitted(0)]) == {}
    assert len(unsure.slept) == 2
    assert sure.slept == []


@pytest.mark.parametrize(("slow", "says"), [(15, []), (5 * MINUTE, ["5m"])], ids=["seconds", "minutes"])
def test_a_cancel_that_takes_minutes_is_said_once(slow, says):
    system = System(slow_cancel_s=slow)
    system.adapter.listed = [Line("7", None, "one", Answer(Phase.RUNNING))]
    for _ in range(2):
        system.scheduler.cancel([submitted(0)])
    assert len(system.said) == len(says)
    assert all(word in line for word, line in zip(says, system.said, strict=True))
    quiet = System(slow_cancel_s=5 * MINUTE)
    quiet.scheduler.cancel([])
    assert quiet.said == []


@pytest.mark.parametrize(
    ("line", "acts"),
    [
        (Line("7", (0, 1), "one", Answer(Phase.QUEUED), owner="me"), True),
        (Line("7", (0, 1), "one", Answer(Phase.QUEUED)), True),
        (Line("7", (0, 1), "mine", Answer(Phase.QUEUED), owner="me"), False),
        (Line("7", (0, 1), "one", Answer(Phase.QUEUED), owner="somebody"), False),
        (None, False),
    ],
    ids=["own", "no owners", "other name", "other owner", "gone"],
)
def test_a_job_is_changed_only_where_its_id_its_name_and_its_owner_fit(line, acts):
    system, one = System(arrays=True, hold=True, throttle=True), submitted(0, 1)
    system.adapter.listed = [line] if line else []
    system.scheduler.cancel([one])
    system.scheduler.hold([one], hold=True)
    system.scheduler.hold([one], hold=False)
    assert system.scheduler._throttle_array("one", Native("7", 0), 2) is acts
    changed = [word for word in system.way.ran if word in {"pdel", "phold", "prls", "palter"}]
    assert changed == (["pdel", "phold", "prls", "palter"] if acts else [])
    assert len(system.said) == (0 if acts or line is None else 1)


def test_nothing_is_changed_while_it_cannot_be_listed():
    system = System(hold=True)
    system.adapter.listed = None  # type: ignore[assignment]
    with pytest.raises(CommandError, match="nsw changed none"):
        system.scheduler.cancel([submitted(0)])
    with pytest.raises(CommandError, match="nsw changed none"):
        system.scheduler.hold([submitted(0)], hold=True)
    assert set(system.way.ran) == {"pstat"}


def test_a_name_holds_only_what_the_system_allows():
    system = System(name_characters="a-z0-9-", longest_name=40)
    scheduler = system.scheduler
    name = submission_name("c", "p.q_R-j1", 0, 1, scheduler.can.longest_name, scheduler.can.name_characters)
    assert name.startswith("p-q---j1-")


@pytest.mark.parametrize("name", [name for name in ADAPTERS if adapter_of(name).capabilities.restarts == "flagged"])
def test_where_a_job_is_not_told_how_often_it_was_started_its_script_counts(name):
    plan = Plan("t", "here", (), ())
    run = Run("r", "c", {}, "baseline", "baseline", None, 1, ("true",), {}, Resources())
    job = Job("j", Resources(), ((run,),))

    def script(restarts: str) -> str:
        return render_job(plan, job, scheduler=name, campaign="c", scratch="/c", restarts=restarts)

    starts = "\nnsw_count_starts\n"
    assert starts in script("flagged")
    assert "nsw_restart=$nsw_starts" in script("flagged")
    assert "nsw_restart=0" in script("no")


@pytest.mark.parametrize("name", [name for name in ADAPTERS if adapter_of(name).capabilities.restarts == "counted"])
def test_where_a_job_is_told_how_often_it_was_started_its_template_says_it(name):
    text = (templates_folder() / "job" / f"{name}.sh.j2").read_text()
    assert "{%- block restart %}" in text
