"""The catalogue's data files: rows of nsw/metrics/data."""

from __future__ import annotations

import csv
import gzip
import io
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def rows(name: str) -> Iterator[dict[str, str]]:
    """The rows of a CSV file, each a map from column to text."""
    text = files("nsw.metrics").joinpath("data", name).read_text(encoding="utf-8")
    return csv.DictReader(io.StringIO(text, newline=""))


def unpacked(name: str) -> str:
    """The text of a compressed file."""
    return gzip.decompress(files("nsw.metrics").joinpath("data", name).read_bytes()).decode("ascii")
