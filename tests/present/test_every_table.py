"""Every table of the schema at every width: nothing that a person needs is cut, broken or dressed up."""

import io
import re

import pytest
from rich.cells import cell_len

from nsw.present import terminal
from nsw.present.rows_view import COUNTS, _meaning_of_values, important_columns, show_rows
from nsw.present.status_view import RUN_COLUMNS
from nsw.present.terminal import console
from nsw.tables.schema import TABLES

WIDTHS = (80, 100, 140)
STEERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
NAMES = ("short_name", "name", "kernel", "metric", "source", "key")
# whole numbers that no person counts: they name something
IDENTIFIERS = {
    "number",
    "local_rank",
    "block", "rank", "pid", "device", "context", "stream", "correlation", "grid_x", "grid_y", "grid_z", "block_x",
    "block_y", "block_z", "registers", "graph", "graph_node", "tid", "return_value", "iteration", "slowest",
    "launch_id", "ordinal", "line",
}  # fmt: skip


class Screen(io.StringIO):
    def __init__(self, *, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


def printed(monkeypatch, table, rows, width):
    """What a terminal of this width shows, or None: a pipe."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("COLUMNS", raising=False)
    if width:
        monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(terminal, "_NAMED_COLUMNS", 1000)  # every hidden column, for `hidden` to read
    stream = Screen(terminal=width is not None)
    show_rows(console(stream), table.name, rows, table.column_names, table_name=table.name, keep=("run",))
    return re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())


def ordinary(table):
    """Three rows, each value unlike all others."""
    return [{c.name: value(c, place, n, "") for place, c in enumerate(table.columns)} for n in range(3)]


def hostile(table):
    """Long names alike but for their middles, sentences with long words, control characters, huge numbers."""
    return [{c.name: value(c, place, n, "x" * 150) for place, c in enumerate(table.columns)} for n in range(3)]


def value(column, place, row, long):
    if column.name == "run":
        return "case-1.timeline.r1"
    number = 1_000_000 * (place + 1) + 1_000 * row + 7
    if column.name.endswith("_pm"):
        return None
    if column.type == "string":
        if column.name in NAMES:
            return f"void {column.name}{place}<{long}\x1b]0;{'漢' if long else ''}{row}{long}>(end)"
        if column.name in {"message", "text"}:
            return f"reason{place}r{row} because\x07 of" + " words" * (20 if long else 2) + f" until{place}r{row}"
        return f"{column.name}-{place}-{row}"
    if column.unit == "byte":
        return (5 + row) * (1 << 30)
    if long and column.type == "float64":
        return number * 1e12
    return number if column.type == "int64" else number / 4


def hidden(text):
    """The headings that the note says are hidden."""
    begin = re.search(r"\(hidden, shown [^:]*:", text)
    if begin is None:
        return []
    depth, end = 1, begin.end()
    while depth:
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    return " ".join(text[begin.end() : end - 1].split()).split(" | ")


def heading(column):
    """What a column's heading looks like, as a regular expression."""
    if column.unit == "ns":
        return column.name.removesuffix("_ns") + r" \((s|ms|us|ns)\)"
    if column.unit == "byte":
        return column.name.removesuffix("_bytes") + r" \([TGMK]?i?B\)"
    ends = {"%": ("_pct", r" \(%\)"), "s": ("_s", r" \(s\)"), "FLOP": ("", r" \(FLOP\)"), "byte/s": ("", r" \(\w+/s\)")}
    end, unit = ends.get(column.unit, ("", ""))
    if column.name == "cpu_time_s":  # of cProfile wall time, with what a function calls
        return r"cumulative \(s\)"
    return column.name.removesuffix(end) + unit


def is_hidden(column, gone):
    return any(re.fullmatch(heading(column), head) for head in gone)


def shown(table, rows, text):
    """The columns that must be in a text: all but those that are never shown, and those that it says are hidden."""
    gone = hidden(text)
    never = {"report", "mangled_name", "description"}
    never |= {"name", "kernel"} if "short_name" in table.column_names else set()
    return [
        c for c in table.columns
        if c.name not in never and not c.name.endswith("_pm") and not is_hidden(c, gone)
        and any(row[c.name] is not None for row in rows)
    ]  # fmt: skip


ROWS = pytest.mark.parametrize("made", [ordinary, hostile])
ALL = pytest.mark.parametrize("name", sorted(TABLES.keys() - {"rules"}))  # rules are paragraphs


def test_whole_numbers_are_either_counts_or_identifiers():
    found = {c.name for t in TABLES.values() for c in t.columns if c.type == "int64" and c.unit is None}
    assert found <= COUNTS | IDENTIFIERS
    assert not COUNTS & IDENTIFIERS


def test_every_table_has_an_order_of_importance_of_columns_that_it_has():
    of_reports = important_columns("reports")
    assert set(of_reports) == set(TABLES)
    for name, columns in of_reports.items():
        assert len(set(columns)) == len(columns)
        assert set(columns) <= set(TABLES[name].column_names), name
    from nsw.present.emit import FLAT

    of_campaigns = important_columns("campaigns")
    assert set(of_campaigns) == {*FLAT, "runs"}
    assert set(of_campaigns["runs"]) <= set(RUN_COLUMNS)


@ROWS
@ALL
@pytest.mark.parametrize("width", [*WIDTHS, None])
def test_identifiers_are_whole_and_plain_and_counts_are_whole(monkeypatch, name, made, width):
    table = TABLES[name]
    rows = made(table)
    text = printed(monkeypatch, table, rows, width)
    words = {word.strip("(),") for word in text.split()}
    for column in shown(table, rows, text):
        if column.type != "int64" or column.unit is not None:
            continue
        for row in rows:
            number = row[column.name]
            assert (str(number) if column.name in IDENTIFIERS else f"{number:,}") in words, column.name
            if column.name in IDENTIFIERS:
                assert f"{number:,}" not in words, column.name


@ROWS
@ALL
@pytest.mark.parametrize("width", WIDTHS)
def test_a_terminal_has_room_for_every_line_and_what_matters_most_is_there(monkeypatch, name, made, width):
    table = TABLES[name]
    rows = made(table)
    text = printed(monkeypatch, table, rows, width)
    assert not STEERS.search(text)
    assert all(cell_len(line) <= width for line in text.splitlines())
    there = {column.name for column in shown(table, rows, text)}
    assert set(important_columns("reports")[name][:3]) <= there


@ROWS
@ALL
@pytest.mark.parametrize("width", [*WIDTHS, None])
def test_words_are_whole_and_reasons_complete(monkeypatch, name, made, width):
    table = TABLES[name]
    rows = made(table)
    text = printed(monkeypatch, table, rows, width)
    words = re.findall(r"[\w-]+", text)
    for column in shown(table, rows, text):
        if column.type != "string" or column.name in NAMES:
            continue
        for row in rows:
            for word in re.findall(r"[\w-]+", re.sub(r"\x07", " ", row[column.name])):
                assert word in words, (column.name, word)


@ALL
@pytest.mark.parametrize("width", WIDTHS)
def test_names_are_told_apart_after_the_cut(monkeypatch, name, width):
    table = TABLES[name]
    text = printed(monkeypatch, table, hostile(table), width)
    names = [c for c in table.columns if c.name in ("short_name", "name")]
    if not names:
        return
    cut = re.findall(r"^.*…\S*", text, re.MULTILINE)
    assert len(set(cut)) == len(cut)


@ALL
def test_bytes_are_binary_and_units_stand_in_the_headings(monkeypatch, name):
    table = TABLES[name]
    rows = ordinary(table)
    text = printed(monkeypatch, table, rows, None)
    heads = text.split("──")[0]
    for column in table.columns:
        if column not in shown(table, rows, text):
            continue
        assert re.search(rf"(?<!\w){heading(column)}(?!\w)", heads), column.name
        if column.unit == "byte":
            assert f"{column.name.removesuffix('_bytes')} (GiB)" in heads


@ROWS
@ALL
def test_a_pipe_gets_every_column_once_a_line_unpadded(monkeypatch, name, made):
    table = TABLES[name]
    rows = made(table)
    text = printed(monkeypatch, table, rows, None)
    lines = text.splitlines()
    assert not [line for line in lines if line != line.rstrip()]
    assert "hidden" not in text
    assert "…" not in text
    assert len([line for line in lines if "void " in line or "-0-" in line]) <= len(rows) + 1
    assert not any(len(line) == 140 for line in lines) or made is hostile


def test_a_run_that_has_no_room_as_a_column_heads_its_rows(monkeypatch):
    table = TABLES["gpu_summary"]
    rows = [
        dict.fromkeys(table.column_names) | {"run": f"gpus-{n}_batch-128.timeline.r1", "name": f"kernel{k}" * 4,
        "short_name": f"kernel{k}" * 4, "kind": "kernel", "calls": 10 * k + n, "total_ns": 1e6, "time_pct": 50.0}
        for n in (1, 2) for k in (1, 2)
    ]  # fmt: skip
    narrow, wide = (printed(monkeypatch, table, rows, width) for width in (80, 140))
    assert narrow.count("gpu_summary of gpus-") == 2
    assert narrow.index("gpus-1") < narrow.index(" 11 ") < narrow.index("gpus-2") < narrow.index(" 22 ")
    assert wide.count("gpu_summary") == 1
    assert wide.count("gpus-1_batch-128.timeline.r1") == 2


@pytest.mark.parametrize("width", [*WIDTHS, None])
def test_advice_has_its_type_speed_up_and_whole_message(monkeypatch, width):
    table = TABLES["rules"]
    rows = [row | {"speedup_pct": 32.7, "speedup_type": "local"} for row in hostile(table)]
    text = printed(monkeypatch, table, rows, width)
    joined = " ".join(text.replace("\ufffd", " ").split())
    assert text.count("estimated speed-up 32.7 % (local)") == len(rows)
    for row in rows:
        assert " ".join(row["message"].replace("\x07", " ").split()) in joined
        assert f"launch {row['launch_id']}: " in joined
        assert all(str(row[c]) in text for c in ("type", "rule", "host", "pid"))
    assert width is None or all(cell_len(line) <= width for line in text.splitlines())


def test_columns_that_are_compared_in_a_row_have_one_unit(monkeypatch):
    rows = [
        {"name": "a", "total_ns": 9e9, "avg_ns": 7e6, "med_ns": 6e6, "min_ns": 480.0, "max_ns": 18e6, "stddev_ns": 5e6},
        {"name": "b", "total_ns": 8e9, "avg_ns": 900e3, "med_ns": 9e3, "min_ns": 9e3, "max_ns": 9e3, "stddev_ns": 1e3},
    ]
    columns = list(rows[0])
    monkeypatch.delenv("COLUMNS", raising=False)
    out = Screen(terminal=False)
    show_rows(console(out), "t", rows, columns, table_name="api_summary")
    head = next(line for line in out.getvalue().splitlines() if "avg" in line)
    assert re.findall(r"(\w+) \((\w+)\)", head) == [
        ("total", "s"), ("avg", "us"), ("med", "us"), ("min", "us"), ("max", "us"), ("stddev", "us"),
    ]  # fmt: skip


def test_a_case_is_headed_alike_in_every_table(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    for column in ("case", "case_id"):
        out = Screen(terminal=False)
        show_rows(
            console(out), "t", [{column: "n-1", "runs": 3}], [column, "runs"], table_name="compare", parameters=()
        )
        assert re.search(r"^ case +runs$", out.getvalue(), re.MULTILINE)


def test_one_row_that_does_not_fit_has_a_line_a_column_with_its_meaning(monkeypatch):
    columns = TABLES["gpu_use"].column_names
    row, other = ordinary(TABLES["gpu_use"])[:2]
    monkeypatch.setenv("COLUMNS", "100")
    out = Screen(terminal=False)
    show_rows(console(out), "t", [row], columns, table_name="gpu_use", explain=True)
    assert "hidden" not in out.getvalue()
    assert re.search(r"^ streams +[\d,]+ +streams with 5 % of the kernels' time or more", out.getvalue(), re.MULTILINE)
    again = Screen(terminal=False)
    show_rows(console(again), "t", [row, other], columns, table_name="gpu_use", explain=True)
    assert "(hidden, shown " in again.getvalue()


def test_of_a_column_of_words_those_that_are_printed_are_explained():
    """Each word alone has its own explanation, and no other's; all words together have the whole text."""
    for column in (column for table in TABLES.values() for column in table.columns if " | " in column.meaning):
        words = [re.split(r" \(|, |: ", part)[0] for part in column.meaning.split(" | ")]
        assert _meaning_of_values(column.meaning, {"no such word"}) == column.meaning
        for word in words[1:-1]:
            text = _meaning_of_values(column.meaning, {word})
            assert word in text
            assert " | " not in text
    gaps = next(column for column in TABLES["gaps"].columns if column.name == "cause")
    said = "what the next operation waited for: launch (the host launched it late)"
    assert _meaning_of_values(gaps.meaning, {"launch"}) == said


def test_meanings_are_those_of_printed_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    rows = [
        {"host": "a", "pid": 1, "device": 0, "phase": "steady", "cause": cause, "length": "short", "gaps": 1 + at,
         "total_ns": 100 * at, "opening": 0}
        for at, cause in enumerate(("launch", "value"))
    ]  # fmt: skip
    stream = Screen(terminal=True)
    show_rows(console(stream), "gaps", rows, TABLES["gaps"].column_names, table_name="gaps", explain=True)
    text = stream.getvalue()
    shown = text.partition("\n\n")[0]
    for line in text.partition("gaps: times")[2].splitlines():
        assert not (name := re.match(r"  (\w+): ", line)) or name[1] in shown
