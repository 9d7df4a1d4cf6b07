"""`nsw init --site`: ask a machine what it is, and describe it for a sites file.

What the machine answered is written as keys, what a person must add is marked. Nothing is written on the machine.
Machines that nsw ships a site for are recognised by what they call themselves, and written from the shipped file.
"""

from __future__ import annotations

import json
import re
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkstemp
from typing import TYPE_CHECKING, Final

from nsw.errors import CommandResult, InputError, UnreachableError, UsageError
from nsw.metrics.catalogue import find_chip
from nsw.recipe.passes import PROGRAMS
from nsw.recipe.units import format_duration
from nsw.resources import recipes_folder
from nsw.safe_files import read_text
from nsw.schedulers import create
from nsw.site.load import read_sites
from nsw.site.names import FIRST_TRANSPORT, LOCAL, schedulers, user_file
from nsw.site_check.check import gpu_names, node_facts_of
from nsw.transport.model import Transport, connect

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nsw.schedulers.adapter import Adapter, Queue

TO_FILL: Final = "FILL-IN"
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./$][A-Za-z0-9_./$ ()-]*")
_NO_TEXT: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
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
# site, which is also the name of its file in recipes/sites -> a host name of its login nodes, or a variable set there
_NAMES: Final[Mapping[str, str]] = {
    "polaris": r"polaris-login-\d+|.*\.polaris\.alcf\.anl\.gov",
    "aurora": r"aurora-uan-\d+|.*\.aurora\.alcf\.anl\.gov",
    "perlmutter": r"NERSC_HOST=perlmutter|.*\.perlmutter\.nersc\.gov",
    "frontier": r"LMOD_SYSTEM_NAME=frontier|.*\.frontier\.olcf\.ornl\.gov",
    "cooley": r"cooleylogin\d+|.*\.cooley\.(pub\.)?alcf\.anl\.gov",
    "theta": r"thetalogin\d+|.*\.theta\.(pub\.)?alcf\.anl\.gov",
}
_ACCOUNT: Final = re.compile(r"^    account: (\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Answers:
    """What a machine answered.

    Attributes:
        scheduler: As a sites file names it; local for a machine without a batch system.
        queue_key: Under which key a site names a queue: partition, queue.
        queues: Those that take jobs.
        untold: Why there are none.
        gpus: Names of the machine's own GPUs, as nvidia-smi lists them.
        accounts: Accounts of the user, where the scheduler tells.
        profilers: Paths of profilers that are not on PATH.
        scratch: A folder of the user's for large files; empty where none was found.
        host: The host it was reached by; None for this machine.
        login_shell: Whether the scheduler's commands are on PATH in a login shell only.
        has_module: Whether `module` is there in a login shell only.
        names: What the machine calls itself: host names, and variables that centres set.
        silent: What a batch system's client said that reaches no server; empty where none is like that.
    """

    scheduler: str
    queue_key: str = "queue"
    queues: tuple[Queue, ...] = ()
    untold: str = ""
    gpus: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    profilers: Mapping[str, str] = field(default_factory=dict)
    scratch: str = ""
    host: str | None = None
    login_shell: bool = False
    has_module: bool = False
    names: tuple[str, ...] = ()
    silent: str = ""


@dataclass(frozen=True, slots=True)
class FirstSite:
    """A site made of what its machine answered.

    Attributes:
        path: The sites file that it is for.
        name: Its name.
        text: Its lines as they are below `sites:`.
        answers_shown: What the machine answered, a line each.
        todo: What a person has to fill in or check.
    """

    path: Path
    name: str
    text: str
    answers_shown: Sequence[str]
    todo: Sequence[str]
    _before: str

    def write(self) -> None:
        """Put it at the end of its file, in one step and only if the file then holds it.

        Raises:
            UsageError: The file's own layout lets no site be put at its end.
        """
        target = self.path.resolve()  # of a link the file, which may be kept elsewhere
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = mkstemp(dir=target.parent, prefix=".nsw-init-", suffix=".yaml")
        try:
            with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123  a descriptor
                file.write((self._before.rstrip("\n") + "\n" if self._before else "nsw: 1\nsites:\n") + self.text)
            try:
                site_names = [loaded.site.name for loaded in read_sites(Path(temporary), requested=True)]
            except InputError:
                site_names = []
            if self.name not in site_names:
                raise UsageError(
                    f"{self.path} has a layout to which nsw cannot append a site", hint="add the site's lines by hand"
                )
            Path(temporary).chmod(target.stat().st_mode & 0o777 if target.exists() else 0o644)
            Path(temporary).replace(target)
        finally:
            Path(temporary).unlink(missing_ok=True)


def survey_site(name: str, host: str | None, path: Path | None, *, force: bool) -> FirstSite:
    """Ask this machine or a host what it is; nothing is written yet.

    Args:
        name: The site's name.
        host: A host of the user's ssh; None: this machine.
        path: The sites file; None: the user's own.
        force: Whether the site may take the place of one of that name.

    Raises:
        UsageError: The file has such a site already, or there is no place for one, or the batch system is none that
            nsw knows, or the name is that of a shipped site and the machine is another.
        UnreachableError: The host does not answer.
    """
    target = path or user_file()
    if target is None:
        raise UsageError("you have no home folder for the sites file", hint="name the file with --output, or set HOME")
    before = sites_before(target, name, force=force)
    data = {"transport": {"kind": "local"} if host is None else {"kind": FIRST_TRANSPORT, "host": host}}
    with closing(connect(data)) as transport:
        answers = survey_machine(transport, host)
    shipped_name = known_site(answers)
    if name in _NAMES and shipped_name != name:
        _refuse_other_machine(name, answers)
    text, answers_shown, todo = (
        draft_site(name, answers) if shipped_name is None else shipped_site(shipped_name, name, answers)
    )
    return FirstSite(target, name, text, answers_shown, todo, before)


def sites_before(path: Path, name: str, *, force: bool) -> str:
    """The text of a sites file; empty where the file is to be made, or made anew.

    Args:
        path: The file.
        name: The name of the site that is to be added.
        force: Whether a file with that site alone may be made anew.

    Raises:
        UsageError: The file has a site of that name.
    """
    if not path.exists():
        return ""
    site_names = [loaded.site.name for loaded in read_sites(path, requested=True)]
    if name in site_names:
        if not force:
            raise UsageError(
                f"{path} has a site {name}", hint="choose another name or --output FILE; --force replaces the site"
            )
        if site_names != [name]:
            raise UsageError(
                f"{path} has a site {name} and others; nsw does not rewrite the file",
                hint="delete the site there first, or name another file: --output FILE",
            )
        return ""
    return read_text(path)


def survey_machine(transport: Transport, host: str | None) -> Answers:
    """What a machine answers; `host` is None for this one.

    Raises:
        UnreachableError: It does not answer.
        UsageError: Its batch system is none that nsw knows.
    """
    probe = _PROBE % {"commands": " ".join(sorted({*create.commands(), *PROGRAMS})), "tools": " ".join(PROGRAMS)}
    plain = transport.run(["bash", "-c", probe], timeout=_SECONDS)
    if plain.returncode != 0:
        raise UnreachableError(plain.stderr.strip() or f"the machine gave no answer (exit status {plain.returncode})")
    facts = node_facts_of(plain.stdout)
    login = node_facts_of(transport.run(["bash", "-lc", probe], timeout=_SECONDS).stdout)
    login_shell = not create.schedulers_of_commands(_parse_paths(facts, "has")) and bool(
        create.schedulers_of_commands(_parse_paths(login, "has"))
    )
    has_module = "module" in login and "module" not in facts
    facts = login if login_shell else facts
    machine, has = _Machine(transport, login_shell), _parse_paths(facts, "has")
    scheduler, silent = machine.scheduler(has)
    adapter = create.adapter_of(scheduler)
    queues, untold = machine.queues(adapter) if adapter is not None else ((), "")
    gpus = transport.run(["nvidia-smi", "-L"], timeout=_SECONDS)
    return Answers(
        scheduler=scheduler,
        queue_key="partition" if adapter is not None and "partition" in adapter.keys else "queue",
        queues=queues,
        untold=untold,
        gpus=tuple(gpu_names(gpus.stdout.splitlines())),
        accounts=machine.accounts(adapter) if adapter is not None else (),
        profilers={tool: path for tool, path in _parse_paths(facts, "tool").items() if tool not in has},
        scratch=next(iter(facts.get("scratch", ())), ""),
        host=host,
        login_shell=login_shell,
        has_module=has_module,
        names=tuple(facts.get("name", ())),
        silent=silent,
    )


def _parse_paths(facts: Mapping[str, Sequence[str]], word: str) -> dict[str, str]:
    """`nsw-has sbatch /usr/bin/sbatch` as {sbatch: /usr/bin/sbatch}."""
    return {name: path for name, _, path in (line.partition(" ") for line in facts.get(word, ()))}


@dataclass(frozen=True, slots=True)
class _Machine:
    """Asks a batch system's commands, in a login shell where only that has them."""

    transport: Transport
    login_shell: bool

    def _run_scheduler_command(self, command: Sequence[str], adapter: Adapter) -> CommandResult:
        words = ["bash", "-lc", '"$@"', "nsw", *command] if self.login_shell else command
        return self.transport.run(
            words, timeout=_SECONDS, without=adapter.cleared_variables, keep=adapter.kept_variables
        )

    def scheduler(self, has: Mapping[str, str]) -> tuple[str, str]:
        """The scheduler of a machine with these commands; what a client said that reaches no server, and counts not."""
        adapters, left, silent = create.adapters(), dict(has), ""
        while candidates := create.schedulers_of_commands(left):
            adapter = adapters[candidates[0]]
            if create.is_shared(adapter):
                return (candidates[0] if adapter.known_by else self._identify_scheduler(adapter)), silent
            command = adapter.sign_of_life_command()
            done = self._run_scheduler_command(command, adapter)
            if done.returncode == 0 and not done.timed_out:
                return candidates[0], silent
            server_answer = next(iter(reversed(done.stderr.strip().splitlines())), "no answer")
            silent = (
                f"{adapter.name}'s {adapter.submit} is here, but `{command[0]}` reaches no server:"
                f" {server_answer[:_LONGEST]}"
            )
            del left[adapter.submit]
        return LOCAL, silent

    def _identify_scheduler(self, adapter: Adapter) -> str:
        """The batch system that a submit command belongs to, where several have a command of that name."""
        shell = ["bash", "-lc"] if self.login_shell else ["bash", "-c"]
        version_output = self.transport.run([*shell, f"{adapter.submit} --version"], timeout=_SECONDS)
        owner = create.owner_of(adapter.submit, version_output.stdout + version_output.stderr)
        if owner is not None and owner.scheduler:
            return owner.scheduler
        description = f"{owner.product}'s" if owner else "of a batch system that nsw cannot identify"
        hint = f"nsw knows {', '.join(schedulers())}; docs/extending/scheduler.md"
        raise UsageError(f"the {adapter.submit} of this machine is {description}", hint=hint)

    def queues(self, adapter: Adapter) -> tuple[tuple[Queue, ...], str]:
        """The queues, and why there are none."""
        command = adapter.queues_command
        if not command:
            return (), f"nsw cannot read a list of {adapter.name}'s queues"
        done = adapter.plain(self._run_scheduler_command(command, adapter))
        listed = tuple(adapter.parse_queues(done)[:_MOST_QUEUES])
        client_message = next(iter(done.stderr.strip().splitlines()), "it listed none")
        return (
            listed,
            "" if listed else f"`{command[0] if command[0] != 'bash' else adapter.queue}`: {client_message[:_LONGEST]}",
        )

    def accounts(self, adapter: Adapter) -> tuple[str, ...]:
        """The user's accounts, where the batch system tells."""
        command = adapter.accounts_command
        return tuple(adapter.parse_accounts(self.transport.run(command, timeout=_SECONDS))) if command else ()


@dataclass(slots=True)
class _Draft:
    """A site in the making: its keys; what was found, a line each; what a person has to fill in or check."""

    keys: list[str] = field(default_factory=list)
    answers_shown: list[str] = field(default_factory=list)
    todo: list[str] = field(default_factory=list)

    def key(self, text: str, comment: str = "") -> None:
        """Add a key, with a comment on its line."""
        self.keys.append(f"    {text}" + (f" # {_as_comment(comment)}" if comment else "") + "\n")


def draft_site(name: str, answers: Answers) -> tuple[str, list[str], list[str]]:
    """A site.

    Returns:
        Its lines as they are below `sites:`; what was found, a line each; what a person has to fill in or check.
    """
    batch = answers.scheduler != LOCAL
    draft = _Draft(answers_shown=[f"scheduler: {answers.scheduler if batch else 'none, runs start on the machine'}"])
    draft.key(f"scheduler: {answers.scheduler}")
    if answers.silent:
        draft.todo.append(f"scheduler: {answers.silent}; where it should, run `nsw init` again once it does")
    if answers.host is not None:
        draft.key(f"transport: {transport_of(answers)}", "your own ssh")
    if batch or answers.host is not None:
        _draft_scratch(answers, draft)
    if batch:
        _draft_account(answers, draft)
    chosen = best_queue(answers.queues)
    if chosen is not None:
        _draft_queue(answers, chosen, draft)
    elif batch:
        draft.key(f"#- {answers.queue_key}: {TO_FILL}", "where the site has no default")
        draft.todo.append(f"{answers.queue_key}: where the site has no default ({answers.untold})")
    _draft_gpus(answers, chosen, draft)
    if answers.has_module:
        draft.key("login_shell: true", "jobs know `module` in a login shell only")
    if batch:
        draft.key("#- modules: [cuda]", "modules that provide the program and the profilers")
    if answers.profilers:
        inner = ", ".join(f"{tool}: {scalar(path)}" for tool, path in sorted(answers.profilers.items()))
        draft.key(f"profilers: {{ {inner} }}")
        draft.answers_shown += [f"{tool}: {path}" for tool, path in sorted(answers.profilers.items())]
    elif batch:
        draft.key("#- profilers: { nsys: /path/of/nsys, ncu: /path/of/ncu }", "where no module provides them")
    if chosen is not None and chosen.walltime is not None:
        draft.key(f"limits: {{ max_walltime: {format_duration(chosen.walltime)} }}", f"of {chosen.name}")
    return "".join([f"  {scalar(name)}:\n", *draft.keys]), draft.answers_shown, draft.todo


def transport_of(answers: Answers) -> str:
    """The value of a site's key `transport`, for one that was reached by its host."""
    login_shell = ", login_shell: true" if answers.login_shell else ""
    return f"{{ kind: {FIRST_TRANSPORT}, host: {scalar(answers.host or '')}{login_shell} }}"


def best_queue(queues: Sequence[Queue]) -> Queue | None:
    """The queue for a first campaign: the default or else the first, of those with GPUs where there are any."""
    candidates = [queue for queue in queues if queue.gpus] or list(queues)
    return next((queue for queue in candidates if queue.is_default), candidates[0] if candidates else None)


def _draft_scratch(answers: Answers, draft: _Draft) -> None:
    if answers.scratch:
        draft.key(f"scratch: {scalar(answers.scratch)}", "must be seen by the compute nodes too")
        draft.todo.append(f"scratch: check that compute nodes see {answers.scratch}")
    elif answers.host is not None:
        draft.key("scratch: $HOME/nsw", "better a large file system that compute nodes see too")
        draft.todo.append("scratch: name a large file system that the compute nodes see")


def _draft_account(answers: Answers, draft: _Draft) -> None:
    if len(answers.accounts) == 1:
        draft.key(f"account: {scalar(answers.accounts[0])}")
    elif answers.accounts:
        draft.key(f"account: {scalar(answers.accounts[0])}", f"or {_list_few(answers.accounts[1:])}")
        draft.todo.append(f"account: one of {_list_few(answers.accounts)}")
    else:
        draft.key(f"#- account: {TO_FILL}", "the project that pays, where the site asks for one")
        draft.todo.append("account: the project that pays, where the site asks for one")


def _draft_queue(answers: Answers, chosen: Queue, draft: _Draft) -> None:
    key = answers.queue_key
    other_names = [queue.name for queue in answers.queues if queue.name != chosen.name]
    draft.key(f"{key}: {scalar(chosen.name)}", f"there are also {_list_few(other_names)}" if other_names else "")
    for queue in answers.queues:
        gpu_count = (
            "number of GPUs unknown" if queue.gpus is None else f"{queue.gpus} GPUs a node" if queue.gpus else "no GPUs"
        )
        also = f", others {_list_few(queue.other_kinds)}" if queue.other_kinds else ""
        kind = f" ({queue.kind}{also})" if queue.kind else ""
        limit = f", at most {format_duration(queue.walltime)}" if queue.walltime is not None else ""
        draft.answers_shown.append(f"{key} {queue.name}: {gpu_count}{kind}{limit}")
    if other_names:
        draft.todo.append(f"{key}: check that {chosen.name} is the one for you")


def _draft_gpus(answers: Answers, chosen: Queue | None, draft: _Draft) -> None:
    name, count = "", None
    other_kinds: tuple[str, ...] = ()
    if answers.gpus and (answers.scheduler == LOCAL or chosen is None or chosen.gpus is None):
        name, count = answers.gpus[0], len(answers.gpus)
        draft.answers_shown.append(f"GPUs of this node: {count} x {name}")
    elif chosen is not None:
        name, count, other_kinds = chosen.kind, chosen.gpus, chosen.other_kinds
    elif answers.scheduler == LOCAL:
        count = 0
        draft.answers_shown.append("GPUs: none")
    chip = find_chip(name) if name else None
    inner = [f"chip: {chip.name}"] if chip else []
    if count is not None:
        inner.append(f"per_node: {count}")
    if inner:
        kinds = [name] if chip and chip.name != name else []
        if other_kinds and chosen is not None:
            kinds = [f"{name}; {chosen.name} also has {_list_few(other_kinds)}: ask for yours with gres or constraint"]
            draft.todo.append(
                f"gpus: {chosen.name} has nodes with {_list_few([name, *other_kinds])}; say which are yours"
            )
        draft.key(f"gpus: {{ {', '.join(inner)} }}", "".join(kinds))
    if count is None:
        draft.key("#- gpus: { per_node: 4, chip: ga100 }", "how many a node has, and which")
        draft.todo.append("gpus: how many a node has (per_node) and which chip they are")
    elif count and chip is None:
        draft.todo.append("gpus.chip: such as ga100 (A100) or gh100 (H100); `nsw metrics check --chip` knows the names")


def _list_few(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:8]) + (f" and {len(listed) - 8} more" if len(listed) > 8 else "")


def _as_comment(text: str) -> str:
    """The text without characters that would end the comment: names come from the site."""
    return "".join(c if c.isprintable() else "?" for c in text)


def scalar(text: str) -> str:
    """A value of YAML, quoted where it must be."""
    plain = _PLAIN.fullmatch(text) and text.lower() not in _NO_TEXT and not text.endswith(" ") and not text.isdigit()
    return text if plain and not re.fullmatch(r"[\d.eE+_-]+", text) else json.dumps(text)


def known_site(answers: Answers) -> str | None:
    """The shipped site of a machine; None where its names are unknown, or it has another batch system than the site."""
    for site, pattern in _NAMES.items():
        if any(re.fullmatch(pattern, name, re.IGNORECASE) for name in answers.names):
            return site if _shipped_scheduler(site) == answers.scheduler else None
    return None


def _refuse_other_machine(site: str, answers: Answers) -> None:
    """Raise where a machine, by its batch system, cannot be the one that nsw ships a site for."""
    scheduler = _shipped_scheduler(site)
    if scheduler == answers.scheduler:
        return
    machine = f"the host {answers.host}" if answers.host else "this machine"
    has = "no batch system" if answers.scheduler == LOCAL else answers.scheduler
    raise UsageError(
        f"{machine} is not {site}: it has {has}, and {site} has {scheduler}; nothing was written",
        hint=f"`nsw init --site {site} --host HOST` asks {site} over your ssh; or use the site that nsw ships, with"
        f" your account in it: --sites {_shipped_site_file(site)}",
    )


def _shipped_scheduler(site: str) -> str:
    return next(loaded.site.scheduler for loaded in read_sites(_shipped_site_file(site)) if loaded.site.name == site)


def _shipped_site_file(site: str) -> Path:
    return recipes_folder() / "sites" / f"{site}.yaml"


def shipped_site(shipped_name: str, name: str, answers: Answers) -> tuple[str, list[str], list[str]]:
    """A shipped site under another name.

    Args:
        shipped_name: The site as `known_site` names it.
        name: The name that it gets.
        answers: What its machine answered.

    Returns:
        Its lines as they are below `sites:`; what was found, a line each; what a person has to fill in or check.
    """
    text = read_text(_shipped_site_file(shipped_name))
    lines = re.search(rf"^  {shipped_name}:.*\n((?:    .*\n)+)", text, re.MULTILINE)
    assert lines is not None  # tested with each of them
    body = lines[1]
    if answers.host is not None:
        body = re.sub(
            r"^(    scheduler: .*\n)", rf"\1    transport: {transport_of(answers)}\n", body, flags=re.MULTILINE
        )
    todo = [f"account: the project that pays, in place of {_ACCOUNT.findall(body)[0]}"]
    if answers.accounts:
        body = _ACCOUNT.sub(lambda _: f"    account: {scalar(answers.accounts[0])}", body)
        todo = [f"account: one of {', '.join(answers.accounts)}"] if answers.accounts[1:] else []
    todo.append(
        f"check each line: nsw ships recipes/sites/{shipped_name}.yaml as the centre's pages were, and it was"
        " not run there"
    )
    answers_shown = [
        f"the machine is {shipped_name}: the site is the one that nsw ships for it",
        f"scheduler: {answers.scheduler}",
    ]
    return f"  {scalar(name)}: # {shipped_name}, as nsw ships it\n{body}", answers_shown, todo
