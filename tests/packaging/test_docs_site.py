"""The documentation site (mkdocs.yml, tools/docs_site.py) has every page, and turns links of GitHub into its own."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from tools import docs_site

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(ROOT.glob("docs/**/*.md"))


def listed(nav):
    """The pages of a navigation."""
    if isinstance(nav, str):
        return [nav]
    return [page for entry in (nav.values() if isinstance(nav, dict) else nav) for page in listed(entry)]


def test_every_page_is_in_the_navigation_once():
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2])
    pages = list(listed(docs_site.expanded(nav)))
    there = {str(page.relative_to(ROOT / "docs")) for page in PAGES} - {"skill/SKILL.md"}
    assert sorted(pages) == sorted({*there, "gallery.md", "options.md", "columns.md"})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_a_page_of_the_site(page):
    outside = docs_site.outside_files()
    for path in docs_site.linked(page):
        uri = docs_site.uri_of(path)
        assert uri in outside or (ROOT / "docs" / uri).is_file()


def test_a_link_out_of_docs_leads_to_a_page_that_shows_the_file():
    page = ROOT / "docs" / "studies" / "amp_networks.md"
    text = "[r](../../recipes/amp_networks.yaml), [w](README.md#where-it-was-measured), [p](https://pytorch.org)\n```\n[x](y)\n```\n"
    made = docs_site.in_site(text, page, "studies/amp_networks.md")
    assert made == text.replace("../../recipes/amp_networks.yaml", "../repository/recipes/amp_networks.yaml.md")
    shown = docs_site.shown(ROOT / "recipes" / "amp_networks.yaml")
    assert (ROOT / "recipes" / "amp_networks.yaml").read_text() in shown


def test_a_folder_becomes_a_list_of_its_files():
    assert docs_site.uri_of(ROOT / "docs" / "extending") == "extending/README.md"
    assert docs_site.uri_of(ROOT / "recipes" / "sites") == "repository/recipes/sites/index.md"
    assert "- [polaris.yaml](polaris.yaml)" in docs_site.shown(ROOT / "recipes" / "sites")


def test_a_link_that_is_named_by_its_file_has_the_title_of_the_page():
    page = docs_site.DOCS / "pairs.md"
    text = docs_site.in_site("[compare.md](compare.md#a-gate), [a page](compare.md)", page, "pairs.md")
    assert text == "[Compare two campaigns](compare.md#a-gate), [a page](compare.md)"


def test_the_search_ranks_pages_for_users_before_those_for_developers():
    boosts = {}
    for uri in ("compare.md", "reference.md", "internals.md", "repository/recipes/sites/index.md"):
        page = SimpleNamespace(file=SimpleNamespace(src_uri=uri), meta={"search": {"exclude": False}})
        docs_site.on_page_markdown("# A page", page=page, config=None, files=None)
        assert page.meta["search"]["exclude"] is False
        boosts[uri] = page.meta["search"].get("boost", 1)
    assert (
        boosts["compare.md"]
        > boosts["reference.md"]
        > boosts["internals.md"]
        == boosts["repository/recipes/sites/index.md"]
    )


def test_the_search_ranks_a_section_beside_its_page(tmp_path):
    index = tmp_path / "search" / "search_index.json"
    index.parent.mkdir()
    entries = [{"location": "a.html", "boost": 2}, {"location": "a.html#b", "boost": 2}, {"location": "c.html#d"}]
    index.write_text(json.dumps({"docs": entries}))
    docs_site.on_post_build({"site_dir": str(tmp_path)})
    assert [entry.get("boost", 1) for entry in json.loads(index.read_text())["docs"]] == [2, 4, 2]


@pytest.mark.parametrize(
    ("text", "word"),
    [("`.nsys-rep`", "nsys"), ("{kind: ssh}", "kind"), ("--constraint=a100", "constraint"), ("[--mpi=pmix]", "mpi")],
)
def test_the_search_finds_words_between_punctuation(text, word):
    separator = re.search(r"separator: '(.*)'\n", (ROOT / "mkdocs.yml").read_text())[1].replace("''", "'")
    assert word in re.split(separator, text)


def test_the_site_loads_no_script_or_picture_from_a_server(tmp_path):
    (tmp_path / "a.html").write_text('<a href="https://x.org"></a><script src="b.js"></script>')
    assert docs_site.foreign(tmp_path) == []
    (tmp_path / "c.html").write_text('<script src="https://unpkg.com/shim"></script>')
    assert docs_site.foreign(tmp_path) == ["c.html: https://unpkg.com/shim"]


def test_the_page_of_options_has_what_help_prints():
    options = [{"name": "pass_", "flags": ["--pass", "-p"], "help": "Only this | pass.", "choices": ["a", "b"]}]
    page = docs_site.options_page([{"name": "nsw run", "help": "Run it.", "parameters": options}])
    assert page.endswith(
        "## nsw run\n\nRun it.\n\n| option | |\n|---|---|\n| `--pass` `-p` | Only this \\| pass. (a, b) |"
    )


def test_the_page_of_columns_has_those_that_tables_share():
    cells = {"type": "int64", "unit": "ns", "meaning": "m"}
    rows = [{"table": table, "column": column, **cells} for table, column in
            (("*origin", "run"), ("*times", "t_ns"), ("gpu", ""), ("gpu", "*times"), ("gpu", "kind"))]  # fmt: skip
    gpu, first = docs_site.columns_page(rows).split("## gpu\n")[1].split("## First columns")
    assert re.findall("`(.*?)`", gpu) == ["t_ns", "kind"]
    assert re.findall("`(.*?)`", first) == ["run"]


NODE = shutil.which("node")


@pytest.mark.skipif(NODE is None, reason="no node")
@pytest.mark.parametrize(
    ("query", "searched"),
    [
        ("--sample=none", "sample^1 samples^1 none"),
        ("the kernels wait", "kernels^1 kernel^1 wait"),
        ("kernel names", "kernel^1 kernels^1 names name^1"),
        ("a class", "class"),
        ("==ERROR== The error code (11).", "ERROR^1 ERRORs^1 error^1 errors^1 code"),
        ("how do I stop it", "stop"),
        ("What is a run?", "glossary^1 glossarys^1 run^1"),
        ("dram__bytes.sum peak", "dram__bytes sum^1 peak"),
        ("ncu says 11 steps", "ncu^1 says^1 say^1 iterations^1 iteration^1 steps step^1"),
        ("how", "how^1"),
        ("--s", "s^1"),
        ("scancel", "cancel^1 cancels^1 scancel"),
        ("waves per SM", "waves^1 wave^1 per^1 SM^1"),
    ],
)
def test_a_query_is_searched_by_its_words(query, searched):
    program = f"""
    globalThis.Worker = class {{ postMessage(message) {{ return message.data; }} }};
    {(ROOT / "docs" / "site.js").read_text()}
    console.log(new Worker().postMessage({{ type: 2, data: {query!r} }}));"""
    done = subprocess.run([NODE, "-e", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == searched
