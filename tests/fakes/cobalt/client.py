"""Stands in for Cobalt's qsub, qstat, qdel, qalter, qhold, qrls, qmove and cqadm; state in NSW_FAKE_COBALT.

It parses options and directives as Cobalt 1.0.33 does and refuses what that refuses, in its words.
"""

from __future__ import annotations

import os
import pwd
import re
import sys
import time
from optparse import OptionParser, OptionValueError, Values
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import cqm
import table
from machinery import fail

if TYPE_CHECKING:
    from collections.abc import Callable

    from cqm import Job

STATE = cqm.state_of_tests()
USAGE = {
    "qsub": "[options] <executable> [<excutable options>]\n\nRefer to man pages for JOBID EXPANSION and SCRIPT JOB DIRECTIVES.\n",
    "qdel": "[options] <jobid1> [ ... <jobidN>]",
    "qalter": "[options] <jobid1> ... <jobidN>",
}


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
    time.sleep(STATE.setting("outage_s"))
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


# --- options --------------------------------------------------------------------------------------------


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
    sign = value[:1] if value[:1] in {"+", "-"} and parser.prog == "qalter.py" else ""
    setattr(parser.values, option.dest, (sign, minutes(value.removeprefix(sign))))


def nodes_option(option: Any, _text: str, value: int, parser: OptionParser) -> None:
    if not 0 < value <= STATE.setting("nodes"):
        fail("node count out of realistic range")
    setattr(parser.values, option.dest, value)


def env_option(option: Any, _text: str, value: str, parser: OptionParser) -> None:
    value = value.replace("\\:", "\0").replace("\\=", "\1")
    found = dict(getattr(parser.values, option.dest) or {})
    for item in re.split(r":(?=\w+\b=)", value):
        pair = item.split("=", 1)
        if len(pair) != 2:
            fail(f"Improperly formatted argument to env : {pair!r}")
        found[pair[0]] = pair[1].replace("\0", ":").replace("\1", "=")
    setattr(parser.values, option.dest, found)


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


def umask_option(option: Any, _text: str, value: str, parser: OptionParser) -> None:
    try:
        setattr(parser.values, option.dest, int(value, 8))
    except ValueError:
        fail(f"Invalid umask value {value}")


def dependencies_option(option: Any, _text: str, value: str, parser: OptionParser) -> None:
    if value.lower() == "none":
        print("Removing job dependencies")
        setattr(parser.values, option.dest, [])
        return
    wanted = value.split(":")
    known = connect("get_jobs")["jobs"]
    missing = ":".join(dep for dep in wanted if dep not in known)
    if missing:
        print(f"WARNING: dependencies {missing} do not match jobs currently in the queue", file=sys.stderr)
    setattr(parser.values, option.dest, wanted)


def parser_of(command: str) -> OptionParser:
    usage = f"%prog {USAGE.get(command, '[options] <jobid1> [ ... <jobidN>]')}"
    if command in {"qsub", "qalter"}:
        usage = f"%prog --help\nUsage: {usage}"
    return OptionParser(usage=usage, prog=f"{command}.py", add_help_option=False, version="")


def qsub_parser() -> OptionParser:
    parser = parser_of("qsub")
    parser.disable_interspersed_args()
    add = parser.add_option
    for words in (
        ("-d", "--debug"), ("-v", "--verbose"), ("-h", "--held"), ("--preemptable",), ("--run_project",),
        ("--disable_preboot",), ("-I", "--interactive"),
    ):  # fmt: skip
        add(*words, action="store_true")
    for words in (
        ("--proccount",), ("-A", "--project"), ("--cwd",), ("-q", "--queue"), ("-M", "--notify"),
        ("--user_list", "--run_users"), ("--jobname",), ("--kernel",), ("-K", "--kerneloptions"), ("--ion_kernel",),
        ("--ion_kerneloptions",), ("--mode",), ("--geometry",), ("-i", "--inputfile"),
    ):  # fmt: skip
        add(*words, type="string")
    call: tuple[tuple[tuple[str, ...], str, Callable[..., None]], ...] = (
        (("-t", "--time"), "string", time_option),
        (("-n", "--nodecount"), "int", nodes_option),
        (("--env",), "string", env_option),
        (("--attrs",), "string", attrs_option),
        (("-u", "--umask"), "string", umask_option),
        (("-O", "--outputprefix"), "string", path_option),
        (("-o", "--output"), "string", path_option),
        (("-e", "--error"), "string", path_option),
        (("--debuglog",), "string", path_option),
        (("--dependencies",), "string", dependencies_option),
    )
    for words, kind, function in call:
        add(*words, type=kind, action="callback", callback=function, dest=words[-1].lstrip("-"))
    return parser


def usage(parser: OptionParser, said: str) -> None:
    parser.print_usage()
    fail(f"{said}\n")


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
    _, words = quietly(parser, argv)
    if not words:
        usage(parser, "No executable or script specified")
    cwd = (given(argv, "--cwd") or str(Path.cwd())).replace(" ", "")
    named = words[0].replace(" ", "")  # the real qsub drops the blanks of paths
    script = Path(named) if named.startswith("/") else Path(cwd) / named
    head = directives(script)
    options, words = parser.parse_args([*head, *argv])
    command = str(script)
    if not any(value is not None for value in vars(options).values()):
        usage(parser, "No required options provided")
    for name in ("nodecount", "time"):
        if getattr(options, name) is None:
            fail(f"'{name}' not provided")
    if not script.is_file():
        fail(f"command {command} not found, or is not a file")
    if not os.access(script, os.X_OK) or not script.stat().st_mode & 0o111:
        fail(f"command {command} is not executable")
    for name in ("output", "error", "outputprefix", "debuglog"):
        value = getattr(options, name)
        if value and not value.startswith("/") and not Path(cwd, value).parent.is_dir():
            fail(f"directory {cwd}/{value} does not exist")
    job = job_of(options, [command, *words[1:]], cwd)
    filtered(job)
    validate(job, options.mode)
    jobid = add(job)
    job = {key: expanded(value, jobid) for key, value in job.items()}
    line = "qsub " + " ".join([*head, *argv])
    log = job["cobaltlog"] or f"{cwd}/{jobid}.cobaltlog"
    text = f"Jobid: {jobid}\n{line}\n{cqm.stamp(time.time())} submitted with cwd set to: {cwd}\n"
    old = os.umask(job["umask"])
    try:
        with Path(log).open("a") as file:
            file.write(text)
    except OSError as error:
        print(f"WARNING: failed to create cobalt log file at: {log}", file=sys.stderr)
        print(f"WARNING:     Error information: [Errno {error.errno}] {error.strerror}: '{log}'", file=sys.stderr)
    os.umask(old)
    cqm.serve_in_background(STATE)
    print(jobid)


def quietly(parser: OptionParser, argv: list[str]) -> tuple[Values, list[str]]:
    """Find the executable among the words, as if nothing could be wrong with the options."""
    finder = OptionParser(usage=parser.usage, prog=parser.prog, add_help_option=False)
    finder.disable_interspersed_args()
    for option in parser.option_list:
        words = [*option._short_opts, *option._long_opts]
        if option.takes_value():
            kind = "int" if option.type == "int" else "string"
            finder.add_option(*words, type=kind, action="append", dest=words[-1].lstrip("-"))
        elif words != ["--version"]:
            finder.add_option(*words, action="store_true")
    return finder.parse_args(argv)


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
    def place(name: str, ending: str) -> str | None:
        value = getattr(options, name)
        if value is None and options.outputprefix:
            value = f"{options.outputprefix}.{ending}"
        value = value and value.replace(" ", "")
        return value and (value if value.startswith("/") else f"{cwd}/{value}")

    stem = options.output or options.outputprefix
    nodes = options.nodecount
    return {
        "jobname": options.jobname or (Path(stem).name if stem else None),
        "user": user(),
        "walltime": options.time[1],
        "nodes": nodes,
        "procs": int(options.proccount or nodes),
        "mode": options.mode or "script",
        "queue": options.queue or "default",
        "project": options.project or os.environ.get("PROJECT") or None,
        "cwd": cwd,
        "outputpath": place("output", "output"),
        "errorpath": place("error", "error"),
        "cobaltlog": place("debuglog", "cobaltlog"),
        "inputfile": options.inputfile and str(Path(cwd, options.inputfile)),
        "envs": options.env or {},
        "command": command[0],
        "args": command[1:],
        "attrs": options.attrs or {},
        "deps": options.dependencies or [],
        "notify": options.notify,
        "umask": 0o022 if options.umask is None else options.umask,
        "user_hold": bool(options.held),
        "path": os.environ.get("PATH", ""),
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


def validate(job: Job, mode: str | None) -> None:
    connect("validate_job", "system")
    if mode not in {None, "co", "vn", "script", "interactive"}:
        fail(f"Specifed mode '{mode}' not valid, valid modes are\nco\nvn\nscript\ninteractive")
    if 0 < job["walltime"] < STATE.setting("minimum_min"):
        fault(1004, "Walltime less than minimum", "system.validate_job")
    if STATE.setting("theta"):
        for name, good in (
            ("mcdram", ["cache", "flat", "split", "equal"]),
            ("numa", ["a2a", "hemi", "quad", "snc2", "snc4"]),
        ):
            value = job["attrs"].get(name, good[0])
            if value not in good:
                fault(1004, f"{name} {value} not valid must be one of: {', '.join(good)}", "system.validate_job")


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
    name = job["queue"]
    if queue["state"] in {"draining", "dead"}:
        return f"The '{name}' queue is {queue['state']}"
    most, least = queue.get("maxtime"), queue.get("mintime")
    if most is not None and job["walltime"] > most:
        return f"Walltime greater than the '{name}' queue max walltime of {table.hms(most * 60)}\n"
    if least is not None and job["walltime"] < least:
        return f"Walltime less than the '{name}' queue min walltime of {table.hms(least * 60)}\n"
    mine = [other for other in known["jobs"].values() if other["queue"] == name and other["user"] == job["user"]]
    if "maxqueued" in queue and len(mine) >= queue["maxqueued"]:
        return f"The limit of {queue['maxqueued']} jobs per user in the '{name}' queue has been reached\n"
    if "maxusernodes" in queue and sum(other["nodes"] for other in mine) + job["nodes"] > queue["maxusernodes"]:
        return f"The limit of {queue['maxusernodes']} nodes per user in the '{name}' queue has been reached\n"
    return None


# --- changing jobs --------------------------------------------------------------------------------------


def jobids(words: list[str], parser: OptionParser | None = None) -> list[str]:
    if not words:
        usage(parser or parser_of("qdel"), "No Jobid(s) given")
    for word in words:
        if not word.isdigit():
            fail(f"jobid must be an integer: {word}")
    return sorted(set(words), key=int)


def qdel(argv: list[str]) -> None:
    parser = parser_of("qdel")
    parser.add_option("-d", "--debug", action="store_true")
    parser.add_option("-f", "--force", action="store_true")
    parser.add_option("-s", "--signal")
    wanted = jobids(parser.parse_args(argv)[1], parser)
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
        print(table.tabular([["JobID", "User"], *([str(job["jobid"]), job["user"]] for job in deleted)]), end="")


def hold(argv: list[str], *, release: bool) -> None:
    parser = parser_of("qrls" if release else "qhold")
    parser.add_option("-d", "--debug", action="store_true")
    if release:
        parser.add_option("--dependencies", action="store_true")
    options, words = parser.parse_args(argv)
    wanted = jobids(words, parser)
    connect("set_jobs")
    good, bad = [], []
    with STATE.locked():
        known = cqm.load(STATE)
        mine = {jobid: job for jobid, job in known["jobs"].items() if job["user"] == user()}
        for jobid in wanted:
            job = mine.get(jobid)
            if release and options.dependencies:
                if job is not None:
                    job.update(deps=[], met=[], dep_fail=False)
                    good.append(jobid)
            elif (why := unholdable(job, release=release)) or job is None:
                bad.append(f"job {jobid} {why}")
            else:
                job["user_hold"] = not release
                good.append(jobid)
        STATE.write("cqm", known)
    what = "Removed dependencies from jobs" if release and options.dependencies else "user hold"
    if what != "user hold":
        print("\n      ".join([f"   {what}: ", *good]))
        return
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
    parser = parser_of("qalter")
    parser.add_option("-t", "--time", type="string", action="callback", callback=time_option, dest="time")
    parser.add_option("-n", "--nodecount", type="int", action="callback", callback=nodes_option, dest="nodes")
    parser.add_option("-A", "--project")
    parser.add_option("--attrs", type="string", action="callback", callback=attrs_option, dest="attrs")
    parser.add_option(
        "--dependencies", type="string", action="callback", callback=dependencies_option, dest="dependencies"
    )
    signed = {word: f"-t{argv[at + 1]}" for at, word in enumerate(argv[:-1]) if word == "-t"}
    if signed:  # `-t -5`: optparse takes the next word whatever it begins with
        at = argv.index("-t")
        argv = [*argv[:at], signed["-t"], *argv[at + 2 :]]
    options, words = parser.parse_args(argv)
    wanted = jobids(words, parser)
    connect("get_jobs")
    with STATE.locked():
        known = cqm.load(STATE)
        jobs = [known["jobs"][jobid] for jobid in wanted if jobid in known["jobs"]]
        if not jobs:
            print("Failed to match any jobs or queues", file=sys.stderr)
        for job in jobs:
            alter(job, options)
        STATE.write("cqm", known)


def alter(job: Job, options: Values) -> None:
    if options.time is not None:
        if job["state"] in cqm.ACTIVE:
            fail("cannot change wall time of a running job")
        sign, value = options.time
        old = job["walltime"]
        job["walltime"] = old + value if sign == "+" else old - value if sign == "-" else value
        print(f"walltime changed from {old} to {float(job['walltime']) if sign else job['walltime']}")
    if options.nodes is not None:
        print(f"nodes changed from {job['nodes']} to {options.nodes}")
        print(f"procs changed from {job['procs']} to {options.nodes}")
        job["nodes"] = job["procs"] = options.nodes
    if options.project is not None:
        print(f"project changed from {job['project']} to {options.project}")
        job["project"] = options.project
    if options.attrs is not None:
        print(f"attrs set to {options.attrs}")
        job["attrs"] = options.attrs
    if options.dependencies is not None:
        print(f"dependencies set to {':'.join(options.dependencies)}")
        job.update(deps=options.dependencies, met=[], dep_fail=False)


def cqwait(argv: list[str]) -> None:
    """Wait until jobs are gone or, with --start, run."""
    start = "--start" in argv
    words = [word for word in argv if not word.startswith("-")]
    if not words:
        print("\nNeed jobid\n\nUsage: cqwait [--version] [-vr] [--start] <jobid> <jobid>\n")
        sys.exit(1)
    if not all(word.isdigit() for word in words):
        fail("jobid must be an integer")
    while True:
        known = connect("get_jobs")["jobs"]
        if not any(word in known and not (start and known[word]["started"]) for word in words):
            return
        time.sleep(0.02)


def qmove(argv: list[str]) -> None:
    queue, *words = argv
    with STATE.locked():
        known = cqm.load(STATE)
        if queue not in known["queues"]:
            fault(1001, f"Error: queue '{queue}' does not exist", "queue-manager.set_jobs")
        for jobid in jobids(words):
            known["jobs"][jobid]["queue"] = queue
            print(f"moved job {jobid} to queue '{queue}'")
        STATE.write("cqm", known)


def cqadm(argv: list[str]) -> None:
    """What administrators do to queues and jobs; the words that tests need."""
    option, *words = argv
    with STATE.locked():
        known = cqm.load(STATE)
        states = {"--stopq": "stopped", "--startq": "running", "--drainq": "draining", "--killq": "dead"}
        if option in states:
            known["queues"][words[0]]["state"] = states[option]
        elif option == "--setq":
            for pair in words[0].split():
                key, _, value = pair.partition("=")
                known["queues"][words[1]][key] = minutes(value) if key in {"maxtime", "mintime"} else int(value)
        elif option == "--unsetq":
            for key in words[0].split():
                known["queues"][words[1]].pop(key, None)
        elif option in {"--admin-hold", "--admin-release"}:
            known["jobs"][words[0]]["admin_hold"] = option == "--admin-hold"
        else:
            fail(f"Usage: cqadm.py --help\nUsage: cqadm.py [options] <jobid> <jobid> OR <queue> <queue>\n\n"
                 f"cqadm.py: error: no such option: {option}", 2)  # fmt: skip
        STATE.write("cqm", known)


# --- asking ---------------------------------------------------------------------------------------------


def qstat(argv: list[str]) -> None:
    if argv == ["--version"]:
        print('version: "qstat.py " + $Revision: 406 $ + , Cobalt  + $Version$')
        return
    parser = parser_of("qstat")
    for words in (("-d", "--debug"), ("-f", "--full"), ("-l", "--long"), ("-Q",), ("--reverse",)):
        parser.add_option(*words, action="store_true")
    for words in (("--header",), ("-u", "--user"), ("--sort",)):
        parser.add_option(*words)
    options, words = parser.parse_args(argv)
    known = connect("get_queues")
    if options.Q:
        queues(known, words)
        return
    for word in words:
        if not word.isdigit() and word not in known["queues"]:
            fail(f"{word} is not a valid jobid or queue name")
    jobs = [
        job
        for jobid, job in known["jobs"].items()
        if (not words or jobid in words or job["queue"] in words) and options.user in {None, job["user"]}
    ]
    if words and not jobs:
        sys.exit(1)
    if options.sort:
        jobs.sort(key=lambda job: (str(job[options.sort]), job["jobid"]))
    jobs = jobs[::-1] if options.reverse else jobs
    header = table.header(full=options.full, long=options.long, asked=options.header)
    rows = [table.values(job, known) for job in jobs]
    print(table.show(header, rows, long=options.long), end="")


def queues(known: dict[str, Any], words: list[str]) -> None:
    header = ["Name", "Users", "Groups", "MinTime", "MaxTime", "MaxRunning", "MaxQueued", "MaxUserNodes",
              "MaxNodeHours", "TotalNodes", "State"]  # fmt: skip
    rows = []
    for name, queue in sorted(known["queues"].items()):
        if not words or name in words:
            times = [table.hms(queue[key] * 60) if key in queue else "None" for key in ("mintime", "maxtime")]
            rest = [str(queue.get(key.lower())) for key in header[5:10]]
            rows.append([name, "None", "None", *times, *rest, queue["state"]])
    if words and not rows:
        sys.exit(1)
    print(table.tabular([header, *rows]), end="")


COMMANDS: dict[str, Callable[[list[str]], None]] = {
    "qsub": qsub,
    "qstat": qstat,
    "cqstat": qstat,
    "qdel": qdel,
    "qalter": qalter,
    "qhold": lambda argv: hold(argv, release=False),
    "qrls": lambda argv: hold(argv, release=True),
    "qmove": qmove,
    "cqwait": cqwait,
    "cqadm": cqadm,
}


if __name__ == "__main__":
    try:
        STATE.run(sys.argv[1], lambda: COMMANDS[sys.argv[1]](sys.argv[2:]))
    except OptionValueError as error:
        fail(str(error))
