"""The node of the fake PBS: starts a job's script as the real pbs_mom does, kills its session, delivers its output."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from machinery import session_of

if TYPE_CHECKING:
    from jobs import Job

SIGNALS = {
    name[3:]: number for name, number in signal.__dict__.items() if name.startswith("SIG") and name[3:].isupper()
}


class Mom:
    """Runs scripts in `root`, which is PBS_HOME; jobs begin in the folder `home`."""

    def __init__(self, root: Path, home: Path, host: str) -> None:
        self.root, self.home, self.host = root, home, host
        for folder in ("mom_priv/jobs", "aux", "spool", "undelivered", "tmp"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        home.mkdir(parents=True, exist_ok=True)

    def start(self, job: Job) -> None:
        """A login shell reads the path of the script from its input, in the user's home folder.

        It reads the user's own start file and not /etc/profile, which is this machine's and may lead to another PBS.
        """
        asked = job.asked
        script = self.root / "mom_priv" / "jobs" / f"{job.id}.SC"
        script.write_text(asked.script)
        script.chmod(0o700)
        (self.root / "aux" / job.id).write_text(f"{self.host}\n" * max(1, job.need("mpiprocs") or job.need("nodect")))
        shell = asked.shell or "/bin/bash"
        argv = asked.command or ([f"-{Path(shell).name}", "--noprofile"] if asked.shell is None else [shell])
        profile = self.home / ".bash_profile"
        start = f". {shlex.quote(str(profile))}; " if asked.shell is None and profile.exists() else ""
        out, err = self._outputs(job)
        with out.open("ab") as stdout, err.open("ab") as stderr:
            job.process = subprocess.Popen(
                argv, executable=None if asked.command else shell, env=self._environment(job), cwd=self.home,
                stdin=subprocess.PIPE, stdout=stdout, stderr=stdout if asked.join == "oe" else stderr,
                start_new_session=True,
            )  # fmt: skip
        assert job.process.stdin is not None
        with suppress(BrokenPipeError):
            if not asked.command:
                job.process.stdin.write(f"{start}{shlex.quote(str(script))}\n".encode())
            job.process.stdin.close()
        job.files["home"] = str(self.home)

    def _outputs(self, job: Job) -> tuple[Path, Path]:
        """The spooled output and error; with -k d they are written where they belong at once."""
        found = []
        for which, name in (("o", "OU"), ("e", "ER")):
            path = self.root / "spool" / f"{job.id}.{name}"
            if "d" in job.asked.keep and not (job.asked.join == "oe" and which == "e"):
                path = self._target(job, which)
            path.touch()
            path.chmod(0o666 & ~job.asked.umask)
            found.append(path)
        return found[0], found[1]

    def _environment(self, job: Job) -> dict[str, str]:
        asked = job.asked
        env = dict(asked.variables) | {
            "ENVIRONMENT": "BATCH", "PBS_ENVIRONMENT": "PBS_BATCH", "HOME": str(self.home), "LOGNAME": asked.owner,
            "USER": asked.owner, "SHELL": "/bin/bash", "NCPUS": str(job.need("ncpus") or 1),
            "OMP_NUM_THREADS": str(job.need("ncpus") or 1), "PBS_JOBCOOKIE": os.urandom(16).hex().upper(),
            "PBS_JOBDIR": str(self.home), "PBS_JOBID": job.id, "PBS_JOBNAME": job.name, "PBS_MOMPORT": "15003",
            "PBS_NODEFILE": str(self.root / "aux" / job.id), "PBS_NODENUM": "0", "PBS_QUEUE": job.queue,
            "PBS_TASKNUM": "1", "TMPDIR": str(self.root / "tmp" / job.id), "PATH": "/usr/bin:/bin",
        }  # fmt: skip
        Path(env["TMPDIR"]).mkdir(exist_ok=True)
        if job.parent is not None:
            env |= {"PBS_ARRAY_INDEX": str(job.index), "PBS_ARRAY_ID": job.parent.id}
        return env

    # --- killing ----------------------------------------------------------------------------------------

    def kill(self, job: Job, number: int) -> None:
        """Send a signal to every process of the job's session."""
        if job.process is None:
            return
        for pid in session_of(job.process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def tell(self, job: Job, text: str) -> None:
        """What PBS itself writes into a job's output."""
        with self._outputs(job)[0 if job.asked.join == "oe" else 1].open("a") as file:
            file.write(f"=>> PBS: {text}\n")

    # --- what a job printed -----------------------------------------------------------------------------

    def _target(self, job: Job, which: str) -> Path:
        path = Path(job.path(which, self.host).partition(":")[2])
        asked = job.asked.output if which == "o" else job.asked.error
        return path / f"{job.id}.{'OU' if which == 'o' else 'ER'}" if (asked or "").endswith("/") else path

    def deliver(self, job: Job) -> bool:
        """Copy the output to where it belongs; False when that cannot be done."""
        good = True
        for which, name in (("o", "OU"), ("e", "ER")):
            spooled = self.root / "spool" / f"{job.id}.{name}"
            if job.asked.join == "oe" and which == "e":
                spooled.unlink(missing_ok=True)
            if not spooled.exists():
                continue
            target = self._target(job, which)
            try:
                shutil.copyfile(spooled, target)
                target.chmod(0o666 & ~job.asked.umask)
                spooled.unlink()
            except OSError:
                good = False
        return good

    def give_up(self, job: Job) -> None:
        """Keep what cannot be delivered."""
        for spooled in (self.root / "spool").glob(f"{glob_escape(job.id)}.*"):
            spooled.replace(self.root / "undelivered" / spooled.name)

    def forget(self, job: Job) -> None:
        """Remove what was printed by a start that does not count."""
        for spooled in (self.root / "spool").glob(f"{glob_escape(job.id)}.*"):
            spooled.unlink()


def glob_escape(text: str) -> str:
    return text.replace("[", "[[]")
