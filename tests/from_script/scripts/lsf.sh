#!/bin/bash
# shellcheck disable=all  # it is as people write them
#BSUB -P PROJ
#BSUB -q batch
#BSUB -W 1:30
#BSUB -nnodes 1
#BSUB -J app
#BSUB -alloc_flags gpumps
module load cuda
jsrun -n 6 -a 1 -c 7 -g 1 nvprof -o app.%q{OMPI_COMM_WORLD_RANK}.nvvp ./app
