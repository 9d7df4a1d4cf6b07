"""A piece of a details page as columns: repeated strings as codes, values as numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsw.readers.ncu.csv.find_plain_rows import Layout, Numbers, OddFileError, Piece, strings
from nsw.readers.ncu.csv.page import OWNER_COLUMNS, page_of, split
from nsw.readers.ncu.rules_and_problems import RULE_COLUMNS
from nsw.readers.ncu.values import Marks, Parser, half_widths, is_misplaced

if TYPE_CHECKING:
    from nsw.readers.ncu.results import Names

Coded: TypeAlias = "tuple[Numbers, list[str | None]]"  # a code for each row; what each code stands for

# Numbers that Arrow converts; all else goes through ncu_values.Parser, each different text once.
_SIMPLE: Final = r"^[+-]?([0-9]{1,3}(,[0-9]{3}){0,4}|[0-9]{1,15})(\.[0-9]{1,15})?$"
_NOTHING: Final = r"[^\s\S]"
NO_TEXT: Final = -1


@dataclass(slots=True)
class Values:
    """Printed values as numbers, half-widths (NaN: none), and the texts of those that have one."""

    numbers: Numbers
    halves: Numbers
    shown: Coded | None = None  # NO_TEXT: none


@dataclass(slots=True)
class Block:
    """The plain rows of a piece; a run is of one launch, and its cells are those of its first row.

    `odd` are the lines that are no plain rows, by their place in the piece.
    """

    lines: int
    run_lines: Numbers
    ids: Numbers
    pids: Numbers
    owners: dict[str, Coded]
    metric_lines: Numbers
    metric_runs: Numbers
    names: tuple[Numbers, list[Names]]
    printed: pa.StringArray
    rule_lines: Numbers
    rule_runs: Numbers
    rules: list[Coded]  # of RULE_COLUMNS, and the estimated speed-up as printed
    odd: list[tuple[int, str]]
    values: Values | None = field(default=None)


def block_of(data: bytes | bytearray, layout: Layout, marks: Marks | None = None) -> Block:
    """Parse whole lines; the values too, when it is known how numbers are written.

    Raises:
        OddFileError: A rule's name is blank.
    """
    piece = Piece(data, layout)
    codes, names = _names(piece)
    metrics, rules = piece.metrics, piece.rules
    plain = piece.plain
    run_lines, runs = _runs(piece, plain)
    block = Block(
        lines=len(plain),
        run_lines=run_lines,
        ids=piece.ids[run_lines],
        pids=piece.pids[run_lines],
        owners=_owners(piece, run_lines),
        metric_lines=metrics.lines,
        metric_runs=runs[metrics.lines],
        names=(codes, names),
        printed=strings(data, *metrics.cell(layout.value - layout.start)),
        rule_lines=rules.lines,
        rule_runs=runs[rules.lines],
        rules=_advice(piece),
        odd=[(i, piece.line(i)) for i in np.flatnonzero(~plain).tolist()],
    )
    if marks is not None:
        block.values = values_of(block.printed, marks)
    return block


def _runs(piece: Piece, plain: Numbers) -> tuple[Numbers, Numbers]:
    """The first lines of runs of rows of one launch, and for each plain line which run it is of."""
    lines = np.flatnonzero(plain)
    ids, pids = piece.ids[lines], piece.pids[lines]
    change = np.ones(len(lines), dtype=bool)
    change[1:] = (ids[1:] != ids[:-1]) | (pids[1:] != pids[:-1])
    if bool((np.diff(piece.told(lines)) != 0)[~change[1:]].any()):
        raise OddFileError  # rows of one id that do not tell the same of its launch
    runs = np.zeros(len(plain), dtype=np.int32)
    runs[lines] = np.cumsum(change) - 1
    return lines[change], runs


def _owners(piece: Piece, lines: Numbers) -> dict[str, Coded]:
    """What tells of the launch, besides its id and process, at the first row of each run."""
    at = piece.layout.page.at
    wanted = [(name, at[name]) for name in OWNER_COLUMNS[2:] if name in at]
    quoted = np.isin(lines, list(piece.heads))
    plain, others = np.flatnonzero(~quoted), np.flatnonzero(quoted)
    first = piece.first[lines[plain]]
    found: dict[str, Coded] = {}
    for name, column in wanted:
        begins, ends = piece.quotes[first + 2 * column] + 1, piece.quotes[first + 2 * column + 1]
        codes, words = _coded(strings(piece.data, begins, ends))
        every = np.empty(len(lines), dtype=np.int32)
        every[plain] = codes
        for i in others.tolist():
            words.append(piece.heads[int(lines[i])][column].strip() or None)
            every[i] = len(words) - 1
        found[name] = every, words
    return found


def _names(piece: Piece) -> tuple[Numbers, list[Names]]:
    """Section, metric, description and unit of each metric row; one without a name, or with a number as it, is odd."""
    layout = piece.layout
    last = layout.metric_fields - 2  # the field before the value
    spans = strings(piece.data, *piece.metrics.cells(0, last)).dictionary_encode()
    names: list[Names] = []
    wrong: list[int] = []
    for text in _words(spans.dictionary):
        cells = split(text, ",")
        assert cells is not None
        section, metric, label, unit = layout.page.named([""] * layout.start + cells)
        if not metric or is_misplaced(metric, unit) or page_of(text) is not None:
            wrong.append(len(names))
        names.append((section or None, metric, label or None, unit))
    codes = spans.indices.to_numpy()
    if wrong:
        odd = np.isin(codes, wrong)
        piece.drop_metrics(odd)
        codes = codes[~odd]
    return codes, names


def _advice(piece: Piece) -> list[Coded]:
    """What each row of a rule says: the cells of `Page.ruled`."""
    rules, at, start = piece.rules, piece.layout.page.at, piece.layout.start
    if not len(rules.lines):
        return []
    found = []
    for name in ("Section Name", "Rule Name", "Rule Type", "Rule Description",
                 "Estimated Speedup Type", "Estimated Speedup"):  # fmt: skip
        if name in at:
            found.append(_coded(strings(piece.data, *rules.cell(at[name] - start))))
        else:
            found.append((np.zeros(len(rules.lines), dtype=np.int32), [None]))
    if None in found[RULE_COLUMNS.index("rule")][1]:
        raise OddFileError
    return found


def _coded(cells: pa.StringArray) -> Coded:
    """Cells as codes and the different ones, trimmed; None where empty."""
    each = cells.dictionary_encode()
    return each.indices.to_numpy(), [w.strip() or None for w in _words(each.dictionary)]


def _words(dictionary: pa.Array) -> list[str]:
    """Strings as Python's; several times faster than `to_pylist`."""
    words: list[str] = dictionary.to_numpy(zero_copy_only=False).tolist()
    return words


def values_of(printed: pa.StringArray, marks: Marks) -> Values:
    """Turn printed values into numbers, half-widths and texts."""
    simple = pc.match_substring_regex(printed, _SIMPLE if marks.decimal == "." else _NOTHING)
    plain = pc.replace_substring(pc.if_else(simple, printed, "nan"), ",", "")
    numbers = pc.cast(plain, pa.float64()).to_numpy(zero_copy_only=False).copy()
    values = Values(numbers, _half_widths(plain))
    others = pc.invert(simple).to_numpy(zero_copy_only=False).nonzero()[0]
    if len(others):
        _convert(values, printed, others, Parser(marks))
    return values


def _convert(values: Values, printed: pa.StringArray, where: Numbers, parse: Parser) -> None:
    """Values that are no plain numbers, each different one once."""
    coded = printed.take(pa.array(where)).dictionary_encode()
    found = [parse(t) for t in _words(coded.dictionary)]
    codes = coded.indices.to_numpy()
    nan = float("nan")
    values.numbers[where] = np.array([nan if v.number is None else v.number for v in found])[codes]
    values.halves[where] = np.array([nan if v.half is None else v.half for v in found])[codes]
    texts = [v.text for v in found]
    if any(t is not None for t in texts):
        place = np.full(len(printed), NO_TEXT, dtype=np.int32)
        place[where] = np.array([NO_TEXT if t is None else i for i, t in enumerate(texts)])[codes]
        values.shown = place, texts


def _half_widths(plain: Any) -> Numbers:
    """Half the last digit's width of plain numbers; NaN for whole ones."""
    point = pc.find_substring(plain, ".").to_numpy(zero_copy_only=False)
    length = pc.binary_length(plain).to_numpy(zero_copy_only=False)
    decimals = np.where(point < 0, 0, length - point - 1)
    widths: Numbers = np.array(half_widths(), dtype=float)[decimals]  # of None: NaN
    return widths
