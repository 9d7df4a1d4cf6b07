"""Names of CUDA API calls: by callback id, and whether a name is one."""

from __future__ import annotations

import csv
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Api = Literal["runtime", "driver"]

_VERSION: Final = re.compile(r"_v\d+\Z")


def api_name(api: Api, cbid: Any) -> str:
    """The call behind a callback id; an id that CUDA 12.5 does not know is named by its number."""
    return _calls().get((api, cbid), f"cbid {cbid}")


@cache
def is_call(name: str) -> bool:
    """Whether this is the name of a CUDA runtime or driver call, not of a kernel."""
    return name.startswith("cu") and _VERSION.sub("", name) in _names()


@cache
def _names() -> frozenset[str]:
    return frozenset(_VERSION.sub("", name) for name in _calls().values())


@cache
def _calls() -> Mapping[tuple[str, int], str]:
    text = files("nsw.readers").joinpath("data/cuda_cbid.csv").read_text(encoding="ascii")
    return {(row["api"], int(row["cbid"])): row["name"] for row in csv.DictReader(text.splitlines())}
