"""The settings of the fake PBS that a test has not changed."""

from __future__ import annotations

from typing import Any

DEFAULTS: dict[str, Any] = {
    "host": "pbs0",
    "version": "23.06.06",
    "client": "master",  # or "released": which qstat writes JSON
    "clock": "real",
    "started_at": 1795219500.0,  # of the virtual clock
    "history": True,
    "scheduling": True,
    "queues": {"workq": {}, "debug": {"walltime": 3600}},
    "default_queue": "workq",
    "nodes": 1,
    "node": {"ncpus": 8, "ngpus": 4, "mem": "16gb"},
    "offline": False,
    "known": ["walltime", "place", "select", "cput", "filesystems"],
    "max_array": 10000,
    "throttles": True,  # `-J X-Y%N`
    "longest_name": 230,
    "hooks": [],
    "begin_rejects": False,  # a hook execjob_begin rejects every start
    "hook_files": {},  # what qmgr imports: name of the file -> hooks
    "down_state": "down",  # of the node, when it is
    "managers": ["root"],
    "users": None,  # user ids that exist; None: any
    "first": 1,  # id of the first job
    "mom_poll": 2.0,
    "kill_delay": 10.0,
    "exiting": 0.0,
    "retry_delivery": 12.0,
    "node_fail_requeue": 10.0,
    "shown": {},  # paths -> what they are called in listings
    "memory_kb": 7308,  # what jobs use
}
