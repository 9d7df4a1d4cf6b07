"""A copy of a campaign for others, with what nsw/tables/shared.csv and the lists here name, and renamed.

Answers and pages are made of such a copy by the code that makes them of any campaign, so that what is not copied is in
none of them. Hosts, users, accounts and partitions get the same other name wherever they are; paths become base names.
What is made is looked through for secrets and names, and written whole or not at all.
"""

from __future__ import annotations

import getpass
import html
import io
import json
import os
import re
import shlex
import socket
import zipfile
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.kernel_classes import OTHER_KERNELS, classify_gpu_operation
from nsw.engine.collect import parse_status
from nsw.engine.driven import ledger_to_read
from nsw.engine.folder import STATE, CampaignFolder
from nsw.engine.ledger_file import columns_of
from nsw.engine.recipe_lock import read_locked
from nsw.engine.tables import load_table, table_files
from nsw.errors import UsageError, writing_to
from nsw.recipe.document import as_yaml
from nsw.recipe.matrix import ITSELF, case_id
from nsw.recipe.secrets import looks_secret, secret_parts
from nsw.resources import csv_rows
from nsw.safe_files import replacing_file, write_text
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from pathlib import Path

    import pyarrow as pa

__all__ = [
    "Leak",
    "Names",
    "anonymous_copy",
    "anonymous_table",
    "kind_of",
    "leaks_in",
    "names_of",
    "refuse_leaks",
    "secrets_of",
    "write_whole",
    "zip_of",
]


_GPU: Final = re.compile(r"(?:GPU|MIG)-[0-9a-f]{8}-[0-9a-f-]{27,}(?:/\d+/\d+)?")
_FOLDERS: Final = "home|Users|users?|root|scratch|work|gpfs|lustre|project|projects|p|mnt|nfs|tmp|var|data|opt|usr"
_PATH: Final = re.compile(rf"(?<![\w.\-/])(?:~|/(?:{_FOLDERS}))/(?:[^\s/:'\"`,;()<>|]+/)*([^\s/:'\"`,;()<>|]*)")
_HOME: Final = re.compile(r"/(?:home|Users|users)/([^/\s:'\"]+)")
_NOBODY: Final = frozenset({"localhost", "root", "none", "local", "demo"})  # names that are the same everywhere
_FACTS: Final = frozenset(  # whose texts travel
    {
        "gpu_name", "gpu_compute_capability", "driver_version", "cuda_driver_version", "nsys_version",
        "distributed_backend", "onednn_version", "event",
    }
)  # fmt: skip
_KIND_OF_KEY: Final = {
    "host": "host", "jump": "host", "user": "user", "account": "account", "partition": "partition",
    "queue": "partition", "reservation": "partition", "qos": "partition",
}  # fmt: skip
# of the ledger: what travels of each row, and how; all else is null
_OF_TASKS: Final = {
    **dict.fromkeys(("seq", "kind", "place", "pass_kind", "tool", "repeat", "task", "gpus", "app", "state"), ""),
    **dict.fromkeys(("seconds_limit", "attempt", "cause", "exit_code", "started", "ended", "reading"), ""),
    **dict.fromkeys(("id", "case_id", "pass_name", "job", "host"), "text"),
    **dict.fromkeys(("params", "reports"), "json"),
}  # fmt: skip
_OF_RECIPE: Final = ("nsw", "name", "matrix", "repeats", "interleave", "report")
_OF_LOCK: Final = ("version", "site", "date", "tools", "machine")
_OF_UNTIL: Final = ("at_most", "spent", "ended")


@dataclass
class Names:
    """The other names that what is shared has.

    Attributes:
        hosts: And users, accounts, partitions: each name with its other one.
        kinds: What each of them is: host, user, account, partition.
        renames: What a person wants replaced wherever it is, with what.
        hidden: Names of kernels and ranges, each with its other one; empty: they stay as they are.
    """

    hosts: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    renames: dict[str, str] = field(default_factory=dict)
    hidden: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._gpus: dict[str, str] = {}
        self._files: dict[str, str] = {}
        self._counts: defaultdict[str, int] = defaultdict(int)
        self._pattern: re.Pattern[str] | None = None

    def add(self, kind: str, name: object) -> None:
        """Give a name another one; of a host also the part before its first dot."""
        if not isinstance(name, str) or len(name) < 2 or name.isdigit() or name in _NOBODY:
            return
        short = name.partition(".")[0] if kind == "host" else name
        for word in dict.fromkeys((short, name)):
            if word in self.hosts or self.renames.get(word) == word or word in _NOBODY or word.isdigit():
                continue
            if word != short and short in self.hosts:
                self.hosts[word] = self.hosts[short]
            else:
                self._counts[kind] += 1
                self.hosts[word] = f"{kind}{self._counts[kind]}"
            self.kinds[word] = kind
        self._pattern = None

    def text(self, text: str) -> str:
        """A text with the other names in it, and paths as base names."""
        for old, new in self.renames.items():
            text = text.replace(old, new)
        text = _GPU.sub(lambda match: self._gpus.setdefault(match[0], f"GPU-{len(self._gpus) + 1}"), text)
        text = _PATH.sub(lambda match: match[1] or "a folder", text)
        if not self.hosts:
            return text
        if self._pattern is None:
            words = sorted(self.hosts, key=len, reverse=True)
            self._pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, words))})(?!\w)")
        return self._pattern.sub(lambda match: self.hosts[match[0]], text)

    def path(self, path: str) -> str:
        """The base name of a path; of another path with the same one it has a number."""
        if path not in self._files:
            base = self.text(path.rstrip("/").rpartition("/")[2].rpartition("\\")[2])
            count = sum(other == base or other.startswith(f"{base} (") for other in self._files.values())
            self._files[path] = f"{base} ({count + 1})" if count else base
        return self._files[path]

    def hide(self, name: str, kind: str) -> str:
        """The other name of a kernel or range, its class and a number; names that a profiler gives to copies stay."""
        if name.startswith("["):
            return self.text(name)
        if name not in self.hidden:
            self._counts[kind] += 1
            self.hidden[name] = f"{kind} {self._counts[kind]}"
        return self.hidden[name]

    def data(self, value: Any) -> Any:
        """The value with each text in it renamed, also names of fields."""
        if isinstance(value, dict):
            return {self.text(key): self.data(part) for key, part in value.items()}
        if isinstance(value, list):
            return [self.data(part) for part in value]
        return self.text(value) if isinstance(value, str) else value


# --- what the names are ---------------------------------------------------------------------------------------


def names_of(folder: CampaignFolder, renames: Mapping[str, str]) -> Names:
    """The other names for a campaign: of its hosts, users, accounts and partitions, and of this user and machine.

    Args:
        folder: The campaign.
        renames: What a person wants replaced, with what; a name with itself stays.
    """
    names = Names(renames={**renames})
    with ledger_to_read(folder) as ledger:
        site, runs = ledger.site(), ledger.runs()
    for run in runs:
        names.add("host", run.host)
    for path in table_files(folder):
        table = load_table(folder, path.stem)
        if table is not None and "host" in table.column_names:
            for host in table["host"].unique().to_pylist():
                names.add("host", host)
    recipe = read_locked(folder)[1]
    for key, value in (*_leaf_values(site.get("transport")), *_leaf_values(recipe.get("resources")), *site.items()):
        if key in _KIND_OF_KEY:
            names.add(_KIND_OF_KEY[key], value)
    names.add("host", socket.gethostname())
    with suppress(KeyError, OSError):
        names.add("user", getpass.getuser())
    for text in (str(folder.path), os.environ.get("HOME", ""), json.dumps([site, recipe])):
        for user in _HOME.findall(text):
            names.add("user", user)
    cases = {run.case_id: case_id(names.data(run.params)) for run in runs}  # a value that is a path names its case
    names.renames |= {old: cases[old] for old in sorted(cases, key=len, reverse=True) if cases[old] != old}
    return names


def secrets_of(folder: CampaignFolder) -> dict[str, str]:
    """The secrets that nsw knows of a campaign and of its own environment, each with the name of its variable."""
    with ledger_to_read(folder) as ledger:
        data = [ledger.site(), read_locked(folder)[1]]
    environment = os.environ.items()
    secrets = {value: name for name, value in environment if looks_secret(name)}
    secrets |= {part: name for name, value in environment for part in secret_parts(value)}
    for key, value in _leaf_values(data):
        if key == "from_env" and isinstance(value, str):
            secrets[os.environ.get(value, "")] = value
        elif isinstance(value, str):
            secrets |= {value: key} if looks_secret(key) or key == "secret" else {}
            secrets |= dict.fromkeys(secret_parts(value), key or "a text of the recipe")
    with suppress(OSError, ValueError), folder.open(folder.secrets) as file:
        for word in shlex.split(file.read().decode(), comments=True):
            name, equals, value = word.partition("=")
            if equals and name.isidentifier():
                secrets[value] = name
    return {value: name for value, name in secrets.items() if len(value) > 3}


def _leaf_values(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """The leaf values of nested data, each with the name of its field."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _leaf_values(part, str(name))
    elif isinstance(value, list):
        for part in value:
            yield from _leaf_values(part, key)
    else:
        yield key, value


# --- tables -----------------------------------------------------------------------------------------------------


@cache
def _column_kinds() -> Mapping[tuple[str, str], str]:
    rows = csv_rows("tables/shared.csv")
    return {(row["table"], column): row["kind"] for row in rows for column in row["columns"].split()}


def kind_of(table: str, column: str) -> str | None:
    """How a column of a table travels: plain, path, kernel, range, fact, instruction; out: not at all; None: unlisted.

    The half-width of a rounded column travels as that column does.
    """
    kinds = _column_kinds()
    column = column.removesuffix("_pm") if (table, column) not in kinds else column
    every = kinds.get((table, "*"))
    is_listed = every is not None or any(name == table for name, _ in kinds)
    return every or kinds.get((table, column)) or (kinds.get(("*", column)) if is_listed else None)


def anonymous_table(
    name: str, table: pa.Table, names: Names, *, hide: bool, classes: Mapping[str, str] | None = None
) -> pa.Table | None:
    """The columns of a table that travel, with other names; None: it does not travel.

    Args:
        name: Of the table.
        table: Its rows.
        names: The other names.
        hide: Whether kernels and NVTX ranges are renamed too.
        classes: Of kernels, that the recipe names.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kinds = {column: kind_of(name, column) for column in table.column_names}
    shared = [column for column, kind in kinds.items() if kind not in {None, "out"}]
    if not shared:
        return None
    api_names = set(table.filter(pc.equal(table["summary"], "api_summary"))["name"].to_pylist()
                    + table.filter(pc.equal(table["summary"], "communication"))["name"].to_pylist()
                    ) if name == "phase_summary" else set()  # fmt: skip
    columns = {}
    for column in shared:
        kind, values = kinds[column], table[column]
        if not pa.types.is_string(values.type) and not pa.types.is_dictionary(values.type):
            columns[column] = values
            continue
        if kind == "instruction":  # lines of the program's source have no address
            values = pc.if_else(pc.is_valid(table["address"]), values, None)
        if kind == "fact":
            values = pc.if_else(pc.is_in(table["key"], pa.array(sorted(_FACTS))), values, None)
        if hide and kind == "kernel":
            if column == "mangled_name":
                columns[column] = pa.nulls(table.num_rows, pa.string())
                continue
            values = table["kernel" if "kernel" in table.column_names else "name"]
        columns[column] = _rename_column(
            values, _rename_function(str(kind), names, hide=hide, keep=api_names, classes=classes)
        )
    return pa.table(columns)


def _rename_function(
    kind: str, names: Names, *, hide: bool, keep: Collection[str], classes: Mapping[str, str] | None
) -> Callable[[str], str]:
    if kind == "path":
        return names.path
    if not hide or kind not in {"kernel", "range"}:
        return names.text

    def hide_name(name: str) -> str:
        if name in keep:
            return names.text(name)
        if kind == "range":
            return names.hidden.get(name) or names.hide(name, "range")
        kernel_class = classify_gpu_operation(name, "kernel", classes)
        if kernel_class not in {OTHER_KERNELS, *(classes or ())}:
            return names.text(name)  # a library's, by whose name causes are told
        return names.hide(name, "kernel" if kernel_class == OTHER_KERNELS else kernel_class)

    return hide_name


def _rename_column(values: pa.ChunkedArray, rename: Callable[[str], str]) -> pa.ChunkedArray:
    """A column with each of its texts renamed; equal texts are looked up once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(values.type):
        values = pc.cast(values, pa.string())
    words = [word for word in values.unique().to_pylist() if word is not None]
    at = pc.index_in(values, pa.array(words, pa.string()))
    return pc.take(pa.array([rename(word) for word in words], pa.string()), at)


# --- the copy ---------------------------------------------------------------------------------------------------


def anonymous_copy(folder: CampaignFolder, parent: Path, names: Names, *, hide: bool) -> CampaignFolder:
    """A campaign to look at, with the tables, states and parts of the recipe that travel.

    Args:
        folder: The campaign.
        parent: An empty folder of this user.
        names: The other names.
        hide: Whether kernels and NVTX ranges are renamed too.
    """
    import pyarrow.parquet as pq

    copy = CampaignFolder(parent / names.text(folder.id))
    copy.is_copy = True
    copy.tables.mkdir(parents=True, mode=0o700)
    recipe = read_locked(folder)[1]
    classes = (recipe.get("report") or {}).get("classes")
    for path in table_files(folder):
        stored = load_table(folder, path.stem)
        shared = None if stored is None else anonymous_table(path.stem, stored, names, hide=hide, classes=classes)
        if shared is not None:
            pq.write_table(shared, copy.tables / path.name)
    with ledger_to_read(folder) as ledger:
        state, runs = json.loads(ledger.dump()), ledger.runs()
    write_text(copy.path / STATE, json.dumps(_anonymous_state(state, names)))
    write_text(copy.recipe, as_yaml(_anonymous_recipe(recipe, names, hide=hide)))
    for run in runs:  # of their status what tells whether runs shared a GPU
        if (status := parse_status(folder.tail(folder.reports / run.id / "status", 1 << 16))) is not None:
            below = copy.reports / names.text(run.id)
            below.mkdir(parents=True)
            write_text(below / "status", f"state={status.state}\ngpus={names.text(status.gpus or '')}\n")
    return copy


def _anonymous_state(state: dict[str, Any], names: Names) -> dict[str, Any]:
    """The tables of a ledger without private data."""
    tables = state["tables"]
    columns = columns_of("tasks")

    def anonymous_cell(column: str, value: Any) -> Any:
        kind = _OF_TASKS.get(column)
        if kind is None or value is None:
            return None
        return value if not kind else names.text(value) if kind == "text" else anonymous_json(value, column)

    def anonymous_json(text: str, column: str) -> str:
        value = json.loads(text)
        return json.dumps([names.path(path) for path in value] if column == "reports" else names.data(value))

    meta = dict(tables["meta"])
    site = json.loads(meta["site_data"])
    shared_site = {"name": names.text(site["name"]), "scheduler": site["scheduler"], "transport": {"kind": "local"}}
    if site.get("replay"):
        shared_site["replay"] = "recorded"
    facts = {key: meta[key] for key in ("version", "created", "collect", "app_folder") if key in meta}
    facts |= {key: names.text(meta[key]) for key in ("name", "site", "note") if meta.get(key)}
    if until := json.loads(meta.get("until") or "{}"):
        facts["until"] = json.dumps({key: names.data(until[key]) for key in _OF_UNTIL if key in until})
    versions = json.loads(meta.get("versions") or "[]")
    facts["versions"] = json.dumps(
        [[_anonymous_hashes(hashes, names), *rest] for hashes, *rest in names.data(versions)]
    )
    # names of options and reasons, which nsw words itself; what a run says of itself stays here
    return state | {
        "tables": {name: [] for name in tables}
        | {
            "meta": [*(facts | {"site_data": json.dumps(shared_site)}).items()],
            "tasks": [[anonymous_cell(*pair) for pair in zip(columns, row, strict=True)] for row in tables["tasks"]
                      if row[columns.index("kind")] == "run"],
            "absent": names.data(tables["absent"]),
            "problems": [[names.text(run), None, severity, names.text(message), None, 1]
                         for run, _, severity, message, _, not_as_asked in tables["problems"] if not_as_asked],
        }
    }  # fmt: skip


def _anonymous_hashes(hashes: Mapping[str, str], names: Names) -> dict[str, str]:
    """The hashes of a program's files by base name; `app.before/` still marks the files of the side before."""
    before = "app.before/"
    return {before * name.startswith(before) + names.path(name): digest for name, digest in hashes.items()}


def _anonymous_recipe(recipe: Mapping[str, Any], names: Names, *, hide: bool) -> dict[str, Any]:
    """The parts of a recipe that its answer depends on."""
    app, lock = recipe["app"], recipe.get("lock") or {}
    launcher = app.get("launcher") or "none"
    kind = launcher if isinstance(launcher, str) else launcher.get("kind", "none")
    shared: dict[str, Any] = {key: names.data(recipe[key]) for key in _OF_RECIPE if key in recipe}
    figures = names.data(app.get("figures") or {})
    shared["app"] = {
        "command": "program",  # what it is started with stays here
        "launcher": {"kind": kind} | ({"prefix": "launcher"} if kind == "custom" else {}),
        "figures": {name: figure | {"regex": "(x)"} for name, figure in figures.items()},
    }
    resources = recipe.get("resources") or {}
    shared["resources"] = {key: resources[key] for key in ("nodes", "gpus", "time") if resources.get(key) is not None}
    if lock:
        before = lock.get("before")
        shared["lock"] = {key: names.data(lock[key]) for key in _OF_LOCK if key in lock} | _anonymous_program(
            lock, names
        )
        if before is not None:
            ref = {"ref": ITSELF if before.get("ref") == ITSELF else "before"} if before.get("ref") else {}
            shared["lock"]["before"] = ref | _anonymous_program(before, names)
    if hide and (report := shared.get("report")):
        _hide_names_in_report(report, names)
    return shared


def _anonymous_program(lock: Mapping[str, Any], names: Names) -> dict[str, Any]:
    git = lock.get("git")
    program: dict[str, Any] = {"files": _anonymous_hashes(lock.get("files") or {}, names)}
    return program | ({"git": git | {"folder": "program"}} if git else {})


def _hide_names_in_report(report: dict[str, Any], names: Names) -> None:
    """Rename the kernels and ranges in a recipe's report section as the tables do."""
    if classes := report.get("classes"):
        report["classes"] = {name: rf"^{re.escape(name)} \d+$" for name in classes}
    if (steps := report.get("steps") or {}).get("nvtx"):
        steps["nvtx"] = names.hide(steps["nvtx"], "range")
    if model := report.get("model"):
        for part in (model, *(model.get("links") or {}).values()):
            part["ranges"] = [names.hide(name, "range") for name in part["ranges"]]
        if model.get("iteration"):
            model["iteration"] = names.hide(model["iteration"], "range")


# --- what is given to others ----------------------------------------------------------------------------------


_SHORT: Final = 8  # characters: a shorter secret is looked for as a whole word
_LISTED: Final = 10
_MODE: Final = 0o666  # as far as the umask lets it
_BEGIN: Final = (1980, 1, 1, 0, 0, 0)  # no file tells when it was made


@dataclass(frozen=True, slots=True)
class Leak:
    """What must not leave, and where it was met.

    Attributes:
        item: The file of the share.
        line: Its line, from 1.
        what: What it is, without a secret itself.
        is_secret: Whether it is a secret, and no name.
    """

    item: str
    line: int
    what: str
    is_secret: bool


def leaks_in(
    items: Mapping[str, bytes], names: Names, secrets: Mapping[str, str], own_lines: Collection[str] = ()
) -> list[Leak]:
    """What of known secrets, users and hosts is in files, however they write it; each once a file.

    Args:
        items: The files by name.
        names: Whose users and hosts are looked for, as whole words and parts of paths.
        secrets: Values, each with the name of its variable.
        own_lines: Lines that every page of nsw has.
    """
    other_names = {*names.hosts.values()}
    looked_for = {word for word, kind in names.kinds.items() if kind in {"host", "user"}} - other_names
    words = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(looked_for, key=len, reverse=True)))})(?!\w)")
    forms = [(_secret_pattern(value), name) for value, name in secrets.items()]

    def leaks_of(item: str, data: bytes) -> Iterator[Leak]:
        for number, line in enumerate((item, *data.decode().splitlines())):
            if line in own_lines:
                continue
            yield from (Leak(item, number, f"the value of {name}", True) for form, name in forms if form.search(line))
            if next(secret_parts(line), None) is not None:
                yield Leak(item, number, "a password, key or signature in a URL or connection string", True)
            for word in dict.fromkeys(words.findall(line)) if looked_for else ():
                yield Leak(item, number, f"the {names.kinds[word]} name {word}", False)

    leaks: dict[tuple[str, str], Leak] = {}
    for item, data in items.items():
        for leak in leaks_of(item, data):
            leaks.setdefault((item, leak.what), leak)
    return list(leaks.values())


def _secret_pattern(value: str) -> re.Pattern[str]:
    """What matches a secret as it is, and as JSON, HTML and CSV write it."""
    forms = {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    forms |= {html.escape(form) for form in forms} | {value.replace('"', '""')}
    forms |= {line for form in forms for line in form.splitlines() if len(line) >= _SHORT}  # of a key, each line
    pattern = "|".join(map(re.escape, sorted(forms, key=len, reverse=True)))
    return re.compile(rf"(?<!\w)(?:{pattern})(?!\w)" if len(value) < _SHORT else pattern)


def refuse_leaks(leaks: Collection[Leak]) -> None:
    """Refuse to write what holds a secret or a name.

    Raises:
        UsageError: It does; it says where, and what to do.
    """
    if not leaks:
        return
    lines = [f"{leak.item}, line {leak.line}: {leak.what}" for leak in leaks][:_LISTED]
    more = f"\n  and {len(leaks) - _LISTED} more" if len(leaks) > _LISTED else ""
    hints = []
    if any(leak.is_secret for leak in leaks):
        hints.append("--hide-kernels replaces names of kernels and NVTX ranges; --rename OLD=NEW any other text")
    if not all(leak.is_secret for leak in leaks):
        hints.append("--rename WORD=OTHER replaces a name; --rename WORD=WORD lets one stay that names nobody")
    raise UsageError(
        f"nothing was written: {plural(len(leaks), 'text')} must not leave\n  " + "\n  ".join(lines) + more,
        hint="; ".join(hints),
    )


def zip_of(items: Mapping[str, bytes]) -> bytes:
    """The files as a zip, which is the same for the same files."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in items.items():
            entry = zipfile.ZipInfo(name, _BEGIN)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, data)
    return stream.getvalue()


def write_whole(file: Path, data: bytes) -> None:
    """Write a file in the place of what has its name, whole or not at all; through no link.

    Raises:
        NswError: It cannot be written.
    """
    with writing_to(file), replacing_file(file, _MODE) as stream:
        stream.write(data)
