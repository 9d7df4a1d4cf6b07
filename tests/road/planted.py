"""Secrets planted in a recipe and a site, and a search for them in everything that a campaign leaves."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# what each variable holds; shell metacharacters and newlines must arrive as they are
BY_NAME = "sesame'\"$HOME`id`\\n-one"
MARKED = "sesame\nof two lines"
FROM_ENV = "sesame-of-nsw's-own-environment"
OF_SITE = "sesame-of-the-site"
OF_CASE = "sesame-of-case-"
BY_URL = "postgres://user:sesame-in-a-url@host/db"
VALUES = (BY_NAME, MARKED, FROM_ENV, OF_SITE, OF_CASE, BY_URL)
ENVIRONMENT = {"OPENER": FROM_ENV}

SITE_ENV = f"{{WANDB_API_KEY: {OF_SITE}, PLAIN_OF_SITE: seen}}"
APP_ENV = f"""\
    HF_TOKEN: "{BY_NAME.replace(chr(92), chr(92) * 2).replace('"', chr(92) + '"')}"
    OPENING: {{secret: "{MARKED.replace(chr(10), chr(92) + "n")}"}}
    DB_PASSWORD: {{secret: {{from_env: OPENER}}}}
    CASE_SECRET: "{OF_CASE}{{{{ n }}}}"
    DATABASE_URL: {BY_URL}
    KEYBOARD: qwerty
    MAX_TOKENS: "4096"
    TOKEN_LIMIT: {{plain: "77"}}
"""
NAMES = ("HF_TOKEN", "OPENING", "DB_PASSWORD", "WANDB_API_KEY", "CASE_SECRET", "DATABASE_URL")

# prints a hash of each, so that the output shows that they arrived and not what they are
PROGRAM = f"""\
import hashlib, os, sys
for name in {NAMES!r}:
    print(name, hashlib.sha256(os.environ[name].encode()).hexdigest())
print("KEYBOARD", os.environ["KEYBOARD"], os.environ["MAX_TOKENS"], os.environ["TOKEN_LIMIT"], os.environ["PLAIN_OF_SITE"])
sys.exit(os.path.exists("fail") and open("fail").read() or 0)
"""


def expected(n: int) -> str:
    """What the program prints in case n."""
    values = (BY_NAME, MARKED, FROM_ENV, OF_SITE, f"{OF_CASE}{n}", BY_URL)
    hashes = [f"{k} {hashlib.sha256(v.encode()).hexdigest()}\n" for k, v in zip(NAMES, values, strict=True)]
    return "".join(hashes) + "KEYBOARD qwerty 4096 77 seen\n"


def found_in(*folders: Path) -> set[str]:
    """The names of all files below that hold a secret, whole or in part, also where quoting put signs within it."""
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file() and not file.is_symlink()]
    assert files
    return {file.name for file in files if b"sesame" in file.read_bytes()}


def said(*texts: str) -> bool:
    """Whether output holds one."""
    return any("sesame" in text for text in texts)
