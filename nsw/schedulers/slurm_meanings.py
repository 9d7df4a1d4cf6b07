"""What Slurm's states, reasons and refusals mean: data, looked up by nsw/schedulers/slurm.py."""

from __future__ import annotations

import re
from dataclasses import dataclass

from nsw.schedulers.model import BY_ITSELF, Phase

_RELEASE = "`scontrol release JOB` would have released it; `nsw retry` submits it again"
# states in which a job waits until somebody lets it go, with what to do
HELD = {
    "REQUEUE_HOLD": _RELEASE,
    "SPECIAL_EXIT": _RELEASE,
    "RESV_DEL_HOLD": "name another one, or none, in resources.reservation",
}
_Q, _R, _E = Phase.QUEUED, Phase.RUNNING, Phase.ENDED

# state -> phase and, of an end that was not good, a sentence
STATES: dict[str, tuple[Phase, str | None]] = {
    "PENDING": (_Q, None),
    "CONFIGURING": (_Q, "its nodes are being made ready"),
    "REQUEUED": (_Q, "put back into the queue"),
    "REQUEUE_FED": (_Q, "put back into the queue by the federation"),
    "REQUEUE_HOLD": (_Q, "put back into the queue and held"),
    "SPECIAL_EXIT": (_Q, "put back into the queue and held, after a special exit"),
    "RESV_DEL_HOLD": (_Q, "its reservation was deleted, and Slurm holds it"),
    "POWER_UP_NODE": (_Q, "its nodes are being powered up"),
    "RUNNING": (_R, None),
    "COMPLETING": (_R, None),  # its processes may still write
    "STAGE_OUT": (_R, "its files are being staged out"),
    "SIGNALING": (_R, None),
    "SUSPENDED": (_R, "suspended by the scheduler"),
    "STOPPED": (_R, "stopped; it keeps its processors"),
    "RESIZING": (_R, None),
    "EXPEDITING": (_Q, None),
    "COMPLETED": (_E, None),
    "FAILED": (_E, BY_ITSELF),
    "TIMEOUT": (_E, "the job was over its time limit"),
    "CANCELLED": (_E, "the job was cancelled"),
    "NODE_FAIL": (_E, "a node of the job failed"),
    "OUT_OF_MEMORY": (_E, "the job ran out of memory"),
    "PREEMPTED": (_E, "the job was preempted by another one"),
    "BOOT_FAIL": (_E, "a node of the job did not boot"),
    "DEADLINE": (_E, "the job's deadline passed"),
    "LAUNCH_FAILED": (_E, "the job could not be launched"),
    "RECONFIG_FAIL": (_E, "a node of the job could not be reconfigured"),
    # of a federation: this cluster does not know how it goes there, so that the run's own file decides
    "REVOKED": (Phase.UNKNOWN, "a sibling cluster runs it, and this one does not see how it goes there"),
}


# what squeue gives as the reason of an end and its state has said already
SAID = {"TIMEOUT": "TimeLimit", "OUT_OF_MEMORY": "OutOfMemory", "NODE_FAIL": "NodeFail", "PREEMPTED": "Preempted",
        "DEADLINE": "DeadLine", "FAILED": "NonZeroExitCode"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a job waits: a sentence, and of one that will wait for ever what to do.

    `may_run`: an earlier launch of it may run all the same.
    """

    sentence: str
    todo: str | None = None
    may_run: bool = False

    @property
    def never(self) -> bool:
        """Whether it will wait for ever if nobody does anything."""
        return self.todo is not None


_SMALLER = "ask for less in the recipe's resources"
_OTHER_ACCOUNT = "name another account or qos, or ask the site for more"

REASONS: dict[str, Reason] = {
    "Priority": Reason("others in the queue come first"),
    "Resources": Reason("waits for free nodes"),
    "Dependency": Reason("waits for the job that it depends on"),
    "DependencyNeverSatisfied": Reason(
        "the job that it depends on can no longer end as needed", "see why that one failed, then `nsw retry`"
    ),
    "BeginTime": Reason("its begin time lies ahead (after a requeue Slurm waits two minutes)"),
    "Licenses": Reason("waits for a licence"),
    "ReservationLicenses": Reason("the licences it needs are reserved"),
    "Cleaning": Reason("its earlier try is being cleaned up"),
    "Prolog": Reason("its prolog runs"),
    "Reservation": Reason("waits for its reservation to begin"),
    "ReservationDeleted": Reason("its reservation was deleted", "name another one, or none, in resources.reservation"),
    "InvalidAccount": Reason("its account is not valid any more", "name another one in resources.account"),
    "InvalidQOS": Reason("its QOS is not valid any more", "name another one in resources.qos"),
    "JobHeldUser": Reason("held by the user: `scontrol release JOB` releases it"),
    "JobHeldAdmin": Reason("held by an administrator, who can say why"),
    "JobHoldMaxRequeue": Reason("put back into the queue too often, and held", _RELEASE),
    "job requeued in held state": Reason("put back into the queue and held", _RELEASE),
    "launch failed requeued held": Reason(
        "its launch failed, and Slurm holds it until an administrator looks at the node",
        "report it to the site's support; `nsw retry` tries other nodes", may_run=True,
    ),
    "JobArrayTaskLimit": Reason("waits for other tasks of its array (the campaign's limit)"),
    "NodeDown": Reason("a node that it needs is down"),
    "ReqNodeNotAvail": Reason("a node that it needs is down, drained or reserved"),
    "NonZeroExitCode": Reason("it ended with a non-zero exit status"),
    "PartitionDown": Reason("its partition is down"),
    "PartitionInactive": Reason("its partition accepts no jobs now"),
    "PartitionConfig": Reason(
        "the partition does not allow such a job", "`scontrol show partition` says what it allows"
    ),
    "PartitionNodeLimit": Reason("it asks for more nodes than its partition has or allows", "lower resources.nodes"),
    "PartitionTimeLimit": Reason("it asks for more time than its partition allows", "lower resources.time"),
    "AccountNotAllowed": Reason("its account is not allowed in this partition", "name another partition or account"),
    "QOSNotAllowed": Reason(
        "its QOS is not allowed in this partition or for this account", "name another qos, partition or account"
    ),
    "BadConstraints": Reason("no node satisfies what it asks for", "`sinfo -o '%N %f %G'` lists what nodes have"),
    "MaxMemPerLimit": Reason("it asks for more memory than the site allows a CPU or node", "lower resources.memory"),
    "DeadLine": Reason("it cannot end before its deadline", "move the deadline, or lower resources.time"),
    "FrontEndDown": Reason("the front end is down"),
    "BlockMaxError": Reason("too many blocks failed on its nodes"),
    "BlockFreeAction": Reason("its blocks are being freed"),
    "BurstBufferResources": Reason("waits for room in the burst buffer"),
    "BurstBufferStageIn": Reason("its files are being copied into the burst buffer"),
    "BurstBufferOperation": Reason(
        "an operation of the burst buffer failed for it, and Slurm holds it", "see resources.extra; then `nsw retry`"
    ),
    "FedJobLock": Reason("waits for the federation"),
    "SchedDefer": Reason("the scheduler is set to look at it later"),
    "PowerNotAvail": Reason("waits for power"),
    "PowerReserved": Reason("the power it needs is reserved"),
    "MaxPoweredUpNodes": Reason("as many nodes are powered up as may be"),
    "MpiPortsBusy": Reason("waits for free MPI ports"),
    "NodesBusy": Reason("its nodes are busy"),
    "WaitingForScheduling": Reason("the scheduler has not looked at it yet"),
    "None": Reason(""),
    "JobLaunchFailure": Reason("Slurm could not launch it: is its output folder there, and is the node well?"),
    "TimeLimit": Reason("it was over its time limit"),
    "OutOfMemory": Reason("it ran out of memory"),
    "SystemFailure": Reason("Slurm, a node or a file system failed"),
    "InactiveLimit": Reason("it was inactive for too long"),
    "RaisedSignal": Reason("a signal ended it"),
    "NodeFail": Reason("a node failed"),
    "Preempted": Reason("it was preempted"),
    "AccountingPolicy": Reason("a rule of the accounting holds it for now"),
    "QOSUsageThreshold": Reason("the QOS's usage threshold is passed"),
}  # fmt: skip

# how a resource is called in a reason -> how it is asked for, what its minutes are called
_WHAT = {
    "CPU": ("CPUs", "CPU"), "Cpu": ("CPUs", "CPU"), "GRES": ("GPUs", "GPU"), "Mem": ("memory", "memory"),
    "Memory": ("memory", "memory"), "Node": ("nodes", "node"), "License": ("licences", "licence"),
    "BB": ("burst buffer", "burst buffer"), "Billing": ("billing units", "billing"), "Energy": ("energy", "energy"),
    "Unknown": ("of a resource", "resource"),
}  # fmt: skip
_WHO = {"Assoc": "account", "QOS": "QOS"}
_ANY = rf"(?P<what>{'|'.join(_WHAT)})"
_OF = rf"(?P<who>Assoc|QOS)(?:Grp|Max){_ANY}"
_ENDS = "it starts when other jobs of it end"
_YOURS = "it starts when your other jobs end"

# families of which Slurm has dozens: what is in braces comes from the reason's name; the first that fits counts
_FAMILIES: tuple[tuple[str, str, str | None], ...] = (
    (rf"{_OF}RunMinutes\w*", "the running jobs of the {who} have claimed its {unit} minutes; " + _ENDS, None),
    (r"(?P<who>Assoc|QOS)GrpWallLimit", "the {who} has used up its time", _OTHER_ACCOUNT),
    (rf"{_OF}MinutesPerJob\w*", "it may use more {unit} minutes than the {who} allows a job", _SMALLER),
    (r"(?P<who>Assoc|QOS)MaxWallDurationPerJobLimit", "it asks for more time than the {who} allows a job",
     "lower resources.time"),
    (rf"{_OF}Minutes\w*", "the {who} has used up its {unit} minutes", _OTHER_ACCOUNT),
    (rf"{_OF}Per(?P<one>Job|Node)(Limit)?", "it asks for more {what} than the {who} allows a {one}", _SMALLER),
    (rf"QOSMin{_ANY}\w*", "the QOS wants jobs that ask for more {what}", "ask for more, or name another qos"),
    (r"AssocGrp\w+|Association\w+Limit|Max\w+PerAccount", "a limit of the account is reached; " + _ENDS, None),
    (r"AssocMax\w+", "a limit of your account's association is reached; " + _YOURS, None),
    (r"QOSGrp\w+", "a limit of the QOS is reached; " + _ENDS, None),
    (r"QOSMax\w+|QOS(Job|Resource|Time)Limit", "a limit of the QOS for a user is reached; " + _YOURS, None),
)  # fmt: skip

# sentences that go on with what differs
_BEGINNINGS = {
    "ReqNodeNotAvail": "ReqNodeNotAvail",
    "Nodes required for job are DOWN": "ReqNodeNotAvail",
    "launch failed requeued held": "launch failed requeued held",
    "RaisedSignal": "RaisedSignal",
}


def reason_of(text: str) -> Reason | None:
    """The meaning of a reason as squeue prints it (`ReqNodeNotAvail, UnavailableNodes:n1`); None for an empty one."""
    bare = text.strip("() ").replace("_", " ")  # some commands write underscores for the spaces of a sentence
    known = REASONS.get(bare) or REASONS.get(bare.split(",")[0].split(":")[0].strip())
    if known is not None:
        return known
    for beginning, name in _BEGINNINGS.items():
        if bare.startswith(beginning):
            return REASONS[name]
    for pattern, sentence, todo in _FAMILIES:
        if match := re.fullmatch(pattern, bare):
            found = match.groupdict()
            what, unit = _WHAT.get(found.get("what") or "", ("", ""))
            who, one = _WHO.get(found.get("who") or "", ""), (found.get("one") or "").lower()
            return Reason(sentence.format(who=who, what=what, unit=unit, one=one), todo)
    return Reason(bare) if bare else None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal of sbatch: part of its text, the recipe's key that asks for it, what to do."""

    text: str
    key: str | None
    hint: str | None


REFUSALS = (
    Refusal("invalid partition", "partition", "`sinfo -s` lists the partitions"),
    Refusal("not permitted to use this partition", "partition", "`scontrol show partition` says who may use it"),
    Refusal("Required partition not available", "partition", "`sinfo -s` says which partitions are up"),
    Refusal("Requested partition configuration not available", "partition", "`sinfo -s` lists the partitions"),
    Refusal("Invalid account or account/partition", "account", "`sacctmgr show assoc user=$USER` lists your accounts"),
    Refusal("Invalid qos", "qos", "`sacctmgr show qos format=name` lists them"),
    Refusal("Invalid feature specification", "constraint", "`sinfo -o '%N %f'` lists the nodes' features"),
    Refusal("reservation is invalid", "reservation", "`scontrol show reservation` lists them"),
    Refusal("access to requested reservation", "reservation", "`scontrol show reservation` says who may use it"),
    Refusal("Invalid generic resource", "gres", "`sinfo -o '%N %G'` lists what the nodes have"),
    Refusal("Invalid GRES", "gres", "a typed and an untyped request of GPUs contradict each other"),
    Refusal("Memory specification", "memory", "`sinfo -o '%P %m'` lists the nodes' memory"),
    Refusal("Memory required by task", "memory", "`sinfo -o '%P %m'` lists the nodes' memory"),
    Refusal("Requested time limit is invalid", "time", "`sinfo -o '%P %l'` lists the partitions' limits"),
    Refusal("time limit exceeds", "time", "`sinfo -o '%P %l'` lists the partitions' limits"),
    Refusal("Node count specification invalid", "nodes", "`sinfo -o '%P %D'` lists the partitions' nodes"),
    Refusal("More processors requested", "cpus_per_task", "`sinfo -o '%P %c'` lists the nodes' CPUs"),
    Refusal("CPU count per node can not be satisfied", "cpus_per_task", "`sinfo -o '%P %c'` lists the nodes' CPUs"),
    Refusal(
        "Requested node configuration is not available", "gpus",
        "no node has that many GPUs and CPUs and that much memory: `sinfo -o '%N %G %c %m'`",
    ),
    Refusal("Unable to allocate resources", "gpus", "`sinfo -o '%N %G %c %m'` lists what the nodes have"),
    Refusal(
        "Invalid job array specification", None,
        "an array is larger than MaxArraySize, or of heterogeneous jobs, which cannot be: limits.max_array: 1",
    ),
    Refusal("Invalid directive found in batch script", "extra", "see the head of the job script: `nsw render`"),
    Refusal("unrecognized option", "extra", "see the head of the job script: `nsw render`"),
    Refusal("option requires an argument", "extra", "see the head of the job script: `nsw render`"),
    Refusal("Invalid wckey", "extra", "`sacctmgr show wckey` lists them"),
    Refusal("Invalid license specification", "extra", "`scontrol show licenses` lists them"),
    Refusal("Job dependency problem", "extra", "a job that the line names is not known to Slurm"),
    Refusal("Access/permission denied", None, None),
    Refusal("Failed to validate job spec", None, None),
    Refusal("does not look like a batch script", None, None),
    Refusal("Unable to open file", None, "was the campaign's folder on the site removed?"),
)  # fmt: skip

# a refusal that ends by itself when earlier jobs end
FULL = (
    "job submit limit",
    "AssocMaxSubmitJobLimit",
    "AssocGrpSubmitJobsLimit",
    "QOSMaxSubmitJobPerUserLimit",
    "QOSGrpSubmitJobsLimit",
    "MaxSubmitJobs",
    "temporarily unable to accept job",
    "Job/step already completing",
)

# the commands are there, and nothing to use them with
UNUSABLE = (
    "Could not establish a configuration source",
    "Unable to process configuration file",
    "Unable to establish control machine address",
    "Unable to resolve",
    "authentication error",
    "Incompatible versions of client and server code",
    "SlurmctldHost",
)

# nothing reached the controller: asking again is safe, even for sbatch
NOT_SENT = (
    "connect failure",
    "Connection refused",
    "No route to host",
    "Resource temporarily unavailable",
    "fork: retry",
)

# the controller may or may not have heard it
TRANSIENT = (
    *NOT_SENT,
    "Socket timed out",
    "Unable to contact slurm controller",
    "Transport endpoint is not connected",
    "Zero Bytes were transmitted or received",
    "Unexpected missing socket error",
    "Unexpected message received",
    "Communication connection failure",
    "Communication shutdown failure",
    "Message send failure",
    "Message receive failure",
    "Received zero length message",
    "Received message length < 0",
    "Failed to send entire message",
    "Header lengths are longer than data received",
    "Unable to create job record, try again",
    "Message connect failure",
    "Connection reset by peer",
    "Connection timed out",
    "Broken pipe",
    "Slurm backup controller in standby mode",
    "Problem talking to the database",
    "Unable to connect to database",
    "Slurmdbd",
    "munge",
)
