"""The demo's recordings, for tests that need a real timeline."""

from pathlib import Path
from tempfile import TemporaryDirectory

from nsw.demo import extract, find


def alexnet(case: str) -> bytes:
    """The nsys export of AlexNet in a case that was recorded, such as `g1-b8`: one GPU, a batch of 8."""
    with TemporaryDirectory() as folder:
        report, _ = extract(find(f"alexnet-{case}"), Path(folder))
        return report.read_bytes()
