"""The recipe's build step before the loop and after it: files go to the site, failed builds are reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.engine.collect import Status, read_status
from nsw.engine.folder import PROGRAM
from nsw.engine.handover import reducer_and_target
from nsw.engine.ledger_rows import IN_FLIGHT, PREPARED, BuildRow, Cause, State
from nsw.errors import CampaignError, CommandError, UnreachableError
from nsw.safe_files import write_text
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from nsw.engine.driven import DrivenCampaign


# the numbers of those paths, of a list that ends each with a NUL, that are not there
_ABSENT = r"""
number=0
while IFS= read -r -d '' path; do
  [ -e "$path" ] || echo "$number"
  number=$((number + 1))
done
"""
_ASK_S = 120.0
_TAIL = 25  # lines
_OUTPUT_BYTES = 1 << 20
_BAD = (State.FAILED, State.LOST)
_AGAIN = (*_BAD, State.CANCELLED)


def programs_in(home: Path, build_apps: Iterable[str] = ()) -> list[tuple[Path, str]]:
    """Each program in a campaign's folder, and the folders on the site that it belongs in: app, app-2, app-2-n-1.

    Args:
        home: The campaign's folder.
        build_apps: Those of builds that are meant; none: the programs' own, all of them.
    """
    folders = {path.name: path for path in home.iterdir() if PROGRAM.fullmatch(path.name) and any(path.iterdir())}
    matches = ((app, PROGRAM.match(app)) for app in sorted(set(build_apps) or folders))
    return [(folders[m[0]], app) for app, m in matches if m is not None and m[0] in folders]


class Builds:
    """The builds of one campaign; the caller holds its lock.

    Args:
        campaign: The campaign.
    """

    def __init__(self, campaign: DrivenCampaign) -> None:
        self._campaign = campaign

    def prepare(self) -> None:
        """Put what jobs need and lack on the site, and plan again the builds that went wrong and are needed."""
        builds = self._campaign.ledger.builds()
        staged = self._files_to_stage({build.app for build in builds})
        if self._campaign.ledger.meta(PREPARED) and (staged := self._missing_on_site(staged, builds)):
            self._campaign.warn(
                f"{self._campaign.scratch} lacks {plural(len(staged), 'file')} that jobs need: nsw sends them again"
            )
        if staged:
            self._campaign.transport.stage(staged)
        if not self._campaign.ledger.meta(PREPARED):
            self._campaign.transport.make_folders([f"{self._campaign.scratch}/{build.app}" for build in builds])
            self._campaign.ledger.set_meta(PREPARED, True)
        needed = self._campaign.ledger.needed_builds(State.PLANNED) if builds else set()
        for build in builds:
            if build.id not in needed or self._was_ever_done(build):
                continue
            # an nsw of before built without a submission; one that was killed meanwhile left this state
            unknown = build.state in IN_FLIGHT and build.submission is None
            if unknown or build.state in _AGAIN:
                self._campaign.ledger.release([build.id])

    def _files_to_stage(self, apps: set[str]) -> list[tuple[Path, str]]:
        """The files and folders that jobs need there, each with its path on the site."""
        folder, scratch = self._campaign.folder, self._campaign.scratch
        staged = [(here, f"{scratch}/{app}") for here, app in programs_in(folder.path, apps)]
        if self._campaign.transport.remote:
            staged.append((folder.scripts, f"{scratch}/scripts"))
        else:  # its own scripts are read where they are
            staged += [(file, f"{scratch}/scripts/{file.name}") for file in folder.scripts.glob("nsw-*.sh")]
        if self._campaign.ledger.has_reductions():
            staged.append(reducer_and_target(scratch))
        return staged

    def _missing_on_site(self, staged: Iterable[tuple[Path, str]], known: Iterable[BuildRow]) -> list[tuple[Path, str]]:
        """The staged files that were removed from the site; a folder that a build works in belongs to the build.

        Raises:
            UnreachableError: The site could not be asked.
        """
        built = {f"{self._campaign.scratch}/{build.app}" for build in known}
        files = [
            (file, f"{there}/{file.relative_to(here)}" if file != here else there)
            for here, there in staged
            for file in (sorted(here.rglob("*")) if here.is_dir() and there not in built else [here])
            if there in built or file.is_file()
        ]
        names = "".join(f"{there}\0" for _, there in files).encode(errors="surrogateescape")
        done = self._campaign.transport.run(["bash", "-c", _ABSENT, "nsw"], timeout=_ASK_S, stdin=names)
        if done.returncode != 0 or done.timed_out:
            raise UnreachableError(
                CommandError(done, subject="the campaign's files there could not be looked at").message
            )
        return [files[int(number)] for number in done.stdout.split()]

    def conclude(self) -> list[str]:
        """Once no run is planned or in flight: the builds that went wrong.

        Returns:
            A message for each, with the end of what it printed.

        Raises:
            CampaignError: No run of the campaign is done, for want of a build.
        """
        needed = self._campaign.ledger.needed_by()  # not those in whose place another was made
        bad = [b for b in self._campaign.ledger.builds() if b.state in _BAD and b.id in needed]
        failures = [self._failure_text(b) for b in bad]
        if failures and not self._campaign.ledger.counts().get("done"):
            hint = (
                "correct it and start again, or run `nsw retry --update-app`, which builds again and continues;"
                f" `nsw logs {bad[0].id}` shows what it printed, and all of that is in"
                f" {self._campaign.folder.path / 'build.txt'}"
            )
            raise CampaignError("\n".join(failures), hint=hint)
        return failures

    # --- what is known of a build -----------------------------------------------------------------------

    def _was_ever_done(self, build: BuildRow) -> bool:
        """Whether it was ever done, as far as the ledger or one of its attempts says."""
        if build.state is State.DONE:
            return True
        for attempt in range(build.attempt, 0, -1):
            status = self._build_status(build, attempt)
            if status is not None and status.state == "done":
                self._campaign.ledger.update_tasks([build.id], state=State.DONE, reason=None, host=status.host,
                                           started=status.started, ended=status.ended, exit_code=0)  # fmt: skip
                return True
        return False

    def _build_status(self, build: BuildRow, attempt: int) -> Status | None:
        home = self._campaign.home(build.id, attempt)
        return read_status(self._campaign.transport, home)

    def _build_output(self, build: BuildRow) -> str:
        home = self._campaign.home(build.id, build.attempt)
        outputs = [self._campaign.transport.tail(f"{home}/{name}", _OUTPUT_BYTES) for name in ("stdout", "stderr")]
        return b"".join(text for text in outputs if text).decode(errors="backslashreplace")

    def _failure_text(self, build: BuildRow) -> str:
        status, output = self._build_status(build, build.attempt), self._build_output(build)
        write_text(self._campaign.folder.path / "build.txt", output)
        outcome = "was not done"
        if status is None:
            outcome += f": {build.reason}" if build.reason else ""
        elif status.state == "running":
            outcome = "was ended before it was done" + (f": {build.reason}" if build.reason else "")
        elif status.reason is not None and status.reason.cause is Cause.EXIT:
            outcome = f"failed with {status.reason}"
        else:
            outcome = f"failed: {status.reason}"
        tail = "\n".join("  | " + line for line in output.splitlines()[-_TAIL:])
        return f"the build step {outcome}: {build.command}\n{tail}".rstrip("\n")
