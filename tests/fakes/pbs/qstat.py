"""qstat and pbsnodes of the fake PBS, in every format, with the faults of two versions' JSON; a little of qmgr."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from typing import Any

import words
from client import FAKE, UnreachableError, ask, fail, options, server, unknown, usage, whole_id

HEAD = """\
Job id            Name             User              Time Use S Queue
----------------  ---------------- ----------------  -------- - -----
"""
WIDE = """\
Job id                         Name            User             Time Use S Queue
-----------------------------  --------------- ---------------  -------- - ---------------
"""
ALTERNATIVE = f"""
{{}}: 
{" " * 60}Req'd  Req'd   Elap
Job ID          Username Queue    Jobname    SessID NDS TSK Memory Time  S Time
--------------- -------- -------- ---------- ------ --- --- ------ ----- - -----
"""  # noqa: W291  as the real one


def qstat(argv: list[str]) -> None:
    found, ids = options("qstat", argv, "fF:wxtasHu:BQE1n")
    given = dict(found)
    if "B" in given or "Q" in given:
        summary(given)
        return
    if given.get("F", "json") not in {"json", "dsv"} or "n" in given or "1" in given:
        unknown("qstat", str(found))
    out = Listing(given)
    code = 0
    try:
        for one in ids or [None]:
            if one is not None and not one[:1].isdigit():
                print(f"qstat: Unknown queue destination {one}", file=sys.stderr)
                code = words.UNKNOWN_QUEUE[1] % 256
                continue
            users = given["u"].split(",") if "u" in given else None
            reply = ask("status", id=one, x="x" in given or "H" in given, t="t" in given, users=users)
            if reply["code"]:
                print(f"qstat: {complaint(reply, one)}", file=sys.stderr)
                code = 0 if reply["code"] == words.NO_HISTORY[1] else reply["code"] % 256
            else:
                out.add(reply["jobs"], first=one == (ids or [None])[0])
    except UnreachableError:
        out.end()
        raise
    out.end()
    sys.stdout.flush()
    sys.exit(code)


def complaint(reply: dict[str, Any], one: str | None) -> str:
    if reply["code"] == words.FINISHED[1] and one is not None:
        return f"{whole_id(one)} Job has finished, use -x or -H to obtain historical job information"
    return f"{reply['text']} {whole_id(one)}" if one is not None else reply["text"]


class Listing:
    """Prints jobs in the format that was asked for."""

    def __init__(self, given: dict[str, str]) -> None:
        self.given = given
        self.full = "f" in given
        self.json: dict[str, Any] = {}
        self.calls = 0

    def add(self, jobs: list[Any], *, first: bool) -> None:
        format_ = self.given.get("F")
        self.calls += 1
        if format_ == "json":
            # the client of master loses the jobs of all ids but the first that is found
            if client() == "released" or self.calls == 1:
                self.json |= dict(jobs)
            return
        for id_, pairs in jobs:
            values = dict(pairs)
            if format_ == "dsv":
                print("|".join([f"Job Id: {id_}", *(f"{k}={v}" for k, v in flat(pairs))]))
            elif self.full:
                print(f"Job Id: {id_}")
                for name, value in flat(pairs):
                    print(f"    {name} = {folded(name, value)}")
                print()
            elif set(self.given) & set("asuH"):
                self._alternative(id_, values, header=first and id_ == jobs[0][0])
            else:
                self._row(id_, values, header=first and id_ == jobs[0][0])

    def _row(self, id_: str, values: dict[str, Any], *, header: bool) -> None:
        wide = "w" in self.given
        if header:
            print(WIDE if wide else HEAD, end="")
        used = values.get("resources_used", {}).get("cput", "0")
        owner = values["Job_Owner"].partition("@")[0]
        widths = (30, 15, 15, 15) if wide else (17, 16, 16, 16)
        print(
            f"{cut(id_, widths[0])} {cut(values['Job_Name'], widths[1])} {cut(owner, widths[2])} {used:>8} "
            f"{values['job_state']} {cut(values['queue'], widths[3])}"
        )

    def _alternative(self, id_: str, values: dict[str, Any], *, header: bool) -> None:
        if header:
            print(ALTERNATIVE.format(server()), end="")
        asked, none = values["Resource_List"], " -- "
        limit = asked.get("walltime")
        used = values.get("resources_used", {}).get("walltime") if values["job_state"] in "RSF" else None
        print(
            f"{cut(id_, 15)} {cut(values['Job_Owner'].partition('@')[0], 7)} {cut(values['queue'], 8)} "
            f"{cut(values['Job_Name'], 10)} {values.get('session_id', none):>6} {asked['nodect']:>3} "
            f"{asked['ncpus']:>3} {none:>6} {limit[:-3] if limit else none:>5} {values['job_state']} "
            f"{used[:-3] if used else none:>5}"
        )
        if "s" in self.given:
            print(f"   {values.get('comment', none)}")

    def end(self) -> None:
        if self.given.get("F") != "json":
            return
        top: dict[str, Any] = {
            "timestamp": int(time.time()), "pbs_version": FAKE.setting("version"), "pbs_server": server(),
        }  # fmt: skip
        jobs = {id_: dict(pairs) for id_, pairs in self.json.items()}
        print_json(top | ({"Jobs": jobs} if jobs else {}))


def cut(text: str, width: int) -> str:
    return text.ljust(width) if len(text) <= width else text[: width - 1] + "*"


def flat(pairs: list[Any]) -> list[tuple[str, str]]:
    """Resources each on their own, variables joined."""
    found: list[tuple[str, str]] = []
    for name, value in pairs:
        if name == "Variable_List":
            found.append((name, ",".join(f"{k}={v}" for k, v in value.items())))
        elif isinstance(value, dict):
            found += [(f"{name}.{k}", v) for k, v in value.items()]
        else:
            found.append((name, value))
    return found


def folded(name: str, value: str) -> str:
    """Broken at commas, else after 78 characters."""
    start, parts = len(name) + 7, []
    for number, token in enumerate(part for part in value.split(",") if part):
        comma = "," if number else ""
        if len(token) + start < 78:
            parts.append(comma + token)
            start += len(token)
            continue
        if number:
            parts.append(",\n\t")
            start = 9
        for letter in token:
            parts.append(letter)
            start += 1
            if start > 78:
                start = 8
                parts.append("\n\t")
    return "".join(parts)


# --- JSON as two versions write it --------------------------------------------------------------------------

TEXT = {"Job_Name", "Submit_arguments", "project", "Output_Path", "Error_Path", "comment", "Job_Owner"}


def client() -> str:
    """Which version's JSON is written."""
    return os.environ.get("NSW_FAKE_PBS_CLIENT") or FAKE.setting("client")


def print_json(top: dict[str, Any]) -> None:
    released = client() == "released"
    text = encode(top, 0, released=released)
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape") + (b"" if released else b"\n"))
    sys.stdout.buffer.flush()


def encode(value: dict[str, Any], depth: int, *, released: bool) -> str:
    indent = "    " if released else "\t"
    rows, pairs = [], list(value.items())
    while pairs:
        name, one = pairs.pop(0)
        if isinstance(one, dict):
            text = encode(one, depth + 1, released=released)
        elif isinstance(one, list):
            text = json.dumps(one)
        elif isinstance(one, int):
            text = str(one)
        elif released and one == "" and pairs:  # it does not see where an empty value ends
            following, more = pairs.pop(0)
            text = f'",{following}={more}"'
        else:
            text = scalar(name, one, released=released)
        rows.append(f'{indent * (depth + 1)}"{name}":{"" if released else chr(9)}{text}')
    return "{\n" + ",\n".join(rows) + "\n" + indent * depth + "}"


def scalar(name: str, text: str, *, released: bool) -> str:
    if released:
        number = re.fullmatch(r"\s*[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+|inf(inity)?|nan)", text, re.IGNORECASE)
        if number and not re.match(r"\s*[+-]?0\d", text):
            return text
        text = "".join(f"^{chr(ord(c) + 64)}" if ord(c) < 32 and c not in "\n\t" else c for c in text)
        text = "".join("\x01\udcc3" if ord(c) > 126 else c for c in text)
        return '"' + text.replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'
    if name not in TEXT and re.fullmatch(r"\s*-?\d+\.?\d*([eE][+-]?\d+)?", text):
        number = float(text)
        if text.strip() == "-0":
            return "-0"
        return "null" if abs(number) == float("inf") else f"{number:.15g}"
    return json.dumps(text, ensure_ascii=False)


# --- server, queues, nodes ----------------------------------------------------------------------------------


def summary(given: dict[str, str]) -> None:
    told = ask("summary")
    settings, jobs = told["settings"], told["jobs"]
    if "B" in given and "f" in given:
        print(f"Server: {server()}\n    server_state = Active\n    default_queue = {settings['default_queue']}")
        if settings["history"]:
            print("    job_history_enable = True\n    job_history_duration = 336:00:00")
        if settings["max_array"] != 10000:
            print(f"    max_array_size = {settings['max_array']}")
        print(f"    pbs_version = {settings['version']}\n")
    elif "B" in given:
        print("Server             Max   Tot   Que   Run   Hld   Wat   Trn   Ext Status")
        print("---------------- ----- ----- ----- ----- ----- ----- ----- ----- -----------")
        counts = [sum(state in of for _, _, state in jobs) for of in ("Q", "R", "H", "W", "T", "E")]
        numbers = " ".join(f"{n:>5}" for n in (0, told["total"], *counts))
        print(f"{server():<16} {numbers} Active    ")
    elif given.get("F") == "json":
        queues = {name: _queue(name, queue, jobs) for name, queue in settings["queues"].items()}
        top = {"timestamp": told["now"], "pbs_version": settings["version"], "pbs_server": server(), "Queue": queues}
        print_json(top)
    elif "f" in given:
        for name, queue in settings["queues"].items():
            print(f"Queue: {name}")
            for key, value in flat(list(_queue(name, queue, jobs).items())):
                print(f"    {key} = {value}")
            print()
    else:
        print("Queue              Max   Tot Ena Str   Que   Run   Hld   Wat   Trn   Ext Type")
        print("---------------- ----- ----- --- --- ----- ----- ----- ----- ----- ----- ----")
        for name, queue in settings["queues"].items():
            states = [state for _, of, state in jobs if of == name]
            numbers = " ".join(f"{sum(s in of for s in states):>5}" for of in ("Q", "R", "H", "W", "T", "E"))
            on = ["yes" if queue.get(what, True) else " no" for what in ("enabled", "started")]
            print(f"{name:<16}     0 {len(states):>5} {on[0]} {on[1]} {numbers} Exe*")


def _queue(name: str, queue: dict[str, Any], jobs: list[Any]) -> dict[str, Any]:
    states = [state for _, of, state in jobs if of == name]
    kinds = {"Transit": "T", "Queued": "Q", "Held": "H", "Waiting": "W", "Running": "R", "Exiting": "E", "Begun": "B"}
    counts = "".join(f"{kind}:{sum(s == letter for s in states)} " for kind, letter in kinds.items())
    found: dict[str, Any] = {"queue_type": "Execution", "total_jobs": str(len(states)), "state_count": counts}
    if "walltime" in queue:
        limit = queue["walltime"]
        found["resources_max"] = {"walltime": f"{limit // 3600:02}:{limit // 60 % 60:02}:{limit % 60:02}"}
    running = str(states.count("R"))
    found["resources_assigned"] = {**({"mem": "0mb"} if states else {}), "ncpus": running, "nodect": running}
    return {**found, "enabled": str(queue.get("enabled", True)), "started": str(queue.get("started", True))}


def pbsnodes(argv: list[str]) -> None:
    found, names = options("pbsnodes", argv, "aF:o:r:")
    given, told = dict(found), ask("summary")
    if "o" in given or "r" in given:
        change({"offline": "o" in given})
        return
    settings, node = told["settings"], {"arch": "linux", "host": server(), **told["settings"]["node"]}
    node = dict(sorted({**node, "vnode": server()}.items()))
    if "a" not in given and names != [settings["host"]]:
        unknown("pbsnodes", str(argv))
    if given.get("F") == "json":
        one: dict[str, Any] = {"Mom": server(), "ntype": "PBS", "state": told["state"], "pcpus": 2}
        if told["running"]:
            one["jobs"] = [name.partition("/")[0] for name in told["running"]]
        one |= {"resources_available": node, "resources_assigned": {"ncpus": len(told["running"])}}
        one |= {"resv_enable": "True", "sharing": "default_shared", "license": "l"}
        one |= {"last_state_change_time": told["now"], "last_used_time": told["now"]}
        top = {"timestamp": told["now"], "pbs_version": settings["version"], "pbs_server": server()}
        print_json(top | {"nodes": {server(): one}})
        return
    print(f"{server()}\n     Mom = {server()}\n     ntype = PBS\n     state = {told['state']}\n     pcpus = 2")
    if told["running"]:
        print(f"     jobs = {', '.join(told['running'])}")
    for name, value in node.items():
        print(f"     resources_available.{name} = {value}")
    assigned = {
        "accelerator_memory": "0kb", "hbmem": "0kb", "mem": "0kb", "naccelerators": 0, "ncpus": len(told["running"]),
        "ngpus": 0, "vmem": "0kb",
    }  # fmt: skip
    for name, value in assigned.items():
        print(f"     resources_assigned.{name} = {value}")
    print("     resv_enable = True\n     sharing = default_shared\n     license = l")
    for name in ("last_state_change_time", "last_used_time"):
        print(f"     {name} = {time.ctime(told['now'])}")
    print()


def change(values: dict[str, Any]) -> None:
    """Other settings from now on."""
    from machinery import write_json

    file = FAKE.root / "settings.json"
    write_json(file, (json.loads(file.read_text()) if file.exists() else {}) | values)
    if values.get("scheduling"):  # other changes wait for the next cycle
        ask("_cycle")


def qmgr(argv: list[str]) -> None:
    """The settings that the transcripts change."""
    if len(argv) != 2 or argv[0] != "-c":
        usage("qmgr")
    text = argv[1].replace(" ", "")
    queues = FAKE.setting("queues")
    if match := re.fullmatch(r"setserver(\w+)=(.*)", text):
        names = {"job_history_enable": "history", "scheduling": "scheduling", "node_fail_requeue": "node_fail_requeue"}
        value = {"true": True, "false": False}.get(match[2].lower())
        if match[1] in names:
            change({names[match[1]]: float(match[2]) if value is None else value})
    elif match := re.fullmatch(r"(un)?setqueue(\w+?)(enabled|started|max_queued|max_run)(=.*)?", text):
        values = {"=true": True, "=false": False}
        one = dict(queues[match[2]])
        one.pop(match[3], None)
        if not match[1] and match[3] != "max_run":
            one[match[3]] = values.get(match[4], 1)
        change({"queues": queues | {match[2]: one}})
    elif match := re.fullmatch(r"(create|import|delete) hook (\w+)(.*)", argv[1]):
        if match[1] == "import":
            if FAKE.setting("hooks"):
                print(f"hook '{match[2]}' contents overwritten", file=sys.stderr)
            change({"hooks": FAKE.setting("hook_files")[match[3].rpartition("/")[2]]})
        elif match[1] == "delete":
            change({"hooks": []})
    else:
        fail(f"qmgr: the fake PBS does not know {argv[1]}", 99)
