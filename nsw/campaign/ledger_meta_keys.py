"""The keys of a campaign's ledger and their types: all that the table `meta` may hold is named here."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

from nsw.campaign.ledger_values import LATEST, parsed

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
_LONGEST: Final = 4096  # characters of a name or a path: others' ledgers are printed, too


@dataclass(frozen=True, slots=True)
class Key(Generic[T]):
    """A key of `meta`.

    Attributes:
        name: In the table.
        parse: Its text -> its value; raises ValueError, whose message follows the key's name.
        text: Its value -> its text.
        absent: The value when the ledger does not have the key.
    """

    name: str
    parse: Callable[[str], T]
    text: Callable[[T], str]
    absent: Callable[[], T]


def _name_or_path(text: str) -> str:
    if len(text) > _LONGEST:
        raise ValueError(f"is longer than {_LONGEST:,} characters")
    return text


def _text(name: str) -> Key[str]:
    return Key(name, _name_or_path, str, str)


def _maybe_text(name: str) -> Key[str | None]:
    return Key(name, lambda text: text or None, lambda value: value or "", lambda: None)


def _object(name: str) -> Key[dict[str, Any]]:
    return Key(name, lambda text: parsed(text, dict), json.dumps, dict)


def _shaped(value: object, shape: Any) -> Any:
    """JSON as types: `[str]`: texts; `(str, int)`: one of just these two; `{str: str}`: an object of texts."""
    if isinstance(shape, tuple) and isinstance(value, list) and len(value) == len(shape):
        return tuple(map(_shaped, value, shape))
    if isinstance(shape, list) and isinstance(value, list):
        return [_shaped(each, shape[0]) for each in value]
    if isinstance(shape, dict) and isinstance(value, dict):
        return {key: _shaped(each, shape[str]) for key, each in value.items()}
    if isinstance(shape, type) and isinstance(value, (float, int) if shape is float else shape):
        return value
    raise ValueError("has another type than nsw writes")


def _list(name: str, shape: Any) -> Key[Any]:
    return Key(name, lambda text: _shaped(parsed(text, list), [shape]), json.dumps, list)


def _counts(text: str) -> dict[str, int]:
    found = parsed(text, dict)
    if not all(isinstance(n, int) for n in found.values()):
        raise ValueError("are not numbers")
    return found


def _moment(text: str) -> float:
    try:
        when = float(text)
    except ValueError:
        when = -1.0
    if not 0 <= when < LATEST:
        raise ValueError("is not a time")
    return when


def _whole(text: str) -> int | None:
    if not text.isdecimal():
        raise ValueError("is not a number")
    return int(text)


def _number(name: str) -> Key[int]:
    return Key(name, lambda text: _whole(text) or 0, str, int)


def _is_yes(text: str) -> bool:
    return text == "yes"


def is_site(data: dict[str, Any]) -> bool:
    """Whether JSON has the parts of a site that nsw relies on; the objects among them may be absent."""
    transport = data.get("transport")
    texts = (data.get("name"), data.get("scheduler"), transport.get("kind") if isinstance(transport, dict) else None)
    objects = (data.get(key) for key in ("gpus", "limits", "profilers", "env"))
    return all(isinstance(text, str) for text in texts) and all(isinstance(part, dict | None) for part in objects)


VERSION: Final = _text("version")  # of the nsw that began the campaign
NAME: Final = _text("name")
SITE: Final = _text("site")
SITE_DATA: Final = _object("site_data")  # the site when the campaign began
SCRATCH: Final = _text("scratch")  # the campaign's folder on the site
CREATED: Final = Key("created", _moment, str, float)  # Unix seconds
CLEANED: Final = Key("cleaned", _moment, str, float)  # Unix seconds: when `nsw clean` removed its files; 0: never
NOTE: Final = _maybe_text("note")  # printed with everything that comes of the campaign
COLLECT: Final = _text("collect")  # tables | reports | everything
RECIPE: Final = _maybe_text("recipe")  # the file that the recipe came from
FIGURES_FROM: Final = _maybe_text("figures_from")  # the file that `nsw reread --recipe` took figures from since
# where a file or folder came from, and each name below it with its SHA-256
ORIGINS: Final[Key[list[tuple[str, list[tuple[str, str]]]]]] = _list("origins", (str, [(str, str)]))
RECORDED: Final = _object("recorded")  # choices of the lockfile that is run again, as in the file
PLACES: Final[Key[dict[str, str]]] = Key(  # key of `resources` -> its place in the recipe
    "places", lambda text: _shaped(parsed(text, dict), {str: str}), json.dumps, dict
)
PREPARED: Final = Key("prepared", _is_yes, lambda value: "yes" if value else "", bool)  # files are on the site
# tasks at the same time, when a person changed it
AT_A_TIME: Final[Key[int | None]] = Key(
    "at_a_time",
    lambda text: _whole(text) if text else None,
    lambda value: "" if value is None else str(value),
    lambda: None,
)
OWNED_BY: Final = _maybe_text("owner")  # the token by which this folder's nsw owns the campaign on its site
TAKEN_OVER: Final = _maybe_text("taken_over")  # who took the campaign over, as the site said when it refused this nsw
# submissions that the scheduler holds, since a person wants 0 tasks at a time
HELD: Final[Key[list[str]]] = _list("held", str)
STOP_AFTER: Final = Key("stop_after", _whole, str, lambda: None)  # failures after which nothing new is submitted
STOPPED: Final = _maybe_text("stopped")  # why nothing new is submitted
FAILED_BEFORE: Final = _number("failed_before")  # runs that had failed when a person last wanted to go on
PARTS: Final = _number("parts")  # how often jobs were added to the campaign
APP_FOLDER: Final = Key("app_folder", str, str, lambda: "app")  # of the application's newest files
# of the program: files with their SHA-256, which build of them, Unix seconds, jobs; the first has all other jobs
ProgramVersion: TypeAlias = tuple[dict[str, str], int, float, list[str]]
VERSIONS: Final[Key[list[ProgramVersion]]] = _list("versions", ({str: str}, int, float, [str]))
CALLS: Final = Key("calls", _counts, json.dumps, dict)  # how often each command of the scheduler was run


def withdrawals_of(task: str) -> Key[int]:
    """How often an attempt of this task was withdrawn and submitted again by itself."""
    return Key(f"submitted again {task}", lambda text: _whole(text) or 0, str, int)
