"""Environment variables whose values are secret: which ones, how a file gives them, how they are written down.

A value is secret when the variable's name looks like it, when it has a secret in it (a URL with a password), or when it
is marked `{secret: VALUE}`. nsw hands it to the job in a file that only its owner can read; in everything else that nsw
writes, `{secret: {from_env: NAME}}` stands for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import AfterValidator, PlainSerializer

from nsw.recipe.fields import Parsed, Variable, template, text, variable
from nsw.recipe.units import Fault, within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that is shown nowhere: the text itself, or the variable of nsw's own environment that holds it."""

    value: str = field(default="", repr=False)
    from_env: str | None = None


class _Plain(str):  # noqa: SLOT000  a text with a mark, gone once the map is read
    """A text that is no secret, whatever its variable is called."""


def _value(parse: Callable[[object], str], value: object) -> str | Secret:
    if not isinstance(value, dict) or not {"secret", "plain"}.intersection(value):
        return parse(value)
    if len(value) > 1:
        raise Fault("a variable has one value, in a map with one key: 'secret' or 'plain'")
    if "plain" in value:
        return _Plain(within("plain", parse, value["plain"]))
    inner = value["secret"]
    if not isinstance(inner, dict):
        return Secret(within("secret", parse, inner))
    if list(inner) != ["from_env"]:
        raise Fault("expected text or {from_env: NAME}, found a map", hint="such as {secret: {from_env: HF_TOKEN}}")
    return Secret(from_env=within("secret", partial(within, "from_env", _source), inner["from_env"]))


def _source(value: object) -> str:
    """The name of the variable that holds a secret; what is none may be the secret itself, put there by mistake."""
    try:
        return variable(value)
    except Fault as fault:
        raise Fault(
            "from_env takes the name of an environment variable; this is not such a name",
            hint="write {secret: VALUE} for the value itself" if isinstance(value, str) else fault.hint,
        ) from None


def _by_name(values: dict[str, str | Secret]) -> dict[str, str | Secret]:
    """The values, those secret by their variable's name or by what is in them marked as such."""
    marked: dict[str, str | Secret] = {}
    for name, value in values.items():
        is_secret = not isinstance(value, Secret | _Plain) and _looks_secret(name, value)
        marked[name] = Secret(str(value)) if is_secret else str(value) if isinstance(value, _Plain) else value
    return marked


def _looks_secret(name: str, value: str) -> bool:
    return looks_secret(name) or holds_secret(value)


def _written(values: Mapping[str, str | Secret]) -> dict[str, Any]:
    """As data that gives the same variables when read, where nsw's own environment then holds the secret ones."""
    return {name: _as_data(name, value) for name, value in values.items()}


def _as_data(name: str, value: str | Secret) -> Any:
    if isinstance(value, Secret):
        return {"secret": {"from_env": value.from_env or name}}
    return {"plain": value} if _looks_secret(name, value) else value


_TEXT = {"type": ["string", "number"]}
_FROM_ENV = {
    "type": "object",
    "properties": {
        "from_env": {
            "type": "string",
            "pattern": "^[A-Za-z_][A-Za-z0-9_]*$",
            "description": "The variable of nsw's own environment that holds the value when a campaign begins.",
        }
    },
    "required": ["from_env"],
    "additionalProperties": False,
}
_MAP = {
    "type": "object",
    "properties": {
        "secret": {
            "anyOf": [_TEXT, _FROM_ENV],
            "description": "The value, which nsw writes to a file that only you can read, or {from_env: NAME}.",
        },
        "plain": _TEXT
        | {"description": "A value that is not secret although the variable's name looks so, as HF_TOKEN does."},
    },
    "minProperties": 1,
    "maxProperties": 1,
    "additionalProperties": False,
}
_SCHEMA = {"anyOf": [_TEXT, _MAP]}
_BY_NAME, _AS_DATA = AfterValidator(_by_name), PlainSerializer(_written)

Environment = Annotated[
    dict[Variable, Annotated[str | Secret, Parsed(partial(_value, text), _SCHEMA)]], _BY_NAME, _AS_DATA
]
EnvironmentTemplates = Annotated[
    dict[Variable, Annotated[str | Secret, Parsed(partial(_value, template), _SCHEMA)]], _BY_NAME, _AS_DATA
]


_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_WORDS: Final = frozenset(["CREDS", "JWT", "PAT", "COOKIE", "BEARER", "AUTHORIZATION", "PGPASS", "SSHPASS"])
_ENDS_OF_WORDS: Final = (  # PGPASSWORD, HFTOKEN
    "TOKEN", "SECRET", "SECRETS", "PASSWORD", "PASSWORDS", "PASSWD", "PASSPHRASE", "PASSCODE", "CREDENTIAL",
    "CREDENTIALS", "APIKEY", "WEBHOOK",
)  # fmt: skip
_BEFORE_OTHER_TOKEN: Final = frozenset(  # of a language model: time_per_token, EOS_TOKEN
    ["BOS", "CLS", "EACH", "EOS", "FIRST", "INTER", "LAST", "MASK", "NEXT", "PAD", "PER", "SEP", "UNK"]
)
_LAST: Final = frozenset(["PASS", "PWD", "AUTH", "SAS"])  # of several parts: DB_PASS, but neither PASS nor PWD
_BEFORE_KEY: Final = frozenset(  # also in front of other parts: AWS_ACCESS_KEY_ID
    [
        "ACCESS", "ACCOUNT", "API", "AUTH", "CLIENT", "DEPLOY", "ENCRYPTION", "GPG", "LICENSE", "MASTER", "PRIVATE",
        "SERVICE", "SIGNING", "SSH", "STORAGE",
    ]
)  # fmt: skip
_BEFORE_OTHER_KEY: Final = frozenset(  # a name that ends with KEY is secret, OPENAI_KEY, but for these
    [
        "ANY", "ATTENTION", "BATCH", "BUCKET", "BY", "CACHE", "CANDIDATE", "COLUMN", "COMPOSITE", "CONFIG", "DICT",
        "DISTRIBUTION", "FEATURE", "FIELD", "FILE", "FILTER", "FOREIGN", "GROUP", "GROUPING", "HASH", "HOST", "HOT",
        "IMAGE", "INDEX", "INPUT", "ITEM", "JOIN", "LABEL", "LOOKUP", "MAIN", "MAP", "MESSAGE", "METRIC", "NUM",
        "OBJECT", "ORDER", "OUTPUT", "PARTITION", "PRESS", "PRIMARY", "PRNG", "PUB", "PUBLIC", "QUERY", "RANDOM",
        "RANGE", "RECORD", "RNG", "ROUTING", "ROW", "SAMPLE", "SEARCH", "SHARD", "SORT", "STATE", "TABLE",
        "TAG", "TARGET", "TEXT", "THREAD", "TRANSLATION", "UNIQUE", "URL", "VALUE",
    ]
)  # fmt: skip


def looks_secret(name: str) -> bool:
    """Whether a variable's name says that its value is secret: by its parts, so that KEYBOARD and MAX_TOKENS do not."""
    parts = [part.upper() for part in _PART.findall(name)]
    for before, part in pairwise(["", *parts]):
        if part in _WORDS or (part == "KEY" and before in _BEFORE_KEY):
            return True
        if part.endswith(_ENDS_OF_WORDS) and not (part == "TOKEN" and before in _BEFORE_OTHER_TOKEN):
            return True
    last = parts[-1] if len(parts) > 1 else ""
    return last in _LAST or (last == "KEY" and parts[-2] not in _BEFORE_OTHER_KEY)


# no pattern can look at a character more than a few times: texts of a million characters are searched
_PATTERNS: Final = (
    # scheme://USER:PASSWORD@host; and https://TOKEN@host: an account's name is shorter than any of their tokens
    re.compile(r"(?:://[^\s/?#@:]*:|\bhttps?://(?=[^\s/?#@:]{20,}@))(?P<secret>[^\s/?#@]++)(?=@)"),
    re.compile(
        r"(?<![a-z])(?:AccountKey|SharedAccessKey|SharedAccessSignature)=(?P<secret>[^\s;\"']++)", re.IGNORECASE
    ),
    re.compile(r";\s?(?:Password|Pwd)=(?P<secret>[^\s;\"']++)", re.IGNORECASE),
    # whoever knows the address of a webhook may use it
    re.compile(
        r"(?:\bhooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/|\bdiscord(?:app)?\.com/api/(?:v\d+/)?webhooks/"
        r"|\.webhook\.office\.com/|\boutlook\.office(?:365)?\.com/webhook/|\bapi\.telegram\.org/bot)"
        r"(?P<secret>[^\s?#\"']++)"
    ),
    re.compile(
        r"\bchat\.googleapis\.com/[^\s?#\"']{1,200}\?(?=[^\s\"']{0,400}?\b(?:key|token)=)(?P<secret>[^\s\"']++)"
    ),
)
_QUERY: Final = re.compile(r"[?&](?P<name>[\w.-]++)=(?P<secret>[^\s&#\"']++)")
_EXPRESSION: Final = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_SIGNATURES: Final = ("sig", "signature")


def secret_parts(text: str) -> Iterator[str]:
    """The secrets that a text shows whatever it is called, also with expressions in them, with what these hold.

    They are passwords and tokens in URLs, keys in connection strings, signatures in queries, addresses of webhooks.
    """
    yield from _parts(text, text)
    end = text.rfind("}}") + 2  # what is opened behind it is never closed
    if end > 1:
        yield from _parts(text, _EXPRESSION.sub(lambda match: "x" * len(match[0]), text[:end]) + text[end:])


def _parts(text: str, searched: str) -> Iterator[str]:
    for pattern in _PATTERNS:
        yield from (text[slice(*match.span("secret"))] for match in pattern.finditer(searched))
    for match in _QUERY.finditer(searched):
        if looks_secret(match["name"]) or match["name"].lower().endswith(_SIGNATURES):
            yield text[slice(*match.span("secret"))]


def holds_secret(text: str) -> bool:
    """Whether a text has a secret in it whatever it is called: `postgres://me:pass@host`, `AccountKey=...`."""
    return next(secret_parts(text), None) is not None


_NAMED_VALUE: Final = re.compile(
    r"""(?<![\w.-])(?P<name>[\w.-]++)["']?\s*+[:=]
    (?!\s*+\{?\s*+["']?(?:secret|plain)["']?\s*+:)
    (?!\s*+\{?\s*+["']?from_env["']?\s*+:\s*+["']?[A-Za-z_]\w*+["']?\s*+(?:[},\#\n]|$))
    (?!\s*+["']?\$(?:\w|\(|\{\w))
    (?=\s*+\S)(?=[^\S\r\n]*+(?P<secret>[^\s{}\[\]]{0,400}+))""",
    re.VERBOSE,
)


def named_secrets(text: str) -> Iterator[str]:
    """What stands behind each name that looks secret, in its line up to a blank: `HF_TOKEN: VALUE`, `--token=VALUE`.

    The text need not be YAML. `{from_env: NAME}`, `{plain: VALUE}` and `$NAME`, as a shell has it, are no secrets.
    """
    return (match["secret"] for match in _NAMED_VALUE.finditer(text) if looks_secret(match["name"]))
