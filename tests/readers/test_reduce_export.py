"""The file that reduces exports on a site: what is read of its output equals what is read of the export."""

from __future__ import annotations

import ast
import gzip
import lzma
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from nsw.readers import Options, read
from nsw.readers.messages import without_hint_of_early_end
from nsw.readers.nsys import reduce_export
from nsw.tables import TABLES, full_rows

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
EXPORTS = sorted([*SHARED.glob("recorded/*/*-g[14]-b128.sqlite"), *SHARED.glob("corpus/nsys-sqlite/*.sqlite")])
GENERATIONS = ["2020", "2022", "2023", "2025", "2026"]
ASKED = [None, frozenset(TABLES)]  # None: what is read by default, the phases included; all: the traces too


def reduced(export: Path, folder: Path) -> Path:
    """Unpacked, under the export's own name."""
    packed = folder / "packed.xz"
    reduce_export.reduce_export(str(export), str(packed))
    out = folder / "reduced" / export.name
    out.parent.mkdir(exist_ok=True)
    out.write_bytes(lzma.decompress(packed.read_bytes()))
    return out


def all_of(path: Path) -> dict[frozenset[str] | None, object]:
    """Every table's rows and what is said of the file, by what was asked for."""
    found: dict[frozenset[str] | None, object] = {}
    for asked in ASKED:
        report = read(path, Options(asked))
        tables = {name: list(full_rows(name, data)) for name, data in report.tables.items()}
        # a reduced export has no output of the program, in which a failure would stand
        said = [without_hint_of_early_end("nsys", problem) for problem in report.problems]
        problems = [(p.severity, p.message.replace(str(path.parent), ""), p.fix) for p in said]
        found[asked] = (tables, problems, report.tool_version, report.format)
    return found


def equal(export: Path, folder: Path) -> dict[frozenset[str] | None, object]:
    whole, part = all_of(export), all_of(reduced(export, folder))
    for asked, found in whole.items():
        assert part[asked] == found, asked
    return whole


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_generation_gives_the_same_rows(typical_database, generation, tmp_path):
    tables = equal(typical_database(generation), tmp_path)[None][0]
    assert {"gpu_summary", "api_summary", "nvtx_summary", "nvtx_gpu_summary", "phases"} <= tables.keys()


def test_rows_of_several_blocks_and_values_that_are_no_integers_stay_as_they_are(
    typical_database, tmp_path, monkeypatch
):
    monkeypatch.setattr(reduce_export, "_ROWS", 2)
    export = tmp_path / "odd.sqlite"
    shutil.copy(typical_database("2025"), export)
    with sqlite3.connect(export) as db:
        db.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET registersPerThread = 0.5, gridX = -1, blockX = 1 << 40")
        db.execute("UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET correlationId = NULL, end = NULL WHERE rowid = 2")
    db.close()
    equal(export, tmp_path)
    with sqlite3.connect(tmp_path / "reduced" / export.name) as db:
        kinds = dict(
            db.execute("SELECT m.name, c.type FROM sqlite_master m, pragma_table_info(m.name) c GROUP BY m.name")
        )
    assert kinds["CUPTI_ACTIVITY_KIND_KERNEL"] != kinds["CUPTI_ACTIVITY_KIND_RUNTIME"] == reduce_export.PACKED
    assert kinds["NVTX_EVENTS"] == reduce_export.PACKED


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE NVTX_EVENTS SET text = 'its own', textId = 7777",  # that StringIds lacks
        "UPDATE NVTX_EVENTS SET textId = NULL, text = CAST(x'ff41fe' AS TEXT) WHERE rowid > 2",
        "UPDATE NVTX_EVENTS SET text = x'00' WHERE textId IS NULL",
        "ALTER TABLE NVTX_EVENTS RENAME COLUMN textId TO x",
        "DROP TABLE StringIds",
    ],
)
def test_texts_of_ranges_stay_as_they_are(typical_database, change, tmp_path):
    export = tmp_path / "odd.sqlite"
    shutil.copy(typical_database("2025"), export)
    with sqlite3.connect(export) as db:
        db.execute("UPDATE NVTX_EVENTS SET text = 'of ' || rowid % 3 WHERE textId IS NULL")
        db.execute(change)
    db.close()
    equal(export, tmp_path)


@pytest.mark.parametrize("cell", ["x''", "x'01'", "x'0301'", "x'020102030405'", "'text'", "5", "NULL"])
def test_a_packed_table_that_is_damaged_is_reported(typical_database, cell, tmp_path):
    part = reduced(typical_database("2025"), tmp_path)
    with sqlite3.connect(part) as db:
        db.execute(f"UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET start = {cell}")
    db.close()
    assert any("CUPTI_ACTIVITY_KIND_RUNTIME" in problem.message for problem in read(part).problems)


def test_a_real_timeline_of_an_h200_gives_the_same_rows(tmp_path):
    export = tmp_path / "tiled.sqlite"
    export.write_bytes(gzip.decompress((ROOT / "tests/fixtures/h200/tiled.sqlite.gz").read_bytes()))
    equal(export, tmp_path)


@pytest.mark.parametrize("export", EXPORTS, ids=lambda path: path.name)
def test_recorded_and_published_exports_give_the_same_rows(export, tmp_path):
    if not export.stat().st_size:
        pytest.skip("an empty file")
    equal(export, tmp_path)


def test_the_phases_are_among_what_is_equal(tmp_path):
    export = SHARED / "recorded" / "alexnet-4xH200" / "alexnet-g4-b128.sqlite"
    if not export.exists():
        pytest.skip("the recorded exports are not here")
    tables = all_of(reduced(export, tmp_path))[None][0]
    assert {row["phase"] for row in tables["phase_summary"]} >= {"steady"}
    assert tables["phases"]


def test_it_is_smaller_and_holds_no_environment_of_the_user(typical_database, tmp_path):
    export = tmp_path / "env.sqlite"
    shutil.copy(typical_database("2025"), export)
    with sqlite3.connect(export) as db:
        db.execute("CREATE TABLE IF NOT EXISTS TARGET_INFO_SYSTEM_ENV (globalVid, devStateName, name, nameEnum, value)")
        db.execute("INSERT INTO TARGET_INFO_SYSTEM_ENV (name, value) VALUES ('TOKEN', 'hunter2-of-the-environment')")
        db.execute("CREATE TABLE META_DATA_CAPTURE (name TEXT, value TEXT)")
        db.execute("INSERT INTO META_DATA_CAPTURE VALUES ('ENV', 'hunter2-of-the-capture')")
        db.execute("INSERT INTO StringIds VALUES (999999, 'hunter2-that-no-row-names')")
    db.close()
    part = reduced(export, tmp_path)
    assert b"hunter2" in export.read_bytes()
    assert b"hunter2" not in part.read_bytes()
    assert (tmp_path / "packed.xz").stat().st_size < export.stat().st_size


def test_texts_that_are_no_utf8_and_deleted_rows_stay_as_they_are(typical_database, tmp_path):
    export = tmp_path / "odd.sqlite"
    shutil.copy(typical_database("2025"), export)
    with sqlite3.connect(export) as db:
        db.execute("UPDATE StringIds SET value = CAST(x'ff41fe' AS TEXT) WHERE id = (SELECT min(nameId) FROM"
                   " CUPTI_ACTIVITY_KIND_RUNTIME)")  # fmt: skip
        db.execute("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE rowid = 1")
    db.close()
    equal(export, tmp_path)


def test_a_file_that_is_none_is_refused_and_nothing_is_left(tmp_path):
    for name, content in (("empty", b""), ("text", b"no database at all"), ("cut", b"SQLite format 3\0" + b"\1" * 100)):
        bad = tmp_path / name
        bad.write_bytes(content)
        done = subprocess.run([sys.executable, reduce_export.__file__, bad, tmp_path / "out.gz"],
                              capture_output=True, text=True, check=False)  # fmt: skip
        assert (done.returncode, done.stdout) == (1, "")
        assert "cannot be reduced" in done.stderr
        assert "Traceback" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cut", "empty", "text"]


def test_it_imports_the_standard_library_alone():
    tree = ast.parse(Path(reduce_export.__file__).read_text(), feature_version=(3, 6))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names


@pytest.mark.parametrize("version", ["3.6", "3.7", "3.8", "3.9", "3.13"])
def test_the_pythons_of_sites_run_it(version, typical_database, tmp_path):
    """Where one is installed, as for RHEL 8 with Python 3.6."""
    found = [f"python{version}", *map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))]
    python = next((path for path in found if _runs(path, version)), None)
    if python is None:
        pytest.skip(f"there is no Python {version} here")
    export, out = typical_database("2025"), tmp_path / "out.gz"
    subprocess.run([python, "-I", reduce_export.__file__, export, out], check=True, capture_output=True)
    mine = tmp_path / "mine.gz"
    reduce_export.reduce_export(str(export), str(mine))
    unpacked = tmp_path / "unpacked" / export.name
    unpacked.parent.mkdir()
    unpacked.write_bytes(gzip.decompress(out.read_bytes()))
    assert all_of(unpacked) == all_of(export)


def _runs(python: str, version: str) -> bool:
    try:
        done = subprocess.run([python, "-c", "import sqlite3, sys; print('%d.%d' % sys.version_info[:2])"],
                              capture_output=True, text=True, check=False)  # fmt: skip
    except OSError:
        return False
    return done.stdout.strip() == version
