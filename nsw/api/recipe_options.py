"""Keyword arguments that change a recipe, as the options of the command line that they are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from nsw.errors import UsageError
from nsw.recipe.overrides import Overrides

Settings: TypeAlias = Mapping[str, Any]
Cases: TypeAlias = str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]
Names: TypeAlias = str | Sequence[str]
Files: TypeAlias = str | Path | Sequence[str | Path]


def overrides(
    settings: Settings | None,
    case: Cases | None,
    exclude: Cases | None,
    passes: Names | None,
    *,
    fit: bool,
    against: str | Path | None,
) -> Overrides:
    """What `--set`, `--case`, `--exclude`, `--pass`, `--fit` and `--against` would say.

    Raises:
        UsageError: A value is which a recipe cannot hold.
    """
    texts = tuple(f"{name}={_yaml(name, value)}" for name, value in (settings or {}).items())
    against = None if against is None else str(against)
    return Overrides(texts, names(passes or ()), _cases(case), _cases(exclude), fit, against)


def names(given: Names) -> tuple[str, ...]:
    """Names, one or several."""
    return (given,) if isinstance(given, str) else tuple(given)


def files(given: Files | None) -> list[Path] | None:
    """Paths, one or several."""
    if given is None:
        return None
    return [Path(given)] if isinstance(given, str | Path) else [Path(one) for one in given]


def _yaml(name: str, value: Any) -> str:
    """A value as YAML on one line, which JSON is."""
    try:
        return json.dumps(list(value) if isinstance(value, tuple | range) else value, allow_nan=False)
    except (TypeError, ValueError):
        raise UsageError(
            f"set: {name} is {value!r}, which a recipe cannot hold",
            hint="use numbers, text, true or false, and lists or mappings of these",
        ) from None


def _cases(given: Cases | None) -> tuple[str, ...]:
    if given is None:
        return ()
    some = [given] if isinstance(given, str | Mapping) else given
    return tuple(one if isinstance(one, str) else ",".join(f"{k}={v}" for k, v in one.items()) for one in some)
