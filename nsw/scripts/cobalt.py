"""What a job needs -> its `#COBALT` lines.

Cobalt reads them only directly under `#!`, up to the first other line, and splits them at blanks: there are no quotes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from nsw.errors import RefusedError, UsageError

if TYPE_CHECKING:
    from nsw.plan.model import Job

LEAST_MINUTES: Final = 5  # Cobalt refuses less
CHANGED: Final = r"\s$'\"\\"  # characters of paths that it drops or replaces, as in `[...]` of a regular expression

# options that a line of the recipe's own may not have, each with the reason
_OWN: Final = {
    ("-n", "--nodecount"): "nsw asks for the nodes that resources.nodes says",
    ("-t", "--time"): "nsw requests the time that a job's runs need: set resources.time, the time of one run",
    ("--jobname",): "nsw finds its jobs by the names that it gives them",
    ("-O", "--outputprefix"): "nsw looks for the job's files where it told Cobalt to write them",
    ("-o", "--output"): "`nsw logs` prints the job's output, which it looks for where nsw told Cobalt to write it",
    ("-e", "--error"): "`nsw logs` shows what the job prints, with its errors",
    ("--debuglog",): "nsw reads how a job ended in the .cobaltlog that it named itself",
    ("--cwd",): "nsw names the folder of the job's files itself",
    ("-I", "--interactive"): "an interactive job would wait for a terminal",
    ("-h", "--held"): "the job would never start",
    ("--mode",): "a job of nsw is a script",
    ("--env",): "Cobalt writes --env values into its logs; write the variables into the recipe's app.env",
    ("--dependencies",): "a job of Cobalt whose dependency failed waits for ever; nsw sets the order itself",
    ("-v", "-d", "--debug", "--verbose"): "qsub would print more than the job's id",
}  # fmt: skip
_KEYS: Final = {"-q": "queue", "-A": "account"}  # of `resources`
_REFUSED: Final = {option: why for options, why in _OWN.items() for option in options}


def minutes(seconds: int) -> int:
    """Whole minutes of a time limit, at least what Cobalt takes; it drops seconds."""
    return max(LEAST_MINUTES, -(-seconds // 60))


def directives(job: Job, scratch: str) -> list[str]:
    """The lines of one job. Files and name are given on qsub's command line, where they may hold anything.

    Raises:
        UsageError: A value cannot be written on such a line.
        RefusedError: A line of the recipe's own asks for what nsw must do itself.
    """
    if re.search(f"[{CHANGED}]", scratch):
        raise UsageError(
            f"scratch holds a character that Cobalt would change: {scratch!r}",
            hint="name a folder without blanks, quotes and dollar signs",
        )
    needs = job.resources
    attrs: list[str] = []
    extra: list[str] = []
    for line in needs.extra:
        words, some = _extra(line)
        attrs += some
        extra += [f"#COBALT {' '.join(words)}"] if words else []
    asked = {
        "-n": needs.nodes,
        "-t": minutes(job.walltime_s),
        "-q": needs.queue,
        "-A": needs.account,
        "--attrs": ":".join(dict.fromkeys(attrs)) or None,  # Cobalt takes only one
    }
    return [*(directive(option, value) for option, value in asked.items() if value is not None), *extra]


def directive(option: str, value: object) -> str:
    """One line.

    Raises:
        RefusedError: The value holds a blank, which would end it, or a control character.
    """
    text = str(value)
    if not text or re.search(r"[\x00-\x20\x7f]", text):
        raise RefusedError(
            f"{option} cannot be {text!r}: a #COBALT line has no quotes, and a blank ends a value",
            key=_KEYS.get(option),
        )
    return f"#COBALT {option} {text}"


def _extra(line: str) -> tuple[list[str], list[str]]:
    """The words of a recipe's own line, and the attributes among them, which are merged.

    Raises:
        RefusedError: It holds an option that is nsw's own, or is a comment, which would end the directives.
    """
    if "\n" in line or "\r" in line:
        raise UsageError(f"resources.extra: a line cannot hold a line break: {line!r}")
    if line.startswith("#") and not line.startswith("#COBALT"):
        raise RefusedError(
            f"resources.extra cannot hold {line!r}: Cobalt reads no directives after a line that is not one",
            key="extra",
        )
    words = line.removeprefix("#COBALT").split()
    kept: list[str] = []
    attrs: list[str] = []
    while words:
        word = words.pop(0)
        option, equals, value = word.partition("=")
        if not option.startswith("--") and option.startswith("-"):
            option, value = word[:2], word[2:]
        if why := _REFUSED.get(option):
            raise RefusedError(f"resources.extra cannot hold {option}: {why}", key="extra")
        if option == "--attrs":
            attrs += (value if equals else words.pop(0) if words else "").split(":")
        else:
            kept.append(word)
    return kept, [attr for attr in attrs if attr]
