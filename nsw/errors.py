"""Every error that a user can meet, each with its exit code.

An error says what happened, where, why, and what to do. A wrong recipe or sites file is an
`InputError` that carries one `Diagnostic` for each fault, so that all of them are shown at once.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from nsw.wording import escape_surrogates

MOST_SHOWN: Final = 100  # faults of one file, and warnings
_EXCERPT: Final = 4000  # characters of a command's output, of its beginning and of its end


class Exit(IntEnum):
    """Exit codes of every command (docs/internals.md)."""

    GOOD = 0
    SOME_FAILED = 1  # done, but some runs failed or some files could not be read
    BAD_INPUT = 2  # usage, recipe or site
    UNREACHABLE = 3  # the site or its scheduler
    GATE_FAILED = 4
    UNDECIDED = 5  # a gate that nothing decides
    INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a text file; line and column count from 1, the end is exclusive."""

    file: str
    line: int
    column: int
    end_line: int = 0
    end_column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One fault of an input file: what was found, what was expected, what to do.

    `line_is_secret`: its line is not shown, since its file holds a secret.
    """

    message: str
    mark: Mark | None = None
    source_line: str | None = None
    hint: str | None = None
    line_is_secret: bool = False

    def render(self) -> str:
        """The fault as text: place and message, the line with a caret, the hint."""
        head = f"{self.mark}: {self.message}" if self.mark else self.message
        lines = [head]
        if self.mark and self.source_line is not None:
            number = str(self.mark.line)
            lines.append(f"  {number} | {self.source_line}")
            lines.append(f"  {' ' * len(number)} | {_caret(self.mark, self.source_line)}")
        if self.mark and self.line_is_secret:
            lines.append(f"  {self.mark.line} | (not shown: a secret is written in {self.mark.file})")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


def first_of(diagnostics: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The diagnostics, or the first MOST_SHOWN of them and one that counts the others: nobody reads 100,000."""
    omitted = len(diagnostics) - MOST_SHOWN
    if omitted <= 0:
        return tuple(diagnostics)
    return *diagnostics[:MOST_SHOWN], Diagnostic(f"there are at least {omitted:,} more like these, which are not shown")


def _caret(mark: Mark, line: str) -> str:
    width = mark.end_column - mark.column if mark.end_line == mark.line else len(line.rstrip()) - mark.column + 1
    # tabs stay tabs so that the caret is below its column
    pad = "".join("\t" if c == "\t" else " " for c in line[: mark.column - 1])
    return pad + "^" * max(1, min(width, len(line) - mark.column + 1))


class NswError(Exception):
    """Base of all errors that are shown to a user as a message, never as a traceback."""

    exit_code: Exit = Exit.BAD_INPUT

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def render(self) -> str:
        """The message as printed on stderr, less the word `error`."""
        return self.message + (f"\n  hint: {self.hint}" if self.hint else "")


@contextmanager
def writing_to(file: object) -> Iterator[None]:
    """An error of the system inside names the file that is written.

    Raises:
        NswError: The file cannot be written.
    """
    try:
        yield
    except OSError as fault:
        raise NswError(f"{file} cannot be written: {fault.strerror or fault}") from None


def resumable(fault: NswError, name: str) -> None:
    """Let the hint of an error that ended the driving of a campaign name the command that goes on with it.

    Args:
        fault: The error; its hint is changed.
        name: The campaign, as `nsw resume` takes it.
    """
    command = f"`nsw resume {name}"
    if fault.hint and "`nsw resume" in fault.hint:  # one that names a campaign stays as it is
        fault.hint = re.sub("`nsw resume(?=`| --)", lambda _bare: command, fault.hint)
    elif fault.exit_code is Exit.UNREACHABLE:
        fault.hint = f"{fault.hint}; then {command}`" if fault.hint else f"{command}` continues once that is corrected"


class UsageError(NswError):
    """A command line that cannot be carried out as written."""


class InputError(NswError):
    """A recipe or sites file with one fault or several."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__(diagnostics[0].message)
        self.diagnostics = first_of(diagnostics)

    def __reduce__(self) -> tuple[type[InputError], tuple[Sequence[Diagnostic]]]:
        """What pickle makes one of, which comes from another process."""
        return InputError, (self.diagnostics,)

    def render(self) -> str:
        """All faults, in the order of the file."""
        return "\n".join(d.render() for d in self.diagnostics)


class LimitError(NswError):
    """Something took more memory or time than it may, or the process that had these limits crashed."""


class NotYetError(NswError):
    """Something that parses, but that this version does not do."""


class CampaignError(NswError):
    """A campaign folder that is missing, damaged or of another version."""


DISK_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


def disk_full(file: object, reason: str | None) -> CampaignError:
    """The error of a file of a campaign that this machine has no room for: trying again would not help."""
    return CampaignError(
        f"{file} cannot be written here: {reason}",
        hint="free disk space on this machine, then run `nsw resume`: no finished run is lost",
    )


class CanaryError(CampaignError):
    """The run that went ahead alone did not come back well; the rest of its campaign waits."""

    exit_code = Exit.SOME_FAILED


class CampaignLockedError(CampaignError):
    """Another nsw drives this campaign."""


class FencedError(CampaignError):
    """An nsw on another machine took this campaign over; this one changes nothing on the site any more.

    `owner` says who that is, where the site tells it.
    """

    owner: str | None = None


class DownloadLimitError(CampaignError):
    """What would be brought from a site is more than its limits.download; nothing was brought."""


class UnreachableError(NswError):
    """The site or its scheduler gave no answer."""

    exit_code = Exit.UNREACHABLE


class HostKeyError(UnreachableError):
    """The site's host key is not known, or is another than before."""


class LoginError(UnreachableError):
    """The site was reached, and refused the login, or what it asks for could not be answered."""


class RefusedError(NswError):
    """The scheduler will not take a job as it is.

    Attributes:
        key: What of the recipe's resources asks too much, if known.
        line: The line of `extra` that does, if it is one.
    """

    def __init__(self, message: str, *, key: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.key = key
        self.line: str | None = None


# exit statuses for HUP, INT, KILL, TERM: as this machine reports them, and as a shell does (128 + the signal)
_SIGNALS = frozenset({-1, -2, -9, -15, 129, 130, 137, 143})


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What one command did: its words, exit status and output.

    `unreachable`: there was no connection, and the command was not started.
    """

    argv: tuple[str, ...]
    returncode: int
    stdout: str = ""
    stderr: str = ""
    timed_out: bool = False
    seconds: float = field(default=0.0, compare=False)
    unreachable: UnreachableError | None = field(default=None, compare=False)

    @property
    def killed(self) -> bool:
        """Whether a signal from outside ended it: no memory was left, a session ended, a person or a watchdog."""
        return not self.timed_out and self.returncode in _SIGNALS


class CommandError(NswError):
    """A command of the site failed; holds the quoted command, exit code, stdout and stderr."""

    exit_code = Exit.UNREACHABLE

    def __init__(self, result: CommandResult, *, subject: str, hint: str | None = None) -> None:
        import shlex

        ending = "timed out" if result.timed_out else f"exit status {result.returncode}"
        super().__init__(
            f"{subject}: {shlex.join(result.argv)} ({ending})\n"
            f"  stdout: {_excerpt(result.stdout)}\n"
            f"  stderr: {_excerpt(result.stderr)}",
            hint=hint,
        )
        self.result = result


def _excerpt(text: str) -> str:
    """What a command printed, of a long text the beginning and the end."""
    text = escape_surrogates(text)
    omitted = len(text) - 2 * _EXCERPT
    if omitted > 0:
        text = f"{text[:_EXCERPT]}\n[{omitted:,} characters are left out]\n{text[-_EXCERPT:]}"
    return text.strip() or "<empty>"


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """The known word that `word` was probably meant to be, or None."""
    import difflib

    matches = difflib.get_close_matches(word, list(candidates), n=1, cutoff=0.7)
    return matches[0] if matches else None


def did_you_mean(word: str, candidates: Iterable[str]) -> str | None:
    """A hint for a misspelt word, or None when nothing known is close."""
    match = nearest(word, candidates)
    return f"did you mean '{match}'?" if match else None
