"""Ask a machine what it is: batch system, queues, GPUs, profilers, accounts, scratch. Nothing is written there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from nsw.campaign.site_starter import Answers
from nsw.errors import UnreachableError, UsageError
from nsw.recipe.profiler_names import PROGRAMS
from nsw.schedulers import create
from nsw.site.names import schedulers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.errors import CommandResult
    from nsw.schedulers.adapter import Adapter, Queue
    from nsw.transport.model import Transport

_SECONDS = 60.0
_MOST_QUEUES = 50
_LONGEST = 200  # characters of a message
# Each answer is a line `word value`, so that what a login shell prints of itself is passed over.
_PROBE: Final = r"""
for c in %(commands)s; do p=$(command -v "$c") && printf 'nsw-has %%s %%s\n' "$c" "$p"; done
for d in "$SCRATCH" "$WORK" "$PSCRATCH" "/scratch/$USER" "/lustre/$USER"; do
  [ -n "$d" ] && [ -d "$d" ] && [ -w "$d" ] && { printf 'nsw-scratch %%s\n' "$d"; break; }
done
for t in %(tools)s; do
  for p in /opt/nvidia/nsight-systems/*/bin/"$t" /opt/nvidia/nsight-compute/*/"$t" /usr/local/cuda/bin/"$t"; do
    [ -x "$p" ] && printf 'nsw-tool %%s %%s\n' "$t" "$p"
  done
done
type module >/dev/null 2>&1 && echo nsw-module yes
for n in "$HOSTNAME" "$(hostname -f 2>/dev/null)" "NERSC_HOST=$NERSC_HOST" "LMOD_SYSTEM_NAME=$LMOD_SYSTEM_NAME"; do
  printf 'nsw-name %%s\n' "$n"
done
exit 0
"""


def survey(transport: Transport, host: str | None) -> Answers:
    """What a machine answers.

    Args:
        transport: The way to it.
        host: The host, where it is not this machine.

    Raises:
        UnreachableError: It does not answer.
        UsageError: Its batch system is none that nsw knows.
    """
    adapters = create.adapters()
    commands = sorted({*create.commands(), *PROGRAMS})
    probe = _PROBE % {"commands": " ".join(commands), "tools": " ".join(PROGRAMS)}
    plain = _lines(transport, ["bash", "-c", probe])
    login = _lines(transport, ["bash", "-lc", probe], needed=False)
    login_shell = not _there(plain) and bool(_there(login))
    said = login if login_shell else plain
    there, silent = _answering(transport, said, adapters, login_shell=login_shell)
    scheduler, adapter = _scheduler(transport, there, adapters, login_shell=login_shell)
    queues, untold = _queues(transport, adapter, login_shell=login_shell) if adapter is not None else ((), "")
    gpus = transport.run(["nvidia-smi", "-L"], timeout=_SECONDS)
    on_path = {tool for tool in PROGRAMS if tool in said.get("has", {})}
    return Answers(
        scheduler=scheduler,
        queue_key="partition" if adapter is not None and "partition" in adapter.keys else "queue",
        queues=queues,
        untold=untold,
        gpus=tuple(re.findall(r"^GPU \d+: (.*?) \(UUID", gpus.stdout, re.MULTILINE)),
        accounts=_accounts(transport, adapter) if adapter is not None else (),
        profilers={tool: path for tool, path in said.get("tool", {}).items() if tool not in on_path},
        scratch=next(iter(said.get("scratch", {})), ""),
        host=host,
        login_shell=login_shell,
        has_module="module" in login and "module" not in plain,
        names=tuple(said.get("name", {})),
        silent=silent,
    )


def _lines(transport: Transport, command: list[str], *, needed: bool = True) -> dict[str, dict[str, str]]:
    """`nsw-has sbatch /usr/bin/sbatch` as {has: {sbatch: /usr/bin/sbatch}}."""
    done = transport.run(command, timeout=_SECONDS)
    if needed and done.returncode != 0:
        raise UnreachableError(done.stderr.strip() or f"the machine gave no answer (exit status {done.returncode})")
    found: dict[str, dict[str, str]] = {}
    for line in done.stdout.splitlines():
        if line.startswith("nsw-"):
            what, _, rest = line.removeprefix("nsw-").partition(" ")
            key, _, value = rest.partition(" ") if what in {"has", "tool"} else (rest, "", "")
            found.setdefault(what, {})[key] = value
    return found


def _there(said: dict[str, dict[str, str]]) -> list[str]:
    """The schedulers that it could be."""
    return create.there(said.get("has", {}))


def _answering(
    transport: Transport, said: dict[str, dict[str, str]], adapters: dict[str, Adapter], *, login_shell: bool
) -> tuple[list[str], str]:
    """The schedulers that it could be, without one whose client reaches no server; and what that client said."""
    has, silent = dict(said.get("has", {})), ""
    while (there := create.there(has)) and not create.is_shared(adapter := adapters[there[0]]):
        command = adapter.sign_of_life_command()
        done = _run(transport, adapter, command, login_shell=login_shell)
        if done.returncode == 0 and not done.timed_out:
            break
        told = next(iter(reversed(done.stderr.strip().splitlines())), "no answer")
        silent = f"{adapter.name}'s {adapter.submit} is here, but `{command[0]}` reaches no server: {told[:_LONGEST]}"
        del has[adapter.submit]
    return there, silent


def _run(transport: Transport, adapter: Adapter, command: Sequence[str], *, login_shell: bool) -> CommandResult:
    words = ["bash", "-lc", '"$@"', "nsw", *command] if login_shell else command
    return transport.run(words, timeout=_SECONDS, without=adapter.cleared, keep=adapter.kept)


def _scheduler(
    transport: Transport, there: list[str], adapters: dict[str, Adapter], *, login_shell: bool
) -> tuple[str, Adapter | None]:
    """Which of those that could be it is; several have a qsub."""
    if not there:
        return "local", None
    first = adapters[there[0]]
    if not create.is_shared(first) or first.known_by:
        return there[0], first
    shell = ["bash", "-lc"] if login_shell else ["bash", "-c"]
    told = transport.run([*shell, f"{first.submit} --version"], timeout=_SECONDS)
    owner = create.owner_of(first.submit, told.stdout + told.stderr)
    if owner is None or not owner.scheduler:
        what = f"{owner.product}'s" if owner else "of a batch system that nsw cannot identify"
        known = ", ".join(schedulers())
        raise UsageError(
            f"the {first.submit} of this machine is {what}", hint=f"nsw knows {known}; docs/extending/scheduler.md"
        )
    return owner.scheduler, adapters[owner.scheduler]


def _queues(transport: Transport, adapter: Adapter, *, login_shell: bool) -> tuple[tuple[Queue, ...], str]:
    """The queues, and why there are none."""
    command = adapter.queues_command
    if not command:
        return (), f"nsw cannot read a list of {adapter.name}'s queues"
    done = adapter.plain(_run(transport, adapter, command, login_shell=login_shell))
    found = tuple(adapter.parse_queues(done)[:_MOST_QUEUES])
    said = next(iter(done.stderr.strip().splitlines()), "it listed none")
    return found, "" if found else f"`{command[0] if command[0] != 'bash' else adapter.queue}`: {said[:_LONGEST]}"


def _accounts(transport: Transport, adapter: Adapter) -> tuple[str, ...]:
    """The user's accounts, where the batch system tells."""
    command = adapter.accounts_command
    return tuple(adapter.parse_accounts(transport.run(command, timeout=_SECONDS))) if command else ()
