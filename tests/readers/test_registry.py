"""What the registry says of a format, so that its reader need not be loaded, is what its reader does."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from nsw.readers.model import Sample
from nsw.readers.registry import FORMATS
from nsw.readers.untrusted_files import unpack_beginning
from tests.fuzz import seeds

REPORTS = [(format_id, name) for format_id, reports in seeds.make().items() for name in reports]


@pytest.mark.parametrize(("format_id", "name"), REPORTS)
def test_no_reader_is_surer_than_the_registry_says(tmp_path, format_id, name):
    data = seeds.make()[format_id][name]
    if not isinstance(data, bytes):
        pytest.skip("a folder")
    path = Path(tmp_path, name)
    for text in (data, b"\xef\xbb\xbf\r\n" + data):
        path.write_bytes(text)
        sample = Sample(path)
        for format_ in FORMATS:
            if not format_.folder:
                sure = importlib.import_module(format_.module).sniff(sample)
                head = unpack_beginning(sample.head) if format_.unpacks else sample.head
                most = format_.max_certainty if format_.matches_beginning_or_suffix(head, sample.suffix) else 0
                assert sure <= most, format_.id


def test_readers_that_cannot_be_meant_are_not_loaded():
    report = seeds.FIXTURES / "naive-details.csv"
    code = (
        "import sys; from pathlib import Path; from nsw.readers import read; assert read(Path(sys.argv[1])).tables\n"
        "print([m for m in sys.modules if m.startswith(('nsw.readers.nvprof', 'nsw.readers.nsys'))])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(report)], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_a_packed_report_is_shown_to_readers_once_it_is_unpacked():
    report = seeds.FIXTURES / "tiled.sqlite.gz"
    code = (
        "import sys; from pathlib import Path; from nsw.readers import read; assert read(Path(sys.argv[1])).tables\n"
        "print([m for m in sys.modules if m.startswith(('nsw.readers.ncu', 'nsw.readers.pytorch', 'nsw.readers.host'))])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(report)], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"
