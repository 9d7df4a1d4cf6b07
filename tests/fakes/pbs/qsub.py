"""qsub of the fake PBS: options, directives and environment, by the rules of the real one."""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path
from typing import Any

from client import FAKE, ask, fail, options, unknown, usage
from jobs import duration

LETTERS = "a:A:c:C:e:fhIj:J:k:l:m:M:N:o:p:P:q:r:R:S:u:v:VW:Xz"
NAME = re.compile(r"[!-~]+")
SPOILED = re.compile(r"[ \t/\[\]]|^=")


def qsub(argv: list[str]) -> None:
    command, words = None, list(argv)
    if "--" in words:
        at = words.index("--")
        words, command = words[:at], words[at + 1 :]
    found, rest = options("qsub", words, LETTERS)
    given = dict(found)
    if len(rest) > 1 or (rest and command):
        usage("qsub")
    for letter, value in found:
        check(letter, value)
    text = "" if command else script_text(rest[0] if rest else None, given)
    if not command:
        directives = of_script(text, given.get("C") or os.environ.get("PBS_DPREFIX", "#PBS"))
        for letter, value in directives:
            check(letter, value)
        found = merged(directives, found)
    asked = job(found, text, rest[0] if rest else None, argv)
    asked["command"] = command or None
    reply = ask("submit", job=asked)
    if reply["code"]:
        fail(f"qsub: {reply['text']}", reply["code"] % 256)
    letters = {letter for letter, _ in found}
    if "z" not in letters:
        print(reply["id"], flush=True)
    if ("W", "block=true") in found:
        sys.exit(wait(reply["id"]))


def wait(job_id: str) -> int:
    """The job's exit status when it is over."""
    while True:
        reply = ask("status", id=job_id, x=True)
        values = dict(reply["jobs"][0][1])
        if values["job_state"] == "F":
            return int(values.get("Exit_status", 0))
        time.sleep(0.05)


def script_text(path: str | None, given: dict[str, str]) -> str:
    if path is None:
        return sys.stdin.read()
    file = Path(path)
    if not file.exists():
        fail("qsub: script file:: No such file or directory", 1)
    if not file.is_file():
        fail("qsub: script not a file", 1)
    del given
    text = file.read_bytes().decode("utf-8", "surrogateescape")
    if "\r\n" in text:
        fail("qsub: script contains cr, lf", 1)
    return text


def of_script(text: str, prefix: str) -> list[tuple[str, str]]:
    """The options of its directives, which end at the first command; blank and comment lines do not end them."""
    found: list[tuple[str, str]] = []
    for line in text.splitlines():
        bare = line.lstrip()
        if prefix and bare.startswith(prefix):
            words = split(bare[len(prefix) :])
            some, rest = options("qsub", words, LETTERS)
            if rest:
                fail(f"qsub: directive error: {bare[len(prefix) :].strip()} ", 1)
            found += some
        elif bare and not bare.startswith(("#", ":")):
            break
    return found


def split(text: str) -> list[str]:
    """Words; quotes of both kinds hold one together."""
    words = re.findall(r"""(?:"[^"]*"|'[^']*'|[^\s"'])+""", text)
    return [re.sub(r"""(["'])(.*?)\1""", r"\2", word) for word in words]


def merged(directives: list[tuple[str, str]], found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The command line beats directives; of -l it does so for each resource."""
    given = {letter for letter, _ in found if letter not in "lW"}
    named = {one.partition("=")[0] for letter, value in found if letter == "l" for one in value.split(",")}
    kept = [
        (letter, value)
        for letter, value in directives
        if letter not in given and not (letter == "l" and value.partition("=")[0] in named)
    ]
    return [*kept, *found]


def check(letter: str, value: str) -> None:
    """What qsub refuses by itself."""
    bad = False
    if letter == "N":
        longest = FAKE.setting("longest_name")
        if len(value) > longest:
            fail("qsub: Job name is too long ", 2)
        bad = not NAME.fullmatch(value) or SPOILED.search(value) is not None
    elif letter == "J":
        bad = array(value) is None
    elif letter == "W" and value.startswith("depend="):
        parts = value.removeprefix("depend=").split(",")
        bad = not all(re.fullmatch(r"after(ok|any|notok)?(:\d+(\[\d*\])?(\.[\w.-]+)?)+", part) for part in parts)
    elif letter == "W":
        name = value.partition("=")[0]
        if name not in {"block", "umask", "group_list", "depend"}:
            unknown("qsub", f"-W {value}")
    elif letter in "oe":
        bad = not value.isascii()
    elif letter in "cCIXmMpR":
        unknown("qsub", f"-{letter}")
    elif letter == "j":
        bad = value not in {"oe", "eo", "n"}
    elif letter == "r":
        bad = value not in {"y", "n"}
    elif letter == "k":
        bad = re.fullmatch(r"[oed]+|n", value) is None
    if bad:
        usage("qsub", f"qsub: illegal -{letter} value")


def array(value: str) -> tuple[list[int], str, int | None] | None:
    """The indices of X-Y[:Z][%N], the range as it is, and N; None when it is no such range."""
    match = re.fullmatch(r"(\d+)-(\d+)(?::(\d+))?(?:%(\d+))?", value)
    if match is None or (match[4] and not FAKE.setting("throttles")):
        return None
    first, last, step = int(match[1]), int(match[2]), int(match[3] or 1)
    if first >= last or step < 1:
        return None
    return list(range(first, last + 1, step)), value.partition("%")[0], int(match[4]) if match[4] else None


def job(found: list[tuple[str, str]], text: str, path: str | None, argv: list[str]) -> dict[str, Any]:
    """What is sent to the server."""
    given = dict(found)
    more = dict(value.partition("=")[::2] for letter, value in found if letter == "W")
    indices, submitted, throttle = array(given["J"]) or (None, None, None) if "J" in given else (None, None, None)
    queue, _, elsewhere = given.get("q", "").partition("@")
    if elsewhere and elsewhere != FAKE.setting("host"):
        from client import UnreachableError

        raise UnreachableError("Unknown Host.", 15008)
    return {
        "name": given.get("N") or (Path(path).name if path else "STDIN"),
        "owner": os.environ.get("NSW_FAKE_PBS_USER") or os.environ.get("LOGNAME") or "root",
        "queue": queue,
        "script": text,
        "workdir": os.environ.get("PWD") or str(Path.cwd()),
        "arguments": " ".join(argv),
        "variables": variables(given),
        "resources": resources(found),
        "account": given.get("A"),
        "project": given.get("P", "_pbs_project_default"),
        "output": given.get("o"),
        "error": given.get("e"),
        "join": given.get("j", "n"),
        "keep": given.get("k", "n"),
        "hold": "h" in given,
        "rerunnable": given.get("r", "y") == "y",
        "shell": given.get("S"),
        "umask": int(more["umask"], 8) if "umask" in more else 0o077,
        "depend": more.get("depend"),
        "indices": indices,
        "submitted": submitted,
        "throttle": throttle,
        "start_at": start_at(given["a"]) if "a" in given else None,
        "group": more.get("group_list"),
        "run_as": given.get("u"),
    }


def resources(found: list[tuple[str, str]]) -> dict[str, str]:
    """Of all -l; a walltime that is none is refused here."""
    asked: dict[str, str] = {}
    for letter, value in found:
        if letter == "l":
            for part in value.split(","):
                name, _, amount = part.partition("=")
                asked[name] = amount
    if "walltime" in asked:
        try:
            duration(asked["walltime"])
        except ValueError:
            fail("qsub: Illegal attribute or resource value Resource_List.walltime", 166)
    return asked


def start_at(text: str) -> float:
    """[[[[CC]YY]MM]DD]hhmm[.SS]; in the fake's time."""
    del text
    return ask("_now")["now"] + 3600.0


def variables(given: dict[str, str]) -> list[tuple[str, str]]:
    """PBS_O_*, then those of -v, then all for -V."""
    env = os.environ
    found = [
        ("PBS_O_HOME", env.get("HOME", "/")), ("PBS_O_LANG", env.get("LANG", "C.UTF-8")),
        ("PBS_O_LOGNAME", env.get("NSW_FAKE_PBS_USER") or env.get("LOGNAME", "root")), ("PBS_O_PATH", env["PATH"]),
        ("PBS_O_MAIL", "/var/mail/alice"), ("PBS_O_SHELL", env.get("SHELL", "/bin/bash")),
        ("PBS_O_INTERACTIVE_AUTH_METHOD", "resvport"), ("PBS_O_INTERACTIVE_ENCRYPT_METHOD", ""),
        ("PBS_O_WORKDIR", env.get("PWD") or str(Path.cwd())), ("PBS_O_SYSTEM", "Linux"),
    ]  # fmt: skip
    if "V" in given:
        found += [(name, value) for name, value in env.items() if not name.startswith(("PBS_O_", "NSW_FAKE"))]
    for part in between_commas(given.get("v", "")):
        name, equals, value = part.partition("=")
        if not equals:
            if name not in env:
                cannot_send()
            value = env[name]
            if re.search(r"""["']""", value):
                cannot_send()
        found.append((name, value.replace('"', "").replace("'", "").replace("\\", "\\\\\\\\")))
    return found


def between_commas(text: str) -> list[str]:
    """Parts between commas that are in no quotes."""
    found, quote = [""], ""
    for letter in text:
        if letter == "," and not quote:
            found.append("")
            continue
        if letter in "\"'":
            quote = "" if quote == letter else quote or letter
        found[-1] += letter
    if quote:
        cannot_send()
    return [part for part in found if part]


def cannot_send() -> None:
    fail("qsub: cannot send environment with the job", 1)
