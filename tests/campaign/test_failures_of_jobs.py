"""What nsw says of the failures that people report: the cause first, and what to do at the end."""

from __future__ import annotations

import re

import pytest

from nsw.engine.collect import Status, judge, reason_with
from nsw.engine.failures import failures
from nsw.engine.ledger_rows import Cause, Reason, State
from nsw.schedulers import lsf, slurm
from nsw.schedulers.model import Phase

EXIT = Reason("exit status 1", Cause.EXIT)
OVER = Reason("the job was over its time limit of 10m in the middle of this run", Cause.OVER_TIME)

# as the tools print them, with their lines around: the row of the table, what the job wrote to stderr
SAID = [
    ("quota", "h5py: writing\nOSError: [Errno 122] Disk quota exceeded: '/lustre/scratch/out.h5'\n"),
    ("quota", "cp: error writing '/scratch/u/a': Disk quota exceeded\n"),
    ("disk-full", "nsys: write failed\nOSError: [Errno 28] No space left on device\n"),
    ("module-missing", ('Lmod has detected the following error: The following module(s) are unknown: "cuda/99"\n'
     'Please check the spelling or version number. Also try "module spider ..."\n')),
    ("module-missing", "ERROR: Unable to locate a modulefile for 'nvhpc/24.11'\n"),
    ("module-missing", "ModuleCmd_Load.c(213):ERROR:105: Unable to locate a modulefile for 'cuda/12.9'\n"),
    ("gpu-that-is-not-there", "RuntimeError: CUDA error: invalid device ordinal\nCUDA kernel errors might be\n"),
    ("gpu-that-is-not-there", "RuntimeError: No CUDA GPUs are available\n"),
    ("gpu-that-is-not-there",
     "ValueError: World size (8) is larger than the number of available GPUs (4) in this node.\n"),
    ("ranks-share-a-gpu", ("ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\n"
     "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000\n")),
    ("profiler-ranks", "==ERROR== Failed to acquire the interprocess lock: /tmp/nsight-compute-lock\n"),
    ("counters-closed", ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU"
     " Performance Counters on the target device 0.\n==ERROR== The application returned an error code (1).\n")),
    ("counters-taken", ("==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no other"
     " tool (like DCGM) is concurrently collecting profiling data.\n")),
    ("report-exists", ("Generating '/tmp/nsys-report-8d3e.qdstrm'\nFailed to create '/s/report.nsys-rep': File exists.\n"
     "Use `--force-overwrite true` to overwrite existing files.\n")),
    ("replay-waits", ("[rank1]:[E726 10:00:00 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation"
     " timeout: WorkNCCL(SeqNum=3, OpType=ALLREDUCE) ran for 600029 milliseconds before timing out.\n")),
    ("memory-of-the-job", ("slurmstepd: error: Detected 1 oom_kill event in StepId=11300781.0. Some of the step tasks"
     " have been OOM Killed.\nsrun: error: n6156: task 0: Out Of Memory\n")),
    ("memory-of-the-job", "slurmstepd: error: Detected 2 oom-kill event(s) in step 3756240.batch cgroup.\n"),
    ("memory-of-the-gpu", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total\n"),
    ("memory-of-the-host", "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n"),
    ("licence", "FlexNet Licensing error:-4,132. System Error: 0\n"),
    ("licence", "License checkout failed: Licensed number of users already reached.\n"),
    ("preempted", "slurmstepd: error: *** JOB 4242 ON n1 CANCELLED AT 2026-11-28T10:00:00 DUE TO PREEMPTION ***\n"),
    ("node-failed", ("slurmstepd: error: *** JOB 4242 ON n1 CANCELLED AT 2026-11-28T10:00:00 DUE TO NODE FAILURE, SEE"
     " SLURMCTLD LOG FOR DETAILS ***\n")),
    ("step-larger-than-job", "srun: error: Unable to create step for job 65: More processors requested than permitted\n"),
    ("srun-without-pmi", ('The application appears to have been direct launched using "srun",\n'
     "but OMPI was not built with SLURM's PMI support and therefore cannot\nexecute.\n")),
    ("driver-too-old", "Error: CUDA driver version is insufficient for CUDA runtime version\n"),
    ("not-compiled-for-this-gpu", "CUDA error: no kernel image is available for execution on the device\n"),
    ("kernel-fault", "torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n"),
    ("library-missing", ("./solver: error while loading shared libraries: libcudart.so.12: cannot open shared object file:"
     " No such file or directory\n")),
    ("nccl", "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled system error\n"),
    ("port-in-use", "The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).\n"),
    ("package-missing", "Traceback (most recent call last):\nModuleNotFoundError: No module named 'torch'\n"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "stderr"), SAID)
def test_a_failure_that_is_known_is_told_first_and_what_to_do_last(name, stderr):
    (row,) = (each for each in failures() if each.name == name)
    told = str(reason_with(EXIT, stderr.encode(), login_shell=False))
    assert told.startswith(f"{row.cause}: exit status 1" if row.cause else "exit status 1")
    assert told.endswith(f"; {row.remedy}")


def test_every_failure_of_the_table_has_a_trial_here():
    assert {row.name for row in failures()} == {name for name, _ in SAID} | {"profiler-was-writing"}


def test_of_a_run_over_its_time_the_profiler_that_still_wrote_is_told_first():
    said = b"loading\nCollecting data...\nGenerating '/tmp/nsys-report-8d3e.qdstrm'\n"
    told = str(reason_with(OVER, said, login_shell=False))
    assert told.startswith("the profiler was still writing its report, which takes minutes: the job was over its time")
    assert "give the pass more `time`" in told
    assert "still writing" not in str(reason_with(EXIT, said, login_shell=False))


@pytest.mark.parametrize(
    ("answer", "sentence", "todo"),
    [(slurm.answer("OUT_OF_MEMORY", "OutOfMemory"), "the job ran out of memory in the middle of", "resources.memory"),
     (slurm.answer("PREEMPTED", "Preempted"), "the job was preempted by another one in", "`nsw retry` runs it again"),
     (slurm.answer("NODE_FAIL", "NodeFail"), "a node of the job failed in the middle", "another node as a rule"),
     (lsf.answer("EXIT", "130", "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit", ""),
      "the job ran out of memory in the middle of", "resources.memory")],
)  # fmt: skip
def test_what_the_scheduler_says_of_an_end_comes_with_what_to_do(answer, sentence, todo):
    verdict = judge(answer, Status("running", started=1.0))
    told = str(reason_with(verdict.reason, b"epoch 3\n", login_shell=False))
    assert (verdict.state, told.startswith(sentence), todo in told) == (State.FAILED, True, True)


@pytest.mark.parametrize(("reason", "never", "words"), [
    ("BadConstraints", True, "no node satisfies what it asks for (BadConstraints); `sinfo -o '%N %f %G'` lists"),
    ("PartitionNodeLimit", True, "lower resources.nodes"),
    ("Licenses", False, "waits for a licence (Licenses)"),
])  # fmt: skip
def test_a_job_that_waits_for_ever_is_told_with_what_to_do(reason, never, words):
    waits = slurm.answer("PENDING", reason)
    assert (waits.phase, waits.never) == (Phase.QUEUED, never)
    assert words in (waits.reason or "")


@pytest.mark.parametrize(
    "said", ["epoch 3\n", "ValueError: out of memory of the past\n", "Report written to out.txt\n"]
)
def test_what_is_no_known_failure_gets_no_advice(said):
    assert not re.search("; ", str(reason_with(EXIT, said.encode(), login_shell=False)))
