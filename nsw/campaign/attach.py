"""Campaigns that began elsewhere: `nsw attach` takes one over from its site, `nsw adopt` acts for its folder here."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import stat
import tempfile
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nsw.engine import folder as folders
from nsw.engine import ledger_rows
from nsw.engine.collect import collect, collect_reduced
from nsw.engine.driven import ledger_to_read
from nsw.engine.folder import LEDGER, STATE, CampaignFolder, locked
from nsw.engine.handover import RECIPE, describe_owner, fetch_stored_state, require_success
from nsw.engine.ledger import Ledger
from nsw.engine.ledger_rows import COLLECT, ORIGINS, OWNED_BY, SCRATCH, SITE, BuildRow, Reading, RunRow, State
from nsw.engine.recipe_lock import locked_recipe
from nsw.engine.trust import forget, require_own_folder, require_own_place, require_own_root
from nsw.errors import CampaignError, CommandError, NswError, UnreachableError, UsageError
from nsw.plan.command import FILE as SECRETS
from nsw.recipe.load import load_recipe_text
from nsw.safe_files import make_folders, read_bytes, read_text, readable_by_group, user_name, write_bytes
from nsw.site.names import LOCAL
from nsw.transport.commands import take_ownership

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from nsw.recipe.model import Recipe
    from nsw.site.load import LoadedSite
    from nsw.transport.model import Transport

__all__ = [
    "Attachable",
    "Attached",
    "CampaignsOnSite",
    "acts_of",
    "adopt",
    "attachable",
    "campaigns_on_site",
    "refuse_without_consent",
    "site_of_local_campaign",
]


_SECONDS: Final = 120.0
_TOGETHER: Final = 200  # runs whose reports are brought together
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
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
for top in app app.before app-[0-9]* scripts private/secrets.sh; do
  [ ! -e "$top" ] || [ -L "$top" ] || find "$top" -xdev -type f -printf '%m\t%p\0' || exit
done
"""


@dataclass(frozen=True, slots=True)
class Attachable:
    """A campaign on a site that can be taken over: its id, the present owner's token, and who that is."""

    id: str
    token: str
    owner: str


@dataclass(frozen=True, slots=True)
class Attached:
    """A campaign that is here now, to be resumed.

    Attributes:
        folder: Its folder.
        taken_over: Whether another nsw owned it until now.
        owner: Who that was, where it is known.
    """

    folder: folders.CampaignFolder
    taken_over: bool
    owner: str


@contextmanager
def campaigns_on_site(site: str | None, sites: Sequence[Path] | None) -> Iterator[CampaignsOnSite]:
    """Look for campaigns on a site, the default one where none is named; `sites` are files to search first.

    Raises:
        UsageError: There is no such site, or it is this machine.
        UnreachableError: It cannot be reached.
    """
    from nsw.campaign.planning import connect_to_site
    from nsw.site.load import load_site

    loaded_site = load_site(site, list(sites) if sites else None)
    with closing(connect_to_site(loaded_site)) as transport:
        if not transport.remote or loaded_site.site.scratch is None:
            raise UsageError(
                f"site {loaded_site.site.name} is this machine",
                hint="`nsw resume` continues a campaign on this machine",
            )
        base = transport.expand(loaded_site.site.scratch)
        yield CampaignsOnSite(loaded_site, base, attachable(transport, base), transport)


def attachable(transport: Transport, base: str) -> list[Attachable]:
    """This user's campaigns below a site's scratch folder, oldest first.

    Raises:
        UnreachableError: The site gave no answer.
    """
    completed = transport.run(["bash", "-c", _LIST, "nsw", base], timeout=_SECONDS)
    if completed.timed_out or completed.returncode != 0:
        raise UnreachableError(CommandError(completed, subject=f"{base} cannot be listed").message)
    records = (record.split("\t", 2) for record in completed.stdout.split("\0"))
    campaigns = [Attachable(*parts) for parts in records if len(parts) == 3 and _ID.fullmatch(parts[0])]
    return sorted(campaigns, key=lambda campaign: (campaign.id.rsplit("-", 3)[1:3], campaign.id))


def site_of_local_campaign(campaign: str, root: Path | None) -> str | None:
    """The site of a campaign that this machine drove before; None for one that is not here."""
    try:
        folder = folders.find(folders.root(root), campaign)
    except CampaignError:
        return None
    with ledger_to_read(folder) as ledger:
        return str(ledger.site()["name"])


@dataclass(frozen=True, slots=True)
class CampaignsOnSite:
    """The campaigns below a site's scratch folder, while the connection is open."""

    loaded_site: LoadedSite
    base: str
    campaigns: Sequence[Attachable]
    _transport: Transport

    def attach(
        self,
        name: str,
        root: Path | None,
        consent: Callable[[str, list[str]], object],
        warn: Callable[[str], object],
    ) -> Attached:
        """Become the owner of a campaign, and make its folder below `root`, or update the one that is there.

        nsw acts for it from then on.

        Args:
            name: The campaign's id, or a beginning that no other campaign on the site has.
            root: The folder of campaigns on this machine; None: NSW_ROOT or ./campaigns.
            consent: Called with a question and with what nsw would do, a line each; it raises where the answer is no.
            warn: Called with what a person should know of the folders above it.

        Raises:
            CampaignError: There is no such campaign, what is there is not what nsw leaves, or its owner is submitting.
            CampaignLockedError: An nsw on this machine drives it.
            UnreachableError: The site gave no answer.
        """
        chosen = self._find_by_id(name)
        local = folders.CampaignFolder(folders.root(root) / chosen.id)
        local_token = None
        if local.ledger.exists():
            with ledger_to_read(local) as ledger:
                local_token = ledger.meta(OWNED_BY)
        is_known = local.path.is_dir() and local.trusted
        if is_known and local_token is not None and local_token == chosen.token:
            return Attached(local, taken_over=False, owner="")
        if not is_known:
            trusted, hint = self.loaded_site.site.trusted_owners, "name a folder of yours as the site's scratch"
            require_own_place(self._transport, f"{self.base}/{chosen.id}", trusted, warn, hint=hint)
        with tempfile.TemporaryDirectory(prefix="nsw-attach-") as temporary:
            shown_actions = self._planned_actions(
                chosen.id, local.recipe if is_known else self._fetch_recipe(chosen.id, temporary)
            )
        if not is_known:
            self._ask_consent(chosen.id, shown_actions, consent)
        share = self.loaded_site.site.share
        with readable_by_group(share), _local_folder(local, folders.root(root) / chosen.id, share, warn), locked(local):
            self._take_over(local, shown_actions, consent)
        return Attached(local, taken_over=True, owner=chosen.owner)

    def _fetch_recipe(self, campaign: str, folder: str) -> Path:
        """The recipe that is kept on the site, brought into a folder here."""
        fetch_stored_state(self._transport, f"{self.base}/{campaign}", Path(folder))
        return Path(folder, RECIPE)

    def _planned_actions(self, campaign: str, recipe: Path) -> list[str]:
        """What nsw would do for a campaign by its recipe, a line each."""
        try:
            text = read_text(recipe)
        except UnicodeDecodeError as fault:
            raise CampaignError(f"{self.base}/{campaign}: {RECIPE} is not UTF-8 ({fault.reason})") from None
        site = self.loaded_site.site.model_dump(mode="json", by_alias=True)
        return acts_of(site, f"{self.base}/{campaign}", load_recipe_text(text, RECIPE).recipe)

    @staticmethod
    def _ask_consent(campaign: str, acts: list[str], consent: Callable[[str, list[str]], object]) -> None:
        consent(f"Take campaign {campaign} over, and let nsw act for it?", acts)

    def _find_by_id(self, name: str) -> Attachable:
        """The campaign with that id, or the only one whose id begins so."""
        campaigns = self.campaigns
        matches = [campaign for campaign in campaigns if campaign.id == name] or [
            campaign for campaign in campaigns if campaign.id.startswith(name)
        ]
        if len(matches) == 1:
            return matches[0]
        if not matches:
            raise CampaignError(
                f"no campaign '{name}' of yours on the site", hint="`nsw attach --site SITE` lists them"
            )
        newest = ", ".join(campaign.id for campaign in matches[-5:])
        raise CampaignError(f"'{name}' begins the id of {len(matches)} campaigns: {newest}")

    def _take_over(
        self, local: folders.CampaignFolder, shown_actions: list[str], consent: Callable[[str, list[str]], object]
    ) -> None:
        transport, remote_path = self._transport, f"{self.base}/{local.id}"
        # first of all: what the former owner kept there does not change any more
        token = take_ownership(transport, remote_path, local.id, f"0 {secrets.token_hex(8)}", "*", describe_owner())
        with tempfile.TemporaryDirectory(prefix=".nsw-", dir=local.path) as temporary:
            new = Path(temporary, LEDGER)
            write_bytes(new, fetch_stored_state(transport, remote_path, Path(temporary)))
            acts = self._planned_actions(local.id, Path(temporary, RECIPE))
            if acts != shown_actions:  # the site gave something else before
                self._ask_consent(local.id, acts, consent)
            with Ledger(new) as ledger:
                if ledger.meta(SCRATCH) != remote_path:
                    raise CampaignError(
                        f"what is in {remote_path} is the state of another campaign, in {ledger.meta(SCRATCH)}"
                    )
                with ledger.transaction():
                    ledger.set_meta(SITE, self.loaded_site.site.name)
                    ledger.set_meta(ledger_rows.SITE_DATA, self.loaded_site.site.model_dump(mode="json", by_alias=True))
                    ledger.set_meta(OWNED_BY, token)
                _fetch_files(transport, remote_path, local)
                _fetch_reports(transport, remote_path, local, ledger)
            if local.ledger.exists():
                local.ledger.replace(local.path / f"{LEDGER}.superseded")
            write_bytes(local.recipe, read_bytes(Path(temporary, RECIPE)))  # which the group may read
            new.replace(local.ledger)  # last: a folder without it is no campaign yet


@contextmanager
def _local_folder(
    here: folders.CampaignFolder, path: Path, share: str, warn: Callable[[str], object]
) -> Iterator[None]:
    """Make the campaign's folder if it does not exist; remove a new one if the block fails."""
    if is_new := not here.path.exists():
        folders.make_private(here.path, share)
    try:
        if not here.trusted:
            require_own_folder(here.directory, path, (), warn)
        for sub in (here.scripts, here.reports, here.tables, here.app):
            make_folders(sub)
        if not here.trusted:
            here.trust()
        yield
    except BaseException:
        if is_new:
            forget(here.directory)
            shutil.rmtree(here.path, ignore_errors=True)
        raise


def _fetch_files(transport: Transport, remote_path: str, local: folders.CampaignFolder) -> None:
    """The scripts, the application's files and the secrets."""
    completed = transport.run(["bash", "-c", _FILES, "nsw", remote_path], timeout=_SECONDS)
    require_success(completed, late=f"{remote_path} could not be listed", failure=f"{remote_path} cannot be listed")
    modes: dict[str, int] = {}
    for record in completed.stdout.split("\0"):
        mode, _, name = record.partition("\t")
        if name and re.fullmatch("[0-7]{3,4}", mode) and _is_safe_name(name):
            modes[name] = int(mode, 8)
    targets = {name: local.secrets if name == SECRETS else local.path / name for name in modes}
    transport.get_many([(f"{remote_path}/{name}", target) for name, target in targets.items()])
    for name, target in targets.items():
        target.chmod(0o600 if name == SECRETS else stat.S_IRUSR | stat.S_IWUSR | (modes[name] & 0o755))


def _is_safe_name(name: str) -> bool:
    parts = name.split("/")
    is_expected = parts[0] == "scripts" or folders.PROGRAM.fullmatch(parts[0]) is not None or name == SECRETS
    return is_expected and not any(part in {"", ".", ".."} for part in parts) and name.isprintable()


def _fetch_reports(transport: Transport, remote_path: str, local: folders.CampaignFolder, ledger: Ledger) -> None:
    """What runs left that are over: it is read again here."""
    all_files = ledger.meta(COLLECT) == "everything"
    ended = ledger.runs(states=ledger_rows.WITH_OUTPUT)
    collectable = [run for run in ended if run.attempt > 0 and run.reading is not Reading.NONE]
    for first in range(0, len(collectable), _TOGETHER):
        batch = collectable[first : first + _TOGETHER]
        collect(local, transport, remote_path, batch, all_files=all_files)
        reduced = ledger.reductions((State.DONE,), run_ids={run.id for run in batch})
        collect_reduced(local, transport, remote_path, {row.id: row.attempt for row in reduced})
        ledger.read_again([run.id for run in batch])


# --- nsw adopt ------------------------------------------------------------------------------------------------


_OF_PROGRAM: Final = re.compile(r"/scratch/runs/[^/]+/attempt-[0-9]+")  # where a run works, in the scratch of `local`
_OF_SITE: Final = ("profilers", "templates", "modules", "extra", "node_launcher", "python", "env")


def adopt(folder: CampaignFolder, consent: Callable[[str, list[str]], object], warn: Callable[[str], object]) -> bool:
    """Act for a campaign from now on.

    Args:
        folder: The campaign.
        consent: Called with a question and with what nsw would do, a line each; it raises where the answer is no.
        warn: Called with what a person should know of the folders above it.

    Returns:
        Whether nsw did not act for it before.

    Raises:
        CampaignError: It is another user's, or others may write it.
    """
    if folder.trusted:
        return False
    status = os.fstat(folder.directory)
    if folder.other_owner:
        folder.require_trust()
    if status.st_mode & stat.S_IWOTH:
        raise CampaignError(
            f"everyone can write to campaign {folder.id} and could change what nsw runs",
            hint=f"`chmod -R o-w {folder.path}` closes it; look at what is in it before you adopt it",
        )
    _refuse_strange_files(folder)
    with ledger_to_read(folder) as ledger:
        require_own_root(folder.path, _trusted_owners(ledger.meta(SITE)), warn)
        lines = acts_of(ledger.site(), ledger.meta(SCRATCH), locked_recipe(folder))
        lines += _actions_of_ledger(ledger)
        snapshot = ledger.snapshot()
    consent(f"Let nsw act for campaign {folder.id}?", [*lines, f"scripts of jobs: those in {folder.scripts}"])
    folder.path.chmod(
        stat.S_IMODE(status.st_mode) & ~stat.S_IRWXO
    )  # whoever may write below it cannot enter it any more
    if os.path.lexists(folder.path / STATE):  # else the ledger of an older nsw was shown: the next nsw migrates it
        for log in folder.path.glob(f"{folder.ledger.name}-*"):  # such as SQLite's log of writes
            log.unlink()
        write_bytes(folder.ledger, snapshot)
    folder.trust()
    return True


def _refuse_strange_files(folder: CampaignFolder) -> None:
    """Refuse a campaign with files of others, or that everybody may write, or links: nsw writes and runs what is there.

    What programs left in the folders of their runs is theirs: nsw does not run it, and follows no link there.

    Raises:
        CampaignError: There is one.
    """
    for path, subfolders, files, descriptor in os.fwalk(folder.path, follow_symlinks=False):
        if _OF_PROGRAM.fullmatch(path.removeprefix(str(folder.path))):
            subfolders.clear()
            continue
        for name in (*subfolders, *files):
            status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                problem, hint = "is a link, and nsw follows none there", "remove it, and adopt the campaign then"
            elif status.st_uid != os.geteuid():
                problem, hint = (
                    f"belongs to {user_name(status.st_uid)}",
                    "copy the campaign to make it yours, and look at what is in it",
                )
            elif status.st_mode & stat.S_IWOTH:
                problem, hint = (
                    "can be written by everyone",
                    f"`chmod -R o-w {folder.path}` closes it; look at what is in it first",
                )
            else:
                continue
            raise CampaignError(f"{path}/{name} {problem}", hint=hint)


def _actions_of_ledger(ledger: Ledger) -> list[str]:
    """Further actions from the ledger: jobs or processes that nsw would follow and could end, files it would copy."""
    tasks: list[RunRow | BuildRow] = [*ledger.runs(), *ledger.builds(), *ledger.reductions()]
    flying = {task.submission for task in tasks if task.state in ledger_rows.IN_FLIGHT}
    jobs = [ids for name, ids in ledger.native_ids().items() if name in flying and ids]
    origins = ledger.meta(ORIGINS) or []
    return [
        *([f"jobs or processes that it follows, and could end: {', '.join(jobs)}"] if jobs else []),
        *([f"files that --update-app would copy: {_as_json([str(file) for file, *_ in origins])}"] if origins else []),
    ]


def _trusted_owners(site: str) -> Sequence[str | int]:
    """The users whom the user's own file trusts as owners of folders on this machine."""
    from nsw.site.load import load_site

    try:
        site_entry = load_site(site, None).site
    except NswError:  # it is not described here
        return ()
    return site_entry.trusted_owners if site_entry.transport.kind == LOCAL else ()


def acts_of(site: Mapping[str, Any], scratch: str, recipe: Recipe) -> list[str]:
    """Return what nsw does for a campaign, a line each: where it connects, what it starts, where it writes and removes.

    Args:
        site: The campaign's site as data.
        scratch: The campaign's folder on the site.
        recipe: The campaign's recipe.
    """
    transport = {name: value for name, value in (site.get("transport") or {}).items() if value}
    app = recipe.app
    starts = {f"site's {name}": site[name] for name in _OF_SITE if site.get(name)}
    starts |= app.model_dump(
        mode="json", exclude={"figures", "files"}, exclude_defaults=True
    )  # of env no secret's value
    notify = recipe.notify or site.get("notify")
    return [
        f"host: {_as_json(transport)}, scheduler {site.get('scheduler')}",
        f"programs: {_as_json(starts)}",
        f"scratch: {scratch}",
        f"notify: {_as_json(notify) if notify else 'nothing'}",
    ]


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def refuse_without_consent(question: str, lines: list[str]) -> None:
    """The consent of a program that did not say yes.

    Raises:
        UsageError: Always; it says what nsw would do.
    """
    raise UsageError("\n  ".join([f"{question} Nothing was adopted.", *lines]), hint="yes=True says yes")
