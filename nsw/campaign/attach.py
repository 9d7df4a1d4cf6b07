"""Taking over a campaign that another machine began: from its folder on the site to a folder here."""

from __future__ import annotations

import re
import secrets
import shutil
import stat
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nsw.campaign import folder as folders
from nsw.campaign.collect import collect, collect_reduced
from nsw.campaign.folder_permissions import make_private
from nsw.campaign.ledger import Ledger, Reading, State
from nsw.campaign.ledger_meta_keys import COLLECT, OWNED_BY, SCRATCH, SITE, SITE_DATA
from nsw.campaign.takeover_archive import ARCHIVE, LEDGER, RECIPE, about, unpack
from nsw.errors import CampaignError, CommandError, UnreachableError
from nsw.plan.command import FILE as SECRETS
from nsw.transport.commands import take

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nsw.transport.model import Transport

_SECONDS: Final = 120.0
_SOME: Final = 200  # runs that are brought together
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_APP: Final = re.compile(r"app(-\d+)?")  # the program, also as `retry --update-app` and `run --into` copied it again
# in a folder of another user, which may be in a scratch folder that several use, nothing is opened
_LIST: Final = r"""
shopt -s nullglob
cd -P -- "$1" 2>/dev/null || exit 0
for folder in */; do
  folder=${folder%/}
  [ -O "$folder" ] && [ ! -L "$folder" ] && [ -e "$folder/handover/campaign.tar.gz" ] || continue
  token= about=
  { read -r token; read -r about; } <"$folder/owner"
  printf '%s\t%s\t%s\0' "$folder" "$token" "$about"
done 2>/dev/null
"""
_FILES: Final = r"""
cd -P -- "$1" || exit
for top in app app-[0-9]* scripts private/secrets.sh; do
  [ ! -e "$top" ] || [ -L "$top" ] || find "$top" -xdev -type f -printf '%m\t%p\0' || exit
done
"""


@dataclass(frozen=True, slots=True)
class Attachable:
    """A campaign on a site that can be taken over: its id, the present owner's token, and who that is."""

    id: str
    token: str
    owner: str


def attachable(transport: Transport, base: str) -> list[Attachable]:
    """This user's campaigns below a site's scratch folder, oldest first.

    Raises:
        UnreachableError: The site gave no answer.
    """
    done = transport.run(["bash", "-c", _LIST, "nsw", base], timeout=_SECONDS)
    if done.timed_out or done.returncode != 0:
        raise UnreachableError(CommandError(done, what=f"{base} cannot be listed").message)
    found = (record.split("\t", 2) for record in done.stdout.split("\0"))
    known = [Attachable(*parts) for parts in found if len(parts) == 3 and _ID.fullmatch(parts[0])]
    return sorted(known, key=lambda one: (one.id.rsplit("-", 3)[1:3], one.id))


def attach(
    root: Path, transport: Transport, base: str, campaign: str, site: tuple[str, Mapping[str, Any]]
) -> folders.CampaignFolder:
    """Become the owner of a campaign, and make its folder here, or bring the one that is here up to date.

    Args:
        root: The folder of campaigns here.
        transport: The way to the site.
        base: The site's scratch folder.
        campaign: The campaign's id.
        site: The site's name and data, as this machine's sites files have it.

    Returns:
        The folder, to be resumed.

    Raises:
        CampaignError: What is there is not what nsw leaves, or the campaign's present owner is submitting.
        CampaignLockedError: An nsw on this machine drives it.
        UnreachableError: The site gave no answer.
    """
    there, here = f"{base}/{campaign}", folders.CampaignFolder(root / campaign)
    if here.path.exists():
        with folders.locked(here):
            _take_over(transport, there, here, site)
        return here
    with _hidden(here) as hidden:
        _take_over(transport, there, hidden, site, called=here)
    return here


@contextmanager
def _hidden(final: folders.CampaignFolder) -> Iterator[folders.CampaignFolder]:
    """A folder that gets its name when the block ends well."""
    hidden = folders.CampaignFolder(final.path.parent / f".{final.id}-{secrets.token_hex(2)}.part")
    make_private(hidden.path, "nobody")
    try:
        for sub in (hidden.scripts, hidden.reports, hidden.tables, hidden.app):
            sub.mkdir()
        hidden.lock.touch()
        yield hidden
        hidden.path.rename(final.path)
    except BaseException:
        shutil.rmtree(hidden.path, ignore_errors=True)
        raise


def _take_over(
    transport: Transport,
    there: str,
    here: folders.CampaignFolder,
    site: tuple[str, Mapping[str, Any]],
    called: folders.CampaignFolder | None = None,
) -> None:
    campaign = (called or here).id
    # first of all: what the former owner kept there does not change any more
    token = take(transport, there, campaign, f"0 {secrets.token_hex(8)}", "*", about())
    with tempfile.TemporaryDirectory(prefix=".nsw-", dir=here.path) as folder:
        archive = Path(folder) / "archive"
        transport.get_many([(f"{there}/{ARCHIVE}", archive)])
        state = unpack(archive.read_bytes())
        new = folders.CampaignFolder(Path(folder))
        new.ledger.write_bytes(state[LEDGER])
        with Ledger(new.ledger) as ledger:
            if ledger.meta(SCRATCH) != there:
                raise CampaignError(f"what is in {there} is the state of another campaign, in {ledger.meta(SCRATCH)}")
            with ledger.transaction():
                ledger.set_meta(SITE, site[0])
                ledger.set_meta(SITE_DATA, dict(site[1]))
                ledger.set_meta(OWNED_BY, token)
            _bring_files(transport, there, here)
            _bring_reports(transport, there, here, ledger)
        if here.ledger.exists():
            here.ledger.replace(here.path / f"{LEDGER}.superseded")
        here.recipe.write_bytes(state[RECIPE])
        new.ledger.replace(here.ledger)


def _bring_files(transport: Transport, there: str, here: folders.CampaignFolder) -> None:
    """The scripts, the application's files and the secrets."""
    done = transport.run(["bash", "-c", _FILES, "nsw", there], timeout=_SECONDS)
    if done.timed_out:
        raise UnreachableError(f"{there} could not be listed: {done.stderr.strip()}")
    if done.returncode != 0:
        raise CommandError(done, what=f"{there} cannot be listed")
    modes: dict[str, int] = {}
    for record in done.stdout.split("\0"):
        mode, _, name = record.partition("\t")
        if name and re.fullmatch("[0-7]{3,4}", mode) and _is_safe(name):
            modes[name] = int(mode, 8)
    places = {name: here.secrets if name == SECRETS else here.path / name for name in modes}
    transport.get_many([(f"{there}/{name}", place) for name, place in places.items()])
    for name, place in places.items():
        place.chmod(0o600 if name == SECRETS else stat.S_IRUSR | stat.S_IWUSR | (modes[name] & 0o755))


def _is_safe(name: str) -> bool:
    parts = name.split("/")
    own = parts[0] == "scripts" or _APP.fullmatch(parts[0]) is not None or name == SECRETS
    return own and not any(part in {"", ".", ".."} for part in parts) and name.isprintable()


def _bring_reports(transport: Transport, there: str, here: folders.CampaignFolder, ledger: Ledger) -> None:
    """What runs left that are over: it is read again here."""
    everything = ledger.meta(COLLECT) == "everything"
    ended = ledger.runs(states=(State.DONE, State.FAILED))
    over = [run for run in ended if run.attempt > 0 and run.reading is not Reading.NONE]
    for at in range(0, len(over), _SOME):
        some = over[at : at + _SOME]
        collect(here, transport, there, some, everything=everything)
        reduced = ledger.reductions((State.DONE,), of={run.id for run in some})
        collect_reduced(here, transport, there, {row.id: row.attempt for row in reduced})
        ledger.update_tasks([run.id for run in some], reading=Reading.COLLECTED)


def chosen(known: Sequence[Attachable], named: str) -> Attachable:
    """The one of that id, or the only one whose id begins so.

    Raises:
        CampaignError: There is none, or there are several.
    """
    matches = [one for one in known if one.id == named] or [one for one in known if one.id.startswith(named)]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise CampaignError(f"no campaign '{named}' of yours on the site", hint="`nsw attach --site SITE` lists them")
    raise CampaignError(f"'{named}' begins the id of {len(matches)} campaigns: {', '.join(m.id for m in matches[-5:])}")
