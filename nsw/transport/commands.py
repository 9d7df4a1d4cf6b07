"""A scheduler's commands: with a timeout, again after faults of the moment, and only by the campaign's owner.

The file `owner` in a campaign's folder on the site names who owns the campaign, by a token. A command that must be
fenced compares it over there, holding a shared lock on `owner.lock` until it ends. Who takes the campaign over writes
the file under the exclusive lock: no submission is under way at that moment, and none of the former owner begins
afterwards.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Final

from nsw import errors
from nsw.errors import CampaignError, CommandError, CommandResult, FencedError, HostKeyError, LoginError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsw.transport.model import Conditions, Transport

__all__ = ["PATIENT", "Fence", "Runner", "take_ownership"]

_FENCED: Final = 96
_BUSY: Final = 97
_NO_FLOCK: Final = 98
_NOT_OWN: Final = 95
_MARK: Final = "nsw-owner"
_PATIENCE_S: Final = 160  # a submission may take two minutes
_RUN: Final = r"""
folder=$1 token=$2; shift 2
if command -v flock >/dev/null && exec 7<"$folder/owner.lock"; then flock -s 7; fi 2>/dev/null
{ read -r own; } <"$folder/owner" 2>/dev/null || own=
[ "$own" = "$token" ] || { echo nsw-owner; cat "$folder/owner"; exit 96; } >&2
exec "$@"
"""
# FOLDER TOKEN OLD ABOUT SECONDS: become the owner. OLD is the token that must be there, or none; `*` takes it from
# anybody. In a folder of another user the files may be links, FIFOs and arithmetic that runs commands: none is opened.
_TAKE: Final = r"""
umask 077
cd -P -- "$1" || exit
[ -O . ] || exit 95
if command -v flock >/dev/null; then exec 7<>owner.lock || exit; flock -w "$5" 7 || exit 97
elif [ "$3" = '*' ]; then exit 98; fi
{ read -r own; } <owner 2>/dev/null || own=
if [ -n "$own" ] && [ "$3" != '*' ] && [ "$own" != "$3" ]; then { echo nsw-owner; cat owner; } >&2; exit 96; fi
token=$2
if [ "$3" = '*' ]; then
  epoch=${own%% *}
  case $epoch in '' | *[!0-9]*) epoch=0 ;; esac
  token="$((epoch + 1)) ${2#* }"
fi
printf '%s\n%s\n' "$token" "$4" >owner.new && mv -f owner.new owner && echo "$token"
"""
_TAKE_S: Final = 180.0
_LONGEST_OWNER: Final = 200  # characters
_LONGEST_PAUSE_S: Final = 30.0
PATIENT: Final = 4  # tries of a command after faults of the moment


class Fence:
    """The right to change a campaign's folder on the site.

    Args:
        scratch: The campaign's folder there.
        token: Epoch and a random word; each owner has another.
        campaign: Its id, for messages.
    """

    def __init__(self, scratch: str, token: str, campaign: str) -> None:
        self._scratch = scratch
        self.token = token
        self._campaign = campaign
        self.lost: FencedError | None = None  # once it was lost: some callers go on after a command that failed

    def fenced_command(self, argv: Sequence[str]) -> list[str]:
        """The command, which runs only while the token is there."""
        return ["bash", "-c", _RUN, "nsw", self._scratch, self.token, *argv]

    def unfenced_result(self, argv: Sequence[str], result: CommandResult) -> CommandResult:
        """The result of `fenced_command(argv)` as that of `argv`.

        Raises:
            FencedError: Another nsw owns the campaign; the command did not run.
        """
        if result.returncode == _FENCED and result.stderr.startswith(_MARK):
            self.lost = _fenced_error(self._campaign, result.stderr)
            raise self.lost
        return replace(result, argv=tuple(argv))


def take_ownership(transport: Transport, scratch: str, campaign: str, token: str, old: str, owner_line: str) -> str:
    """Become the owner of a campaign's folder.

    Args:
        transport: The way to the site.
        scratch: The campaign's folder there, which exists.
        campaign: Its id, for messages.
        token: The token to leave there.
        old: The token that may be there; `*`: any, and the new token gets the next epoch.
        owner_line: Who this is, in one line.

    Returns:
        The token that is there now.

    Raises:
        FencedError: Another nsw owns it.
        CampaignError: The present owner is in the middle of a submission, the site has no flock, or the folder is
            another user's.
        UnreachableError: The site gave no answer.
    """
    line = " ".join(owner_line.split())
    completed = transport.run(
        ["bash", "-c", _TAKE, "nsw", scratch, token, old, line, str(_PATIENCE_S)], timeout=_TAKE_S
    )
    if completed.timed_out:
        raise errors.UnreachableError(f"cannot determine who owns {scratch}: {completed.stderr.strip()}")
    if completed.returncode == _FENCED and completed.stderr.startswith(_MARK):
        raise _fenced_error(campaign, completed.stderr)
    if completed.returncode == _NOT_OWN:
        raise CampaignError(
            f"the campaign's folder {scratch} belongs to another user: nsw drives only campaigns of your own"
        )
    if completed.returncode == _BUSY:
        raise CampaignError(
            f"the owner of {campaign} has been submitting for {_PATIENCE_S} s", hint="try again when that has ended"
        )
    if completed.returncode == _NO_FLOCK:
        raise CampaignError(f"{campaign} cannot be taken over safely: the site has no flock (util-linux)")
    now = completed.stdout.strip()
    if completed.returncode != 0 or not now:
        raise CommandError(completed, subject=f"{scratch}/owner cannot be written")
    return now


def _fenced_error(campaign: str, message: str) -> FencedError:
    """The error of a former owner, from what the site says of the present one."""
    lines = message.splitlines()[2:3]
    owner = lines[0][:_LONGEST_OWNER].strip() if lines else ""
    fault = FencedError(
        f"{campaign} was taken over by {owner or 'another nsw'}: nsw submits and cancels nothing more from here",
        hint=f"`nsw attach {campaign}` takes it back; `nsw watch` shows its progress",
    )
    fault.owner = owner or None
    return fault


@dataclass(slots=True, eq=False)
class Runner:
    """Runs commands over a transport.

    Args:
        transport: The way to the site.
        transient: Tells of a result whether it is a fault of the moment.
        plain: Leaves out of a result what says nothing.
        without: Beginnings of names of environment variables that no command may see.
        keep: Names among those that it may.
        fence: Around commands that change something, where an nsw elsewhere may take the campaign over.
        sleep: Waits; tests hand in their own, as for `draw`, which gives numbers in 0..1.
        draw: Randomness of the pauses.
    """

    transport: Transport
    _: KW_ONLY
    transient: Callable[[CommandResult], bool]
    plain: Callable[[CommandResult], CommandResult] = lambda result: result
    without: Sequence[str] = ()
    keep: Sequence[str] = ()
    fence: Fence | None = None
    sleep: Callable[[float], object] = time.sleep
    draw: Callable[[], float] = random.random
    calls: Counter[str] = field(default_factory=Counter, init=False)

    def run(self, argv: Sequence[str], *, timeout: float, retry: int = 1, changes: bool = False) -> CommandResult:
        """Run a command; after a fault of the moment again, until it was tried `retry` times.

        Returns:
            What it did at last, good or bad.

        Args:
            argv: The command.
            timeout: Seconds that it may take.
            retry: How often it is tried.
            changes: Whether it changes something there, so that it needs the fence.

        Raises:
            FencedError: It `changes` something, and another nsw owns the campaign.
        """
        tried = 0
        while True:
            (result,) = self.run_many([argv], timeout=timeout, counted=argv[0], changes=changes)
            tried += 1
            # whoever is refused would be asked for another code, and locked out in the end
            refused = isinstance(result.unreachable, (HostKeyError, LoginError))
            if tried >= retry or refused or not self.transient(result):
                return result
            self.sleep(min(_LONGEST_PAUSE_S, 2.0 ** (tried - 1)) * (0.5 + self.draw()))

    def run_many(
        self, commands: Sequence[Sequence[str]], *, timeout: float, counted: str, changes: bool = False
    ) -> list[CommandResult]:
        """Run commands once each, in one round trip; they count as calls of `counted`.

        Args:
            commands: The commands.
            timeout: Seconds that all of them may take.
            counted: The command's name under which they are counted.
            changes: Whether they change something there.

        Raises:
            FencedError: They `change` something, and another nsw owns the campaign.
        """
        self.calls[counted] += len(commands)
        fence = self.fence if changes else None
        sent = [fence.fenced_command(argv) for argv in commands] if fence else commands
        conditions: Conditions = {"timeout": timeout, "without": self.without, "keep": self.keep}
        if len(sent) == 1:
            results = [self.transport.run(sent[0], **conditions)]
        else:
            results = self.transport.run_many(sent, **conditions)
        if fence:
            results = [fence.unfenced_result(argv, result) for argv, result in zip(commands, results, strict=True)]
        return [self.plain(result) for result in results]
