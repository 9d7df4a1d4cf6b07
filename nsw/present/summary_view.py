"""The blocks of an answer, and so the whole answer of a campaign: on a terminal, as Markdown and as JSON data."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Final

from rich.cells import cell_len

from nsw.analysis.answer.kernels import counters_behind_findings
from nsw.analysis.answer.registry import answer_blocks
from nsw.analysis.blocks import (
    NUMBERS,
    Block,
    Cell,
    Column,
    Curve,
    Finding,
    Note,
    Scatter,
    Shown,
    Table,
    Timeline,
    Unit,
)
from nsw.analysis.case_gain import case_gain
from nsw.analysis.first_screen import BASES, FAILED, HEADLINE, find_headline, first_screen_blocks
from nsw.analysis.rules.pairs import cases_with_void_ratio
from nsw.analysis.rules.profiler_cost import time_without_profiler
from nsw.analysis.screen_table import slowest_case
from nsw.analysis.several_cases import best_two_cases
from nsw.present.terminal import TextTable, clash_marks, strip_padding, wrap_text
from nsw.present.untrusted_text import clean_line
from nsw.quantities import (
    MOMENTS,
    change_of_speed,
    duration,
    format_change,
    format_moment,
    format_range,
    format_rate_change,
    format_time_change,
    in_one_unit,
    is_factor,
    number,
    percent,
    rate,
    size,
)
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from rich.console import Console

    from nsw.analysis.kernels import KernelRow
    from nsw.analysis.rules.hits import Reports
    from nsw.analysis.summary import Summary


def as_text(cell: Cell, unit: Unit) -> str:
    """One cell; `-` for what is not known."""
    if cell is None:
        return "-"
    if isinstance(cell, str):
        return cell
    return _TEXTS.get(unit, str)(cell)


def column_texts(block: Table) -> list[list[str]]:
    """The texts of each column of a block; shares that add up do so as they are printed."""
    columns = [[as_text(row[n], column.unit) for row in block.rows] for n, column in enumerate(block.columns)]
    speeds = [n for n, column in enumerate(block.columns) if column.unit in {"faster x", "longer x"}]
    ratios = {(r, n): row[n] for r, row in enumerate(block.rows) for n in speeds if isinstance(row[n], float)}
    if any(map(is_factor, ratios.values())):  # type: ignore[arg-type]  # one notation a table
        for (r, n), ratio in ratios.items():
            columns[n][r] = change_of_speed(ratio, as_factor=True)  # type: ignore[arg-type]
    if block.best is not None and block.best[0] < len(block.rows):  # a low terminal shows the first rows
        row, column = block.best
        columns[column][row] = f"* {columns[column][row]}"
    index = {column.name: n for n, column in enumerate(block.columns)}
    at = [index[name] for name in block.whole]
    if len(at) == 1:
        groups = [[(row, at[0]) for row in range(len(block.rows))]]
    else:
        groups = [[(row, n) for n in at] for row in range(len(block.rows))] if at else []
    for group in groups:
        shares = [value for row, n in group if isinstance(value := block.rows[row][n], int | float)]
        if len(shares) == len(group):
            for (row, n), share in zip(group, _percent_texts(shares), strict=True):
                columns[n][row] = share
    return columns


def _percent_texts(shares: Sequence[float]) -> list[str]:
    """Shares that add up to 100 %, in whole numbers; in tenths where the only one that could give way is in between."""
    whole = _round_to_sum(shares, 100)
    is_exact = abs(sum(shares) - 100) < 0.05  # medians of shares may add up to less
    if len(shares) == 3 and whole[1] != round(shares[1]) and is_exact:  # a sentence names it
        return [f"{tenths / 10:.1f} %" for tenths in _round_to_sum([10 * share for share in shares], 1000)]
    return [f"{share} %" for share in whole]


def _round_to_sum(shares: Sequence[float], total: int) -> list[int]:
    """Whole numbers with this sum: those give way that are nearest to the next number.

    The first and the last, which sentences name, stay what they are there, but where there are no others.
    """
    whole = [round(share) for share in shares]
    missing = total - sum(whole)
    sign = 1 if missing > 0 else -1
    inner = range(1, len(shares) - 1) if len(shares) > 2 else range(len(shares))
    for n in sorted(inner, key=lambda n: sign * (whole[n] - shares[n]))[: abs(missing)]:
        whole[n] += sign
    return whole


def column_cells(block: Table) -> list[list[str]]:
    """The texts of each column of a block; what the first columns repeat of the row above is left out."""
    heads = [row[: block.repeats] or None for row in block.rows]
    again = [head is not None and head == above for above, head in pairwise([None, *heads])]
    return [
        ["" if is_repeated and n < block.repeats else text for text, is_repeated in zip(column, again, strict=True)]
        for n, column in enumerate(column_texts(block))
    ]  # fmt: skip


def _format_occupancy(pair: Any) -> str:
    achieved, limit = pair
    if limit is None:
        return percent(achieved)
    return f"{'-' if achieved is None else f'{achieved:,.1f}'} of {percent(limit)}"


_TEXTS: Final[Mapping[Unit, Callable[[Any], str]]] = {
    "count": lambda value: f"{value:,.0f}" if value == int(value) else number(value),  # a mean
    "number": number,
    "plain": str,
    "times": lambda value: f"{value:,.2f}",
    "ns": duration,
    "byte": size,
    "byte/s": rate,
    "FLOP/s": lambda value: rate(value, "FLOP"),
    "GB/s": lambda value: f"{value:,.1f}",
    "%": percent,
    "whole %": lambda value: f"{value:.0f} %",
    "change %": format_change,
    "faster %": format_rate_change,
    "faster x": change_of_speed,
    "longer %": format_time_change,
    "change factor": partial(format_change, as_factor=True),
    "faster factor": partial(format_rate_change, as_factor=True),
    "longer factor": partial(format_time_change, as_factor=True),
    "longer x": partial(change_of_speed, is_time=True),
    "range": lambda pair: format_range(*pair),
    "achieved and limit %": _format_occupancy,
    "names and ns": lambda pairs: ", ".join(f"{name} {duration(ns)}" for name, ns in pairs),
}


_LEAST_NAME: Final = 24
_GAP: Final = 3
_wrap: Final = partial(wrap_text, in_pipes=True)
_STYLES: Final = {"warning": "yellow", "aside": "dim", "heading": "bold"}


def show_blocks(out: Console, blocks: Iterable[Block], form: Shown) -> None:
    """Print the blocks of one form, in their order, and what two of them have once.

    Args:
        out: Where to.
        blocks: The answer.
        form: `brief` or `full`; those that are always shown are in both.
    """
    printed = set()
    for block in _without_hidden_legends(out, blocks):
        content: object = (block.columns, block.rows) if isinstance(block, Table) else getattr(block, "text", block)
        if block.shown in {"always", form} and content not in printed:
            printed.add(content)
            show_block(out, block)


def show_block(out: Console, block: Block) -> None:
    """Print one; a kind without a form of its own as the table that it is."""
    if isinstance(block, Finding):
        out.print(_wrap(out, f"* {block.text}"), soft_wrap=True)
    elif isinstance(block, Note):
        _print_note(out, block)
    elif isinstance(block, Timeline):
        _print_timeline(out, block)
    elif isinstance(block, Table):
        _print_table(out, block)


def _print_note(out: Console, note: Note) -> None:
    if note.tone == "heading" and note.name != HEADLINE:
        out.print()
    inside = "  " if note.tone == "plain" and note.case and note.name != "case" else ""
    out.print(_wrap(out, inside + note.text), style=_STYLES.get(note.tone), soft_wrap=True)


def _print_timeline(out: Console, block: Timeline) -> None:
    """Print a line for each phase of the timeline except the steady state."""
    for phase, length, iterations, spent_in in block.rows:
        if phase != "steady state":
            count = f", {plural(iterations, 'iteration')}" if isinstance(iterations, int) and iterations else ""
            spent = f": {as_text(spent_in, 'names and ns')}" if spent_in else ""
            out.print(f"  not in what follows: {phase} {as_text(length, 'ns')}{count}{spent}")


_MEANING: Final = re.compile(r"; (?=[^;:]{1,30}: )")  # between the meanings of words in a legend
_OF_KERNELS: Final = frozenset({"part", "kernel", "top"})  # columns whose names lose their middles before others go


def _text_table(block: Table, *, low: bool = False) -> TextTable:
    """A table whose columns go where there is no room for them."""
    return TextTable(
        block.title or None,
        [_column_heading(c) for c in block.columns],
        zip(*column_cells(block), strict=True),
        wide=_column_title(block, block.wide),
        names=[c.title for c in block.columns if c.unit == "name" and c.name in _OF_KERNELS],
        phrases=[c.title for c in block.columns if c.name in {"top", "counter"}],
        droppable=[_column_title(block, name) or "" for name in block.least],
        elsewhere="--format csv" if block.name == "comparison" else None,  # whose rows have all that the table shows
        low=low,
    )


def _without_hidden_legends(out: Console, blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks, their legends without the words that only hidden columns of the table above have."""
    table: Table | None = None
    for block in blocks:
        if isinstance(block, Note) and block.name == "legend" and table is not None and not table.goes_on:
            hidden = _text_table(table).hidden_headings(out.width)
            visible = [column.title for column in table.columns if column.title not in hidden]
            meanings = [
                meaning
                for meaning in _MEANING.split(block.text)
                for word in [meaning.partition(":")[0]]
                if any(word in head for head in visible) or not any(word in head for head in hidden)
            ]
            if meanings:
                yield replace(block, text="; ".join(meanings))
            continue
        if isinstance(block, Table):
            table = block
        yield block


def _print_table(out: Console, block: Table, *, low: bool = False) -> None:
    if not block.goes_on:
        out.print(_text_table(block, low=low))
        return
    wide = _column_title(block, block.wide)
    first, *other_columns = column_cells(block)
    parts = _fit_columns(block.columns[1:], other_columns, first, out.width)
    if len(parts) > 1:  # alike in all parts, however wide each is
        first = [mark + text for mark, text in zip(clash_marks(first, _LEAST_NAME), first, strict=True)]
    for part, part_columns in enumerate(parts):
        heads = [_column_heading(block.columns[0]), *(_column_heading(block.columns[n + 1]) for n in part_columns)]
        rows = zip(first, *(other_columns[n] for n in part_columns), strict=True)
        out.print(TextTable(block.title if part == 0 else None, heads, rows, wide=wide))


def _column_heading(column: Column) -> str:
    return column.title + (">" if column.unit in NUMBERS else "")


def _column_title(block: Table, name: str | None) -> str | None:
    return next((c.title for c in block.columns if c.name == name), None)


def _fit_columns(
    columns: Sequence[Column], texts: Sequence[Sequence[object]], names: Sequence[str], width: int
) -> list[list[int]]:
    """The columns of each table: as many as fit beside the names."""
    name_width = min(max(map(len, names)), _LEAST_NAME) + _GAP
    parts: list[list[int]] = [[]]
    room = width - name_width
    for n, (column, column_cells) in enumerate(zip(columns, texts, strict=True)):
        needs = max(len(column.title), *(len(clean_line(text)) for text in column_cells)) + _GAP
        if needs > room and parts[-1]:
            parts.append([])
            room = width - name_width
        parts[-1].append(n)
        room -= needs
    return parts


# what Markdown, or HTML in it, would take for markup
_MARKUP: Final = re.compile(r"([\\`*{}\[\]<>#|~&$@]|(?<![^\W_])_|_(?![^\W_]))")  # an underscore inside a word is one
_AT_START: Final = re.compile(r"^(?:([-+=])|(\d+)([.)]))(?=\s|$)")

# what nsw writes for a person to copy; whatever a program wrote between such marks is shown as it is, and is no markup
_COMMAND: Final = re.compile(r"(`(?:nsw|ncu|nsys|nvprof) [^`]+`)")

_RUNS: Final = "runs"  # the table with moments in it


def as_markdown(title: str, blocks: Iterable[Block]) -> str:
    """The answer in full: its headline and findings first, since a reader may stop there."""
    shown_blocks = [block for block in blocks if block.shown in {"always", "full"}]
    first = [block for block in shown_blocks if isinstance(block, Finding)]
    heads = [block for block in shown_blocks if isinstance(block, Note) and block.name == HEADLINE]
    rest = [block for block in shown_blocks if not isinstance(block, Finding) and block not in heads]
    parts = [f"# {_markdown_line(title)}", *(f"**{_markdown_line(block.text)}**" for block in heads)]
    parts += ["\n".join(f"- {_markdown_line(f.text)}" for f in first)] if first else []
    parts += [_markdown_block(block) for block in rest]
    return "\n\n".join(parts) + "\n"


def rows_markdown(
    title: str, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], note: str | None = None
) -> str:
    """Rows of one table as Markdown, unrounded; the moments of runs are those of the local clock.

    Args:
        title: The table's name.
        rows: The rows.
        columns: Their columns, in order.
        note: A paragraph above them.
    """
    moments = MOMENTS if title == _RUNS else frozenset()
    cells = (
        tuple(format_moment(cell) if c in moments and isinstance(cell := row.get(c), int | float) else row.get(c)
              for c in columns)
        for row in rows
    )  # fmt: skip
    markdown_block = Table("rows", "", tuple(Column(c, c) for c in columns), tuple(cells))
    parts = [f"# {_markdown_line(title)}", *([_markdown_line(note)] if note else []), _markdown_table(markdown_block)]
    return "\n\n".join(parts) + "\n"


def _markdown_block(block: Block) -> str:
    if isinstance(block, Note):
        return f"## {_markdown_line(block.text)}" if block.tone == "heading" else _markdown_line(block.text)
    assert isinstance(block, Table)
    return f"**{_markdown_line(block.title)}**\n\n{_markdown_table(block)}" if block.title else _markdown_table(block)


def _markdown_table(block: Table) -> str:
    columns = [
        in_one_unit(column.title, texts) for column, texts in zip(block.columns, column_cells(block), strict=True)
    ]
    heads = [_markdown_cell(head) for head, _ in columns]
    sides = ["---:" if column.unit in NUMBERS else "---" for column in block.columns]
    lines = [
        heads,
        sides,
        *([_markdown_cell(str(cell)) for cell in row] for row in zip(*(c for _, c in columns), strict=True)),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _markdown_cell(text: str) -> str:
    """A text in a table, where a bar would end the cell in a command too."""
    return _markdown_inline(text, lambda command: command.replace("|", r"\|"))


def _markdown_inline(text: str, written: Callable[[str], str] = str) -> str:
    """A text inside a line: commands as code, whatever else would be markup escaped."""
    pieces = _COMMAND.split(" ".join(clean_line(text).split()))  # every other one is a command
    return "".join(written(piece) if n % 2 else _MARKUP.sub(r"\\\1", piece) for n, piece in enumerate(pieces))


def _markdown_line(text: str) -> str:
    """A text of one line that stays what it is, at the beginning of a line too."""
    return _AT_START.sub(lambda m: f"\\{m[1]}" if m[1] else f"{m[2]}\\{m[3]}", _markdown_inline(text))


def block_data(block: Block) -> dict[str, Any]:
    """A block as data, numbers unrounded."""
    common_data = {
        "kind": block.kind,
        "name": block.name,
        "case": block.case,
        "shown": block.shown,
        "evidence": list(block.evidence),
    }
    if isinstance(block, Finding):
        return common_data | _finding_fields(block) | {"brief": clean_line(block.brief or block.text)}
    if isinstance(block, Note):
        return common_data | {"text": clean_line(block.text), "tone": block.tone}
    assert isinstance(block, Table)
    parts: dict[str, Any] = {part: name if isinstance(name, str) else list(name) for part, name in block.parts.items()}
    if isinstance(block, Scatter):
        parts["ceilings"] = list(block.ceilings)
    if isinstance(block, Curve):
        parts["ideals"] = list(block.ideals)
    return common_data | {"title": block.title, "columns": list(block.columns), "rows": list(block.rows)} | parts


def headline_of(summary: Summary) -> str:
    """The headline of an answer."""
    return clean_line(find_headline(first_screen_blocks(summary)))


def findings_data(summary: Summary) -> list[dict[str, Any]]:
    """The findings of an answer as JSON data, those of a campaign and of reports alike."""
    return [
        _finding_fields(finding) | {"cases": list(finding.cases), "evidence": list(finding.evidence)}
        for finding in summary.findings
    ]


def _finding_fields(finding: Finding) -> dict[str, Any]:
    return {
        "text": clean_line(finding.text), "cause": finding.cause,
        "remedy": finding.remedy and clean_line(finding.remedy), "healthy": finding.healthy,
        "gain_pct": finding.gain_pct,
    }  # fmt: skip


_LINES: Final = 24  # of the first screen, on a low terminal and where there is none
_FINDINGS: Final = 5
_LEAST_FINDINGS: Final = 3  # printed where no terminal scrolls the headline away
_FEWEST: Final = 4  # rows of the table, however much is around it
_FEWEST_ON_TERMINAL: Final = 1  # whose rows may have several lines, and whose headline is to stay in sight
_MOST_TIME_PCT: Final = 80.0  # of the time, whose rows go before prose
_PROVING: Final = 4  # cases of a command
_STYLE: Final = re.compile(r"\x1b\[[0-9;]*m")
_GAIN: Final = "gain: at most, of the time that the report's own sentence names"
_SAVES: Final = "; saves: that, in the time of this run"


def show_summary(
    out: Console, summary: Summary, *, full: bool, next_command: str | None = None, campaign: str | None = None,
    proof: Callable[[Finding], str | None] | None = None, drawable_cases: Collection[str] = (),
    rows_command: Callable[[Table], str | None] | None = None, selected: str = "", below: Sequence[str] = (),
) -> None:  # fmt: skip
    """Print the first screen, or the full answer, which begins with it.

    Args:
        out: Where to.
        summary: What.
        full: All tables, and every finding whole.
        next_command: The last line: the command that shows more.
        campaign: What a command calls it; None: what was read is no campaign's.
        proof: The command that proves a finding of what is no campaign's.
        drawable_cases: The cases of which an iteration can be drawn.
        rows_command: The command that prints every row of a table of what is no campaign's.
        selected: The options that select what of the campaign this is.
        below: What the caller prints below it, such as warnings.
    """
    blocks = ranked_blocks(summary, full=full)
    if full:
        show_blocks(out, blocks, "full")
        return
    if out.is_terminal:  # which cuts sentences
        blocks = _with_finding_of_headline_first(blocks, summary)
    last_line = None
    if campaign is not None:
        rows_command = partial(_whole_table_command, f"{campaign}{selected}")
        if len(summary.cases) > 1:
            proof = partial(_evidence_command, campaign, selected=selected, reports=summary.reports)
            last_line = _commands_for_cases(campaign, summary, blocks)
        else:
            proof = partial(_only_case_command, campaign, reports=summary.reports)
            last_line = _command_for_case(campaign, summary, drawable_cases)
    show_first_screen(out, blocks, next_command, proof=proof, last_line=last_line, rows_command=rows_command,
                      below=below, rows_first=not summary.site)  # fmt: skip


def ranked_blocks(summary: Summary, *, full: bool) -> list[Block]:
    """The answer; the reports beside each other in it by what each could save at most, which is a column."""
    gains = {case.id: case_gain(case, summary.hits.get(case.id, ())) for case in summary.cases}
    has_bases = len({gain.base for gain in gains.values() if gain}) > 1
    blocks: list[Block] = []
    for block in answer_blocks(summary, full=full):
        names = [column.name for column in block.columns] if isinstance(block, Table) and block.by_weight else []
        if summary.site or not isinstance(block, Table) or "what" not in names:
            blocks.append(block)
            continue
        at = names.index("what")
        added = [Column("gain_pct", "gain", "whole %")]
        added += [Column("gain_of", "of"), Column("saved_ns", "saves", "ns")] * has_bases
        columns = (*block.columns[:at], *added, *block.columns[at:])
        rows = [block.rows[n] for n in block.by_weight]
        saved = [(gains.get(str(row[0])) or (None, None, None))[: len(added)] for row in rows]
        ranked = tuple((*row[:at], *cells, *row[at:]) for row, cells in zip(rows, saved, strict=True))
        blocks.append(replace(block, columns=columns, rows=ranked, by_weight=tuple(range(len(ranked)))))
        blocks.append(Note("left-out", f"{_GAIN}{_SAVES * has_bases}", tone="aside"))
    return blocks


def _with_finding_of_headline_first(blocks: list[Block], summary: Summary) -> list[Block]:
    """The blocks, of the findings first that which the headline is made of: it stays where others have no room."""
    headline = find_headline(blocks)
    hits = [hit for case_hits in summary.hits.values() for hit in case_hits]
    named = {(hit.cause, hit.case) for hit in hits if hit.what and hit.what.partition(",")[0] in headline}
    first = next(
        (b for b in blocks if b.name == FAILED or (isinstance(b, Finding) and named & {(b.cause, c) for c in b.cases})),
        None,
    )
    if first is None or summary.doubts:  # whose place follows from the figure that they set aside
        return blocks
    return sorted(blocks, key=lambda block: isinstance(block, Finding) and block is not first)


def _gain_command(campaign: str, first: str, second: str) -> str:
    cases = shlex.join([first, second])
    return f"`nsw compare {campaign} {cases}` shows how much the second gains, and how certain that is"


def _commands_for_cases(campaign: str, summary: Summary, blocks: Iterable[Block]) -> str | None:
    """The commands that show where the time of the slowest case goes, unless a finding does, and what a rival gains."""
    slowest, rivals = slowest_case(summary), best_two_cases(summary)
    proven = {case for block in blocks if isinstance(block, Finding) and block.shown == "always"
              for case in block.cases[:1]}  # fmt: skip
    commands = []
    if slowest and slowest.id not in proven:
        command = f"nsw summarize {campaign} --case {shlex.quote(slowest.id)}"
        commands.append(f"`{command}` shows where the time of the slowest case goes")
    if len(summary.cases) == 2 and not summary.context:
        rivals = rivals or summary.cases
    if rivals:
        gain = _gain_command(campaign, *(case.id for case in rivals))
        commands = [*commands, gain] if len(summary.cases) > 2 else [gain]
    return "\n".join(commands) or None


def _command_for_case(campaign: str, summary: Summary, drawable_cases: Collection[str]) -> str | None:
    """The command that shows more of the only case: what its cure gained, an iteration, else its counters."""
    for case in summary.cases:
        for hit in reversed(summary.hits.get(case.id, ())):
            if hit.cured_case is not None:
                return _gain_command(campaign, hit.case, hit.cured_case)
        name = shlex.quote(case.id)
        if case.id in drawable_cases:
            return f"`nsw report {campaign} --timeline {name}` draws an iteration"
        if case.kernels:
            return f"`nsw summarize {campaign} --case {name} --table kernels --json` has every counter"
    return None


def _reread_command(campaign: str, finding: Finding, *, reports: Reports) -> str | None:
    """The command that measures what old tables lack, where it can."""
    return f"nsw reread {campaign}" if finding.cause == "gaps-unmeasured" and reports == "readable" else None


def _only_case_command(campaign: str, finding: Finding, *, reports: Reports) -> str | None:
    """The command that prints the rows behind a sentence on the only case, or measures what old tables lack."""
    if reread := _reread_command(campaign, finding, reports=reports):
        return reread
    proof = next((proof for proof in finding.evidence if proof.cases), None)
    if proof is None:
        return None
    cases = "".join(f" --case {shlex.quote(case)}" for case in proof.cases[:_PROVING])
    return f"nsw summarize {campaign}{cases} --table {proof.table}"


def _evidence_command(campaign: str, finding: Finding, *, selected: str, reports: Reports) -> str | None:
    """The command that shows the cases which a sentence is about; of those that are only alike, the first.

    Of what is selected already, and of a sum of times, it prints the table with these numbers.
    """
    if reread := _reread_command(campaign, finding, reports=reports):
        return reread
    cases = finding.cases[:1] if finding.cause else finding.cases[:_PROVING]
    chosen = "".join(f" --case {shlex.quote(case)}" for case in cases)
    if finding.name == "lost in scaling":
        return f"nsw summarize {campaign}{chosen} --table scaling"
    if chosen == selected:
        return _only_case_command(campaign, finding, reports=reports)
    return f"nsw summarize {campaign}{chosen}" if cases else None


def _whole_table_command(chosen: str, block: Table) -> str:
    """The command that prints every row of a table that is cut: of one case its own table."""
    cases = {case for proof in block.evidence for case in proof.cases}
    whole = f"--table {block.evidence[0].table}" if block.omitted and len(cases) == 1 else "--full"
    return f"nsw summarize {chosen} {whole}"


def show_first_screen(
    out: Console, blocks: Iterable[Block], next_command: str | None = None, *,
    proof: Callable[[Finding], str | None] | None = None, last_line: str | None = None,
    rows_command: Callable[[Table], str | None] | None = None, below: Sequence[str] = (), rows_first: bool = False,
) -> None:  # fmt: skip
    """Print headline, table and notes, and as many findings as fit on 24 lines or the terminal, the weightiest first.

    A terminal keeps the headline in sight: it gets the first finding and some of the table in any case, and what else
    fits. Elsewhere the first three findings are printed. What has no room goes with its number; `--full` has all notes.

    Args:
        out: Where to.
        blocks: The answer.
        next_command: Below it: the command that shows more.
        proof: The command that proves a finding, which stands below it.
        last_line: Below that.
        rows_command: The command that prints every row of a table.
        below: What the caller prints below it.
        rows_first: Whether all rows of a table of cases beside each other go before asides, on a terminal.
    """
    room = max(_LINES, out.height) - 1 if out.is_terminal else _LINES  # less the line of the prompt
    first_blocks = [*_without_hidden_legends(out, (block for block in blocks if block.shown == "always"))]
    findings = [block for block in first_blocks if isinstance(block, Finding)]
    around = [block for block in first_blocks if not isinstance(block, Finding | Table)]
    printed = {id(block): _render_block(out, block) for block in around}
    sentences = []
    for finding in findings[:_FINDINGS]:
        command = proof(finding) if proof else None
        text = _wrap(out, f"* {finding.brief or finding.text}")
        sentences.append((text, _wrap(out, f"  `{command}`") if command else ""))
    more = _with_count_left(next_command, len(findings)) if next_command else None
    lines = sum(_count_printed_lines(out, text) for text in printed.values())
    lines += sum(_count_terminal_lines(out, text) for text in (more, last_line, *below) if text)
    first = _count_terminal_lines(out, sentences[0][0]) if sentences else 0  # rows go before the command below it
    tables = [block for block in first_blocks if isinstance(block, Table)]
    rows_first = rows_first and out.is_terminal and any(table.by_weight for table in tables)
    if out.is_terminal:
        row_counts = [len(t.rows) if rows_first else max(_FEWEST, _rows_of_most_time(t)) for t in tables]
        least = sum(_limit_table_lines(out, t, 0, "", n)[1] for t, n in zip(tables, row_counts, strict=True))
        asides = [b for b in around if isinstance(b, Note) and b.tone == "aside" and b.name not in BASES]
        for aside in reversed(asides):
            if lines + least + first > room:
                lines -= _count_printed_lines(out, printed.pop(id(aside)))
        if last_line and lines + least + first > room:
            lines -= _count_terminal_lines(out, last_line)
            last_line = None
    for table in tables:
        whole = rows_command(table) if rows_command else None
        fewest = _FEWEST_ON_TERMINAL if out.is_terminal else _FEWEST
        printed[id(table)], count = _limit_table_lines(out, table, room - lines - first, whole, fewest)
        lines += count
    for block in first_blocks:
        out.file.write(printed.get(id(block), ""))
    left, least_findings = len(findings), 1 if out.is_terminal else _LEAST_FINDINGS
    for at, (text, command) in enumerate(sentences):
        lines += _count_terminal_lines(out, text)
        command_lines = _count_terminal_lines(out, command) if command else 0
        if lines + command_lines > room and at >= least_findings:
            break
        out.print(text, soft_wrap=True)
        if command and (lines + command_lines <= room or not out.is_terminal):
            out.print(command, style="dim", soft_wrap=True)
            lines += command_lines
        left -= 1
    if next_command:
        out.print(_wrap(out, _with_count_left(next_command, left)), soft_wrap=True)
    if last_line:
        out.print(_wrap(out, last_line), soft_wrap=True)


def _with_count_left(next_command: str, left: int) -> str:
    """The line below a screen, with the number of findings that had no room."""
    count = left if next_command.endswith("findings") else plural(left, "finding")
    return f"{next_command} ({count} more)" if left else next_command


def _count_terminal_lines(out: Console, text: str) -> int:
    """How many lines of a terminal a text takes: commands are not broken, and the terminal breaks them."""
    return sum(max(1, -(-cell_len(line) // out.width)) for line in _wrap(out, text).split("\n"))


def _count_printed_lines(out: Console, text: str) -> int:
    """How many lines of a terminal a block takes that is printed as it is: a command may have several."""
    return sum(max(1, -(-cell_len(_STYLE.sub("", line)) // out.width)) for line in text.split("\n")[:-1])


def _limit_table_lines(out: Console, block: Table, lines: int, command: str | None, fewest: int) -> tuple[str, int]:
    """A table of at most so many lines, and its lines: its last rows go, and their number is printed with the command.

    Of shares that add up downwards the last row, idle time, stays; of cases beside each other the weightiest, and
    before one of them goes, all say what is wrong in few words, and columns go instead of taking lines.
    """
    if low := bool(block.by_weight) and _render_block(out, block).count("\n") > lines:
        block = _with_short_rows(block)
    shares = [at for at, column in enumerate(block.columns) if column.name in block.whole]
    printed = column_texts(block)  # as all rows together are rounded
    all_rows = [
        tuple(printed[n][row] if n in shares else cell for n, cell in enumerate(cells))
        for row, cells in enumerate(block.rows)
    ]
    last = all_rows[-1:] if len(shares) == 1 else []
    fewest = max(fewest, 1 + len(last))
    weightiest = [all_rows[at] for at in block.by_weight] or all_rows
    rows = len(all_rows)
    while True:
        omitted = len(all_rows) - rows
        kept = [*weightiest[: rows - len(last)], *last] if omitted else all_rows
        text = _render_block(out, replace(block, rows=tuple(kept), whole=()), low=low)
        printed_lines = text.count("\n")
        if left := omitted + block.omitted:
            note = f"({plural(left, 'row')} more{f': `{command}`' if command else ''})"
            text += _render_block(out, Note("rows", note))
            printed_lines += _count_terminal_lines(out, note)
        over = printed_lines - lines
        if over <= 0 or rows <= fewest:
            return text, printed_lines
        rows = max(fewest, rows - max(1, over * rows // printed_lines))  # a row may have several lines


def _rows_of_most_time(block: Table) -> int:
    """How many of the first rows make up most of the time, with the last, of a table of shares that add up downwards.

    0 of another table.
    """
    if len(block.whole) != 1:
        return 0
    column = [column.name for column in block.columns].index(block.whole[0])
    *shares, last = (float(row[column] or 0.0) for row in block.rows)  # type: ignore[arg-type]  # they are numbers
    sums = accumulate(shares, initial=last)
    return next((n + 1 for n, total in enumerate(sums) if total >= _MOST_TIME_PCT), len(block.rows))


def _with_short_rows(block: Table) -> Table:
    """A table of cases beside each other with the first words of what is wrong; what to do goes last."""
    names = [column.name for column in block.columns]
    rows = (
        tuple(str(cell).partition(",")[0] if name == "what" else cell for name, cell in zip(names, row, strict=True))
        for row in block.rows
    )
    return replace(block, rows=tuple(rows), least=(*block.least, *(name for name in names if name == "do")))


def _render_block(out: Console, block: Block, *, low: bool = False) -> str:
    """The text that a block prints; of a table on a low terminal with a line for each row."""
    with out.capture() as printed:
        if isinstance(block, Table) and low:
            _print_table(out, block, low=True)
        else:
            show_block(out, block)
    return printed.get() if out.is_terminal else strip_padding(printed.get())


def show_counters_behind_findings(out: Console, kernels: Mapping[str | None, Sequence[KernelRow]]) -> None:
    """Print the counters that findings about kernels follow from; by case, or by report, None where it is the only."""
    show_blocks(
        out, (block for case, rows in kernels.items() for block in counters_behind_findings(case, rows)), "always"
    )


def summary_markdown(summary: Summary) -> str:
    """The summary in full as Markdown."""
    return as_markdown(f"{summary.campaign} on site {summary.site}", answer_blocks(summary))


def summary_data(summary: Summary) -> dict[str, Any]:
    """The summary as JSON data, unrounded: dataclasses of the analysis as they are, and its blocks one by one."""
    void = cases_with_void_ratio(summary.variants, summary.by_id)
    blocks = answer_blocks(summary)  # which raises here what analyses of others do
    return {
        "campaign": summary.campaign,
        "site": summary.site,
        "note": summary.note,
        "headline": headline_of(summary),
        "cover": summary.cover,
        "scaling": summary.curve,
        "compare": [replace(v, ratio=None) if v.case_id in void else v for v in summary.variants],
        "model": list(summary.model),
        "model_flops": list(summary.model_flops),
        "findings": findings_data(summary),
        "cases": [replace(case, spent=time_without_profiler(case)) for case in summary.cases],
        "outliers": list(summary.outliers),
        "missing": [clean_line(m) for m in summary.missing],
        "blocks": map(block_data, blocks),
    }
