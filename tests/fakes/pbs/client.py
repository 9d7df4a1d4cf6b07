"""The commands of the fake PBS; NSW_FAKE_PBS names the folder of its server (server.py).

It refuses every option that the real one does not have, and ends with 99 for what the real one has and this does not.
Faults come from the test (machinery.py); the file `down` in the folder makes the server unreachable.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import words  # noqa: E402
from machinery import Fake, fail  # noqa: E402
from server_defaults import DEFAULTS  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

FAKE = Fake(Path(os.environ.get("NSW_FAKE_PBS", "/nonexistent")), DEFAULTS)
# what nsw must clear for the clients; the variables that name the server or its configuration stay
FORBIDDEN = ("PBS_DPREFIX", "PBS_QSTAT", "PBS_O_", "PBS_JOB", "PBS_ARRAY")
TORQUE_BEFORE = 8  # versions below are Torque's
USER = os.environ.get("NSW_FAKE_PBS_USER") or os.environ.get("LOGNAME") or os.environ.get("USER") or "root"


class UnreachableError(Exception):
    """The server cannot be asked: the line before the command's own, and the error number."""

    def __init__(self, said: str, number: int) -> None:
        super().__init__(said)
        self.said, self.number = said, number


def server() -> str:
    """The name of the server that is asked."""
    return os.environ.get("PBS_SERVER") or os.environ.get("PBS_DEFAULT") or FAKE.setting("host")


def ask(op: str, **asked: Any) -> dict[str, Any]:
    """Ask the server.

    Raises:
        UnreachableError: It cannot be reached.
    """
    if server() not in {FAKE.setting("host"), "localhost"}:
        raise UnreachableError("Unknown Host.", 15008)
    refused = server() == "localhost" or "PBS_BATCH_SERVICE_PORT" in os.environ or (FAKE.root / "down").exists()
    if refused and op != "sleep":
        raise UnreachableError("Connection refused", 15010)
    connection = socket.socket(socket.AF_UNIX)
    folder = os.open(FAKE.root, os.O_RDONLY)  # a path of more than 107 characters is no address
    try:
        connection.connect(f"/proc/self/fd/{folder}/socket")
    except OSError:
        raise UnreachableError("Connection refused", 15010) from None
    connection.sendall(json.dumps({"op": op, "user": USER, **asked}).encode() + b"\n")
    data = b""
    while part := connection.recv(1 << 20):
        data += part
    if not data:  # it was killed while it was asked
        raise UnreachableError("Connection reset by peer", 15010)
    return json.loads(data)


def options(command: str, argv: list[str], known: str) -> tuple[list[tuple[str, str]], list[str]]:
    """As getopt(3) reads them: pairs of letter and value, and the rest. What is wrong is printed.

    Args:
        command: For what is printed.
        argv: The words.
        known: Letters; a colon follows those with a value.
    """
    found, rest, words_left, bad = [], [], list(argv), False
    while words_left:
        word = words_left.pop(0)
        if word == "--":
            rest += words_left
            break
        if not word.startswith("-") or word == "-":
            rest.append(word)
            continue
        letters = word[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            at = known.find(letter)
            if at < 0 or letter == ":":
                print(f"{command}: invalid option -- '{letter}'", file=sys.stderr)
                bad = True
            elif known[at + 1 : at + 2] == ":":
                if not letters and not words_left:
                    print(f"{command}: option requires an argument -- '{letter}'", file=sys.stderr)
                    bad = True
                    break
                found.append((letter, letters or words_left.pop(0)))
                break
            else:
                found.append((letter, ""))
    if bad:
        usage(command)
    return found, rest


def usage(command: str, *lines: str) -> NoReturn:
    """The lines and the command's usage."""
    for line in lines:
        print(line, file=sys.stderr)
    fail(words.USAGE.get(command, f"usage: {command} ..."), 2)


def unknown(command: str, what: str) -> NoReturn:
    """The real command can do this, and the fake cannot."""
    fail(f"{command}: the fake PBS does not know {what}", 99)


def version(argv: list[str]) -> None:
    if argv == ["--version"]:
        said = FAKE.setting("version")
        if int(said.partition(".")[0]) < TORQUE_BEFORE:
            fail(f"Version: {said}\nCommit: 661e092552de43a785c15d39a3634a541d86898e", 0)
        print(f"pbs_version = {said}")
        sys.exit(0)


def whole_id(text: str) -> str:
    """With the server's name, as the commands print it."""
    return text if "." in text else f"{text}.{FAKE.setting('host')}"


def each(command: str, ids: list[str], op: str, **asked: Any) -> None:
    """Ask for each id; the exit status is that of the last that failed."""
    code = 0
    for one in ids:
        if not one[:1].isdigit():
            print(f"{command}: illegally formed job identifier: {one}", file=sys.stderr)
            code = 1
            continue
        reply = ask(op, id=one, **asked)
        if reply["code"]:
            print(f"{command}: {reply['text']} {whole_id(one)}", file=sys.stderr)
            code = reply["code"] % 256
    sys.exit(code)


# --- the small commands -----------------------------------------------------------------------------------


def qdel(argv: list[str]) -> None:
    found, ids = options("qdel", argv, "W:x")
    if not ids:
        usage("qdel")
    given = dict(found)
    each("qdel", ids, "delete", x="x" in given, force=given.get("W") == "force")


def qhold(argv: list[str]) -> None:
    _, ids = options("qhold", argv, "")
    each("qhold", ids, "hold")


def qrls(argv: list[str]) -> None:
    _, ids = options("qrls", argv, "")
    each("qrls", ids, "release")


def qrerun(argv: list[str]) -> None:
    _, ids = options("qrerun", argv, "")
    each("qrerun", ids, "rerun")


def qsig(argv: list[str]) -> None:
    found, ids = options("qsig", argv, "s:")
    each("qsig", ids, "signal", signal=dict(found).get("s", "TERM"))


def qalter(argv: list[str]) -> None:
    found, ids = options("qalter", argv, "N:l:W:")
    asked: dict[str, Any] = {"name": None, "walltime": None, "throttle": None}
    for letter, value in found:
        name, _, rest = value.partition("=")
        if letter == "N":
            asked["name"] = value
        elif letter == "l" and name == "walltime":
            asked["walltime"] = rest
        elif letter == "W" and name == "max_run_subjobs" and FAKE.setting("throttles") and rest.isdigit():
            asked["throttle"] = int(rest)
        else:
            unknown("qalter", f"-{letter} {value}")
    each("qalter", ids, "alter", **asked)


def qselect(argv: list[str]) -> None:
    found, rest = options("qselect", argv, "u:xN:s:")
    if rest:
        usage("qselect")
    given = dict(found)
    users = given["u"].split(",") if "u" in given else None
    reply = ask("select", x="x" in given, users=users, name=given.get("N"), states=given.get("s"))
    if reply["code"]:
        fail(f"qselect: {reply['text']}", 0 if reply["code"] == words.NO_HISTORY[1] else reply["code"] % 256)
    for one in reply["ids"]:
        print(one)


def qterm(argv: list[str]) -> None:
    if argv != ["-t", "quick"]:
        unknown("qterm", " ".join(argv))
    (FAKE.root / "down").touch()


def unreachable(command: str, no: UnreachableError) -> NoReturn:
    print(no.said, file=sys.stderr)
    if command == "qdel":
        fail(f"Couldn't connect to cluster: {server()}", no.number % 256)
    fail(
        f"{command}: cannot connect to server {server()} (errno={no.number})",
        255 if command == "qstat" else no.number % 256,
    )


def main() -> None:
    command, argv = sys.argv[1], sys.argv[2:]
    work: Callable[[list[str]], None]
    if command == "qsub":
        from qsub import qsub as work
    elif command in {"qstat", "pbsnodes", "qmgr"}:
        import qstat

        work = getattr(qstat, command)
    else:
        work = globals()[command]

    def run() -> None:
        version(argv)
        try:
            work(argv)
        except UnreachableError as no:
            sys.stdout.flush()
            unreachable(command, no)

    allowed = os.environ.get("NSW_FAKE_PBS_ENVIRONMENT", "")  # the replay of transcripts sets PBS_DPREFIX
    FAKE.run(command, run, () if allowed else FORBIDDEN)


if __name__ == "__main__":
    sys.modules["client"] = sys.modules["__main__"]
    main()
