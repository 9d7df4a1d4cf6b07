"""`nsw run` on the fake Grid Engine, and what its adapter makes of answers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from nsw.campaign.ledger import Ledger
from nsw.errors import CommandResult
from nsw.schedulers.model import Phase
from nsw.schedulers.sge import Sge

FAKE = Path(__file__).parents[1] / "fakes" / "sge" / "bin"
SGE = Sge()
RECIPE = """
nsw: 1
name: many
app: {command: "bash -c 'echo {{ n }} >>WORK/ran; [ {{ n }} != 3 ] || exit 4'"}
matrix: {n: [1, 2, 3, 4]}
passes: [baseline]
resources: {gpus: 0, time: 1mMORE}
"""


def run(work: Path, more: str = "") -> tuple[int, list[tuple[str, str]]]:
    (work / "sge").mkdir(exist_ok=True)
    (work / "recipe.yaml").write_text(RECIPE.replace("WORK", str(work)).replace("MORE", more))
    (work / "sites.yaml").write_text("nsw: 1\nsites: {s: {scheduler: sge}}\n")
    words = ("run", "recipe.yaml", "--site", "s", "--sites", "sites.yaml", "--root", "campaigns", "--yes")
    env = os.environ | {"NSW_FAKE_SGE": str(work / "sge"), "NSW_FAKE_PYTHON": sys.executable}
    env["PATH"] = f"{FAKE}{os.pathsep}{env['PATH']}"
    done = subprocess.run(
        (sys.executable, "-m", "nsw", *words), env=env, capture_output=True, text=True, check=False, cwd=work
    )
    (folder,) = (work / "campaigns").iterdir()
    with Ledger(folder / "campaign.db", read_only=True) as ledger:
        return done.returncode, [(str(run.state), run.reason or "") for run in ledger.runs()]


def test_a_refusal_names_the_line(tmp_path):
    code, runs = run(tmp_path, ", queue: nosuch")
    assert code == 1
    assert "resources.queue at recipe.yaml:7:" in runs[0][1]


def test_half_an_answer_is_none():
    whole = "<?xml version='1.0'?><job_info><job_list><JB_job_number>7</JB_job_number><JB_name>n</JB_name><state>Eqw</state><tasks>2-6:2</tasks></job_list></job_info>"
    (line,) = SGE.parse_queue(CommandResult(("qstat",), 0, "motd\n" + whole)) or ()
    assert (line.job, list(line.indices or ()), line.answer.phase, line.answer.never) == (
        "7",
        [2, 4, 6],
        Phase.QUEUED,
        True,
    )
    assert SGE.parse_queue(CommandResult(("qstat",), 0, whole[:90])) is None
    assert (
        SGE.parse_queue(CommandResult(("qstat",), 0, whole.replace("<job_info>", "<!DOCTYPE x><job_info>", 1))) is None
    )


def test_a_warning_of_qsub_is_no_refusal():
    said = "Unable to run job: warning: me your job is not allowed to run in any queue\nYour job 12 has been submitted"
    assert SGE.refusal(CommandResult(("qsub",), 1, "", said)) is None
