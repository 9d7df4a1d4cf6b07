"""The table of a crash test, beside its peers'."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from nsw import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .crash_evidence import Outcome

# tool, jobs, kills, submitted before the kill, submitted in all after its own resume, submitted again, note
PEERS = (
    ("JUBE continue", "200", "10", "7-112", "200, 201", "0 or 1", "one campaign in ten could not be continued"),
    (
        "dpdispatcher, in submission",
        "100",
        "3",
        "29, 73, 49",
        "129, 173, 149",
        "29, 73, 49",
        "its state is written when all are submitted",
    ),
    ("dpdispatcher, all submitted", "50", "1", "50", "50", "0", ""),
    ("Snakemake --rerun-incomplete", "8", "1", "8", "16", "8", "after an --unlock"),
    ("ReFrame --restore-session", "50", "1", "49", "99", "49", "the 49 stay in the queue, orphaned"),
    ("Maestro conductor, first cycle", "200", "1", "78-79", "279", "79", "status: INITIALIZED for all"),
    ("Maestro conductor, all submitted", "200", "1", "200", "400", "200", "starts from its study again"),
)
HEAD = ("", "jobs", "kills", "submitted before", "submitted in all", "again", "done once", "twice", "reported", "note")
CITED = (
    "The peers' rows were measured before, with each tool's own commands on a Slurm 22.05 of one machine of two cores."
)


def lines(rows: Iterable[tuple[str, Outcome]], seed: str, notes: Iterable[str] = ()) -> list[str]:
    """The machine, the table, when it was killed, why runs were reported."""
    rows = list(rows)
    cells = [HEAD, *(_row(name, found) for name, found in rows)]
    cells += [(tool, jobs, kills, *some, "", "", "", note) for tool, jobs, kills, *some, note in PEERS]
    widths = [max(len(row[at]) for row in cells) for at in range(len(HEAD) - 1)]
    table = ["  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:-1], widths[1:], strict=True)),
                        row[-1]]).rstrip() for row in cells]  # fmt: skip
    table.insert(1 + len(rows), "")
    more = [f"{name}: {', '.join(f'{n} {phase}' for phase, n in sorted(found.phases.items()))};"
            f" sbatch killed: {', '.join(f'{n} {when}' for when, n in sorted(found.clients.items())) or 'none'};"
            f" controller ended {found.ends} times" for name, found in rows]  # fmt: skip
    reported = [f"{name}: {n} reported {reason}" for name, found in rows for reason, n in found.reasons.items()]
    return [machine(seed), "", *table, "", CITED, "", "nsw was killed while", *more, *reported, *notes]


def _row(name: str, found: Outcome) -> tuple[str, ...]:
    note = f"{len(found.untold) + len(found.wrong)} lost without a word, {len(found.stuck)} could not be continued"
    if found.taken_back:
        note += f"; the controller lost or could not launch {found.taken_back}"
    numbers = (found.submitted, found.again, found.done, len(found.twice), found.reported)
    before = f"{min(found.before)}-{max(found.before)}" if found.before else ""
    return (name, str(found.runs), str(found.kills), before, *map(str, numbers), note)


def machine(seed: str) -> str:
    """Where and of what this was measured."""
    cpus = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in cpus if line.startswith("model name")), "CPU")
    here = Path(__file__).parent
    asked = {"slurm": ["slurmctld", "-V"], "commit": ["git", "-C", str(here), "describe", "--always", "--dirty"]}
    said = {what: subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
            for what, words in asked.items()}  # fmt: skip
    commit = f" ({said['commit']})" if said["commit"] else ""
    return (f"{os.cpu_count()} x {model}; {said['slurm']}; Python {platform.python_version()};"
            f" nsw {__version__}{commit}; {seed}")  # fmt: skip


def show(request: object, rows: Iterable[tuple[str, Outcome]], seed: str, notes: Iterable[str] = ()) -> None:
    """Print it past pytest's capture."""
    capture = request.config.pluginmanager.getplugin("capturemanager")  # type: ignore[attr-defined]
    with capture.global_and_fixture_disabled():
        print("\n\n" + "\n".join(lines(rows, seed, notes)))
