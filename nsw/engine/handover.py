"""A campaign's folder on its site: made and closed to others, owned by one nsw, and what another needs to take it over.

Before each submission `handover/campaign.tar.gz` there gets the ledger's tables, with what was chosen and the
scheduler's ids, and the recipe's lock. Scripts and files of the application are there anyway. The fence
(nsw/transport/commands.py) keeps two nsw apart; commands that a killed nsw of this machine left behind are waited for.
"""

from __future__ import annotations

import getpass
import gzip
import io
import secrets
import socket
import stat
import tarfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from nsw.engine.folder import LEDGER, STATE, CampaignFolder, run_folder
from nsw.engine.ledger import Ledger
from nsw.engine.ledger_rows import OWNED_BY, SCRATCH, TAKEN_OVER, State
from nsw.engine.trust import WALK, refuse_strangers
from nsw.errors import CampaignError, CommandError, CommandResult, FencedError, UnreachableError, disk_full
from nsw.plan.command import FILE, PRIVATE
from nsw.resources import reducer_script
from nsw.safe_files import read_bytes, read_text, replacing_file, write_text
from nsw.schedulers.model import JOBS
from nsw.scripts.quoting import quote
from nsw.transport.commands import Fence, take_ownership
from nsw.transport.model import Transport, connect, read

__all__ = [
    "ARCHIVE",
    "RECIPE",
    "TOOLS",
    "Handover",
    "describe_owner",
    "fetch_stored_state",
    "follow_moved_folder",
    "forget_done",
    "forget_secrets",
    "handover_of",
    "lacks_secrets",
    "mark_of",
    "noting_owner",
    "pack",
    "prepare",
    "reducer_and_target",
    "require_owner",
    "require_success",
    "run_fenced",
    "site_in_hand",
    "unpack",
    "wait_for_commands",
    "write_secrets",
]

ARCHIVE: Final = "handover/campaign.tar.gz"
RECIPE: Final = "recipe.lock.yaml"
_MAX_UNPACKED: Final = {STATE: 1 << 30, RECIPE: 16 << 20}  # bytes that are unpacked of each
_MAX_PACKED: Final = 48 << 20  # bytes of the archive; a ledger of 10,000 runs packs into 2 MB
_BLOCK: Final = tarfile.BLOCKSIZE
_PIECE: Final = 1 << 20
_WRITE: Final = r"""
mkdir -p -m 700 "$1/handover" && cat >"$1/handover/.new" && mv -f "$1/handover/.new" "$1/handover/campaign.tar.gz"
"""
_WRITE_S: Final = 120.0
_CHECK_EVERY_S: Final = 60.0
_LEFT_MOST_S: Final = 150.0  # commands have a timeout of two minutes
_LOOK_S: Final = 0.05  # at first; each look at a site elsewhere starts a shell, so it is looked less and less often
_LOOK_MOST_S: Final = 2.0
_SAY_AFTER_S: Final = 1.0


def run_fenced(
    transport: Transport, fence: Fence | None, argv: Sequence[str], *, timeout: float = _WRITE_S, stdin: bytes = b""
) -> CommandResult:
    """Run a command that changes the campaign's folder on the site, unless an nsw elsewhere owns the campaign.

    Args:
        transport: The way to the site.
        fence: Refuses where an nsw elsewhere owns the campaign; None: none can.
        argv: The command and its arguments.
        timeout: Seconds after which it is ended.
        stdin: What it reads.

    Raises:
        FencedError: An nsw elsewhere owns the campaign; the command did not run.
    """
    if fence is None:
        return transport.run(argv, timeout=timeout, stdin=stdin)
    return fence.unfenced_result(argv, transport.run(fence.fenced_command(argv), timeout=timeout, stdin=stdin))


def require_owner(transport: Transport, fence: Fence | None) -> None:
    """Raise FencedError where an nsw elsewhere owns the campaign."""
    if fence is not None:
        run_fenced(transport, fence, ["true"])


def require_success(done: CommandResult, *, late: str, failure: str) -> None:
    """Raise where a command on the site gave no answer or failed.

    Args:
        done: What the command returned.
        late: The error message where it timed out.
        failure: The error message where its exit code is not 0.

    Raises:
        UnreachableError: It timed out.
        CommandError: It failed.
    """
    if done.timed_out:
        raise UnreachableError(f"{late}: {done.stderr.strip()}")
    if done.returncode != 0:
        raise CommandError(done, subject=failure)


class Handover:
    """A campaign that an nsw elsewhere may take over, in the hands of the one that drives it and holds its lock."""

    def __init__(self, folder: CampaignFolder, ledger: Ledger, transport: Transport, scratch: str) -> None:
        self._folder = folder
        self._ledger = ledger
        self._transport = transport
        self._scratch = scratch
        token = ledger.meta(OWNED_BY)
        if token is None:
            token = f"1 {secrets.token_hex(8)}"
            ledger.set_meta(OWNED_BY, token)
        self.fence = Fence(scratch, token, folder.id)
        self._checked = time.monotonic()

    def hold(self) -> None:
        """Own the folder there, unless another nsw does.

        Raises:
            FencedError: It does.
            CommandError: The folder cannot be written.
            UnreachableError: The site gave no answer.
        """
        token = self.fence.token
        with noting_owner(self._ledger):
            take_ownership(self._transport, self._scratch, self._folder.id, token, token, describe_owner())
        if self._ledger.meta(TAKEN_OVER) is not None:  # that nsw has removed its files since
            self._ledger.set_meta(TAKEN_OVER, None)

    def check(self) -> None:
        """Look now and then whether the campaign is still this nsw's, also while there is nothing to submit.

        Raises:
            FencedError: It is not.
        """
        if self.fence.lost is not None:
            raise self.fence.lost
        if time.monotonic() - self._checked >= _CHECK_EVERY_S:
            self._checked = time.monotonic()
            require_owner(self._transport, self.fence)

    def publish(self) -> None:
        """Put the present state there.

        Raises:
            FencedError: Another nsw owns the campaign.
            CommandError: It cannot be written.
            UnreachableError: The site gave no answer.
        """
        archive = pack(self._ledger.dump().encode(), read_bytes(self._folder.recipe))
        done = run_fenced(
            self._transport, self.fence, ["bash", "-c", _WRITE, "nsw", self._scratch], stdin=archive
        )  # fmt: skip
        require_success(
            done,
            late="the campaign's state could not be kept on the site",
            failure="the campaign's state cannot be kept on the site",
        )


@contextmanager
def noting_owner(ledger: Ledger) -> Iterator[None]:
    """Write down who took the campaign over, where the site says so: `nsw status` asks no site."""
    try:
        yield
    except FencedError as fault:
        if fault.owner is not None:
            ledger.set_meta(TAKEN_OVER, fault.owner)
        raise


def handover_of(folder: CampaignFolder, ledger: Ledger, transport: Transport, scratch: str) -> Handover | None:
    """Return the hand-over of a campaign; None on this machine, where the lock of its folder is enough.

    Args:
        folder: The campaign's folder here.
        ledger: Its ledger, which gets an owner's token where it has none.
        transport: The way to the site.
        scratch: The campaign's folder on the site.
    """
    return Handover(folder, ledger, transport, scratch) if transport.remote else None


@contextmanager
def site_in_hand(folder: CampaignFolder, ledger: Ledger) -> Iterator[tuple[Transport, str]]:
    """The way to the campaign's site and its folder there, to change files of it; the caller holds the lock here.

    Raises:
        FencedError: Another nsw took the campaign over.
        UnreachableError: The site gave no answer.
    """
    scratch = ledger.meta(SCRATCH)
    with closing(connect(ledger.site(), scratch, mark_of(folder, ledger))) as transport:
        if (handover := handover_of(folder, ledger, transport, scratch)) is not None:
            handover.hold()
        yield transport, scratch


def mark_of(folder: CampaignFolder, ledger: Ledger) -> Path:
    """The file whose lock the commands of this owner hold: those of a former owner are behind the fence."""
    epoch = (ledger.meta(OWNED_BY) or "1").partition(" ")[0]
    return folder.commands if epoch == "1" else folder.path / f"{folder.commands.name}.{epoch}"


def wait_for_commands(
    transport: Transport,
    say: Callable[[str], object],
    *,
    most_s: float = _LEFT_MOST_S,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> None:
    """Wait until no command of a killed nsw runs for this campaign: it may yet submit a job.

    Args:
        transport: The way to the site.
        say: Prints a line for the user; called once the wait takes a second.
        most_s: Seconds to wait at most.
        clock: Returns seconds; tests replace it.
        sleep: Waits for so many seconds; tests replace it.

    Raises:
        UnreachableError: A command still runs after `most_s` seconds.
    """
    start_time, has_reported, pause = clock(), False, _LOOK_S
    while transport.left_running():
        waited = clock() - start_time
        if waited >= most_s:
            raise UnreachableError(
                "a command that a killed nsw started is still running, and may yet submit a job",
                hint="`ps` there shows it; run `nsw resume` when it has ended",
            )
        if waited >= _SAY_AFTER_S and not has_reported:
            has_reported = True
            say(
                "a command that a killed nsw started is still running, and may yet submit a job:"
                f" it is waited for, at most {most_s:.0f} s"
            )
        sleep(pause)
        pause = min(pause * 1.5, _LOOK_MOST_S)


def describe_owner() -> str:
    """Who drives a campaign, for whoever finds it owned."""
    return f"{getpass.getuser()}@{socket.gethostname()} on {time.strftime('%Y-%m-%d %H:%M:%S UTC', time.gmtime())}"


def pack(state: bytes, recipe: bytes) -> bytes:
    """The archive of the ledger's tables and the recipe."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz", compresslevel=1) as archive:
        for name, content in ((STATE, state), (RECIPE, recipe)):
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), 0o600
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


def fetch_stored_state(transport: Transport, scratch: str, folder: Path) -> bytes:
    """Download the campaign's archive from its site, and unpack its two files into a folder here.

    The archive is read in one piece: its owner may replace it.

    Args:
        transport: The way to the site.
        scratch: The campaign's folder on the site.
        folder: The folder here that gets the files.

    Returns:
        The ledger in the archive, as the bytes of a SQLite file.

    Raises:
        UnreachableError: The site gave no answer, or the archive cannot be read.
        CampaignError: There is none, it is damaged, or the files cannot be written.
    """
    archive = read(transport, f"{scratch}/{ARCHIVE}", _MAX_PACKED)
    if archive is None:
        raise CampaignError(
            f"no state of the campaign is kept in {scratch}", hint="it ended before anything was submitted"
        )
    unpack(archive, folder)
    with Ledger(folder / STATE, state=read_bytes(folder / STATE)) as ledger:
        return ledger.snapshot()


def unpack(archive: bytes, folder: Path) -> None:
    """Write its two files into a folder, as `pack` made it: a header and the bytes of each, without extensions.

    Raises:
        CampaignError: It is damaged, lacks one, holds anything else, one is larger than any campaign's, or cannot be
            written here.
    """
    missing = dict(_MAX_UNPACKED)
    try:
        with gzip.open(io.BytesIO(archive)) as content:
            while (header := content.read(_BLOCK)).strip(b"\0"):
                info = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape")
                size_limit = missing.pop(info.name, None) if info.type == tarfile.REGTYPE else None
                if size_limit is None:
                    raise CampaignError(
                        f"the campaign's state on the site holds {info.name!r:.80}, which nsw never writes"
                    )
                if not 0 <= info.size <= size_limit:
                    raise CampaignError(f"{info.name} on the site has {info.size} bytes, more than any campaign's")
                _extract_file(content, info.size, folder / info.name)
                content.read(-info.size % _BLOCK)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as fault:
        raise CampaignError(f"the campaign's state on the site is damaged: {fault}") from None
    if missing:
        raise CampaignError(f"the campaign's state on the site lacks {next(iter(missing))}")


def _extract_file(content: gzip.GzipFile, size: int, path: Path) -> None:
    """Write the next bytes of an archive to a file.

    Raises:
        EOFError: There are fewer.
    """
    try:
        with replacing_file(path, 0o600) as file:
            while size > 0:
                if not (data := content.read(min(size, _PIECE))):
                    raise EOFError("it is cut short")
                file.write(data)
                size -= len(data)
    except gzip.BadGzipFile:
        raise
    except OSError as fault:
        raise disk_full(path, fault.strerror) from None


TOOLS: Final = "tools"  # folder of nsw's own programs there
# symbolic, so that the set-group-id bit of a project's folder stays
_MODES: Final = {"nobody": "u=rwx,go=", "group": "u=rwx,g=rx,o="}
# where others may write too, one of them may have put a link there first, or a folder, which root could close
_MAKE: Final = (
    r"""
umask go-w
[ -e "$1/$3" ] || made=new
mkdir -p -- "$1" || exit
[ ! -L "$1" ] || { echo "it is a symbolic link, which nsw does not follow" >&2; exit 1; }
[ "$EUID" -ne 0 ] || [ -O "$1" ] || { echo "it belongs to another user" >&2; exit 1; }
chmod -- "$2" "$1" || exit
[ -z "$3" ] || mkdir -p -- "$1/$3" || exit
printf '%s\0' "${made-}"
"""
    + WALK
)
# kept under another name, beside what else the attempt left; done twice it does no more than once
_ASIDE: Final = r"""
for run in "$@"; do
  for file in "$run"/attempt-*/status; do
    [ ! -e "$file" ] || mv -f "$file" "$file.before-retry" || exit
  done
done
"""
_OTHER_SCRATCH: Final = "name another folder as the site's scratch"
_COMMAND_S: Final = 60.0
_ASIDE_S: Final = 120.0
_READS_SECRETS: Final = b"\n    nsw_secrets "  # of the job's template


def write_secrets(file: Path, text: str) -> None:
    """Write a new file that only its owner can read."""
    write_text(file, text, 0o600)


def make_folder(
    transport: Transport, scratch: str, site: Mapping[str, Any], warn: Callable[[str], object] = lambda _text: None
) -> bool:
    """Make the campaign's folder on the site, closed to others, with a folder for jobs; whether one was not there.

    Args:
        transport: The way to the site.
        scratch: The folder there.
        site: The site as data.
        warn: Called with a sentence where the owner of a folder above is not known.

    Raises:
        CampaignError: The site does not let it be made or closed, or a stranger could replace it.
        UnreachableError: The connection was lost.
    """
    mode = _MODES["group" if site.get("share") == "group" else "nobody"]
    is_new, walked = _make_site_folder(transport, scratch, mode, JOBS)
    refuse_strangers(walked, scratch, site.get("trusted_owners") or (), warn, hint=_OTHER_SCRATCH)
    return is_new


def prepare(
    folder: CampaignFolder,
    transport: Transport,
    scratch: str,
    site: Mapping[str, Any],
    warn: Callable[[str], object] = lambda _text: None,
) -> bool:
    """Make the campaign's folder on the site, closed to others, with a folder for jobs and the secrets in it.

    Args:
        folder: The campaign.
        transport: The way to the site.
        scratch: The folder there.
        site: The site as data.
        warn: Called with a sentence where the owner of a folder above is not known.

    Returns:
        Whether it, or the folder for jobs, was not there.

    Raises:
        CampaignError: The site does not let it be made or closed, or a stranger could replace it.
        UnreachableError: The connection was lost.
    """
    is_new = make_folder(transport, scratch, site, warn)
    if folder.secrets.exists():
        _make_site_folder(transport, f"{scratch}/{PRIVATE}", _MODES["nobody"])
        transport.stage([(folder.secrets, f"{scratch}/{FILE}")])
    return is_new


def _make_site_folder(transport: Transport, there: str, mode: str, inside: str = "") -> tuple[bool, str]:
    """Make a folder on the site; whether it is new, and what `WALK` printed of it."""
    done = transport.run(["bash", "-c", _MAKE, "nsw", there, mode, inside], timeout=_COMMAND_S)
    if done.timed_out:
        raise UnreachableError(f"the campaign's folder {there} could not be made: {done.stderr.strip()}")
    if done.returncode != 0:
        raise CampaignError(
            f"the campaign's folder {there} cannot be made and closed to other users: {done.stderr.strip()}",
            hint=_OTHER_SCRATCH,
        )
    made, _, walked = done.stdout.partition("\0")
    return made == "new", walked


def forget_secrets(folder: CampaignFolder, ledger: Ledger, transport: Transport, scratch: str) -> None:
    """Remove the secrets, here and on the site, once no retry needs them: every run is done and complete.

    If the site cannot remove its copy, the one here stays for another try.

    Args:
        folder: The campaign's folder here.
        ledger: Its ledger.
        transport: The way to the site.
        scratch: The campaign's folder on the site.
    """
    open_runs = sum(n for state, n in ledger.counts().items() if state != State.DONE)
    if open_runs or ledger.incomplete() or ledger.unreadable() or not folder.secrets.exists():
        return
    done = transport.run(["rm", "-f", "--", f"{scratch}/{FILE}"], timeout=_COMMAND_S)
    if done.returncode == 0:
        folder.secrets.unlink()


def lacks_secrets(folder: CampaignFolder, jobs: Iterable[str]) -> bool:
    """Whether the script of one of these jobs reads the secrets, and the file with them was removed."""
    if folder.secrets.exists():
        return False
    scripts = (folder.script(job) for job in jobs)
    return any(_READS_SECRETS in read_bytes(script) for script in scripts if script.exists())


def reducer_and_target(scratch: str) -> tuple[Path, str]:
    """The file that reduces reports, and where the scripts of reductions look for it in the folder there."""
    return reducer_script(), f"{scratch}/{TOOLS}/reduce_export.py"


def forget_done(folder: CampaignFolder, ledger: Ledger, runs: Sequence[str]) -> None:
    """Move earlier attempts of runs that were done aside, so that they can begin again.

    A job's script skips a run that it finds done. The caller holds the campaign's lock.

    Args:
        folder: The campaign's folder here.
        ledger: Its ledger.
        runs: The ids of the runs that begin again; their reductions do too.

    Raises:
        FencedError: Another nsw took the campaign over.
        UnreachableError: The site could not be asked.
    """
    done = [run.id for run in ledger.runs_named(runs) if run.state in {State.DONE, State.INVALID}]
    done += [row.id for row in ledger.reductions((State.DONE,), run_ids=set(runs))]
    if not done:
        return
    with site_in_hand(folder, ledger) as (transport, scratch):
        homes = [run_folder(scratch, run, 1).rpartition("/")[0] for run in done]
        moved = transport.run(["bash", "-c", _ASIDE, "nsw", *homes], timeout=_ASIDE_S)
    if moved.returncode != 0:
        raise UnreachableError(CommandError(moved, subject="the earlier attempts could not be moved aside").message)


def follow_moved_folder(folder: CampaignFolder, ledger: Ledger) -> None:
    """Where the campaign was moved with its folder on the site inside its own: to the new place, in ledger and scripts.

    A copy, whose original is still there, keeps the original's folder. A folder on the site outside the campaign's own
    does not move with it. Jobs that were submitted before go on in the old place. The caller holds the lock.
    """
    was, now = Path(ledger.meta(SCRATCH)), (folder.path / "scratch").absolute()
    if was == now or was.name != now.name or not now.is_dir() or (was.parent / LEDGER).exists():
        return
    for script in folder.scripts.glob("*.sh"):
        text = read_text(script).replace(quote(str(was)), quote(str(now)))
        write_text(script, text, stat.S_IMODE(script.stat().st_mode))
    ledger.set_meta(SCRATCH, str(now))
