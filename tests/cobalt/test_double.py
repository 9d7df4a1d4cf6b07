"""The fake Cobalt gives the answers that a real Cobalt 1.0.33 gave, command by command."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

import transcripts

from .replay import Replay

if TYPE_CHECKING:
    from collections.abc import Callable

OBSERVED = Path(__file__).parent / "observed"

# what is not replayed, by how the command begins, and why
UNCOVERED = {
    "qsub --help": "nsw never shows it; optparse breaks its lines by the width of the terminal",
    "qsub -t 10 -n 1 -I": "interactive sessions need ssh to a node",
    "nodeadm": "administration of nodes",
    "nodelist": "administration of nodes",
    "slpstat": "the service locator is not played",
    "qselect": "nsw never calls it",
    "cqdel": "nsw never calls it",
    "cqadm --delete": "its usage message is an administrator's",
    "cqwait 67": "in an outage: a Python 2 traceback, and nsw never calls it",
    "cqwait 1": "the same",
    'qsub -t 10 -n 1 --env A=1:B=x=y:C=p\\:q:D="a b" --env E=5 env.sh': "env.sh was not there yet; as for nosuch.sh",
    "cat 20.cobaltlog": "the file that could not be opened belongs to root, who may be running this test",
    "qstat 58; ls -la": "lists what other jobs left there",
    "cat envj.output": "holds the machine's limits and PATH",
    "qstat -fl 60": "its filter sets what the site's filter of that day set",
    "ls -la 1.*": "shows the launcher's temporary node file",
    "tail -6 di.cobaltlog": "asks for what was ordered minutes before",
    "tail -2 rst.cobaltlog": "has a line of the scheduler's about releasing nodes",
    "ls -la sub": "mode and links of the folder itself",
}

IDS = {"03": 22, "12": 67, "13": 69, "14": 75}  # transcripts that begin with a machine of their own


def inner(command: str) -> tuple[str, str]:
    """The command and who gave it."""
    match = re.fullmatch(r"su alice -c '(?:cd \S+; )?(?:export )?PATH=\S+; (.*)'( 2>&1)?", command, re.DOTALL)
    if match is None:
        return command.removeprefix("time "), ""
    return re.sub(r"^(time )?timeout \d+ ", "", match[1].removeprefix("time ")), "alice"


def covered(command: str) -> bool:
    return not any(command.startswith(beginning) for beginning in UNCOVERED)


# what happened before a command, by its line, which transcripts do not show
BETWEEN: dict[str, Callable[[Replay], object]] = {
    "06:32": lambda r: r.step_until(41, "running"),
    "06:68": lambda r: r.step_until(42, "running"),
    "06:146": lambda r: r.step_until(46, "running"),
    "07:41": lambda r: r.step_until(48, "running"),
    "07:55": lambda r: r.ends(48),
    "08:125": lambda r: r.ends(56),
    "09:31": lambda r: r.ends(58),
    "10:1": lambda r: r.times_out(38, 39),
    "11:1": lambda r: (r.set(kill_s=0), r.ends(46), r.mend("ok.sh"), r.filter(SITE_FILTER)),
    "11:21": lambda r: r.filter("echo boom >&2; exit 1"),
    "11:26": lambda r: (r.ends(60), r.filter("")),
    "11:73": lambda r: r.step_until(61, "starting"),
    "11:104": lambda r: (r.ends(61), r.ends(62), r.release(now=False)),
    "11:130": lambda r: r.step_until(64, "running"),
    "11:134": lambda r: r.step_until(65, "starting"),
    "12:6": lambda r: (r.release(now=False), r.step_until(67, "running"), r.set(down="cqm")),
    "12:102": lambda r: r.set(down="all"),
    "12:160": lambda r: r.set(down=""),
    "12:165": lambda r: r.step_until(68, "running"),
    "13:1": lambda r: (r.delete(64), [r.ends(job) for job in (65, 67, 68)], r.set(dep_fail_s=0), r.release(now=False)),
    "13:18": lambda r: (r.step_until(72, "running"), r.step_until(70, "dep_fail"), r.save(), r.crash()),
    "13:32": lambda r: r.crash(),
}

SITE_FILTER = """\
case "$*" in *project=p\\ *) ;; *) echo 'Project is required: use -A' >&2; exit 1;; esac
echo 'Job routed to queue "debug".
Memory mode set to cache quad for queue debug
WARNING: Filesystem attribute not set for this job submission.
This job will be set to request all filesystems.  In the event
of a filesystem outage, this job may be put on hold unnecessarily.' >&2
echo queue=debug
"""


def prepare(replay: Replay, number: str, line: int, command: str) -> None:
    """What happened before a command."""
    replay.release(now=False)
    BETWEEN.get(f"{number}:{line}", lambda _replay: None)(replay)
    if match := re.search(r"cqwait (--start )?(\d+)", command):
        if match[1]:
            replay.step_until(int(match[2]), "running", None)
        else:
            replay.ends(int(match[2]))


@pytest.fixture
def replay(tmp_path):
    found = Replay(tmp_path)
    yield found
    found.close()


def test_every_command_of_the_transcripts_gets_the_real_answer(replay):
    wrong, count, left = [], 0, []
    for path in sorted(OBSERVED.glob("*.txt")):
        number = path.name[:2]
        if number in IDS:
            replay.next_id(IDS[number])
        for exchange in transcripts.read(path):
            command, user = inner(exchange.command)
            if not covered(command):
                left.append(command)
                continue
            prepare(replay, number, exchange.line, command)
            errors = re.sub(r"\n(real|user|sys)\t\S+", "", exchange.stderr)
            user = user or ("root" if number >= "11" else "alice")
            said = replay.differs(replace(exchange, stderr=errors), command, user)
            count += 1
            if said:
                wrong.append(f"{path.name}:{exchange.line}: {said}")
        assert not wrong, f"{len(wrong)} of {count} so far\n" + "\n".join(wrong)
    assert count > 200
    assert [known for known in UNCOVERED if not any(command.startswith(known) for command in left)] == []
