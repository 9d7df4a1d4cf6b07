"""Nsight Compute's CSV: every page, amid other output, and Arrow's path against the exact one."""

import csv
import io
import random

import pytest

from nsw.readers import read
from nsw.readers.model import Options
from nsw.readers.ncu import csv_reader as ncu_csv
from nsw.readers.ncu.values import ValueParser
from nsw.readers.text.quantities import number
from nsw.tables.parquet_tables import full_rows

DETAILS = [
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size",
    "Device", "CC", "Section Name", "Metric Name", "Metric Unit", "Metric Value", "Rule Name", "Rule Type",
    "Rule Description", "Estimated Speedup Type", "Estimated Speedup",
]  # fmt: skip
LAUNCH = ["0", "42", "app", "127.0.0.1", "void k<float>(int *)", "1", "7", "(16, 4, 1)", "(64, 1, 1)", "0", "8.6"]


def line(cells, *, tail=""):
    return ",".join('"' + c.replace('"', '""') + '"' for c in cells) + tail


def details(*metrics, launch=LAUNCH, header=DETAILS):
    out = [line(header)]
    out += [line([*launch, *m], tail="," if len(m) == 4 else "") for m in metrics]
    return "\n".join(out) + "\n"


def tables(tmp_path, text, name="r.csv", encoding="utf-8"):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    report = read(path)
    return report, {t: list(full_rows(t, d)) for t, d in report.tables.items()}


SPEED = "GPU Speed Of Light Throughput"


def test_details_rows_become_launches_and_metrics(tmp_path):
    text = details((SPEED, "Duration", "us", "628.03"), (SPEED, "Elapsed Cycles", "cycle", "659,062"))
    report, found = tables(tmp_path, text)
    (launch,) = found["launches"]
    assert (report.tool, report.format, report.problems) == ("ncu", "ncu-csv", [])
    assert (launch["launch_id"], launch["pid"], launch["device"], launch["kernel"]) == (0, 42, 0, LAUNCH[4])
    assert (launch["duration_ns"], launch["duration_ns_pm"]) == (628030.0, 5.0)
    assert (launch["grid"], launch["block_size"], launch["short_name"]) == ("(64, 1, 1)", "(16, 4, 1)", "k")
    assert [(m["metric"], m["value"], m["value_pm"]) for m in found["metrics"]] == [
        ("Duration", 628.03, 0.005),
        ("Elapsed Cycles", 659062.0, None),
    ]


@pytest.mark.parametrize("printed", ["n/a", "nan", "(!) nan", "(!) n/a", "", "inf", "no data"])
def test_what_was_not_measured_is_null_and_never_zero(tmp_path, printed):
    _, found = tables(tmp_path, details((SPEED, "Duration", "ns", printed)))
    assert (found["metrics"][0]["value"], found["metrics"][0]["text"]) == (None, None)
    assert found["launches"][0]["duration_ns"] is None


def test_text_values_and_instances(tmp_path):
    text = details((SPEED, "a", "", "CachePreferNone"), (SPEED, "b", "", "4.25 (1: 0; 2: 0.5)"))
    _, found = tables(tmp_path, text)
    assert [(m["value"], m["text"]) for m in found["metrics"]] == [
        (None, "CachePreferNone"),
        (4.25, "4.25 (1: 0; 2: 0.5)"),
    ]


def test_a_rule_row_is_a_rule_and_no_metric(tmp_path):
    rule = ("SpeedOfLight", "", "", "", "SOLBottleneck", "OPT", 'Use "more"\nthreads', "local", "80.34")
    _, found = tables(tmp_path, details((SPEED, "Duration", "ns", "5"), rule))
    assert len(found["metrics"]) == 1
    (row,) = found["rules"]
    assert (row["rule"], row["type"], row["speedup_type"], row["speedup_pct"]) == (
        "SOLBottleneck",
        "OPT",
        "local",
        80.34,
    )
    assert row["message"] == 'Use "more"\nthreads'
    assert (row["launch_id"], row["kernel"]) == (0, LAUNCH[4])


@pytest.mark.parametrize("unit", ["ns", "nsecond", "us", "usecond", "ms", "msecond", "s", "second"])
def test_durations_of_every_spelling_are_ns(tmp_path, unit):
    scale = {"n": 1, "u": 1e3, "m": 1e6, "s": 1e9}[unit[0]]
    _, found = tables(tmp_path, details(("x", "gpu__time_duration.sum", unit, "8,192")))
    assert found["launches"][0]["duration_ns"] == 8192 * scale


def test_output_of_the_program_stands_anywhere(tmp_path):
    one = details((SPEED, "Duration", "ns", "5"))
    head, row = one.splitlines()
    text = (
        f'hello, "world"\n==PROF== Connected to process 42\n{head}\nloss,1,2,3\n{row}\n"done"\n==PROF== Disconnected\n'
    )
    report, found = tables(tmp_path, text)
    assert len(found["metrics"]) == 1
    assert report.problems == []


def test_a_table_between_the_rows_is_no_damage(tmp_path):
    # --print-details body: the section of NUMA affinity
    aside = '"GPU ID","GPU Name","NUMA ID by CPU Affinity"\n"0","NVIDIA RTX A4500","0"\n"1","Quadro P620","0"\n'
    one = details((SPEED, "Duration", "ns", "5"), (SPEED, "x", "", "1"))
    head, *rest = one.splitlines(keepends=True)
    report, found = tables(tmp_path, head + rest[0] + aside + rest[1])
    assert [m["metric"] for m in found["metrics"]] == ["Duration", "x"]
    assert report.problems == []
    report, _ = tables(tmp_path, one + aside + "said\n" + '"7","k"\n')
    assert [p.line for p in report.problems] == [8]


def test_two_csvs_in_a_file_are_two_blocks(tmp_path):
    text = details((SPEED, "Duration", "ns", "5")) + "==PROF==\n" + details((SPEED, "Duration", "ns", "7"))
    _, found = tables(tmp_path, text)
    assert [(r["block"], r["launch_id"], r["duration_ns"]) for r in found["launches"]] == [(0, 0, 5), (1, 0, 7)]


@pytest.mark.parametrize("between", ["", "==PROF== Connected\n"])
def test_each_page_of_a_file_is_read_by_its_own_decimal_mark(tmp_path, between):
    """A German one and an English one: 1.234 is a thousand in the first and little more than one in the second."""
    text = details((SPEED, "a", "", "3,5"), (SPEED, "b", "", "1.234")) + between
    text += details((SPEED, "a", "", "3.5"), (SPEED, "b", "", "1.234")) + between + details((SPEED, "b", "", "9,5"))
    report, found = tables(tmp_path, text)
    values = [(m["block"], m["metric"], m["value"]) for m in found["metrics"]]
    assert values == [(0, "a", 3.5), (0, "b", 1234), (1, "a", 3.5), (1, "b", 1.234), (2, "b", 9.5)]
    assert report.problems == []


def test_the_old_layout_and_nvtx_columns(tmp_path):
    header = ["ID", "Process ID", "thread Domain:Push/Pop_Range:PL_Type", "Kernel Name", "Kernel Time", "Context",
              "Stream", "Section Name", "Metric Name", "Metric Unit", "Metric Value"]  # fmt: skip
    cells = ["3", "9", ' "0:<default domain>:x" ', "k(int)", "2024-Jul-13 19:18:31", "1", "13", "s", "m", "%", "1.5"]
    _, found = tables(tmp_path, line(header) + "\n" + line(cells) + "\n")
    assert (found["launches"][0]["launch_id"], found["launches"][0]["stream"]) == (3, 13)
    assert found["launches"][0]["nvtx"] == "x"
    assert found["metrics"][0]["value"] == 1.5


@pytest.mark.parametrize(
    ("cell", "ranges"),
    [
        (' "0:<default domain>:linear_nvtx:none:none" ', "linear_nvtx"),
        ('183740 "<default domain>:step 3:none:none:none:none:none:none"', "step 3"),
        ('1 "<default domain>:a:none:none" "torch:b::c:none:none"', "a > b::c@torch"),
        ("", None),
        ("a > b", "a > b"),
    ],
)
def test_the_nvtx_ranges_of_a_launch_are_named_outermost_first(cell, ranges):
    from nsw.readers.ncu.csv_pages import nvtx_range_path

    assert nvtx_range_path(cell) == ranges


def raw_page(units, *values):
    header = [*DETAILS[:11], "device__attribute_display_name", "gpu__time_duration.sum", "x.avg"]
    lines = [line(header)] + ([line([""] * 11 + units)] if units else [])
    lines += [line([str(i), *LAUNCH[1:], *v]) for i, v in enumerate(values)]
    return "\n".join(lines) + "\n"


def test_raw_page_with_its_row_of_units(tmp_path):
    _, found = tables(
        tmp_path, raw_page(["", "us", "%"], ["NVIDIA A100", "31.872000", "7.5"], ["NVIDIA A100", "2", ""])
    )
    assert [(r["duration_ns"], r["device_name"]) for r in found["launches"]] == [
        (31872.0, "NVIDIA A100"),
        (2000.0, "NVIDIA A100"),
    ]
    assert [(m["launch_id"], m["metric"], m["unit"], m["value"], m["text"]) for m in found["metrics"]] == [
        (0, "device__attribute_display_name", "", None, "NVIDIA A100"),
        (0, "gpu__time_duration.sum", "us", 31.872, None),
        (0, "x.avg", "%", 7.5, None),
        (1, "device__attribute_display_name", "", None, "NVIDIA A100"),
        (1, "gpu__time_duration.sum", "us", 2.0, None),
        (1, "x.avg", "%", None, None),
    ]


def test_raw_page_saved_again_without_quotes_or_units(tmp_path):
    text = 'ID,Process ID,Kernel Name,x.avg\n0,5,"k(int, int)",1.5\n'
    _, found = tables(tmp_path, text)
    assert (found["metrics"][0]["value"], found["metrics"][0]["unit"], found["launches"][0]["kernel"]) == (
        1.5,
        None,
        "k(int, int)",
    )


SUMMARY = ["Process ID", "Process Name", "Host Name", "Kernel Name", "Block Size", "Grid Size", "Device", "CC",
           "Invocations", "Section Name", "Metric Name", "Metric Unit", "Minimum", "Maximum", "Average"]  # fmt: skip


def test_a_summary_is_no_launch(tmp_path):
    row = [
        "42",
        "app",
        "h",
        "k()",
        "(1, 1, 1)",
        "(2, 1, 1)",
        "0",
        "8.9",
        "14",
        SPEED,
        "Duration",
        "us",
        "1.70",
        "1.98",
        "1.75",
    ]
    report, found = tables(tmp_path, line(SUMMARY) + "\n" + line(row) + "\n")
    assert "launches" not in found
    (metric,) = found["metrics"]
    assert (metric["launch_id"], metric["value"], metric["invocations"]) == (None, None, 14)
    assert (metric["min"], metric["max"], metric["avg"], metric["avg_pm"]) == (1.7, 1.98, 1.75, 0.005)
    assert report.problems == []


def test_a_summary_whose_fields_are_shifted_gives_no_number(tmp_path):
    # ncu 2024.2 does this itself: --page raw --print-summary per-gpu
    shifted = ["30.0", "30.0", "42", " ", "h", "0", "8.6", "k()", "(1, 1, 1)", "(2, 1, 1)", "1", "m", "warp", "2.0", ""]
    report, found = tables(tmp_path, line(SUMMARY) + "\n" + line(shifted) + "\n")
    assert found == {}
    assert any(p.severity == "error" for p in report.problems)


def test_the_session_page_becomes_facts(tmp_path):
    text = (
        'Launch Settings\n"Launch Attribute","Value"\n"Profiler Command Line","ncu app"\n\nSession Info\n'
        '"Session Attribute","Value"\n"Nsight Compute Target","2023.3.0.0 (build 1)"\n\nDevice Attributes\n'
        '"Device Attribute","Device 0","Device 1"\n"display_name","A","B"\n"total_memory","20937506816","5"\n'
    )
    report, found = tables(tmp_path, text)
    assert [(f["key"], f["device"], f["value"], f["text"]) for f in found["facts"]] == [
        ("profiler_command_line", None, None, "ncu app"),
        ("nsight_compute_target", None, None, "2023.3.0.0 (build 1)"),
        ("gpu_name", 0, None, "A"),
        ("gpu_name", 1, None, "B"),
        ("total_memory", 0, 20937506816.0, None),
        ("total_memory", 1, 5.0, None),
    ]
    assert report.tool_version == "2023.3.0.0"


SOURCE = """\
"Kernel Name","void k<float>(int *)",
"Address","Source","# Samples","Avg. Threads","Address Space"
"0x7ff0","      MOV R1, c[0x0][0x28]","1,234","32","-"
"0x7ff1","      LDG.E R2, [R4]","7","31.5","Global"
"""


def pick(rows_, *columns):
    return [tuple(r[c] for c in columns) for r in rows_]


def test_the_source_page_tells_of_instructions(tmp_path):
    report, found = tables(tmp_path, SOURCE + SOURCE.replace("k<float>", "other").replace("1,234", "5"))
    assert report.problems == []
    assert list(found) == ["source_metrics"]
    assert pick(found["source_metrics"][:5], "block", "address", "metric", "value", "value_pm", "text") == [
        (0, "0x7ff0", "# Samples", 1234.0, None, None),
        (0, "0x7ff0", "Avg. Threads", 32.0, None, None),
        (0, "0x7ff1", "# Samples", 7.0, None, None),
        (0, "0x7ff1", "Avg. Threads", 31.5, 0.05, None),
        (0, "0x7ff1", "Address Space", None, None, "Global"),
    ]
    assert [m["kernel"] for m in found["source_metrics"]] == ["void k<float>(int *)"] * 5 + ["void other(int *)"] * 5
    assert found["source_metrics"][0]["source"] == "MOV R1, c[0x0][0x28]"


def test_a_source_page_by_lines(tmp_path):
    text = (
        '"File Path","/src/a.cu"\n"Function Name","k(int)"\n"Line No","Source","Address","Source","# Samples"\n'
        '"7","x = ""y"";\r","","","-"\n"","","0x10","      MOV R1, R2","3"\n"","","...","...","-"\n'
        '"8","z();","","","-"\n"","","0x20","      BRA 0x10","4"\n'
    )
    _, found = tables(tmp_path, text)
    assert pick(found["source_metrics"], "file", "kernel", "line", "address", "source", "value") == [
        ("/src/a.cu", "k(int)", 7, "0x10", "MOV R1, R2", 3.0),
        ("/src/a.cu", "k(int)", 8, "0x20", "BRA 0x10", 4.0),
    ]


def test_instructions_below_a_damaged_line_are_of_no_line(tmp_path):
    text = (
        '"Line No","Source","Address","Source","# Samples"\n"7","x;","","","-"\n"8","say("a", "b");","","","-"\n'
        '"","","0x20","      BRA 0x10","4"\n'
    )
    _, found = tables(tmp_path, text)
    assert pick(found["source_metrics"], "line", "address", "value") == [(None, "0x20", 4.0)]


def test_large_source_pages_are_columns(tmp_path, monkeypatch):
    from nsw.readers.ncu import csv_pages as ncu_csv_source

    _, few = tables(tmp_path, SOURCE)
    monkeypatch.setattr(ncu_csv_source, "ARROW_ROWS", 1)
    report, many = tables(tmp_path, SOURCE)
    assert not isinstance(report.tables["source_metrics"], list)
    assert many == few


def test_a_source_page_without_figures_is_refused_by_name(tmp_path):
    report, found = tables(tmp_path, '"Line No","Source"\n"1",".version 8.3"\n"2",".target sm_86"\n')
    assert found == {}
    assert "2 lines without figures" in report.problems[0].message
    assert "--print-source sass" in (report.problems[0].fix or "")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le"])
def test_encodings_of_windows(tmp_path, encoding):
    text = details((SPEED, "Duration", "ns", "5")).replace("\n", "\r\n")
    _, found = tables(tmp_path, text, encoding=encoding)
    assert found["metrics"][0]["value"] == 5.0


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (["1.234.567,89", "1.234"], [1234567.89, 1234.0]),
        (["3,5", "1.234"], [3.5, 1234.0]),
        (["0,125"], [0.125]),
        (["1,234,567", "1.234"], [1234567.0, 1.234]),
        (["3.5", "1,234"], [3.5, 1234.0]),
        (["1 234 567,5".replace(" ", "\u202f")], [1234567.5]),
    ],
)
def test_the_decimal_mark_follows_evidence(tmp_path, values, wanted):
    report, found = tables(tmp_path, details(*[(SPEED, f"m{i}", "", v) for i, v in enumerate(values)]))
    assert [m["value"] for m in found["metrics"]] == wanted
    assert report.problems == []


def test_a_guessed_decimal_mark_is_told(tmp_path):
    report, found = tables(tmp_path, details((SPEED, "m", "", "1,234")))
    assert found["metrics"][0]["value"] == 1234.0
    assert [p.severity for p in report.problems] == ["warning"]
    assert "which mark is the decimal one" in report.problems[0].message


def test_a_number_against_the_decimal_mark_stays_text(tmp_path):
    _, found = tables(tmp_path, details((SPEED, "a", "", "3.25"), (SPEED, "b", "", "1,5")))
    assert (found["metrics"][1]["value"], found["metrics"][1]["text"]) == (None, "1,5")


def test_a_cut_row_is_named_and_gives_no_number(tmp_path):
    text = details((SPEED, "Duration", "ns", "5"), (SPEED, "x", "ns", "123456"))
    report, found = tables(tmp_path, text[:-5])
    assert [m["metric"] for m in found["metrics"]] == ["Duration"]
    assert [(p.severity, p.line) for p in report.problems] == [("error", 3)]


def test_messages_become_problems_with_a_fix(tmp_path):
    text = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters\n"
    report, found = tables(tmp_path, text, name="r.txt")
    assert found == {}
    problem = next(p for p in report.problems if "ERR_NVGPUCTRPERM" in p.message)
    assert problem.severity == "error"
    assert problem.fix


def test_ranks_of_srun_labels_stay_apart(tmp_path):
    text = details((SPEED, "Duration", "ns", "5"))
    both = [f"{rank}: {row}" for row in text.splitlines() for rank in (0, 1)]
    _, found = tables(tmp_path, "\n".join([*both, "0: bye", "1: bye"]) + "\n")
    assert [(r["rank"], r["launch_id"], r["duration_ns"]) for r in found["launches"]] == [(0, 0, 5.0), (1, 0, 5.0)]


def large(seed, launches=200, *, decimal="."):
    """A details CSV with everything that Arrow's path has to get right."""
    rng = random.Random(seed)
    lines = ["==PROF== Connected to process 42 (/bin/app)", line(DETAILS)]
    for i in range(launches):
        head = [
            str(i),
            rng.choice(["42", "43"]),
            *LAUNCH[2:4],
            f"void k{i % 7}<int, {i % 3}>(int *, char)",
            *LAUNCH[5:],
        ]
        for j in range(rng.randint(1, 9)):
            value = rng.choice(["n/a", "CachePreferNone", "", "1e-05", "-3", f"{rng.random():.2f}",
                                f"{rng.randint(0, 10**9):,}",
                                f"{rng.random() * 1e6:,.2f}", "0", "0.00", "(!) nan", "12,34", "5 (1; 2)"])  # fmt: skip
            if decimal == ",":
                value = value.translate(str.maketrans(",.", ".,"))
            metric = rng.choice(["Duration", "gpu__time_duration.sum", f"m{j}", "device__attribute_display_name"])
            lines.append(line([*head, f"s{j % 2}", metric, rng.choice(["us", "%", "", "msecond"]), value], tail=","))
        if rng.random() < 0.5:
            lines.append(
                line([*head, "S", "", "", "", f"R{i % 5}", "OPT", "Use, more.", rng.choice(["local", ""]), "12.5"])
            )
        if rng.random() < 0.1:
            lines.append(rng.choice(["epoch 3, loss 2", "", "==WARNING== No metrics to collect found in sections."]))
    return "\n".join(lines) + "\n"


def test_many_metrics_are_an_arrow_table(tmp_path, monkeypatch):
    from nsw.readers.ncu import results as ncu_results

    path = tmp_path / "many.csv"
    path.write_text(large(5))
    small = list(full_rows("metrics", ncu_csv.read(path, Options()).tables["metrics"]))
    monkeypatch.setattr(ncu_results, "ARROW_ROWS", 10)
    table = ncu_csv.read(path, Options()).tables["metrics"]
    assert not isinstance(table, list)
    assert list(full_rows("metrics", table)) == small


def test_the_csv_module_agrees_on_every_cell(tmp_path):
    """An independent reading: the metric rows as the csv module sees them."""
    text = large(7)
    wanted = [r for r in csv.reader(io.StringIO(text)) if len(r) == 16 and r[0].isdigit()]
    path = tmp_path / "r.csv"
    path.write_text(text)
    found = list(full_rows("metrics", ncu_csv.read(path, Options()).tables["metrics"]))
    assert [(str(m["launch_id"]), m["metric"], m["unit"]) for m in found] == [(r[0], r[12], r[13]) for r in wanted]
    for metric, row in zip(found, wanted, strict=True):
        try:
            number = float(row[14].split(" (")[0].replace(",", "")) if row[14] not in ("12,34", "(!) nan") else None
        except ValueError:
            number = None
        assert metric["value"] == number


def test_plain_numbers_are_those_of_quantities():
    rng = random.Random(2)
    for _ in range(3000):
        digits = rng.randint(0, 9)
        text = f"{rng.uniform(-1, 1) * 10 ** rng.randint(0, 14 - digits):{rng.choice(['', ','])}.{digits}f}"
        wanted, found = number(text), ValueParser()(text)
        assert (found.number, found.half, found.text) == (*wanted, None), text
