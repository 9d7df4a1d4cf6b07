"""Tables that fit their width: a number, an id or a reason is never cut.

Where a table is too wide its headings wrap first; then the column of names gives up the middle of its names; then
columns go, the least important first, with a line that tells which and how wide they would need; then texts wrap.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TextIO

from rich.cells import cell_len

from nsw.analysis.groups import group_by
from nsw.present.untrusted_text import clean_line, escape_controls
from nsw.quantities import in_one_unit
from nsw.safe_files import read_text
from nsw.wording import first_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import Console, ConsoleOptions, RenderResult


_GAP: Final = "   "
_EDGES: Final = 2
_NAME: Final = 24  # characters that names keep while other columns can go
_SENTENCE: Final = 30  # characters that a sentence has on a line while other columns can go
_WIDEST: Final = 160  # columns of a wide terminal, beyond which only another form shows all
_MIN_WIDTH: Final = 12  # that they keep at all
_HEADING_LINES: Final = 3  # while other columns can give way
_NAMED_COLUMNS: Final = 8  # hidden columns that the line below names


class TextTable:
    """A table that fits its width; columns that end in `>` are right-aligned and hold numbers.

    A column of quantities gets one unit for all its cells, which is in its heading. Sentences wrap before
    a column goes.

    Args:
        title: Above the table.
        columns: The headings.
        rows: The cells.
        wide: The heading of the column that gives way for space first: names give up their middles, sentences wrap.
        names: Headings of other columns of names, which may lose their middles too.
        phrases: Headings of columns of names in which cells of several words wrap: `61 % kernel; 2 % more is hidden`.
        droppable: Headings of columns that may go, the least important first.
        elsewhere: What else shows the columns that went, such as "--format csv".
        low: Whether columns go before sentences wrap, where rows are to have a line each.
    """

    def __init__(
        self, title: str | None, columns: Sequence[str], rows: Iterable[Sequence[object]], *, wide: str | None = None,
        names: Sequence[str] = (), phrases: Sequence[str] = (), droppable: Sequence[str] = (),
        elsewhere: str | None = None, low: bool = False,
    ) -> None:  # fmt: skip
        self._low = low
        cell_rows = [list(row) for row in rows]
        in_units = [in_one_unit(head, [row[n] for row in cell_rows]) for n, head in enumerate(columns)]
        heads = [clean_line(head) for head, _ in in_units]
        self._elsewhere = elsewhere
        self._title = None if title is None else clean_line(title)
        self._heads = [head.removesuffix(">") for head in heads]
        self._numbers = [head.endswith(">") for head in heads]
        self._cells = [["" if c is None else _shorten_cell(clean_line(c)) for c in cells] for _, cells in in_units]
        self._widest = [max(map(_cell_width, cells), default=0) for cells in self._cells]
        self._wide = None if wide is None or wide in _SENTENCES else self._heads.index(clean_line(wide))
        self._elided = [i for i, head in enumerate(self._heads) if head in names and i != self._wide]
        self._elided += [] if self._wide is None else [self._wide]
        self._phrases = [i for i, head in enumerate(self._heads) if head in phrases]
        self._wrapping = [i for i, head in enumerate(heads) if head in _SENTENCES and i not in self._elided]
        # a parameter of the recipe may be called like one of them: it is before them
        last = {head: i for i, head in enumerate(self._heads)}
        last |= {column.removesuffix(">"): i for i, column in enumerate(columns)}
        self._droppable = [last[name] for name in droppable if name in last]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The columns that fit, and what did not."""
        visible, widths = self._fit_columns(options.max_width)
        yield from self._render(console, options, {i: widths[i] for i in visible})
        hidden_heads = [head for i, head in enumerate(self._heads) if i not in visible]
        if hidden_heads:
            from rich.text import Text

            need = self._width_that_shows_all(options.max_width)
            remedies = [f"at width {need}"] if need <= _WIDEST or not self._elsewhere else []
            remedies += [f"with {self._elsewhere}"] if self._elsewhere else []
            names = first_names(hidden_heads, _NAMED_COLUMNS, between=" | ")
            hint = f"(hidden, shown {' or '.join(remedies)}: {names})"
            yield Text(wrap_text(console, hint), style="dim")

    def _render(self, console: Console, options: ConsoleOptions, widths: Mapping[int, int]) -> RenderResult:
        """Title, headings and rows of the columns that have a width."""
        from rich import box
        from rich.segment import Segment
        from rich.table import Table
        from rich.text import Text

        title = None if self._title is None else Text(self._title)
        if title is not None and title.cell_len > _table_width(
            [*widths.values()]
        ):  # rich would wrap it to the table's width
            yield Text(wrap_text(console, title.plain), style="bold")
            title = None
        rich_table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
        for i, width in widths.items():
            side: Literal["right", "left"] = "right" if self._numbers[i] else "left"
            rich_table.add_column(Text(self._heads[i]), justify=side, width=width, overflow="fold")
        too_wide = [i for i, width in widths.items() if self._widest[i] > width]
        columns = {i: self._cells[i] for i in widths} | {
            i: (_fit_phrases if i in self._phrases else shorten_distinctly)(self._cells[i], widths[i])
            for i in too_wide
            if i in self._elided
        }
        if any(_cell_width(text) > widths[i] for i in too_wide for text in columns[i]):
            for cells in zip(*columns.values(), strict=True):
                rich_table.add_row(*(Text(cell, overflow="fold") for cell in cells))
            yield rich_table
            return
        # no text wraps: the same lines as rich's, which takes many times longer for them
        *above, foot, end = console.render(rich_table, options)
        yield from above
        padded = []
        for i, texts in columns.items():
            if self._numbers[i]:
                padded.append([" " * (widths[i] - _cell_width(text)) + text for text in map(str.rstrip, texts)])
            else:
                padded.append([text + " " * (widths[i] - _cell_width(text)) for text in texts])
        rows = "".join(f" {_GAP.join(row)} \n" for row in zip(*padded, strict=True))
        yield from (Segment(rows), foot, end)

    def hidden_headings(self, width: int) -> list[str]:
        """The headings of the columns that do not fit this width."""
        visible, _ = self._fit_columns(width)
        return [self._heads[i] for i in range(len(self._heads)) if i not in visible]

    def _width_that_shows_all(self, width: int) -> int:
        """The least width at which no column is hidden; one is at this width."""
        high = _table_width([self._natural_width(i) for i in range(len(self._heads))])
        while width + 1 < high:
            middle = (width + high) // 2
            width, high = (middle, high) if self.hidden_headings(middle) else (width, middle)
        return high

    def _natural_width(self, column: int) -> int:
        return max(_cell_width(self._heads[column]), self._widest[column])

    def _fit_columns(self, room: int) -> tuple[list[int], dict[int, int]]:
        """Which columns are shown, and how wide each of them is."""
        visible = list(range(len(self._heads)))
        widths = {i: self._natural_width(i) for i in visible}
        if _table_width([*widths.values()]) <= room:
            return visible, widths

        def excess_width() -> int:
            return _table_width([widths[i] for i in visible]) - room

        def longest_word(column: int, limit: int = _NO_WIDTH) -> int:
            return max([words[column], *(min(_cell_width(w), limit) for c in self._cells[column] for w in c.split())])

        def narrow_columns(columns: Sequence[int], min_widths: dict[int, int]) -> None:
            """Take the excess width from these columns, evenly from the widest, down to the minimum of each."""
            over = excess_width()
            while over > 0:
                able = [i for i in columns if i in visible and widths[i] > min_widths[i]]
                if not able:
                    return
                widest = max(widths[i] for i in able)
                alike = [i for i in able if widths[i] == widest][:over]
                next_ = max([*(min_widths[i] for i in alike), *(widths[i] for i in able if widths[i] < widest)])
                step = max(1, min(over // len(alike), widest - next_))
                widths.update((i, widest - step) for i in alike)
                over -= step * len(alike)

        cells = {i: max(1, self._widest[i]) for i in visible}
        words = {i: max([1, *(_cell_width(w) for w in self._heads[i].split())]) for i in visible}
        narrow_columns(visible, {i: max(cells[i], _heading_width(self._heads[i])) for i in visible})
        narrow_columns(self._elided, {i: max(words[i], min(_NAME, cells[i])) for i in self._elided})
        if not self._low:
            narrow_columns(
                self._wrapping, {i: max(longest_word(i, _SENTENCE), min(_SENTENCE, cells[i])) for i in self._wrapping}
            )
        for i in self._droppable:
            if excess_width() <= 0:
                break
            visible.remove(i)
        texts = [i for i in visible if not self._numbers[i] and i not in self._elided]
        narrow_columns(texts, {i: longest_word(i) for i in texts})
        narrow_columns(self._elided, {i: min(_MIN_WIDTH, cells[i]) for i in self._elided})
        narrow_columns(visible, {i: min(widths[i], max(cells[i], words[i])) for i in visible})
        while excess_width() > 0 and len(visible) > 2:
            visible.remove(max(i for i in visible if i != self._wide))
        narrow_columns(texts, dict.fromkeys(texts, _MIN_WIDTH))
        # what the columns that went have left is for names and sentences
        least_widths, flexible = dict(widths), [i for i in {*self._elided, *self._wrapping, *texts} if i in visible]
        widths |= {i: max(least_widths[i], self._natural_width(i)) for i in flexible}
        narrow_columns(flexible, least_widths)
        return visible, widths


_WORD: Final = re.compile(r"(?:\[[^\]\[]{0,80}\]|\S)++")  # a name in brackets is one
_ONE_NAME: Final = re.compile(r"(?:[\d.,]++ % )?+" + _WORD.pattern)


def _fit_phrases(cells: Sequence[str], width: int) -> list[str]:
    """The cells of a column in this width: names alone lose their middles, and what is words has several lines."""
    names = shorten_distinctly([cell if _is_name(cell, width) else "" for cell in cells], width)
    return [name or _wrap_words(cell, width) for name, cell in zip(names, cells, strict=True)]


def _is_name(cell: str, width: int) -> bool:
    return _cell_width(cell) <= width or _ONE_NAME.fullmatch(cell) is not None


def _heading_width(head: str) -> int:
    """The least width at which a heading has few lines."""
    words = [_cell_width(word) for word in head.split()]
    width = max([1, *words])
    while True:
        lines, room = 1, width
        for at, word in enumerate(words):
            lines, room = (lines, room - word - bool(at)) if word + bool(at) <= room else (lines + 1, width - word)
        if lines <= _HEADING_LINES:
            return width
        width += 1


def _wrap_words(cell: str, width: int) -> str:
    lines = [""]
    for word in _WORD.findall(cell):
        longer = f"{lines[-1]} {word}".strip()
        is_room = _cell_width(longer) <= width
        lines[-1:] = [longer] if is_room else [*filter(None, lines[-1:]), shorten_middle(word, width)]
    return "\n".join(lines)


def _table_width(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1) + _EDGES


def _cell_width(text: str) -> int:
    """The number of terminal columns that a text of one line takes."""
    return len(text) if text.isascii() else cell_len(text)


_PADDING = re.compile(r"(?<![ \t])[ \t]+(?=\n)")  # begins once a run of spaces: else their square in time
_SIZES = frozenset({"COLUMNS", "LINES"})
_LONGEST_CELL = 20_000  # characters; CSV and JSON have all of them
_NO_WIDTH = 100_000  # columns of what is no terminal: nothing is cut, wrapped or left out there


def console(stream: TextIO | None = None) -> Console:
    """The console of stdout or another stream; NO_COLOR and COLUMNS are honoured, a pipe has room for everything."""
    out = stream or sys.stdout
    if hasattr(out, "reconfigure"):
        out.reconfigure(errors="replace")
    # some programs leave COLUMNS=0 behind, and nothing fits into that
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in _SIZES or (value.isdecimal() and int(value[:9]) > 0)
    }
    width = None if out.isatty() or "COLUMNS" in environment else _NO_WIDTH
    return _plain_console()(file=out, width=width, markup=False, highlight=False, emoji=False, _environ=environment)


def page_output(out: Console) -> AbstractContextManager[object]:
    """What is printed meanwhile goes through the user's pager, where it goes to a terminal."""
    if not (out.is_terminal and sys.stdin.isatty()):
        return nullcontext()
    os.environ.setdefault("LESS", "-RFX")  # with colours; where a screen holds all of it, as without a pager
    return out.pager(styles=True)


def strip_padding(printed: str) -> str:
    """What was printed without blanks at the ends of lines."""
    return _PADDING.sub("", printed)


@cache
def _plain_console() -> type[Console]:
    from rich.console import Console

    class PlainConsole(Console):
        """Prints texts as they are, less what would steer the terminal."""

        def on_broken_pipe(self) -> None:
            """Leave it to the caller: that `| head` has enough is no failure."""
            raise BrokenPipeError

        def print(self, *objects: Any, **options_of_rich: Any) -> None:
            """As rich prints; line breaks and tabs of texts are kept.

            A single text breaks between words, and not within a command in backticks; with `soft_wrap` nothing of it
            breaks.
            """
            if len(objects) == 1 and isinstance(objects[0], str) and not options_of_rich.get("soft_wrap"):
                objects, options_of_rich = (wrap_text(self, objects[0]),), {**options_of_rich, "soft_wrap": True}
            texts = (with_typed_command(escape_controls(o)) if isinstance(o, str) else o for o in objects)
            options_of_rich.setdefault("crop", False)  # all of it wraps, or fits already
            if self.is_terminal or self._buffer_index:
                super().print(*texts, **options_of_rich)
                return
            with self.capture() as printed:
                super().print(*texts, **options_of_rich)
            # a table pads its lines, and its title's, up to its width
            self.file.write(strip_padding(printed.get()))
            try:
                self.file.flush()  # `nsw run | tee log` and `nsw logs -f | grep` show what is printed when it is
            except BrokenPipeError:
                raise
            except OSError:  # a full disk ends no campaign; main reports it at the end
                return

    return PlainConsole


def _shorten_cell(cell: str) -> str:
    """Cut a cell of megabytes, which would take half a minute to lay out."""
    omitted = len(cell) - _LONGEST_CELL
    return cell if omitted <= 0 else f"{cell[:_LONGEST_CELL]}… ({omitted:,} more characters)"


_SENTENCES = frozenset({
    "why", "message", "text", "description", "passes", "runs", "note", "reason", "meaning", "chips", "what",
    "what is wrong", "do", "law",
})  # fmt: skip  # columns that wrap


_HINT: Final = "`nsw "
_MARK: Final = "* "  # of a finding


@cache
def program() -> str:
    """What starts this program: `nsw` where the shell finds no other program under that name, else as it was typed.

    Who types a whole path, or has a variable for it, knows it: in every hint it would hide what differs.
    """
    import shlex

    typed = sys.argv[0]
    name = Path(typed).name
    if name == "__main__.py" and Path(typed).parent.name == "nsw":
        python = Path(sys.executable)
        on_path = shutil.which(python.name)
        is_on_path = (
            on_path is not None and _is_same_file(on_path, str(python)) and Path(on_path).parent == python.parent
        )
        return f"{shlex.quote(python.name if is_on_path else str(python))} -m nsw"
    if name != "nsw":  # another program that uses nsw
        return "nsw"
    program_path = shutil.which("nsw")
    if program_path is None:
        return "nsw" if Path(typed).is_absolute() else shlex.quote(typed)
    if os.sep not in typed or _is_same_file(program_path, typed) or _is_wrapper(program_path, typed):
        return "nsw"
    return shlex.quote(typed)


_WRAPPER: Final = 4096  # bytes of a script, in which the program that it starts is named


def _is_wrapper(script: str, started: str) -> bool:
    """Whether a small script on PATH names the program that was started."""
    try:
        if Path(script).stat().st_size > _WRAPPER:
            return False
        return str(Path(started).absolute()) in read_text(script, errors="replace")
    except OSError:
        return False


def with_typed_command(text: str) -> str:
    """A text whose hints begin with `nsw, with what was typed."""
    return text.replace(_HINT, f"`{program()} ") if _HINT in text and program() != "nsw" else text


def _is_same_file(first: str, second: str) -> bool:
    try:
        return Path(first).samefile(second)
    except OSError:
        return False


def shorten_middle(text: str, width: int) -> str:
    """At most `width` columns of a text: its beginning and its end."""
    if cell_len(text) <= width:
        return text
    kept_width = max(width - 1, 0)
    head, tail = kept_width - kept_width // 2, kept_width // 2
    short = text[:head] + "…" + (text[-tail:] if tail else "")
    while cell_len(short) > width and head + tail:  # characters of two columns
        head, tail = (head - 1, tail) if head > tail else (head, tail - 1)
        short = text[:head] + "…" + (text[-tail:] if tail else "")
    return short


def shorten_distinctly(texts: Sequence[str], width: int) -> list[str]:
    """The texts in this width; those that would look alike though they differ are numbered."""
    marks = clash_marks(texts, width)
    return [mark + shorten_middle(text, max(width - len(mark), 0)) for mark, text in zip(marks, texts, strict=True)]


def clash_marks(texts: Sequence[str], width: int) -> list[str]:
    """The number of each text among those that look alike in this width though they differ; empty where none does."""
    clashes = group_by(dict.fromkeys(texts), lambda text: shorten_middle(text, width))
    marks = {
        text: f"[{at}] " if len(alike) > 1 else "" for alike in clashes.values() for at, text in enumerate(alike, 1)
    }
    return [marks[text] for text in texts]


# a command in backticks with what touches it, else a word
_PIECE: Final = re.compile(r"(?:`[^`]*`|[^\s`])+|`\S*")
_KERNEL: Final = re.compile(r"(\(?)([A-Za-z_][\w:<>,&*()\[\]]*+)")  # neither a path nor a run
_BEHIND_A_KERNEL: Final = "),.;:"  # of the sentence, not of the name
_EXCERPT: Final = re.compile(r"\s*+(?:\d++\s++|(?<=\s))\| ")  # a line of a file, or what points at it


def wrap_text(out: Console, text: str, *, used_columns: int = 0, in_pipes: bool = False) -> str:
    """A text with line breaks for a terminal's width; as it is for what is none.

    Lines of files that an error shows are left alone. What follows a break stands under the line's first word.

    Args:
        out: Where it will be printed.
        text: One or several lines; commands in backticks are written as the user types them.
        used_columns: Columns of the first line that are taken already.
        in_pipes: Whether it has the width of COLUMNS in a pipe too, as tables have.
    """
    if out.width >= _NO_WIDTH or not (out.is_terminal or in_pipes):
        return text
    lines = with_typed_command(escape_controls(text)).split("\n")
    return "\n".join(
        _wrap_line(line, out.width, used_columns if number == 0 else 0) for number, line in enumerate(lines)
    )


def _wrap_line(line: str, width: int, used_columns: int) -> str:
    if used_columns + cell_len(line) <= width or _EXCERPT.match(line):
        return line
    indent = line[: len(line) - len(line.lstrip())]
    parts, room, before = [indent], used_columns + len(indent), len(indent)
    pieces = list(_PIECE.finditer(line))
    mark = len(_MARK) * line.startswith(_MARK, len(indent))  # which a name behind it leaves its line to
    texts = _shorten_kernel_names([piece[0] for piece in pieces], width - len(indent) - mark)
    for piece, text in zip(pieces, texts, strict=True):
        between = line[before : piece.start()]
        size = cell_len(text)
        if between and room + len(between) + size > width:
            between, room = f"\n{indent}", 0
        parts += [between, text]
        room, before = room + len(between.lstrip("\n")) + size, piece.end()
    return "".join(parts)


def _shorten_kernel_names(words: Sequence[str], room: int) -> list[str]:
    """Cut the middle of kernel names that are longer than a line, so that they stay distinguishable."""
    long = {
        n: kernel_parts
        for n, word in enumerate(words)
        if cell_len(word) > room and (kernel_parts := _parse_kernel_word(word))
    }
    around = max((len(before + behind) for before, _, behind in long.values()), default=0)
    names = shorten_distinctly([name for _, name, _ in long.values()], room - around)
    short = {n: f"{before}{name}{behind}" for (n, (before, _, behind)), name in zip(long.items(), names, strict=True)}
    return [short.get(n, word) for n, word in enumerate(words)]


def _parse_kernel_word(word: str) -> tuple[str, str, str] | None:
    """Split a word into what is before a kernel name, the name, and what is behind it; None if it is no kernel name."""
    bare = word.rstrip(_BEHIND_A_KERNEL)  # a pattern for all three would try every place where the name may end
    match = _KERNEL.fullmatch(bare)
    return (match[1], match[2], word[len(bare) :]) if match else None
