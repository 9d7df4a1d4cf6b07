"""The values that a parameter of a command may have here and now: recipes, sites, campaigns, runs, cases, tables.

It is asked at every Tab, in folders of all sizes: what it looks at is bounded, and it imports little.
"""

from __future__ import annotations

import os
import re
import stat
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from nsw.campaign.ledger import Ledger

Given: TypeAlias = "Mapping[str, Sequence[str]]"  # the values that are before the cursor, by parameter
_MOST_LOOKED_AT: Final = 500  # files and folders
_MOST_RUNS: Final = 500
_HEAD_BYTES: Final = 4096
_RECIPE: Final = re.compile(rb"^nsw:", re.MULTILINE)
_SITES: Final = re.compile(rb"^sites:", re.MULTILINE)
_APP: Final = re.compile(rb"^app:", re.MULTILINE)
_AGAIN: Final = ("failed", "lost", "cancelled")


def values(command: str, parameter: str, given: Given, begun: str) -> list[str]:
    """The values that begin as what is typed; none where files are the answer, or nobody can know."""
    find = _BY_PARAMETER.get(f"{command} {parameter}") or _BY_PARAMETER.get(parameter)
    if find is None:
        return []
    already = set(given.get(parameter, ()))
    return [value for value in find(given, begun) if value.startswith(begun) and value not in already]


def _recipes(_: Given, begun: str) -> Iterator[str]:
    """Recipes in the folder that is typed and in those right below it, and the shipped ones by name."""
    stem = begun[: len(begun) - len(begun.rsplit("/", 1)[-1])]
    here = Path(stem).expanduser() if stem else Path()
    for file in _yaml_files(here):
        name = stem + file.relative_to(here).as_posix()
        if _is_recipe(file):
            yield f"./{name}" if name.startswith("-") else name
    if not stem:
        from nsw.resources import recipes_folder

        yield from (file.name for file in sorted(recipes_folder().glob("*.yaml")))


def _shipped(_: Given, __: str) -> Iterator[str]:
    """The shipped recipes, by name."""
    from nsw.resources import recipes_folder

    yield from (file.stem for file in sorted(recipes_folder().glob("*.yaml")))


def _yaml_files(folder: Path) -> Iterator[Path]:
    looked = islice(folder.iterdir(), _MOST_LOOKED_AT)
    seen = sorted(entry for entry in looked if not entry.name.startswith("."))
    yield from (entry for entry in seen if entry.suffix in {".yaml", ".yml"} and entry.is_file())
    left = _MOST_LOOKED_AT
    for entry in seen:
        if entry.is_dir() and left > 0:
            below = list(islice(_entries(entry), left))
            left -= len(below)
            yield from sorted(f for f in below if f.suffix in {".yaml", ".yml"})


def _entries(folder: Path) -> Iterator[Path]:
    try:
        yield from folder.iterdir()
    except OSError:
        return


def _is_recipe(file: Path) -> bool:
    try:
        # a FIFO would wait for its other end; O_NONBLOCK is nothing to a file
        with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:  # noqa: PTH123
            head = stream.read(_HEAD_BYTES) if stat.S_ISREG(os.fstat(stream.fileno()).st_mode) else b""
    except OSError:
        return False
    return bool(_RECIPE.search(head)) and (not _SITES.search(head) or bool(_APP.search(head)))


def _data(file: Path) -> Any:
    """What a YAML file holds, within the limits of size, depth and aliases that every recipe has.

    Raises:
        OSError, ValueError, NswError: It cannot be read.
    """
    from nsw.recipe.document import LARGEST, parse

    with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:  # noqa: PTH123
        return parse(stream.read(LARGEST + 1).decode(), str(file)).data


def _sites(given: Given, _: str) -> Iterator[str]:
    from nsw.errors import NswError
    from nsw.site.names import BUILTIN, sources

    known = sources([Path(name).expanduser() for name in given.get("sites", ())])
    for source in sorted((one for one in known if not one.unsafe), key=lambda one: one.path == BUILTIN):
        try:
            found = _data(source.path).get("sites")
        except (OSError, NswError, AttributeError, ValueError):
            continue
        yield from (str(name) for name in found or ())


def _passes(given: Given, _: str) -> Iterator[str]:
    """The names of the passes of the recipe on the command line: `- baseline`, `- timeline: {name: x}`."""
    from nsw.resources import recipes_folder

    named = Path(given["recipe"][-1]).expanduser()
    file = named if named.exists() else recipes_folder() / named.with_suffix(".yaml").name
    if not _is_recipe(file):
        return
    for entry in _data(file).get("passes") or ["baseline"]:
        kind, keys = next(iter(entry.items())) if isinstance(entry, dict) else (entry, None)
        yield str((keys or {}).get("name") or kind)


def _campaigns(given: Given, _: str) -> list[str]:
    from nsw.campaign import folder as folders

    return [folder.id for folder in folders.existing(_root(given))]


def _root(given: Given) -> Path:
    from nsw.campaign import folder as folders

    return folders.root(Path(given["root"][-1]).expanduser() if given.get("root") else None)


def _of_campaign(
    ask: Callable[[Ledger, str], Iterable[str]],
) -> Callable[[Given, str], list[str]]:
    """Names that the campaign of the command line knows."""

    def find(given: Given, begun: str) -> list[str]:
        from nsw.campaign import folder as folders
        from nsw.campaign.ledger import Ledger

        named = given.get("campaign") or given.get("named")
        folder = folders.find(_root(given), named[-1] if named else None)
        with Ledger(folder.ledger, read_only=True) as ledger:
            return list(ask(ledger, begun))

    return find


def _runs(ledger: Ledger, begun: str) -> list[str]:
    return [*(build.id for build in ledger.builds()), *ledger.names(begun, _MOST_RUNS)]


def _to_retry(ledger: Ledger, begun: str) -> list[str]:
    return ledger.names(begun, _MOST_RUNS, states=_AGAIN)


def _cases(ledger: Ledger, begun: str) -> list[str]:
    return ledger.names(begun, _MOST_RUNS, of="case_id")


def _tables(_: Given, __: str) -> list[str]:
    from nsw.tables.schema import TABLES

    return list(TABLES)


def _read_tables(given: Given, begun: str) -> list[str]:
    from nsw.cli.reading_kernels import COMPUTED

    return [*_tables(given, begun), *COMPUTED]


def _all_tables(given: Given, begun: str) -> list[str]:
    from nsw.present.flat_rows import FLAT

    return list(dict.fromkeys((*FLAT, *_tables(given, begun))))


def _metric_names(_: Given, begun: str) -> list[str]:
    """Portable metrics and groups; what is begun as a name of ncu goes on as one."""
    from nsw.metrics import catalogue, groups, ncu_names

    return ncu_names.base_names() if "__" in begun else [*groups(), *catalogue()]


def _chips(_: Given, __: str) -> list[str]:
    from nsw.metrics.catalogue import chips

    return list(chips())


_BY_PARAMETER: Final[dict[str, Callable[[Given, str], Iterable[str]]]] = {
    "recipe": _recipes,
    "site": _sites,
    "passes": _passes,
    "campaign": _campaigns,
    "named": _campaigns,
    "run": _of_campaign(_runs),
    "runs": _of_campaign(_to_retry),
    "case": _of_campaign(_cases),
    "table": _tables,
    "read table": _read_tables,
    "summarize table": _all_tables,
    "names": _metric_names,
    "chip": _chips,
    "action": lambda _given, _begun: ["check"],
    "name": _sites,
    "shipped": _shipped,
}
