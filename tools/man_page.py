"""Writes docs/nsw.1, the manual page, from the commands, their options and two pages of the docs.

python tools/man_page.py
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from nsw.cli.completion import load_commands  # noqa: E402
from nsw.cli.topics import TOPICS, text_of  # noqa: E402

PAGE = ROOT / "docs" / "nsw.1"


def text() -> str:
    """The manual page in the language of man."""
    root, commands = load_commands()
    lines = ['.TH NSW 1 "" "nsw" "User Commands"', ".SH NAME", f"nsw \\- {roff(root.help)}", ".SH SYNOPSIS"]
    lines += [".B nsw", "COMMAND ...", ".SH COMMANDS"]
    for name, command in commands.items():
        lines += [f".SS nsw {roff(name)}", roff(command.help)]
        for parameter in command.parameters:
            if parameter.name != "help":
                title = ", ".join(parameter.flags) or parameter.name.upper()
                lines += [".TP", f".B {roff(title)}", roff(parameter.help)]
    for topic, title in (("exit-codes", "EXIT STATUS"), ("environment", "ENVIRONMENT")):
        lines += [f".SH {title}", *of_markdown(text_of(topic))]
    lines += [".SH TOPICS", roff(f"`nsw help TOPIC` prints a page on each of these: {', '.join(TOPICS)}.")]
    return "\n".join(lines) + "\n"


def of_markdown(page: str) -> list[str]:
    """A page of paragraphs and tables of two columns, less its title and the heads of its tables."""
    lines = []
    for block in page.split("\n\n")[1:]:
        if block.startswith("#"):
            lines += [f".SH {block.lstrip('# ').upper()}"]
        elif block.startswith("|"):
            for row in block.splitlines()[2:]:
                head, told = (cell.strip() for cell in row.strip("|").split("|"))
                lines += [".TP", f".B {roff(head)}", roff(told)]
        else:
            lines += [".PP", roff(" ".join(block.split()))]
    return lines


def roff(words: str) -> str:
    """A text of one line: no sign of it means anything to man."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", words).replace("`", "")
    words = words.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{words}" if words.startswith((".", "'")) else words


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")
