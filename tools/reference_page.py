"""Writes docs/reference.md: every key of recipes and sites files, from the models that read them.

python tools/reference_page.py            writes the page
python tools/reference_page.py --check    says whether it is current
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsw.recipe.model import recipe_schema
from nsw.recipe.passes import AUTO, PROFILERS
from nsw.site.model import sites_schema
from nsw.site.names import schedulers, transports

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[1] / "docs" / "reference.md"
HEAD = """# Keys of recipes and sites files

Made from the models by `tools/reference_page.py`; a test keeps it current. `nsw schema recipe|sites` prints the same as
JSON Schema: with the line `# yaml-language-server: $schema=recipe.schema.json` on top of a file editors complete it.

Wherever text is taken, but in `app.setup`, `{{ }}` may stand: Jinja over the matrix's parameters, `case` (the case's
id) and `site` (`name`, `python`: the interpreter, `account`). Every value filled into a command stays one argument
whatever it holds.

A value reaches the program as it is written: `1e3`, `0x10` and `1.10` do too, though they compare and compute as the
numbers that they are. `010`, `1_000`, `1:30`, `yes` and `off` are texts (YAML 1.2). `true` and `false` are truth values
and reach it in lower case; 'True' in quotes is a text. What is computed (`{{ n * 2 }}`) is written as Python does it.
"""
NOT_YET = " (not yet)"
# a key -> the heading above it, by which menu and search of the site find the keys from there on
RECIPE_HEADINGS = {
    "nsw": "The recipe", "app": "The program: app", "app.env": "Environment variables of the program: app.env",
    "app.launcher": "Launcher: app.launcher", "app.build": "Build: app.build",
    "app.container": "Container: app.container", "app.figures": "Figures: app.figures",
    "matrix": "Matrix, repeats and warm-up runs", "passes": "Passes",
    "passes[].timeline": "Timeline: passes[].timeline", "passes[].host": "CPU profilers: passes[].host",
    "passes[].counters": "Hardware counters: passes[].counters", "conditions": "Conditions and resources",
    "collect": "Downloads and checks", "report": "Report",
    "report.steps": "Iterations and warm-up iterations: report.steps",
    "report.classes": "Kernel classes, gate and model", "canary": "Canary, failures, notify", "lock": "Lock",
    "sites": "Differences by site",
}  # fmt: skip
SITE_HEADINGS = {
    "description": "Scheduler and transport", "scratch": "Scratch, account and queue",
    "login_shell": "Modules, variables and profilers", "gpus": "Nodes and GPUs", "limits": "Limits",
    "canary": "Canary, price, notify",
}  # fmt: skip
# keys whose choices the plan may refuse -> those it takes
TAKEN: dict[str, frozenset[str]] = {
    "scheduler": frozenset(schedulers()),
    "transport.kind": frozenset(transports()),
    **{f"passes[].{kind}.tool": frozenset({AUTO, *tools}) for kind, tools in PROFILERS.items()},
}
KINDS = ("baseline", *PROFILERS)
UNREAD: frozenset[str] = frozenset()  # taken, and no module reads them
SECTIONS = (
    "What only one site needs, by site: laid over the rest of the recipe. Below `sites.NAME` stand the keys above,"
    " without `nsw`, `name`, `lock` and `sites`; none is required."
)
BELOW = """A sites file begins as a recipe does, with `nsw: 1`; `nsw init --site NAME` writes one. The
keys are those of a site:

```yaml
nsw: 1
sites:
  mycluster:
    scheduler: slurm
    transport: {kind: ssh, host: mycluster}
    scratch: /scratch/$USER/nsw
```

Of one name the first counts: `--sites`, `$NSW_SITES`, sites.yaml in the user's configuration folder (~/.config/nsw),
the built-in `local` and `demo`."""


def page() -> str:
    """The whole page."""
    recipe, sites = recipe_schema(), sites_schema()
    site = by_name(resolved(sites["properties"]["sites"], sites), sites)
    return "\n".join(
        [
            HEAD,
            "## Recipe",
            *tables(recipe, RECIPE_HEADINGS, recipe),
            "",
            "## Site",
            "",
            BELOW,
            *tables(site, SITE_HEADINGS, sites),
            "",
        ]
    )


def tables(schema: dict[str, Any], headings: dict[str, str], root: dict[str, Any]) -> list[str]:
    """Markdown tables of all keys below a schema, one below each heading."""
    lines = []
    for key, meaning, default in keys(schema, root):
        if key in headings:
            lines += ["", f"### {headings[key]}", "", "| key | meaning | default |", "|---|---|---|"]
        lines.append(f"| `{key}` | {meaning} | {default} |")
    return lines


def keys(
    schema: dict[str, Any], root: dict[str, Any], path: str = "", depth: int = 0
) -> Iterator[tuple[str, str, str]]:
    """Key, meaning and default of a map and of the maps in it."""
    for name, raw in schema.get("properties", {}).items():
        inner = resolved(raw, root)
        choices = f" ({', '.join(choice(path + name, c) for c in inner['enum'])})" if "enum" in inner else ""
        default = cell(raw["default"]) if is_plain(raw.get("default")) else ""
        meaning = str(raw.get("description") or inner.get("description") or "").replace("|", "\\|").replace("\n", " ")
        if path + name == "sites":
            yield path + name, SECTIONS, ""
            continue
        yield path + name, meaning + choices + (NOT_YET if is_later(path + name) else ""), default
        if depth < 4:
            yield from below(inner, root, path + name, depth)


def choice(key: str, value: object) -> str:
    """A value that a key may have, marked when the plan refuses it."""
    return f"{value}{NOT_YET if str(value) not in TAKEN.get(key, {str(value)}) else ''}"


def is_later(key: str) -> bool:
    """Whether nothing comes of a key in this version, or the plan refuses it."""
    kind = key.split(".")[1] if key.startswith("passes[].") else KINDS[0]
    return key in UNREAD or kind not in KINDS


def below(inner: dict[str, Any], root: dict[str, Any], path: str, depth: int) -> Iterator[tuple[str, str, str]]:
    """Keys of a value that is a map, a list of maps, or maps by name."""
    if inner.get("properties"):
        yield from keys(inner, root, f"{path}.", depth + 1)
    elif isinstance(inner.get("items"), dict):
        item = resolved(inner["items"], root)
        if item.get("properties"):
            yield from keys(item, root, f"{path}[].", depth + 1)
    elif by_name(inner, root).get("properties"):
        yield from keys(by_name(inner, root), root, f"{path}.NAME.", depth + 1)


def resolved(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """A schema with its reference followed; of alternatives the first that is a map or has choices."""
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rsplit("/", 1)[1]]
    for option in schema.get("anyOf", ()):
        found = resolved(option, root)
        if found.get("properties") or "enum" in found:
            return found
    return schema


def by_name(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """What stands below the names of a map."""
    named = schema.get("additionalProperties")
    values = [named] if isinstance(named, dict) else list(schema.get("patternProperties", {}).values())
    return resolved(values[0], root) if values else {}


def is_plain(value: Any) -> bool:
    """Whether a default is worth a cell: a scalar or a list of scalars, and not empty."""
    if isinstance(value, list):
        return bool(value) and not any(isinstance(v, dict | list) for v in value)
    return value is not None and value != "" and not isinstance(value, dict)


def cell(value: Any) -> str:
    """A default as a cell."""
    return f"`{json.dumps(value)}`".replace("|", "\\|")


def main(arguments: list[str]) -> int:
    """Write the page, or compare it."""
    if arguments == ["--check"]:
        return 0 if PAGE.read_text(encoding="utf-8") == page() else 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
