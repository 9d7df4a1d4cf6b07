# A machine without a batch system, behind a transport: nsw runs this there with bash -c. It needs bash, coreutils, flock.
# submit LOG GPUS|any SCRIPT ATTEMPT TASK | list LOG... | hold LOG... | release LOG... | cancel LOG...
# LOG.host holds one job: its id, then its state; with LOG.hold it claims no GPUs.

starttime() {    # PID: when a living process began, in clock ticks after boot
  local stat fields
  { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return
  read -ra fields <<<"${stat##*) }"    # the name before may hold anything
  [[ ${fields[0]} == [ZX] ]] || echo "${fields[19]}"
}

gpus_here() {    # index uuid, a line each, of those that CUDA_VISIBLE_DEVICES allows
  local index uuid line visible=,${CUDA_VISIBLE_DEVICES-all},
  command -v nvidia-smi >/dev/null || return
  timeout 60 nvidia-smi -L 2>/dev/null | while read -r line; do
    [[ $line =~ ^GPU\ ([0-9]+):.*UUID:\ ([A-Za-z0-9-]+) ]] || continue
    index=${BASH_REMATCH[1]} uuid=${BASH_REMATCH[2]}
    [[ $visible == ,all, || $visible == *,$index,* || $visible == *,$uuid,* ]] && echo "$index $uuid"
  done
}

claims_folder() {    # the one that an nsw on this machine uses too: ours, no link, written by nobody else
  local folder
  for folder in ${XDG_RUNTIME_DIR:+"$XDG_RUNTIME_DIR/nsw-$UID"} "${TMPDIR:-/tmp}/nsw-$UID" "$HOME/.local/state/nsw/gpus-$HOSTNAME"; do
    mkdir -m 700 "$folder" 2>/dev/null || mkdir -p "${folder%/*}" 2>/dev/null && mkdir -m 700 "$folder" 2>/dev/null
    [[ -d $folder && ! -L $folder && -O $folder ]] && [[ $(stat -c %a "$folder") == ?00 ]] && { echo "$folder"; return; }
  done
  return 1
}

record() { printf '%s\n%s\n' "$nsw_id" "$2" >"$1.host.new" && mv -f "$1.host.new" "$1.host"; }

claim() {    # GPUS: holds a lock a GPU, fails when fewer are free
  local gpu fd
  nsw_taken=() nsw_locks=()
  # listed once, not at each try: what waits must not disturb what is measured
  [ "${#nsw_gpus[@]}" -ge "$1" ] || mapfile -t nsw_gpus < <(gpus_here)
  for gpu in "${nsw_gpus[@]}"; do    # index uuid
    [ "${#nsw_taken[@]}" -lt "$1" ] || break
    exec {fd}>>"$nsw_claims/${gpu#* }.lock" || continue
    if flock -n "$fd"; then nsw_taken+=("${gpu%% *}") nsw_locks+=("$fd"); else exec {fd}>&-; fi
  done
  [ "${#nsw_taken[@]}" -ge "$1" ] && return
  for fd in "${nsw_locks[@]}"; do exec {fd}>&-; done
  return 1
}

job() {    # LOG GPUS|any SCRIPT ATTEMPT TASK: waits for its GPUs, runs, leaves its end
  local log=$1 needs=$2 script=$3 first shell=(bash) code me=$BASHPID
  nsw_id=$me.$(starttime "$me")    # inside $(...) BASHPID is another process
  record "$log" queued
  if [ "$needs" = any ]; then :    # it claims none, and none is hidden from it
  elif [ "$needs" -gt 0 ]; then
    nsw_gpus=()
    nsw_claims=$(claims_folder) || { record "$log" "ended 97 no safe folder for GPU claims"; return; }
    until [ ! -e "$log.hold" ] && claim "$needs"; do sleep 2; done
    printf -v CUDA_VISIBLE_DEVICES '%s,' "${nsw_taken[@]}"; CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES%,}
  else CUDA_VISIBLE_DEVICES=
  fi
  [ "$needs" = any ] || export CUDA_VISIBLE_DEVICES
  export NSW_JOB_ID=$nsw_id
  record "$log" running
  export -fn starttime gpus_here claims_folder record claim job
  read -r first <"$script"; [[ $first != *\ -l ]] || shell=(bash -l)
  "${shell[@]}" "$script" "$4" "$5" >>"$log.log" 2>&1 </dev/null
  code=$?
  record "$log" "ended $code"
}

case $1 in
submit)
  shift
  needs=${2/any/0} have=$(gpus_here | wc -l)
  [ "$needs" -eq 0 ] || [ "$have" -ge "$needs" ] || { echo "nsw: $2 GPUs asked, and this machine has $have" >&2; exit 3; }
  command -v flock >/dev/null || [ "$needs" -eq 0 ] || { echo "nsw: there is no flock (util-linux) to claim GPUs with" >&2; exit 3; }
  mkdir -p "${1%/*}" || exit 4
  ( set -C; : >"$1.host" ) 2>/dev/null || { [ ! -s "$1.host" ] || { head -n 1 "$1.host"; exit 0; }; }
  export -f starttime gpus_here claims_folder record claim job
  # it must hold no lock of the nsw that started it, whichever descriptor that is
  setsid bash -c 'for fd in /proc/$BASHPID/fd/*; do fd=${fd##*/}; [ "$fd" -le 2 ] || exec {fd}>&-; done; job "$@"' nsw "$@" >/dev/null 2>&1 </dev/null &
  for ((n = 0; n < 100; n++)); do [ ! -s "$1.host" ] || { head -n 1 "$1.host"; exit 0; }; sleep 0.05; done
  exit 5 ;;
list)
  shift
  for log; do
    [ -s "$log.host" ] || continue
    { read -r id; read -r state; } <"$log.host"
    if [[ $state != ended* && $(starttime "${id%.*}") != "${id#*.}" ]]; then
      { read -r id; read -r state; } <"$log.host"    # it may have ended a moment ago
      [[ $state == ended* ]] || state="ended -"
    fi
    [[ $state != queued || ! -e $log.hold ]] || state="queued held"
    printf '%s\t%s\t%s\n' "${log##*/}" "$id" "$state"
  done
  echo "end" ;;
hold) shift; for log; do : >"$log.hold" || exit 4; done ;;
release) shift; rm -f "${@/%/.hold}" ;;
cancel)
  shift
  logs=("$@")
  for sign in TERM KILL; do
    left=0
    for log in "${logs[@]}"; do
      [ -s "$log.host" ] || continue
      { read -r nsw_id; read -r state; } <"$log.host"
      [[ $state != ended* ]] || continue
      for stat in /proc/[0-9]*/stat; do    # every process of the job's session
        { read -r line <"$stat"; } 2>/dev/null || continue
        read -ra fields <<<"${line##*) }"
        [ "${fields[3]}" != "${nsw_id%.*}" ] || [[ ${fields[0]} == [ZX] ]] || { kill "-$sign" "${line%% *}" 2>/dev/null; left=1; }
      done
      [ "$sign" = TERM ] || record "$log" "ended 143"
    done
    [ "$left" = 0 ] || [ "$sign" = KILL ] || sleep 3
  done
  exit 0 ;;
esac
