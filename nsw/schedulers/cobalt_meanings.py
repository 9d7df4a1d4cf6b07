"""What Cobalt's messages and states mean: data, looked up by nsw/schedulers/cobalt.py."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from nsw.schedulers.model import Answer, Phase

_HELD = "held by its user, or by the site because a file system is down"
_DEPENDS = "waits for a job that it depends on"

# a state of qstat -> what it says of the job
STATES: Final = {
    "queued": Answer(Phase.QUEUED),
    "user_hold": Answer(Phase.QUEUED, f"{_HELD} (user_hold); `qrls JOB` releases it"),
    "admin_hold": Answer(Phase.QUEUED, "held by an administrator (admin_hold)"),
    "dep_hold": Answer(Phase.QUEUED, f"{_DEPENDS} (dep_hold)"),
    "dep_fail": Answer(
        Phase.QUEUED, "a job that it depends on failed, and it would wait for ever (dep_fail)", never=True
    ),
    "maxrun_hold": Answer(
        Phase.QUEUED, "as many of your jobs run as the queue allows (maxrun_hold); it starts when one ends"
    ),
    "preempted": Answer(Phase.QUEUED, "it was preempted, and waits to go on"),
    "starting": Answer(Phase.RUNNING),
    "running": Answer(Phase.RUNNING),
    "preempting": Answer(Phase.RUNNING, "it is being preempted"),
    "killing": Answer(Phase.RUNNING, "it is being ended, for which Cobalt takes up to 5 minutes"),
    "exiting": Answer(Phase.RUNNING),
}

LOST_EXIT: Final = 1234567  # Cobalt's own process watching the job was lost

# an exit status that Cobalt gives where the script itself could not be started
STARTS: Final = {
    126: "exit status 126: the job script could not be started, or a command in it is not executable",
    127: "exit status 127: the job script's interpreter, or a command in it, was not found",
}


@dataclass(frozen=True, slots=True)
class Known:
    """Part of what qsub prints when it refuses, the key of `resources` that asks for it, what to do."""

    pattern: re.Pattern[str]
    key: str | None
    hint: str | None


def _known(pattern: str, key: str | None, hint: str | None = None) -> Known:
    return Known(re.compile(pattern, re.IGNORECASE), key, hint)


# the first that fits counts; nothing was submitted when one of them is printed
REFUSALS: Final = (
    _known(r"non-existent queue|queue is (draining|dead)|queue \S+ does not exist", "queue",
           "`qstat -Q` lists the queues, their states and limits"),
    _known(r"not (a member|allowed|permitted|in).*queue|queue.*(not permitted|access)", "queue",
           "`qstat -Q` says who may use a queue"),
    _known(r"walltime (less|greater) than|invalid time specification|'time' not provided", "time",
           "`qstat -Q` lists the queues' limits; Cobalt accepts no job under 5 minutes"),
    _known(r"node count out of realistic range|'nodecount' not provided|nodes?\b.*(limit|greater|less)", "nodes",
           "`qstat -Q` lists the queues' limits"),
    _known(r"filesystem", "extra",
           "such as extra: ['#COBALT --attrs filesystems=home,eagle'], in the recipe or for the site"),
    _known(r"\b(mcdram|numa) \S+ not valid|Improperly formatted argument to attrs|Multiple --attrs", "extra",
           "see extra: ['#COBALT --attrs NAME=VALUE:NAME=VALUE']"),
    _known(r"project|allocation|account", "account", "name a project of yours on this machine"),
    _known(r"no such option|takes no value|requires? (an|\d) argument|ambiguous option|Specifed mode|Invalid umask|"
           r"Improperly formatted|invalid \w+ value", "extra", "see the head of the job script: `nsw render`"),
    _known(r"not found, or is not a file|is not executable|directory \S+ does not exist", None,
           "was the campaign's remote folder removed?"),
    _known(r"\bFilter \S+ failed", None, "a filter of the site refused the job"),
    _known(r"<Fault 100[14]: |in system\.validate_job", None),
)  # fmt: skip

# a refusal that ends by itself when earlier jobs end
FULL: Final = re.compile(r"The limit of .* has been reached")

# a component could not be reached, or fell silent: the job may be submitted or not
TRANSIENT: Final = re.compile(
    r"Connection refused|Failed to connect|Following exception occurred|<Fault 20:|socket\.error|\[Errno 1\d\d\]"
    r"|timed out|Connection reset|No route to host|Resource temporarily unavailable|CommunicationError|fork: retry"
)
