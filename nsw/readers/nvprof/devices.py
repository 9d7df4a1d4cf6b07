"""How nvprof names a GPU: by name and number, in CUDA 5.0 by its number alone."""

from __future__ import annotations

import re
from functools import lru_cache

_ORDINAL = re.compile(r"\((\d{1,4})\)\Z")
_CUT_ORDINAL = re.compile(r"\(\d{0,3}\Z")  # text traces print 15 characters of it
_LONGEST_ORDINAL = 4


@lru_cache(1024)
def split_device(text: str) -> tuple[str | None, int | None]:
    """`Tesla V100-SXM2-16GB (0)` as name and ordinal; the ordinal is None where it is not printed."""
    text = text.strip().strip('"')
    if text in {"", "-"}:
        return None, None
    if text.isascii() and text.isdigit() and len(text) <= _LONGEST_ORDINAL:
        return None, int(text)  # of CUDA 5.0
    if (found := _ORDINAL.search(text)) is not None:
        return text[: found.start()].rstrip(), int(found[1])
    cut = _CUT_ORDINAL.search(text)
    return (text[: cut.start()].rstrip() if cut else text), None
