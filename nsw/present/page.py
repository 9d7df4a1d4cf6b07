"""An answer as one HTML file: whole without JavaScript, and with it sorted, filtered and copied.

It opens no connection. Texts are escaped by Jinja, and in the data as JSON escapes characters; the policy in its head
lets only the script run that nsw ships, by its hash, so that a name which is markup stays a name.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Final

from nsw.analysis.blocks import NUMBERS, Block, Evidence, Finding, HeatMap, Lanes, Note, Scatter, Table
from nsw.analysis.first_screen import HEADLINE
from nsw.analysis.groups import group_by
from nsw.analysis.sides import ORDER
from nsw.present.emit import strict_json
from nsw.present.plots import svg_of
from nsw.present.plots_of_planes import boxes_of, places_of
from nsw.present.summary_view import column_texts as texts_of
from nsw.present.svg import column_of
from nsw.present.untrusted_text import clean_line
from nsw.quantities import in_one_unit
from nsw.resources import shipped_text
from nsw.tables import TABLES
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from jinja2 import Environment
    from markupsafe import Markup


_FIRST_ROWS: Final = 20  # rows of a table without JavaScript, and on paper
_FOLDED: Final = 5  # rows on paper of a table behind the answer; both numbers are in page.js and page.css, too
_MOST_OF_CASES: Final = 5 << 20  # characters of the sections of single cases
_WIDE: Final = 28  # characters of a text from which it may break, here and in page.js
_LINKED_CASES: Final = 4  # cases of a sentence that have a link of their own
_ABOVE: Final = frozenset({"note", "sides"})  # what campaigns say of themselves: that they were recorded
_ANSWER: Final = "answer"  # the table that sums up all others
_FIRST: Final = frozenset({_ANSWER, "comparison", "gate"})  # the tables of first screens
_TEMPLATE: Final = "page.html.j2"
_SCRIPTS: Final = ("page.js", "plots.js", "timeline.js")  # each uses those before it
_CODE: Final = re.compile("`([^`]+)`")
_SPARE: Final = re.compile(r"[^\w-]")
_ESCAPES: Final = {ord("<"): r"\u003c", ord(">"): r"\u003e", ord("&"): r"\u0026"}


@dataclass(frozen=True, slots=True)
class EvidenceRows:
    """The rows that an answer was made of.

    Attributes:
        name: Of the table, as `nsw summarize --table` takes it.
        rows: They, of each case the weightiest first.
        command: What prints all of them.
        count: How many there are, where only the first are given.
    """

    max_rows: ClassVar[int] = 20_000  # that a page holds
    name: str
    rows: Sequence[Mapping[str, Any]]
    command: str
    count: int | None = None


@dataclass(slots=True)
class _Column:
    title: str
    hint: str
    is_number: bool
    unit: str = ""  # which neither the title nor the cells have


@dataclass(slots=True)
class _Sheet:
    """A table of the page.

    Attributes:
        name: The block's.
        anchor: Its id.
        title: Above it.
        source: The tables that its numbers are from.
        columns: Its columns.
        shown: The texts of its first rows.
        data: The whole for the script, as JSON: texts, and the numbers behind them.
        count: Its rows.
        left: What the file lacks of it.
        picture: What is drawn of it.
    """

    name: str
    anchor: str
    title: str
    source: str
    columns: list[_Column]
    shown: list[list[str]]
    data: str
    count: int
    left: str = ""
    picture: str | None = None
    is_cards: bool = False  # a row is a card where the window is narrow


@dataclass(slots=True)
class _Section:
    """What is said of one case."""

    anchor: str
    heading: str
    notes: list[Note]
    sheets: list[_Sheet]


@dataclass(frozen=True, slots=True)
class _Proof:
    """Links to what proves a sentence.

    Attributes:
        table: The name of the table that proves it.
        anchor: The place of its rows; None: the page has none of them.
        cases: Name of each case, and the place of its tables.
        timelines: Case of each timeline that the page has, and its place.
        unlinked: How many further cases have tables on the page.
        names: All its cases, as JSON.
    """

    table: str
    anchor: str | None
    cases: list[tuple[str, str]]
    timelines: list[tuple[str, str]]
    unlinked: int
    names: str


def page(
    title: str,
    blocks: Iterable[Block],
    *,
    behind: Sequence[EvidenceRows] = (),
    conditions: Sequence[tuple[str, Mapping[str, str]]] = (),
    commands: Sequence[str] = (),
) -> str:
    """The text of the page.

    Args:
        title: What the answer is of.
        blocks: The whole answer.
        behind: The tables that its blocks name as their evidence.
        conditions: Whose, and what it was measured on and with; of a comparison both sides'.
        commands: What repeats it.
    """
    by_case = group_by(blocks, lambda block: block.case)
    overall = by_case.pop(None, [])
    cases = {case: case_blocks for case, case_blocks in by_case.items() if case is not None}
    findings = [block for block in overall if isinstance(block, Finding)]
    above, headline, below = _split_at_headline([block for block in overall if isinstance(block, Note)])
    anchors = _Anchors()
    sections, left = _case_sections(cases, findings, anchors)
    sheets = _table_sheets(overall, "b", anchors)
    sources = [_evidence_sheet(rows, anchors) for rows in behind if rows.rows]
    every = (*sheets, *(sheet for section in sections for sheet in section.sheets), *sources)
    island = ", ".join(f"{strict_json(sheet.anchor)}: {sheet.data}" for sheet in every)
    island = f"{{{island}}}".translate(_ESCAPES)  # JSON that no HTML ends
    script = "\n".join(("(() => {", '"use strict";', *map(_read_page_file, _SCRIPTS), "})();"))
    style = _read_page_file("page.css")
    policy = (
        f"default-src 'none'; script-src '{_csp_hash(script)}'; style-src '{_csp_hash(style)}'; img-src blob:;"
        " base-uri 'none'; form-action 'none'"
    )
    return _template_environment().get_template(_TEMPLATE).render(
        title=title, policy=policy, script=_as_markup(script), style=_as_markup(style), headline=headline or title,
        above=above, notes=below,
        first=[sheet for sheet in sheets if sheet.name in _FIRST],
        pictures=[sheet for sheet in sheets if sheet.picture],
        sentences=[(finding, list(anchors.proofs(finding.evidence))) for finding in findings],
        sheets=[sheet for sheet in sheets if sheet.name not in _FIRST],
        sections=sections, left=left, sources=sources, commands=commands,
        sides=[name for name, _ in conditions], conditions=_conditions_side_by_side([side for _, side in conditions]),
        island=_as_markup(island), wide=_WIDE, shown=_FIRST_ROWS, folded=_FOLDED,
    )  # fmt: skip


def _split_at_headline(notes: Iterable[Note]) -> tuple[list[Note], str | None, list[Note]]:
    """The notes above the headline, which readers need first; the headline; and the notes below it; each text once.

    Of a kind of which the first screen names the first alone, only the whole list counts.
    """
    all_notes = list(notes)
    full_names = {note.name for note in all_notes if note.shown == "full"}
    once = list(
        {n.text: n for n in all_notes if n.shown == "full" or n.name not in full_names or n.name == HEADLINE}.values()
    )
    at = next((at for at, note in enumerate(once) if note.name == HEADLINE), None)
    before = once[:at] if at is not None else []
    above = [*before, *(note for note in once if note.name in _ABOVE and note not in before)]
    below = [note for note in once if note not in above and note.name != HEADLINE]
    return above, None if at is None else once[at].text, below


# --- tables ---------------------------------------------------------------------------------------------------------


class _Anchors:
    """Where the page proves sentences. Of several places the first added counts: a case's own tables before others."""

    def __init__(self) -> None:
        self.tables: dict[str, str] = {}  # rows behind the answer, by table
        self.sections: dict[str, str] = {}  # by case
        self.timelines: dict[str, str] = {}  # by case
        self._answer_rows: dict[tuple[str, str], str] = {}  # by table and case
        self._rows_behind: dict[tuple[str, str], str] = {}

    def add(self, table: str, case: str, anchor: str, *, behind: bool = False) -> None:
        (self._rows_behind if behind else self._answer_rows).setdefault((table, case), anchor)

    def proofs(self, evidence: Iterable[Evidence]) -> Iterator[_Proof]:
        """Links to the tables and timelines of cases; of many cases to those of the first."""
        for proof in evidence:
            keys = [(proof.table, case) for case in proof.cases]
            places = [self._answer_rows.get(k) or self.sections.get(k[1]) or self._rows_behind.get(k) for k in keys]
            linked = [(case, place) for case, place in zip(proof.cases, places, strict=True) if place]
            yield _Proof(
                proof.table,
                self.tables.get(proof.table),
                linked[:_LINKED_CASES],
                [(case, self.timelines[case]) for case in proof.cases if case in self.timelines],
                len(linked[_LINKED_CASES:]),
                strict_json(proof.cases),
            )


def _table_sheets(blocks: Iterable[Block], stem: str, anchors: _Anchors) -> list[_Sheet]:
    """The sheets of the blocks that are tables; a block of data alone has one only where it has a plot."""
    sheets = []
    for at, block in enumerate(blocks):
        if isinstance(block, Table):
            picture = svg_of(block)
            if picture or block.shown != "data":
                sheets.append(_table_sheet(block, f"{stem}{at}", picture, anchors))
    return sheets


def _table_sheet(block: Table, anchor: str, picture: str | None, anchors: _Anchors) -> _Sheet:
    """A block as a table of the page."""
    columns, data, texts = [], [], []
    for at, (column, column_texts) in enumerate(zip(block.columns, texts_of(block), strict=True)):
        head, in_unit = in_one_unit(column.title, column_texts)
        text = [clean_line(cell) for cell in in_unit]
        is_number = column.unit in NUMBERS
        columns.append(
            _Column(clean_line(head), f"{column.name}, {column.unit}" if is_number else column.name, is_number)
        )
        texts.append(text)
        # a cell is sorted by its number: of a pair by its first one
        cells = (row[at] for row in block.rows)
        pairs = [cell if isinstance(cell, tuple) else (cell,) for cell in cells]
        numbers = [next((x for x in pair if isinstance(x, int | float)), None) for pair in pairs] if is_number else None
        data.append({"x": _pack_texts(text)} | ({"v": numbers} if numbers else {}))
    for proof in block.evidence:
        _add_anchors(block, proof, anchor, anchors)
    source = ", ".join(dict.fromkeys(proof.table for proof in block.evidence))
    first_rows = [list(row) for row in islice(zip(*texts, strict=True), _FIRST_ROWS)]
    count = len(block.rows)
    plot_data = _plot_data(block) if picture else {}
    return _Sheet(
        block.name, anchor, block.title, source, columns, first_rows, _table_json(columns, data, count, **plot_data),
        count, picture=picture, is_cards=block.name in _FIRST and block.best is None,
    )  # fmt: skip


def _plot_data(block: Table) -> dict[str, object]:
    """What the script needs of a plot beside its table: the boxes of a timeline, the columns that choose points."""
    if isinstance(block, Lanes) and block.unmerged:
        return {"boxes": boxes_of(block)}
    if isinstance(block, Scatter):
        series, size, label = ([column_of(block, name) for name in names]
                               for names in (block.series, block.size, (block.label,)))  # fmt: skip
        return {"points": {"series": series, "size": size, "label": label}}
    if isinstance(block, HeatMap) and block.others:
        return {"values": [[column_of(block, name), places_of(block, name)] for name in (block.value, *block.others)]}
    return {}


def _add_anchors(block: Table, proof: Evidence, anchor: str, anchors: _Anchors) -> None:
    if block.name == _ANSWER or isinstance(block, HeatMap):
        return  # which sum up
    if isinstance(block, Lanes):
        anchors.timelines.update(dict.fromkeys(proof.cases, f"#{anchor}-plot"))
        return
    if block.case is not None:
        anchors.add(proof.table, block.case, f"#{anchor}")
        return
    cases = set(proof.cases)
    for at, row in enumerate(block.rows):
        for cell in row:
            if isinstance(cell, str) and cell in cases:
                anchors.add(proof.table, cell, f"#{anchor}-{at}" if at < _FIRST_ROWS else f"#{anchor}")
    if len(cases) == 1:  # no row names it: all are of it
        anchors.add(proof.table, proof.cases[0], f"#{anchor}")


def _evidence_sheet(behind: EvidenceRows, anchors: _Anchors) -> _Sheet:
    """A sheet of the rows behind the answer; of many rows the first of each case."""
    rows = _limit_rows(behind.rows)
    anchor = f"rows-{_SPARE.sub('-', behind.name)}"
    anchors.tables[behind.name] = f"#{anchor}"
    for at, row in enumerate(rows):
        if (case := row.get("case")) is not None:
            place = f"#{anchor}-{at}" if at < _FIRST_ROWS else f"#{anchor}"
            anchors.add(behind.name, str(case), place, behind=True)
    schema_columns = {column.name: column for column in TABLES[behind.name].columns} if behind.name in TABLES else {}
    columns, data, texts = [], [], []
    for name in dict.fromkeys(name for row in rows for name, value in row.items() if value is not None):
        if name.endswith("_pm"):  # the twin that says how a number was rounded
            continue
        values = [row.get(name) for row in rows]
        is_number = all(isinstance(value, int | float | None) and not isinstance(value, bool) for value in values)
        written = [] if is_number else ["-" if value is None else clean_line(value) for value in values]
        data.append({"v": values} if is_number else {"x": _pack_texts(written)})
        texts.append(written[:_FIRST_ROWS] or list(map(_format_as_page_js, values[:_FIRST_ROWS])))
        known = schema_columns.get(name)
        unit = known.unit if known and known.unit else ""
        hint = ", ".join(filter(None, (known.meaning, unit))) if known else clean_line(name)
        columns.append(_Column(clean_line(name), hint, is_number, unit))
    all_rows = behind.count or len(behind.rows)
    left = f"{len(rows):,} of {all_rows:,} rows are in this file, the first of each case; all: `{behind.command}`"
    return _Sheet(
        behind.name, anchor, behind.name, behind.name, columns, [list(row) for row in zip(*texts, strict=True)],
        _table_json(columns, data, len(rows)), len(rows),
        left=left if len(rows) < all_rows else "",
    )  # fmt: skip


def _limit_rows(rows: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """All rows, or the first ones of each case where there are too many."""
    if len(rows) <= EvidenceRows.max_rows:
        return rows
    cases = group_by(rows, lambda row: row.get("case"))
    each = max(1, EvidenceRows.max_rows // len(cases))
    return [row for case_rows in cases.values() for row in case_rows[:each]][: EvidenceRows.max_rows]


def _format_as_page_js(value: float | None) -> str:
    """A value as page.js writes it: whole numbers in groups, others with six digits."""
    if value is None or not math.isfinite(value):
        return "-"
    if float(value).is_integer():
        return f"{value:,.0f}"
    away = math.nextafter(value, math.copysign(math.inf, value))  # a five at the end is rounded up, as in JavaScript
    return f"{away:,.0f}" if abs(value) >= 1e5 else f"{away:.6g}".replace("e-0", "e-")


def _pack_texts(texts: Sequence[str]) -> Any:
    """Encode texts for the script: where they repeat, each distinct text once and an index for each cell."""
    words = {text: at for at, text in enumerate(dict.fromkeys(texts))}
    if len(words) * 2 > len(texts):
        return list(texts)
    return {"d": list(words), "i": [words[text] for text in texts]}


def _table_json(columns: Iterable[_Column], data: Sequence[Mapping[str, Any]], count: int, **plot_data: object) -> str:
    """What the script needs of a table: how many rows, the columns, the cells column by column, `about` its plot."""
    heads = [[column.title, column.hint, int(column.is_number)] for column in columns]
    return strict_json({"n": count, "c": heads, "d": data} | plot_data)


# --- cases ----------------------------------------------------------------------------------------------------------


def _case_sections(
    cases: Mapping[str, Sequence[Block]], findings: Iterable[Finding], anchors: _Anchors
) -> tuple[list[_Section], int]:
    """The sections of the cases, and how many were left out for lack of room; cases that findings name come first."""
    named_cases = [case for finding in findings for case in finding.cases if case in cases]
    sections_by_case: dict[str, _Section] = {}
    room = _MOST_OF_CASES
    for at, case in enumerate(dict.fromkeys((*named_cases, *cases))):
        if room < 0:
            break
        section = _case_section(case, cases[case], f"case-{at}", anchors)
        anchors.sections[case] = f"#{section.anchor}"
        sections_by_case[case] = section
        for sheet in section.sheets:
            cell_size = sum(len(cell) + len("<td></td>") for row in sheet.shown for cell in row)
            room -= cell_size + len(sheet.picture or "") + len(sheet.data)
    return [sections_by_case[case] for case in cases if case in sections_by_case], len(cases) - len(sections_by_case)


def _case_section(case: str, blocks: Sequence[Block], anchor: str, anchors: _Anchors) -> _Section:
    notes = [block for block in blocks if isinstance(block, Note)]
    heading = next((note for note in notes if note.tone == "heading"), None)
    other_notes = [note for note in notes if note is not heading]
    sheets = _table_sheets(blocks, f"{anchor}-", anchors)
    for proof in (proof for note in other_notes for proof in note.evidence):
        anchors.add(proof.table, case, f"#{anchor}")
    return _Section(anchor, heading.text if heading else case, other_notes, sheets)


# --- the rest of the page -------------------------------------------------------------------------------------------


def _conditions_side_by_side(conditions: Sequence[Mapping[str, str]]) -> list[tuple[str, list[str]]]:
    """A row for each condition: its name, and its value on each side."""
    names = dict.fromkeys(name for side in conditions for name in side)
    ordered = [name for name in ORDER if name in names]
    rows = [*ordered, *(name for name in names if name not in ORDER)]
    return [(clean_line(name), [side.get(name, "-") for side in conditions]) for name in rows]


def _csp_hash(text: str) -> str:
    """The hash of an inline script or style for the page's Content-Security-Policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _read_page_file(name: str) -> str:
    return shipped_text(f"present/page/{name}")


def _as_markup(text: str) -> Markup:
    """A text that is markup: of nsw's own files, of its pictures, or data that ends no element."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704


def _sentence_markup(text: str) -> Markup:
    """A sentence, with what is to be typed as code."""
    from markupsafe import Markup, escape

    pieces = _CODE.split(clean_line(text))  # every other one was between the marks
    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if at % 2 else escape(piece) for at, piece in enumerate(pieces)
    )


@cache
def _template_environment() -> Environment:
    from jinja2 import DictLoader, Environment, StrictUndefined

    environment = Environment(
        loader=DictLoader({_TEMPLATE: _read_page_file(_TEMPLATE)}), undefined=StrictUndefined, autoescape=True,
        # of every text only what steers nothing
        finalize=lambda cell: clean_line(cell) if isinstance(cell, str) and not hasattr(cell, "__html__") else cell,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters.update(said=_sentence_markup, markup=_as_markup, rows=partial(plural, word="row"))
    return environment
