"""How the fake Cobalt's qstat shows jobs."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import cqm

if TYPE_CHECKING:
    from cqm import Job

DEFAULT = ["JobID", "User", "WallTime", "Nodes", "State", "Location"]
FULL = [
    "JobID",
    "JobName",
    "User",
    "WallTime",
    "QueuedTime",
    "RunTime",
    "TimeRemaining",
    "Nodes",
    "State",
    "Location",
    "Mode",
    "Procs",
    "Preemptable",
    "Queue",
    "StartTime",
    "Index",
]
LONG = [
    "JobID",
    "JobName",
    "User",
    "WallTime",
    "QueuedTime",
    "RunTime",
    "TimeRemaining",
    "Nodes",
    "State",
    "Location",
    "Mode",
    "Procs",
    "Preemptable",
    "User_Hold",
    "Admin_Hold",
    "Queue",
    "StartTime",
    "Index",
    "SubmitTime",
    "Path",
    "OutputDir",
    "ErrorPath",
    "OutputPath",
    "Envs",
    "Command",
    "Args",
    "Kernel",
    "KernelOptions",
    "ION_Kernel",
    "ION_KernelOptions",
    "Project",
    "Dependencies",
    "short_state",
    "Notify",
    "Score",
    "Maxtasktime",
    "attrs",
    "dep_frac",
    "user_list",
    "Geometry",
    "Est_Start_Time",
]
SHOWN = {"short_state": "S"}


def hms(seconds: float) -> str:
    return time.strftime(f"{int(seconds // 3600):02}:%M:%S", time.gmtime(seconds % 3600))


def header(*, full: bool, long: bool, asked: str | None) -> list[str]:
    """The columns: what --header says, except with -f -l together; else what the environment says."""
    if full and long:
        return LONG
    if full:
        custom = asked or os.environ.get("CQSTAT_HEADER_FULL") or os.environ.get("QSTAT_HEADER_FULL")
        return custom.split(":") if custom else FULL
    custom = asked or os.environ.get("CQSTAT_HEADER") or os.environ.get("QSTAT_HEADER")
    return custom.split(":") if custom else DEFAULT


def values(job: Job, known: dict[str, Any]) -> dict[str, str]:
    now = time.time()
    started = job["started"]
    name = cqm.state_name(job, known)
    envs = dict(job["envs"]) | ({"COBALT_JOBID": str(job["jobid"])} if started else {})
    return {
        "jobid": str(job["jobid"]),
        "jobname": job["jobname"] or "N/A",
        "user": job["user"],
        "walltime": hms(job["walltime"] * 60),
        "queuedtime": hms((started or now) - job["submitted"]),
        "runtime": hms(now - started) if started else "N/A",
        "timeremaining": hms(max(0, started + job["walltime"] * 60 - now)) if started else "N/A",
        "nodes": str(job["nodes"]),
        "state": name,
        "location": ":".join(job["location"]) or "None",
        "mode": job["mode"],
        "procs": str(job["procs"]),
        "preemptable": "False",
        "user_hold": str(job["user_hold"]),
        "admin_hold": str(job["admin_hold"]),
        "queue": job["queue"],
        "starttime": cqm.stamp(started) if started else "N/A",
        "index": "None",
        "submittime": cqm.stamp(job["submitted"]),
        "path": job["path"],
        "outputdir": job["cwd"],
        "errorpath": str(job["errorpath"]),
        "outputpath": str(job["outputpath"]),
        "envs": " ".join(f"{key}={value}" for key, value in envs.items()),
        "command": job["command"],
        "args": " ".join(job["args"]),
        "kernel": "default",
        "kerneloptions": "None",
        "ion_kernel": "default",
        "ion_kerneloptions": "None",
        "project": str(job["project"]),
        "dependencies": ":".join(cqm.unmet(job)),
        "short_state": cqm.short_state(name),
        "notify": str(job["notify"]),
        "score": "  0.1  ",
        "maxtasktime": "None",
        "attrs": str(job["attrs"]),
        "dep_frac": "None",
        "user_list": job["user"],
        "geometry": "Any",
        "est_start_time": "-",
    }


def show(names: list[str], jobs: list[dict[str, str]], *, long: bool) -> str:
    titles = [SHOWN.get(name, name) for name in names]
    rows = [[job.get(name.lower(), "-") for name in names] for job in jobs]
    if not long:
        return tabular([titles, *rows])
    width = max((len(title) for title in titles[1:]), default=0)
    return "".join(
        f"{titles[0]}: {row[0]}\n"
        + "".join(f"    {title.ljust(width)} : {value}\n" for title, value in zip(titles[1:], row[1:], strict=True))
        + "\n"
        for row in rows
    )


def tabular(rows: list[list[str]]) -> str:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = ["".join(value.ljust(width + 2) for value, width in zip(row, widths, strict=True)) for row in rows]
    lines.insert(1, "=" * len(lines[0]))
    return "".join(f"{line}\n" for line in lines)
