"""Job scripts made from plain data, and what becomes of them when bash runs them."""

import os
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from nsw.plan.jobs import pack_jobs
from nsw.plan.model import Plan, Resources, Run
from nsw.schedulers.create import adapter_of
from nsw.scripts.render import render_job, write_machinery

BASH = shutil.which("bash")


def make_run(command, name="r1", *, env=None, params=None, time_s=60, after=(), **more) -> Run:
    return Run(name, "case", params or {}, "baseline", "baseline", None, 1, tuple(command), env or {},
               Resources(time_s=time_s), after=after, **more)  # fmt: skip


def make_plan(*runs: Run, per_task: int = 1, name: str = "t", **more) -> Plan:
    return Plan(name, "here", (), pack_jobs(name, runs, runs_per_task=per_task, max_array=100), **more)


@dataclass
class Scripts:
    """Renders and runs job scripts below a folder."""

    folder: Path
    scratch: Path

    def render(self, plan: Plan, *, scheduler: str = "local", campaign: str = "c-1", **more) -> Path:
        adapter, scratch = adapter_of(scheduler), str(self.scratch)
        lines = adapter.directives(plan.jobs[0], scratch) if adapter else ()
        text = render_job(plan, plan.jobs[0], scheduler=scheduler, campaign=campaign, scratch=scratch,
                          directives=lines, restarts=adapter.capabilities.restarts if adapter else "no", **more)  # fmt: skip
        (self.scratch / "scripts").mkdir(parents=True, exist_ok=True)
        write_machinery(self.scratch / "scripts")
        file = self.folder / "job.sh"
        file.write_text(text)
        return file

    def start(self, script: Path, attempt: int = 1, task: int = 0, **env: str) -> subprocess.Popen[str]:
        words = [BASH, str(script), str(attempt), str(task)]
        return subprocess.Popen(
            words, env=os.environ | env, cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def run(self, script: Path, attempt: int = 1, task: int = 0, **env: str) -> subprocess.CompletedProcess[str]:
        words = [BASH, str(script), str(attempt), str(task)]
        return subprocess.run(
            words, env=os.environ | env, cwd=self.folder, text=True, capture_output=True, check=False, timeout=300
        )

    def home(self, run: str = "r1", attempt: int = 1) -> Path:
        return self.scratch / "runs" / run / f"attempt-{attempt}"

    def status(self, run: str = "r1", attempt: int = 1) -> dict[str, str]:
        text = (self.home(run, attempt) / "status").read_text()
        return dict(line.split("=", 1) for line in text.splitlines())

    def output(self, run: str = "r1", attempt: int = 1) -> str:
        return (self.home(run, attempt) / "stdout").read_bytes().decode()

    def below(self, scratch: str) -> "Scripts":
        return replace(self, scratch=self.folder / scratch)


@pytest.fixture
def scripts(tmp_path) -> Scripts:
    folder = tmp_path / "w"
    folder.mkdir()
    return Scripts(folder, folder / "scratch")
