"""PyTorch's key_averages() tables: with every optional column, in Markdown, amid other output."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsw.readers.model import Options, Sample
from nsw.readers.pytorch import torch_table
from nsw.tables import full_rows

CPU = ["Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
CPU_CELLS = ["10.00%", "12.979us", "20.50%", "1.5ms", "750.000us"]
CPU_ROW = {"self_cpu_pct": 10, "self_cpu_ns": 12979, "cpu_pct": 20.5, "cpu_ns": 1.5e6, "cpu_avg_ns": 750e3}


def device(name):
    return [f"Self {name}", f"Self {name} %", f"{name} total", f"{name} time avg"]


DEVICE_CELLS = ["15.000us", "0.85%", "1.763ms", "4.745s"]
DEVICE_ROW = {"self_device_ns": 15000, "self_device_pct": 0.85, "device_ns": 1.763e6, "device_avg_ns": 4.745e9}


def printed(headers, lines, widths=None):
    """The layout of PyTorch: columns of 12 under dashes, two blanks between, all but the source at the right."""
    widths = widths or [40] + [12] * (len(headers) - 1)
    source = headers.index("Source Location") if "Source Location" in headers else -1
    rule = "".join("-" * w + "  " for w in widths)

    def line(cells):
        padded = [c.ljust(w) if n == source else c.rjust(w) for n, (c, w) in enumerate(zip(cells, widths, strict=True))]
        return "".join(p + "  " for p in padded)

    return "\n".join([rule, line(headers), rule, *(line(c) for c in lines), rule]) + "\n"


def read_text(tmp_path, text):
    path = tmp_path / "log.txt"
    path.write_text(text, encoding="utf-8")
    assert torch_table.sniff(Sample(path)) > 50
    return torch_table.read(path, Options())


def operators(report):
    return list(full_rows("operators", report.tables["operators"]))


def holds(row, **expected):
    assert {k: row[k] for k in expected} == expected


@pytest.mark.parametrize("name", ["CUDA", "XPU", "HPU", "PRIVATEUSEONE"])
def test_an_accelerator_is_known_by_its_columns(name, tmp_path):
    headers = ["Name", *CPU, *device(name), "# of Calls"]
    report = read_text(tmp_path, printed(headers, [["aten::mm", *CPU_CELLS, *DEVICE_CELLS, "12"]]))
    [row] = operators(report)
    holds(row, name="aten::mm", calls=12, device_kind=name, **CPU_ROW, **DEVICE_ROW)
    holds(row, self_cpu_ns_pm=0.5, cpu_ns_pm=50000, self_cpu_pct_pm=0.005)
    assert not report.problems


def test_without_an_accelerator_its_columns_are_absent(tmp_path):
    [row] = operators(read_text(tmp_path, printed(["Name", *CPU, "# of Calls"], [["aten::mm", *CPU_CELLS, "1"]])))
    holds(row, device_kind=None, device_ns=None, self_device_ns=None, cpu_bytes=None, flops=None, **CPU_ROW)


def test_memory_shapes_and_flop(tmp_path):
    headers = [
        "Name",
        *CPU,
        "CPU Mem",
        "Self CPU Mem",
        "CUDA Mem",
        "Self CUDA Mem",
        "# of Calls",
        "Input Shapes",
        "Total MFLOPs",
    ]
    cells = ["aten::mm", *CPU_CELLS, "4.50 Kb", "-512 b", "1.25 GB", "0 B", "3", "[[64, 32], [32, 8], []]", "  32.768"]
    widths = [40] + [12] * 10 + [30, 12]
    [row] = operators(read_text(tmp_path, printed(headers, [cells], widths)))
    holds(row, cpu_bytes=4608, self_cpu_bytes=-512, device_bytes=1.25 * 2**30, self_device_bytes=0, calls=3)
    holds(
        row,
        input_shapes="[[64, 32], [32, 8], []]",
        flops=32.768e6,
        flops_pm=500.0,
        cpu_bytes_pm=5.12,
        self_cpu_bytes_pm=None,
    )


def test_flop_and_source_that_pytorch_prints_in_each_others_place(tmp_path):
    headers = ["Name", *CPU, "# of Calls", "Source Location", "Total KFLOPs"]
    widths = [40] + [12] * 6 + [30, 12]
    lines = [["aten::mm", *CPU_CELLS, "3", "2.000", "a.py(3): f"], ["aten::to", *CPU_CELLS, "3", "--", "b.py(4): g"]]
    first, second = operators(read_text(tmp_path, printed(headers, lines, widths)))
    holds(first, flops=2000.0, source="a.py(3): f")
    holds(second, flops=None, source="b.py(4): g")


def test_further_lines_of_a_stack_belong_to_their_operator(tmp_path):
    headers = ["Name", *CPU, "# of Calls", "Source Location"]
    widths = [40] + [12] * 6 + [30]
    lines = [
        ["aten::mm", *CPU_CELLS, "3", "a.py(3): f"],
        [""] * 7 + ["main.py(9): <module>"],
        ["aten::to", *CPU_CELLS, "1", ""],
    ]
    first, second = operators(read_text(tmp_path, printed(headers, lines, widths)))
    holds(first, source="a.py(3): f\nmain.py(9): <module>")
    holds(second, source=None, name="aten::to")


def test_a_share_of_nothing_is_absent(tmp_path):
    cells = ["aten::mm", "NaN", "0.000us", "NaN", "0.000us", "0.000us", "1"]
    [row] = operators(read_text(tmp_path, printed(["Name", *CPU, "# of Calls"], [cells])))
    holds(row, self_cpu_pct=None, self_cpu_ns=0, cpu_pct=None)


def test_several_tables_in_a_log_are_blocks_with_their_own_totals(tmp_path):
    table = printed(["Name", *CPU, "# of Calls"], [["ProfilerStep*", *CPU_CELLS, "1"], ["aten::to", *CPU_CELLS, "2"]])
    text = "loading...\n" + table + "Self CPU time total: 1.720ms\nSelf CUDA time total: 1.763ms\n\nepoch 2\n"
    report = read_text(tmp_path, text + text.replace("1.720ms", "5.883s").replace("CUDA", "XPU"))
    assert [(r["block"], r["name"]) for r in operators(report)] == [
        (0, "ProfilerStep*"), (0, "aten::to"), (1, "ProfilerStep*"), (1, "aten::to"),
    ]  # fmt: skip
    assert [(f["block"], f["key"], f["value"], f["value_pm"]) for f in full_rows("facts", report.tables["facts"])] == [
        (0, "self_cpu_time_total_ns", 1.72e6, 500),
        (0, "self_cuda_time_total_ns", 1.763e6, 500),
        (1, "self_cpu_time_total_ns", 5.883e9, 500000),
        (1, "self_xpu_time_total_ns", 1.763e6, 500),
    ]


def printed_to_the_left(*rows_, rule=True):
    """A table as PyTorch until 1.4 printed it: everything to the left, in columns of 15."""
    widths = [max(len(r[0]) for r in rows_) + 4, *[16] * (len(rows_[0]) - 1)]
    dashes = "  ".join("-" * w for w in widths)
    lines = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) for r in rows_]
    return "\n".join([dashes, lines[0], dashes, *lines[1:], dashes] if rule else lines) + "\n"


def test_tables_of_pytorch_0_4_have_means_first(tmp_path):
    titles = ("Name", "CPU time", "CUDA time", "Calls", "CPU total", "CUDA total")
    row = ("view", "6.976us", "2.139us", "120", "837.100us", "256.702us")
    (found,) = operators(read_text(tmp_path, printed_to_the_left(titles, row)))
    assert (found["name"], found["calls"], found["device_kind"]) == ("view", 120, "CUDA")
    assert (found["cpu_avg_ns"], found["cpu_ns"]) == (6976.0, 837100.0)
    assert (found["device_avg_ns"], found["device_ns"]) == (2139.0, 256702.0)


@pytest.mark.parametrize("rule", [True, False])
@pytest.mark.parametrize(
    ("titles", "cells", "expected"),
    [
        (
            ("Self CPU total %", "Self CPU total", "CPU total", "CPU time avg"),
            ("62.10%", "1.044ms", "1.055ms", "1.055ms"),
            {"self_cpu_pct": 62.1, "self_cpu_ns": 1044000.0, "cpu_ns": 1055000.0, "calls": None},
        ),
        (
            ("Self CPU total %", "CPU time avg", "Number of Calls"),
            ("2.70%", "6.324us", "3"),
            {"self_cpu_pct": 2.7, "cpu_avg_ns": 6324.0, "calls": 3, "self_cpu_ns": None},
        ),
        (
            ("Self XPU %", "XPU total", "# of Calls"),
            ("28.50%", "26.232ms", "4753"),
            {"self_device_pct": 28.5, "device_ns": 26232000.0, "calls": 4753, "device_kind": "XPU"},
        ),
    ],
)
def test_columns_that_an_author_left_out_are_absent(titles, cells, expected, rule, tmp_path):
    text = printed_to_the_left(("Name", *titles), ("aten::t", *cells), ("a b", *cells), rule=rule)
    report = read_text(tmp_path, f"```\n{text}```\nmore text\n")
    assert not report.problems
    assert [row["name"] for row in operators(report)] == ["aten::t", "a b"]
    assert {key: operators(report)[0][key] for key in expected} == expected


@pytest.mark.parametrize("rule", [True, False])
@pytest.mark.parametrize(
    "pasted",
    [
        lambda lines: "\n".join(f"# {x}" for x in lines),
        lambda lines: "\n".join(f"> {x}" for x in lines),
        lambda lines: "\n".join(f"2024-05-01T10:11:12.123Z {x}" for x in lines),
        lambda lines: "\n".join(f"\x1b[32m{x}\x1b[0m" for x in lines),
        "\n\n".join,
        "\r\n".join,
    ],
    ids=["comment", "quote", "log", "colours", "every other line blank", "Windows"],
)
def test_tables_that_were_pasted_elsewhere(pasted, rule, tmp_path):
    titles = ("Name", "Self CPU", "CPU total", "# of Calls")
    lines = printed_to_the_left(titles, ("a", "1us", "2us", "3"), ("b", "4us", "5us", "6"), rule=rule).splitlines()
    path = tmp_path / "x.txt"
    path.write_text(pasted(lines) + "\n\nthe end  of  it 3\n", newline="")
    assert torch_table.sniff(Sample(path)) > 90
    report = torch_table.read(path, Options())
    assert not report.problems
    assert [(r["name"], r["self_cpu_ns"], r["calls"]) for r in operators(report)] == [
        ("a", 1000.0, 3),
        ("b", 4000.0, 6),
    ]


def test_totals_whose_tables_were_left_out_are_blocks_of_their_own(tmp_path):
    text = "=== a ===\n...\nSelf CPU time total: 52.389ms\nSelf CUDA time total: 52.545ms\n\n=== b ===\n...\n"
    text += "Self CPU time total: 11.452ms\nSelf CUDA time total: 3.908ms\nSelf CPU time total: 1.000ms\n"
    report = read_text(tmp_path, text)
    assert [(f["block"], f["key"], f["value"]) for f in full_rows("facts", report.tables["facts"])] == [
        (0, "self_cpu_time_total_ns", 52389000.0),
        (0, "self_cuda_time_total_ns", 52545000.0),
        (1, "self_cpu_time_total_ns", 11452000.0),
        (1, "self_cuda_time_total_ns", 3908000.0),
        (2, "self_cpu_time_total_ns", 1000000.0),
    ]


def test_names_cut_by_pytorch_are_kept_as_printed(tmp_path):
    name = "void gemv2T_kernel_val<int, int, float, float, float..."
    headers = ["Name", *CPU, "# of Calls"]
    [row] = operators(read_text(tmp_path, printed(headers, [[name, *CPU_CELLS, "7"]], [55] + [12] * 6)))
    holds(row, name=name)


def test_lines_of_other_programs_within_a_table_are_said(tmp_path):
    lines = printed(["Name", *CPU, "# of Calls"], [["a", *CPU_CELLS, "1"], ["b", *CPU_CELLS, "2"]]).splitlines()
    lines.insert(4, "WARNING: something else")
    report = read_text(tmp_path, "\n".join(lines))
    assert [r["name"] for r in operators(report)] == ["a", "b"]
    assert [(p.severity, p.line) for p in report.problems] == [("warning", 5)]


def test_ranks_that_the_launcher_labelled(tmp_path):
    table = printed(["Name", *CPU, "# of Calls"], [["aten::mm", *CPU_CELLS, "1"]]).splitlines()
    text = "".join(f"0: {line}\n1: {line}\n" for line in table)
    assert [(r["rank"], r["block"]) for r in operators(read_text(tmp_path, text))] == [(0, 0), (1, 1)]


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_mutated_tables_never_raise_and_never_give_numbers_that_are_not_in_them(seed, tmp_path_factory):
    dice = random.Random(seed)
    headers = ["Name", *CPU, *device("CUDA"), "CPU Mem", "# of Calls", "Source Location", "Total KFLOPs"]
    lines = [["aten::mm", *CPU_CELLS, *DEVICE_CELLS, "4 Kb", str(n), "2.0", "a.py"] for n in range(5)]
    text = list(printed(headers, lines) + "Self CPU time total: 1.720ms\n")
    for _ in range(dice.randrange(1, 25)):
        place = dice.randrange(len(text))
        if dice.random() < 0.5:
            del text[place : place + dice.randrange(30)]
        else:
            text[place:place] = dice.choice(
                [" ", "\n", "  ", "9", "-", "|", "**", "\x00", "1e999", "Name Self CPU # of Calls"]
            )
        text = text or [" "]
    path = tmp_path_factory.getbasetemp() / "mutated.txt"
    path.write_text("".join(text), encoding="utf-8")
    report = torch_table.read(path, Options())
    digits = "".join(c for c in "".join(text) if c.isdigit())
    for row in operators(report):
        json.dumps(row, allow_nan=False)
        assert str(row["calls"]) in digits


@pytest.mark.parametrize("text", ["Name Self # of Calls", "Self CPU utilization", ""])
def test_other_texts_are_not_taken_for_a_table(text, tmp_path):
    path = tmp_path / "x.txt"
    path.write_text(text)
    assert torch_table.sniff(Sample(path)) == 0


def test_the_published_tables_hold():
    folder = Path(__file__).resolve().parents[2].parent / "shared" / "corpus" / "torch-table"
    if not folder.is_dir():
        pytest.skip("no corpus of published reports here")
    for path in sorted(folder.iterdir()):
        report = torch_table.read(path, Options())
        assert len(operators(report)) >= 7, path
        assert not report.problems, path


TABS = """\
MLP
Name\tSelf CPU %\tSelf CPU\tCPU total %\tCPU total\tCPU time avg\tSelf CUDA\tSelf CUDA %\tCUDA total\tCUDA time avg\t# of Call
ProfilerStep*\t5.25%\t3.654ms\t97.50%\t68.334ms\t22.778ms\t0.000us\t0.00%\t1.161ms\t387.000us\t3
aten::select\t1.50%\t1.030ms\t1.75%\t1.184ms\t6.167us\t0.000us\t0.00%\t0.000us\t0.000us\t192
aten::copy_\t1.93%\t\t2.95%\t\t3.866us\t383.000us\t20.10%\t383.000us\t\t561
aten::rand\t\t915.000us\t0.86%\t915.000us\t1.783us\t0.000us\t0.00%\t0.000us\t0.000us\t513
aten::empty\t0.86%\t915.000us\t0.86%\t915.000us\t1.784us\t0.000us\t0.00%\t0.000us\t0.000us\t51
D. (1) CL *\t0.40%\t7.740\t05.46%\t00.000
void wgrad<float, 128,="" 3,="" fa<="" td=""><td>0.00%</td>\t0.00%\t0.000us\t0.00%\t0.000us\t0.000us\t403.000us\t17.19%\t403.000us\t67.167us\t6
Self CPU time total: 70.108ms Self CUDA time total: 1.539ms\t\t\t\t\t\t\t\t\t\t

Fig 1: memory and time

\tName\tSelf CPU %\tSelf CPU\tCPU total %\tCPU total\tCPU time avg\tSelf CUDA\tSelf CUDA %\tCUDA total\tCUDA time avg\t# of Calls
\taten::mm\t0.50%\t309.000us\t0.58%\t408.000us\t27.200us\t205.000us\t13.25%\t205.000us\t13.667us\t15
elf CPU time total: 91.056ms
"""


def test_a_table_out_of_a_document_has_tabs_and_only_whole_rows_are_read(tmp_path):
    """A cell that is lost, cut, or contradicts others: 51 calls of 1.784 us are no 915 us."""
    path = tmp_path / "page.txt"
    path.write_text(TABS)
    report = torch_table.read(path, Options())
    rows_ = list(full_rows("operators", report.tables["operators"]))
    assert [(r["block"], r["name"], r["calls"], r["self_cpu_ns"], r["self_device_ns"]) for r in rows_] == [
        (0, "ProfilerStep*", 3, 3654000, 0), (0, "aten::select", 192, 1030000, 0),
        (0, "void wgrad<float, 128, 3, fa", 6, 0, 403000), (1, "aten::mm", 15, 309000, 205000),
    ]  # fmt: skip
    assert [(f["block"], f["key"], f["value"]) for f in report.tables["facts"]] == [
        (0, "self_cpu_time_total_ns", 70108000), (0, "self_cuda_time_total_ns", 1539000),
    ]  # fmt: skip
    torn, total = sorted(report.problems, key=lambda p: "total" in p.message)
    assert "4 rows of tables with tabs are torn" in torn.message
    assert torn.message.endswith("lines 5, 6, 7, 8")
    assert "a total below a table is damaged" in total.message
