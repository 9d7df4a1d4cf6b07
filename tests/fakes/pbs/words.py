"""What the commands of OpenPBS 23.06 print when they refuse: error numbers, sentences and usages."""

from __future__ import annotations

# sentence and error number; a command exits with the number modulo 256
UNKNOWN_JOB = ("Unknown Job Id", 15001)
UNAUTHORIZED = ("Unauthorized Request ", 15007)
BAD_VALUE = ("Illegal attribute or resource value", 15014)
UNKNOWN_QUEUE = ("Unknown queue", 15018)
QUEUE_DISABLED = ("Queue is not enabled", 15021)
BAD_UID = ("Bad UID for job execution", 15023)
UNKNOWN_RESOURCE = ("Unknown resource", 15035)
BEYOND_LIMITS = ("Job violates queue and/or server resource limits", 15036)
NOT_RERUNNABLE = ("job is not rerunnable", 15038)
BAD_GID = ("Bad GID for job execution", 15045)
JOB_WIDE = ('"-lresource=" cannot be used with "select" or "place", resource is: {}', 15109)
NODES_BESIDE_SELECT = ("Cannot be used with select or place: nodes", 15110)
TOO_LARGE_ARRAY = ("Array job exceeds server or queue size limit", 15107)
REJECTED_BY_HOOK = ("", 15136)
NO_HISTORY = ("PBS is not configured to maintain job history", 15138)
FINISHED = ("Job has finished", 15139)
TOO_MANY_QUEUED = ("would exceed queue generic's per-user limit", 15142)

USAGE = {
    "qsub": """\
usage: qsub [-a date_time] [-A account_string] [-c interval]
	[-C directive_prefix] [-e path] [-f ] [-h ] [-I [-X]] [-j oe|eo] [-J X-Y[:Z]]
	[-k keep] [-l resource_list] [-m mail_options] [-M user_list]
	[-N jobname] [-o path] [-p priority] [-P project] [-q queue] [-r y|n]
	[-R o|e|oe] [-S path] [-u user_list] [-W otherattributes=value...]
	[-v variable_list] [-V ] [-z] [script | -- command [arg1 ...]]
       qsub --version""",
    "qdel": """\
usage:
	qdel [-W force|suppress_email=X] [-x] job_identifier...
	qdel --version""",
}
