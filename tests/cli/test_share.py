"""`nsw export --share` and `nsw report --anonymous`: an answer for others, without what is not theirs."""

import getpass
import json
import os
import socket
import stat
import zipfile
from pathlib import Path

import pytest

from nsw.campaign.anonymous import kind_of
from nsw.engine import tables
from nsw.engine.folder import CampaignFolder
from nsw.engine.tables import put_rows
from nsw.tables import TABLES

TOKENS = [f"tok{n:02}Zq7{n * 7919:06}" for n in range(40)]
ENVIRONMENT, ARGUMENTS, PATHS, METADATA, PAGE = (TOKENS[n : n + 8] for n in range(0, 40, 8))
RUN = "data-x_n-1.baseline.r1"


@pytest.fixture
def nobody(monkeypatch):
    """A user whose name is no word of the language, on a machine with such a name."""
    monkeypatch.setattr(getpass, "getuser", lambda: "qadalove")
    monkeypatch.setattr(socket, "gethostname", lambda: "qnode7.example.org")


@pytest.fixture
def planted(nsw, home, nobody):
    """A campaign with tokens wherever a program, a person or a profiler could leave them."""
    data = f"/home/qadalove/{PATHS[0]}/x.h5"
    recipe = {
        "nsw": 1, "name": "t", "description": f"for {METADATA[0]}", "passes": ["baseline"],
        "resources": {"gpus": 0, "time": "1m"}, "matrix": {"data": [data], "n": [1, 2]},
        "app": {
            "command": f"echo {' '.join(ARGUMENTS)} f={{{{ n }}}} {METADATA[1]}",
            "env": {f"NAME{n}": token for n, token in enumerate(ENVIRONMENT[:4])}
            | {f"X{n}_TOKEN": token for n, token in enumerate(ENVIRONMENT[4:])},
            "setup": [f"true {METADATA[2]}"],
            "figures": {"f": {"regex": f"(?:{METADATA[3]})?f=(\\d+)", "unit": "s"}},
        },
        "check": [{"command": f"true {METADATA[4]}"}], "notify": ["true", METADATA[5]],
    }  # fmt: skip
    (home / "r.json").write_text(json.dumps(recipe))
    nsw("run", "r.json", "-s", "here", "--yes", exits=0)
    folder = CampaignFolder(next(Path("campaigns").iterdir()).absolute())
    run = next(path.name for path in sorted(folder.reports.iterdir()))
    facts = [("command", METADATA[6]), ("process_name", METADATA[7]), ("hostname", "qnode7"), *(
        (key, token) for key, token in zip(("os", "cpu_name", "argv", "user"), PAGE[:4], strict=True)
    )]  # fmt: skip
    rows = {
        "facts": [{"key": key, "text": f"{text} of {text}"} for key, text in facts],
        "functions": [
            {"name": f"f{n}", "file": f"/scratch/qadalove/{token}/f{n}.py", "self_s": 1.0, "host": "qnode7.example.org"}
            for n, token in enumerate(PATHS[1:])
        ],
        "source_metrics": [
            {"kernel": "k", "file": f"/home/qadalove/{token}/k.cu", "line": 3, "source": f"use({token});", "metric": "m"}
            for token in PAGE[4:]
        ],
        "nvtx_summary": [{"style": "pushpop", "name": "forward", "calls": 2, "host": "qnode7.example.org"}],
    }  # fmt: skip
    for table, table_rows in rows.items():
        put_rows(folder, table, run, table_rows)
    return folder


def contents(file):
    with zipfile.ZipFile(file) as share:
        assert share.testzip() is None
        return {name: share.read(name) for name in share.namelist()}


def test_none_of_forty_tokens_and_no_name_is_in_the_zip(planted, nsw):
    assert nsw("report").code == 0
    page = next(Path().glob("*.html")).read_text()
    assert all(token in page for token in (*ARGUMENTS, METADATA[1], PATHS[0]))  # else this would show nothing
    nsw("export", "--share", "s.zip", exits=0)
    files = contents("s.zip")
    assert {"answer.html", "answer.json", "answer.md", "README.txt", "tables.csv", "tables/runs.csv"} <= set(files)
    every = b"".join((*files.values(), *(name.encode() for name in files)))
    assert [token for token in TOKENS if token.encode() in every] == []
    for word in (b"qadalove", b"qnode7", b"/home", b"/scratch", bytes(planted.path)):
        assert word not in every
    assert b"x.h5" in files["tables/runs.csv"]
    assert b"f3.py" in files["tables/functions.csv"]
    assert b",host2," in files["tables/nvtx_summary.csv"]


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ("nvtx_summary", {"style": "pushpop", "name": f"load {ENVIRONMENT[4]}", "calls": 1}),
        ("gpu_summary", {"kind": "kernel", "name": f"k_{ENVIRONMENT[4]}(int)", "calls": 1, "total_ns": 5.0}),
    ],
)
def test_a_token_in_a_name_is_met_and_nothing_is_written_until_the_name_is_replaced(
    planted, nsw, monkeypatch, table, row
):
    monkeypatch.setenv("HF_TOKEN", ENVIRONMENT[4])
    put_rows(planted, table, next(path.name for path in sorted(planted.reports.iterdir())), [row])
    for words in (("export", "--share", "s.zip"), ("export", "--share", "s.zip", "--dry-run")):
        said = nsw(*words, exits=2)
        assert f"tables/{table}.csv, line 2: the value of HF_TOKEN" in said.err
        assert "--hide-kernels" in said.err
        assert ENVIRONMENT[4] not in said.err
        assert not Path("s.zip").exists()
    for words in (("--hide-kernels",), ("--rename", f"{ENVIRONMENT[4]}=a")):
        assert nsw("export", "--share", "s.zip", *words).code == 0
        assert ENVIRONMENT[4].encode() not in b"".join(contents("s.zip").values())
        Path("s.zip").unlink()


def test_a_name_that_was_not_replaced_is_met_and_a_person_decides(planted, nsw, monkeypatch):
    # a word of nsw's own index of tables, and here also a user
    monkeypatch.setattr(getpass, "getuser", lambda: "rows")
    said = nsw("export", "--share", "s.zip", exits=2)
    assert "the user name rows" in said.err
    assert "--rename WORD=WORD" in said.err
    assert not Path("s.zip").exists()
    assert nsw("export", "--share", "s.zip", "--rename", "rows=rows").code == 0


def test_a_dry_run_lists_what_goes_what_is_renamed_and_what_stays(planted, nsw, monkeypatch):
    monkeypatch.setattr(tables, "run_isolated", None)  # the copy is this process's own: a process a table took seconds
    said = nsw("export", "--share", "s.zip", "--dry-run", exits=0)
    goes, rest = said.out.partition("goes:\n")[2].split("renamed:\n")
    renamed, stays = rest.split("stays here:\n")
    assert "tables/runs.csv: " in goes
    assert "  user qadalove -> user1\n" in renamed
    assert "  host qnode7.example.org -> host2\n" in renamed
    assert "  source_metrics: source, in part\n" in stays
    assert not Path("s.zip").exists()


def test_the_page_alone_is_the_page_of_the_zip(planted, nsw):
    assert nsw("export", "--share", "s.zip").code == 0
    assert nsw("report", "--anonymous", "-o", "page.html").code == 0
    assert Path("page.html").read_bytes() == contents("s.zip")["answer.html"]


def test_the_answer_says_what_the_campaigns_own_says(nsw, home, nobody):
    assert nsw("run", "alexnet_scaling", "-s", "demo", "--yes", "--case", "gpus=1,2", "--case", "batch=8").code == 0
    before = json.loads(nsw("summarize", "--json").out)
    assert nsw("export", "--share", "s.zip").code == 0
    after = json.loads(contents("s.zip")["answer.json"])
    assert after["headline"] == before["headline"]
    assert after["findings"] == before["findings"]
    assert after["missing"] == before["missing"]


def test_a_link_in_the_place_of_the_file_is_replaced_and_the_mode_is_the_umasks(planted, nsw, tmp_path):
    target = tmp_path / "target"
    target.write_text("mine")
    Path("s.zip").symlink_to(target)
    before = os.umask(0o027)
    try:
        assert nsw("export", "--share", "s.zip").code == 0
    finally:
        os.umask(before)
    assert target.read_text() == "mine"
    assert not Path("s.zip").is_symlink()
    assert stat.S_IMODE(Path("s.zip").stat().st_mode) == 0o640
    said = nsw("export", "--share", "no/such/folder/s.zip", exits=2)
    assert "cannot be written" in said.err


def test_every_column_of_every_table_says_whether_it_is_shared():
    undeclared = [(t.name, c.name) for t in TABLES.values() for c in t.columns if kind_of(t.name, c.name) is None]
    assert undeclared == [], "nsw/tables/shared.csv lists how each column is shared; out: it stays"


REFUSED = [
    (["export", "--csv", "a", "--hide-kernels"], "belong to --share"),
    (["export", "--share", "a.zip", "--rename", "ada"], "expected OLD=NEW"),
    (["export", "--share", "a.zip", "--case", "n=1"], "--share takes the whole campaign"),
    (["report", "--hide-kernels"], "belong to --anonymous"),
    (["report", "--anonymous", "--timeline", "x"], "--anonymous takes the whole campaign"),
]


def test_options_that_do_not_go_together_are_refused(good, nsw):
    for words, what in REFUSED:
        said = nsw(*words, exits=2)
        assert what in said.err
