"""docs/formats.md says what the registry says, and the registry's proofs are there."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from nsw.readers.registry import FORMATS
from nsw.tables import TABLES

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tools" / "formats_page.py"


def test_the_committed_page_is_current():
    done = subprocess.run([sys.executable, PROGRAM, "--check"], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("format_", FORMATS, ids=lambda f: f.id)
def test_what_a_format_claims_is_there(format_):
    assert format_.proofs
    assert not [p for p in format_.proofs if not (ROOT / "tests" / p).is_file()]
    assert set(format_.tables) <= set(TABLES)
    assert importlib.util.find_spec(format_.module)


def test_every_fixture_proves_a_format():
    fixtures = {f"fixtures/h200/{p.name}" for p in (ROOT / "tests" / "fixtures" / "h200").iterdir() if p.is_file()}
    proofs = {p for f in FORMATS for p in f.proofs}
    assert {f for f in fixtures - proofs if not f.endswith((".md", ".py", ".cu"))} == set()


@pytest.mark.parametrize("format_", [f for f in FORMATS if f.id != "ncu-binary"], ids=lambda f: f.id)
def test_the_fixtures_of_a_format_are_of_it(format_, tmp_path):
    import gzip

    from nsw.readers import read

    for name in format_.proofs:
        path = ROOT / "tests" / name
        if not name.startswith("fixtures/"):
            continue
        if name.endswith(".gz"):
            packed, path = path, tmp_path / path.stem
            path.write_bytes(gzip.decompress(packed.read_bytes()))
        report = read(path)
        assert report.format == format_.id, name
        assert set(report.tables) <= set(format_.tables), name
