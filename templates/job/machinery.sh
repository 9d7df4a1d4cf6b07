# What every job script of nsw shares: claims, status files, provenance, the places of ranks. A job script reads it with
# `.`; `bash FILE rank WORDS...` is what launchers start for each process, `bash FILE on_node WORDS...` once on each node.
# It needs bash 4.2 and coreutils only.
# shellcheck disable=SC2086  # nsw_signals is several words

# --- facts and status files ---

nsw_now() { local t=${EPOCHREALTIME:-}; if [ -n "$t" ]; then nsw_t=${t/,/.}; else nsw_t=$(date +%s.%N); fi; }
nsw_line() {    # one fact a line, whatever it holds
  local v=${2//[$'\n\r']/ }
  printf '%s=%s\n' "$1" "$v" || nsw_cut=1
}
nsw_status() {    # STATE KEY VALUE...: the facts of a run; it fails where a line fails: there may be room for later ones again
  nsw_cut=''
  nsw_line state "$1"; shift
  nsw_line job "$nsw_job"; nsw_line job_id "$nsw_job_id"; nsw_line task "$nsw_task"; nsw_line attempt "$nsw_attempt"
  nsw_line restart "$nsw_restart"
  nsw_line host "${HOSTNAME:-}"; nsw_line gpus "${CUDA_VISIBLE_DEVICES-}"; nsw_line start "$nsw_start"
  while [ $# -gt 1 ]; do nsw_line "$1" "$2"; shift 2; done
  [ -z "$nsw_cut" ]
}
nsw_end() {    # as nsw_status, into the status file, which is replaced whole; a full disk is given a minute
  local try
  for try in 1 2 3 4 5 6; do
    nsw_status "$@" >status.new 2>/dev/null && [ -s status.new ] && mv status.new status && return
    [ "$try" = 6 ] || sleep 10
  done
  nsw_unwritable "$PWD/status"
}
nsw_failed_by_itself() {    # STATUS-FILE: the run ended, and not by a signal that a scheduler sends
  local line
  { read -r line <"$1"; } 2>/dev/null && [ "$line" = state=failed ] || return
  while read -r line; do case $line in exit_code=130|exit_code=137|exit_code=143) return 1 ;; esac; done <"$1"
}
nsw_count_starts() {    # for a scheduler that does not count how often it has started a job: each start makes the next file
  nsw_starts=0
  if [ -n "${nsw_id:-}" ] && [ -d "$nsw_scratch/jobs" ]; then
    while ! (set -C; : >"$nsw_scratch/jobs/.start.$nsw_id.$nsw_starts") 2>/dev/null; do
      [ -e "$nsw_scratch/jobs/.start.$nsw_id.$nsw_starts" ] || break
      nsw_starts=$((nsw_starts + 1))
    done
  fi
}

# --- set-up: what a step says on stderr goes to the job's log, and to the runs if it fails ---

nsw_ok() { [ -z "$nsw_broken" ]; }
nsw_step() {    # STEP: after it was done; its exit status is $?
  local code=$?
  [ -z "$nsw_broken" ] || return 0
  nsw_words=$(<"$nsw_said")
  [ -z "$nsw_words" ] || printf '%s\n' "$nsw_words" >&2
  [ "$code" = 0 ] || nsw_broken=$1
}
nsw_broken='' nsw_said=/dev/null nsw_stop='' nsw_signals='TERM INT HUP'
nsw_after() { :; }    # what follows a run, for those that define it
nsw_checks() { :; }    # likewise: what is written down for the recipe's checks, once the program has ended well
[ "$0" = "${BASH_SOURCE[0]}" ] || trap 'nsw_stop=1' $nsw_signals    # this shell ends after its run, which passes the signal on

nsw_secrets() {    # SET: exports the set's variables; NAME...: leaves them to the program, inside its profiler
  local traced=$- file=$nsw_scratch/private/secrets.sh
  set +xv    # a `set -x` of set-up must not print them
  case $1 in
    [0-9]*) . "$file" "$1" ;;
    *) unset "$@"; [ -r "$file" ] ;;
  esac || nsw_broken=${nsw_broken:-"the secret variables cannot be read from $file"}
  [[ $traced != *x* ]] || set -x
  [[ $traced != *v* ]] || set -v
}

nsw_with_secrets() {    # SET WORDS...: a program inside its profiler, which must not see them; it starts in the run's folder
  . ../../../private/secrets.sh "$1" && exec "${@:2}"
}

# --- provenance ---

nsw_node() {    # this node's name: Slurm's of the task that this process is in, since several slurmd may share a host; else the system's
  # a launcher may hand on the variables of the node that it began on (MPICH's Hydra does): those of the process that
  # slurmstepd started itself are right
  local pid=$$ parent line
  nsw_here=
  while [ -n "${SLURMD_NODENAME-}" ] && { read -r line <"/proc/$pid/stat"; } 2>/dev/null; do
    read -r _ parent _ <<<"${line##*) }"
    line=
    { read -r line <"/proc/$parent/comm"; } 2>/dev/null
    case $line in
      slurmstepd*|'')    # '': a system may hide processes of other users
        while IFS= read -r -d '' line; do case $line in SLURMD_NODENAME=*) nsw_here=${line#*=} ;; esac; done <"/proc/$pid/environ"
        break ;;
    esac
    [ "$parent" -gt 1 ] || break
    pid=$parent
  done 2>/dev/null
  [ -n "$nsw_here" ] || { read -r nsw_here </proc/sys/kernel/hostname; } 2>/dev/null || nsw_here=$(uname -n)
}
nsw_image() {    # RUNTIME IMAGE: its digest; of a file that takes long to read its size and time
  local digest
  if [ -f "$2" ]; then
    if digest=$(timeout 20 sha256sum "$2"); then echo "sha256:${digest%% *}"; else stat -c '%s bytes, changed %y' "$2"; fi
  elif [ "$1" = docker ] || [ "$1" = podman ]; then
    timeout 20 "$1" image inspect --format '{{.Id}} {{.RepoDigests}}' "$2"
  fi
}
nsw_provenance() {    # once a job and node: what the numbers were measured on; nsw_tools has a line `NAME PATH` a profiler
  local dir name path key value
  nsw_node
  dir=$nsw_scratch/provenance/$nsw_job.$nsw_here
  [ -d "$dir" ] && return
  mkdir -p "$nsw_scratch/provenance" && mkdir "$dir" 2>/dev/null || return
  {
    nsw_line host "$nsw_here"; nsw_line kernel "$(uname -srm)"; nsw_line bash "$BASH_VERSION"
    nsw_line cpus "$(nproc)"; nsw_line modules "${LOADEDMODULES-}"
    while IFS=: read -r key value; do
      case $key in model\ name*) nsw_line cpu "${value# }"; break ;; esac
    done </proc/cpuinfo
    while read -r name path; do
      if [ "$name" = image ]; then nsw_line image "$(nsw_image "${path%% *}" "${path#* }")"; continue; fi
      [ -z "$name" ] || ! command -v "$path" >/dev/null || nsw_line "$name" "$(timeout 60 "$path" --version 2>&1 </dev/null | tail -n 1)"
    done <<<"${nsw_tools-}"
    command -v nvcc >/dev/null && nsw_line nvcc "$(nvcc --version 2>&1 | tail -n 1)"
  } >"$dir/host" 2>/dev/null
  command -v nvidia-smi >/dev/null && timeout 60 nvidia-smi --format=csv --query-gpu=index,name,uuid,driver_version,pci.bus_id,memory.total,clocks.sm,clocks.max.sm,clocks.mem,power.limit,persistence_mode,ecc.mode.current,mig.mode.current \
    >"$dir/gpus.csv" 2>"$dir/gpus.err"
  :
}

# --- conditions: what the GPUs and the host of a node do beside the program ---

nsw_conditions() { export NSW_CONDITIONS=yes; }    # the run that follows is sampled
nsw_sampled() {    # sets nsw_sampler: the words that print samples of the GPUs here, as far as this driver has them; nsw_every: seconds
  local fields='timestamp,uuid' known group field gpus=${CUDA_VISIBLE_DEVICES-} lines
  nsw_node
  nsw_sampler=() nsw_every=0.2 nsw_samples=.conditions/$nsw_here
  (set -C; : >"$nsw_samples") 2>/dev/null || return    # torchrun may start its ranks again
  command -v nvidia-smi >/dev/null || return 0
  known=$(timeout 10 nvidia-smi --help-query-gpu 2>/dev/null)
  for group in clocks.sm clocks.max.sm clocks.mem power.draw.instant 'power.draw.average power.draw' temperature.gpu \
    'clocks_event_reasons.active clocks_throttle_reasons.active' memory.used utilization.gpu ecc.errors.uncorrected.volatile.total; do
    for field in $group; do [[ $known != *"\"$field\""* ]] || { fields+=,$field; break; }; done
  done
  nsw_sampler=(nvidia-smi --query-gpu="$fields" "--format=csv,nounits")
  # numbers and UUIDs of GPUs, not of their MIG instances; where a rank was given its own alone, all that there are
  if [[ $gpus =~ ^(GPU-)?[0-9a-f]+[-0-9a-fGPU,]*$ ]]; then
    IFS=, read -ra lines <<<"$gpus"
    [ "${NSW_NODE_GPUS:-${#lines[@]}}" != "${#lines[@]}" ] || nsw_sampler+=(-i "$gpus")
  fi
  # before the program: whether somebody else is there
  if ! TZ=UTC0 timeout 10 "${nsw_sampler[@]}" >>"$nsw_samples" 2>&1; then nsw_sampler=(); return 0; fi
  mapfile -t lines <"$nsw_samples"    # the head, and a line a GPU
  # 0.2 % of a core on an H100 whose driver answers five times a second: many GPUs are asked less often
  case ${#lines[@]} in [0-3]) ;; [4-9]|10) nsw_every=0.$((${#lines[@]} - 1)) ;; *) nsw_every=1 ;; esac
}
nsw_sample() {    # OWNER: samples into $nsw_samples until that process ends, or this one is sent SIGTERM
  local owner=$1 frequencies=(/sys/devices/system/cpu/cpu*0/cpufreq/scaling_cur_freq) load jiffies khz word file
  nsw_smi=
  trap nsw_end_sampler EXIT
  trap 'owner=nobody' $nsw_signals    # not `exit` yet: nvidia-smi would be left behind before its number is known
  # who waits until the program's descriptors are closed, or a claim's, must not wait for this
  for file in /proc/self/fd/*; do
    file=${file##*/}
    [ "$file" -le 2 ] || [ "$file" = 255 ] || eval "exec $file>&-"
  done 2>/dev/null
  exec {nsw_pause}<> <(:)    # `sleep` would be a process each time
  if [ "${#nsw_sampler[@]}" -gt 0 ]; then
    case $nsw_every in 1) word=1000 ;; *) word=${nsw_every#*.}00 ;; esac
    TZ=UTC0 "${nsw_sampler[@]}" -lms "$word" >>"$nsw_samples" 2>&1 &
    nsw_smi=$!
  fi
  trap 'exit 0' $nsw_signals
  while [ -d "/proc/$owner" ]; do
    nsw_now
    khz='' load='' jiffies=''
    { read -r load </proc/loadavg; read -r word jiffies </proc/stat; } 2>/dev/null
    for file in "${frequencies[@]}"; do { read -r word <"$file"; } 2>/dev/null && khz+=" $word"; done
    printf 'host,%s,%s,%s,%s\n' "$nsw_t" "$load" "$jiffies" "$khz" >>"$nsw_samples"
    read -rt "$nsw_every" -u "$nsw_pause"
  done
}
nsw_end_sampler() {    # takes nvidia-smi 0.1 s; where the driver hangs, it never ends
  local tries
  trap '' $nsw_signals
  [ -n "$nsw_smi" ] || return 0
  for ((tries = 0; tries < 20; tries++)); do
    kill "$nsw_smi" 2>/dev/null || break    # each time: bash loses a signal that reaches a child which has not begun
    sleep 0.1    # a process: in a trap bash takes note of an ended child no sooner than with another's end
  done
}
nsw_conditions_of_nodes() {    # one file of all nodes
  local file
  for file in .conditions/*; do
    [ -e "$file" ] || continue
    nsw_line node "${file##*/}"
    cat "$file"
  done >conditions.txt 2>/dev/null
  rm -rf .conditions 2>/dev/null
}

# --- a run ---

nsw_choice() {    # RUN SECONDS: reads what an earlier stage decided for this attempt; a missing or wrong file fails the run
  local file=$nsw_scratch/choices/$1/attempt-$nsw_attempt word run attempt sum limit
  nsw_chosen=() nsw_limit=$2 nsw_unchosen=
  { read -r word _ run attempt sum limit && mapfile -t nsw_chosen; } 2>/dev/null <"$file" || { nsw_unchosen="the file of chosen arguments is missing: $file"; return; }
  [ "$word $run $attempt" = "nsw-choice $1 $nsw_attempt" ] || { nsw_unchosen="the file of chosen arguments is another run's: $file"; return; }
  word=$(tail -n +2 "$file" | sha256sum)
  [ "${word%% *}" = "$sum" ] || { nsw_unchosen="the file of chosen arguments was changed: $file"; return; }
  [ -z "$limit" ] || [ "$limit" -gt "$2" ] || nsw_limit=$limit
}
nsw_unwritable() {    # WHAT: ends the job, so that nsw hears of it: nothing here can be written, most likely since the disk or quota is full
  echo "nsw: $1 cannot be written: is the disk or the quota full?" >&2
  exit 73
}
nsw_check_file() {    # CHECK FILE [sum]: writes down its size, and its SHA-256
  local bytes=- sum=-
  if [ -f "$2" ]; then
    bytes=$(stat -Lc %s -- "$2")
    [ -z "${3-}" ] || { sum=$(sha256sum <"$2"); sum=${sum%% *}; }
  fi
  printf 'file\t%s\t%s\t%s\t%s\n' "${bytes:--}" "${sum:--}" "$1" "$2" >>checks.tsv
}
nsw_check_command() {    # CHECK WORDS...: writes down how it ended; it has what is left of the run's time
  local check=$1 status lines left=$((nsw_until - SECONDS))
  shift
  [ "$left" -gt 0 ] || left=1
  timeout --kill-after="$nsw_grace" "$left" "$@" >>checks.log 2>&1 </dev/null
  status=$?
  lines=$(wc -l <checks.log)
  printf 'command\t%s\t%s\t%s\n' "$status" "$lines" "$check" >>checks.tsv
}
nsw_run() {    # RUN SECONDS COMMAND...: claims the run's folder, runs there, leaves a status file
  local run=$1 limit=$2 dir code='' now state cause reason earlier nsw_claim nsw_child began over='' nsw_until=$((SECONDS + $2))
  shift 2
  [ -z "$nsw_stop" ] || exit 143
  for dir in "$nsw_scratch/runs/$run"/attempt-*; do    # a run that is done is not done again
    { read -r earlier <"$dir/status"; } 2>/dev/null && [ "$earlier" = state=done ] && return 0
  done
  dir=$nsw_scratch/runs/$run/attempt-$nsw_attempt
  # given up by nsw before it began: another attempt does it
  { read -r earlier <"$dir/claim"; } 2>/dev/null && [ "$earlier" = state=withdrawn ] && return 0
  # it failed by itself before the scheduler started this job anew: only what was cut off is done again
  if [ "$nsw_restart" != 0 ] && nsw_failed_by_itself "$dir/status"; then return 0; fi
  # what this job left before the scheduler started it anew is kept aside; only one of two copies can rename it
  [ "$nsw_restart" = 0 ] || { [ -d "$dir" ] && [[ $(<"$dir/claim") != *$'\n'"restart=$nsw_restart"$'\n'* ]] && mv -T "$dir" "$dir.before-restart-$nsw_restart"; } 2>/dev/null
  # nsw may have given it up a moment ago: then what was put aside holds its claim
  { read -r earlier <"$dir.before-restart-$nsw_restart/claim"; } 2>/dev/null && [ "$earlier" = state=withdrawn ] && return 0
  nsw_now; nsw_start=$nsw_t
  [ -d "$dir" ] || mkdir -p "$dir" || nsw_unwritable "$dir"
  cd "$dir" || nsw_unwritable "$dir"
  # noclobber: of two that try only one can make the file, and it needs no process (each costs 2 ms); the descriptor is
  # one that bash finds free, since those that are open hold the claims on this machine's GPUs
  set -C
  if ! { exec {nsw_claim}>claim; } 2>/dev/null; then
    set +C
    [ -e claim ] || nsw_unwritable "$dir/claim"
    echo "nsw: $run: attempt $nsw_attempt is claimed already" >&2
    echo "$nsw_job_id" >>again
    return 0
  fi
  set +C
  # a full disk makes an empty file: that is no claim
  if ! nsw_status running 1>&"$nsw_claim" 2>/dev/null || [ ! -s claim ]; then
    exec {nsw_claim}>&-; rm -f claim
    nsw_unwritable "$dir/claim"
  fi
  exec {nsw_claim}>&-
  if [ -n "${nsw_unchosen-}" ]; then
    nsw_end failed end "$nsw_t" exit_code "" reason "$nsw_unchosen"
    return 0
  fi
  if [ -n "$nsw_broken" ]; then
    [ -z "${nsw_words-}" ] || printf '%s\n' "$nsw_words" >stderr
    nsw_end failed end "$nsw_t" exit_code "" cause set-up reason "set-up failed: $nsw_broken"
    return 0
  fi
  [ -z "${nsw_app-}" ] || ln -s ../../../"$nsw_app"/* . 2>/dev/null
  [ -z "${NSW_LAYOUT-}" ] || mkdir -p .ranks
  nsw_sampling=
  if [ -n "${NSW_CONDITIONS-}" ] && mkdir .conditions && [ -z "${NSW_LAYOUT-}" ] && nsw_sampled; then
    now=$BASHPID    # which is another one behind `&`
    nsw_sample "$now" </dev/null >/dev/null 2>&1 &
    nsw_sampling=$!
    nsw_now; nsw_start=$nsw_t    # what the first sample took is none of the program's time
  fi
  # in the background, so that a signal to this shell is passed on at once: timeout puts the program into a process group
  # of its own, which a scheduler's signal may not reach; after the grace it kills that group
  began=${nsw_t%.*} nsw_signalled=
  (
    trap - INT QUIT
    export NSW_MARK=$dir:
    exec timeout --kill-after="$nsw_grace" "$limit" "$@" >stdout 2>stderr </dev/null
  ) &
  nsw_child=$!
  trap 'nsw_signalled+=1; kill -TERM "$nsw_child" 2>/dev/null' $nsw_signals
  while :; do
    earlier=$nsw_signalled
    wait "$nsw_child"; now=$?
    [ "$now" = 127 ] && [ -n "$code" ] || code=$now
    [ "$earlier" != "$nsw_signalled" ] || break    # else a signal ended the wait, and not the program
  done
  [ -z "$nsw_sampling" ] || kill "$nsw_sampling" 2>/dev/null
  # where a scheduler ends a job, its signal may reach this shell last
  case $code in 137|143) [ -n "$nsw_signalled" ] || sleep 5 ;; esac
  nsw_now
  [ "$limit" -gt 0 ] && [ $((${nsw_t%.*} - began)) -ge "$limit" ] && over=1
  [ -z "$nsw_signalled$over" ] || nsw_end_leftovers "$dir:"
  trap 'nsw_stop=1' $nsw_signals
  [ -n "$nsw_signalled" ] || nsw_after
  nsw_now
  # each time, as above: the sampler ends no sooner than this shell
  [ -z "$nsw_sampling" ] || while kill "$nsw_sampling" 2>/dev/null; do sleep 0.02; done
  [ ! -d .conditions ] || nsw_conditions_of_nodes
  [ "$code" != 0 ] || [ -n "$nsw_signalled$over" ] || nsw_checks
  state='done' cause='' reason=''
  [ "$code" -eq 0 ] || { state=failed cause='exit' reason="exit status $code"; }
  [ "$code" -ne 127 ] || cause='' reason="command not found"
  # 124: timeout ended it, 137: had to kill it; a program may end with either by itself, before its limit
  if [ -n "$over" ]; then case $code in
    124) cause=over-time reason="over its time limit of $limit s" ;;
    137) cause=over-time reason="over its time limit of $limit s, killed" ;;
  esac; fi
  # a full disk ends no program that does not look, and what it wrote is cut off
  if [ "$state" = "done" ] && ! { printf '%65536s' '' >status.new && [ -s status.new ]; } 2>/dev/null; then
    state=failed cause='' reason='the disk or the quota of the scratch folder was full when it ended: what it wrote may be cut off'
  fi
  if [ -n "${NSW_LAYOUT-}" ] && nsw_landed; then state=failed cause='' reason="${reason:+$reason; }$nsw_misplaced"; fi
  # whatever the program made of the signal: it was cut off
  if [ -n "$nsw_signalled" ]; then state=failed code=143 cause='' reason="ended by a signal"; fi
  nsw_end "$state" end "$nsw_t" exit_code "$code" cause "$cause" reason "$reason" ${nsw_signalled:+signalled yes}
  [ -z "$nsw_signalled" ] || exit 143    # what follows in this job is not begun
}
nsw_wait_if_ended() {    # EXIT-STATUS of a shell with a run: where a scheduler ends a job, its signal may reach this one last
  case $1 in 137|143) [ -n "$nsw_stop" ] || sleep 5 ;; esac
  [ -z "$nsw_stop" ] || exit 143
}
nsw_marked() {    # MARK: nsw_pids are the processes that have it in their environment
  local file words
  nsw_pids=()
  for file in /proc/[0-9]*/environ; do
    { words=$(<"$file"); } 2>/dev/null
    [[ $words != *"NSW_MARK=$1"* ]] || { file=${file#/proc/}; nsw_pids+=("${file%/environ}"); }
  done
}
nsw_end_leftovers() {    # MARK: processes of a run that was cut off and that left its process group: SIGTERM, grace, SIGKILL
  local until=$((SECONDS + nsw_grace))
  nsw_marked "$1"
  [ "${#nsw_pids[@]}" -gt 0 ] || return 0
  kill -TERM "${nsw_pids[@]}" 2>/dev/null
  while [ "${#nsw_pids[@]}" -gt 0 ] && [ "$SECONDS" -lt "$until" ]; do sleep 0.2; nsw_marked "$1"; done
  [ "${#nsw_pids[@]}" -eq 0 ] || kill -KILL "${nsw_pids[@]}" 2>/dev/null
}

# --- GPUs of runs that go side by side on a node ---

nsw_share() {    # LANE GPUS LANES: of the job's GPUs those of one lane
  local -a all mine
  trap 'nsw_stop=1' $nsw_signals    # of the lane's own shell
  IFS=, read -ra all <<<"${CUDA_VISIBLE_DEVICES-}"
  [ -n "${all[0]-}" ] || mapfile -t all < <(seq 0 $(($2 * $3 - 1)))
  mine=("${all[@]:$(($1 * $2)):$2}")
  local IFS=,
  export CUDA_VISIBLE_DEVICES="${mine[*]}"
}

# --- ranks ---

nsw_layout() {    # RUN LAUNCHER RANKS GPUS [VARIABLE [ORDER]]: what the ranks of the run need to know
  # RANKS: how many on each node, `4+4`; `-`: not planned. GPUS: how many of a node; VARIABLE: each rank sees its own by it
  local key=$nsw_job_id.$nsw_task.$1 c i hash=7 first=
  export NSW_HOME=$nsw_scratch/runs/$1/attempt-$nsw_attempt NSW_SCRATCH=$nsw_scratch NSW_JOB=$nsw_job NSW_TOOLS=$nsw_tools
  export NSW_LAUNCHER=$2 NSW_LAYOUT=$3 NSW_NODE_GPUS=$4 NSW_VISIBLE=${5-} NSW_ORDER=${6-}
  # jobs and runs that share a node must not share a port
  for ((i = 0; i < ${#key}; i++)); do printf -v c %d "'${key:i:1}"; hash=$(((hash * 31 + c) % 20000)); done
  if [[ $3 == *+* ]]; then
    for c in "${PBS_NODEFILE-}" "${COBALT_NODEFILE-}"; do [ -z "$c" ] || { read -r first <"$c"; } 2>/dev/null && break; done
    [ -n "$first" ] || first=${HOSTNAME:-$(uname -n)}
  fi
  export NSW_MASTER_ADDR=${first:-localhost} NSW_MASTER_PORT=$((20000 + hash))
  nsw_meeting=$NSW_MASTER_ADDR:$NSW_MASTER_PORT
}
nsw_expect() {    # TURNS COMPARED CPUS: with what the job compares where ranks landed
  # TURNS: `block`, or `cyclic`: the nodes take ranks in turn. COMPARED: a rank is to have its `own` GPUs, the ranks of a
  # node `all` of its GPUs; `-`: they are not compared. CPUS: cores a rank, 0: not planned
  export NSW_TURNS=$1 NSW_COMPARED=$2 NSW_CPUS=$3
}
nsw_list_hosts() {    # nsw_hosts: the job's nodes, each with how many ranks Open MPI may start there
  local host last='' most=${NSW_LAYOUT%%+*} file=${PBS_NODEFILE-${COBALT_NODEFILE-}}
  [ "$NSW_LAUNCHER" != torchrun ] || most=1
  nsw_hosts=
  while read -r host; do
    [ "$host" = "$last" ] || nsw_hosts+="${nsw_hosts:+,}$host:$most"
    last=$host
  done <"$file"
}
nsw_forward() {    # nsw_x: Open MPI's options that give other nodes the exported variables; it sends no others
  local name
  nsw_x=()
  for name in $(compgen -e); do
    case $name in
      BASH_FUNC_*|HOSTNAME|HOST|PWD|OLDPWD|SHLVL|_|TMPDIR|SLURM*|PBS_*|COBALT_*|OMPI_*|PMIX_*|PRTE_*|PMI_*) ;;
      *) nsw_x+=(-x "$name") ;;
    esac
  done
}
nsw_keep_environment() {    # SECRET...: nsw_environment is a file with the other variables, for a launcher that gives nodes none
  nsw_environment=${NSW_HOME%/*}/.environment-$nsw_attempt
  mkdir -p "${NSW_HOME%/*}" && (umask 077; unset HOSTNAME PBS_NODENUM PBS_TASKNUM "$@"; export -p >"$nsw_environment")
}
nsw_reports_on_nodes() {    # what ranks record is left on their nodes, in folders that no other start of a run has, until it is packed
  nsw_now
  export NSW_REPORTS=${TMPDIR:-/tmp}/nsw-$UID-$BASHPID.$nsw_t
}
nsw_node_folder() {    # sets nsw_folder: that of this node; several nodes may be one machine
  nsw_node
  nsw_folder=$NSW_REPORTS.$nsw_here
}
nsw_in_node_folder() {    # WORDS...: there, if a rank of this node was profiled
  nsw_node_folder
  cd "$nsw_folder" 2>/dev/null || exit 0
  "$@"
}
nsw_pack() {    # PATTERN...: what the ranks of this node recorded becomes one file of the run's folder
  local pattern part files=()
  nsw_in_node_folder :
  for pattern; do mapfile -t -O "${#files[@]}" files < <(compgen -G "$pattern"); done
  part=$NSW_HOME/.reports.$nsw_here.part
  if [ "${#files[@]}" -gt 0 ] && ! { tar -cf "$part" -- "${files[@]}" && mv "$part" "$NSW_HOME/reports.$nsw_here.tar"; }; then
    echo "nsw: $nsw_here: ${#files[@]} reports could not be packed and are left in $nsw_folder" >&2
    exit 1
  fi
  cd / && rm -rf "$nsw_folder"
}
nsw_first_of() {    # VARIABLE...: nsw_value is what the first of these that is set holds
  nsw_value=
  while [ $# -gt 0 ] && [ -z "$nsw_value" ]; do nsw_value=${!1-}; shift; done
}
nsw_planned() {    # sets nsw_counts, the ranks that are planned on each node, and nsw_total
  local count
  IFS=+ read -ra nsw_counts <<<"${NSW_LAYOUT#-}"
  nsw_total=0
  for count in "${nsw_counts[@]}"; do nsw_total=$((nsw_total + count)); done
}
nsw_planned_node() {    # RANK: sets nsw_on, the planned node of a rank, counted from 0; nsw_of, how many ranks that has; nsw_at, its place there
  nsw_on=0 nsw_of='' nsw_at=$1
  if [ "${NSW_TURNS-}" = cyclic ] && [ "${#nsw_counts[@]}" -gt 0 ]; then
    nsw_on=$(($1 % ${#nsw_counts[@]})) nsw_at=$(($1 / ${#nsw_counts[@]}))
  else
    while [ "$nsw_on" -lt "${#nsw_counts[@]}" ] && [ "$nsw_at" -ge "${nsw_counts[nsw_on]}" ]; do
      nsw_at=$((nsw_at - nsw_counts[nsw_on])) nsw_on=$((nsw_on + 1))
    done
  fi
  nsw_of=${nsw_counts[nsw_on]-}
}
nsw_whose() {    # sets NSW_RANK and NSW_LOCAL_RANK, and nsw_of (ranks of this node), nsw_total
  local mpi=(PALS_RANKID OMPI_COMM_WORLD_RANK MV2_COMM_WORLD_RANK PMI_RANK PMIX_RANK FLUX_TASK_RANK)
  case ${NSW_LAUNCHER-} in
    torchrun) nsw_first_of RANK ;;
    srun) nsw_first_of SLURM_PROCID ;;
    aprun) nsw_first_of ALPS_APP_PE "${mpi[@]}" ;;
    # a batch script's own rank is inherited by all: what Slurm says holds within a step of srun only
    *) nsw_first_of "${mpi[@]}" RANK ${SLURM_STEP_ID:+SLURM_PROCID} ;;
  esac
  if [ -z "$nsw_value" ]; then    # a single process needs no rank; of several without one the first is rank 0
    nsw_value=0
    (set -C; : >.rank-0) 2>/dev/null || { echo "nsw: several processes, and no variable that launchers set distinguishes them: ${mpi[*]}" >&2; exit 1; }
  fi
  export NSW_RANK=$nsw_value
  nsw_planned
  nsw_planned_node "$NSW_RANK"
  case ${NSW_LAUNCHER-} in
    torchrun) nsw_first_of LOCAL_RANK ;;
    srun) nsw_first_of SLURM_LOCALID ;;
    *) nsw_first_of PALS_LOCAL_RANKID OMPI_COMM_WORLD_LOCAL_RANK MPI_LOCALRANKID MV2_COMM_WORLD_LOCAL_RANK FLUX_TASK_LOCAL_ID ${SLURM_STEP_ID:+SLURM_LOCALID} ;;
  esac
  export NSW_LOCAL_RANK=${nsw_value:-$nsw_at}
}
nsw_own_gpus() {    # of the node's GPUs that the job has those of this rank, in the site's order
  local -a all=() ordered=() order=()
  local id at start end given=${!NSW_VISIBLE-}
  IFS=, read -ra order <<<"${NSW_ORDER-}"
  IFS=, read -ra all <<<"$given"
  if [ -z "$given" ]; then
    if [ "${#order[@]}" -gt 0 ]; then all=("${order[@]}"); else mapfile -t all < <(seq 0 $((NSW_NODE_GPUS - 1))); fi
  elif [ "${#all[@]}" -eq 1 ] || [ "${#all[@]}" -le $((NSW_NODE_GPUS / nsw_of)) ]; then
    return 0    # the launcher has given it its own
  elif [ "${#order[@]}" -gt 0 ]; then
    if [[ $given =~ ^[0-9,]+$ ]]; then    # those that the job has, in the site's order
      for at in "${order[@]}"; do for id in "${all[@]}"; do [ "$id" != "$at" ] || ordered+=("$id"); done; done
    elif [ "${#order[@]}" -eq "${#all[@]}" ]; then
      for at in "${order[@]}"; do ordered+=("${all[at]}"); done
    fi
    [ "${#ordered[@]}" -ne "${#all[@]}" ] || all=("${ordered[@]}")
  fi
  start=$((NSW_LOCAL_RANK * NSW_NODE_GPUS / nsw_of)) end=$(((NSW_LOCAL_RANK + 1) * NSW_NODE_GPUS / nsw_of))
  [ "$end" -gt "$start" ] || end=$((start + 1))
  local IFS=,
  printf -v given '%s' "${all[*]:start:end-start}"
  export "$NSW_VISIBLE=$given"
}
nsw_visible() {    # sets nsw_seen: the GPUs that this process sees; `none`; empty: all that there are. nsw_view: the devices that it may open
  # numbers count the devices that a process may open, which cgroups may limit for each: the driver tells their UUIDs
  local file key value minor uuid variable word='' all=() words=()
  nsw_seen='' nsw_view=
  for file in /dev/nvidia[0-9]* /dev/dri/renderD*; do [ ! -r "$file" ] || nsw_view+=${file##*/}; done
  for variable in CUDA_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES ZE_AFFINITY_MASK ''; do [ -z "$variable" ] || [ -z "${!variable+set}" ] || break; done
  [ -n "$variable" ] || return 0
  for file in /proc/driver/nvidia/gpus/*/information; do
    minor='' uuid=
    while IFS=: read -r key value; do
      case $key in 'GPU UUID') uuid=${value//[[:space:]]/} ;; 'Device Minor') minor=${value//[[:space:]]/} ;; esac
    done <"$file"
    [ ! -r "/dev/nvidia$minor" ] || all+=("$uuid")
  done 2>/dev/null
  # a GPU that sleeps has no UUID yet, and where there are MIG instances a number may be of one of them
  for file in /proc/driver/nvidia/capabilities/gpu*/mig/gi*; do [ ! -e "$file" ] || all=(); done
  [[ ${all[*]-} != *[?]* ]] || all=()
  IFS=, read -ra words <<<"${!variable}"
  for word in "${words[@]}"; do
    word=${word//[[:space:]]/}
    case $word in -1|NoDevFiles|none|void|'') break ;; esac    # CUDA reads no further
    if [ "${#all[@]}" -gt 0 ] && [[ $variable$word =~ ^CUDA[A-Z_]*[0-9]+$ ]]; then
      word=${all[10#$word]-}
      [ -n "$word" ] || break
    fi
    nsw_seen+=${nsw_seen:+,}$word
  done
  # an empty variable of AMD's or Intel's may mean all
  [ -n "$nsw_seen" ] || { [ -z "${!variable}" ] && [ "$variable" != CUDA_VISIBLE_DEVICES ]; } || nsw_seen=none
}
nsw_rank() {    # [--profile WHICH COUNT] WORDS...: one process of a launcher
  # WHICH: all, node (the first of each node), or ranks `0,2`; the last COUNT words are the program without its profiler
  local which=all count=0 cpus=- cores=- key value boot=- v
  if [ "$1" = --profile ]; then which=$2 count=$3; shift 3; fi
  if [ -n "${NSW_HOME-}" ]; then cd "$NSW_HOME" || exit 1; fi
  nsw_whose
  for v in ${NSW_BEFORE-}; do "$v"; done
  # a process of nobody's, since a program may wait for all of its own
  if [ "$NSW_LOCAL_RANK" = 0 ] && [ -d .conditions ] && nsw_sampled; then (nsw_sample $$ </dev/null >/dev/null 2>&1 &); fi
  if [ -n "${NSW_VISIBLE-}" ]; then
    nsw_own_gpus
    export LOCAL_RANK=0
    # torchrun has set the rest, and holds the store that its ranks meet at itself
    [ "$NSW_LAUNCHER" = torchrun ] || export RANK=$NSW_RANK WORLD_SIZE=$nsw_total MASTER_ADDR=$NSW_MASTER_ADDR MASTER_PORT=$NSW_MASTER_PORT
  fi
  if [ -d .ranks ]; then
    nsw_node
    { read -r boot </proc/sys/kernel/random/boot_id; } 2>/dev/null
    while IFS=: read -r key value; do case $key in Cpus_allowed_list) cpus=${value//[[:space:]]/}; break ;; esac; done </proc/self/status
    { read -r cores </sys/devices/system/cpu/online; } 2>/dev/null
    nsw_visible
    if [ "$NSW_LOCAL_RANK" = 0 ]; then nsw_scratch=$NSW_SCRATCH nsw_job=$NSW_JOB nsw_tools=$NSW_TOOLS nsw_provenance; fi
    v=.ranks/$NSW_RANK
    # torchrun may start all of its ranks again
    [ "${TORCHELASTIC_RESTART_COUNT:-0}" != 0 ] || (set -C; : >"$v") 2>/dev/null || v=$v.again
    nsw_now    # after all that nsw does before the program
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$NSW_RANK" "$NSW_LOCAL_RANK" "$nsw_here" "$boot" "$cpus" "$cores" "${nsw_view:--}" "$nsw_t" "$nsw_seen" >"$v"
  fi
  case $which in
    all) ;;
    node) [ "$NSW_LOCAL_RANK" = 0 ] || exec "${@:$#-count+1}" ;;
    *) [[ ,$which, == *",$NSW_RANK,"* ]] || exec "${@:$#-count+1}" ;;
  esac
  if [ -n "${NSW_REPORTS-}" ]; then
    nsw_node_folder
    (umask 077; mkdir -p "$nsw_folder") 2>/dev/null
    if [ ! -O "$nsw_folder" ]; then
      echo "nsw: $nsw_here: no folder $nsw_folder for the reports of its ranks: set TMPDIR to a folder of each node, or write \`collect: reports\`" >&2
      exit 1
    fi
    for v; do
      shift
      [[ $v != *%nsw_node_folder%* ]] || v=${v%%\%nsw_node_folder\%*}$nsw_folder${v#*\%nsw_node_folder\%}
      set -- "$@" "$v"
    done
  fi
  exec "${@:1:$#-count}"
}
nsw_on_node() {    # [--from FILE SET] WORDS...: one process a node, which starts the node's ranks
  if [ "$1" = --from ]; then    # this launcher gives other nodes no variables
    . "$2" || exit 1
    nsw_scratch=$NSW_SCRATCH
    [ -z "$3" ] || nsw_secrets "$3"
    [ -z "$nsw_broken" ] || { echo "nsw: $nsw_broken" >&2; exit 1; }
    shift 3
  fi
  [ -z "${NSW_HOME-}" ] || cd "$NSW_HOME" || exit 1
  nsw_first_of PALS_RANKID OMPI_COMM_WORLD_RANK MV2_COMM_WORLD_RANK PMI_RANK PMIX_RANK ALPS_APP_PE ${SLURM_STEP_ID:+SLURM_PROCID} PBS_NODENUM
  export NSW_NODE=${nsw_value:-0}
  exec "$@"
}
nsw_ranks_in_words() {    # RANK...: sets nsw_words to them for a person, such as `ranks 0, 1, 2, 3 and 4 more`
  local IFS=,
  nsw_words="${*:1:4}"
  nsw_words="rank${2:+s} ${nsw_words//,/, }"
  [ $# -le 4 ] || nsw_words+=" and $(($# - 4)) more"
}
nsw_landed() {    # writes ranks.tsv; true, with the reason in nsw_misplaced, where ranks or their GPUs are not as they were planned
  local rank local_rank node boot cpus cores view began_at visible uuid more file landed='' on=0 at=0 began=0 files=() again=()
  local -A ranks_on=() view_of=() cores_of=() has=() first=() first_rank=()
  local -a nodes=() node_of=() seen=()
  nsw_planned
  nsw_misplaced=
  if [ "$nsw_total" -gt 0 ]; then    # by name: a listing of a network's file system may be old
    for ((rank = 0; rank < nsw_total; rank++)); do files+=(".ranks/$rank"); done
  else
    files=(.ranks/*)
  fi
  {
    for file in "${files[@]}"; do
      IFS=$'\t' read -r rank local_rank node boot cpus cores view began_at visible 2>/dev/null <"$file" || continue
      began=$((began + 1))
      printf 'rank\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$rank" "$local_rank" "$node" "$boot" "$cpus" "$visible" "$began_at"
      [ ! -e "$file.again" ] || again+=("$rank")
      node="$node $boot"
      [ -n "${ranks_on[$node]-}" ] || { nodes+=("$node"); view_of[$node]=$view cores_of[$node]=$cores; }
      [ "${view_of[$node]}" = "$view" ] || view_of[$node]=
      ranks_on[$node]=$((${ranks_on[$node]-0} + 1))
      node_of[rank]=$node seen[rank]=$view/$visible
    done
    for node in "${nodes[@]}"; do
      printf 'cores\t%s\t%s\t%s\n' "${node% *}" "${cores_of[$node]}" "$NSW_CPUS"
      [ -n "${view_of[$node]}" ] || continue    # then these numbers are not those of every rank
      while IFS=, read -r rank cpus uuid more; do
        [[ $rank == [0-9]* ]] || continue
        printf 'gpu\t%s\t%s\t%s\t%s\n' "${node% *}" "$rank" "${uuid# }" "${cpus# }"
        has[$node]+=" $rank " has[$node $rank]=${uuid# }
        [[ $more != *Enabled ]] || has[$node]+=MIG
      done 2>/dev/null <"$nsw_scratch/provenance/$nsw_job.${node% *}/gpus.csv"
    done
  } >ranks.tsv 2>/dev/null
  rm -rf .ranks
  [ "$nsw_total" -gt 0 ] || return 1
  if [ "$began" -lt "$nsw_total" ]; then nsw_misplaced="$began of $nsw_total ranks began"; return 0; fi
  for node in "${nodes[@]}"; do landed+="${landed:+ + }${ranks_on[$node]}"; done
  if [ "$landed" != "${NSW_LAYOUT//+/ + }" ]; then nsw_misplaced="ranks landed $landed, planned ${NSW_LAYOUT//+/ + }"; return 0; fi
  for ((rank = 0; rank < nsw_total; rank++)); do
    if [ "$NSW_TURNS" = cyclic ]; then
      on=$((rank % ${#nsw_counts[@]}))
    else
      [ "$at" -lt "${nsw_counts[on]}" ] || { on=$((on + 1)) at=0; }
      at=$((at + 1))
    fi
    [ -n "${first[$on]-}" ] || { first[$on]=${node_of[rank]} first_rank[$on]=$rank; }
    if [ "${first[$on]}" != "${node_of[rank]}" ]; then
      nsw_misplaced="rank $rank landed on ${node_of[rank]% *}, planned on ${first[$on]% *} with rank ${first_rank[$on]} ($NSW_TURNS order)"
      return 0
    fi
  done
  if [ "${#again[@]}" -gt 0 ]; then
    nsw_ranks_in_words "${again[@]}"
    nsw_misplaced="$nsw_words began more than once: several processes have the same rank"
    return 0
  fi
  [ "$NSW_COMPARED" = - ] || nsw_compare_gpus
  [ -n "$nsw_misplaced" ]
}
nsw_compare_gpus() {    # of nsw_landed: sets nsw_misplaced where ranks have no GPU, too few, or share what each was to have of its own
  local rank node word key view visible count each shared='' without=() few=() words=()
  local -A ranks_of=() there=() unknown=()
  for ((rank = 0; rank < nsw_total; rank++)); do
    node=${node_of[rank]} view=${seen[rank]%%/*} visible=${seen[rank]#*/} count=0
    if [ -z "$visible" ]; then unknown[$node]=1; continue; fi
    IFS=, read -ra words <<<"${visible#none}"
    for word in "${words[@]}"; do
      if [[ $word =~ ^[0-9]+$ ]]; then
        if [ -z "${view_of[$node]}" ]; then word=$view:$word    # of ranks that may open other devices: of other GPUs
        elif [ -n "${has[$node $word]-}" ]; then word=${has[$node $word]}
        elif [[ -n ${has[$node]-} && ${has[$node]} != *MIG* ]]; then break; fi    # CUDA reads no further
      fi
      key="$node $word" count=$((count + 1))
      if [ -z "${ranks_of[$key]-}" ]; then there[$node]=$((${there[$node]-0} + 1)); elif [ -z "$shared" ]; then shared=$key; fi
      ranks_of[$key]+="$rank "
    done
    each=$((NSW_NODE_GPUS / ranks_on[$node]))
    if [ "$count" = 0 ]; then without+=("$rank"); elif [ "$count" -lt "$each" ]; then few+=("$rank"); fi
  done
  each="planned ${each:-0} GPU$([ "$each" = 1 ] || echo s) each"
  if [ "${#without[@]}" -gt 0 ]; then
    nsw_ranks_in_words "${without[@]}"
    nsw_misplaced="$nsw_words saw no GPU, $each"
  elif [ "$NSW_COMPARED" = all ]; then
    for node in "${nodes[@]}"; do
      [ -z "${unknown[$node]-}" ] && [ "${there[$node]}" -lt "$NSW_NODE_GPUS" ] || continue
      nsw_misplaced="the ranks of ${node% *} saw ${there[$node]} of the $NSW_NODE_GPUS GPUs that were planned on each node"
    done
  elif [ -n "$shared" ]; then
    nsw_ranks_in_words ${ranks_of[$shared]}
    nsw_misplaced="$nsw_words shared a GPU of ${shared%% *} (${shared##* }), $each"' (`launcher: {share_gpus: true}` allows that)'
  elif [ "${#few[@]}" -gt 0 ]; then
    nsw_ranks_in_words "${few[@]}"
    nsw_misplaced="$nsw_words saw fewer GPUs than planned, $each"
  fi
}

# --- what profilers bring along ---

# --- started as a program: bash FILE FUNCTION WORDS... ---
case ${BASH_SOURCE[0]} in "$0")
  nsw_function=${1-}
  shift
  "nsw_$nsw_function" "$@"
  ;;
esac
