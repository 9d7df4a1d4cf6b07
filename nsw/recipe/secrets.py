"""What is secret: environment variables by their names, and parts of texts.

A value is secret when the variable's name looks like it, when it has a secret in it (a URL with a password), or when it
is marked `{secret: VALUE}`. nsw hands it to the job in a file that only its owner can read; in everything else that nsw
writes, `{secret: {from_env: NAME}}` stands for it. The types of keys that hold such values are in fields.py; this file
imports nothing large, since completion reads sites files at every Tab.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

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
    yield from _secret_parts(text, text)
    end = text.rfind("}}") + 2  # what is opened behind it is never closed
    if end > 1:
        yield from _secret_parts(text, _EXPRESSION.sub(lambda match: "x" * len(match[0]), text[:end]) + text[end:])


def _secret_parts(text: str, searched: str) -> Iterator[str]:
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
