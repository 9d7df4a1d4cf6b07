"""A fencing token in a campaign's folder on the site: commands that change something run only while it is this nsw's.

The file `owner` names who owns the campaign. A command that must be fenced compares it over there, holding a shared
lock on `owner.lock` until it ends. Who takes the campaign over writes the file under the exclusive lock: no submission
is under way at that moment, and none of the former owner begins afterwards.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from nsw.errors import CampaignError, CommandError, FencedError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.errors import CommandResult
    from nsw.transport.model import Transport

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

    def around(self, argv: Sequence[str]) -> list[str]:
        """The command, which runs only while the token is there."""
        return ["bash", "-c", _RUN, "nsw", self._scratch, self.token, *argv]

    def passed(self, argv: Sequence[str], result: CommandResult) -> CommandResult:
        """The result of `around(argv)` as that of `argv`.

        Raises:
            FencedError: Another nsw owns the campaign; the command did not run.
        """
        if result.returncode == _FENCED and result.stderr.startswith(_MARK):
            self.lost = fenced(self._campaign, result.stderr)
            raise self.lost
        return replace(result, argv=tuple(argv))


def take(transport: Transport, scratch: str, campaign: str, token: str, old: str, about: str) -> str:
    """Become the owner of a campaign's folder.

    Args:
        transport: The way to the site.
        scratch: The campaign's folder there, which exists.
        campaign: Its id, for messages.
        token: The token to leave there.
        old: The token that may be there; `*`: any, and the new token gets the next epoch.
        about: Who this is, in one line.

    Returns:
        The token that is there now.

    Raises:
        FencedError: Another nsw owns it.
        CampaignError: The present owner is in the middle of a submission, the site has no flock, or the folder is
            another user's.
        UnreachableError: The site gave no answer.
    """
    line = " ".join(about.split())
    done = transport.run(["bash", "-c", _TAKE, "nsw", scratch, token, old, line, str(_PATIENCE_S)], timeout=_TAKE_S)
    if done.timed_out:
        raise UnreachableError(f"cannot determine who owns {scratch}: {done.stderr.strip()}")
    if done.returncode == _FENCED and done.stderr.startswith(_MARK):
        raise fenced(campaign, done.stderr)
    if done.returncode == _NOT_OWN:
        raise CampaignError(
            f"the campaign's folder {scratch} belongs to another user: nsw drives only campaigns of your own"
        )
    if done.returncode == _BUSY:
        raise CampaignError(
            f"the owner of {campaign} has been submitting for {_PATIENCE_S} s", hint="try again when that has ended"
        )
    if done.returncode == _NO_FLOCK:
        raise CampaignError(f"{campaign} cannot be taken over safely: the site has no flock (util-linux)")
    now = done.stdout.strip()
    if done.returncode != 0 or not now:
        raise CommandError(done, what=f"{scratch}/owner cannot be written")
    return now


def fenced(campaign: str, said: str) -> FencedError:
    """The error of a former owner, from what the site says of the present one."""
    lines = said.splitlines()[2:3]
    owner = lines[0][:_LONGEST_OWNER].strip() if lines else ""
    fault = FencedError(
        f"{campaign} was taken over by {owner or 'another nsw'}: nsw submits and cancels nothing more from here",
        hint=f"`nsw attach {campaign}` takes it back; `nsw watch` shows its progress",
    )
    fault.owner = owner or None
    return fault
