"""Replays transcripts of a real Cobalt against the fake one, and compares the answers.

The fake's time passes only when a step is taken here: a question is asked again after each step until its answer is
the one that the real Cobalt gave, or until it cannot become so.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transcripts import Exchange

FAKES = Path(__file__).parents[1] / "fakes"
BIN = FAKES / "cobalt" / "bin"

SCRIPTS = {
    "ok.sh": 'echo out; echo err >&2; exit "${RC:-0}"',
    "bad.sh": "exit 3",
    "env.sh": 'env | grep -v _FAKE_ | sort; pwd; echo "$0"; cat "$COBALT_NODEFILE"; ulimit -a | head -3',
    "slp.sh": 'until [ "${S:-900}" -lt 300 ] && [ -e release ]; do sleep 0.1; done',
    "trap.sh": "echo start; trap 'echo got TERM; exit 143' TERM; while :; do sleep 0.1; done",
    "ign.sh": "echo start; trap 'echo ignoring TERM' TERM; while :; do sleep 0.1; done",
    "segv.sh": "kill -SEGV $$",
    "kill9.sh": "kill -KILL $$",
    "term.sh": "kill -TERM $$",
}
OTHERS = {"badint.sh": "#!/nonexistent/sh\n", "nosb.sh": "echo no shebang\n"}

# columns that tell how long something took, or where the real machine was
VARYING = {
    "QueuedTime", "RunTime", "TimeRemaining", "StartTime", "Location", "Score", "SubmitTime", "Path", "Est_Start_Time",
}  # fmt: skip
ASKS = ("qstat", "cqstat", "ls", "cat", "tail", "head", "cqwait")


class Replay:
    """A fake Cobalt with a folder of scripts, as the real one's transcripts were made in.

    Args:
        folder: An empty folder.
    """

    def __init__(self, folder: Path) -> None:
        self.state = folder / "cobalt"
        self.home = folder / "home"
        self.work = self.home / "cw"
        self.state.mkdir()
        self.work.mkdir(parents=True)
        for name, text in SCRIPTS.items():
            self._script(name, f"#!/bin/bash\n{text}\n")
        for name, text in OTHERS.items():
            self._script(name, text)
        python = sys.executable.replace("'", "'\"'\"'")
        # sh runs this line, Python sees four strings: the path after #! could hold no blank
        self._script("py.py", f"#!/bin/sh\n'exec' '{python}' \"$0\" \"$@\"\nimport sys\nprint(sys.argv)\n")
        self._script("noexec.sh", "#!/bin/bash\n")
        (self.work / "noexec.sh").chmod(0o644)
        self.settings: dict[str, object] = {}
        self.set(
            manual=True, log_s=0, log_steps=12, kill_s=3600, dep_fail_s=3600, save_s=3600, outage_s=0, minute_s=1e6
        )
        self.cqm = _server()
        self.server = self.cqm.Server(self.cqm.State(self.state, self.cqm.DEFAULTS))

    def _script(self, name: str, text: str) -> None:
        (self.work / name).write_text(text)
        (self.work / name).chmod(0o755)

    def set(self, **settings: object) -> None:
        self.settings |= settings
        (self.state / "settings.json").write_text(json.dumps(self.settings))

    def next_id(self, number: int) -> None:
        with self.server.state.locked():
            known = self.cqm.load(self.server.state)
            self.server.state.write("cqm", known | {"next": number})

    def state_of(self, job: int) -> str | None:
        known = self.cqm.load(self.server.state)
        found = known["jobs"].get(str(job))
        return found and self.cqm.state_name(found, known)

    def step_until(self, job: int, *states: str | None) -> None:
        for _ in range(300):
            if self.state_of(job) in states:
                return
            self.server.step()
            time.sleep(0.03)
        raise AssertionError(f"job {job} is {self.state_of(job)}, not {states}")

    def ends(self, job: int) -> None:
        """The job ended, and was told to if it sleeps."""
        self.release(now=True)
        self.step_until(job, None)

    def delete(self, job: int) -> None:
        self.run(f"qdel {job}", "alice")
        self.step_until(job, None)

    def times_out(self, *jobs: int) -> None:
        self.set(minute_s=1e-6)
        for job in jobs:
            self.step_until(job, None)
        self.set(minute_s=1e6)

    def mend(self, script: str) -> None:
        (self.work / script).chmod(0o755)

    def filter(self, text: str) -> None:
        """A site's filter, a shell script; without a text there is none."""
        file = self.state / "etc" / "filter.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
        self.set(filter=str(file) if text else "")

    def close(self) -> None:
        """End the jobs that are left."""
        for child in self.server.children.values():
            self.cqm.send(child.pid, 9)
            child.wait()

    def save(self) -> None:
        self.server.state.write("saved", self.cqm.load(self.server.state))

    def crash(self) -> None:
        self.cqm.crash(self.server.state)

    def release(self, *, now: bool) -> None:
        """Let sleeping jobs end, or sleep on."""
        file = self.work / "release"
        if now:
            file.touch()
        else:
            file.unlink(missing_ok=True)

    def run(self, command: str, user: str) -> subprocess.CompletedProcess[str]:
        env = {
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.home),
            "NSW_FAKE_COBALT": str(self.state),
            "NSW_FAKE_PYTHON": sys.executable,
            "NSW_FAKE_USER": user,
        }
        return subprocess.run(
            ["bash", "-c", command], cwd=self.work, env=env, capture_output=True, text=True, check=False, timeout=300
        )

    def differs(self, exchange: Exchange, command: str, user: str) -> str | None:
        """How the fake's answer differs from the real one's; None when it does not."""
        command = re.sub(r"sleep \d+; ", "", command)  # steps are taken instead
        asks = command.split(maxsplit=1)[0] in ASKS or "QSTAT_HEADER" in command
        wanted = self._plain(exchange.stdout, exchange.stderr, exchange.code)
        answer: tuple[object, ...] = ()
        for attempt in range(40 if asks else 1):
            done = self.run(command, user)
            answer = self._plain(done.stdout, done.stderr, done.returncode)
            if answer == wanted:
                return None
            if attempt == 15:
                self.release(now=True)
            if asks:
                self.server.step()
                time.sleep(0.03)
        return f"{command}\n  real: {wanted}\n  fake: {answer}"

    def _plain(self, stdout: str, stderr: str, code: int) -> tuple[object, ...]:
        return plain(self._places(stdout)), [line for line in plain(self._places(stderr)) if line], code

    def _places(self, text: str) -> str:
        for path, name in ((str(self.state), "/opt/cobalt"), (str(self.home), "/home/alice")):
            text = text.replace(path, name)
        text = re.sub(r"/opt/cobalt/(nodefiles/)?cobalt\.|/tmp/tmp\w{6}$", "NODEFILE", text, flags=re.MULTILINE)
        return re.sub(r"NODEFILE\d+$", "NODEFILE", text, flags=re.MULTILINE).replace(str(BIN), "/opt/cobalt/bin")


def _server() -> Any:
    """The fake's queue manager, as a module of this process."""
    spec = importlib.util.spec_from_file_location("cqm", FAKES / "cobalt" / "cqm.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def plain(text: str) -> list[object]:
    """Lines without what changes from one day to the next; a table as its rows, an environment sorted."""
    lines = text.splitlines()
    found: list[object] = []
    at = 0
    while at < len(lines):
        if at + 1 < len(lines) and re.fullmatch(r"=+", lines[at + 1]):
            header = lines[at].split()
            at += 2
            while at < len(lines) and lines[at].strip() and not lines[at].startswith("/"):
                found.append(_row(header, lines[at]))
                at += 1
            found.append(header)
            continue
        found.append(_line(lines[at]))
        at += 1
    return sorted(found, key=str) if any("COBALT_" in str(line) for line in found) else found


def _row(names: list[str], line: str) -> dict[str, str]:
    """A row's cells; the transcripts' user names were replaced, so columns do not line up."""
    cells = re.split(r"\s{2,}", line.rstrip())
    cells += [""] * (len(names) - len(cells))
    return {name: value for name, value in zip(names, cells, strict=True) if name not in VARYING}


def _line(line: str) -> str:
    line = line.rstrip()
    if match := re.match(r"    (\w+) +: ", line):
        return match[1] if match[1] in VARYING else line
    if match := re.match(r"([-d][rwx-]{9})\S* +\d+ .* (\S+)$", line):  # ls -l
        return "" if match[2] in {".", ".."} else f"{match[1]} {match[2]}"
    line = re.sub(r"^total \d+$", "total", line)
    line = re.sub(r"\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4} \+0000 \(UTC\)", "DATE", line)
    line = re.sub(r"(COBALT_(?:START|END)TIME)=\d+", r"\1", line)
    line = re.sub(r"(COBALT_PARTNAME)=\S+|^cc\d\d$", r"\1", line)
    line = re.sub(r"Time       : \S+ [\d:.]+", "Time", line).replace("...traceback cut... ", "")
    return re.sub(r"'--env' '[A-Z]=[^']*' ", "", line)
