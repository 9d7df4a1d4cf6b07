"""The profilers' own messages: recognised, explained, with something to do."""

import re
from pathlib import Path

import pytest

from nsw.readers import read
from nsw.readers.messages import find_known_message, known_messages, problem_of_known_message
from nsw.readers.messages import known_problems_in_text as said_of

FIXTURES = Path(__file__).parents[1] / "fixtures"

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
        "No events/metrics were profiled.": "--profile-child-processes",
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
        "dlopen failed: libcudnn.so.9: cannot open shared object file: No such file or directory": "leave that trace away",
        "[Errno 2] No such file or directory: 'report.nsys-rep'": "check its name",
    },
    "vtune": {
        "Error: Cannot start data collection because the scope of ptrace system call is limited. To enable": "sampling-mode: hw",
        "Error: This analysis requires one of these actions: a) Install Intel Sampling Drivers. b) Config": "sampling-mode: sw",
        "Error: 0x40000024 (No data) -- No data is collected.": "runs for seconds",
    },
    "perf": {
        "Error: Access to performance monitoring and observability operations is limited.": "perf_event_paranoid=2",
        "Error: unknown switch `j'": "profilers: {perf:",
        "WARNING: perf not found for kernel 5.15.0-1019": "profilers: {perf:",
        "Processed 6513 events and lost 4 chunks!": "freq",
    },
    "py-spy": {
        "Permission Denied: Try running again with elevated permissions by going 'sudo env ...": "ptrace_scope",
        "py-spy> 1.24s behind in sampling, results may be inaccurate. Try reducing the sampling rate": "rate: 50",
    },
    "gprof": {"nsw: ./a wrote no profile: it was not built with -pg, or a signal ended it": "-pg"},
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
    problem = problem_of_known_message(tool, text, line=7)
    assert problem is not None
    assert fix in (problem.fix or "")
    assert problem.line == 7
    assert text[:40] in problem.message


def test_a_tool_does_not_speak_for_another():
    assert find_known_message("nvprof", "Existing SQLite export found") is None


def test_what_a_tool_calls_an_error_is_one_even_when_unknown():
    assert problem_of_known_message("nvprof", "Quite new trouble", severity="error").severity == "error"
    assert problem_of_known_message("nvprof", "Profiling application: ./a") is None


def test_a_warning_of_the_compiler_says_when_it_counts():
    text = (
        "Profiling results might be incorrect with current version of nvcc compiler used to compile cuda app. Compile with"
        " nvcc compiler 9.0 or later version to get correct profiling results. Ignore this warning if code is already"
        " compiled with the recommended nvcc version "
    )
    [problem] = said_of("nvprof", f"==77== Warning: {text}")
    assert (problem.severity, problem.fix, problem.is_note) == ("warning", None, True)
    assert problem.message.endswith("unless nvcc 9 or newer compiled the program)")


@pytest.mark.parametrize(
    "text",
    [
        "WARNING: CPU context switch tracing not supported, disabling.",
        "WARNING: Backtraces will not be collected because sampling is disabled.",
        "SKIPPED: a.sqlite does not contain NV Tools Extension (NVTX) data.",
        "Installed CUDA driver version (13.0) is not supported by this build of Nsight Systems.",
        "NVTX payload extension is incompatible. Provided compatibility ID 260 != 259.",
        "OS runtime libraries profiling might have not been started correctly.",
        "cuBLAS symbols found in libcublas.so.13 symbol table. No cuBLAS trace will be generated from that library.",
        "Tracing cuDNN library version 91.9 is currently not supported.Loading 'a.so' failed: dlopen hook: 'a.so'",
    ],
)
def test_messages_on_what_no_answer_shows_are_notes(text):
    assert problem_of_known_message("nsys", text, severity="warning").is_note
    assert not problem_of_known_message("nsys", "SKIPPED: a.sqlite does not contain CUDA kernel data.").is_note


@pytest.mark.parametrize(("code", "failed"), [(1, False), (127, False), (134, True), (139, True)])
def test_an_exit_status_of_the_program_is_no_failure_of_the_measurement(code, failed):
    problem = problem_of_known_message("ncu", f"The application returned an error code ({code}).", severity="error")
    assert ("itself failed" in problem.message) == (problem.fix is not None) == failed
    assert ("after what was measured" in problem.message) != failed


# What happened, by the tool's own words (as far as a tool has words for it) -> what the explanation and the fix speak of.
HAPPENED = {
    "no permission for the counters": {
        "nvprof": [("ERR_NVGPUCTRPERM - The user does not have permission to profile on the target device. See the following"
                   " link for instructions to enable permissions"), "The user does not have permission to profile"],
        "ncu": [("ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target"
                " device 0. For instructions on enabling permissions")],
        "nsys": ["Insufficient privilege, see https://developer.nvidia.com/ERR_NVGPUCTRPERM"],
        "pytorch": ["CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"],
    },
    "unsupported device": {
        "nvprof": ["nvprof is not supported on devices with compute capability 8.0 and higher.",
                   ("Skipping profiling on device 0 since profiling is not supported on devices with compute capability 7.5 and"
                   " higher."), "CDP tracing and profiling are not supported on devices with compute capability 7.0 and later.",
                   "Events/metrics profiling is not supported on the virtualized GPU."],
        "ncu": ["Profiling is not supported on device 0. To find out supported GPUs refer --list-chips option.",
                "Insufficient driver version to profile on device 0.", "Device is not supported for pm sampling",
                "ERR_NVCMPGPU - Profiling is not supported on the NVIDIA Crypto Mining Processors (CMP)."],
        "nsys": ["None of the installed GPUs are supported.", "NVIDIA GPUs not found, feature is not available",
                 "Installed CUDA driver version (9.0) is no longer supported. Please update the GPU driver",
                 ("Installed CUDA driver version (13.0) is not supported by this build of Nsight Systems. CUDA trace will be"
                 " collected using libraries for driver version 12.5")],
    },
    "no kernels profiled": {
        "nvprof": ["No kernels were profiled.", "No events/metrics were profiled.", "No profile data collected.",
                   "no profile data collected."],
        "ncu": ["No kernels were profiled.", "No ranges were profiled."],
        "nsys": ["SKIPPED: a.sqlite does not contain CUDA kernel data.", "SKIPPED: a.sqlite does not contain CUDA trace data.",
                 "No CUDA events collected. Does the process use CUDA?"],
    },
    "buffer too small": {
        "nvprof": [("12 records have invalid timestamps due to insufficient device buffer space. You can configure the buffer"
                   " space using the option --device-buffer-size."),
                   ("12 records have invalid timestamps due to insufficient device buffer space. You can configure the buffer"
                   " space using the option --device-cdp-buffer-size."),
                   ("3 records were dropped due to insufficient device buffer space. You can configure the buffer space using"
                   " advanced options --device-buffer-size, --device-cdp-buffer-size"),
                   "5 records have invalid timestamps due to insufficient semaphore pool size."],
        "nsys": ["Not all CUDA events might have been collected."],
    },
    "replay failed": {
        "nvprof": ["Events/metrics cannot be profiled on device 0 because replay is disabled.",
                   "Events/metrics cannot be profiled on some kernel(s) on device 0 because replay is disabled.",
                   'Event group "a" can\'t be profiled in one run on device 0', "Kernel replay failed"],
        "ncu": ['Failed to profile "gemm" in process 77', "Failed to prepare kernel for profiling", "LaunchFailed",
                "Failed to profile range", "Failed to prepare range for profiling"],
    },
    "importer missing": {"nsys": ["The importer binary and its dependencies were not found."]},
    "report sent elsewhere because the file existed": {
        "nsys": ["Failed to create '/home/u/out.nsys-rep': File exists.", "Generated:  /tmp/nsys-report-1a2b.nsys-rep",
                 "Generated: /tmp/nsys-report-1a2b.nsys-rep"],
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("tool", "said"),
    [(tool, said) for forms in HAPPENED.values() for tool, several in forms.items() for said in several],
)
def test_each_form_of_what_goes_wrong_is_explained_with_something_to_do(tool, said):
    problem = problem_of_known_message(tool, said)
    assert problem is not None
    assert said in problem.message
    assert len(problem.message) > len(f"{tool}: {said} ()") + 15  # an explanation follows
    assert problem.fix


@pytest.mark.parametrize("tool", ["nvprof", "ncu", "nsys"])
def test_they_are_found_on_the_lines_that_the_tools_write(tool):
    lead = {"nvprof": "==77== Warning: ", "ncu": "==ERROR== ", "nsys": ""}[tool]
    lines = [said for forms in HAPPENED.values() for said in forms.get(tool, [])]
    found = said_of(tool, "epoch 1\n" + "\n".join(lead + line for line in lines))
    assert [p.message for p in found]
    for line in (line for line in lines if not find_known_message(tool, line).is_outcome):
        assert any(line in message for message in (p.message for p in found)), line


def test_every_pattern_compiles_and_every_error_has_an_explanation():
    for message in known_messages():
        assert message.explanation
        assert message.tools <= {
            "nvprof", "ncu", "nsys", "pytorch", "perf", "py-spy", "gprof", "tau", "vtune", "aps",
        }  # fmt: skip


@pytest.mark.parametrize("tool", ["nsys", "ncu", "nvprof"])
@pytest.mark.parametrize(
    "text",
    [
        "timeout: failed to run command '{}': No such file or directory",
        "timeout: failed to run command \u2018/opt/bin/{}\u2019: No such file or directory",
        "slurmstepd: error: execve(): {}: No such file or directory",
        "/s/job.sh: line 12: {}: command not found",
    ],
)
def test_a_profiler_that_is_missing_itself_is_not_taken_for_the_program(tool, text):
    problem = problem_of_known_message(tool, text.format(tool))
    assert problem is not None
    assert problem.message.endswith(f"({tool} itself is not there, on the node of the job)")
    assert f"profilers: {{{tool}: /path/to/{tool}}}" in (problem.fix or "")
    program = problem_of_known_message(tool, text.format("./prog"))
    assert program is None or "itself" not in program.message


@pytest.mark.parametrize(
    ("file", "cause", "fix"),
    [
        ("h100/ncu-denied.txt", "ERR_NVGPUCTRPERM", "NVreg_RestrictProfilingToAdminUsers"),
        ("h200/ncu-watchdog.txt", "Watchdog caught collective operation timeout", "init_process_group(timeout="),
    ],
)
def test_of_what_a_real_ncu_said_the_cause_is_told_once_and_not_what_followed_from_it(file, cause, fix):
    errors = [p for p in said_of("ncu", (FIXTURES / file).read_text()) if p.severity == "error"]
    assert len(errors) == 1
    assert cause in errors[0].message
    assert fix in errors[0].fix


def test_a_program_that_the_system_ended_while_ncu_saved_its_memory():
    found = said_of("ncu", (FIXTURES / "h100" / "ncu-memory-limit.txt").read_text())
    assert [(p.level, p.fix and "memory" in p.fix) for p in found] == [
        ("aside", None),
        ("error", True),
        ("warning", True),
    ]


@pytest.mark.parametrize("file", ["ncu-no-memory.txt", "ncu-no-file.txt"])
def test_a_kernel_whose_memory_ncu_has_no_room_for(file):
    """Neither on the GPU nor in the host's memory nor, in the second, in a file."""
    text = (FIXTURES / "h100" / file).read_text()
    warning, error = (p for p in said_of("ncu", text) if not p.is_note)
    assert (warning.severity, error.severity) == ("warning", "error")
    assert "copies it to a file" in warning.message
    assert "not enough memory to keep what a kernel writes" in error.message
    assert "replay: application" in error.fix


def test_a_pasted_output_of_ncu_tells_the_cause_and_how_many_messages_follow_from_it(tmp_path):
    file = tmp_path / "log.txt"
    file.write_text((FIXTURES / "h100" / "ncu-no-memory.txt").read_text())
    errors = [p.message for p in read(file).problems if p.severity == "error"]
    assert "failed mapping file" in errors[0]
    assert errors[0].endswith("; 3 messages that follow from it left out")
    assert len(errors) == 2  # and that its results are in another file


def test_what_is_said_of_one_launch_is_a_sentence(tmp_path):
    file = tmp_path / "log.txt"
    file.write_text((FIXTURES / "h200" / "ncu-watchdog.txt").read_text())
    (error,) = (p for p in read(file).problems if p.severity == "error")
    assert "waits for the other ranks" in error.message
    assert error.message.endswith("; 1 message that follows from it left out")
    assert "exclude: [nccl]" in error.fix


def test_messages_of_ncu_that_mean_the_same_are_one(tmp_path):
    file = tmp_path / "log.txt"
    file.write_text("".join(f'==ERROR== Failed to profile "k{n}" in process 7\n' for n in range(5)))
    (problem, *_) = read(file).problems
    assert '"k0"' in problem.message
    assert problem.message.endswith("(and 4 like it)")


_HANGS = "==WARNING== Launching the workload is taking more time than expected. If this continues to hang, ..."


def test_nccls_kernels_are_blamed_for_a_hang_where_ncu_was_running_one_again():
    found = said_of("ncu", (FIXTURES / "h200" / "ncu-watchdog.txt").read_text())
    (hang,) = (p for p in found if "taking more time" in p.message)
    assert "exclude: [nccl]" in hang.fix
    assert "ncclDevKernel_AllReduce_Sum_f32_RING_LL is run again and waits for the other ranks" in hang.message


@pytest.mark.parametrize("profiling", ['Profiling "spin_wait" - 3: 0%..', 'Profiling "1:7:spin_wait:12": 0%..'])
def test_a_hang_of_another_kernel_names_it_and_speaks_of_no_nccl(profiling, tmp_path):
    text = f"==PROF== {profiling}\n{_HANGS}\n"
    (hang,) = said_of("ncu", text)
    assert "it was running spin_wait again" in hang.message
    assert "exclude: [spin_wait]" in hang.fix
    assert "nccl" not in (hang.message + hang.fix).lower()
    (tmp_path / "log.txt").write_text(text)
    assert any(p.fix == hang.fix for p in read(tmp_path / "log.txt").problems)


def test_a_hang_that_an_error_ended_is_not_said_beside_it(tmp_path):
    log = f'==PROF== Profiling "k": 0%\n{_HANGS}\n'
    (tmp_path / "hang.txt").write_text(log)
    assert any("taking more time" in p.message for p in read(tmp_path / "hang.txt").problems)
    (tmp_path / "failed.txt").write_text(log + "==ERROR== LaunchFailed\n")
    (problem,) = read(tmp_path / "failed.txt").problems
    assert "LaunchFailed" in problem.message


def test_hints_name_the_tools_own_options_and_keys_of_recipes_as_such():
    """A key of a recipe is of no use to one who ran the tool by hand."""
    for message in known_messages():
        for key in re.findall(r"(?:replay|knobs|within|kernels): ?[\w{]+", message.fix or ""):
            before = (message.fix or "").partition(key)[0]
            assert "(" in before[before.rfind(")") + 1 :], message.fix


def test_a_hang_of_a_kernel_that_is_not_known_guesses_none():
    (hang,) = said_of("ncu", _HANGS)
    assert "[NAME]" in hang.fix
    assert "nccl" not in (hang.message + hang.fix).lower()
