#!/bin/bash
# shellcheck disable=all  # it is as people write them
#COBALT -n 2
#COBALT -t 45
#COBALT -q debug -A proj
#COBALT --attrs mcdram=flat:filesystems=home
export PATH=/opt/tool/bin:$PATH
aprun -n 128 -N 64 -d 2 nsys profile -t osrt,nvtx -s cpu ./model --steps 10
nsys profile --trace=osrt -o post python post.py
rm -f post.nsys-rep
