#!/bin/sh
# shellcheck disable=all  # it is as people write them
module load cuda
export MODE=fast
nsys profile --trace cuda,nvtx --cuda-graph-trace=node python train.py --lr 0.1
ncu --metrics sm__throughput.avg.pct_of_peak_sustained_elapsed,dram__bytes.sum --nvtx --nvtx-include step/ python train.py --lr 0.1
nvprof -m ipc,achieved_occupancy -e warps_launched --kernels gemm python train.py --lr 0.1
