"""The details page of `ncu --csv` when it is large: blocks of whole lines, parsed and converted by Arrow.

The tables are the same as those of `ncu_csv.read_exactly`. Whatever could make them differ (a field over
several lines, two CSVs in one file, another encoding or quoting) makes `read` give None instead.
"""

from __future__ import annotations

import csv
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from nsw.readers.model import HEAD_BYTES, Report, Sample
from nsw.readers.ncu_csv_block import Block, Numbers, OddFileError, parse_block
from nsw.readers.ncu_csv_page import Page, owner_of, page_of, split
from nsw.readers.ncu_csv_rows import RULE_COLUMNS, LeftOut, warn_of_guess
from nsw.readers.ncu_messages import Messages
from nsw.readers.ncu_results import DEVICE_NAMES, DURATIONS, Results, dictionary, note_duration
from nsw.readers.ncu_values import EVIDENCE_VALUES, Marks, Parser, Value, decide_marks

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator
    from pathlib import Path

    import pyarrow as pa

    from nsw.readers.model import Options
    from nsw.tables.data import Row

_BLOCK: Final = 8 << 20  # bytes read at a time; each worker holds about three times as many
_WORKERS: Final = 2


def read(path: Path, options: Options) -> Report | None:
    """The report, or None when the file is odd and must be read row by row."""
    import pyarrow as pa

    try:
        return _read(path, options)
    except (OddFileError, pa.ArrowException, UnicodeError, csv.Error):
        return None


def _read(path: Path, options: Options) -> Report:
    if not Sample(path).encoding.startswith("utf-8"):
        raise OddFileError
    report = Report(str(path), tool="ncu", format="ncu-csv")
    with path.open("rb") as file:
        messages = Messages()
        page, width, line = _find_header(file, messages)
        gather = _Gather(messages, page)
        for block in _blocks(file, page, width):
            gather.add(block, line)
            line += block.lines
    gather.fill(report, options)
    return report


def _find_header(file: BinaryIO, messages: Messages) -> tuple[Page, int, int]:
    """The page, how many fields its metric rows have, and the number of the first line below the header."""
    number = 0
    while (raw := file.readline(HEAD_BYTES)) and file.tell() < HEAD_BYTES:
        number += 1
        line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        if "\r" in line or "\x1b" in line:
            break
        if (page := page_of(line)) is None:
            messages.see(line, number)
            continue
        if page.kind != "details" or not page.quoted or page.delimiter != "," or not line.startswith('"'):
            break
        if "Metric Unit" not in page.at:  # as ncu writes it there is one: this header is damaged
            break
        return page, _width(file, page), number + 1
    raise OddFileError


def _width(file: BinaryIO, page: Page) -> int:
    """How many fields the metric rows have: fewer than the header where it has columns for rules."""
    here = file.tell()
    lines = [file.readline(HEAD_BYTES).decode().rstrip("\r\n") for _ in range(200)]
    file.seek(here)
    sizes = [len(row) for line in lines if line.startswith('"') and page.fits(row := split(line, ",") or [])]
    if not sizes:
        raise OddFileError
    return min(sizes)


def _blocks(file: BinaryIO, page: Page, width: int) -> Iterator[Block]:
    """Parsed blocks in the order of the file; the decimal mark is decided from the first values."""
    pieces = _pieces(file)
    first: list[Block] = []
    values: list[str] = []
    while len(values) < EVIDENCE_VALUES and (piece := next(pieces, None)) is not None:
        first.append(parse_block(piece, page, width))
        values += first[-1].texts(EVIDENCE_VALUES - len(values))
    marks = decide_marks(values)
    for block in first:
        block.convert(marks)
        yield block
    with ThreadPoolExecutor(_WORKERS) as pool:
        running: deque[Future[Block]] = deque()
        for piece in pieces:
            running.append(pool.submit(_work, piece, page, width, marks))
            if len(running) > _WORKERS:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()


def _work(piece: bytes, page: Page, width: int, marks: Marks) -> Block:
    block = parse_block(piece, page, width)
    block.convert(marks)
    return block


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    """The file in pieces that end before a row: `"` and a digit at a line's begin are nothing else."""
    rest = b""
    while data := file.read(_BLOCK):
        data = rest + data
        cut = data.rfind(b'\n"')
        while cut >= 0 and not data[cut + 2 : cut + 3].isdigit():
            cut = data.rfind(b'\n"', 0, cut)
        if cut < 0 and len(data) > 4 * _BLOCK:
            raise OddFileError
        if cut >= 0:
            yield data[: cut + 1]
        rest = data[cut + 1 :]
    if rest:
        yield rest


@dataclass(slots=True)
class _Gather:
    """Puts blocks together: launches by key, codes of repeated strings, numbers."""

    messages: Messages
    page: Page
    launches: dict[Hashable, Row] = field(default_factory=dict)
    places: dict[Hashable, int] = field(default_factory=dict)
    codes: dict[str, dict[str | None, int]] = field(default_factory=dict)
    columns: dict[str, list[Numbers]] = field(default_factory=dict)
    rules: list[tuple[Hashable, int, str]] = field(default_factory=list)
    advice: dict[tuple[str, ...], int] = field(default_factory=dict)  # what rules say, and a code for each
    left: LeftOut = field(default_factory=LeftOut)
    marks: Marks = field(default_factory=Marks)

    def add(self, block: Block, line: int) -> None:
        """Take in one block whose first line has this number."""
        import numpy as np

        self.marks = block.marks
        runs = np.array([self.place(owner) for owner in block.owners], dtype=np.int32)
        launch = np.repeat(runs, np.diff(np.append(block.starts, block.rows)))
        self.columns.setdefault("launch", []).append(launch)
        for name, (codes, words) in block.words.items():
            self.keep_words(name, codes, [w or "" for w in words] if name == "unit" else words)
        shown = block.shown or (np.full(block.rows, -1, dtype=np.int32), [])
        self.keep_words("text", shown[0], shown[1])
        self.columns.setdefault("value", []).append(block.numbers)
        self.columns.setdefault("value_pm", []).append(block.halves)
        self.note_launches(block, launch)
        for at, text in block.odd:
            self.take_odd(text, line + at)

    def keep_words(self, name: str, codes: Numbers, words: list[str | None]) -> None:
        """Translate a block's codes into the file's; the code -1 of a text stands for none."""
        import numpy as np

        known = self.codes.setdefault(name, {})
        table = [known.setdefault(w, len(known)) for w in [*words, *([None] if name == "text" else [])]]
        self.columns.setdefault(name, []).append(np.array(table, dtype=np.int32)[codes])

    def place(self, owner: dict[str, str | None]) -> int:
        """The number of the launch that a run of rows belongs to."""
        key = (owner["ID"], owner["Process ID"] or "")
        place = self.places.get(key)
        if place is None:
            place = self.places[key] = len(self.places)
            self.launches[key] = owner_of(owner, 0, None)
        return place

    def note_launches(self, block: Block, launch: Numbers) -> None:
        """Durations and names of GPUs, which stand among the metrics."""
        import numpy as np

        codes, words = block.words["metric"]
        times = np.flatnonzero(np.isin(codes, [i for i, w in enumerate(words) if w in DURATIONS]))
        names = np.flatnonzero(np.isin(codes, [i for i, w in enumerate(words) if w in DEVICE_NAMES]))
        if not len(times) and not len(names):
            return
        owners = list(self.launches.values())
        unit_codes, units = block.words.get("unit", (codes, [None] * len(words)))
        for row in times.tolist():
            number, half = float(block.numbers[row]), float(block.halves[row])
            value = Value(None if np.isnan(number) else number, None if np.isnan(half) else half)
            note_duration(owners[launch[row]], units[unit_codes[row]], value)
        if block.shown is not None:
            place, texts = block.shown
            for row in names.tolist():
                if place[row] >= 0 and texts[place[row]]:
                    owners[launch[row]]["device_name"] = texts[place[row]]

    def take_odd(self, line: str, number: int) -> None:
        """A line that is no metric row: of a rule, damaged, or not ncu's."""
        row = split(line, ",") if line.startswith('"') and line.count('"') % 2 == 0 else None
        if row is not None and len(row) == len(self.page.header) and row[self.page.at["Metric Name"]] == "":
            key = self.page.key(row)
            if key in self.places or self.page.fits(row):
                told = self.page.ruled(row)
                if told[1]:
                    self.rules.append((key, self.advice.setdefault(tuple(told[:-1]), len(self.advice)), told[-1]))
                elif key not in self.places:
                    raise OddFileError
                return
        if page_of(line) is not None or (row is not None and self.page.fits(row)):
            raise OddFileError
        if line.startswith('"') and line[1:2].isdigit():
            if line.count('"') % 2 == 0:
                raise OddFileError  # damage other than a torn end
            self.left.damaged.append(number)
        else:
            self.messages.see(line, number)

    def fill(self, report: Report, options: Options) -> None:
        """The tables and problems of the whole file."""
        if not self.launches or any(key not in self.launches for key, _, _ in self.rules):
            raise OddFileError
        if self.marks.guessed:
            warn_of_guess(report, 0)
        results = Results(launches=self.launches)
        results.fill(report, options, metrics=self.metric_table, rules=self.rule_table if self.rules else None)
        self.left.tell(report, empty=False)
        self.messages.tell(report, empty=False)

    def metric_table(self) -> pa.Table:
        """The metrics; columns that are null in every row are left out."""
        import numpy as np
        import pyarrow as pa

        launch = pa.array(np.concatenate(self.columns.pop("launch")))
        made = self.of_launches(launch, ("block", "pid", "device", "launch_id", "host", "kernel", "device_name"))
        for name, known in self.codes.items():
            codes = np.concatenate(self.columns.pop(name))
            # the code of "none" is masked: a null among a dictionary's words counts as no null
            mask = codes == known[None] if None in known else None
            words = pa.array([w or "" for w in known], type=pa.string())
            made[name] = pa.DictionaryArray.from_arrays(pa.array(codes, mask=mask), words)
        for name in ("value", "value_pm"):
            numbers = np.concatenate(self.columns.pop(name))
            made[name] = pa.array(numbers, mask=np.isnan(numbers))
        return pa.table(made)

    def rule_table(self) -> pa.Table:
        """The rules, one row each."""
        import pyarrow as pa

        keys, codes, gains = zip(*self.rules, strict=True)
        launch = pa.array([self.places[key] for key in keys], type=pa.int32())
        made = self.of_launches(launch, ("block", "pid", "device", "launch_id", "host", "kernel"))
        advice = pa.array(codes, type=pa.int32())
        for name, words in zip(RULE_COLUMNS, zip(*self.advice, strict=True), strict=True):
            each = dictionary([w or None for w in words])
            made[name] = pa.DictionaryArray.from_arrays(each.indices.take(advice), each.dictionary)
        parse = Parser(self.marks)
        made["speedup_pct"] = pa.array([parse(g.removesuffix("%")).number for g in gains], type=pa.float64())
        return pa.table(made)

    def of_launches(self, launch: pa.Array, names: Iterable[str]) -> dict[str, Any]:
        """Columns of rows that belong to these launches."""
        import pyarrow as pa

        owners = list(self.launches.values())
        made: dict[str, Any] = {}
        for name in names:
            if name in ("host", "kernel", "device_name"):
                each = dictionary([o[name] for o in owners])
                made[name] = pa.DictionaryArray.from_arrays(each.indices.take(launch), each.dictionary)
            else:
                made[name] = pa.array([o[name] for o in owners], type=pa.int64()).take(launch)
        return made
