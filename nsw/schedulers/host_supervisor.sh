# A machine without a batch system, behind a transport: nsw runs this there with bash -c. It needs bash, coreutils, flock.
# submit LOG NEEDS SCRIPT ATTEMPT TASK | list LOG... | hold LOG... | release LOG... | cancel LOG... | limit JOBS N
# LOG.host holds one job: its id, then its state; with LOG.hold it does not begin. JOBS is the folder of a campaign's LOGs.
# NEEDS: GPUs to claim, or `any`: claims none, and sees all; with /N after it, N such jobs of the user run at a time.

starttime() {    # PID: sets nsw_began, when a living process began, in clock ticks after boot
  local stat fields
  nsw_began=
  { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return
  read -ra fields <<<"${stat##*) }"    # the name before may hold anything
  [[ ${fields[0]} == [ZX] ]] || nsw_began=${fields[19]}
}

gpus_here() {    # JOBS: index uuid, a line each, of those that CUDA_VISIBLE_DEVICES allows
  local index uuid line boot now listing visible=,${CUDA_VISIBLE_DEVICES-all},
  command -v nvidia-smi >/dev/null || return
  # nvidia-smi is asked once an hour, not for each job: what waits must not disturb what is measured
  read -r boot </proc/sys/kernel/random/boot_id
  printf -v now '%(%s)T' -1
  { listing=$(<"$1/gpus"); } 2>/dev/null
  if [ "${listing%%$'\n'*}" != "$boot $((now / 3600))" ]; then
    listing=$boot\ $((now / 3600))$'\n'$(timeout 60 nvidia-smi -L 2>/dev/null)
    [[ $listing != *UUID:* ]] || { printf '%s\n' "$listing" >"$1/gpus.$BASHPID" && mv -f "$1/gpus.$BASHPID" "$1/gpus"; } 2>/dev/null
  fi
  while read -r line; do
    [[ $line =~ ^GPU\ ([0-9]+):.*UUID:\ ([A-Za-z0-9-]+) ]] || continue
    index=${BASH_REMATCH[1]} uuid=${BASH_REMATCH[2]}
    [[ $visible == ,all, || $visible == *,$index,* || $visible == *,$uuid,* ]] && echo "$index $uuid"
  done <<<"$listing"
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

claim() {    # COUNT NAME...: holds so many locks of those named; where fewer are free it fails, and nsw_busy is one that is not
  local count=$1 name fd
  nsw_taken=() nsw_locks=() nsw_busy=
  for name in "${@:2}"; do    # index uuid
    [ "${#nsw_taken[@]}" -lt "$count" ] || break
    exec {fd}>>"$nsw_claims/${name#* }.lock" || continue
    if flock -n "$fd"; then nsw_taken+=("${name%% *}") nsw_locks+=("$fd"); else nsw_busy=${name#* }; exec {fd}>&-; fi
  done
  [ "${#nsw_taken[@]}" -ge "$count" ] && return
  for fd in "${nsw_locks[@]}"; do exec {fd}>&-; done
  return 1
}

may_run() {    # LOG: whether it is not held, and fewer jobs of its campaign run than `limit` says
  local most running=0 host id state
  [ ! -e "$1.hold" ] || return
  { read -r most <"${1%/*}/at-a-time"; } 2>/dev/null || return 0
  for host in "${1%/*}"/*.host; do
    state=
    { read -r id; read -r state; } 2>/dev/null <"$host"
    [ "$state" = running ] && starttime "${id%.*}" && [ "$nsw_began" = "${id#*.}" ] && running=$((running + 1))
  done
  [ "$running" -lt "$most" ]
}

queue() {    # LOG NEEDS SCRIPT ATTEMPT TASK: the first process of a job
  local me=$BASHPID kind=gpus functions=(starttime gpus_here claims_folder record claim may_run first_of_queue)
  export -fn queue "${functions[@]}"
  starttime "$me"
  export nsw_id=$me.$nsw_began nsw_claims nsw_queue
  case $2 in any | 0) record "$1" queued; nsw_queue=; first_of_queue "$@"; return ;; */*) kind=turn ;; esac
  nsw_claims=$(claims_folder) || { record "$1" "ended 97 no safe folder for GPU claims"; return; }
  nsw_queue=$nsw_claims/queue-$kind-$(stat -c %d-%i "${1%/*}")
  record "$1" "queued $kind"
  # jobs of a campaign wait for each other in the kernel, which costs no processor time; only the first looks for GPUs
  exec flock "$nsw_queue" bash -c "$(declare -f "${functions[@]}")"$'\nfirst_of_queue "$@"' nsw "$@"
}

first_of_queue() {    # as queue: claims what the job needs, runs it, leaves its end
  local log=$1 needs=$2 script=$3 count names first fd shell=(bash) code
  if [ -n "$nsw_queue" ]; then
    count=$needs names=()
    if [ "$needs" != "${needs#*/}" ]; then count=1; for ((fd = 1; fd <= ${needs#*/}; fd++)); do names+=("$fd turn-$fd"); done; fi
    until nsw_busy= && may_run "$log" && {
      [ "${#names[@]}" -ge "$count" ] || mapfile -t names < <(gpus_here "${log%/*}")
      [ -d "$nsw_claims" ] || nsw_claims=$(claims_folder)    # it can go when a user logs out
      claim "$count" "${names[@]}"
    }; do
      # until it is free, at most 2 s
      if [ -n "$nsw_busy" ]; then flock -w 2 "$nsw_claims/$nsw_busy.lock" true || sleep 0.2; else sleep 2; fi
    done
  fi
  case $needs in
  any | any/*) ;;    # it claims no GPU, and none is hidden from it
  0 | 0/*) export CUDA_VISIBLE_DEVICES= ;;
  *) printf -v CUDA_VISIBLE_DEVICES '%s,' "${nsw_taken[@]}"; export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES%,} ;;
  esac
  record "$log" running
  [ -z "$nsw_queue" ] || for fd in /proc/$BASHPID/fd/*; do    # the next one is first; flock, our parent, has the file open too
    fd=${fd##*/}
    [ "$fd" -le 2 ] || [[ " ${nsw_locks[*]} " == *" $fd "* ]] || { flock -u "$fd"; exec {fd}>&-; }
  done
  export NSW_JOB_ID=$nsw_id
  export -n nsw_id nsw_claims nsw_queue
  read -r first <"$script"; [[ $first != *\ -l ]] || shell=(bash -l)
  "${shell[@]}" "$script" "$4" "$5" >>"$log.log" 2>&1 </dev/null
  code=$?
  record "$log" "ended $code"
}

in_queue() {    # LOG: whether its job has its place in the queue, so that the next one submitted comes after it
  local id state locks=
  { read -r id; read -r state; } <"$1.host"
  [[ $state == queued\ * ]] || return 0
  { IFS= read -rd '' locks </proc/locks; } 2>/dev/null
  [[ -z $locks || $locks == *" ${id%.*} "* ]]
}

case $1 in
submit)
  shift
  needs=${2%/*} needs=${needs/any/0} have=0
  mkdir -p "${1%/*}" || exit 4
  [ "$needs" -eq 0 ] || have=$(gpus_here "${1%/*}" | wc -l)
  [ "$have" -ge "$needs" ] || { echo "nsw: $2 GPUs asked, and this machine has $have" >&2; exit 3; }
  [[ $2 == @(0|any) ]] || command -v flock >/dev/null || { echo "nsw: there is no flock (util-linux), with which runs wait for their turn" >&2; exit 3; }
  ( set -C; : >"$1.host" ) 2>/dev/null || { [ ! -s "$1.host" ] || { head -n 1 "$1.host"; exit 0; }; }
  export -f starttime gpus_here claims_folder record claim may_run queue first_of_queue
  # it must hold no lock of the nsw that started it, whichever descriptor that is
  setsid bash -c 'for fd in /proc/$BASHPID/fd/*; do fd=${fd##*/}; [ "$fd" -le 2 ] || exec {fd}>&-; done; queue "$@"' nsw "$@" >/dev/null 2>&1 </dev/null &
  for ((n = 0; n < 100; n++)); do
    [ ! -s "$1.host" ] || { [ "$n" -lt 20 ] && ! in_queue "$1"; } || { head -n 1 "$1.host"; exit 0; }
    sleep 0.05
  done
  exit 5 ;;
list)
  shift
  for log; do
    [ -s "$log.host" ] || continue
    { read -r id; read -r state; } <"$log.host"
    starttime "${id%.*}"
    if [[ $state != ended* && $nsw_began != "${id#*.}" ]]; then
      { read -r id; read -r state; } <"$log.host"    # it may have ended a moment ago
      [[ $state == ended* ]] || state="ended -"
    fi
    [[ $state != queued* || ! -e $log.hold ]] || state="queued held"
    printf '%s\t%s\t%s\n' "${log##*/}" "$id" "$state"
  done
  echo "end" ;;
hold) shift; for log; do : >"$log.hold" || exit 4; done ;;
release) shift; rm -f "${@/%/.hold}" ;;
limit) mkdir -p "$2" && printf '%s\n' "$3" >"$2/at-a-time.new" && mv -f "$2/at-a-time.new" "$2/at-a-time" || exit 4 ;;
cancel)
  shift
  for sign in TERM KILL; do
    declare -A sessions=()
    left=0
    for log; do
      [ -s "$log.host" ] || continue
      { read -r nsw_id; read -r state; } <"$log.host"
      [[ $state != ended* ]] || continue
      { : >"$log.hold"; } 2>/dev/null    # what waits behind it must not begin meanwhile
      starttime "${nsw_id%.*}"
      # a number that the system gave to another process since is not ours
      [[ -n $nsw_began && $nsw_began != "${nsw_id#*.}" ]] || sessions[${nsw_id%.*}]=1
    done
    for stat in /proc/[0-9]*/stat; do    # every process of the jobs' sessions
      { read -r line <"$stat"; } 2>/dev/null || continue
      read -ra fields <<<"${line##*) }"
      [ -z "${sessions[${fields[3]}]-}" ] || [[ ${fields[0]} == [ZX] ]] || { kill "-$sign" "${line%% *}" 2>/dev/null; left=1; }
    done
    [ "$left" = 0 ] || [ "$sign" = KILL ] || sleep 3
  done
  for log; do
    [ -s "$log.host" ] || continue
    { read -r nsw_id; read -r state; } <"$log.host"
    [[ $state == ended* ]] || record "$log" "ended 143"
  done
  rm -f "${@/%/.hold}" ;;
esac
