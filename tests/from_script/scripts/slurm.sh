#!/bin/bash -l
# shellcheck disable=all  # it is as people write them
#SBATCH --job-name=stencil
#SBATCH -p gpu -A proj    # where it runs
#SBATCH --nodes=2 --ntasks-per-node=4
#SBATCH --gpus-per-node=a100:4
#SBATCH --cpus-per-task=8 --mem=64G
#SBATCH -t 1-2
#SBATCH --mail-type=END
#SBATCH --output=%x.out

module load cuda/12.4 openmpi
export OMP_NUM_THREADS=8 MODE='fast and loose'
export DATA=$HOME/data
export CACHE=$DATA/cache
mkdir -p "$CACHE"
SIZE=4096
WORDS=(--size $SIZE "two words")

cd "$SLURM_SUBMIT_DIR"
echo "starting on $(hostname)"
nvcc -O3 stencil.cu \
    -o stencil
srun ./stencil "${WORDS[@]}"
srun /opt/nvidia/nsight-systems/2024.2.3/bin/nsys profile -t cuda,nvtx,mpi -o out_%q{SLURM_PROCID} --stats=true ./stencil "${WORDS[@]}" > log 2>&1
srun ncu -k regex:step --launch-skip 2 -c 3 --set full --section Occupancy -f -o x ./stencil "${WORDS[@]}" | tee ncu.log
nsys stats out_0.nsys-rep
