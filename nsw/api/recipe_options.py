"""Keyword arguments that change a recipe, as the options of the command line that they are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from nsw.errors import UsageError
from nsw.recipe.load import Overrides

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


def names(one_or_several: Names) -> tuple[str, ...]:
    """Names, one or several."""
    return (one_or_several,) if isinstance(one_or_several, str) else tuple(one_or_several)


def files(one_or_several: Files | None) -> list[Path] | None:
    """Paths, one or several."""
    if one_or_several is None:
        return None
    return [Path(one_or_several)] if isinstance(one_or_several, str | Path) else [Path(path) for path in one_or_several]


def _yaml(name: str, value: Any) -> str:
    """A value as YAML on one line, which JSON is."""
    try:
        return json.dumps(list(value) if isinstance(value, tuple | range) else value, allow_nan=False)
    except (TypeError, ValueError):
        raise UsageError(
            f"set: {name} is {value!r}, which a recipe cannot hold",
            hint="use numbers, text, true or false, and lists or mappings of these",
        ) from None


def _cases(cases: Cases | None) -> tuple[str, ...]:
    if cases is None:
        return ()
    conditions = [cases] if isinstance(cases, str | Mapping) else cases
    return tuple(
        condition if isinstance(condition, str) else ",".join(f"{k}={v}" for k, v in condition.items())
        for condition in conditions
    )
