"""The source page of `ncu --csv`: figures of single instructions and source lines."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from nsw.readers.ncu.results import ARROW_ROWS, dictionary, known, nullable
from nsw.readers.ncu.values import Parser, decide_marks

if TYPE_CHECKING:
    from nsw.readers.ncu.csv.page import Page
    from nsw.tables.data import Row, TableData

_KERNEL: Final = ("Kernel Name", "Function Name")
_FILE: Final = ("File Path", "File Name")
_LINE: Final = ("Line No", "Line")
_PLACE: Final = frozenset({*_LINE, "#", "Address", "Source"})  # columns that are no metrics
_NUMBERED: Final = frozenset({*_LINE, "#", "Address"})  # each row has another one of these
_NONE: Final = frozenset({"", "-", "..."})  # cells of a metric that the instruction does not have
_ABOUT: Final = ("block", "rank", "kernel", "file", "line", "address", "source")


@dataclass(slots=True)
class SourceRows:
    """Instructions and lines in their order, and their metrics as columns: a kernel has ten thousands."""

    kernel: str | None = None
    file: str | None = None
    block: int = -1
    line: int | None = None
    lines: int = 0  # of all pages
    places: list[tuple[Any, ...]] = field(default_factory=list)  # _ABOUT of each instruction or line
    metrics: dict[str, int] = field(default_factory=dict)
    at: array[int] = field(default_factory=lambda: array("i"))  # place and metric of each value
    which: array[int] = field(default_factory=lambda: array("i"))
    printed: list[str] = field(default_factory=list)
    numbers: array[float] = field(default_factory=lambda: array("d"))
    halves: array[float] = field(default_factory=lambda: array("d"))
    texts: dict[int, str] = field(default_factory=dict)
    repeated: int = 0  # rows that repeat the one before: each instruction has its address, and each line its number
    last: list[str] = field(default_factory=list)

    def title(self, row: list[str]) -> bool:
        """Whether the fields name the kernel or the file of the lines below."""
        if len(row) < 2 or any(row[2:]) or not row[1].strip():
            return False
        if row[0] in _KERNEL:
            self.kernel = row[1].strip()
        elif row[0] in _FILE:
            self.file, self.kernel = row[1].strip(), None
        else:
            return False
        return True

    def begin(self) -> None:
        """The titles of the columns stood here."""
        self.block += 1
        self.line = None
        self.last = []

    def row(self, page: Page, row: list[str], rank: int | None) -> bool:
        """Take the figures of one instruction or line; whether it was one."""
        if len(row) != len(page.header) and not (len(row) == len(page.header) + 1 and not row[-1]):
            return False
        if row == self.last and not _NUMBERED.isdisjoint(page.at):
            self.repeated += 1
            return True
        self.last = row
        self.lines += 1
        number = next((row[page.at[name]] for name in _LINE if name in page.at), "")
        if number.isascii() and number.isdigit() and len(number) < 10:
            self.line = int(number)
        address = row[page.at["Address"]].strip() if "Address" in page.at else ""
        # beside the instructions of a line its text is in the first of two columns of this name
        sources = [i for i, name in enumerate(page.header) if name == "Source"]
        source = row[sources[-1] if address not in _NONE else sources[0]].strip()
        cells = [(n, c) for n, c in zip(page.header, row, strict=False) if n not in _PLACE and c.strip() not in _NONE]
        if cells:
            self.places.append((self.block, rank, self.kernel, self.file, self.line, _or_none(address), source or None))
        for name, cell in cells:
            self.at.append(len(self.places) - 1)
            self.which.append(self.metrics.setdefault(name, len(self.metrics)))
            self.printed.append(cell)
        return True

    def end(self) -> bool:
        """Read the numbers of a page; whether its decimal mark was guessed."""
        marks = decide_marks((text, None) for text in self.printed)
        parse = Parser(marks)
        for text in self.printed:
            value = parse(text)
            if value.text is not None:
                self.texts[len(self.numbers)] = value.text
            self.numbers.append(float("nan") if value.number is None else value.number)
            self.halves.append(float("nan") if value.half is None else value.half)
        self.printed.clear()
        return marks.guessed

    def table(self) -> TableData:
        """Rows of source_metrics, with the kernels demangled."""
        from nsw.tables.names import demangle_all

        plain = demangle_all({place[2] for place in self.places if place[2]})
        self.places = [(*p[:2], plain.get(p[2], p[2]), *p[3:]) for p in self.places]
        if len(self.at) > ARROW_ROWS:
            return self._arrow()
        names = list(self.metrics)
        return [
            dict(zip(_ABOUT, self.places[at], strict=True))
            | {"metric": names[which], "value": known(number), "value_pm": known(half), "text": self.texts.get(i)}
            for i, (at, which, number, half) in enumerate(
                zip(self.at, self.which, self.numbers, self.halves, strict=True)
            )
        ]

    def _arrow(self) -> TableData:
        import pyarrow as pa

        at, which = pa.array(self.at, type=pa.int32()), pa.array(self.which, type=pa.int32())
        made: Row = {}
        for i, name in enumerate(_ABOUT):
            cells = [place[i] for place in self.places]
            if name in ("block", "rank", "line"):
                made[name] = pa.array(cells, type=pa.int64()).take(at)
            else:
                few = dictionary(cells)
                made[name] = pa.DictionaryArray.from_arrays(few.indices.take(at), few.dictionary)
        made["metric"] = pa.DictionaryArray.from_arrays(which, pa.array(list(self.metrics), type=pa.string()))
        made["value"], made["value_pm"] = nullable(self.numbers), nullable(self.halves)
        made["text"] = dictionary([self.texts.get(i) for i in range(len(self.at))])
        return pa.table(made)


def _or_none(cell: str) -> str | None:
    return None if cell in _NONE else cell
