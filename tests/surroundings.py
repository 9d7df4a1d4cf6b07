"""The surroundings of whoever runs the tests, out of which these are taken: a test that wants one sets it itself."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

# of a job, of its processes, and of the clients of a batch system
_JOB = (
    "SLURM_", "SLURMD_", "SBATCH_", "SQUEUE_", "SALLOC_", "SACCT_", "SCANCEL_", "SINFO_", "SCONTROL_", "SRUN_", "SPRIO_",
    "SSHARE_", "PBS_", "COBALT_", "QSTAT_", "CQSTAT_", "LSB_", "LSF_", "LS_JOB", "BSUB_", "SGE_",
    "OMPI_", "PRTE_", "PMI_", "PMIX_", "MV2_", "MPI_LOCAL", "MPIEXEC_", "HYDRA_", "I_MPI_", "PALS_", "FLUX_", "ALPS_",
)  # fmt: skip
_DROPPED = {
    "JOB_ID", "JOB_NAME", "JOB_SCRIPT", "TASK_ID", "QUEUE", "NSLOTS", "NHOSTS", "NQUEUES", "PE_HOSTFILE", "RESTARTED", "PROJECT",
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT",
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "GPU_DEVICE_ORDINAL",
    "FORCE_COLOR", "NO_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "COLUMNS", "LINES",  # GITHUB_ACTIONS: typer colours its help
    "POSIXLY_CORRECT", "BASH_ENV", "CDPATH",
    "PYTHONDONTWRITEBYTECODE",  # each of some thousand nsw would compile itself anew
    "PYTHONUNBUFFERED",  # a full disk on stdout is met at another line
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_CEILING_DIRECTORIES",
    "LANGUAGE",
}  # fmt: skip
_OTHERS = ("CLICOLOR", "TTY_", "LC_")
_KEPT = {
    "NSW_TSP",
    "NSW_NVPROF",
    "NSW_EXPLORE",
    "NSW_KEEP_SLURM",
    "NSW_TORCH_PYTHON",
    "NSW_SWITCH_INTERVAL",
}  # what the tests themselves read, with _KEPT_ALL
_KEPT_ALL = "NSW_SOAK_"


def _is_foreign(name: str) -> bool:
    if name.startswith("NSW_"):
        return name not in _KEPT and not name.startswith(_KEPT_ALL)
    return name in _DROPPED or name.startswith((*_JOB, *_OTHERS))


def leave_surroundings() -> Path:
    """Gives this process, and all that it starts, an environment of the tests' own.

    A person's settings, a batch job around the tests, and the language and width of a terminal change no test.

    Returns:
        The folder with this session's settings, caches and runtime files, to be removed in the end.
    """
    for name in [name for name in os.environ if _is_foreign(name)]:
        del os.environ[name]
    os.environ |= {"LC_ALL": "C.UTF-8", "LANG": "C.UTF-8"}
    os.umask(0o022)
    folder = Path(tempfile.mkdtemp(prefix="nsw-tests-"))
    # runtime: campaigns on this machine wait for each other by files there; those of other sessions, and of people, do not count
    for name in ("config", "cache", "state", "data", "runtime"):
        (folder / name).mkdir(mode=0o700)
        os.environ[f"XDG_{name.upper()}_{'DIR' if name == 'runtime' else 'HOME'}"] = str(folder / name)
    return folder
