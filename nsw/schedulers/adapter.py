"""The contract between nsw and a batch system: one adapter a file, pure functions over text.

An adapter turns submissions into argument lists and the output of commands into answers. It runs nothing, waits for
nothing and remembers nothing: nsw/schedulers/batch.py does that, over any transport. docs/extending/scheduler.md shows
how to write one.
"""

from __future__ import annotations

import re
import shlex
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from nsw.errors import CommandResult, Diagnostic, RefusedError, UsageError
from nsw.recipe.units import Fault, format_duration, parse_duration
from nsw.resources import csv_rows
from nsw.schedulers.model import Answer, Capabilities, Native, Phase, Submission, spans

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

    from nsw.plan.model import Job, Resources
    from nsw.recipe.load import LoadedRecipe
    from nsw.recipe.model import Resources as RecipeResources
    from nsw.site.load import LoadedSite
    from nsw.site.model import Site


@dataclass(frozen=True, slots=True)
class Request:
    """One submission, ready to be turned into a command.

    Attributes:
        submission: Its name, attempt and tasks.
        script: Path of the job script on the site.
        log: Path on the site for what the job script prints, without an ending; taken literally.
        comment: Names the campaign, where the system keeps a comment with a job.
        throttle: How many array tasks may run at a time; None for no limit.
        after: Ids of jobs that must succeed before this one starts; if one fails, this one must end.
        walltime_s: A time limit that replaces the script's own, in seconds.
    """

    submission: Submission
    script: str
    log: str
    comment: str = ""
    throttle: int | None = None
    after: tuple[str, ...] = ()
    walltime_s: int | None = None

    @property
    def limit(self) -> int | None:
        """The number of array tasks that may run at a time; None where `throttle` does not restrict the array."""
        return self.throttle if self.throttle is not None and self.throttle < len(self.submission.tasks) else None


@dataclass(frozen=True, slots=True)
class Watched:
    """A submission that a poll asks about: its name, its id if known, and `Request.log`."""

    name: str
    native: Native | None
    log: str
    tasks: tuple[int, ...] = (0,)

    @classmethod
    def of_submission(cls, submission: Submission, jobs: str) -> Watched:
        """A submission, with the folder of logs."""
        native = Native.parse(submission.native_id)
        return cls(submission.name, native, f"{jobs}/{submission.name}", tuple(submission.tasks))


@dataclass(frozen=True, slots=True)
class Line:
    """One job, or array tasks with the same answer, in a listing.

    `indices` is None for a job that is no array. `vague`: the line does not name all tasks it stands for, or not the
    reason of each; `queue_command(detail=True)` would. `name` is None where a listing has no names: the id decides.
    `owner` is None where a listing has only the user's own jobs.
    """

    job: str
    indices: Sequence[int] | None
    name: str | None
    answer: Answer
    vague: bool = False
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a submission was refused: the command's message, the key of `resources` that asks for it, what to do.

    `certain` is False for words that also come of submissions that were accepted: nsw then looks the job up as after
    any doubt, and believes them when they came several times.
    """

    message: str
    key: str | None = None
    hint: str | None = None
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Facts:
    """Settings of a cluster, read once.

    `history`: whether it still knows jobs that left its queue. `throttle`: whether this version of the system can
    limit the running tasks of an array, where `capabilities.throttle` says that others can.
    """

    version: str = ""
    longest_array: int | None = None
    history: bool = False
    throttle: bool = True


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue or partition that a site's batch system lists.

    Attributes:
        name: Its name.
        gpus: GPUs a node; 0 for none, None where the listing does not tell.
        kind: What the listing calls the GPUs, such as a100; empty where it does not. Of several that with most a node.
        other_kinds: The others.
        walltime: The longest time of a job in seconds; None without a limit or where it is not told.
        is_default: Whether jobs go there that name none.
    """

    name: str
    gpus: int | None = None
    kind: str = ""
    walltime: int | None = None
    is_default: bool = False
    other_kinds: tuple[str, ...] = ()


# what a command says when it refuses (a pattern), the key of `resources` that asks for that, and what to do
KnownRefusal: TypeAlias = "tuple[str, str | None, str | None]"


@cache
def known_refusals(system: str) -> tuple[KnownRefusal, ...]:
    """The rows of refusals.csv of a batch system, in the order in which they are tried."""
    rows = csv_rows("schedulers/refusals.csv")
    return tuple(
        (row["said"], row["key"] or None, row["what_to_do"] or None) for row in rows if row["scheduler"] == system
    )


@cache
def known_answers(system: str) -> dict[str, Answer]:
    """What a batch system's own words for a job's state or end mean, from states.csv."""
    answers: dict[str, Answer] = {}
    for row in csv_rows("schedulers/states.csv"):
        if row["scheduler"] == system:
            marks: dict[str, Any] = dict.fromkeys(row["marks"].split(), True)
            answers[row["state"]] = Answer(Phase(row["phase"]), row["sentence"] or None, **marks)
    return answers


@cache
def refused_options(system: str) -> dict[str, str]:
    """The options of a batch system that a line of the recipe's own may not have, each with the reason."""
    rows = csv_rows("schedulers/refused_options.csv")
    return {row["option"]: row["reason"] for row in rows if row["scheduler"] == system}


def explain_refusal(message: str, known: Iterable[KnownRefusal]) -> Refusal | None:
    """The refusal in these words, with the key and the hint of the first pattern that fits; None where none does."""
    for pattern, key, hint in known:
        if re.search(pattern, message, re.IGNORECASE):
            return Refusal(message, key, hint)
    return None


def refused_option(option: str, reason: str, hint: str | None = None) -> RefusedError:
    """The error for a line of `extra` that sets what nsw sets itself.

    Args:
        option: The option, as it is written.
        reason: Why it cannot be there.
        hint: What to do.
    """
    return RefusedError(f"resources.extra cannot hold {option}: {reason}", key="extra", hint=hint)


def gpus_per_node(needs: Resources, reason: str, way_out: str = "") -> int:
    """The GPUs of each node of a job, for a batch system that asks for them so.

    Args:
        needs: What the job asks for.
        reason: Why they must be the same on each node.
        way_out: What may be done instead.

    Raises:
        RefusedError: The nodes cannot have the same number.
    """
    if needs.gpus % needs.nodes:
        raise RefusedError(
            f"{needs.gpus} GPUs cannot be divided equally among {needs.nodes} nodes, {reason}",
            key="gpus",
            hint=f"such as gpus: {-(-needs.gpus // needs.nodes) * needs.nodes}{way_out}",
        )
    return needs.gpus // needs.nodes


def directive_value(option: str, value: str, plain: str, reader: str) -> str:
    """The value of a directive's option, in quotes unless it fits `plain`, for a reader that knows no escapes.

    Args:
        option: The option's letters, for the error.
        value: Its value.
        plain: Pattern of values that need no quotes.
        reader: Who reads the line, for the error.

    Raises:
        UsageError: It holds a control character, or both kinds of quotes.
    """
    if re.search(r"[\x00-\x1f\x7f]", value):
        raise UsageError(f"resources: -{option} holds a control character: {value!r}")
    if re.fullmatch(plain, value):
        return value
    mark = "'" if '"' in value else '"'
    if mark in value:
        raise UsageError(f"resources: -{option} holds both kinds of quotes, which {reader} cannot read: {value}")
    return f"{mark}{value}{mark}"


def parse_time_limit(text: str) -> int | None:
    """Parse the seconds of a limit that a listing prints, `1-00:00:00` or `30:00`; None where it is no time."""
    text = text.strip()
    try:
        return parse_duration(f"00:{text}" if text.count(":") == 1 and "-" not in text else text)
    except Fault:
        return None


def limit_words(text: str) -> str | None:
    """`1h30m` for `01:30:00`; None for what is no time."""
    seconds = parse_time_limit(text) if ":" in text else None
    return None if seconds is None else format_duration(seconds)


def job_ids(watched: Iterable[Watched]) -> list[str]:
    """The ids of these, each once."""
    return list(dict.fromkeys(job.native.job for job in watched if job.native))


def task_words(
    watched: Iterable[Watched], word: Callable[[str, str], str], *, word_per_range: bool = False
) -> list[str]:
    """The words by which a command takes these jobs, of an array only the tasks named, such as `7_0-3,7`.

    Args:
        watched: The jobs.
        word: Makes a word of an id and its ranges.
        word_per_range: Make a word for each range, instead of one for all.
    """
    words: list[str] = []
    for job in watched:
        if job.native is None:
            continue
        ranges = spans(index for task in job.tasks if (index := job.native.index(task)) is not None)
        range_words = ranges if word_per_range else [",".join(ranges)]
        words += [word(job.native.job, part) for part in range_words] if ranges else [job.native.job]
    return words


def split_words(words: Sequence[str], size: int = 200) -> list[Sequence[str]]:
    """Lists that fit on a command line each."""
    return [words[at : at + size] for at in range(0, len(words), size)]


class Required(ABC):
    """What every batch system has: five names and four methods. All else has a default, in the classes below."""

    name: ClassVar[str]  # for sentences, such as "Slurm"
    marker: ClassVar[str]  # how nsw begins a directive line of a job script, such as "#SBATCH"
    submit: ClassVar[str]  # the command that submits, for sentences and counters
    queue: ClassVar[str]  # the command that lists, likewise
    submitted: ClassVar[str]  # pattern of a line that `submit` prints, with the job's id as its group

    capabilities: ClassVar[Capabilities] = Capabilities()

    @abstractmethod
    def submit_command(self, request: Request) -> list[str]:
        """The command that submits: an array when the submission holds several tasks.

        The batch system must take the whole submission or nothing, and keep its name for as long as it knows the job.
        """

    @abstractmethod
    def queue_command(self, watched: Sequence[Watched], *, detail: bool = False) -> list[str]:
        """One command that lists the user's jobs, at least those watched that still wait or run.

        Args:
            watched: The submissions of interest.
            detail: List each array task on a line of its own, where the plain listing may be vague.
        """

    @abstractmethod
    def parse_queue(self, result: CommandResult) -> list[Line] | None:
        """The listed jobs; None when the system could not be asked, which says nothing about any job.

        A job that is not listed must be gone from the queue, not merely hidden.
        """

    @abstractmethod
    def cancel_command(self, watched: Sequence[Watched]) -> list[str] | None:
        """One command to end all of these, for an array only the tasks named; None when there is nothing to end."""


# how directives of batch systems begin, also of those unknown here; several systems read #BB and #DW, of burst buffers
_DIRECTIVE = re.compile(r"#(?:[A-Z]{3,}:?|\$| ?[a-z]+:)(?:\s|$)")


class Scripts(Required):
    """The directives of job scripts: those that nsw writes, and those that people wrote."""

    # pattern of how directive lines begin, where `marker` is not the only spelling
    marker_pattern: ClassVar[str] = ""
    # keys of `resources` and of a site that it understands beyond nodes, gpus, tasks, cpus, memory, time, extra
    keys: ClassVar[frozenset[str]] = frozenset({"queue", "account"})
    # what options ask for: a key of a site or of `resources`, or name, output, tasks, per_node, cpus, node_cpus,
    # node_gpus, task_gpus, chunk
    asks: ClassVar[Mapping[str, str]] = MappingProxyType({})
    flags: ClassVar[frozenset[str]] = frozenset()  # options without a value
    time_units: ClassVar[tuple[int, int]] = (60, 1)  # seconds of the last part of a limit: of one (90), of two (1:30)
    variables: ClassVar[str] = ""  # how the names of variables begin that jobs get

    def head(self, job: Job, scratch: str, extra: list[str]) -> list[str]:  # noqa: ARG002
        """The directive lines of a job's script; those of `extra`, with their markers, are among them.

        Args:
            job: Its resources count GPUs and tasks over all nodes; its walltime is in seconds.
            scratch: The campaign's folder on the site.
            extra: The recipe's own lines.

        Raises:
            UsageError: A value cannot be written on such a line.
            RefusedError: A line of `extra` asks for what nsw must set itself.
        """
        return []

    def unwanted(self, line: str) -> tuple[str, str] | None:  # noqa: ARG002
        """The option of such a line of `extra` that sets what nsw must set itself, and why it cannot be there."""
        return None

    def after_marker(self, line: str) -> str | None:
        """What a directive line holds behind its marker; None for a line that is no directive of this system."""
        match = re.match(self.marker_pattern or re.escape(self.marker), line)
        return match and line[match.end() :]

    def options_in(self, line: str) -> list[tuple[str, str]]:
        """The options of a directive line with their values, such as ("--nodes", "2")."""
        text = self.after_marker(line) or ""
        try:
            return _parse_options(shlex.split(text, comments=True), self.asks, self.flags)
        except ValueError:  # a quote that does not end
            return _parse_options(text.split(), self.asks, self.flags)

    def requested_keys(self, option: str, value: str) -> list[tuple[str, str]]:
        """What an option asks for, with words of `asks`; [] where nsw has no key for it."""
        key = self.asks.get(option)
        return [] if key is None else [(key, value)]

    def directives(self, job: Job, scratch: str) -> list[str]:
        """The directive lines of one job script; each task of an array gets what they ask for.

        Raises:
            UsageError: A value cannot be written on such a line.
            RefusedError: A line of the recipe's `extra` asks for what nsw must set itself.
        """
        return self.head(job, scratch, [self._directive(line) for line in self.own_lines(job.resources.extra)])

    def own_lines(self, lines: Iterable[str]) -> list[str]:
        """The lines of `extra` less those of other batch systems."""
        return [line for line in lines if self.after_marker(line) is not None or not _DIRECTIVE.match(line)]

    def _directive(self, line: str) -> str:
        if "\n" in line or "\r" in line:
            raise UsageError(f"resources.extra: a line cannot hold a line break: {line!r}")
        text = line if line.startswith("#") else f"{self.marker} {line}"
        try:
            if self.after_marker(text) is not None and (option := self.unwanted(text)):
                raise refused_option(*option)
        except RefusedError as fault:
            fault.line = line
            raise
        return text


class Messages(Required):
    """What commands print when they fail. Patterns are regular expressions in which capitals count as small letters."""

    passing: ClassVar[str] = ""  # a fault of the moment, which proves nothing about jobs
    full: ClassVar[str] = ""  # a refusal only because enough jobs are in the queue already
    over: ClassVar[str] = ""  # what commands print about jobs that had ended before
    memory: ClassVar[str] = ""  # in a job's output the words, as the group, that report too much memory
    noise: ClassVar[str] = r"^\s*$"  # lines of complaints without information
    preamble: ClassVar[str] = ""  # how the other lines begin

    def parse_submitted(self, result: CommandResult) -> str | None:
        """The job id that a successful submission printed; None when no line, or several, could be one."""
        lines = (re.fullmatch(self.submitted, line.strip()) for line in result.stdout.splitlines())
        ids = {match[1] for match in lines if match}
        return ids.pop() if len(ids) == 1 else None

    def refusal(self, result: CommandResult) -> Refusal | None:  # noqa: ARG002
        """Why a failed submission was certainly not accepted; None when that is not certain.

        nsw looks up by name whatever is not a known refusal, so None is always safe.
        """
        return None

    def is_full(self, result: CommandResult) -> bool:
        """Whether a submission was refused only because enough jobs are in the queue already."""
        certain = result.returncode > 0 and not result.killed and not self.transient(result)
        return certain and _is_found_ignoring_case(self.full, result.stderr)

    def transient(self, result: CommandResult) -> bool:
        """Whether a command failed for a moment, which says nothing about jobs; questions are asked again."""
        return result.timed_out or _is_found_ignoring_case(self.passing, result.stderr)

    def plain(self, result: CommandResult) -> CommandResult:
        """The result of a command without noise, such as the traceback of a dead server."""
        return result

    def complaints(self, result: CommandResult) -> list[str]:
        """The lines of an error that say what is wrong, each once."""
        lines = [line for line in result.stderr.splitlines() if not _is_found_ignoring_case(self.noise, line)]
        return list(dict.fromkeys(filter(None, (re.sub(self.preamble, "", line).strip() for line in lines))))

    def killed_by_limit(self, log: str) -> Answer | None:
        """Which limit ended a job, by what the system wrote into its output; None where it wrote nothing of that."""
        match = re.search(self.memory, log, re.MULTILINE | re.IGNORECASE) if self.memory else None
        return match and Answer(Phase.ENDED, f"out of memory: {match[1].strip()}")

    def cancelled(self, result: CommandResult) -> bool:
        """Whether everything named has ended or will; jobs that had ended before are no fault."""
        lines = [line for line in (result.stdout + result.stderr).splitlines() if line.strip()]
        had_ended = bool(lines) and all(_is_found_ignoring_case(self.over, line) for line in lines)
        return not result.timed_out and (result.returncode == 0 or had_ended)


class History(Required):
    """What is known of jobs that have left the queue."""

    history: ClassVar[str] = ""  # the command that knows ended jobs, for sentences
    # why an accepted job may be in neither queue nor history from the first poll on, as a part of a sentence
    vanished: ClassVar[str] = ""

    def history_commands(self, watched: Sequence[Watched]) -> list[list[str]]:  # noqa: ARG002
        """Ask about jobs that the queue no longer lists. They have ids, or the history is in files named after them."""
        return []

    def history_by_name_command(self, names: Sequence[str], minutes: int) -> list[str] | None:  # noqa: ARG002
        """Ask about jobs of the last minutes by their names; None where ended jobs cannot be found by name."""
        return None

    def parse_history(self, result: CommandResult) -> list[Line] | None:  # noqa: ARG002
        """The ended jobs that one of these commands listed; None when it could not be asked."""
        return []

    def no_history(self, result: CommandResult) -> bool:  # noqa: ARG002
        """Whether an answer says that there is no history, now and later."""
        return False

    def ends_command(self, watched: Sequence[Watched]) -> list[str] | None:  # noqa: ARG002
        """Ask the queue for the exit statuses of jobs that it lists as failed; None where its listing has them."""
        return None

    def parse_ends(self, result: CommandResult) -> list[Line]:  # noqa: ARG002
        """The failed jobs that this command listed; none where it could not be asked."""
        return []


class Holding(Messages):
    """Changes of jobs that were submitted."""

    def throttle_command(self, native: Native, limit: int) -> list[str] | None:  # noqa: ARG002
        """Change how many tasks of an array run at a time; None where that cannot be changed."""
        return None

    def hold_command(self, watched: Sequence[Watched], *, hold: bool) -> list[str] | None:  # noqa: ARG002
        """Keep what waits of these from starting, or let it go; None where there is nothing to hold."""
        return None

    def is_hold_accepted(self, result: CommandResult) -> bool:
        """Whether everything named is held or released; jobs that had ended before are no fault."""
        return self.cancelled(result)

    def limit_command(self, jobs: str, running: int) -> list[str] | None:  # noqa: ARG002
        """Let only so many jobs of a campaign, whose logs are in the folder `jobs`, run at a time, 1 or more.

        None where nsw must limit how many it submits.
        """
        return None

    def owners_command(self, watched: Sequence[Watched]) -> list[str] | None:
        """List the jobs that have these ids now, whoever owns them, for `parse_queue`.

        nsw runs it before it ends, holds or throttles jobs by their ids, which batch systems give out again. None where
        the commands act by name.
        """
        return self.queue_command(watched)


class Survey(History):
    """What a machine or a cluster has, and whether it is this system."""

    # how to recognize the system where others have a `submit` of the same name: a command that only it has, or patterns
    # for what `SUBMIT --version` prints, by the name of the product
    known_by: ClassVar[str] = ""
    products: ClassVar[Mapping[str, str]] = MappingProxyType({})
    relatives: ClassVar[Mapping[str, str]] = MappingProxyType({})  # likewise, of systems that it does not drive
    # prefixes of environment variables that would change what the commands do or print, and those that stay
    cleared_variables: ClassVar[tuple[str, ...]] = ()
    kept_variables: ClassVar[tuple[str, ...]] = ()
    # commands that ask: what every user may ask and costs little; the cluster's settings; for a new sites file the
    # queues that take jobs, and the user's accounts
    sign_of_life: ClassVar[Sequence[str]] = ()
    facts_command: ClassVar[Sequence[str]] = ()
    queues_command: ClassVar[Sequence[str]] = ()
    accounts_command: ClassVar[Sequence[str]] = ()

    def sign_of_life_command(self) -> list[str]:
        """A command that every user may run and that costs little."""
        return list(self.sign_of_life) or self.queue_command(())

    def parse_facts(self, result: CommandResult) -> Facts:  # noqa: ARG002
        """The settings that `facts_command` printed; what is missing is taken as the system's default."""
        return Facts(history=bool(self.history))

    def parse_queues(self, result: CommandResult) -> list[Queue]:  # noqa: ARG002
        """The queues that `queues_command` printed; lines of another form are left out."""
        return []

    def parse_accounts(self, result: CommandResult) -> list[str]:
        """The names that `accounts_command` printed, one a line; lines that are none are left out."""
        names = (line.strip() for line in result.stdout.splitlines())
        return list(dict.fromkeys(name for name in names if re.fullmatch(r"[\w.-]+", name)))

    def test_command(self, script: str) -> list[str] | None:  # noqa: ARG002
        """Ask whether and when a script could run, without submitting it; None where that cannot be asked."""
        return None

    def parse_test(self, result: CommandResult) -> str | None:  # noqa: ARG002
        """When it would start; None when it was refused."""
        return None

    def nodes_command(self, result: CommandResult) -> Sequence[str] | None:  # noqa: ARG002
        """List the nodes, where such a refusal by the test may speak of their present states alone; else None."""
        return None

    def down_nodes(self, script: str, result: CommandResult) -> list[str]:  # noqa: ARG002
        """Of this listing the nodes that are away now and for which a script's job would wait, with their states.

        Empty where it would be refused even if all nodes were up.
        """
        return []


class Adapter(Scripts, Holding, Survey):
    """A batch system. Fill in what `Required` lists, and override what yours can do of the capabilities.

    An attribute that is empty stands for what a system does not have.
    """

    element: ClassVar[str] = "{}_{}"  # what the commands call an element of an array, by the id and the index
    log_ending: ClassVar[str] = "log"  # of the file, in the folder of logs, with what a job script printed

    def job_of(self, native: Native, task: int) -> str:
        """What the system's own commands call a task of a submission."""
        index = native.index(task)
        return native.job if index is None else self.element.format(native.job, index)

    def parse_job(self, text: str) -> tuple[str, int | None]:
        """The id and array index in the job id that a job script wrote into its status file."""
        match = re.fullmatch(r"(.+)[_[]([0-9]+)\]?", text)
        return (match[1], int(match[2])) if match else (text, None)

    def log_name(self, submission: str, native: Native | None, task: int) -> str:
        """The file, in the folder of logs, with what the job script of a task printed.

        Args:
            submission: The submission's name.
            native: Its id; None: not known.
            task: The task.
        """
        index = None if native is None else native.index(task)
        return f"{submission}{'' if index is None else f'.{index}'}.{self.log_ending}"


def _is_found_ignoring_case(pattern: str, text: str) -> bool:
    """Whether an expression is found in a text, in any case; an empty one never is."""
    return bool(pattern) and re.search(pattern, text, re.IGNORECASE) is not None


def _parse_options(words: list[str], with_value: Container[str], flags: Container[str]) -> list[tuple[str, str]]:
    """Parse options: `--name=value`, `--name value`, `-n value` and, for known options, `-nvalue`."""
    pairs = []
    while words:
        word = words.pop(0)
        option, equals, value = word.partition("=")
        if not option.startswith("--") and len(word) > 2 and word[:2] in with_value and option not in with_value:
            pairs.append((word[:2], word[2:]))
        elif equals:
            pairs.append((option, value))
        else:
            has_value = option not in flags and words and not re.match(r"-\D", words[0])
            pairs.append((option, words.pop(0) if has_value else ""))
    return pairs


# keys of `resources` and of sites that not every system has a word for
_OPTIONAL: Final = ("queue", "partition", "account", "qos", "gres", "reservation", "constraint", "exclusive")


def refused_keys(adapter: Adapter, loaded: LoadedRecipe, loaded_site: LoadedSite) -> list[Diagnostic]:
    """A diagnostic for each key for which this batch system has no option.

    A lockfile writes every key with its value: `exclusive: false` asks for nothing.

    Args:
        adapter: The batch system.
        loaded: The recipe.
        loaded_site: The site.
    """
    return [
        document.document.diagnostic(
            (*path, key),
            f"{adapter.name} has no option for {key}",
            key=True,
            hint=f"leave it out, or write a line of {adapter.name}'s own: extra: ['{adapter.marker} ...']",
        )
        for document, path, values in _resource_documents(loaded, loaded_site)
        for key in _OPTIONAL
        if key not in adapter.keys and document.document.node((*path, key)) is not None and getattr(values, key, None)
    ]


def foreign_lines(adapter: Adapter, loaded: LoadedRecipe, loaded_site: LoadedSite) -> list[Diagnostic]:
    """A warning for each line of `extra` that is another batch system's and is left out.

    Args:
        adapter: The batch system.
        loaded: The recipe.
        loaded_site: The site.
    """
    warnings = []
    for document, path, values in _resource_documents(loaded, loaded_site):
        for number, line in enumerate(values.extra):
            if not adapter.own_lines([line]):
                warnings.append(
                    document.document.diagnostic(
                        (*path, "extra", number),
                        f"this line is ignored: lines of {adapter.name} begin with {adapter.marker}",
                    )
                )
    return warnings


def place_of_line(
    loaded: LoadedRecipe, loaded_site: LoadedSite, line: str
) -> tuple[LoadedRecipe | LoadedSite, tuple[str | int, ...]] | None:
    """The document with this line of `extra`, and its path there.

    Args:
        loaded: The recipe.
        loaded_site: The site.
        line: The line, as it is written.
    """
    for document, path, values in _resource_documents(loaded, loaded_site):
        if line in values.extra:
            return document, (*path, "extra", list(values.extra).index(line))
    return None


def _resource_documents(
    loaded: LoadedRecipe, loaded_site: LoadedSite
) -> Iterator[tuple[LoadedRecipe | LoadedSite, tuple[str, ...], RecipeResources | Site]]:
    """The documents that ask for resources, each with the path of the values and the values."""
    yield loaded, ("resources",), loaded.recipe.resources
    yield loaded_site, ("sites", loaded_site.site.name), loaded_site.site
