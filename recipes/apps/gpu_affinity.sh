#!/usr/bin/env bash
# Under mpiexec: gives each process of a node a GPU of its own, the one next to its cores, and tells PyTorch its rank.
#
#   mpiexec -n 8 --ppn 4 --depth=8 --cpu-bind depth bash gpu_affinity.sh PROGRAM...
set -euo pipefail
local_rank=${PALS_LOCAL_RANKID:-${PMI_LOCAL_RANK:-${OMPI_COMM_WORLD_LOCAL_RANK:-0}}}
rank=${PALS_RANKID:-${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-0}}}
gpus=${GPUS_PER_NODE:-4}
# on Polaris the cores of the first ranks are next to the last GPU
export CUDA_VISIBLE_DEVICES=$((gpus - 1 - local_rank % gpus))
export RANK=$rank LOCAL_RANK=0 WORLD_SIZE=${NSW_PROCESSES:-${PMI_SIZE:-${OMPI_COMM_WORLD_SIZE:-1}}}
if [ -r "${PBS_NODEFILE:-}" ]; then
  read -r MASTER_ADDR <"$PBS_NODEFILE"
  export MASTER_ADDR
fi
export MASTER_ADDR=${MASTER_ADDR:-localhost}
# jobs that share a node must not share a port
id=${PBS_JOBID:-0}
id=${id%%[!0-9]*}
export MASTER_PORT=${MASTER_PORT:-$((20000 + ${id:-0} % 20000))}
exec "$@"
