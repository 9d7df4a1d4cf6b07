"""Stands in for Cobalt's qsub, qstat, qdel, qhold and qrls, as nsw calls them; its state is in NSW_FAKE_COBALT.

It refuses what Cobalt 1.0.33 refuses, in the words of its transcripts (tests/cobalt/observed), and each option that nsw does
not use. Of qalter and cqadm it has what tests need.
"""

from __future__ import annotations

import os
import pwd
import sys
import time
from optparse import OptionParser, OptionValueError, Values
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import cqm
from machinery import fail

if TYPE_CHECKING:
    from collections.abc import Callable

    from cqm import Job

STATE = cqm.state_of_tests()


def user() -> str:
    return os.environ.get("NSW_FAKE_USER") or pwd.getpwuid(os.getuid()).pw_name


def proxy() -> None:
    print('No handlers could be found for logger "Proxy"', file=sys.stderr)


def fault(number: int, text: str, where: str | None = None) -> None:
    """An error of a component; some calls name it, others print it bare."""
    proxy()
    said = f"<Fault {number}: {text!r}>"
    fail(f"component error: XMLRPC failure {said} in {where}\n" if where else said)


def connect(call: str, component: str = "queue-manager") -> dict[str, Any]:
    """The queue manager's state, where it can be reached. It is locked by whoever changes it."""
    down = STATE.setting("down")
    if not down or (down == "cqm" and component != "queue-manager"):
        return cqm.load(STATE)
    (STATE.root / "unanswered").touch()
    proxy()
    if down == "all":
        lost = f"Proxy.py     :L#422:cn:{component}"
        if component == "system":
            fail(f"component error: Failed to connect to system: {lost}\n\n")
        fail(f"component error: Following exception occurred while trying to execute {component}.{call}: {lost}\n\n")
    trace = (
        "-------------------------------- START TRACEBACK ------------------------------\\n"
        "    Exception  : error: [Errno 111] Connection refused\\n    Time       : "
        + time.strftime("%Y-%m-%d %H:%M:%S.000000")
        + "\\n-------------------------------------------------------------------------------- "
        + "...traceback cut... " * 100  # the real one has 2.4 kB
        + "END TRACEBACK"
        " --------------------------------"
    )
    if call == "add_jobs":
        fail(f"<Fault 20: '{trace}'>")
    fail(f"component error: XMLRPC failure <Fault 20: '{trace}'> in {component}.{call}\n")
    raise AssertionError


def minutes(text: str) -> int:
    """Minutes of `M`, `H:M`, `H:M:S` or `D:H:M:S`; seconds are dropped."""
    units = {1: ["minutes"], 2: ["hours", "minutes"], 3: ["hours", "minutes", "seconds"]}
    parts = text.split(":")
    names = units.get(len(parts), ["days", "hours", "minutes", "seconds"])
    if len(parts) > 4:
        fail("invalid time specification: time must be in format D:H:M:S")
    found = dict.fromkeys(["days", "hours", "minutes", "seconds"], 0)
    for name, part in zip(names, parts, strict=True):
        if not part.isdigit():
            fail(f"invalid time specification: illegal value {part!r} for {name}")
        found[name] = int(part)
    return (found["days"] * 24 + found["hours"]) * 60 + found["minutes"]


def time_option(option: Any, _text: str, value: str, parser: OptionParser) -> None:
    setattr(parser.values, option.dest, minutes(value))


def nodes_option(option: Any, _text: str, value: int, parser: OptionParser) -> None:
    if not 0 < value <= STATE.setting("nodes"):
        fail("node count out of realistic range")
    setattr(parser.values, option.dest, value)


def attrs_option(option: Any, _text: str, value: str, parser: OptionParser) -> None:
    if getattr(parser.values, option.dest) is not None:
        fail("Multiple --attrs options not supported.  Specify multiple attributes as follows: --attrs FOO=1:BAR=2")
    found: dict[str, str] = {}
    for attr in value.split(":"):
        words = attr.split("=")
        if len(words) > 2:
            fail(f"Improperly formatted argument to attrs : {attr}")
        if len(words) == 2:
            found[words[0]] = words[1]
        elif attr.startswith("no_"):
            found[attr[3:]] = "false"
        else:
            found[attr] = "true"
    setattr(parser.values, option.dest, found)


def path_option(option: Any, _text: str, value: str, parser: OptionParser) -> None:
    if value.startswith("/") and not Path(value).parent.is_dir():
        fail(f"directory {value} does not exist")
    setattr(parser.values, option.dest, value)


def parser_of(command: str) -> OptionParser:
    return OptionParser(
        usage="%prog --help\nUsage: %prog [options] <jobid>", prog=f"{command}.py", add_help_option=False
    )


def qsub_parser() -> OptionParser:
    parser = parser_of("qsub")
    parser.disable_interspersed_args()
    for words in (("-A", "--project"), ("--cwd",), ("-q", "--queue"), ("-M", "--notify"), ("--jobname",), ("--mode",)):
        parser.add_option(*words, type="string")
    call: tuple[tuple[tuple[str, ...], str, Callable[..., None]], ...] = (
        (("-t", "--time"), "string", time_option),
        (("-n", "--nodecount"), "int", nodes_option),
        (("--attrs",), "string", attrs_option),
        (("-O", "--outputprefix"), "string", path_option),
        (("-e", "--error"), "string", path_option),
    )
    for words, kind, function in call:
        parser.add_option(*words, type=kind, action="callback", callback=function, dest=words[-1].lstrip("-"))
    return parser


# --- qsub -----------------------------------------------------------------------------------------------


def directives(script: Path) -> list[str]:
    """The words of the #COBALT lines directly under `#!`: the first other line ends them, and quotes are letters."""
    try:
        lines = script.read_text(errors="replace").split("\n")
    except OSError:
        return []
    words: list[str] = []
    if not lines[0].startswith("#!"):
        return []
    for line in lines[1:]:
        if not line.startswith("#COBALT"):
            break
        words += line.split()[1:]
    return ["--mode", "script", *words] if words else []


def qsub(argv: list[str]) -> None:
    if argv == ["--version"]:
        print('version: "qsub.py " + $Revision: 559 $ + , Cobalt  + $Version$')
        return
    parser = qsub_parser()
    at = 0
    while argv[at].startswith("-"):  # all options have values
        at += 1 if "=" in argv[at] else 2
    words = argv[at:]
    cwd = (given(argv, "--cwd") or str(Path.cwd())).replace(" ", "")
    named = words[0].replace(" ", "")  # the real qsub drops the blanks of paths
    script = Path(named) if named.startswith("/") else Path(cwd) / named
    head = directives(script)
    options, words = parser.parse_args([*head, *argv])
    for name in ("nodecount", "time"):
        if getattr(options, name) is None:
            fail(f"'{name}' not provided")
    if not script.is_file():
        fail(f"command {script} not found, or is not a file")
    if not os.access(script, os.X_OK):
        fail(f"command {script} is not executable")
    job = job_of(options, [str(script), *words[1:]], cwd)
    filtered(job)
    validate(job)
    jobid = add(job)
    job = {key: expanded(value, jobid) for key, value in job.items()}
    text = (
        f"Jobid: {jobid}\nqsub {' '.join([*head, *argv])}\n{cqm.stamp(time.time())} submitted with cwd set to: {cwd}\n"
    )
    with Path(job["cobaltlog"] or f"{cwd}/{jobid}.cobaltlog").open("a") as file:
        file.write(text)
    cqm.serve_in_background(STATE)
    print(jobid)


def given(argv: list[str], option: str) -> str | None:
    for at, word in enumerate(argv):
        if word == option:
            return argv[at + 1]
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return None


def expanded(value: Any, jobid: int) -> Any:
    if not isinstance(value, str):
        return value
    return value.replace("$COBALT_JOBID", str(jobid)).replace("$jobid", str(jobid))


def job_of(options: Values, command: list[str], cwd: str) -> Job:
    prefix = options.outputprefix and options.outputprefix.replace(" ", "")
    return {
        "jobname": options.jobname,
        "user": user(),
        "walltime": options.time,
        "nodes": options.nodecount,
        "mode": options.mode or "script",
        "queue": options.queue or "default",
        "project": options.project,
        "cwd": cwd,
        "outputpath": prefix and f"{prefix}.output",
        "errorpath": options.error and options.error.replace(" ", ""),
        "cobaltlog": prefix and f"{prefix}.cobaltlog",
        "command": command[0],
        "args": command[1:],
        "attrs": options.attrs or {},
        "deps": [],
        "user_hold": False,
        "home": os.environ.get("HOME", "/"),
    }


def filtered(job: Job) -> None:
    """What a site's filter prints on standard error is shown, and on standard output changes the job."""
    program = STATE.setting("filter")
    if not program:
        return
    import subprocess  # only here: each client starts in its few milliseconds

    words = [f"{key}={value}" for key, value in job.items()]
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    if done.stderr:
        print(done.stderr.rstrip("\n"), file=sys.stderr)
    if done.returncode:
        fail(f"Filter {program} failed")
    for line in done.stdout.splitlines():
        key, _, value = line.partition("=")
        if key == "attrs":
            job["attrs"] = dict(pair.split("=") for pair in value.split(":"))
        else:
            job[key] = value


def validate(job: Job) -> None:
    connect("validate_job", "system")
    if 0 < job["walltime"] < STATE.setting("minimum_min"):
        fault(1004, "Walltime less than minimum", "system.validate_job")


def add(job: Job) -> int:
    connect("add_jobs")
    with STATE.locked():
        known = cqm.load(STATE)
        queue = known["queues"].get(job["queue"])
        if queue is None:
            fault(1001, f"trying to add job to non-existent queue '{job['queue']}'")
            raise AssertionError
        refused = refusal(job, queue, known)
        if refused:
            fault(1001, refused)
        jobid: int = known["next"]
        known["next"] += 1
        now = time.time()
        named = {key: expanded(value, jobid) for key, value in job.items()}
        named["cobaltlog"] = named["cobaltlog"] or f"{job['cwd']}/{jobid}.cobaltlog"
        known["jobs"][str(jobid)] = named | {
            "jobid": jobid, "state": "queued", "since": now, "submitted": now, "started": None, "location": [],
            "admin_hold": False, "dep_fail": False, "met": [], "said_hold": False, "killed": "", "pid": None,
            "exit": None,
        }  # fmt: skip
        STATE.write("cqm", known)
    return jobid


def refusal(job: Job, queue: dict[str, Any], known: dict[str, Any]) -> str | None:
    name, most = job["queue"], queue.get("maxtime")
    if most is not None and job["walltime"] > most:
        return f"Walltime greater than the '{name}' queue max walltime of {hms(most * 60)}\n"
    mine = [other for other in known["jobs"].values() if other["queue"] == name and other["user"] == job["user"]]
    if "maxqueued" in queue and len(mine) >= queue["maxqueued"]:
        return f"The limit of {queue['maxqueued']} jobs per user in the '{name}' queue has been reached\n"
    return None


# --- changing jobs --------------------------------------------------------------------------------------


def jobids(words: list[str]) -> list[str]:
    for word in words:
        if not word.isdigit():
            fail(f"jobid must be an integer: {word}")
    return sorted(set(words), key=int)


def qdel(argv: list[str]) -> None:
    wanted = jobids(argv)
    connect("del_jobs")
    deleted = []
    with STATE.locked():
        known = cqm.load(STATE)
        for jobid in wanted:
            job = known["jobs"].get(jobid)
            if job is None or job["user"] != user():
                continue
            deleted.append(job)
            late = STATE.setting("log_s")
            if job["state"] == "queued":
                cqm.log(known, job, "user delete requested; removing job from the queue", late)
                del known["jobs"][jobid]
            elif job["killed"] == "user":
                text = "user delete request already pending with signal SIGTERM; ignoring user delete request"
                cqm.log(known, job, text, late)
            else:
                cqm.log(known, job, f"user delete requested with signal SIGTERM by user {user()}", late)
                job["killed"] = "user"
        STATE.write("cqm", known)
    if deleted:
        print("      Deleted Jobs")
        print(tabular([["JobID", "User"], *([str(job["jobid"]), job["user"]] for job in deleted)]), end="")


def hold(argv: list[str], *, release: bool) -> None:
    wanted = jobids(argv)
    connect("set_jobs")
    good, bad = [], []
    with STATE.locked():
        known = cqm.load(STATE)
        mine = {jobid: job for jobid, job in known["jobs"].items() if job["user"] == user()}
        for jobid in wanted:
            job = mine.get(jobid)
            if (why := unholdable(job, release=release)) or job is None:
                bad.append(f"job {jobid} {why}")
            else:
                job["user_hold"] = not release
                good.append(jobid)
        STATE.write("cqm", known)
    if not mine.keys() & set(wanted):
        print("   No jobs found.\nFailed to match any jobs", file=sys.stderr)
    if bad:
        print("\n      ".join([f"   Failed to {'remove' if release else 'place'} user hold on jobs: ", *bad]))
    if good:
        print("\n      ".join(["   Removed user hold on jobs: " if release else "Placed user hold on jobs: ", *good]))


def unholdable(job: Job | None, *, release: bool) -> str | None:
    if job is None:
        return "not found"
    active = job["state"] in cqm.ACTIVE
    if release and active:
        return "is already active and does not have a pending 'user hold'"
    if release:
        return None if job["user_hold"] else "does not have a 'user hold'"
    return "is already active" if active else "already in state 'user hold'" if job["user_hold"] else None


def qalter(argv: list[str]) -> None:
    option, dependencies, jobid = argv
    assert option == "--dependencies"
    with STATE.locked():
        known = cqm.load(STATE)
        known["jobs"][jobid].update(deps=dependencies.split(":"), met=[], dep_fail=False)
        STATE.write("cqm", known)


def cqadm(argv: list[str]) -> None:
    """Start and stop a queue, and limit its jobs' time."""
    option, *words = argv
    with STATE.locked():
        known = cqm.load(STATE)
        if option == "--setq":
            key, _, value = words[0].partition("=")
            known["queues"][words[1]][key] = minutes(value) if key == "maxtime" else int(value)
        else:
            known["queues"][words[0]]["state"] = {"--stopq": "stopped", "--startq": "running"}[option]
        STATE.write("cqm", known)


# --- asking ---------------------------------------------------------------------------------------------


def qstat(argv: list[str]) -> None:
    if argv == ["--version"]:
        print('version: "qstat.py " + $Revision: 406 $ + , Cobalt  + $Version$')
        return
    if {"QSTAT_HEADER", "CQSTAT_HEADER"} & os.environ.keys():
        fail("qstat: the environment holds a header", 99)
    parser = parser_of("qstat")
    parser.add_option("-Q", action="store_true")
    parser.add_option("--header")
    parser.add_option("-u", "--user")
    options, words = parser.parse_args(argv)
    known = connect("get_queues")
    if options.Q:
        queues(known)
        return
    jobs = [
        job
        for jobid, job in known["jobs"].items()
        if (not words or jobid in jobids(words)) and options.user in {None, job["user"]}
    ]
    if words and not jobs:
        sys.exit(1)
    columns = {"JobID": "jobid", "User": "user", "JobName": "jobname"}
    names = options.header.split(":")
    rows = [[cqm.state_name(job, known) if n == "State" else str(job[columns[n]]) for n in names] for job in jobs]
    print(tabular([names, *rows]), end="")


def queues(known: dict[str, Any]) -> None:
    header = ["Name", "Users", "Groups", "MinTime", "MaxTime", "MaxRunning", "MaxQueued", "MaxUserNodes",
              "MaxNodeHours", "TotalNodes", "State"]  # fmt: skip
    rows = []
    for name, queue in sorted(known["queues"].items()):
        longest = hms(queue["maxtime"] * 60) if "maxtime" in queue else "None"
        rows.append([name, "None", "None", "None", longest, *["None"] * 5, queue["state"]])
    print(tabular([header, *rows]), end="")


def hms(seconds: float) -> str:
    return time.strftime(f"{int(seconds // 3600):02}:%M:%S", time.gmtime(seconds % 3600))


def tabular(rows: list[list[str]]) -> str:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = ["".join(value.ljust(width + 2) for value, width in zip(row, widths, strict=True)) for row in rows]
    lines.insert(1, "=" * len(lines[0]))
    return "".join(f"{line}\n" for line in lines)


COMMANDS: dict[str, Callable[[list[str]], None]] = {
    "qsub": qsub,
    "qstat": qstat,
    "qdel": qdel,
    "qalter": qalter,
    "qhold": lambda argv: hold(argv, release=False),
    "qrls": lambda argv: hold(argv, release=True),
    "cqadm": cqadm,
}


if __name__ == "__main__":
    try:
        STATE.run(sys.argv[1], lambda: COMMANDS[sys.argv[1]](sys.argv[2:]))
    except OptionValueError as error:
        fail(str(error))
