"""`nsw adopt`: let nsw act for a campaign that was made elsewhere, once the user saw what it would do."""

from __future__ import annotations

import json
import os
import re
import stat
from typing import TYPE_CHECKING, Any, Final

from nsw.engine.driven import look
from nsw.engine.folder import STATE, CampaignFolder
from nsw.engine.ledger_rows import IN_FLIGHT, ORIGINS, SCRATCH, SITE, BuildRow, RunRow
from nsw.engine.recipe_lock import locked_recipe
from nsw.engine.trust import require_own_root
from nsw.errors import CampaignError, NswError, UsageError
from nsw.safe_files import user_name, write_bytes
from nsw.site.names import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nsw.engine.ledger import Ledger
    from nsw.recipe.model import Recipe

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
    shown: bytes | None = None
    if os.path.lexists(folder.path / STATE):
        with look(folder) as ledger:
            require_own_root(folder.path, _trusted_owners(ledger.meta(SITE)), warn)
            lines = acts_of(ledger.site(), ledger.meta(SCRATCH), locked_recipe(folder))
            lines += _actions_of_ledger(ledger)
            shown = ledger.snapshot()
    else:
        require_own_root(folder.path, (), warn)
        file = folder.ledger.name
        lines = [
            f"an older nsw made it: nsw opens {file} once you agree, and uses what is in it as it is",
            "adopting starts nothing; if this is a copy, the original stays as it is",
        ]
    consent(f"Let nsw act for campaign {folder.id}?", [*lines, f"scripts of jobs: those in {folder.scripts}"])
    folder.path.chmod(
        stat.S_IMODE(status.st_mode) & ~stat.S_IRWXO
    )  # whoever may write below it cannot enter it any more
    if shown is not None:  # what was shown, and nothing that lies beside it, such as SQLite's log of writes
        for beside in folder.path.glob(f"{folder.ledger.name}-*"):
            beside.unlink()
        write_bytes(folder.ledger, shown)
    folder.trust()
    return True


def _refuse_strange_files(folder: CampaignFolder) -> None:
    """Refuse a campaign with files of others, or that everybody may write, or links: nsw writes and runs what is there.

    What programs left in the folders of their runs is theirs: nsw does not run it, and follows no link there.

    Raises:
        CampaignError: There is one.
    """
    for path, folders, files, descriptor in os.fwalk(folder.path, follow_symlinks=False):
        if _OF_PROGRAM.fullmatch(path.removeprefix(str(folder.path))):
            folders.clear()
            continue
        for name in (*folders, *files):
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
    flying = {task.submission for task in tasks if task.state in IN_FLIGHT}
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


def refuse(question: str, lines: list[str]) -> None:
    """The consent of a program that did not say yes.

    Raises:
        UsageError: Always; it says what nsw would do.
    """
    raise UsageError("\n  ".join([f"{question} Nothing was adopted.", *lines]), hint="yes=True says yes")
