"""The commands of the transcripts, given to the fake PBS; what it answers is compared with what the real one did.

The fake's clock stands still. When an answer is not yet that of the transcript, time goes on to the next event, and the
command is given again; so no answer depends on how fast this machine is. Commands that change something run once.
"""

from __future__ import annotations

import re
import socket
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .double import FAKE, Double

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .transcripts import Step

SCRIPTS = {
    "ok.sh": 'echo out\necho err >&2\n[ -z "$S" ] || sleep "$S"\nexit ${RC:-0}\n',
    "slp.sh": "sleep ${S:-30}\n",
    "bad.sh": "sleep 3\nexit 1\n",
    "env.sh": 'env | grep -v NSW_FAKE | sort; echo "args: $*"; echo 0=$0; pwd\nulimit -a; hostname; shopt login_shell\n',
    "segv.sh": "kill -SEGV $$\n",
    "kill9.sh": "kill -KILL $$\n",
    "term.sh": "kill -TERM $$\n",
    "nocmd.sh": "nosuchcmd_xyz\n",
    "trap.sh": "i=0\ntrap 'echo \"got TERM at $i\"' TERM\necho start\nwhile :; do sleep 1; i=$((i+1)); done\n",
    "mem.sh": "sleep 30\n",
    "arr.sh": 'echo "idx=$PBS_ARRAY_INDEX id=$PBS_JOBID aid=$PBS_ARRAY_ID"\nenv | grep ^PBS_ | sort\nsleep 3\n'
    "[ $PBS_ARRAY_INDEX != 2 ] || exit 4\n",
    "bg.sh": 'sleep 200 &\necho "started $!"\nsleep 1\n',
    "d1.sh": "#PBS -N first\n\n# a comment\n#PBS -l walltime=60\necho now\n#PBS -N second\n",
    "d2.sh": "#PBS -o a b.out\necho\n",
    "d3.sh": '#PBS -o "a b.out"\n#PBS -v "A=\'x y\',B=2"\necho\n',
    "d4.sh": "#PBS -l select=1:ncpus=1\n#PBS -l mem=1gb\necho\n",
    "d5.sh": "#PBS -N has/slash\necho\n",
}
PY = "#!/usr/bin/env python3\n#PBS -N py\n#PBS -j oe\n#PBS -o py.out\nimport sys\nprint(sys.version, sys.argv)\n"
PATH = "/opt/site/opt/pbs/bin:/usr/local/bin:/usr/bin:/bin"
SHORT = r"""
short() { qstat -x -f -F json "$1" 2> /dev/null | python3 -c '
import json,sys
d=json.load(sys.stdin)
for k,j in d["Jobs"].items():
    keep={x:j.get(x) for x in ("Job_Name","job_state","substate","Exit_status","comment","depend","Hold_Types","run_count",
        "Stageout_status","exec_host","array","array_state_count","Output_Path","Error_Path","Account_Name","queue",
        "Resource_List","resources_used") if x in j}
    print(k, json.dumps(keep, indent=1))'
}
qstat2306() { NSW_FAKE_PBS_CLIENT=released qstat "$@"; }
su() { echo "Password: su: Authentication failure" >&2; }
"""
J1 = 'import json,sys; print(repr(list(json.load(sys.stdin)["Jobs"].values())[0]["Job_Name"]))'
JX = 'import json,sys; print(repr(list(json.load(sys.stdin)["Jobs"].values())[0]["Variable_List"].get("X")))'
CHANGES = re.compile(r"\b(qsub|qdel|qrls|qhold|qalter|qrerun|qsig|qmgr|qterm|rm|mkdir)\b|pbsnodes -[or]|^printf")
TRIES = 400
NOTES = {
    "kill -KILL of pbs_mom (as a node that dies)": "_lose_node",
    "restart mom": "_regain_node",
    "comm down": "_lose_node",
    "qstat -xs 118.pbs0; pbsnodes pbs0 | grep ' state'": "_regain_node",
    "qstat -x 118.pbs0": "_cycle",
}
# given when every job had ended
LATE = {"J=$(su alice -c true); qdel 211.pbs0"}
# whose command it was, where all users of the transcript have one name
USERS = {("21_directives_suspend_misc.txt", "qdel 216.pbs0", "alice"): "bob"}
NO_ACCOUNT = {"needs": "account", "says": "Request rejected: you must give a project with -A"}
NO_TIME = {"needs": "walltime", "queue": "debug", "says": "walltime is required\nsecond line of the message"}
SETTINGS = {
    # the node is back, and no scheduling cycle has been yet
    "qstat -xs 118.pbs0; pbsnodes pbs0 | grep ' state'": {"scheduling": False},
    "qstat -x 118.pbs0": {"scheduling": True},
    "comm down": {"down_state": "state-unknown,down"},
    "qsub -N memk -l select=1:ncpus=1:mem=100mb -l walltime=60 -j oe -o mem.out mem.sh": {"memory_kb": 423504},
    "qmgr -c 'create hook subhook event=queuejob' && qmgr -c 'import hook subhook application/x-python default"
    " /opt/site/hook.py'": {"hook_files": {"hook.py'": [NO_ACCOUNT, NO_TIME], "hook2.py'": [{"crashes": "subhook"}],
                                           "hook.py": [NO_ACCOUNT, NO_TIME], "hook2.py": [{"crashes": "subhook"}]}},
}  # fmt: skip
FUNCTIONS = (
    "/opt/site/opt/pbs-2306/qstat2306 -f -F json 199.pbs0 | grep BASH_FUNC; /opt/site/opt/pbs-2306/qstat2306 -f -F json"
    " 199.pbs0 | python3 -c 'import json,sys; json.load(sys.stdin); print(1)' 2>&1 | tail -1; qstat -f -F json 199.pbs0 |"
    " grep BASH_FUNC;  qstat -f -F json 199.pbs0 | python3 -c 'import json,sys; json.load(sys.stdin); print(1)' 2>&1 |"
    " tail -1"
)
# commands that are given and not compared, with the reason
SKIPPED = {
    "qdel -Wsuppress_email=-1 53.pbs0": "the real one hung, and was killed",
    'qsub -N bg -j oe -o bg.out -- /bin/sh -c "sleep 300 & echo started"': "typed wrong: the shell took it apart",
    'qstat -x started"; cat /home/alice/w/bg.out': "as above",
    "tracejob 128 2>/dev/null | tail -12": "reads the server's own logs",
    "tail -3 /opt/pbs/spool/server_priv/accounting/$(date +%Y%m%d)": "reads the server's own logs",
    'grep -c . envV.out; grep -E "^(FOO|PATH|PBS_CONF)" envV.out': "counts the variables of that machine",
    FUNCTIONS: "shows a function of that shell",
}


@dataclass
class Replay:
    """One file's commands on one fake PBS.

    Args:
        double: A fake with a virtual clock.
        home: The user's home folder, where jobs begin; `w` in it holds the scripts.
        spool: PBS_HOME of the fake.
    """

    double: Double
    home: Path
    spool: Path

    def prepare(self) -> None:
        work = self.home / "w"
        work.mkdir(parents=True)
        for name, body in SCRIPTS.items():
            (work / name).write_text(f"#!/bin/bash\n{body}")
        (work / "py.py").write_text(PY)
        # jobs read it as login shells do: their `sleep` is the fake's
        (self.home / ".bash_profile").write_text(
            f"export NSW_FAKE_PBS={self.double.root} PATH={FAKE / 'slow'}:/usr/local/bin:/usr/bin:/bin\n"
        )
        (self.home.parent / "prelude").write_text(SHORT)
        shown = {str(self.spool): "/opt/pbs/spool", str(self.home): "/home/alice", self.double.env["PATH"]: PATH}
        self.double.settings(shown=shown)

    def run(self, step: Step) -> subprocess.CompletedProcess[str]:
        """Give a command as the transcript did."""
        command = step.command.replace("/opt/site/opt/pbs-2306/qstat2306", "qstat2306")
        command = command.replace("/opt/pbs/spool", str(self.spool))
        command = command.replace("/home/alice", str(self.home))
        folder = self.home if not step.folder.startswith("/home/alice/w") else self.home / "w"
        user = USERS.get((step.file, step.command, step.user), step.user)
        env = {
            "HOME": str(self.home), "LANG": "C.UTF-8", "SHELL": "/bin/bash", "LOGNAME": user, "TZ": "UTC",
            "NSW_FAKE_PBS_ENVIRONMENT": "1", "NSW_FAKE_PBS_USER": user, "J1": J1, "JX": JX,
            "BASH_ENV": str(self.home.parent / "prelude"), **self.double.env,
        }  # fmt: skip
        return subprocess.run(
            ["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=120,
            errors="surrogateescape", stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def follow(self, step: Step, plain: Callable[[str], str]) -> str | None:
        """Give the command until it answers as the real one did; what differs at the end, None for nothing.

        Args:
            step: The command with the answer.
            plain: Takes out of an answer what no two systems have in common.
        """
        if "rc=143" not in step.command and "Connection refused" not in step.stderr:
            self.double.down(is_down=False)
        if "memk" in step.command:
            self.double.settings(memory_kb=423504)
        for note in step.notes:
            self._happens(note)
        self._happens(step.command)
        while step.command in LATE and self._go_on():
            pass
        for _ in range(TRIES):
            got = self.run(step)
            wanted = (plain(step.stdout), plain(step.stderr), step.rc)
            found = (plain(self._local(got.stdout)), plain(self._local(got.stderr)), got.returncode)
            if wanted == found or step.command in SKIPPED:
                return None
            if CHANGES.search(step.command) or not self._go_on():
                break
        real, fake = ("\n".join(map(str, answer)) for answer in (wanted, found))
        return f"{step.file}: $ {step.command}\n--- real\n{real}\n--- fake\n{fake}"

    def _happens(self, what: str) -> None:
        """What else was done to the real one at this place."""
        if what in SETTINGS:
            self.double.settings(**SETTINGS[what])
        if what in NOTES:
            self.double.control(NOTES[what])

    def _local(self, text: str) -> str:
        return (
            text.replace(str(self.spool), "/opt/pbs/spool")
            .replace(str(self.home), "/home/alice")
            .replace(f"\n{socket.gethostname()}\n", "\npbs0\n")
        )

    def _go_on(self) -> bool:
        """Let everything that can happen now happen, then time go on; False when nothing is left to happen."""
        deadline = time.monotonic() + 30
        while not (state := self.double.control("_settled"))["settled"]:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.005)
        if state["next"] is None:
            return False
        self.double.control("_advance")
        return True


def without_chance(text: str) -> str:
    """An answer without dates, process numbers, amounts used, and what the site is called."""
    text = re.sub(r",\n\t(?=\w+=)", ",", text)  # long values were broken before names were replaced
    text = re.sub(r"^\tPBS_O_.*(\bX=.*?|A=.*B=2),.*\n", r"\1\n", text, flags=re.MULTILINE)
    text = (
        re.sub(r"^(\tPBS_O_.*|--|    (comment|project) = .*)\n", "", text, flags=re.MULTILINE)
        if re.search("X=|A=x y", text)
        else text
    )
    text = re.sub(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}", "DATE", text)
    text = re.sub(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d at \d\d:\d\d", "DATE", text)
    text = re.sub(r"^total \d+\n|^d\S+ .* \.\.?\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^([-d]\S{9}) +\d+ \S+ +\S+ +(\d+) \S+ +\d+ [\d:]+ ", r"\1 \2 ", text, flags=re.MULTILINE)
    text = re.sub(r'("timestamp":\s*|history_timestamp"?(?::| =)\s*)\d+', r"\1N", text)
    text = re.sub(r'(session_id"?(?::| =)\s*)\d+', r"\1N", text)
    text = re.sub(r"\bpbs0/\d+\b", "pbs0/N", text)
    text = re.sub(r'("(?:mem|vmem)":\s*)"\d+kb"', r'\1"N"', text)
    text = re.sub(r"(resources_used\.(?:mem|vmem|walltime) = ).*", r"\1N", text)
    text = re.sub(r'("vmem":\s*"N",\s*"walltime":\s*)"[\d:]+"', r'\1"N"', text)
    text = re.sub(r"walltime \d+ exceeded", "walltime N exceeded", text)
    text = re.sub(r"^.* \((?:\S+, )*-\w\) .*\n", "", text, flags=re.MULTILINE)  # of ulimit
    text = re.sub(r"^(PBS_JOBCOOKIE|TMPDIR|PATH)=.*", r"\1=N", text, flags=re.MULTILINE)
    text = re.sub(r"^Terminated\n|.*: line \d+: .* Terminated .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^PBS_O_PATH=.*|^(real|user|sys)\t.*", "N", text, flags=re.MULTILINE)
    text = re.sub(r"^\d+(?= bash -c)|(?<=^started )\d+", "N", text, flags=re.MULTILINE)
    text = re.sub(r"(?<=^-rw------- )\d+(?= (arr|a2_))", "N", text, flags=re.MULTILINE)
    text = re.sub(r"^-rw------- \d+ 15.pbs0.OU\n", "", text, flags=re.MULTILINE)  # of another file
    text = re.sub(r"(?<=\w) +\d{2,}(?=   \d   \d )", " N", text)  # sessions
    text = re.sub(r"^(pbs0 +0) +\d+", r"\1 N", text, flags=re.MULTILINE)
    text = re.sub(r'"(last_\w+_time)":\s*\d+', r'"\1": N', text)
    text = re.sub(r"line \d+ column \d+ \(char \d+\)", "PLACE", text)
    text = text.replace("Job was sent for execution at", "Job run at")
    text = re.sub(r'^ *"stime":"DATE",\n', "", text, flags=re.MULTILINE)
    text = re.sub(r"(got TERM at \d+\n?)+", "got TERM at N", text)
    text = re.sub(r"^ +\^$", "^", text, flags=re.MULTILINE)
    return text.rstrip("\n")
