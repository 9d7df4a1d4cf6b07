"""Builds the documentation site into build/site, as `make docs` does; broken links fail. `python tools/docs_site.py`.

MkDocs runs in an environment of its own, .venv-docs, with the locked versions of pyproject.toml's group `docs`. Pages
are written for GitHub: this file is also a hook of mkdocs.yml, which turns links to files outside docs into links to
pages that show them, lists folders of nav, and adds pages: the options of all commands, the columns of all tables, and
the gallery that tools/gallery.py made.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
GALLERY = ROOT / "build" / "gallery"
COMMANDS = ROOT / "nsw" / "cli" / "words.json"  # commands and options, made by tools/completion_words.py
SCHEMA = ROOT / "nsw" / "tables" / "schema.csv"  # tables and their columns
NAMED_BY_FILE = re.compile(r"\[[\w/-]+\.md\](?=\(([^)#\s]+\.md)[#)])")  # GitHub's readers know files, the site's titles
LINK = re.compile(r"(\]\()(?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")
FENCED = re.compile(r"(^ *```.*?^ *```[^\n]*$)", re.DOTALL | re.MULTILINE)
OUTSIDE = "repository"  # where the site has files that are not in docs
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".json": "json", ".c": "c", ".cu": "cpp", ".toml": "toml"}
# what the search shows first: pages that answer a user's question, and last those for developers
_FIRST = (
    "faq glossary howto/ answers commands recipe layout site remote slurm environment "
    "gpu.md cpu pairs compare believe conditions stragglers python page"
)
_LAST = f"gpu-measurements.md internals.md one-run.md crash-proof.md extending/ skill/ studies/ {OUTSIDE}/"
_BOOSTS = dict.fromkeys(_FIRST.split(), 2) | dict.fromkeys(_LAST.split(), 0.5)
_SECTION = 2.0  # what a section counts beside a page: the search itself doubles a page's score at least
_LARGEST = 100_000  # bytes of a file that a page shows


def main() -> None:
    """Make the environment where it is not there or is another's, and build the site."""
    import bootstrap  # noqa: PLC0415  MkDocs imports this file without it

    venv = ROOT / ".venv-docs"
    lock, installed = ROOT / "tools" / "setup" / "requirements-docs.txt", venv / "requirements-docs.txt"
    if not installed.exists() or installed.read_bytes() != lock.read_bytes():
        bootstrap.create(venv)
        words = ["install", "--no-input", "--only-binary=:all:", "--require-hashes", "--requirement", str(lock)]
        bootstrap.run_pip(venv, words)
        shutil.copyfile(lock, installed)
    words = [str(venv / "bin" / "mkdocs"), "build", "--strict", "--config-file", str(ROOT / "mkdocs.yml")]
    done = subprocess.run(words, cwd=ROOT, check=False, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"})
    if done.returncode:
        sys.exit("error: the site is not built: correct the links above")
    if words := foreign(ROOT / "build" / "site"):
        sys.exit("error: pages load files from servers, which readers without internet lack:\n" + "\n".join(words))
    print(f"{ROOT / 'build' / 'site' / 'index.html'}")


def foreign(site: Path) -> list[str]:
    """The scripts, pictures and style sheets that pages of a site load from elsewhere."""
    loads = re.compile(r"""<(?:script|img|iframe|link rel="stylesheet")[^>]* (?:src|href)=["']?(https?:[^"'\s>]+)""")
    pages = ((path, path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html")))
    return [f"{path.relative_to(site)}: {match[1]}" for path, text in pages for match in loads.finditer(text)]


# --- links -------------------------------------------------------------------------------------------------


def target_of(page: Path, link: str) -> Path | None:
    """The file or folder that a page's link leads to; None where there is none in the repository."""
    path = Path(os.path.normpath(page.parent / link))
    return path if path.is_relative_to(ROOT) and path.exists() else None


def uri_of(path: Path) -> str:
    """Where the site has a file or folder of the repository, as a source of MkDocs."""
    if path.is_dir():
        index = next((path / name for name in ("README.md", "index.md") if (path / name).exists()), None)
        return uri_of(index) if index else f"{OUTSIDE}/{path.relative_to(ROOT)}/index.md"
    if path.is_relative_to(DOCS):
        return str(path.relative_to(DOCS))
    return f"{OUTSIDE}/{path.relative_to(ROOT)}{'' if path.suffix == '.md' else '.md'}"


def linked(page: Path) -> list[Path]:
    """The files and folders that a page links to."""
    texts = FENCED.split(page.read_text(encoding="utf-8"))[::2]
    targets = (target_of(page, match[2]) for text in texts for match in LINK.finditer(text))
    return [path for path in targets if path is not None]


def outside_files() -> dict[str, Path]:
    """The files and folders outside docs that pages link to, directly or not, by their source in the site."""
    pages, outside = sorted(DOCS.rglob("*.md")), {}
    while pages:
        page = pages.pop()
        for path in linked(page) if page.suffix == ".md" else sorted(page.iterdir()):
            uri = uri_of(path)
            if uri.startswith(f"{OUTSIDE}/") and uri not in outside:
                outside[uri] = path
                pages += [path] if path.suffix == ".md" or path.is_dir() else []
    return outside


def in_site(text: str, page: Path, uri: str) -> str:
    """The text of a page with links as the site has them.

    Args:
        text: Its Markdown.
        page: Its file in the repository.
        uri: Its own source in the site.
    """

    def titled(match: re.Match[str]) -> str:
        path = target_of(page, match[1])
        first = path.read_text(encoding="utf-8").partition("\n")[0] if path else ""
        return f"[{first.removeprefix('# ')}]" if first.startswith("# ") else match[0]

    def moved(match: re.Match[str]) -> str:
        path = target_of(page, match[2])
        to = match[2] if path is None else os.path.relpath(uri_of(path), Path(uri).parent)
        return f"{match[1]}{to}{match[3] or ''}"

    parts = FENCED.split(text)
    return "".join(
        part if number % 2 else LINK.sub(moved, NAMED_BY_FILE.sub(titled, part)) for number, part in enumerate(parts)
    )


def shown(path: Path) -> str:
    """The Markdown of a page that shows a file or folder outside docs."""
    name = path.relative_to(ROOT)
    head = f"---\nsearch:\n  exclude: true\n---\n# {name}\n\n"
    if path.is_dir():
        return head + "".join(
            f"- [{file.name}]({file.name})\n" for file in sorted(path.iterdir()) if file.name[0] != "."
        )
    if path.stat().st_size > _LARGEST:
        return f"{head}The file has {path.stat().st_size:,} bytes; it is in the repository.\n"
    text = path.read_text(encoding="utf-8", errors="replace")
    return text if path.suffix == ".md" else f"{head}````{_LANGUAGES.get(path.suffix, 'text')}\n{text}\n````\n"


def options_page(commands: list[dict[str, Any]]) -> str:
    """The Markdown of a page with each command and its options, as `--help` prints them."""
    lines = [
        "# Commands with all their options",
        "",
        "As `nsw COMMAND --help` prints them; [what each does](commands.md).",
    ]
    for command in commands:
        lines += ["", f"## {command['name']}", "", escaped(command["help"]), "", "| option | |", "|---|---|"]
        for option in command["parameters"]:
            flags = " ".join(f"`{flag}`" for flag in option["flags"] or [option["name"].upper()])
            lines.append(f"| {flags} | {escaped(option['help'])}{choices(option['choices'])} |")
    return "\n".join(lines)


def columns_page(rows: list[dict[str, str]]) -> str:
    """The Markdown of a page with the columns of each table, their types and units.

    A row without a column begins a table; `*names` stands for the columns that several tables share, and `*origin`
    for those with which each begins.
    """
    shared: dict[str, list[str]] = {}
    lines = ["# Columns of all tables, their types and units", "", "As `nsw query --schema` prints them;"]
    lines += ["[which table has what](tables.md). A cell without a value was not measured."]
    head = ["", "| column | type | unit | meaning |", "|---|---|---|---|"]
    for row in rows:
        table, column = row["table"], row["column"]
        cells = f"| `{column}` | {row['type']} | {row['unit']} | {escaped(row['meaning'])} |"
        if table.startswith("*"):
            shared.setdefault(table, []).append(cells)
        elif not column:
            lines += ["", f"## {table}", "", escaped(row["meaning"]), *head]
        else:
            lines += shared[column] if column.startswith("*") else [cells]
    return "\n".join([*lines, "", "## First columns of all tables", *head, *shared["*origin"]])


def escaped(text: str) -> str:
    """A text in a cell of a table."""
    return re.sub(r"[|*_<]", r"\\\g<0>", text)


def choices(values: list[str]) -> str:
    """The values of an option that takes one of a few."""
    return f" ({', '.join(values)})" if values else ""


# --- what MkDocs calls -------------------------------------------------------------------------------------


def expanded(nav: list[Any]) -> list[Any]:
    """The navigation with the pages of each folder that it names (`howto/`), by their titles."""
    entries: list[Any] = []
    for entry in nav:
        if isinstance(entry, dict):
            entries += [
                {title: expanded(below) if isinstance(below, list) else below} for title, below in entry.items()
            ]
        elif entry.endswith("/"):
            pages = [path for path in (DOCS / entry).glob("*.md") if path.name != "README.md"]
            pages.sort(key=lambda path: path.read_text(encoding="utf-8").partition("\n")[0])
            entries += [str(path.relative_to(DOCS)) for path in pages]
        else:
            entries.append(entry)
    return entries


def on_config(config: Any) -> Any:
    """Expand folders of nav."""
    config["nav"] = expanded(config["nav"])
    return config


def on_files(files: Any, *, config: Any) -> Any:
    """Add the files outside docs that pages link to, and the gallery."""
    from mkdocs.structure.files import File, InclusionLevel  # noqa: PLC0415  only MkDocs has it

    for uri, path in outside_files().items():
        level = InclusionLevel.NOT_IN_NAV
        files.append(File.generated(config, uri, content=shown(path), inclusion=level))
    lines = [
        "# Gallery",
        "",
        "Pages that `nsw report` writes, made of recordings in the repository: one HTML file each.",
        "",
    ]
    for entry in json.loads((GALLERY / "gallery.json").read_text(encoding="utf-8")):
        files.append(File.generated(config, f"gallery/{entry['file']}", abs_src_path=str(GALLERY / entry["file"])))
        link = f"gallery/{entry['file']}"
        lines += [f"## [{entry['title']}]({link})", "", entry["text"], "",
                  f'<iframe src="{link}" title="{entry["title"]}" loading="lazy"></iframe>', ""]  # fmt: skip
    files.append(File.generated(config, "gallery.md", content="\n".join(lines)))
    commands = [json.loads(line.rstrip(",")) for line in COMMANDS.read_text(encoding="utf-8").splitlines()[1:-1]]
    for command in commands[1:]:
        command["name"] = f"nsw {command['name']}"
    files.append(File.generated(config, "options.md", content=options_page(commands)))
    with SCHEMA.open(encoding="utf-8", newline="") as file:
        files.append(File.generated(config, "columns.md", content=columns_page([*csv.DictReader(file)])))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Turn the links of a page to those of the site, and rank it in the search."""
    del config, files
    uri = page.file.src_uri
    boost = next((value for start, value in _BOOSTS.items() if uri.startswith(start)), None)
    if boost is not None:
        page.meta["search"] = {"boost": boost, **page.meta.get("search", {})}
    if uri.startswith(f"{OUTSIDE}/"):
        name = uri.removeprefix(f"{OUTSIDE}/")
        path = next((ROOT / word for word in (name, name.removesuffix("/index.md"), name.removesuffix(".md"))
                     if (ROOT / word).exists()), ROOT)  # fmt: skip
        path = path / "index" if path.is_dir() else path
        return in_site(markdown, path, uri)
    return in_site(markdown, DOCS / uri, uri)


def on_page_context(context: Any, *, page: Any, config: Any, nav: Any) -> Any:
    """List the tools alone beside the page of error messages; the search, which came before, has each message."""
    del config, nav
    if page.file.src_uri == "errors.md":
        for title in page.toc:
            for tool in title.children:
                tool.children = []
    return context


def on_post_build(config: Any) -> None:
    """Rank sections beside pages in the index that the search has written; the plugin `offline` reads it afterwards."""
    path = Path(config["site_dir"]) / "search" / "search_index.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    for entry in index["docs"]:
        if "#" in entry["location"]:
            entry["boost"] = entry.get("boost", 1) * _SECTION
    path.write_text(json.dumps(index, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


if __name__ == "__main__":
    main()
