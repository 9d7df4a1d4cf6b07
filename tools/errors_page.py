"""Writes docs/errors.md: messages of other tools that nsw knows, as readers paste them into a search, and what to do.

python tools/errors_page.py            writes the page
python tools/errors_page.py --check    says whether it is current
"""

from __future__ import annotations

import importlib
import re
import sys
from collections import defaultdict
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsw.engine.failures import failures
from nsw.readers.messages import known_messages
from nsw.schedulers import slurm
from nsw.schedulers.adapter import known_refusals

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nsw.schedulers.adapter import KnownRefusal

PAGE = Path(__file__).parents[1] / "docs" / "errors.md"
HEAD = """# Error messages of Slurm, PBS, LSF, ssh, nsys, ncu, nvprof and CUDA

What the messages mean that nsw recognizes, and what to do; `...` is what differs. nsw prints the same by itself:
`nsw status` and `nsw logs RUN` beside a run that failed, `nsw problems` beside a report. Without a campaign
`nsw read FILE` does, also of the output of a job. `tools/errors_page.py` makes this page; a test keeps it current.

## ssh: the cluster cannot be reached

### `Permission denied (publickey,keyboard-interactive)`, `Too many authentication failures`

ssh has no key or code that the host takes. Let `ssh HOST true` work by hand. With one-time codes open a connection
first, which nsw uses ([one-time codes](howto/login.md#with-a-one-time-code)).

### `Host key verification failed`, `REMOTE HOST IDENTIFICATION HAS CHANGED`

The host's key is not in `~/.ssh/known_hosts`, or another one is. Compare its fingerprint with the one that the site
publishes, then log in once by hand.

### `Could not resolve hostname`, `Connection timed out`, `Connection refused`, `No route to host`

The host's name, the network or a VPN: `ssh HOST true` shows it. Behind a jump host write `ProxyJump`
([jump hosts](howto/login.md#behind-a-jump-host)).
"""
TOOLS = {"ncu": "ncu", "nsys": "nsys", "nvprof": "nvprof", "pytorch": "PyTorch's profiler", "aps": "APS",
         "vtune": "VTune", "perf": "perf", "py-spy": "py-spy", "gprof": "gprof"}  # fmt: skip
SUBMISSIONS = {"sbatch refuses the job (Slurm)": "slurm", "qsub refuses the job (PBS)": "pbs",
               "bsub refuses the job (LSF)": "lsf", "flux batch refuses the job": "flux",
               "qsub refuses the job (Cobalt)": "cobalt"}  # fmt: skip
# why a job of Slurm waits: those that users meet; of limits there are dozens more, which nsw explains in the same way
WAITS = (
    "Priority", "Resources", "Dependency", "DependencyNeverSatisfied", "BeginTime", "JobArrayTaskLimit",
    "JobHeldUser", "JobHeldAdmin", "Licenses", "Reservation", "ReqNodeNotAvail", "PartitionDown",
    "PartitionNodeLimit", "PartitionTimeLimit", "PartitionConfig", "AccountNotAllowed", "InvalidAccount",
    "InvalidQOS", "QOSNotAllowed", "BadConstraints", "AssocGrpGRES", "AssocGrpCpuLimit", "AssocGrpNodeLimit",
    "MaxGRESPerAccount", "AssocGrpCPUMinutesLimit", "AssocGrpGRESMinutes", "AssocMaxJobsLimit", "QOSGrpGRES",
    "QOSGrpNodeLimit", "QOSMaxJobsPerUserLimit", "QOSMaxGRESPerUser", "QOSMaxCpuPerUserLimit",
    "QOSMaxNodePerUserLimit", "QOSMaxWallDurationPerJobLimit",
)  # fmt: skip
_OF_SITES = frozenset({"account", "queue", "partition", "qos", "gres", "extra"})  # keys that sites have too
_IN_TITLE = 6  # messages in a heading, where the search weighs them most
_SHORTEST = 6  # letters of a message that a reader would search for
_NAMES = ("nsw", "ncu", "nsys", "nvprof", "srun", "py-spy", "perf")  # names that begin a sentence as they are
_PARSER: Any = importlib.import_module("re._parser")


def page() -> str:
    """The whole page."""
    parts = [HEAD, "## The job or the program failed\n"]
    parts += [_entry([f.pattern.pattern], [f.cause, f.remedy]) for f in failures()]
    parts.append(_waits())
    for title, system in SUBMISSIONS.items():
        entries = groupby(known_refusals(system), key=_subject)
        parts += [f"## {title}\n", *(_refusals([*group]) for _, group in entries)]
    by_tools = defaultdict(list)
    for message in known_messages():
        tools = [title for tool, title in TOOLS.items() if tool in message.tools]
        by_tools[" and ".join(filter(None, [", ".join(tools[:-1]), tools[-1]]))].append(message)
    for title, messages in by_tools.items():
        parts += [f"## {title}\n", *(_entry([m.pattern.pattern], [m.explanation, m.fix]) for m in messages)]
    return "\n".join(filter(None, parts))


def _waits() -> str:
    """A table of the reasons for which jobs of Slurm wait."""
    reasons = ((name, slurm.reason_of(name)) for name in WAITS)
    rows = [
        f"| {_listed(name for name, _ in group)} | {_sentence(reason.sentence)} | {_sentence(reason.todo or 'wait')} |"
        for reason, group in groupby(reasons, key=itemgetter(1))
        if reason
    ]
    head = "## Why a job of Slurm is pending\n\n`nsw status` and `squeue` show the reason.\n"
    unavailable = (
        "### `srun: Required node not available (down, drained or reserved)`\n\nThe reason is `ReqNodeNotAvail`. "
        "`sinfo -R` says why nodes are down; a lower time limit may let a job end before a maintenance.\n"
    )
    return "\n".join([head, "| reason | meaning | what to do |", "|---|---|---|", *rows, "", unavailable])


def _subject(refusal: KnownRefusal) -> tuple[str | None, str | None]:
    """What refusals that follow each other share: the key of the resources; lines of `extra` and the rest the hint."""
    _, key, hint = refusal
    return key, hint if key in {"extra", None} else None


def _refusals(refusals: Sequence[KnownRefusal]) -> str:
    """What a batch system says of one subject; nothing where nsw has no advice."""
    key = refusals[0][1]
    name = {"tasks": "launcher.processes"}.get(key or "", f"resources.{key}")
    where = f"correct `{name}` of the recipe" + (f", or `{key}` of the site" if key in _OF_SITES else "")
    hints = [hint for _, _, hint in refusals if hint]
    return _entry([pattern for pattern, *_ in refusals], [where if key else None, *hints], words=2) if hints else ""


def _entry(patterns: Iterable[str], sentences: Iterable[str | None], *, words: int = 1) -> str:
    """A heading with the messages, and below it what they mean and what to do."""
    messages = [text for pattern in patterns for text in examples(pattern)]
    messages = [text for text in messages if len(text) >= _SHORTEST and len(text.split()) >= words]
    if not messages:
        return ""
    title, rest = messages[:_IN_TITLE], messages[_IN_TITLE:]
    also = f"also {_listed(rest)}" if rest else None
    text = " ".join(_sentence(part) for part in dict.fromkeys([*sentences, also]) if part)
    return f"### {_listed(title)}\n\n{text}\n"


def _listed(messages: Iterable[str]) -> str:
    return ", ".join(f"`{message}`" for message in messages)


def _sentence(text: str) -> str:
    if not text.startswith(_NAMES):
        text = text[0].upper() + text[1:]
    pieces = text.split("`")
    escaped = "`".join(p if n % 2 else re.sub(r"[_*<]", r"\\\g<0>", p) for n, p in enumerate(pieces))
    return escaped + ("" if escaped.endswith((".", "?")) else ".")


def examples(pattern: str) -> list[str]:
    """A message for each alternative of a pattern; `...` is what differs from message to message."""
    texts = (re.sub(r"\s+", " ", _text(_PARSER.parse(part))).strip(" :*") for part in _alternatives(pattern))
    return list(dict.fromkeys(text.replace("`", "'") for text in texts))


def _alternatives(pattern: str) -> Iterator[str]:
    """The alternatives outside of groups."""
    flags = re.match(r"\(\?[a-z]+\)", pattern)
    depth, start = 0, flags.end() if flags else 0
    for match in re.finditer(r"\\.|\[(?:\\.|[^\]])+\]|[(|)]", pattern):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if match[0] == "|" and depth == 0:
            yield pattern[start : match.start()]
            start = match.end()
    yield pattern[start:]


def _text(parsed: Iterable[tuple[Any, Any]]) -> str:
    """The shortest text of a part of a pattern, with the first of its alternatives."""
    pieces = []
    for operation, value in parsed:
        match str(operation):
            case "LITERAL":
                pieces.append(chr(value))
            case "ANY" | "NOT_LITERAL":
                pieces.append("'")
            case "IN":
                pieces.append(_character(value))
            case "BRANCH":
                pieces.append(_text(value[1][0]))
            case "SUBPATTERN":
                pieces.append(_text(value[3]))
            case "MAX_REPEAT" | "MIN_REPEAT":
                least, most, repeated = value
                is_any = str(repeated[0][0]) in {"ANY", "NOT_LITERAL"}
                is_blank = _text(repeated) == " "
                pieces.append(" ... " if is_any and most > 1 else _text(repeated) if least or is_blank else "")
    return "".join(pieces)


def _character(members: list[tuple[Any, Any]]) -> str:
    operation, value = members[0]
    match str(operation):
        case "LITERAL":
            return chr(value)
        case "RANGE":
            return chr(value[0])
        case "CATEGORY" if "DIGIT" in str(value):
            return "N"
    return " " if "SPACE" in str(value) and "NOT" not in str(value) else "..."


def main() -> None:
    """Write the page, or with --check only say whether it is current."""
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != page():
        sys.exit(f"{PAGE} is not current: python tools/errors_page.py")


if __name__ == "__main__":
    main()
