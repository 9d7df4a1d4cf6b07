"""The sampler of a job, with the fake nvidia-smi that the transcripts of an H100 taught: what it writes, and its end."""

import os
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from nsw.readers.conditions import condition_rows
from nsw.scripts.render import machinery_name, write_machinery
from tests.scripts.conftest import BASH, make_plan, make_run
from tests.scripts.test_ends import until

FAKE = Path(__file__).parents[1] / "fakes" / "nvidia_smi.py"
GPUS = ("GPU-5285cf6b-5b5f-7e9a-657a-6d5f982c4a79", "GPU-0a1b2c3d-5b5f-7e9a-657a-6d5f982c4a79")
# a program that ends once it was sampled three times
SAMPLED = (
    "bash",
    "-c",
    "until [ $(cat .conditions/* | grep -c ^2) -gt 4 ] && grep -c ^host, .conditions/*; do sleep 0.1; done",
)


@pytest.fixture
def smi(tmp_path, monkeypatch) -> Path:
    """The list of the machine's GPUs; its path is in the environment of every process that the job starts."""
    command = tmp_path / "bin" / "nvidia-smi"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(FAKE))} "$@"\n')
    command.chmod(0o755)
    gpus = tmp_path / "gpus"
    gpus.write_text(GPUS[0])
    monkeypatch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("NSW_FAKE_SMI", str(gpus))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return gpus


def processes(smi: Path) -> dict[int, str]:
    """What still runs and was started by the job: process ids and command lines."""
    lines = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (
                int(process.name) != os.getpid()
                and f"NSW_FAKE_SMI={smi}".encode() in (process / "environ").read_bytes()
            ):
                lines[int(process.name)] = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    return {process: line for process, line in lines.items() if line}


def sampled_run(command=SAMPLED, **more):
    return make_plan(make_run(command, before=("nsw_conditions",), **more))


def rows(scripts) -> list[dict]:
    return condition_rows(scripts.home() / "conditions.txt", start_s=None, end_s=None)


def test_gpu_and_host_are_sampled_beside_the_program_and_nothing_is_left_behind(scripts, smi):
    done = scripts.run(scripts.render(sampled_run()))
    assert done.returncode == 0, done.stderr
    assert (scripts.home() / "status").read_text().startswith("state=done\n")
    (row,) = rows(scripts)
    assert (row["gpu"], row["memory_before_mib"], row["memory_mib"]) == (GPUS[0], 0, 1103)
    assert row["temperature_c"] > 30
    assert not (scripts.home() / ".conditions").exists()
    assert processes(smi) == {}


def test_only_the_gpus_of_the_run_are_sampled(scripts, smi):
    smi.write_text("\n".join(GPUS))
    scripts.run(scripts.render(sampled_run()), CUDA_VISIBLE_DEVICES="1")
    assert [row["gpu"] for row in rows(scripts)] == [GPUS[1]]


def test_an_older_driver_gives_what_it_has(scripts, smi):
    lacking = "power.draw.instant power.draw.average clocks_event_reasons.active ecc.errors.uncorrected.volatile.total"
    scripts.run(scripts.render(sampled_run()), NSW_FAKE_SMI_WITHOUT=lacking)
    text = (scripts.home() / "conditions.txt").read_text()
    assert "memory, power.draw [W], temperature.gpu, clocks_throttle_reasons.active".partition(", ")[2] in text
    (row,) = rows(scripts)
    assert row["power_max_w"] > 70
    assert row["ecc_errors"] is None


def test_a_run_without_the_sampler_leaves_no_file(scripts, smi):
    scripts.run(scripts.render(make_plan(make_run(["true"]))))
    assert not (scripts.home() / "conditions.txt").exists()


def test_the_sampler_ends_when_the_job_is_killed(scripts, smi):
    job = subprocess.Popen([BASH, scripts.render(sampled_run(("sleep", "600"))), "1", "0"])
    try:
        until(lambda: any("-lms" in line for line in processes(smi).values()), "the sampler begins")
        job.kill()
        job.wait()
        until(lambda: all("sleep 600" in line for line in processes(smi).values()), "the sampler ends")
    finally:
        for process in processes(smi):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)


def test_a_signal_to_the_sampler_that_is_lost_is_sent_again(scripts, smi):
    """Lost where bash has forked and not yet begun: it forgets then what its parent's traps caught."""
    loses = """() { [ "$1" != "$nsw_sampling" ] || [ -n "$lost" ] || { lost=1; return; }; builtin kill "$@"; }"""
    job = scripts.start(scripts.render(sampled_run(["true"])), **{"BASH_FUNC_kill%%": loses})
    try:
        assert job.wait(60) == 0
    finally:
        job.kill()
        job.communicate()
    assert (scripts.home() / "status").read_text().startswith("state=done\n")
    until(lambda: processes(smi) == {}, "the sampler ends")


def test_the_first_rank_of_a_node_starts_a_sampler_that_ends_with_it(tmp_path, smi):
    write_machinery(tmp_path)
    home = tmp_path / "home"
    (home / ".conditions").mkdir(parents=True)
    ranks = {"NSW_LAYOUT": "2", "NSW_NODE_GPUS": "1", "PMI_SIZE": "2"}
    for rank in ("1", "0"):
        words = SAMPLED if rank == "0" else ("ls", "-A", ".conditions")
        done = subprocess.run(
            [BASH, tmp_path / machinery_name(), "rank", *words], cwd=home, env=os.environ | ranks | {"PMI_RANK": rank},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert rank == "0" or done.stdout == ""  # a sampler a node
    until(lambda: processes(smi) == {}, "the sampler ends")
    assert len(list((home / ".conditions").iterdir())) == 1
