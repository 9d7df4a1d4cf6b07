"""The profilers' own messages: recognised, explained, with something to do."""

import re

import pytest

from nsw.readers.messages import MESSAGES, explain, known_message

SAID = {
    "nvprof": {
        "ERR_NVGPUCTRPERM - The user does not have permission to profile on the target device. See": "NVreg_",
        "nvprof is not supported on devices with compute capability 8.0 and higher.": "nsys",
        "Skipping profiling on device 0 since profiling is not supported on devices with compute capability 7.5"
        " and higher.": "ncu",
        "No kernels were profiled.": "--profile-child-processes",
        "12 records have invalid timestamps due to insufficient device buffer space. You can": "--device-buffer-size",
        "unable to locate cuda driver library, GPU profiling skipped": "compute node",
        "Application returned non-zero code 1": "program's own output",
        "No events/metrics were profiled.": "--query-metrics",
        "Generated result file: /home/u/a.nvprof": "read that file",
    },
    "ncu": {
        "ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters": "NVreg_",
        "No kernels were profiled.": "--target-processes all",
        "Option '--section NoSuch' did not match any section.": "--list-sections",
        "Profiling is not supported on device 0. To find out supported GPUs": "--list-chips",
    },
    "nsys": {
        "The importer binary and its dependencies were not found.": "host-linux-x64",
        "Failed to create 'out.nsys-rep': File exists.": "--force-overwrite",
        "SKIPPED: a.sqlite does not contain CUDA kernel data.": "--trace",
        "Illegal --trace argument 'bogus'": "--version",
        "Existing SQLite export found: a.sqlite": "--force-export",
        "SKIPPED: a.sqlite does not contain NV Tools Extension (NVTX) data.": "record it",
        "ERROR: Report 'gpukernsum2' could not be found.": "--help-reports",
        "usage: nsys stats [<args>] <input-file>": "nsys stats --help",
        "Not all CUDA events might have been collected.": "--cuda-flush-interval",
        "Installed CUDA driver version (13.0) is not supported by this build of Nsight Systems.": "as new as",
    },
    "pytorch": {
        "WARNING: CUPTI initialization failed - CUDA profiler activities will be missing": "driver",
        "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES": "NVreg_",
        "UserWarning: CUDA is not available, disabling CUDA profiling": "compute node",
        "UserWarning: Warning: Profiler clears events at the end of each cycle.Only events": "acc_events",
    },
}


@pytest.mark.parametrize(
    ("tool", "text", "fix"), [(t, m, f) for t, several in SAID.items() for m, f in several.items()]
)
def test_a_known_message_says_what_to_do(tool, text, fix):
    problem = known_message(tool, text, line=7)
    assert problem is not None
    assert fix in (problem.fix or "")
    assert problem.line == 7
    assert text[:40] in problem.message


def test_a_tool_does_not_speak_for_another():
    assert explain("nvprof", "Existing SQLite export found") is None


def test_what_a_tool_calls_an_error_is_one_even_when_unknown():
    assert known_message("nvprof", "Quite new trouble", severity="error").severity == "error"
    assert known_message("nvprof", "Profiling application: ./a") is None


def test_every_pattern_compiles_and_every_error_has_an_explanation():
    for message in MESSAGES:
        re.compile(message.pattern)
        assert message.explanation
        assert message.tools <= {"nvprof", "ncu", "nsys", "pytorch"}
