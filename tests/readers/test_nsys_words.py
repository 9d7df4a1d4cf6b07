"""What nsys says when something went wrong, in its own words -> what nsw makes of it."""

from pathlib import Path

import pytest

from nsw.readers import read
from nsw.readers.messages import known_problems_in_text as said_of
from nsw.readers.messages import problem_of_known_message

# A stable part of the words as they stand in nsys, how a line of them reads, and what nsw's answer speaks of.
WORDS = [
    ("does not have permission to access NVIDIA", ("The user running nsys does not have permission to access NVIDIA GPU"
     " Performance Counters on the target device. For more details, please visit https://developer.nvidia.com/ERR_NVGPUCTRPERM"),
     "NVreg_RestrictProfilingToAdminUsers"),
    ("CUPTI dropped ", "CUPTI dropped 12 records. Some CUPTI events might be missing.", "totals are too small"),
    ("allocate CUPTI buffers ", "Couldn't allocate CUPTI buffers 3 times.Some CUPTI events might be missing.", "--duration"),
    ("Crossed maximum limit of ", "Crossed maximum limit of 1048576 bytes on CUPTI buffer allocation.", "--cuda-flush-interval"),
    ("Number of incomplete CUPTI events dropped", ("Number of incomplete CUPTI events dropped: 7. Incomplete events appear when"
     " GPU timestamp information have not been retrieved at the time the profiling session was stopped."), "end by itself"),
    ("Some CUPTI events might be missing", ("Number of CUPTI events produced: \t5000, CUPTI buffers: 3 of 9. Some CUPTI events"
     " might be missing. To make sure all the events are collected, let the application run until it quits"), "too small"),
    ("CUPTI activity records. Please try", ("Could not parse 4 CUPTI activity records. Please try updating the CUDA driver or use"
     " more recent profiler version."), "missing"),
    ("A client is already subscribed to CUPTI", ("A client is already subscribed to CUPTI. CUPTI does not support multiple"
     " concurrent subscriber."), "one profiler at a time"),
    ("Could not load the CUPTI library", ("Could not load the CUPTI library. Please make sure the installed CUDA version is"
     " supported."), "CUDA is not traced"),
    ("Incompatible CUDA driver version", ("Incompatible CUDA driver version. Please try updating the CUDA driver or use a more"
     " recent profiler version."), "as new as"),
    ("is no longer supported. Please update the GPU driver", ("Installed CUDA driver version (9.0) is no longer supported. Please"
     " update the GPU driver"), "older nsys"),
    ("is not supported by this build of Nsight Systems", ("Installed CUDA driver version (13.0) is not supported by this build of"
     " Nsight Systems. CUDA trace will be collected using libraries for driver version 12.5"), "as new as"),
    ("profiling might have not been started correctly", "CUDA profiling might have not been started correctly.", "CUPTI tool"),
    ("events collected. Does the process use ", "No CUDA events collected. Does the process use CUDA?", "--trace"),
    ("events might have been collected.", "Not all CUDA events might have been collected.", "--cuda-flush-interval"),
    ("events collected. Does the process use ", "No OpenMP events collected. Does the process use OpenMP?", "no fault if"),
    ("profiling might have not been started correctly", "OpenACC profiling might have not been started correctly.", "no fault if"),
    ("Unified Memory trace is not supported", "CUDA device 0: Unified Memory trace is not supported on this device.",
     "no Unified Memory figures"),
    ("CUDA graph-level trace requires", "WARNING: CUDA graph-level trace requires CUDA driver version 11.7 or higher.", "graphs"),
    ("may result in incorrect NVTX projection", ("Using CUDA stream capture prior to version 11.4 may result in incorrect NVTX"
     " projection."), "wrong NVTX ranges"),
    ("NVTX payload extension", "NVTX payload extension is incompatible. Provided compatibility ID 260 != 259.", "NVTX"),
    ("GPU initialization took too long", "WARNING: GPU initialization took too long. Please run the NVIDIA persistence daemon.",
     "nvidia-smi -pm 1"),
    ("paranoid level", "WARNING: CPU IP/backtrace sampling is disabled because the paranoid level is too high.", "CPU samples"),
    ("sampling not supported, disabling", "WARNING: CPU IP/backtrace sampling not supported, disabling.", "CPU samples"),
    ("Sampling events were lost in the interval", ("Sampling events were lost in the interval 1 - 9 (8) ns. Thread states and CPU"
     " utilization on the timeline might be incorrect. Try reducing the sampling rate."), "GPU figures are not affected"),
    ("GPU context switch tracing is not available", "WARNING: GPU context switch tracing is not available on this system.",
     "--gpuctxsw"),
    ("None of the installed GPUs are supported", "None of the installed GPUs are supported.", "--gpu-metrics-device"),
    ("No such GPU: ", "No such GPU: 0.", "--gpu-metrics-device"),
    ("terminated before the delay timeout", "The application terminated before the delay timeout. No report was generated.",
     "shorter --delay"),
    ("No report generated: no data to collect", "No report generated: no data to collect", "cudaProfilerStart"),
    ("file lock: %s. Attempted path was", "Failed to create CLI's file lock: Permission denied. Attempted path was: /tmp/nvidia/x.",
     "TMPDIR"),
    ("Insufficient space left in ", "Insufficient space left in /tmp/nvidia: 12 mb left 50 mb required", "TMPDIR"),
    ("Injection storage file ", ("Injection storage file /tmp/x has reach 80% of size limit (1.000000 GiB). Trace data will likely be"
     " truncated soon."), "cut short"),
    ("Connection to Agent is lost", "Connection to Agent is lost.", "memory limit"),
    ("Target application terminated with signal", "Target application terminated with signal 11", "program itself failed"),
    ("Report was successfully run, but no data", "Report was successfully run, but no data was returned.", "no events of that kind"),
]  # fmt: skip
IN_PASSING = [
    "Profiling has started.",
    "Profiling has stopped.",
    "Common injection library initialized successfully.",
    "Number of CUPTI events produced: \t5000, CUPTI buffers: 3.",
    "Number of incomplete CUPTI events dropped: 0.",
    "Number of OS runtime libraries events collected: \t94.",
    "Target application returned exit code 0",
    "Generating '/tmp/nsys-report-577a.qdstrm'",
    "CUDA device 0: Unified Memory trace is supported.",
    "Collecting data...",
]


@pytest.mark.parametrize(("part", "line", "answer"), WORDS, ids=[w[1][:40] for w in WORDS])
def test_what_went_wrong_is_explained(part, line, answer):
    del part
    problem = problem_of_known_message("nsys", line)
    assert problem is not None
    assert answer in f"{problem.message} {problem.fix}"
    (found,) = said_of("nsys", f"epoch 1\n{line}\nepoch 2\n")  # amid the output of a job too
    assert found.message == problem.message


@pytest.mark.parametrize("line", IN_PASSING)
def test_what_nsys_says_in_passing_is_no_problem(line):
    assert problem_of_known_message("nsys", line) is None


@pytest.mark.parametrize(
    "line",
    [
        "OSError: [Errno 28] No space left on device",
        "Failed to launch process pool",
        "Some of the GPUs are busy",
        "permission denied: /data",
        "loss is lost",
    ],
)
def test_words_of_a_program_are_not_taken_for_those_of_nsys(line):
    assert not said_of("nsys", line)


def test_the_same_words_in_a_report_are_warnings_with_their_explanation(nsys_database):
    database = nsys_database()
    for severity in (1, 2, 3):
        for _, line, _ in WORDS:
            database.add("DIAGNOSTIC_EVENT", timestamp=0, severity=severity, text=line)
    for line in IN_PASSING:
        database.add("DIAGNOSTIC_EVENT", timestamp=0, severity=1, text=line)
    problems = [p for p in read(database.done()).problems if p.message.startswith("nsys")]
    assert {p.severity for p in problems} == {"warning"}
    for _, line, answer in WORDS:
        text = " ".join(line.split()).partition(" CUDA trace will be collected")[0]  # which its explanation says
        assert any(text in p.message and answer in f"{p.message} {p.fix}" for p in problems), line


@pytest.mark.nsys
def test_the_words_are_those_of_an_installed_nsys(nsys):
    """As far as this version has them: older and newer ones have not all."""
    home = Path(nsys).resolve().parent
    folders = {f for root in (home, home.parent) for f in root.glob("*-linux-*")} | {home}
    files = [f for folder in folders for f in folder.rglob("*") if f.is_file() and f.stat().st_size < 200 << 20]
    binaries = [
        f for f in files if f.name in {"nsys", "nsys.py"} or f.name.startswith(("libToolsInjection", "libAnalysis"))
    ]
    text = b"".join(f.read_bytes() for f in binaries if "libToolsInjection" not in f.name or "64.so" in f.name)
    text += b"".join(f.read_bytes() for f in files if f.suffix == ".py")
    if len(text) < 1 << 20:
        pytest.skip("the programs of this nsys are not where they are looked for")
    missing = [part for part, _, _ in WORDS if part.encode() not in text]
    assert len(missing) <= len(WORDS) // 4, missing
