"""Slurm: the commands to ask it with, and what its answers mean. Pure: argument lists out, text in."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from nsw.errors import CommandResult, UsageError
from nsw.recipe.units import format_clock, format_memory
from nsw.resources import csv_rows
from nsw.schedulers import adapter, slurm_nodes
from nsw.schedulers.adapter import Adapter, Facts, Line, Queue, Refusal, Request, Watched, job_ids, task_words
from nsw.schedulers.model import FAULTS, Answer, Capabilities, Native, Phase, parse_spans, spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.plan.model import Job

_GRES: Final = re.compile(r"gpu(?=[:,(]|$)(?::(?!\d+(?:[(,]|$))([^:,(]+))?(?::(\d+))?")  # gpu:a100:4(S:0-1), gpu:4, gpu
_GRES_OPTIONS: Final = frozenset({"--gres", "--tres-per-task", "--tres-per-node"})
# 4, gpu:a100:4, gpu:1g.10gb:1 (MIG)
_ASKED_GPUS: Final = re.compile(
    r"(?:(?:gres/)?gpu:)?(?:(?=\d*[A-Za-z])([\w.-]+):)?(\d+)|gpu(?::(?=\d*[A-Za-z])([\w.-]+))?"
)
_UNIT: Final = "\x1f"  # no state, reason or name of nsw's holds it
_SQUEUE_FIELDS: Final = ("%F", "%K", "%T", "%j", "%r", "%l", "%u")
_END_FIELDS: Final = ",".join(f"{field}:|" for field in ("ArrayJobID", "ArrayTaskID", "State", "Name", "exit_code"))
_SACCT_FIELDS: Final = ("JobID", "JobName", "State", "ExitCode", "NodeList", "Timelimit")
_SACCT: Final = ("sacct", "-P", "-n", "-X", f"--delimiter={_UNIT}", "-o", ",".join(_SACCT_FIELDS))
_LONGEST_LIST: Final = 500  # ids on one command line
_SEVERAL: Final = re.compile(r",(?=[^ _])")  # `ReqNodeNotAvail, UnavailableNodes:n1` is one reason
_INDEX: Final = re.compile(r"^(?P<base>\d+)(?:_(?:(?P<index>\d+)|\[(?P<ranges>[^\]]*)\]?.*))?(?:\+0)?$")
_NO_SUCH_JOB: Final = "Invalid job id specified"
# what `sbatch --test-only` says of a job that no node can run, and of one whose nodes are away
_OF_STATES: Final = (
    "Requested node configuration is not available|Requested nodes are busy"
    "|Required node not available|Nodes required for job are DOWN"
)
# sbatch's own verdict that nothing was submitted; a site's wrapper may fail with other words after it was
_VERDICT: Final = re.compile(
    r"Batch job submission failed: |allocation failure: |unrecognized option|option requires an argument"
    r"|Failed to validate job spec|Invalid directive found in batch script|This does not look like a batch script"
    r"|Unable to open file"
)
# nothing reached the controller: asking again is safe, even for sbatch
_NOT_SENT: Final = "connect failure|Connection refused|No route to host|Resource temporarily unavailable|fork: retry"
# the commands are there, and nothing to use them with
_UNUSABLE: Final = (
    "Could not establish a configuration source|Unable to process configuration file|Unable to resolve"
    "|Unable to establish control machine address|authentication error|SlurmctldHost"
    "|Incompatible versions of client and server code"
)
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.,:@%+/=*|&()\[\]~^!<>-]+")


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a job waits: a sentence, and of one that will wait for ever what to do.

    `may_run`: an earlier launch of it may run all the same. `of`: whether it is a reason to wait (`wait`), of an end
    (`end`; after a hold, a requeue or a wait for others Slurm keeps the reason to wait, be the job over), or of
    `either`: where somebody cancelled the job such a one is left from before.
    """

    sentence: str
    todo: str | None = None
    may_run: bool = False
    held: bool = False  # by its user
    of: str = "wait"

    @property
    def never(self) -> bool:
        """Whether it will wait for ever if nobody does anything."""
        return self.todo is not None


@cache
def _states() -> dict[str, dict[str, str]]:
    """The rows of slurm_states.csv by state: its phase, and a sentence where it is no plain one.

    `reason` is what squeue gives as the reason of an end and the sentence has said already; `what_to_do` is there of
    states in which a job waits until somebody lets it go. A job that COMPLETING is said of may still write. Of one
    that a sibling cluster of a federation runs (REVOKED) the run's own file decides.
    """
    return {row["state"]: row for row in csv_rows("schedulers/slurm_states.csv")}


@cache
def _reasons() -> dict[str, Reason]:
    """What the reasons of slurm_reasons.csv mean."""
    return {
        row["reason"]: Reason(
            row["sentence"],
            row["what_to_do"] or None,
            may_run=row["mark"] == "may run",
            held=row["mark"] == "held",
            of=row["of"],
        )
        for row in csv_rows("schedulers/slurm_reasons.csv")
    }


_SMALLER = "ask for less in the recipe's resources"
_OTHER_ACCOUNT = "name another account or qos, or ask the site for more"


# how a resource is called in a reason -> how it is asked for, what its minutes are called
_RESOURCE_WORDS = {
    "CPU": ("CPUs", "CPU"), "Cpu": ("CPUs", "CPU"), "GRES": ("GPUs", "GPU"), "Mem": ("memory", "memory"),
    "Memory": ("memory", "memory"), "Node": ("nodes", "node"), "License": ("licences", "licence"),
    "BB": ("burst buffer", "burst buffer"), "Billing": ("billing units", "billing"), "Energy": ("energy", "energy"),
    "Unknown": ("of a resource", "resource"),
}  # fmt: skip
_LIMIT_OWNERS = {"Assoc": "account", "QOS": "QOS"}
_RESOURCE_PATTERN = rf"(?P<what>{'|'.join(_RESOURCE_WORDS)})"
_LIMIT_PATTERN = rf"(?P<who>Assoc|QOS)(?:Grp|Max){_RESOURCE_PATTERN}"
_AFTER_OTHERS = "it starts when other jobs of it end"
_AFTER_YOURS = "it starts when your other jobs end"

# families of which Slurm has dozens: what is in braces comes from the reason's name; the first that fits counts
_FAMILIES: tuple[tuple[str, str, str | None], ...] = (
    (rf"{_LIMIT_PATTERN}RunMinutes\w*",
     f"the running jobs of the {{who}} have claimed its {{unit}} minutes; {_AFTER_OTHERS}", None),
    (r"(?P<who>Assoc|QOS)GrpWallLimit", "the {who} has used up its time", _OTHER_ACCOUNT),
    (rf"{_LIMIT_PATTERN}MinutesPerJob\w*", "it may use more {unit} minutes than the {who} allows a job", _SMALLER),
    (r"(?P<who>Assoc|QOS)MaxWallDurationPerJobLimit", "it asks for more time than the {who} allows a job",
     "lower resources.time"),
    (rf"{_LIMIT_PATTERN}Minutes\w*", "the {who} has used up its {unit} minutes", _OTHER_ACCOUNT),
    (rf"{_LIMIT_PATTERN}Per(?P<one>Job|Node)(Limit)?",
     "it asks for more {what} than the {who} allows a {one}", _SMALLER),
    (rf"QOSMin{_RESOURCE_PATTERN}\w*", "the QOS wants jobs that ask for more {what}",
     "ask for more, or name another qos"),
    (r"AssocGrp\w+|Association\w+Limit|Max\w+PerAccount", f"a limit of the account is reached; {_AFTER_OTHERS}", None),
    (r"AssocMax\w+", f"a limit of your account's association is reached; {_AFTER_YOURS}", None),
    (r"QOSGrp\w+", f"a limit of the QOS is reached; {_AFTER_OTHERS}", None),
    (r"QOSMax\w+|QOS(Job|Resource|Time)Limit", f"a limit of the QOS for a user is reached; {_AFTER_YOURS}", None),
)  # fmt: skip

# sentences that go on with what differs
_BEGINNINGS = {
    "ReqNodeNotAvail": "ReqNodeNotAvail",
    "Nodes required for job are DOWN": "ReqNodeNotAvail",
    "launch failed requeued held": "launch failed requeued held",
    "RaisedSignal": "RaisedSignal",
}


class Slurm(Adapter):
    """Slurm 17 and later."""

    name = "Slurm"
    marker = "#SBATCH"
    submit = "sbatch"
    queue = "squeue"
    history = "sacct"
    submitted = r"(?:Submitted batch job )?(\d+)(?:;\S+| on cluster \S+)?"
    capabilities = Capabilities(
        arrays=True, restarts="counted", lists_ended=True, dependencies=True, throttle=True, hold=True
    )
    # SLURM_CONF says which cluster and stays
    cleared_variables = ("SBATCH_", "SQUEUE_", "SALLOC_", "SACCT_", "SCANCEL_", "SINFO_", "SCONTROL_", "SLURM_")
    kept_variables = ("SLURM_CONF", "SLURM_CONF_SERVER")
    keys = frozenset({"queue", "partition", "account", "qos", "gres", "constraint", "reservation", "exclusive"})
    asks = MappingProxyType({
        "-p": "partition", "--partition": "partition", "-A": "account", "--account": "account", "-q": "qos",
        "--qos": "qos", "-N": "nodes", "--nodes": "nodes", "-n": "tasks", "--ntasks": "tasks",
        "--ntasks-per-node": "per_node", "-c": "cpus", "--cpus-per-task": "cpus", "-t": "time", "--time": "time",
        "-J": "name", "--job-name": "name", "-C": "constraint", "--constraint": "constraint",
        "--reservation": "reservation", "--mem": "memory", "--exclusive": "exclusive", "--gres": "node_gpus",
        "-G": "gpus", "--gpus": "gpus", "--gpus-per-node": "node_gpus", "--gpus-per-task": "task_gpus",
        "--tres-per-node": "node_gpus", "--tres-per-task": "task_gpus",
        "-o": "output", "--output": "output", "-e": "output", "--error": "output", "--gpu-bind": "gpu_bind",
    })  # fmt: skip
    flags = frozenset({"--exclusive", "--requeue", "--no-requeue", "--contiguous", "--overcommit", "--hold", "-H"})
    variables = "SLURM_"
    passing = (
        f"{_NOT_SENT}|Socket timed out|Unable to contact slurm controller|Transport endpoint is not connected"
        "|Zero Bytes were transmitted or received|Unexpected missing socket error|Unexpected message received"
        "|Communication (connection|shutdown) failure|Message (send|receive|connect) failure"
        "|Received zero length message|Received message length < 0|Failed to send entire message"
        "|Header lengths are longer than data received|Unable to create job record, try again"
        "|Connection reset by peer|Connection timed out|Broken pipe|Slurm backup controller in standby mode"
        "|Problem talking to the database|Unable to connect to database|Slurmdbd|munge"
    )
    full = (
        "job submit limit|AssocMaxSubmitJobLimit|AssocGrpSubmitJobsLimit|QOSMaxSubmitJobPerUserLimit"
        "|QOSGrpSubmitJobsLimit|MaxSubmitJobs|temporarily unable to accept job|Job/step already completing"
    )
    # `scontrol hold` and `release` print a line for each job, "No error" for those that it held or released
    over = f"already finished|{_NO_SUCH_JOB}|no longer pending|^[\\d_,\\[\\]-]+: No error$"
    # without cgroups the state does not say so
    memory = r"^(?:slurmstepd: (?:error: )?)?(.*(?:exceeded memory limit|oom-kill event|Out Of Memory|oom_kill).*)$"
    noise = r'^\s*$|^(?:sbatch: (?:error: |fatal: )?)?Try "'
    # `allocation failure` with --test-only
    preamble = r"^(?:sbatch: (?:error: |fatal: )?)?(?:(?:Batch job submission failed|allocation failure): )?"
    sign_of_life = ("sinfo", "--noheader", "--format=%P")
    facts_command = ("scontrol", "show", "config")
    queues_command = ("sinfo", "--noheader", "--format=%P|%a|%G|%l")
    accounts_command = ("bash", "-lc", 'sacctmgr -nP show assoc user="$(id -un)" format=account 2>/dev/null')

    # --- submitting ---------------------------------------------------------------------------------------

    def head(self, job: Job, scratch: str, extra: list[str]) -> list[str]:
        """The `#SBATCH` lines."""
        needs = job.resources
        option_values = {
            "output": f"{scratch.replace('%', '%%')}/jobs/%x.%j.log",  # nsw names it anew when it submits
            "time": format_clock(job.walltime_s),
            "nodes": needs.nodes,
            "ntasks": needs.tasks,
            "ntasks-per-node": -(-needs.tasks // needs.nodes) if needs.tasks > 1 else None,
            "cpus-per-task": needs.cpus_per_task,
            "mem": None if needs.memory_bytes is None else format_memory(needs.memory_bytes),
            "gres": needs.gres,
            **({} if needs.gres else _gpu_options(needs.gpus, needs.nodes)),
            "partition": needs.queue,
            "account": needs.account,
            "qos": needs.qos,
        }
        # Slurm takes the last of two: a site has no key for these, so it writes them as `extra`, and a recipe's own win
        recipe_values = {"constraint": needs.constraint, "reservation": needs.reservation}
        lines = [directive(option, value) for option, value in option_values.items() if value is not None]
        last_lines = [directive(option, value) for option, value in recipe_values.items() if value is not None]
        return [*lines, *(["#SBATCH --exclusive"] if needs.exclusive else []), *extra, *last_lines]

    def requested_keys(self, option: str, value: str) -> list[tuple[str, str]]:
        """What an option asks for; a kind of GPU becomes the site's gres."""
        key = self.asks.get(option)
        if key not in {"gpus", "node_gpus", "task_gpus"}:
            return super().requested_keys(option, value)
        items = [re.sub(r"\(.*\)$", "", item.strip()) for item in value.split(",")]
        gpus, *others = sorted(items, key=lambda item: not _ASKED_GPUS.fullmatch(item))
        match = _ASKED_GPUS.fullmatch(gpus.replace("gres/gpu=", "gres/gpu:"))
        if match is None and option not in _GRES_OPTIONS and re.fullmatch(r"\d*[A-Za-z][\w.-]*", gpus):
            return [(key, "1"), ("gpu_kind", gpus), ("gres", f"gpu:{gpus}:{{{{ gpus }}}}")]  # --gpus=h100
        if match is None or any("gpu" in other for other in others):
            return []
        if option in _GRES_OPTIONS and not gpus.startswith(("gpu", "gres/gpu")):
            return []
        kind = match[1] or match[3]
        gres = ",".join([f"gpu:{kind}:{{{{ gpus }}}}" if kind else "gpu:{{ gpus }}", *others])
        of_kind = [("gpu_kind", kind or ""), ("gres", gres)] if kind or others else []
        return [(key, match[2] or "1"), *of_kind]

    def unwanted(self, line: str) -> tuple[str, str] | None:
        """The first option that is nsw's own."""
        refused = adapter.refused_options("slurm")
        return next(((option, refused[option]) for option in _option_names(line) if option in refused), None)

    def submit_command(self, request: Request) -> list[str]:
        """The sbatch of a submission: an array when it holds several tasks."""
        submission = request.submission
        tasks, first = submission.tasks, submission.tasks[0]
        base = request.log.replace("%", "%%")
        words = [
            "sbatch", "--parsable", f"--job-name={submission.name}", f"--comment={request.comment}",
            "--open-mode=append",
        ]  # fmt: skip
        if request.walltime_s is not None:
            words.append(f"--time={format_clock(request.walltime_s)}")
        if request.after:
            words += [f"--dependency=afterok:{':'.join(request.after)}", "--kill-on-invalid-dep=yes"]
        if len(tasks) == 1:
            return [*words, f"--output={base}.log", request.script, str(submission.attempt), str(first)]
        indices = ",".join(spans(task - first for task in tasks)) + (f"%{request.limit}" if request.limit else "")
        return [
            *words, f"--array={indices}", f"--output={base}.%a.log", request.script, str(submission.attempt), str(first)
        ]  # fmt: skip

    def refusal(self, result: CommandResult) -> Refusal | None:
        """Why sbatch refused. Only its own verdict counts, and none that a moment's fault or a wrapper may explain.

        Words that nsw does not know, such as "Unspecified error", also come of submissions that were accepted.
        """
        if result.timed_out or result.returncode <= 0 or self.parse_submitted(result) is not None:
            return None
        if self.transient(result) or was_not_sent(result) or not _VERDICT.search(result.stderr):
            return None
        complaints = "; ".join(self.complaints(result))
        return adapter.explain_refusal(complaints, adapter.known_refusals("slurm")) or Refusal(
            complaints, certain=False
        )

    def test_command(self, script: str) -> list[str]:
        """Ask whether and when a script could run, without submitting it."""
        return ["sbatch", "--test-only", script, "1", "0"]

    def parse_test(self, result: CommandResult) -> str | None:
        """`2026-01-01T00:00:00 ... in partition gpu` of `sbatch --test-only`; None when it was refused."""
        match = re.search(r"Job \d+ to start at (.*)", result.stderr + result.stdout)
        return match[1].strip() if result.returncode == 0 and match else None

    def nodes_command(self, result: CommandResult) -> Sequence[str] | None:
        """The sinfo of all nodes: sbatch itself queues a job whose nodes are drained or down."""
        return slurm_nodes.COMMAND if re.search(_OF_STATES, result.stderr) else None

    def down_nodes(self, script: str, result: CommandResult) -> list[str]:
        """The nodes that the job would wait for."""
        if not has_answered(result):
            return []
        lines = [line for line in script.splitlines() if self.after_marker(line)]
        wish = slurm_nodes.wish(pair for line in lines for pair in self.options_in(line))
        return slurm_nodes.down_nodes(slurm_nodes.nodes(result.stdout), wish)

    def throttle_command(self, native: Native, limit: int) -> list[str]:
        """Change how many tasks of an array may run at the same time."""
        return ["scontrol", "update", f"JobId={native.job}", f"ArrayTaskThrottle={limit}"]

    # --- asking -------------------------------------------------------------------------------------------

    def parse_queues(self, result: CommandResult) -> list[Queue]:
        """`gpu*|up|gpu:a100:4(S:0-1)|1-00:00:00`; of a partition's kinds of nodes that with most GPUs."""
        queues: dict[str, Queue] = {}
        kinds: dict[str, set[str]] = {}
        for line in result.stdout.splitlines():
            name, up, gres, longest, *_ = (*line.strip().split("|"), "", "", "", "")
            gpus = [(int(count or 1), kind) for kind, count in _GRES.findall(gres)]  # several kinds: that with most
            gpu_count, kind = max(gpus, default=(0, ""))
            bare = name.removesuffix("*")
            kinds.setdefault(bare, set()).update(kind for _, kind in gpus if kind and up == "up")
            if bare and up == "up" and (bare not in queues or gpu_count > (queues[bare].gpus or 0)):
                queues[bare] = Queue(bare, gpu_count, kind, adapter.parse_time_limit(longest), name.endswith("*"))
        return [
            replace(queue, other_kinds=tuple(sorted(kinds[queue.name] - {queue.kind}))) for queue in queues.values()
        ]

    def parse_facts(self, result: CommandResult) -> Facts:
        """The settings that matter here; what is not said is taken as Slurm's default."""
        settings = dict(re.findall(r"^(\w+)\s*= (.*)$", result.stdout, re.MULTILINE))
        size = re.match(r"\d+", settings.get("MaxArraySize", ""))
        storage = settings.get("AccountingStorageType", "").strip()
        return Facts(
            version=settings.get("SLURM_VERSION", "").strip(),
            longest_array=(int(size[0]) if size else 1001) - 1,  # the highest index is one less than MaxArraySize
            history=storage not in {"", "(null)", "accounting_storage/none"},
        )

    def queue_command(self, watched: Sequence[Watched], *, detail: bool = False) -> list[str]:
        """One squeue for everything; of certain jobs only where they are few."""
        names = ",".join(job.name for job in watched)
        selection = [f"--name={names}"] if 0 < len(watched) <= _LONGEST_LIST else []
        each = ["-r"] if detail else []
        return ["squeue", "--me", "-h", *each, "-t", "all", *selection, "-o", _UNIT.join(_SQUEUE_FIELDS)]

    def parse_queue(self, result: CommandResult) -> list[Line] | None:
        """The lines of squeue; what is no such line is left out. Asked for one id that is none, it fails."""
        if not result.timed_out and _NO_SUCH_JOB in result.stderr:
            return []
        return queue_lines(result.stdout) if has_answered(result) else None

    def ends_command(self, watched: Sequence[Watched]) -> list[str]:
        """The squeue that prints exit statuses, which `-o` has not: for as long as it lists a job, sacct may lag."""
        return ["squeue", "-h", "-r", "-t", "failed", "-j", ",".join(job_ids(watched)), "-O", _END_FIELDS]

    def parse_ends(self, result: CommandResult) -> list[Line]:
        """Its lines; an old squeue, which knows no such fields, has none."""
        lines: list[Line] = []
        for text in result.stdout.splitlines() if has_answered(result) else ():
            fields = text.strip().split("|")
            match = re.fullmatch(r"(\d+)(?::(\d+))?", fields[4].strip()) if len(fields) == 6 else None
            if match is None or fields[2] != "FAILED" or not fields[0].isdigit():
                continue
            # wait(2)'s number; others print the status and the signal
            status, sign = (match[1], match[2]) if match[2] else (int(match[1]) >> 8, int(match[1]) & 127)
            index = (int(fields[1]),) if fields[1].isdigit() else None
            lines.append(Line(fields[0], index, fields[3], _failed_answer(f"{status}:{sign}")))
        return lines

    def owners_command(self, watched: Sequence[Watched]) -> list[str]:
        """The squeue of ids, also of other users' jobs."""
        return ["squeue", "-h", "-t", "all", "-j", ",".join(job_ids(watched)), "-o", _UNIT.join(_SQUEUE_FIELDS)]

    def history_commands(self, watched: Sequence[Watched]) -> list[list[str]]:
        """The sacct of jobs that squeue does not know any more; without -S it looks at all of history for an id."""
        return [[*_SACCT, "-j", ",".join(part)] for part in adapter.split_words(job_ids(watched), _LONGEST_LIST)]

    def history_by_name_command(self, names: Sequence[str], minutes: int) -> list[str]:
        """The sacct of names: a relative start, since clocks and time zones differ and the default is midnight."""
        return [*_SACCT, f"--name={','.join(names)}", "-S", f"now-{max(1, minutes)}minutes"]

    def parse_history(self, result: CommandResult) -> list[Line] | None:
        """The lines of sacct, less what sbatch refused (it uses an id and shows up as failed)."""
        return history_lines(result.stdout) if has_answered(result) else None

    def no_history(self, result: CommandResult) -> bool:
        """No sacct on this machine, or none that is told anything, whatever the cluster's settings say.

        One that could not be started for the moment (no memory, no processes, a library out of sight) is there.
        """
        missing = "[Errno 2]" in result.stderr or "not found" in result.stderr.lower()
        return (result.returncode == 127 and missing) or "accounting storage is disabled" in result.stderr

    # --- ending -------------------------------------------------------------------------------------------

    def hold_command(self, watched: Sequence[Watched], *, hold: bool) -> list[str] | None:
        """One scontrol for all of these; the tasks of an array that run already go on."""
        jobs = job_ids(watched)
        return ["scontrol", "hold" if hold else "release", ",".join(jobs)] if jobs else None

    def cancel_command(self, watched: Sequence[Watched]) -> list[str] | None:
        """One scancel for all of these; of unknown and finished jobs scancel says nothing."""
        words = task_words(watched, "{}_[{}]".format)
        return ["scancel", *words] if words else None


def has_answered(result: CommandResult) -> bool:
    """Slurm's commands say by their exit status whether they could ask."""
    return result.returncode == 0 and not result.timed_out


def was_not_sent(result: CommandResult) -> bool:
    """The command certainly did not reach the controller."""
    return result.returncode == 127 or re.search(f"{_NOT_SENT}|{_UNUSABLE}", result.stderr) is not None


def queue_lines(stdout: str) -> list[Line]:
    """The jobs that squeue listed, less what sbatch refused; what is no such line is left out."""
    lines: list[Line] = []
    for text in stdout.splitlines():
        fields = text.split(_UNIT)
        if len(fields) != len(_SQUEUE_FIELDS) or not fields[0].isdigit():
            continue
        base, index, state, name, reason, limit, owner = fields
        if state == "FAILED" and reason == "BadConstraints":
            continue
        meaning = answer(state, reason, limit if state == "TIMEOUT" else "")
        if index == "N/A":
            lines.append(Line(base, None, name, meaning, owner=owner))
        elif index.isdigit():
            lines.append(Line(base, (int(index),), name, meaning, owner=owner))
        else:  # cut short after 64 characters; of tasks that wait for different reasons all are named
            vague = "..." in index or _SEVERAL.search(reason) is not None
            lines.append(Line(base, parse_spans(index.strip("[]")), name, meaning, vague, owner))
    return lines


def history_lines(stdout: str) -> list[Line]:
    """The jobs that sacct listed, less what sbatch refused (it uses an id and shows up as failed)."""
    lines: list[Line] = []
    for text in stdout.splitlines():
        fields = text.split(_UNIT)
        match = _INDEX.match(fields[0])
        if len(fields) != len(_SACCT_FIELDS) or match is None:
            continue
        _, name, state, code, nodes, limit = fields
        if state == "FAILED" and code == "1:0" and nodes == "None assigned":
            continue
        meaning = _failed_answer(code) if state == "FAILED" else answer(state, "", limit if state == "TIMEOUT" else "")
        lines.append(Line(match["base"], _array_indices(match), name, meaning))
    return lines


def _failed_answer(code: str) -> Answer:
    """The answer for a job that failed with `STATUS:SIGNAL`."""
    status = code.partition(":")[0]
    return replace(answer("FAILED", _exit_code_text(code)), fault=FAULTS.get(int(status)) if status.isdigit() else None)


def _array_indices(match: re.Match[str]) -> Sequence[int] | None:
    if match["ranges"] is not None:
        return parse_spans(match["ranges"])
    return None if match["index"] is None else (int(match["index"]),)


def _exit_code_text(code: str) -> str:
    status, _, sign = code.partition(":")
    if code == "0:53":
        return "JobLaunchFailure"
    if sign not in {"", "0"}:
        return f"signal {sign}"
    return f"exit status {status}"


@lru_cache(maxsize=4096)  # the same words give the same object, by which it is known that nothing is new
def answer(state: str, reason: str, limit: str = "") -> Answer:
    """What a state and a reason mean together; `limit` is the job's time limit. An unknown state is no statement.

    Args:
        state: The job's state, such as PENDING.
        reason: Why it waits or ended, as squeue prints it.
        limit: The job's time limit, as squeue prints it.
    """
    word = state.split(" ", 1)[0].rstrip("+").upper()  # CANCELLED by 1000
    row = _states().get(word)
    if row is None:
        return Answer(Phase.UNKNOWN, f"Slurm says {state}, which nsw does not know")
    phase, ended = Phase(row["phase"]), row["sentence"] or None
    cause = reason_of(reason)
    if phase is Phase.ENDED:
        is_new = cause is not None and reason != row["reason"] and _is_end_reason(word, reason)
        addition = cause.sentence if cause and is_new else ""
        sentence = None if ended is None else f"{ended}: {addition}" if addition and addition not in ended else ended
        if sentence is not None and (words := adapter.limit_words(limit)):
            sentence = sentence.replace("its time limit", f"its time limit of {words}", 1)
        return Answer(
            phase, sentence, clean=word == "COMPLETED", by_itself=word == "FAILED", over_time=word == "TIMEOUT"
        )
    if row["what_to_do"]:
        return Answer(phase, f"{ended} ({word}); {row['what_to_do']}", never=True)
    if word == "PENDING" and cause is not None:
        sentence = f"{cause.sentence} ({reason})" if cause.sentence else None
        sentence = f"{sentence}; {cause.todo}" if cause.todo else sentence
        return Answer(phase, sentence, never=cause.never, may_run=cause.may_run, held=cause.held)
    return Answer(phase, ended)


def _is_end_reason(state: str, reason: str) -> bool:
    """Whether a reason that squeue prints is why the job ended, and not why it waited before that."""
    name = re.split("[,:]", reason.strip("() "), maxsplit=1)[0].strip()
    known = _reasons().get(name)
    if known is not None and known.of == "end":
        return True
    meaning = reason_of(reason)
    is_unknown = meaning is not None and meaning.sentence == reason.strip("() ").replace("_", " ")
    return state != "CANCELLED" and (is_unknown or (known is not None and known.of == "either"))


def reason_of(text: str) -> Reason | None:
    """The meaning of a reason as squeue prints it (`ReqNodeNotAvail, UnavailableNodes:n1`); None for an empty one."""
    bare = text.strip("() ").replace("_", " ")  # some commands write underscores for the spaces of a sentence
    meaning = _reasons().get(bare) or _reasons().get(bare.split(",")[0].split(":")[0].strip())
    if meaning is not None:
        return meaning
    for beginning, name in _BEGINNINGS.items():
        if bare.startswith(beginning):
            return _reasons()[name]
    for pattern, sentence, todo in _FAMILIES:
        if match := re.fullmatch(pattern, bare):
            groups = match.groupdict()
            resource, unit = _RESOURCE_WORDS.get(groups.get("what") or "", ("", ""))
            owner, per = _LIMIT_OWNERS.get(groups.get("who") or "", ""), (groups.get("one") or "").lower()
            return Reason(sentence.format(who=owner, what=resource, unit=unit, one=per), todo)
    return Reason(bare) if bare else None


def directive(option: str, value: object) -> str:
    """One line; the value is quoted as sbatch's own parser reads quotes.

    Raises:
        UsageError: The value holds a control character.
    """
    text = str(value)
    if re.search(r"[\x00-\x1f\x7f]", text):
        raise UsageError(f"resources: {option} holds a control character: {text!r}")
    if not _PLAIN.fullmatch(text):
        text = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return f"#SBATCH --{option}={text}"


def _gpu_options(count: int, nodes: int) -> dict[str, object]:
    if count == 0:
        return {}
    return {"gpus-per-node": count // nodes} if count % nodes == 0 else {"gpus": count}


def _option_names(directive: str) -> list[str]:
    """The names of the options on a line, as sbatch reads it."""
    try:
        words = shlex.split(directive, comments=False)[1:]
    except ValueError:  # an open quote, of which sbatch says what it thinks
        words = directive.split()[1:]
    return [word.partition("=")[0] if word.startswith("--") else word[:2] for word in words if word.startswith("-")]
