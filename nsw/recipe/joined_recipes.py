"""Two recipes of one campaign as one: the cases and passes of both, where each run would be the same by either."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nsw.recipe.model import Recipe
from nsw.recipe.parameters import Matrix
from nsw.recipe.pass_base import FREE, Model
from nsw.recipe.passes import PassEntry
from nsw.recipe.validate import kind_at

if TYPE_CHECKING:
    from collections.abc import Iterable


def joined(
    before: Mapping[str, Any], now: Mapping[str, Any], added: Iterable[Mapping[str, Any]]
) -> dict[str, Any] | None:
    """The recipe `now` with the cases and passes of `before` kept in front; None where it would change a run.

    Args:
        before: The recipe that a campaign was made with, resolved, as data.
        now: The recipe that adds to it, likewise.
        added: The parameters of the cases that `before` does not have.
    """
    old, new = before["matrix"], now["matrix"]
    if _parameters(old).keys() != _parameters(new).keys() or _deciding(before, Recipe) != _deciding(now, Recipe):
        return None
    of_old = {_name(entry): _unlimited(entry) for entry in before["passes"]}
    if any(of_old.get(_name(entry), _unlimited(entry)) != _unlimited(entry) for entry in now["passes"]):
        return None
    passes = {_name(entry): entry for entry in (*before["passes"], *now["passes"])}
    include = [*old.get("include", ()), *map(dict, added)]
    return {**now, "matrix": {**old, "include": include}, "passes": list(passes.values())}


def _parameters(matrix: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values for name, values in matrix.items() if name not in Matrix.model_fields}


def _deciding(data: Mapping[str, Any], model: type[Model]) -> dict[str, Any]:
    """The keys that decide how a run is done; files and their contents have hashes in the lock."""
    free = {field.alias or name for name, field in model.model_fields.items() if FREE in field.metadata}
    return {key: _below(value, kind_at(model, (key,))) for key, value in data.items() if key not in free}


def _below(value: Any, kind: Any) -> Any:
    is_map_of_model = isinstance(kind, type) and issubclass(kind, Model) and isinstance(value, Mapping)
    return _deciding(value, kind) if is_map_of_model else value


def _name(entry: Mapping[str, Any]) -> str:
    """A pass's name: its own, else its kind."""
    ((kind, options),) = entry.items()
    return str((options or {}).get("name", kind))


def _unlimited(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A pass without its time limit."""
    return _deciding({kind: options or {} for kind, options in entry.items()}, PassEntry)
