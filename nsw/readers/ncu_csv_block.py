"""One block of lines of a details page, parsed by Arrow: repeated strings as codes, values as numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from nsw.readers.ncu_csv_page import OWNER_COLUMNS
from nsw.readers.ncu_values import Marks, Parser, is_misplaced, whole
from nsw.readers.quantities import number

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from nsw.readers.ncu_csv_page import Page

Numbers: TypeAlias = "np.ndarray[Any, Any]"
Coded: TypeAlias = "tuple[Numbers, list[str | None]]"  # a code for each row; what each code stands for

# Numbers that Arrow converts; all else goes through ncu_values.Parser, each different text once.
_DIGITS: Final = 15
_SIMPLE: Final = rf"^[+-]?([0-9]{{1,3}}(,[0-9]{{3}}){{0,4}}|[0-9]{{1,{_DIGITS}}})(\.[0-9]{{1,{_DIGITS}}})?$"
_NOTHING: Final = r"[^\s\S]"
_WORDS: Final = {
    "section": "Section Name", "metric": "Metric Name", "description": "Body Item Label", "unit": "Metric Unit",
}  # fmt: skip


class OddFileError(Exception):
    """The file is not as regular as Arrow's path needs; the exact path reads it."""


@dataclass(slots=True)
class Block:
    """Rows of metrics, with launches as runs of rows.

    `starts` are the rows at which another launch begins, `owners` the cells of `OWNER_COLUMNS` there;
    `odd` holds the lines that are no metric rows, each with the number of lines before it.
    """

    rows: int
    lines: int
    starts: Numbers
    owners: list[dict[str, str | None]]
    words: dict[str, Coded]
    odd: list[tuple[int, str]]
    printed: Any  # pyarrow.Array of strings, until `convert`
    marks: Marks = field(default_factory=Marks)
    numbers: Any = None
    halves: Any = None
    shown: Coded | None = None

    def texts(self, most: int) -> list[str]:
        """The first values as printed."""
        return [str(v) for v in self.printed.slice(0, most).to_pylist()]

    def convert(self, marks: Marks) -> None:
        """Turn the printed values into numbers, half-widths and texts; NaN stands for null."""
        import pyarrow as pa
        import pyarrow.compute as pc

        self.marks = marks
        values, self.printed = self.printed, None
        simple = pc.match_substring_regex(values, _SIMPLE if marks.decimal == "." else _NOTHING)
        plain = pc.replace_substring(pc.if_else(simple, values, "nan"), ",", "")
        self.numbers = pc.cast(plain, pa.float64()).to_numpy(zero_copy_only=False).copy()
        self.halves = _half_widths(plain)
        self.shown = None
        others = pc.invert(simple)
        if pc.any(others).as_py():
            self._convert_others(values, others, Parser(marks))

    def _convert_others(self, values: pa.Array, others: pa.Array, parse: Parser) -> None:
        import numpy as np
        import pyarrow as pa

        where = others.to_numpy(zero_copy_only=False).nonzero()[0]
        coded = values.take(pa.array(where)).dictionary_encode()
        found = [parse(t) for t in _words(coded.dictionary)]
        codes = coded.indices.to_numpy(zero_copy_only=False)
        nan = float("nan")
        self.numbers[where] = np.array([nan if v.number is None else v.number for v in found])[codes]
        self.halves[where] = np.array([nan if v.half is None else v.half for v in found])[codes]
        if any(v.text for v in found):
            place = np.full(self.rows, -1, dtype=np.int32)
            place[where] = codes
            self.shown = place, [v.text for v in found]


def _half_widths(plain: pa.Array) -> Numbers:
    """Half the last digit's width of plain numbers; NaN for whole ones."""
    import numpy as np
    import pyarrow.compute as pc

    point = pc.find_substring(plain, ".").to_numpy(zero_copy_only=False)
    length = pc.binary_length(plain).to_numpy(zero_copy_only=False)
    decimals = np.where(point < 0, 0, length - point - 1)
    found = [number("0." + "0" * n) for n in range(1, _DIGITS + 1)]
    return np.array([float("nan"), *(q.pm for q in found if q)], dtype=float)[decimals]


def parse_block(data: bytes, page: Page, width: int) -> Block:
    """Parse whole lines.

    Raises:
        OddFileError: A field spans lines, or a row fits the header only by its number of fields.
        pyarrow.ArrowInvalid: The lines are no CSV or no UTF-8.
    """
    if b"\x1b" in data or (b"\r" in data and data.count(b"\r") != data.count(b"\r\n")):
        raise OddFileError
    data, torn = _less_torn_row(data)
    table, refused = _parse(data, _column_names(page, width))
    lines = _count(data, b"\n")
    if table.num_rows + len(refused) != lines and table.num_rows + len(refused) + _blank(data) != lines:
        raise OddFileError
    # Arrow forgives a quote too many or too few; the exact path does not
    quotes = _count(data, b'"') - sum(text.count('"') for text in refused)
    if quotes not in (2 * width * table.num_rows, 2 * (width - 1) * table.num_rows):
        raise OddFileError
    coded = {n: _codes(table[n]) for n in table.column_names if n != "Metric Value"}
    _check(coded, page)
    starts = _starts(coded)
    return Block(
        rows=table.num_rows,
        lines=lines + bool(torn),
        starts=starts,
        owners=_owners(coded, starts),
        words={ours: coded[theirs] for ours, theirs in _WORDS.items() if theirs in coded},
        odd=[*_located(refused, data, page), *([(lines, torn)] if torn else [])],
        printed=_one(table["Metric Value"]),
    )


def _column_names(page: Page, width: int) -> list[str]:
    names = list(page.header[:width])
    if len(names) < width or len(set(names)) < width or "ID" not in names:
        raise OddFileError
    return names


def _parse(data: bytes, names: list[str]) -> tuple[pa.Table, list[str]]:
    """The rows of this many fields, and the text of all other lines."""
    import pyarrow as pa
    import pyarrow.csv as pacsv

    refused: list[str] = []

    def refuse(row: Any) -> str:
        refused.append(row.text)
        return "skip"

    types: dict[str, Any] = dict.fromkeys(names, pa.dictionary(pa.int32(), pa.string()))
    table = pacsv.read_csv(
        pa.BufferReader(data),
        pacsv.ReadOptions(column_names=names, use_threads=False, block_size=len(data) + 1),
        pacsv.ParseOptions(invalid_row_handler=refuse),
        pacsv.ConvertOptions(column_types=types | {"Metric Value": pa.string()}, strings_can_be_null=False),
    )
    return table, refused


def _less_torn_row(data: bytes) -> tuple[bytes, str]:
    """The data with a line end at its end, and the last line where the file was cut within a field."""
    if data.endswith(b"\n"):
        return data, ""
    last = data.rfind(b"\n") + 1
    if data.count(b'"', last) % 2:
        return data[:last], data[last:].decode("utf-8", errors="replace")
    return data + b"\n", ""


def _count(data: bytes, byte: bytes) -> int:
    """How often a byte stands in the data; of one that is as frequent as a quote, sooner than `bytes.count`."""
    import numpy as np

    return int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8) == byte[0]))


def _words(dictionary: pa.Array) -> list[str]:
    """Strings as Python's; several times faster than `to_pylist`."""
    words: list[str] = dictionary.to_numpy(zero_copy_only=False).tolist()
    return words


def _blank(data: bytes) -> int:
    """How many lines are empty; Arrow passes over them."""
    return sum(not line.rstrip(b"\r") for line in data.split(b"\n")) - 1


def _one(column: pa.ChunkedArray) -> pa.Array:
    import pyarrow as pa

    if column.num_chunks == 1:
        return column.chunk(0)
    if column.num_chunks:
        raise OddFileError  # one block of data makes one chunk
    return pa.array([], type=column.type)


def _codes(column: pa.ChunkedArray) -> Coded:
    """A column of dictionary strings as codes and the strings, trimmed; None where empty."""
    chunk = _one(column)
    words = [w.strip() or None for w in _words(chunk.dictionary)]
    return chunk.indices.to_numpy(zero_copy_only=False), words


def _check(coded: dict[str, Coded], page: Page) -> None:
    """Refuse what only the exact path can judge: rows of no metric, ids that are no numbers."""
    ids, pids = coded["ID"][1], coded.get("Process ID", (None, []))[1]
    if any(whole(i) is None for i in ids) or any(p is not None and whole(p) is None for p in pids):
        raise OddFileError
    names, units = coded["Metric Name"][1], coded["Metric Unit"][1]
    if (
        None in names
        or any(is_misplaced(name or "", None) for name in names)
        or any(is_misplaced("", u) for u in units)
    ):
        raise OddFileError
    # beyond the value only the empty field after a trailing comma
    beyond = [n for n in page.header[page.least :] if n in coded]
    if any(any(coded[n][1]) for n in beyond):
        raise OddFileError


def _starts(coded: dict[str, Coded]) -> Numbers:
    """The rows at which another launch begins."""
    import numpy as np

    keys = [coded[n][0] for n in ("ID", "Process ID") if n in coded]
    change = np.zeros(len(keys[0]), dtype=bool)
    change[:1] = True
    for codes in keys:
        change[1:] |= codes[1:] != codes[:-1]
    return change.nonzero()[0]


def _owners(coded: dict[str, Coded], starts: Numbers) -> list[dict[str, str | None]]:
    """The cells that tell of the launch, at the first row of each run."""
    columns = []
    for name in OWNER_COLUMNS:
        codes, words = coded.get(name, (None, []))
        columns.append([None] * len(starts) if codes is None else [words[c] for c in codes[starts].tolist()])
    return [dict(zip(OWNER_COLUMNS, cells, strict=True)) for cells in zip(*columns, strict=True)]


def _located(refused: list[str], data: bytes, page: Page) -> list[tuple[int, str]]:
    """Each refused line with the number of lines before it; exact for all but rows of rules."""
    located, at, before = [], 0, 0
    for text in refused:
        if text.count('","') != len(page.header) - 1:  # nobody asks where a whole row stands
            found = data.find(text.encode(), at)
            before += data.count(b"\n", at, max(found, at))
            at = max(found, at)
        located.append((before, text))
    return located
