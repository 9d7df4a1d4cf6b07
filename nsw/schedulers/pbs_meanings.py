"""What the messages, states and exit statuses of PBS mean: data, looked up by pbs.py and pbs_answers.py."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

# Exit_status below zero: PBS's own verdict on a job
VERDICTS: Final = {
    -1: "PBS could not start the job, before its files were there",
    -2: "PBS could not start the job, after its files were there",
    -3: "PBS could not start the job and gave up trying",
    -4: "a node was rebooted while the job ran",
    -5: "a node was rebooted, and the job restarted from its checkpoint",
    -10: "the job's user could not be used on the node",
    -16: "a site's hook before the job rejected it",
    -17: "a site's hook before the job deleted it",
    -18: "a site's hook before the job put it back into the queue",
    -19: "a site's hook at the job's start failed",
    -20: "a node of the job failed",
    -24: "the job used more processors than it asked for",
    -26: "the job used more virtual memory than it asked for",
    -27: "the job ran out of memory",
    -28: "the job used more processor time than it asked for",
    -29: "the job was over its time limit",
}
OVER_TIME: Final = -29

# letters of Hold_Types
HOLDS: Final = {
    "u": "held by the user: `qrls JOB` releases it",
    "o": "held by an operator, who can say why",
    "s": "held by PBS",
    "p": "held because of a bad password",
}
_TRIED_TOO_OFTEN = "too many failed attempts"


@dataclass(frozen=True, slots=True)
class Known:
    """Part of what qsub prints when it refuses, the key of `resources` that asks for it, what to do."""

    pattern: re.Pattern[str]
    key: str | None
    hint: str


def _known(pattern: str, key: str | None, hint: str) -> Known:
    return Known(re.compile(pattern, re.IGNORECASE), key, hint)


# the first that fits counts; sites' hooks write sentences of their own, often of several lines
REFUSALS: Final = (
    _known(r"cannot be used with|Resource invalid in|duplicated resource", "extra",  # before its line's own words
           "nsw writes -l select; write what the line asks for into a select of your own, or into resources"),
    _known(r"filesystem", "extra", "such as extra: ['#PBS -l filesystems=home:eagle'], in the recipe or for the site"),
    _known(r"unknown queue", "queue", "`qstat -Q` lists the queues"),
    _known(r"queue is not enabled", "queue", "`qstat -Q` says which queues take jobs"),
    _known(r"(access to|denied).*queue|queue.*(access|denied|not (allowed|authorized))", "queue",
           "`qstat -Qf QUEUE` says who may use it"),
    _known(r"rejected by all possible destinations", "queue",
           "nodes and time of the job fit no queue behind this one: `qstat -Qf` lists their limits"),
    _known(r"Resource_List\.walltime|wall ?time|time limit", "time",
           "`qstat -Qf QUEUE` lists resources_max.walltime and resources_min.walltime"),
    _known(r"account|project|allocation", "account", "set account in the recipe's resources or for the site"),
    _known(r"violates queue and/or server resource limits", "time",
           "PBS does not say which: `qstat -Qf QUEUE` lists resources_max and resources_min of walltime, nodect, ncpus"
           " and ngpus"),
    _known(r"unknown resource:?.*ngpus", "gpus",
           "this PBS has no resource ngpus: write the chunks in the site's words, extra: ['#PBS -l select=...']"),
    _known(r"unknown resource", "extra", "`qstat -Qf` and the site's pages name its resources"),
    _known(r"ngpus", "gpus", "`pbsnodes -a` lists what the nodes have"),
    _known(r"Resource_List\.mem|\bmem(ory)?\b", "memory", "`pbsnodes -a` lists what the nodes have"),
    _known(r"nodect|nodes?\b", "nodes", "`qstat -Qf QUEUE` lists resources_max.nodect"),
    _known(r"illegal attribute or resource value", "extra",
           "see -l select and -l place at the head of the job script: `nsw render`"),
    _known(r"illegal -j value", None,
           "this PBS accepts no such array; limits: {max_array: 1} of the site submits jobs one by one"),
    _known(r"exceeds server or queue size limit", None, "lower limits.max_array of the site"),
    _known(r"illegal -\w value|directive error|invalid option", "extra",
           "see the head of the job script: `nsw render`"),
    _known(r"bad [ug]id", None, "this user may not run jobs here; ask the site"),
)  # fmt: skip

# a refusal that ends by itself when earlier jobs end
FULL: Final = re.compile(r"would exceed .*limit|maximum number of jobs already in queue", re.IGNORECASE)

# the server may or may not have heard it
TRANSIENT: Final = re.compile(
    r"cannot connect to server|connection refused|couldn't connect to cluster|connection reset|connection timed out"
    r"|no route to host|communication failure|end of file|expected reply not received|pbs_iff|premature end of message"
    r"|server (is )?(busy|shutting down)|resource temporarily unavailable|fork: retry|munge|internal server error"
    r"|time-?out|no (free )?connections",
    re.IGNORECASE,
)

# exit statuses of qsub that are its verdict: of its own, of a hook (32), of the server (an error number modulo 256:
# 15004 and up, and from 15104 on those of select and place)
VERDICT: Final = frozenset({1, 2, 3, 4, 5, 6, 7, 12, 32, 38, *range(148, 160), *range(164, 202), 227, 236, 241}) - {
    181,
    183,
    185,
}


def held_too_often(comment: str) -> bool:
    """Whether PBS holds a job because it could not start it again and again."""
    return _TRIED_TOO_OFTEN in comment
