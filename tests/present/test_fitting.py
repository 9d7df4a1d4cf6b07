"""Tables at every width: numbers, ids and reasons whole, names told apart, and what went is said."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from nsw.present.rows_view import format_cell, show_rows
from nsw.present.terminal import TextTable, console, shorten_distinctly

ROWS = [
    (f"case-{n}", f"void {'gemm' * 9}<float, {n}>(float*)" + "x" * (n % 3), f"{1000 * n:,}.5", f"{n}.25", f"12345{n}",
     "waits for free nodes (Resources)")
    for n in range(4)
]  # fmt: skip
COLUMNS = ("case", "name", "images/s>", "share of the whole>", "job", "why")


def printed(width, rows=ROWS, columns=COLUMNS, **how):
    stream = io.StringIO()
    out = console(stream)
    out.width = width
    out.print(TextTable("a title", columns, rows, wide="name", droppable=("share of the whole", "case"), **how))
    return stream.getvalue()


@pytest.mark.parametrize("width", [60, 72, 80, 100, 140, 300])
def test_no_number_id_or_reason_is_cut(width):
    text = printed(width)
    for _, _, figure, _, job, _ in ROWS:
        assert figure in text
        assert job in text
    assert " ".join(text.split()).count("Resources") == 4
    assert all(len(line) <= width for line in text.splitlines())


def test_a_width_that_no_terminal_has_is_not_offered():
    wide = [(*row[:3], "x" * 90, *row[4:]) for row in ROWS]
    assert "hidden, shown with --format csv: share of the whole)" in printed(140, wide, elsewhere="--format csv")
    assert "(hidden, shown at width " in printed(60, elsewhere="--format csv")


def test_with_room_all_is_there_and_nothing_is_said():
    text = printed(300)
    assert all(cell in text for row in ROWS for cell in row)
    assert "hidden" not in text
    assert "…" not in text


@pytest.mark.parametrize("colours", [True, False])
def test_rows_that_need_no_wrapping_are_drawn_as_rich_draws_them(colours):
    rows = [("漢字", "1.5"), ("plain ", "12 "), ("e\u0301", "")]
    made = Table(title=Text("a title"), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for head, side in (("name", "left"), ("of all", "right")):
        made.add_column(head, justify=side)
    for row in rows:
        made.add_row(*map(Text, row))
    drawn = []
    for table in (made, TextTable("a title", ("name", "of all>"), rows)):
        out = Console(file=io.StringIO(), width=80, force_terminal=colours)
        out.print(table)
        drawn.append(out.file.getvalue())
    assert drawn[0] == drawn[1]
    assert ("\x1b[" in drawn[0]) == colours


def test_what_goes_first_is_what_matters_least_and_the_width_that_it_needs_is_true():
    text = printed(72)
    assert "share of" not in text.split("(")[0]
    line = next(line for line in text.splitlines() if "hidden" in line)
    need = int(line.split(" width ")[1].split()[0].rstrip(":"))
    assert "hidden" not in printed(need)
    assert "hidden" in printed(need - 1)


def test_words_in_a_column_of_names_wrap_and_names_lose_their_middles():
    cells = [
        "61 % [CUDA memcpy HtoD]; 2 % more is hidden",
        "36 % sm80_xmma_gemm_f32f32_f32f32_execute_kernel__5x_cublas",
    ]
    out = console(stream := io.StringIO())
    out.width = 40
    out.print(TextTable(None, ["part", "top"], zip("ab", cells, strict=True), wide="top", phrases=["top"]))
    lines = [" ".join(line.split()) for line in stream.getvalue().splitlines()[3:6]]
    assert lines == ["a 61 % [CUDA memcpy HtoD]; 2 %", "more is hidden", "b 36 % sm80_xmma_…rnel__5x_cublas"]


def test_of_many_hidden_columns_some_are_named_and_the_rest_counted():
    columns = ["name", *(f"metric_{n}>" for n in range(40))]
    stream = io.StringIO()
    out = console(stream)
    out.width = 60
    rows = [["a", *("12345678" for _ in range(40))]]
    least = [head.removesuffix(">") for head in columns[1:]]
    out.print(TextTable(None, columns, rows, wide="name", droppable=least, elsewhere="--format csv"))
    note = stream.getvalue()[stream.getvalue().index("(hidden, ") :]
    assert "shown with --format csv: metric_" in " ".join(note.split())
    assert note.count("metric_") == 8
    assert " more)" in note


def test_headings_wrap_before_anything_is_lost():
    rows = [("a", "b", "1", "2", "3", "4")]
    text = printed(45, rows)
    assert "hidden" not in text
    assert {"share", "of", "the", "whole"} <= set(text.split())


@pytest.mark.parametrize(
    ("of", "parameters", "column", "numbers"),
    [
        ("figures", (), "pass_name", ("median", "least", "most", "runs")),
        ("functions", None, "file", ("self_s", "calls", "cpu_time_s", "line")),
    ],
)
def test_what_tells_rows_apart_goes_after_figures_that_matter_less(of, parameters, column, numbers):
    rows = [
        {"case": f"case-{n // 2}", "name": "__getitem__", column: f"part-{n}"} | dict.fromkeys(numbers, 9061821.8 + n)
        for n in range(4)
    ]
    stream = io.StringIO()
    out = console(stream)
    out.width = 62
    show_rows(out, of, rows, rows[0], table_name=of, parameters=parameters)
    assert "hidden" in stream.getvalue()
    assert all(f"part-{n}" in stream.getvalue() for n in range(4))


def test_a_narrow_roofline_keeps_what_was_reached_and_says_why_a_share_is_empty():
    row = {"case": "n-1", "name": "k" * 60, "short_name": "k" * 60, "precision": "tensor FP16", "level": "DRAM",
           "flop": 2.1e12, "bytes": 5.1e9, "flop_per_s": 4.5e14, "intensity": 421.3, "peak_flop_per_s": 9.8e14,
           "peak_bytes_per_s": 4.8e12, "roof_flop_per_s": 9.8e14, "share_pct": 45.9, "side": "compute"}  # fmt: skip
    rows = [row, row | {"level": "L2", "roof_flop_per_s": None, "share_pct": None, "side": None, "flop_per_s": 4.4e14}]
    stream = io.StringIO()
    out = console(stream)
    out.width = 80
    show_rows(out, "roofline", rows, row, table_name="roofline", parameters=())
    text = stream.getvalue()
    assert all(figure in text for figure in ("450.0", "440.0", "45.9"))
    assert "empty where a peak is not known" in " ".join(text.split())


@pytest.mark.parametrize(("mean", "shown"), [(2.0, "2"), (2.5, "2.50"), (1204.0, "1,204"), (3, "3")])
def test_a_mean_of_counts_that_is_whole_is_shown_as_a_count(mean, shown):
    assert format_cell("launches", mean) == shown


def test_a_heading_has_three_lines_while_another_column_can_give_way():
    rows = [("k" * 50, "21 %", "61 % input, 8 % launches")]
    stream = io.StringIO()
    out = console(stream)
    out.width = 70
    columns = ("work", "of the time without rare long gaps>", "largest, of it")
    out.print(TextTable(None, columns, rows, wide="work", phrases=("largest, of it",)))
    assert "hidden" not in stream.getvalue()
    assert len(stream.getvalue().partition("\u2500")[0].strip("\n ").splitlines()) == 3


def test_names_are_told_apart_after_the_cut():
    names = [f"sm90_xmma_gemm_{'f32' * 20}_tile{n}_{'cublas' * 9}" for n in (64, 128, 256)]
    cut = shorten_distinctly([*names, names[0]], 30)
    assert len(set(cut)) == 3
    assert cut[0] == cut[3]
    assert all(len(text) <= 30 for text in cut)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(alphabet="ab(<漢", min_size=1, max_size=60), min_size=1, max_size=8), st.integers(20, 70))
def test_different_names_look_different(names, width):
    cut = shorten_distinctly(names, width)
    assert len(set(cut)) == len(set(names))


def test_a_parameter_called_like_a_column_that_may_go_stays():
    stream = io.StringIO()
    out = console(stream)
    out.width = 20
    out.print(TextTable(None, ("runs>", "figure>", "runs>"), [("7", "123456.7", "3")], droppable=("runs",)))
    assert stream.getvalue().split()[:2] == ["runs", "figure"]
    assert "7" in stream.getvalue()


def test_the_wall_time_of_cprofile_has_no_heading_of_cpu_time():
    stream = io.StringIO()
    out = console(stream)
    out.width = 100
    row = {"name": "sleep", "self_s": 1.0, "cpu_time_s": 1.0}
    show_rows(out, "functions", [row], row, table_name="functions", parameters=())
    assert "cumulative (s)" in stream.getvalue()
    assert "cpu_time" not in stream.getvalue()


def test_a_title_is_wider_than_its_table_where_the_terminal_has_room():
    stream = io.StringIO()
    console(stream).print(TextTable("a title that is wider than the table", ("n>",), [("1",)]))
    assert stream.getvalue().splitlines()[0] == "a title that is wider than the table"


def test_two_sentences_share_the_room_that_is_left():
    rows = [("a", "launch-bound, 125 operations of 12.5 us", "let GPU 0 launch sooner, overlap the rest")]
    stream = io.StringIO()
    out = console(stream)
    out.width = 60
    out.print(TextTable(None, ("case", "what is wrong", "do"), rows))
    first, second = (line.split("   ") for line in stream.getvalue().splitlines()[-3:-1])
    assert [cell.strip() for cell in first if cell] == ["a", "launch-bound, 125", "let GPU 0 launch sooner,"]
    assert [cell.strip() for cell in second if cell.strip()] == ["operations of 12.5 us", "overlap the rest"]


def test_times_of_a_computed_table_have_one_unit_a_column_and_its_words_go_last():
    row = {"case": "gpus-4", "name": "GPU 0", "last_pct": 72.2, "late_ns": 275_024.2, "cost_ns": 1_198_677.1,
           "cost_pct": 24.9, "cause": "slow-host", "why": "its GPU waits 1.97 ms longer for its host"}  # fmt: skip
    out = console(stream := io.StringIO())
    out.width = 80
    show_rows(out, "stragglers", [row, row | {"cost_ns": 3857.8}], list(row), table_name="stragglers", parameters=())
    text = stream.getvalue()
    assert "1,198.7" in text
    assert "3.858" in text
    assert "its GPU waits" in text
    assert "1,198,677" not in text
