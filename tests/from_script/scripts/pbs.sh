#!/bin/bash
# shellcheck disable=all  # it is as people write them
#PBS -N solver
#PBS -l select=2:ncpus=16:mpiprocs=4:ngpus=4:gputype=A100:mem=100gb
#PBS -l walltime=30:00,filesystems=home:eagle
#PBS -q debug
#PBS -A proj
#PBS -j oe
. /opt/modules/init.sh
module load cuda
NODES=$(wc -l < $PBS_NODEFILE)
let RANKS=NODES*4
cd /scratch/me/case
make -C src install
OMP_PLACES=cores mpiexec -n $RANKS --ppn 4 -env A B nvprof --csv --print-gpu-trace --log-file x.%p ./solver input.nml < input.txt
if [ $? -ne 0 ]; then
    echo failed
fi
