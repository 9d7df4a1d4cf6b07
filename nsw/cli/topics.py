"""`nsw help TOPIC`: pages of the docs, or sections of them, on a terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import Console

# the page of a topic below docs, its section if not all is meant, and of a section's table the keys that begin so
TOPICS: Final[dict[str, tuple[str, str, str]]] = {
    "recipe": ("reference.md", "Recipe", ""),
    "passes": ("reference.md", "Recipe", "passes"),
    "figures": ("reference.md", "Recipe", "app.figures"),
    "site": ("reference.md", "Site", ""),
    "answers": ("answers.md", "", ""),
    "tables": ("tables.md", "", ""),
    "verdicts": ("compare.md", "", ""),
    "pairs": ("pairs.md", "", ""),
    "checks": ("believe.md", "", ""),
    "layout": ("layout.md", "", ""),
    "slurm": ("slurm.md", "", ""),
    "schedulers": ("schedulers.md", "", ""),
    "ssh": ("remote.md", "", ""),
    "python": ("python.md", "", ""),
    "sql": ("howto/sql.md", "", ""),
    "words": ("glossary.md", "", ""),
    "exit-codes": ("exit-codes.md", "", ""),
    "environment": ("environment.md", "", ""),
}
_WIDEST: Final = 100  # columns: longer lines are hard to read
_ROW: Final = re.compile(r"^\| `([^`]+)` \|.*\n", re.MULTILINE)
_WITHOUT_ROWS: Final = re.compile(r"^### [^\n]+\n\n\| key [^\n]+\n\|[-|]+\n(?!\|)\n?", re.MULTILINE)
_HEADS: Final = re.compile(r"^```.*?^```$|^##? ([^\n]+)", re.MULTILINE | re.DOTALL)
_INLINE: Final = re.compile(r"^```.*?^```$|`([^`\n]+)`|\[([^\]\n]*)\]\((?!http)([^)\n]*)\)", re.MULTILINE | re.DOTALL)


def text_of(topic: str) -> str:
    """The Markdown of a topic."""
    from nsw.resources import docs_folder
    from nsw.safe_files import read_text

    page, section, keys = TOPICS[topic]
    text = read_text(docs_folder() / page)
    if section:
        heads = [match for match in _HEADS.finditer(text) if match[1]]
        at = next(n for n, match in enumerate(heads) if match[1] == section)
        text = text[heads[at].start() : heads[at + 1].start() if at + 1 < len(heads) else None]
    return _WITHOUT_ROWS.sub("", _ROW.sub(lambda row: row[0] if row[1].startswith(keys) else "", text))


def show_topic(out: Console, topic: str) -> None:
    """Print a topic, through the user's pager on a terminal."""
    from rich.markdown import Markdown

    from nsw.present.terminal import page_output

    text = _INLINE.sub(_inline_for_terminal, text_of(topic))
    with page_output(out):
        out.print(Markdown(text, hyperlinks=False), width=min(out.width, _WIDEST))


def _inline_for_terminal(match: re.Match[str]) -> str:
    """Words of programs with their backticks, which colour alone would show; a link as its text, topic or page."""
    if match[1] is not None:
        return f"`` `{match[1]}` ``"
    if match[2] is None or not match[2].endswith(".md"):
        return match[0] if match[2] is None else match[2]
    page = match[3].partition("#")[0].removeprefix("../")
    topic = next((topic for topic, place in TOPICS.items() if place == (page, "", "")), None)
    return f"docs/{page}" if topic is None else f"`` `nsw help {topic}` ``"
