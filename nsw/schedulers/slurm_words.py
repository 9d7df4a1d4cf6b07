"""What Slurm's states, reasons and refusals mean: data, looked up by nsw/schedulers/slurm.py."""

from __future__ import annotations

from dataclasses import dataclass

from nsw.schedulers.model import BY_ITSELF, Phase

_Q, _R, _E = Phase.QUEUED, Phase.RUNNING, Phase.ENDED

# state -> phase and, of an end that was not good, a sentence
STATES: dict[str, tuple[Phase, str | None]] = {
    "PENDING": (_Q, None),
    "CONFIGURING": (_Q, "its nodes are being made ready"),
    "REQUEUED": (_Q, "put back into the queue"),
    "REQUEUE_FED": (_Q, "put back into the queue by the federation"),
    "REQUEUE_HOLD": (_Q, "put back into the queue and held"),
    "SPECIAL_EXIT": (_Q, "put back into the queue and held, after a special exit"),
    "RESV_DEL_HOLD": (_Q, "held: its reservation was deleted"),
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
    "REVOKED": (_E, "the job was revoked: a sibling cluster runs it"),
}


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a job waits: a sentence, whether it will wait for ever, whether an earlier launch may run all the same."""

    sentence: str
    never: bool = False
    may_run: bool = False


def _never(sentence: str) -> Reason:
    return Reason(sentence, never=True)


REASONS: dict[str, Reason] = {
    "Priority": Reason("others in the queue come first"),
    "Resources": Reason("waits for free nodes"),
    "Dependency": Reason("waits for the job that it depends on"),
    "DependencyNeverSatisfied": _never("the job that it depends on can no longer end as needed"),
    "BeginTime": Reason("its begin time lies ahead (after a requeue Slurm waits two minutes)"),
    "Licenses": Reason("waits for a licence"),
    "Cleaning": Reason("its earlier try is being cleaned up"),
    "Prolog": Reason("its prolog runs"),
    "Reservation": Reason("waits for its reservation to begin"),
    "ReservationDeleted": _never("its reservation was deleted"),
    "InvalidAccount": _never("its account is not valid any more"),
    "InvalidQOS": _never("its QOS is not valid any more"),
    "JobHeldUser": Reason("held by the user: `scontrol release JOB` lets it go"),
    "JobHeldAdmin": Reason("held by an administrator"),
    "job requeued in held state": _never("put back into the queue and held: `scontrol release JOB` lets it go"),
    "launch failed requeued held": Reason(
        "its launch failed, and Slurm holds it until an administrator looks at the node", never=True, may_run=True
    ),
    "JobArrayTaskLimit": Reason("waits for other tasks of its array (the campaign's limit)"),
    "MaxJobsPerAccount": Reason("the account's limit of running jobs is reached"),
    "NodeDown": Reason("a node that it needs is down"),
    "ReqNodeNotAvail": Reason("a node that it needs is down, drained or reserved"),
    "NonZeroExitCode": Reason("it ended with a non-zero exit status"),
    "PartitionDown": Reason("its partition is down"),
    "PartitionInactive": Reason("its partition takes no jobs now"),
    "PartitionConfig": _never("the partition does not allow such a job"),
    "PartitionNodeLimit": _never("it asks for more nodes than its partition has or allows"),
    "PartitionTimeLimit": _never("it asks for more time than its partition allows"),
    "AccountNotAllowed": _never("its account is not allowed in this partition"),
    "QOSNotAllowed": _never("its QOS is not allowed in this partition or for this account"),
    "BadConstraints": _never("no node satisfies what it asks for"),
    "FrontEndDown": Reason("the front end is down"),
    "BlockMaxError": Reason("too many blocks failed on its nodes"),
    "BlockFreeAction": Reason("its blocks are being freed"),
    "DeadLine": _never("it cannot end before its deadline"),
    "FedJobLock": Reason("waits for the federation"),
    "SchedDefer": Reason("the scheduler is set to look at it later"),
    "ReservationLicenses": Reason("the licences it needs are reserved"),
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
    "AssocGrpCPUMinutesLimit": _never("the account has used up its CPU minutes"),
    "AssocGrpGRESMinutes": _never("the account has used up its GPU minutes"),
    "AssocGrpMemMinutes": _never("the account has used up its memory minutes"),
    "AssocGrpBillingMinutes": _never("the account has used up its billing units"),
    "AssocGrpNodeMinutes": _never("the account has used up its node minutes"),
    "AssocMaxCpuMinutesPerJobLimit": _never("it may use more CPU minutes than the account allows a job"),
    "AssocMaxWallDurationPerJobLimit": _never("it asks for more time than the account allows a job"),
    "AssocMaxCpuPerJobLimit": _never("it asks for more CPUs than the account allows a job"),
    "AssocMaxNodePerJobLimit": _never("it asks for more nodes than the account allows a job"),
    "AssocMaxGRESPerJob": _never("it asks for more GPUs than the account allows a job"),
    "AssocMaxMemPerJob": _never("it asks for more memory than the account allows a job"),
    "QOSGrpCPUMinutesLimit": _never("the QOS has used up its CPU minutes"),
    "QOSGrpGRESMinutes": _never("the QOS has used up its GPU minutes"),
    "QOSGrpBillingMinutes": _never("the QOS has used up its billing units"),
    "QOSMaxCpuMinutesPerJobLimit": _never("it may use more CPU minutes than the QOS allows a job"),
    "QOSMaxWallDurationPerJobLimit": _never("it asks for more time than the QOS allows"),
    "QOSMaxCpuPerJobLimit": _never("it asks for more CPUs than the QOS allows a job"),
    "QOSMaxNodePerJobLimit": _never("it asks for more nodes than the QOS allows a job"),
    "QOSMaxGRESPerJob": _never("it asks for more GPUs than the QOS allows a job"),
    "QOSMaxMemoryPerJob": _never("it asks for more memory than the QOS allows a job"),
    "QOSMinGRES": _never("it asks for fewer GPUs than the QOS wants"),
    "QOSMinCpuNotSatisfied": _never("it asks for fewer CPUs than the QOS wants"),
    "QOSUsageThreshold": Reason("the QOS's usage threshold is passed"),
}  # fmt: skip

# families that Slurm has dozens of: what begins so is a limit that others' ends free again
REASON_FAMILIES: tuple[tuple[str, Reason], ...] = (
    ("AssocGrp", Reason("a limit of the account is reached; it goes on when other jobs of it end")),
    ("AssocMax", Reason("a limit of your account's association is reached")),
    ("QOSGrp", Reason("a limit of the QOS is reached; it goes on when other jobs of it end")),
    ("QOSMax", Reason("a limit of the QOS for a user is reached; it goes on when your other jobs end")),
    ("ReqNodeNotAvail", REASONS["ReqNodeNotAvail"]),
    ("Nodes required for job are DOWN", REASONS["ReqNodeNotAvail"]),
    ("launch failed requeued held", REASONS["launch failed requeued held"]),
    ("RaisedSignal", REASONS["RaisedSignal"]),
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal of sbatch: part of its text, the recipe's key that asks for it, what to do."""

    text: str
    key: str | None
    hint: str


REFUSALS = (
    Refusal("invalid partition", "partition", "`sinfo -s` lists the partitions"),
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
        "no node has so many GPUs, CPUs and so much memory together: `sinfo -o '%N %G %c %m'`",
    ),
    Refusal("Unable to allocate resources", "gpus", "`sinfo -o '%N %G %c %m'` lists what the nodes have"),
    Refusal("Invalid directive found in batch script", "extra", "see the head of the job script: `nsw render`"),
    Refusal("unrecognized option", "extra", "see the head of the job script: `nsw render`"),
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
    "Message connect failure",
    "Connection reset by peer",
    "Slurm backup controller in standby mode",
    "Problem talking to the database",
    "Unable to connect to database",
    "Slurmdbd",
    "munge",
)
