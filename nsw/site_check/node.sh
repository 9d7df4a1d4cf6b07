printf 'nsw-time %s\n' "$(date +%s.%N)"
printf 'nsw-host %s\n' "$(hostname)"
while [ $# -gt 0 ]; do
  if ! command -v "$2" >/dev/null; then printf 'nsw-failed %s not found\n' "$1"
  elif text=$("$2" --version 2>&1 </dev/null); then printf 'nsw-tool %s %s\n' "$1" "${text##*$'\n'}"
  else printf 'nsw-failed %s %s\n' "$1" "${text##*$'\n'}"; fi
  shift 2
done
for m in mpirun mpiexec; do
  p=$(command -v $m) && { readlink -f "$p"; "$p" --version </dev/null 2>&1; } | sed "s/^/nsw-mpi $m /"
done
printf 'nsw-given %s\n' "${CUDA_VISIBLE_DEVICES-}"
command -v nvidia-smi >/dev/null && nvidia-smi -L | sed 's/^/nsw-gpu /'
sed -n 's/^RmProfilingAdminOnly: /nsw-admin /p' /proc/driver/nvidia/params 2>/dev/null
true
