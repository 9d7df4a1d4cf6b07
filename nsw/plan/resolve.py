"""Values of a recipe that may be expressions -> plain values for one case, each worked out once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsw.errors import UsageError
from nsw.plan.model import Resources

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nsw.recipe.expressions import Expression


class Resolver:
    """Evaluates expressions, remembering what the same inputs gave."""

    def __init__(self) -> None:
        self._parsed: dict[str, Expression] = {}
        self._known: dict[tuple[str, tuple[Any, ...]], Any] = {}

    def parse(self, text: str) -> Expression:
        """The expression of a text."""
        found = self._parsed.get(text)
        if found is None:
            from nsw.recipe.expressions import Expression

            found = self._parsed[text] = Expression.parse(text)
        return found

    def value(self, value: Any, values: Mapping[str, Any]) -> Any:
        """A literal as it is; a text with `{{ }}` filled in."""
        if not isinstance(value, str) or "{" not in value:
            return value
        expression = self.parse(value)
        key = (value, tuple(repr(values.get(name)) for name in sorted(expression.names)))
        if key not in self._known:
            self._known[key] = expression.value(values)
        return self._known[key]


def resources(asked: Any, site: Any, values: Mapping[str, Any], resolver: Resolver) -> Resources:
    """The resources of one case, with what the site says where the recipe is silent.

    Args:
        asked: The recipe's `resources`.
        site: The site, for queue and account.
        values: What expressions may name.
        resolver: Evaluates them.
    """
    from nsw.recipe.units import parse_duration, parse_size

    def get(name: str) -> Any:
        return resolver.value(getattr(asked, name), values)

    gpus = _whole("gpus", get("gpus"), 0)
    per_node = site.gpus.per_node if isinstance(site.gpus.per_node, int) else None
    nodes = _whole("nodes", get("nodes"), -(-gpus // per_node) if per_node and gpus else 1)
    time, memory = get("time"), get("memory")
    return Resources(
        nodes=nodes,
        gpus=gpus,
        cpus_per_task=_whole("cpus_per_task", get("cpus_per_task"), None),
        memory_bytes=parse_size(memory) if isinstance(memory, str) else memory,
        time_s=int(parse_duration(time) if isinstance(time, str) else (time or 600)),
        exclusive=bool(get("exclusive")),
        queue=get("queue") or get("partition") or site.queue or site.partition,
        account=get("account") or site.account,
        qos=get("qos") or site.qos,
        gres=get("gres"),
        reservation=get("reservation"),
        constraint=get("constraint"),
        extra=tuple(asked.extra),
    )


def _whole(name: str, value: Any, default: Any) -> Any:
    if value is None:
        return default
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = -1
    if isinstance(value, bool) or number < 0 or number != float(value):
        raise UsageError(f"resources.{name} must be a whole number, 0 or more; it is {value!r}")
    return number
