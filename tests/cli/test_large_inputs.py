"""Files of strangers that are much larger than nsw writes them: bounded in time and memory, with a word about it."""

import sqlite3
from contextlib import closing

import pytest

from nsw.cli import looking
from nsw.engine.folder import CampaignFolder
from nsw.engine.recipe_lock import locked_recipe, locked_text, read_locked
from nsw.errors import MOST_SHOWN, Diagnostic, InputError, first_of
from nsw.present.terminal import TextTable, console
from nsw.recipe import load, matrix
from nsw.recipe.document import LARGEST, MOST_KEYS, parse
from nsw.recipe.load import MOST_SITES, load_recipe_text
from nsw.site.load import read_sites
from tests.cli.conftest import HEAD
from tests.guard import ends

RECIPE = HEAD + "app: {command: echo}\n"


def faults_of(text):
    with pytest.raises(InputError) as caught:
        load_recipe_text(text)
    return caught.value.diagnostics


def test_of_a_lock_of_gigabytes_only_what_a_recipe_may_have_is_read(tmp_path):
    folder = CampaignFolder(tmp_path)
    with folder.recipe.open("wb") as file:
        file.truncate(3 << 30)
    assert len(locked_text(folder)) == 4 * LARGEST + 4
    for read in (locked_recipe, read_locked):
        with pytest.raises(InputError, match=f"more than {LARGEST} characters"):
            read(folder)


def test_a_line_of_megabytes_of_a_log_is_cut_and_its_rest_is_counted(good, nsw):
    (output,) = good.glob("reports/case.baseline.r1/stdout")
    output.write_bytes(b"x" * (64 << 20))
    said = nsw("logs", "case.baseline.r1")
    assert "--- stdout (its last 64.00 MiB)\n" in said.out
    assert f"x… ({(64 << 20) - (1 << 16):,} more bytes)\n" in said.out
    assert len(said.out) < 70_000


def test_of_very_many_lines_of_a_log_the_last_are_shown(good, nsw, monkeypatch):
    monkeypatch.setattr(looking, "_MOST_LINES", 3)
    (output,) = good.glob("reports/case.baseline.r1/stdout")
    output.write_bytes(b"1\r\n2\r3\n4\n\n")
    for words in (("-n", "0"), ("-n", "10")):
        assert "--- stdout (last 3 of 5 lines)\n3\n4\n\n" in nsw("logs", "case.baseline.r1", *words).out
    assert "--- stdout (last 2 of 5 lines)\n4\n\n" in nsw("logs", "case.baseline.r1", "-n", "2").out


@pytest.mark.parametrize(
    "words",
    ["word " * 600_000, "x" * 3_000_000, "a" + " " * 3_000_000 + "b"],
    ids=["words", "a word", "spaces"],  # pytest 8 hands the whole text to programs, as PYTEST_CURRENT_TEST
)
def test_words_of_megabytes_in_a_ledger_are_cut_in_tables(good, nsw, words):
    with closing(sqlite3.connect(good / "campaign.db")) as db:
        db.execute("UPDATE tasks SET state = 'failed', detail = ? WHERE id = 'case.baseline.r1'", (words,))
        db.commit()
    with ends():
        for command in ("status", "summarize"):
            assert nsw(command, good.name).code in {0, 1}


def test_a_cell_of_a_table_says_how_much_of_it_is_not_shown(capsys):
    console().print(TextTable(None, ["why"], [["x" * 25_000], ["y" * 20_000]], wide="why"))
    out = "".join(capsys.readouterr().out.split())
    assert "x" * 20_000 + "…(5,000morecharacters)" in out
    assert "y" * 20_000 in out


def test_spaces_at_the_end_of_lines_are_printed_to_their_end(capsys):
    with ends():
        console().print("a" + " " * 2_000_000 + "b\nc" + " " * 100 + "\n", soft_wrap=True)
    assert capsys.readouterr().out.endswith("b\nc\n\n")


def test_a_map_of_too_many_keys_is_refused():
    few = "".join(f"k{n}: 1\n" for n in range(MOST_KEYS))
    assert len(parse(few, "r.yaml").data) == MOST_KEYS
    with pytest.raises(InputError, match=f"a map has more than {MOST_KEYS:,} keys") as caught:
        parse(few + "more: 1\n", "r.yaml")
    assert caught.value.diagnostics[0].mark.line == MOST_KEYS + 1


@pytest.mark.parametrize("text", [
    RECIPE + "".join(f"k{n}: 1\n" for n in range(20_000)),
    RECIPE + "k: 1\n" * 20_000,
    HEAD + "app:\n  command: echo\n  figures:\n" + "".join(f"    f{n}: {{}}\n" for n in range(20_000)),
    HEAD.replace("[baseline]", "\n" + "- baseline\n" * 20_000) + "app: {command: echo}\n",
], ids=["unknown", "twice", "figures", "passes"])  # fmt: skip
def test_of_very_many_faults_the_first_are_shown_and_the_rest_is_counted(text):
    with ends():
        faults = faults_of(text)
    assert len(faults) == MOST_SHOWN + 1
    assert "more like these" in faults[-1].message
    assert faults[0].mark is not None


def test_as_many_faults_as_are_shown_stay_as_they_are():
    few = [Diagnostic(str(n)) for n in range(MOST_SHOWN)]
    assert first_of(few) == tuple(few)
    assert first_of([*few, Diagnostic("x")])[-1].message.startswith("there are at least 1 more")


def test_very_many_parameters_are_read_to_their_end():
    text = RECIPE.replace("echo", "'echo {{ k0 }}'") + "matrix:\n" + "".join(f"  k{n}: [1]\n" for n in range(5_000))
    with ends():
        assert len(load_recipe_text(text).cases) == 1


def test_too_many_sites_are_refused(tmp_path):
    text = "sites:\n" + "".join(f"  s{n}: {{}}\n" for n in range(MOST_SITES + 1))
    assert "there are more than 1,000 sites" in faults_of(RECIPE + text)[0].message
    (tmp_path / "sites.yaml").write_text("nsw: 1\n" + text)
    with pytest.raises(InputError, match="there are more than 1,000 sites"):
        read_sites(tmp_path / "sites.yaml")


def test_excludes_that_take_too_many_comparisons_are_refused(monkeypatch):
    monkeypatch.setattr(matrix, "_MOST_COMPARISONS", 11)
    text = RECIPE + "matrix:\n  a: [1, 2, 3]\n  exclude: [{a: [4, 5]}, {a: 1}]\n"
    assert len(load_recipe_text(text).cases) == 2
    (fault,) = faults_of(text.replace("[4, 5]", "[4, 5, 6]"))
    assert "4 values to exclude in 3 cases take more than 11 comparisons" in fault.message
    assert fault.mark.line == 8


def test_very_many_warnings_are_counted():
    text = RECIPE + "matrix:\n  a: [1]\n  exclude:\n" + "    - {a: 2}\n" * 300
    warnings = load.load_recipe_text(text).warnings
    assert len(warnings) == MOST_SHOWN + 1
