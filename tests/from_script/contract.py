"""What a job script does, by running it in bash with stubs for all programs, and what nsw's script does instead.

Every word of a command, directive and variable of the script is in nsw's, or named among the lines that were left out or
not understood; and nsw adds no words but its own.
"""

import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

PROFILERS = {"nsys", "ncu", "nvprof", "vtune", "amplxe-cl", "aps", "nv-nsight-cu-cli"}
READING = re.compile(r"stats|export|-i|--import.*|-report|--report.*")
SETTING = {"module", "source", "conda", "mkdir"}
STUBS = r"""
nsw_log() {    # a file a call: those of a pipeline run at the same time
  { printf '%s\0' "${BASH_LINENO[1]}" "$@"; printf '\1\0'; export -p; } >"$NSW_LOG/$EPOCHREALTIME.$BASHPID"
}
command_not_found_handle() { nsw_log "$@"; case $1 in wc) echo 2;; seq) echo 1;; esac; }
cd() { nsw_log cd "$@"; }
module() { nsw_log module "$@"; }
source() { nsw_log source "$@"; }
function . { nsw_log source "$@"; }
"""
# what the shell, the test and the launcher themselves set
OWN_VARIABLES = re.compile(r"PWD|OLDPWD|SHLVL|_|PATH|BASH_ENV|NSW_LOG|HOME|(SLURM|PBS|COBALT|PALS|PMI|OMPI).*")
# options that nsw adds, as it documents
OURS = re.compile(
    r"--sample=none|--cpuctxsw=none|--force-overwrite(=true)?|--output=timeline.*|--export=(counters|timeline).*|--csv"
    r"|--export-profile=.*|--normalized-time-unit=ns|--log-file=.*|--profile-child-processes|--target-processes=all"
    r"|--kernel-id=.*|--trace=cuda,(opengl,)?nvtx(,osrt)?|--set=basic|--cpu-bind=cores|--distribution=block|--nodes=\d+|--ntasks=\d+"
    r"|--ntasks-per-node=\d+|--cpus-per-task=\d+|--gpus-per-node=\d+|--gres=.*|-n=\d+|-N=\d+|-np=\d+|-r=.*|-result-dir=.*"
    r"|--result-dir=.*|-d=\d+|-cc=depth|--print-(gpu|api)-trace|-quiet|-report.*|--(metrics|events)=.*"
)
LONG = {
    "-t": "--trace", "-n": "--ntasks", "-c": "--cpus-per-task", "-k": "--kernel-name", "-s": "--launch-skip",
    "-m": "--metrics", "-e": "-e",
}  # fmt: skip


@dataclass
class Call:
    """A command that a script started: its words, its line, and the variables that were exported then."""

    words: list[str]
    line: int
    exported: dict[str, str] = field(default_factory=dict)


def calls_of(script, folder, *, arguments=(), files=()):
    """The commands that bash starts for a script, in order."""
    log = folder / ".calls of the test"
    shutil.rmtree(log, ignore_errors=True)
    log.mkdir()
    (folder / "stubs").write_text(STUBS)
    (folder / "home").mkdir(exist_ok=True)
    text = script.read_text()
    for name in {*files, *re.findall(r"(?<![\w/$}])\./([\w.-]+)", text), "pinned5e.out"}:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text('#!/bin/bash\nnsw_log "$0" "$@"\n' if name not in files else "")
        file.chmod(0o755)
    job = {"SLURM_SUBMIT_DIR": str(folder), "SLURM_JOB_ID": "1", "SLURM_JOBID": "1", "PBS_NODEFILE": "/dev/null",
           "COBALT_JOBSIZE": "1", "PALS_LOCAL_RANKID": "0", "PMI_RANK": "0", "OMPI_COMM_WORLD_RANK": "0"}  # fmt: skip
    subprocess.run(
        ["/bin/bash", str(script), *arguments], cwd=folder, capture_output=True, check=False, timeout=60,
        env={"PATH": "/nowhere", "HOME": str(folder / "home"), "BASH_ENV": str(folder / "stubs"), "NSW_LOG": str(log), **job},
    )  # fmt: skip
    return [_call(*file.read_text().split("\0\1\0")) for file in sorted(log.iterdir())]


def _call(words, exported):
    line, *rest = words.split("\0")
    return Call(rest, int(line or 0), _variables(exported))


def _variables(text):
    found = {}
    for name, value in re.findall(r'^declare -x (\w+)="((?:[^"\\]|\\.)*)"', text, re.MULTILINE):
        if not OWN_VARIABLES.fullmatch(name):
            found[name] = re.sub(r"\\(.)", r"\1", value)
    return found


@dataclass
class Rendered:
    """A job script of nsw's, taken apart."""

    text: str

    @property
    def directives(self):
        return [line for line in self.text.splitlines() if re.match(r"#(SBATCH|PBS|COBALT|BSUB|\$) ", line)]

    @property
    def last_job(self):
        """The text of the last job that measures: builds and reductions have jobs of their own, with the same set-up."""
        return [job for job in self.text.split("# ==== ") if "-reduce-" not in job.partition("\n")[0]][-1]

    @property
    def runs(self):
        """The words of each run."""
        return [shlex.split(line)[3:] for line in re.findall(r"^ *(nsw_run .*)$", self.text, re.MULTILINE)]

    @property
    def modules(self):
        """The modules of the site, which are loaded first."""
        return "".join(
            f"{line}\n" for line in re.findall(r"^nsw_ok && \{ (module load .*); \} 2>", self.last_job, re.MULTILINE)
        )

    @property
    def set_up(self):
        """A script that does what is done before the runs."""
        lines = re.findall(r"^nsw_ok && \{ (eval .*); \} 2>", self.last_job, re.MULTILINE)
        return "\n".join(
            [*lines, *dict.fromkeys(re.findall(r"^ *(export (?!NSW).*)$", self.last_job, re.MULTILINE)), "nsw_done"]
        )


def profiler_of(words):
    return next((at for at, word in enumerate(words) if Path(word).name in PROFILERS), None)


def measured(calls):
    """The calls of a profiler that measures."""
    return [call for call in calls if call.words[0] not in SETTING and _measures(call.words)]


def _measures(words):
    at = profiler_of(words)
    return at is not None and not any(READING.fullmatch(word) for word in words[at + 1 : at + 3])


def options_of(words):
    """Options as --NAME=VALUE, in a set; other words as they are."""
    found, at = set(), 0
    while at < len(words):
        name, equals, value = words[at].partition("=")
        after = words[at + 1] if at + 1 < len(words) else "-"
        if (
            name.startswith("-")
            and not equals
            and not after.startswith("-")
            and profiler_of([after]) is None
            and after != "bash"
        ):
            value, equals = after, "="
            at += 1
        if name == "--kernels":  # a bare pattern, as nvprof takes it too
            value = value.removeprefix("::").removesuffix(":")
        found.add(f"{LONG.get(name, name)}{equals}{value}")
        at += 1
    return found


def split_program(words, program):
    """The words before the program; the program is the last words, or a line of shell that ends with it."""
    if words[-len(program) :] == program:
        return words[: -len(program)], ""
    end = shlex.join(program)
    at = next(
        at for at in range(len(words)) if words[at : at + 2] == ["bash", "-o"] or words[at : at + 2] == ["bash", "-c"]
    )
    line = words[words.index("-c", at) + 1]
    before, found, _ = line.partition(end)
    assert found, (line, program)
    return words[:at], before


def compare_call(call, words, program, lines):
    """Each word of the script's command is in nsw's or named in a line, and nsw's others are its own."""
    named = " ".join(line.text for line in lines if not line.what.startswith("passes"))
    theirs, _ = split_program(call.words, program)
    if Path(theirs[profiler_of(theirs)]).name in {"vtune", "amplxe-cl"}:
        theirs[profiler_of(theirs) :] = ["-collect" if w == "-c" else w for w in theirs[profiler_of(theirs) :]]
    ours, before = split_program(words, program)
    tools = {"bash", "$nsw", "rank", "profile", "nvprof", "--"}
    have = options_of([word for word in ours if word not in tools])
    want = options_of([word for word in theirs if word not in tools])
    for option in want - have:
        name, _, value = option.partition("=")
        is_named = name in named or any(short in named.split() for short, long in LONG.items() if long == name)
        is_layout = re.fullmatch(r"--(ntasks|cpus-per-task|nodes)|-N|-n|-e", name) and any(
            o.endswith(f"={value}") for o in have
        )
        is_same = Path(option).name in {Path(o).name for o in have} or option == "amplxe-cl"
        assert is_named or is_layout or is_same, f"{option} is neither in {ours} nor named"
    for option in have - want:
        is_same = Path(option).name in {*tools, "vtune", *(Path(o).name for o in want)}
        assert OURS.fullmatch(option) or option in named or is_same, f"nsw adds {option}"
    return before


# --- directives -------------------------------------------------------------------------------------------------------


def seconds(text, scheduler):
    days, dash, clock = text.rpartition("-")
    parts = [int(part) for part in clock.split(":")]
    if dash:
        parts = [int(days), *parts, *[0] * (3 - len(parts))]
    elif scheduler == "pbs":
        parts = [0] * (3 - len(parts)) + parts
    elif len(parts) == 1:
        parts = [0, parts[0], 0]
    return sum(part * unit for part, unit in zip(reversed(parts), (1, 60, 3600, 86400), strict=False))


def _memory(text):
    number, unit = re.fullmatch(r"(\d+)([kmgKMG]?)[bB]?", text).groups()
    return int(number) * 1024 ** {"": 2, "k": 1, "m": 2, "g": 3}[unit.lower()]


_SLURM = {"p": "partition", "N": "nodes", "n": "ntasks", "c": "cpus-per-task", "t": "time", "A": "account", "q": "qos",
          "C": "constraint", "J": "job-name", "o": "output", "e": "error"}  # fmt: skip


def asked(directives, scheduler):
    """What directives ask for, as a map that does not depend on how it is written; GPUs of all nodes together."""
    found = {}
    for line in directives:
        words = shlex.split(line, comments=False)[1:]
        words = words[: next((at for at, word in enumerate(words) if word.startswith("#")), len(words))]
        while words:
            name, equals, value = words.pop(0).partition("=")
            if not equals and words and not words[0].startswith("-"):
                value = words.pop(0)
            name = name.lstrip("-")
            if scheduler == "slurm":
                name = _SLURM.get(name, name)
            elif scheduler == "pbs" and name == "l":
                parts = [value] if value.startswith("select") else value.split(",")
                found |= {key: rest for key, _, rest in (part.partition("=") for part in parts)}
                continue
            found[name] = value
    return _common(found, scheduler)


def _common(found, scheduler):
    made = {}
    for name, value in found.items():
        if name in {"time", "walltime", "t"} and scheduler in {"slurm", "pbs", "cobalt"}:
            text = f"{value}:00" if scheduler == "cobalt" and value.count(":") == 1 else value
            made["time"] = seconds(text, scheduler)
        elif name == "W":
            hours, _, minutes = value.rpartition(":")
            made["time"] = int(hours or 0) * 3600 + int(minutes) * 60
        elif name == "mem":
            made["memory"] = _memory(value)
        elif name == "select":
            count, *parts = value.split(":")
            made |= {"nodes": count} | dict(part.split("=", 1) for part in parts)
        else:
            made[name] = value
    if scheduler == "lsf" and "R" in made:  # slots, so many a host
        made["nnodes"] = str(int(made.pop("n")) // int(re.search(r"ptile=(\d+)", made.pop("R"))[1]))
    if scheduler == "pbs" and "mem" in made:
        made["memory"] = _memory(made.pop("mem"))
    return _with_gpus(made)


def _with_gpus(made):
    nodes = int(made.get("nodes") or made.get("n") or 1)
    tasks = int(made.get("ntasks") or int(made.get("ntasks-per-node", 1)) * nodes)
    for name, times in (
        ("gpus", 1),
        ("gres", nodes),
        ("gpus-per-node", nodes),
        ("gpus-per-task", tasks),
        ("ngpus", nodes),
    ):
        if name in made and (number := re.search(r"(\d+)$", made[name])):
            kind = re.fullmatch(r"([a-zA-Z].*):\d+", made[name].removeprefix("gpu:"))
            made |= {"all gpus": int(number[1]) * times} | ({"gpu kind": kind[1]} if kind else {})
            del made[name]
    return made


# keys that nsw writes whatever is asked, and those that it writes when it submits
WRITTEN = {
    "R",
    "gpu",
    "nodes",
    "ntasks",
    "ntasks-per-node",
    "time",
    "output",
    "j",
    "o",
    "ncpus",
    "mpiprocs",
    "n",
    "t",
    "place",
    "cpus-per-task",
}
NAMES = {"job-name", "N", "output", "error", "o", "e", "j", "k", "jobname"}


def compare_directives(theirs, ours, scheduler, lines):
    want, have = asked(theirs, scheduler), asked(ours, scheduler)
    named = [line for line in lines if not line.is_understood or "nsw" in line.what]
    for name, value in want.items():
        if name in NAMES or have.get(name) == value:
            continue
        if name in {"nodes", "ntasks", "ntasks-per-node", "ncpus", "mpiprocs"} and name not in have and value == "1":
            continue
        is_named = any(re.match(rf"-+{name}\b|-l {name}\b", line.text) for line in named)
        assert is_named, f"{name}={value}: nsw has {have.get(name)}"
    extra = {name for name in have if name not in want} - WRITTEN
    assert not extra, f"nsw adds {extra}"
