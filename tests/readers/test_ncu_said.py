"""What ncu and the program under it say where counters fail: what it means, what to do."""

import pytest

from nsw.readers.messages import known_problems_in_text

NOTHING = """\
==PROF== Connected to process 3302 (/home/user/calib)
wall_ms=436.9
==PROF== Disconnected from process 3302
==WARNING== No kernels were profiled.
Available Kernels:
1. alpha
2. beta
3. gamma_k
"""
LINES = {
    "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the"
    " target device 0.": "the user may not read this GPU's performance counters",
    "==ERROR== Failed to acquire the interprocess lock at /tmp/nsight-compute-lock. Please make sure that this path"
    " supports file-based locking. (13)": "another user's",
    "==ERROR== Failed to save memory block": "not enough memory to keep what a kernel writes",
    "==ERROR== Metric smsp__sass_thread_inst_executed_op_ffma_pred_on.sum is not supported in range replay.": "metrics of instructions",
    "[rank1]:[E1122 05:01:02.0 ProcessGroupNCCL.cpp:688] [Rank 1] Watchdog caught collective operation timeout:"
    " WorkNCCL(SeqNum=9, OpType=ALLREDUCE)": "NCCL's watchdog ended the program",
    "==ERROR== Profiling is not supported on device 0. To find out supported GPUs refer --list-chips option.": "this ncu does not know this GPU",
    "==ERROR== Cuda driver is not compatible with Nsight Compute.": "the driver is too old for it",
    # of ncu 2025.3 on an H100
    "==ERROR== Failed to parse options: filesystem error: status: Permission denied"
    " [/root/.config/NVIDIA Corporation/ncu-kernel-renames.yaml]": "HOME, which is another user's",
    "==ERROR== Invalid chip gk110": "too old or too new",
    "==WARNING== Note that specified NVTX include expressions match only push/pop ranges.": "no kernel was launched inside the NVTX range",
}
WARNINGS = {
    "==WARNING== Backing up device memory in system memory. Kernel replay might be slow. Consider using"
    ' "--replay-mode application" to avoid memory save-and-restore.': "did not fit into the GPU's memory a second time",
    '==WARNING== Could not deploy stock section files to "/home/user/Documents/NVIDIA Nsight Compute/2025.3.1/Sections".':
        "which is no fault",
}  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_a_known_fault_is_explained(line):
    (problem,) = known_problems_in_text("ncu", f"==PROF== Connected\n{line}\nthe program's own words\n")
    assert problem.severity == "error"
    assert LINES[line] in problem.message
    assert problem.fix


@pytest.mark.parametrize("line", WARNINGS)
def test_what_is_only_worth_knowing_is_a_warning(line):
    (problem,) = known_problems_in_text("ncu", f"{line}\n")
    assert problem.severity == "warning"
    assert WARNINGS[line] in problem.message


def test_a_filter_that_matched_nothing_is_told_with_what_there_was():
    (problem,) = known_problems_in_text("ncu", NOTHING)
    assert problem.fix == "the filter matched 0 of 3 kernels: alpha, beta, gamma_k"


def test_what_the_program_says_is_not_the_profilers():
    assert known_problems_in_text("ncu", "the watchdog barked\nout of memory\n") == []
