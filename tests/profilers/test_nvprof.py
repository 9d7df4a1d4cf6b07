"""nvprof: its command line, and what is made of what it says where it does not work."""

import os
import subprocess

import pytest

from nsw.profilers import nvprof
from nsw.profilers.model import Request
from nsw.readers import read
from nsw.readers.messages import known_problems_in_file, known_problems_in_text

PROGRAM = ("python", "train.py")
NO_DRIVER = (
    "======== Warning: unable to locate cuda driver library, GPU profiling skipped\n"
    "======== Warning: No profile data collected.\n"
)
TOO_NEW = (
    "======== Warning: nvprof is not supported on devices with compute capability 8.0 and higher.\n"
    "                  Use NVIDIA Nsight Systems for GPU tracing and CPU sampling and NVIDIA Nsight Compute for GPU"
    " profiling.\n"
    "                  Refer https://developer.nvidia.com/tools-overview for more details.\n"
)


def test_the_whole_command_line():
    done = nvprof.profile(Request("/opt/nvprof", PROGRAM, options=("--profile-from-start", "off")))
    assert done.command == (
        "/opt/nvprof", "--profile-child-processes", "--csv", "--normalized-time-unit", "ns", "--log-file",
        "timeline.%p.nvprof.csv", "--profile-from-start", "off", *PROGRAM,
    )  # fmt: skip
    assert done.reports == ("timeline*.nvprof.csv",)


def test_each_process_of_a_launcher_has_a_log_of_its_own():
    done = nvprof.profile(Request("nvprof", PROGRAM, per_rank=True, rank_variable="OMPI_COMM_WORLD_RANK"))
    assert "timeline.rank%q{OMPI_COMM_WORLD_RANK}.%p.nvprof.csv" in done.command


# --- the messages by themselves ---------------------------------------------------------------------------------


def test_a_log_of_messages_only_is_read_as_what_it_is(tmp_path):
    file = tmp_path / "timeline.7.nvprof.csv"
    file.write_text(NO_DRIVER)
    report = read(file)
    assert report.tool == "nvprof"
    assert [p.message for p in report.problems if p.fix] == [
        (
            "nvprof: unable to locate cuda driver library, GPU profiling skipped"
            " (no NVIDIA driver on this machine: nothing was profiled)"
        )
    ]
    assert all(p.severity == "error" for p in report.problems)


def test_that_nothing_was_collected_is_said_where_no_reason_is_known():
    (problem,) = known_problems_in_text("nvprof", "======== Warning: No profile data collected.\n")
    assert "nvprof collected nothing" in problem.message


@pytest.mark.parametrize("text", ["just a line\n", "======== \n", "", "\n\n", "==== a heading ====\n", "a,b\n1,2\n"])
def test_other_texts_are_no_messages(tmp_path, text):
    file = tmp_path / "x.txt"
    file.write_text(text + "\n")
    assert [p.message for p in read(file).problems] in (["no known report format"], ["the file contains no results"])


def test_ncu_and_nsys_are_heard_too_and_other_tools_have_nothing_to_say():
    assert (
        "performance counters"
        in known_problems_in_text("ncu", "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n")[0].message
    )
    assert known_problems_in_text("ncu", "the program: ERR_NVGPUCTRPERM is an error\n") == []
    assert (
        "no importer"
        in known_problems_in_text("nsys", "The importer binary and its dependencies were not found.\n")[0].message
    )
    assert known_problems_in_text("cprofile", NO_DRIVER) == []


def test_of_a_long_output_both_ends_are_looked_at_once_each(tmp_path):
    file = tmp_path / "stderr"
    middle = "x" * 100 + "\n"
    file.write_text(NO_DRIVER + middle * 5000 + TOO_NEW + NO_DRIVER)
    assert len(known_problems_in_file("nvprof", file)) == 2
    assert known_problems_in_file("nvprof", tmp_path / "none") == []


@pytest.mark.skipif(not os.environ.get("NSW_NVPROF"), reason="no real nvprof: NSW_NVPROF would name one")
def test_the_stand_in_says_what_a_real_nvprof_says_without_a_driver(tmp_path):
    done = subprocess.run(
        nvprof.profile(Request(os.environ["NSW_NVPROF"], ("true",))).command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    (log,) = tmp_path.glob("timeline*.nvprof.csv")
    assert (done.returncode, done.stderr, log.read_text()) == (0, "", NO_DRIVER)
