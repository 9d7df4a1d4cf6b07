"""The one place where values become shell text: nothing that a value holds can break out of its word or its comment."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from nsw.errors import UsageError
from nsw.plan.model import CHOSEN

if TYPE_CHECKING:
    from collections.abc import Iterable


def quote(value: object) -> str:
    """One shell word, whatever the value holds."""
    text = str(value)
    if text == CHOSEN:
        return '"${nsw_chosen[@]}"'
    if "\0" in text:
        raise UsageError(f"a NUL character cannot be passed to a program: {text!r}")
    return shlex.quote(text)


def quote_all(values: Iterable[object]) -> str:
    """Several shell words, separated by spaces."""
    return " ".join(quote(v) for v in values)


def comment(value: object) -> str:
    """Text that is safe behind `#`: on one line, without control characters."""
    return re.sub(r"[\x00-\x1f\x7f\x85\u2028\u2029]+", " ", str(value)).strip()
