"""What is printed for people: nothing steers the terminal, numbers read well, no terminal is no accident."""

import io
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsw.analysis.blocks import Column, Finding, Note, Table
from nsw.analysis.summary import CampaignData, ReportRequest, summarize
from nsw.engine.ledger_rows import BuildRow, Cause, Reading, RunRow, State
from nsw.present import rows_view, status_view, summary_view
from nsw.present.problems import Merged, short_lines, show_problems
from nsw.present.rows_view import show_rows
from nsw.present.terminal import TextTable, console, shorten_middle
from nsw.present.untrusted_text import clean_line
from nsw.quantities import duration, in_one_unit, number, percent, rate, seconds, size
from nsw.readers.model import Report
from nsw.tables.names import number_repeated_names
from nsw.wording import plural

EVIL = "a\x1b]0;owned\x07\x1b[31m\x9b2J\x7f\u202e\u2066b\r\x08[bold]c[/bold] :smile:"
STEERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class Screen(io.StringIO):
    """A stream that says whether it is a terminal."""

    def __init__(self, *, terminal=False):
        super().__init__()
        self._terminal = terminal

    def isatty(self):
        return self._terminal


@pytest.fixture
def out(monkeypatch):
    """A console that is no terminal, and what was printed on it."""
    monkeypatch.setenv("COLUMNS", "400")
    stream = Screen()
    return console(stream), stream


def show(out, *objects):
    out[0].print(*objects)
    return out[1].getvalue()


def test_what_steers_a_terminal_does_not_reach_it_by_any_way_of_printing(out):
    text = show(out, EVIL)
    text += show(out, TextTable(EVIL, (EVIL, "n>"), [(EVIL, 1)], wide=EVIL))
    text += clean_line(EVIL)
    assert not STEERS.search(text)
    assert "owned" in text


@given(st.text())
def test_a_cleaned_text_is_one_line_that_steers_nothing(text):
    assert not STEERS.search(clean_line(text))
    assert "\n" not in clean_line(text)


def test_what_looks_like_markup_or_an_emoji_is_text(out):
    text = show(out, "[bold]x[/bold] :smile: [/]", TextTable("[red]t", ("[b]c",), [("[i]d[/i]",)]))
    assert all(word in text for word in ("[bold]x[/bold] :smile: [/]", "[red]t", "[b]c", "[i]d[/i]"))


def run_row(**more):
    fixed = {"id": "r", "case_id": "c", "params": {}, "pass_name": "baseline", "pass_kind": "baseline", "tool": None,
             "repeat": 1, "job": "j", "task": 0, "gpus": 0, "reports": (), "state": State.FAILED, "attempt": 1,
             "detail": None, "exit_code": 1, "host": None, "started": 1.0, "ended": 2.0, "reading": Reading.NONE,
             "submission": None}  # fmt: skip
    return RunRow(**{**fixed, **more})


def test_a_status_with_hostile_words_of_a_remote_machine_steers_nothing(out):
    build = BuildRow("build", "b", "app", "job", EVIL, 60, 0, State.FAILED, 1, EVIL, 2, EVIL, 1.0, 2.0)
    head = {
        "campaign": "c",
        "site": EVIL,
        "driven": False,
        "note": EVIL,
        "absent": [(EVIL, EVIL, 2)],
        "next": [EVIL],
        "builds": [status_view.build_data(build, {}, [])],
    }
    problems = [("r", EVIL, "error", EVIL, EVIL)]
    rows = [run_row(detail=EVIL, host=EVIL)]
    status_view.show_status(out[0], head, {"failed": 1}, rows, problems, every_run=True)
    assert "owned" in out[1].getvalue()
    assert not STEERS.search(out[1].getvalue())


def test_a_summary_of_a_hostile_report_steers_nothing(out):
    run = run_row(params={"v": EVIL}, state=State.DONE)
    gpu = {"run": "r", "report": "a", "name": EVIL, "short_name": EVIL, "kind": "kernel", "total_ns": 5.0, "calls": 1}
    figure = {"run": "r", "name": "speed", "value": 1.0, "unit": EVIL}
    asked = ReportRequest(figure="speed", compare="v", baseline=EVIL)
    tables = {"gpu_summary": [gpu, gpu | {"kind": "memcpy"}], "figures": [figure]}
    made = summarize(CampaignData("c", EVIL, EVIL, [run], tables, [EVIL]), asked)
    for full in (False, True):
        summary_view.show_summary(out[0], made, full=full)
    assert "owned" in out[1].getvalue()
    assert not STEERS.search(out[1].getvalue())


@pytest.mark.parametrize("length", [20, 99])
def test_long_kernel_names_hide_no_time_or_share(length):
    stream = io.StringIO()
    made = console(stream)
    made.width = 100
    names = ("[CUDA memcpy Host-to-Device]", "sm80_" + length * "x" + "_cublas", "GPU idle")
    columns = (Column("part", "GPU work", "name"), Column("ns", "time", "ns"), Column("share_pct", "of an iteration", "whole %"),
               Column("operations", "operations", "count"), Column("top", "largest, of it", "name"))  # fmt: skip
    rows = [(name, 1e6 * n, 10.0 * n, n, f"{n} % GPU 0, 1 % GPU 1") for n, name in enumerate(names, 3)]
    summary_view._print_table(made, Table("answer", "", columns, tuple(rows), wide="top"))
    text = stream.getvalue()
    assert "hidden" not in text
    assert all(figure in text for figure in ("3.000", "30 %", "50 %"))
    assert ("…" in text) == (length == 99)


def test_a_hostile_report_steers_nothing(out):
    report = Report(EVIL, tool=EVIL, format="x", tool_version=EVIL)
    report.error(EVIL, line=3, fix=EVIL)
    report.tables["gpu_summary"] = [{"name": EVIL, "short_name": EVIL, "kind": "kernel", "total_ns": 1.0}]
    rows_view.show_report(out[0], report, 10, Merged())
    assert "owned" in out[1].getvalue()
    assert not STEERS.search(out[1].getvalue())


def test_an_error_with_hostile_words_steers_nothing_and_keeps_its_lines(capsys):
    from nsw.cli.main import show as show_error
    from nsw.errors import NswError

    show_error(NswError(f"first {EVIL}\nsecond", hint=EVIL))
    text = capsys.readouterr().err
    assert not STEERS.search(text)
    assert [line.split()[0] for line in text.splitlines()] == ["error:", "second", "hint:"]


# --- with and without a terminal --------------------------------------------------------------------------------


def test_a_pipe_has_no_width_no_padding_and_no_colour(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    stream = Screen()
    out = console(stream)
    out.print("x", style="bold red")
    assert stream.getvalue() == "x\n"
    out.print("word " * 100)
    out.print(TextTable("t", ("a name", "n>"), [("k" * 300, 1), ("short", 22)], wide="a name", droppable=("n",)))
    lines = stream.getvalue().splitlines()
    assert len(lines[1]) == 499
    assert any(line.startswith(" " + "k" * 300 + "    1") for line in lines)
    assert not [line for line in lines if line != line.rstrip()]


def test_columns_says_how_wide_it_is(monkeypatch):
    monkeypatch.setenv("COLUMNS", "61")
    assert console(Screen()).width == 61


@pytest.mark.parametrize(("no_colour", "coloured"), [(None, True), ("1", False)])
def test_a_terminal_has_colours_unless_no_color_is_set(monkeypatch, no_colour, coloured):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("COLORTERM", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_colour:
        monkeypatch.setenv("NO_COLOR", no_colour)
    stream = Screen(terminal=True)
    console(stream).print("x", style="red")
    assert ("\x1b[31m" in stream.getvalue()) == coloured


def test_what_an_encoding_cannot_write_is_replaced_and_no_error(tmp_path):
    with (tmp_path / "f").open("w", encoding="ascii") as stream:
        console(stream).print("漢字 µs")
    assert "s" in (tmp_path / "f").read_text()


def test_a_narrow_terminal_shortens_the_column_that_gives_way_and_no_other(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    stream = Screen()
    console(stream).print(TextTable(None, ("name", "share>"), [("k" * 200, "12.5 %")], wide="name"))
    assert "12.5 %" in stream.getvalue()
    assert "…" in stream.getvalue()
    assert max(len(line) for line in stream.getvalue().splitlines()) <= 40


def low_screen(monkeypatch, table, below=()):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Screen(terminal=True)
    blocks = [Note("headline", "most of all case 7", tone="heading"), table, Finding("idle", "the GPU is idle. " * 20)]
    summary_view.show_first_screen(console(stream), blocks, "`--full` prints all", below=below)
    return stream.getvalue()


CASES = Table(
    "answer",
    "",
    (Column("case", "case"), Column("what", "what is wrong"), Column("largest", "largest part " * 6)),
    tuple((f"case {n}", "a sentence " * 20, "k" * 60) for n in range(9)),
    least=("largest",),
    by_weight=(7, *range(7), 8),
)


def test_the_headline_stays_in_sight_whatever_follows_the_answer(monkeypatch):
    printed = low_screen(monkeypatch, CASES, ["warning: " + "w" * 150, "3 other files"])
    assert len(printed.splitlines()) + 3 < 24  # the warning takes two lines, and the prompt one
    assert "(hidden, shown at width " in printed


def test_a_table_that_is_cut_begins_with_the_case_of_the_headline(monkeypatch):
    printed = low_screen(monkeypatch, CASES)
    assert " case 7 " in printed
    assert " case 0 " not in printed or printed.index(" case 7 ") < printed.index(" case 0 ")
    few = low_screen(monkeypatch, replace(CASES, rows=tuple((name, "", "") for name, *_ in CASES.rows)))
    assert few.index(" case 0 ") < few.index(" case 7 ")  # whole, and so as it was


def test_on_a_terminal_only_errors_have_hints_below_an_answer():
    merged = Merged()
    for severity in ("warning", "error"):
        merged.add("a", severity, "broken", f"mend {severity}")
    assert [text for _, text in merged.lines(brief=True)] == [
        "error: a: broken\n  hint: mend error",
        "warning: a: broken",
    ]


# --- numbers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ns", "text"),
    [(None, "-"), (0, "0 ns"), (1, "1 ns"), (999, "999 ns"), (1000, "1.000 us"), (12345, "12.35 us"),
     (123456, "123.5 us"), (1.5e6, "1.500 ms"), (2.5e9, "2.500 s"), (3.6e12, "3,600.0 s"), (-1500, "-1.500 us")],
)  # fmt: skip
def test_durations_have_four_digits_and_the_unit_that_fits(ns, text):
    assert duration(ns) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(None, "-"), (0, "0 B"), (1023, "1,023 B"), (1024, "1.000 KiB"), (1_234_567, "1.177 MiB"), (5 << 30, "5.000 GiB"),
     (7.25 * 2**40, "7.250 TiB")],
)  # fmt: skip
def test_sizes_are_binary(count, text):
    assert size(count) == text


@pytest.mark.parametrize(
    ("per_second", "text"),
    [(None, "-"), (0, "0 B/s"), (999, "999 B/s"), (1000, "1.000 kB/s"), (4.8e12, "4.800 TB/s")],
)
def test_rates_are_decimal_as_in_data_sheets(per_second, text):
    assert rate(per_second) == text
    assert rate(2.5e12, "FLOP") == "2.500 TFLOP/s"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0, "0.00 s"), (0.314, "0.31 s"), (9.994, "9.99 s"), (12.4, "12 s"), (59.4, "59 s"), (59.6, "1 min"),
     (200, "3 min 20 s"), (3600, "1 h 0 min"), (7500, "2 h 5 min")],
)  # fmt: skip
def test_seconds_for_people(value, text):
    assert seconds(value) == text


def test_counts_and_shares():
    assert [plural(n, "run") for n in (0, 1, 2, 12345)] == ["0 runs", "1 run", "2 runs", "12,345 runs"]
    assert [percent(v) for v in (None, 0.0, 99.96, 1760.2)] == ["-", "0.0 %", "100.0 %", "1,760.2 %"]
    assert number(None) == "-"
    assert "," in number(1234567.0)


def test_numbers_have_separators_with_a_unit_beside_them_and_in_the_heading_alike():
    for quantity in (percent(1760.2), duration(3.6e12), rate(2.5e15), size(2000 << 40)):
        _, (alone,) = in_one_unit("share", [quantity])
        assert alone.partition(".")[0] == quantity.partition(".")[0]
        assert alone[1] == ","


def test_errors_come_before_warnings_and_notes_last_with_the_number_of_their_runs(out):
    note = "without figure f, which is not required"
    problems = [(f"n-{n}.b.r1", f"reports/n-{n}.b.r1/stdout", "note", note, None) for n in (1, 2)]
    problems += [("a", "a/x", "warning", "old driver", None), ("b", "b/x", "error", "cut short", "copy it")]
    show_problems(out[0], problems)
    assert out[1].getvalue().splitlines() == [
        "error: b/x: cut short", "  hint: copy it", "warning: a/x: old driver",
        "note: 2 runs without figure f, which is not required, such as n-1.b.r1",
    ]  # fmt: skip


def test_asides_are_in_the_full_list_alone(out):
    problems = [(run, f"{run}/x", "aside", "nsys: old", None) for run in "ab"]
    assert short_lines(problems, "nsw problems c") == []
    show_problems(out[0], problems)
    assert out[1].getvalue() == "note: a/x and 1 more: nsys: old\n"


def test_the_same_problem_of_several_runs_is_told_once(out):
    problems = [(f"n-{n}.t", f"reports/n-{n}.t/x.qdrep", "error", "no nsys", f"run `nsys n-{n}.t`") for n in (1, 2, 3)]
    show_problems(out[0], problems)
    problems += [
        ("a", "a/x", "warning", "old driver (and 2 like it) (why)", None),
        ("b", "b/x", "warning", "old driver (why)", None),
    ]
    show_problems(out[0], problems[3:])
    assert "a/x and 1 more: old driver (why)" in out[1].getvalue()
    assert out[1].getvalue().startswith("error: reports/n-1.t/x.qdrep and 2 more: no nsys\n  hint: run `nsys n-1.t`\n")


def test_a_problem_of_many_reports_has_the_lines_of_the_first_and_how_many_more():
    told = Merged()
    new = [
        told.add(f"r{n}.txt", "error", "a row is damaged", "copy it", line=7 + more)
        for n in range(312)
        for more in (0, 9)
    ]
    assert new == [True, True, *[False] * 622]
    told.add("r5.txt", "warning", "cut short (and 3 like it)", None)
    assert list(told.lines()) == [
        ("error", "error: r0.txt:7, 16 and 311 more: a row is damaged\n  hint: copy it"),
        ("warning", "warning: r5.txt: cut short"),
    ]
    assert list(told.lines(repeated=True)) == [("error", "error: r0.txt:7, 16 and 311 more: a row is damaged")]


def test_runs_that_wait_for_the_same_reason_are_one_line_and_failures_stay_in_sight(out):
    waiting = [run_row(id=f"w{n}", state=State.QUEUED, detail="waits for free nodes (Resources)") for n in range(900)]
    running = [run_row(id=f"r{n}", state=State.RUNNING, started=100.0, ended=None) for n in range(20)]
    done = [run_row(id=f"d{n}", state=State.DONE) for n in range(50)]
    failed = [run_row(id="f", detail="exit status 1")]
    lines = [
        line
        for _, line in status_view.shown_lines(
            [*failed, *done, *running], [(State.QUEUED, waiting[0].reason, "w0", 900)], now=112.0
        )
    ]
    assert lines[0] == "failed    f  1.00 s  exit status 1"
    assert lines[1:6] == [f"done      d{n}  1.00 s" for n in range(45, 50)]
    assert lines[6] == "running   r0  12 s"
    assert lines[-2:] == ["running   and 12 more", "queued    w0 and 899 more  waits for free nodes (Resources)"]
    head = {"campaign": "c", "site": "s", "driven": True, "note": None, "absent": [], "next": [], "builds": []}
    status_view.show_status(out[0], head, {"queued": 900}, [*failed, *waiting, *running], [], every_run=False)
    text = out[1].getvalue()
    assert "w0 and 899 more" in text
    assert "w1 " not in text
    assert "r19" in text


@pytest.mark.parametrize("held", [True, False])
def test_the_command_that_releases_a_job_is_not_advised_while_nsw_holds_the_campaign(out, held):
    said = "held by the user: `scontrol release JOB` releases it (JobHeldUser)"
    head = {"campaign": "c", "site": "s", "driven": True, "note": None, "absent": [], "next": [], "builds": []}
    run = run_row(id="r1", state=State.QUEUED, detail=said, cause=Cause.HELD_BY_SCHEDULER)
    status_view.show_status(out[0], head | {"held": held}, {"queued": 1}, [run], [], every_run=False)
    assert ("scontrol" in out[1].getvalue()) is not held


@pytest.mark.parametrize(
    ("driven", "looks", "told"), [(False, "nsw watch c", True), (False, None, False), (True, "nsw watch c", False)]
)
def test_states_that_may_be_old_are_said_to_be_with_the_command_that_looks(out, driven, looks, told):
    head = {"campaign": "c", "site": "s", "driven": driven, "note": None, "absent": [], "next": [], "builds": []}
    status_view.show_status(out[0], head, {"queued": 9}, [], [], every_run=False, looks=looks)
    assert ("(as nsw last saw them: `nsw watch c` looks now)" in out[1].getvalue()) is told


def test_a_name_without_room_gives_up_its_middle_and_a_sentence_wraps(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    stream = Screen()
    console(stream).print(TextTable(None, ("name", "n>"), [("kernel<" + "x" * 60 + ", AdamFunctor>", 1)], wide="name"))
    sentence = "it failed because " + "yes " * 12
    console(stream).print(TextTable(None, ("run", "description"), [("r", sentence)], wide="description"))
    text = stream.getvalue()
    assert "kernel<xxx" in text
    assert "AdamFunctor>" in text
    assert " ".join(text.split()).count("yes") == 12
    assert all(len(line.rstrip()) <= 40 for line in text.splitlines())


@given(st.text(alphabet="ab漢字", max_size=40), st.integers(min_value=1, max_value=50))
def test_an_elided_text_fits(text, width):
    from rich.cells import cell_len

    short = shorten_middle(text, width)
    assert cell_len(short) <= width
    assert short == text or "…" in short


def test_instances_of_one_template_are_numbered():
    assert number_repeated_names(["a", "b", "a"]) == ["[1] a", "b", "[2] a"]


def test_what_is_the_same_in_every_row_gives_way_to_what_the_table_is_looked_at_for(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    stream = Screen()
    rows = [{"host": "127.0.0.1", "pid": 4711, "launch_id": 0, "kernel": "k" * 40, "section": f"Section {n}" * 3,
             "metric": f"Metric {n}", "unit": "%", "value": 1.5} for n in range(3)]  # fmt: skip
    show_rows(console(stream), "metrics", rows, list(rows[0]), table_name="metrics")
    text = stream.getvalue()
    assert re.search(r"Metric 1\s+%\s+1.50", text)
    assert "(in each of these rows: host 127.0.0.1, pid 4711, launch_id 0, kernel kkk" in " ".join(text.split())


@pytest.mark.parametrize(
    ("width", "shown"),
    [(10, "abcdefghij"), (9, "abcd…ghij"), (6, "abc…ij"), (5, "ab…ij"), (2, "a…"), (1, "…"), (0, "…")],
)
def test_a_long_word_keeps_its_beginning_and_its_end(width, shown):
    assert shorten_middle("abcdefghij", width) == shown


def test_a_headline_stays_in_sight_above_commands_that_the_terminal_breaks(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    stream = Screen(terminal=True)
    table = Table("t", "", columns=(Column("case", "case", "name"),), rows=tuple((f"c{n}",) for n in range(90)))
    notes = [Note("n", f"note {n}") for n in range(5)]
    finding = Finding("f", "word " * 90)
    command = "nsw " + "x" * 150  # two lines
    blocks = [Note("headline", "headline", tone="heading"), table, *notes, finding]
    summary_view.show_first_screen(
        console(stream), blocks, "next", rows_command=lambda _: command, proof=lambda _: command, last_line=command
    )
    lines = re.sub(r"\x1b\[[\d;]*m", "", stream.getvalue()).split("\n")[:-1]
    assert sum(max(1, -(-len(line) // 80)) for line in lines) <= 23, lines
    assert "headline" in lines[0]


@pytest.fixture
def low_lines(monkeypatch):
    """The lines of a first screen on a terminal of 80 x 24."""

    def print_blocks(*blocks, **options):
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.setenv("LINES", "24")
        stream = Screen(terminal=True)
        head = Note("headline", "headline", tone="heading")
        summary_view.show_first_screen(console(stream), [head, *blocks], "next", **options)
        return re.sub(r"\x1b\[[\d;]*m", "", stream.getvalue()).split("\n")[:-1]

    return print_blocks


@pytest.mark.parametrize("words", [20, 40])
def test_a_note_with_a_command_that_the_terminal_breaks_counts_as_its_lines(low_lines, words):
    note = Note("n", f"Not measured: words. `ncu --metrics {'x' * 230}` shows it.")
    lines = low_lines(CASES, note, Finding("f", "word " * words))
    assert sum(max(1, -(-len(line) // 80)) for line in lines) <= 23, lines


def test_what_shares_are_not_of_stays_where_other_asides_find_no_room(low_lines):
    asides = [Note(name, f"{name} word", tone="aside") for name in ("slowed", "left-out", "outside", "traced")]
    lines = low_lines(CASES, *asides, Finding("f", "word " * 250))
    assert [line for line in lines if line in {note.text for note in asides}] == ["left-out word", "outside word"]


def test_rows_of_reports_beside_each_other_go_before_asides_and_the_first_sentence_before_rows(low_lines):
    columns = (Column("case", "report"), Column("what", "what is wrong"), Column("do", "do"))
    rows = tuple((f"c{n}", "launch-bound, 125 operations " * 2, "CUDA graphs " * 6) for n in range(15))
    blocks = (
        Table("t", "", columns, rows, by_weight=tuple(range(15))),
        Note("best", "none", tone="aside"),
        Finding("f", "word " * 60),
    )
    lines = low_lines(*blocks, rows_first=True)
    assert len(lines) <= 23
    assert [line.split() for line in lines if "launch" in line] == [[f"c{n}", "launch-bound"] for n in range(11)]
    assert [line.partition(": ")[2] for line in lines if "hidden" in line] == ["do)"]
    assert "* word" in " ".join(lines)
    assert lines[-1] == "next"
    few = low_lines(replace(blocks[0], rows=rows[:2], by_weight=(0, 1)), *blocks[1:], rows_first=True)
    assert {"none", "next"} < {*few}
    assert "CUDA graphs" in " ".join(few)


def test_the_rows_that_make_up_most_of_the_time_go_before_the_command_below_a_sentence(low_lines):
    shares = (30.0, 20.0, 5.0, 4.0, 1.0, 40.0)
    columns = (Column("part", "GPU work"), Column("share_pct", "of the time", "whole %"))
    table = Table("t", "", columns, tuple((f"part {n}", share) for n, share in enumerate(shares)), whole=("share_pct",))
    asides = [Note(f"n{n}", "word " * 30, tone="aside") for n in range(2)]
    finding = Finding("f", "word " * 190)
    lines = low_lines(table, *asides, finding, proof=lambda _: "nsw read", last_line="draws it")
    assert len(lines) <= 23
    assert [line.split()[1] for line in lines if line.startswith(" part")] == ["0", "1", "2", "5"]
    assert "draws it" not in lines


def test_a_legend_has_the_words_of_the_columns_that_are_shown(low_lines):
    columns = (Column("case", "case"), Column("a", "gap between"), Column("b", "NCCL alone"), Column("c", "x" * 60))
    table = Table("t", "", columns, (("c", "1", "2", "3"),), least=("a",))
    legend = Note("legend", "between: b; alone: no other; set aside: s; below 7 a side", tone="aside")
    assert "alone: no other; set aside: s; below 7 a side" in low_lines(table, legend)
    lines = low_lines(replace(table, rows=(("c", "1", "2", ""),), columns=(*columns[:3], Column("c", "x"))), legend)
    assert legend.text in lines
    assert not [line for line in low_lines(table, replace(legend, text="between: b; of 7")) if "between:" in line]
