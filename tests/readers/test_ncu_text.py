"""Nsight Compute's pages as text: boxes of dashes, headers of every version, advice, job logs."""

from pathlib import Path

import pytest

from nsw.readers import read
from nsw.tables.parquet_tables import full_rows

HEAD = "[42] app@127.0.0.1\n"
LAUNCH = "  void k<float>(int *, Context 1) (64, 1, 1)x(16, 4, 1), Context 1, Stream 7, Device 0, CC 8.6\n"
TABLE = """\
    Section: GPU Speed Of Light Throughput
    ----------------------- ----------- ------------
    Metric Name             Metric Unit Metric Value
    ----------------------- ----------- ------------
    Duration                         us        99.68
    Elapsed Cycles                cycle       81,484
    Waves Per SM                                1.33
    Function Cache          CachePreferNone
    L2 Hit Rate                       %      (!) nan
    ----------------------- ----------- ------------
"""
ADVICE = """\

    OPT   Est. Local Speedup: 14.75%                                                       
          Every scheduler is capable of issuing one instruction per cycle.                 
          But only 5% were.                                                                
    ----- --------------------------------------------------------------------------------------------------------------
    WRN   Look elsewhere.
"""  # noqa: W291


def tables(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "log.txt"
    path.write_bytes(text.encode(encoding))
    report = read(path)
    return report, {t: list(full_rows(t, d)) for t, d in report.tables.items()}


def test_a_launch_with_its_table(tmp_path):
    report, found = tables(tmp_path, HEAD + LAUNCH + TABLE.replace("    Function Cache          CachePreferNone\n", ""))
    (launch,) = found["launches"]
    assert report.format == "ncu-text"
    assert (launch["launch_id"], launch["pid"], launch["process"], launch["host"]) == (0, 42, "app", "127.0.0.1")
    assert launch["kernel"] == "void k<float>(int *, Context 1)"
    assert (launch["grid"], launch["block_size"], launch["stream"], launch["device"]) == (
        "(64, 1, 1)",
        "(16, 4, 1)",
        7,
        0,
    )
    assert (launch["duration_ns"], launch["duration_ns_pm"], launch["compute_capability"]) == (99680.0, 5.0, "8.6")
    assert [(m["metric"], m["unit"], m["value"]) for m in found["metrics"]] == [
        ("Duration", "us", 99.68),
        ("Elapsed Cycles", "cycle", 81484.0),
        ("Waves Per SM", "", 1.33),
        ("L2 Hit Rate", "%", None),
    ]
    assert {m["section"] for m in found["metrics"]} == {"GPU Speed Of Light Throughput"}


def test_a_metric_without_a_value_is_kept_as_in_csv(tmp_path):
    text = TABLE.replace("    Function Cache          CachePreferNone\n", "").replace(
        "        99.68\n", "             \n"
    )
    report, found = tables(tmp_path, HEAD + LAUNCH + text)
    assert not report.problems
    assert next((m["metric"], m["unit"], m["value"]) for m in found["metrics"]) == ("Duration", "us", None)


def test_a_row_that_is_no_row_ends_the_table(tmp_path):
    _, found = tables(tmp_path, HEAD + LAUNCH + TABLE)
    assert [m["metric"] for m in found["metrics"]] == ["Duration", "Elapsed Cycles", "Waves Per SM"]


def test_advice_with_its_estimate(tmp_path):
    _, found = tables(tmp_path, HEAD + LAUNCH + TABLE + ADVICE)
    assert [(r["type"], r["speedup_type"], r["speedup_pct"], r["message"]) for r in found["rules"]] == [
        ("OPT", "local", 14.75, "Every scheduler is capable of issuing one instruction per cycle. But only 5% were."),
        ("WRN", None, None, "Look elsewhere."),
    ]


@pytest.mark.parametrize(
    "head",
    [
        "  k(int *), 2025-Apr-25 11:54:07, Context 1, Stream 7\n",
        "k(int *), 2025-Apr-25 11:54:07, Context 1, Stream 7\n",
        "  k(int *) \n  (63, 63, 1)x(16, 16, 1), Context 1, Stream 7, Device 0, CC 8.6\n",
        "  k(int *) (63, 63, 1)x(16, 16, 1), Context 1, Stream 7, Device 0, CC 12.0\n",
    ],
)
def test_headers_of_every_version(tmp_path, head):
    _, found = tables(tmp_path, head + TABLE)
    assert [(r["kernel"], r["context"], r["stream"]) for r in found["launches"]] == [("k(int *)", 1, 7)]
    assert found["launches"][0]["duration_ns"] == 99680.0


def test_launches_without_ids_are_numbered_in_order(tmp_path):
    _, found = tables(tmp_path, HEAD + (LAUNCH + TABLE + "\n") * 3)
    assert [r["launch_id"] for r in found["launches"]] == [0, 1, 2]
    assert [m["launch_id"] for m in found["metrics"] if m["metric"] == "Duration"] == [0, 1, 2]


def test_a_summary_over_invocations_is_no_launch(tmp_path):
    text = """\
[42] app@127.0.0.1
  k(float *, int) (1, 1, 1)x(256, 1, 1), Device 0, CC 8.9, Invocations 14
    Section: GPU Speed Of Light Throughput
    ----------------------- ----------- -------- -------- --------
    Metric Name             Metric Unit  Minimum  Maximum  Average
    ----------------------- ----------- -------- -------- --------
    Duration                         us     1.70     1.98     1.75
    ----------------------- ----------- -------- -------- --------
"""
    _, found = tables(tmp_path, text)
    assert "launches" not in found
    (metric,) = found["metrics"]
    assert (metric["launch_id"], metric["invocations"], metric["kernel"]) == (None, 14, "k(float *, int)")
    assert (metric["min"], metric["max"], metric["avg"], metric["value"]) == (1.7, 1.98, 1.75, None)


def test_a_table_without_titles_and_a_wrapped_name(tmp_path):
    text = """\
  k(), 2025-Apr-25 11:54:07, Context 1, Stream 7
    Section: Command line profiler metrics
    ---------- --------------- ----------
    sm__a_very               %       4.16
    _long.name
    short                           (!) n/a
    ---------- --------------- ----------
"""
    _, found = tables(tmp_path, text)
    assert [(m["metric"], m["unit"], m["value"]) for m in found["metrics"]] == [
        ("sm__a_very_long.name", "%", 4.16),
        ("short", "", None),
    ]


def test_the_session_page_as_text(tmp_path):
    text = """\
Session Info
---------------------- --------------------------------
Session Attribute      Value
---------------------- --------------------------------
Nsight Compute Target  2023.3.0.0 (build 33266684)
---------------------- --------------------------------

Device Attributes
---------------- ----------------
Device Attribute Device 0
---------------- ----------------
display_name     NVIDIA RTX A4500
"""
    report, found = tables(tmp_path, text)
    assert report.tool_version == "2023.3.0.0"
    assert [(f["key"], f["text"]) for f in found["facts"]][1:] == [("gpu_name", "NVIDIA RTX A4500")]


def test_the_session_page_of_several_gpus_with_words_over_two_lines(tmp_path):
    text = """\
Session Info
-------------------- ----------------------
Session Attribute    Value
-------------------- ----------------------
Process Command Line /home/user/a/long/path
                     /train.py --batch 16
Process ID           4711
-------------------- ----------------------

Device Attributes
---------------- --------- -----------
Device Attribute Device 0  Device 1
---------------- --------- -----------
clock_rate       1410000   1980000
display_name     NVIDIA L4 NVIDIA H100
---------------- --------- -----------
"""
    report, found = tables(tmp_path, text)
    assert [(f["key"], f["device"], f["text"], f["value"]) for f in found["facts"]] == [
        ("process_command_line", None, "/home/user/a/long/path/train.py --batch 16", None),
        ("process_id", None, None, 4711),
        ("clock_rate", 0, None, 1410000),
        ("clock_rate", 1, None, 1980000),
        ("gpu_name", 0, "NVIDIA L4", None),
        ("gpu_name", 1, "NVIDIA H100", None),
    ]
    assert not report.problems
    assert tables(tmp_path, text + "\n" + HEAD + LAUNCH + TABLE)[1]["launches"][0]["duration_ns"] == 99680


def test_tables_of_one_section_are_told_apart_by_their_names(tmp_path):
    text = "\n".join(
        f"""\
    Table Name : {name}
    ----------- ----------- ------------
    Metric Name Metric Unit Metric Value
    ----------- ----------- ------------
    Hits              %     {value}
    ----------- ----------- ------------
"""
        for name, value in (("L1", "12.5"), ("L2 slices", "99.0"))
    )
    report, found = tables(
        tmp_path, HEAD + LAUNCH + TABLE.replace("    Function Cache          CachePreferNone\n", "") + text
    )
    hits = [(m["section"], m["description"], m["value"]) for m in found["metrics"] if m["metric"] == "Hits"]
    assert hits == [("GPU Speed Of Light Throughput", "L1", 12.5), ("GPU Speed Of Light Throughput", "L2 slices", 99.0)]
    assert not report.problems


def test_colours_windows_and_job_logs(tmp_path):
    text = "\x1b[32mstarting\x1b[0m\n==PROF== Connected to process 42\n" + HEAD + LAUNCH + TABLE
    _, plain = tables(tmp_path, HEAD + LAUNCH + TABLE)
    assert tables(tmp_path, text)[1] == plain
    assert tables(tmp_path, text.replace("\n", "\r\n"), "utf-16")[1] == plain


def test_labels_of_ranks(tmp_path):
    one = (HEAD + LAUNCH + TABLE).splitlines()
    _, found = tables(tmp_path, "".join(f"{rank}: {row}\n" for row in one for rank in (0, 1)))
    assert [(r["rank"], r["duration_ns"]) for r in found["launches"]] == [(0, 99680.0), (1, 99680.0)]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("==WARNING== No kernels were profiled.\n", "No kernels"),
        ('==PROF== Profiling "k": 0%....100% - 3 passes\n==PROF== Report: /tmp/x.ncu-rep\n', "/tmp/x.ncu-rep"),
        ('==PROF== Profiling "k": 0%....100% - 3 passes\n', "1 launch"),
        ("==ERROR== Nsight Compute failed to connect to the CUDA driver (stub libcuda.so?).\n", "driver"),
    ],
)
def test_messages_alone_say_why_there_is_no_result(tmp_path, text, word):
    report, found = tables(tmp_path, text)
    assert found == {}
    assert any(p.severity == "error" and word in p.message and p.fix for p in report.problems)


def test_figures_cut_out_of_a_report_are_of_no_launch(tmp_path):
    report, found = tables(tmp_path, TABLE)
    assert (report.format, found) == ("ncu-text", {})
    assert any("header of a launch is missing" in p.message and p.line for p in report.problems)


def test_all_details_of_a_launch_are_read_with_lists_of_instances_and_tables_that_come_again():
    report = read(Path(__file__).parents[1] / "fixtures" / "h100" / "bank_conflicts_details_all.txt")
    assert not report.problems
    found = list(full_rows("metrics", report.tables["metrics"]))
    portable = {row["portable"]: row["portable_value"] for row in found if row["portable"]}
    assert portable["gld_efficiency"] == 100  # 32 of 32 bytes of a sector
    assert portable["l1_wavefront_utilization"] == 89.46  # L1: Data Pipe Lsu Wavefronts
    assert portable["shared_utilization"] == 84.27
    assert portable["sm_active_cycles_max"] == 635608  # the second of four rows of one name
    (categories,) = (row for row in found if row["metric"] == "Executed Instructions by SASS Opcode Category")
    assert categories["value"] == 27262976
    assert categories["text"] == "27,262,976 (11,534,336;9,437,184; 3,145,728;2,621,440; 524,288)"
    assert {row["kernel"] for row in found} == {"void transpose<0>(const float *, float *, int)"}
