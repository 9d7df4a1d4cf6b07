# a reduction runs beside the folders of the runs, in one of its own; without a python3 the
# whole export is packed: it has the same tables, and more
nsw_nsys_export() {    # NSYS NAME: an export beside each report
  local report
  for report in "$2"*.nsys-rep; do
    "$1" export --type=sqlite --force-overwrite=true --output="${report%.nsys-rep}.sqlite" "$report" || exit
  done
}
nsw_nsys_sampled() {    # NSYS HERTZ WORD...: nsys profile WORD..., with samples of all GPUs where nsys can take them
  local nsys=$1 hertz=$2 option=--gpu-metrics-devices answer
  shift 2
  if [ "${NSW_LOCAL_RANK:-0}" = 0 ]; then    # one of a node: a second nsys is refused
    answer=$("$nsys" profile $option=help 2>&1) ||    # the older name
      { option=--gpu-metrics-device; answer=$("$nsys" profile $option=help 2>&1); }
    if grep -Eq '^[[:space:]]*[0-9]+:' <<<"$answer"; then set -- $option=all "--gpu-metrics-frequency=$hertz" "$@"
    else printf 'nsw: nsys samples no GPU metrics here, and records the rest:\n%s\n' "$answer" >&2; fi
  fi
  exec "$nsys" profile "$@"
}
nsw_nsys_then_program() {    # WORD...: an nsys that may end before its program; waits for both
  local status group folder
  folder=$(mktemp -d) || exit
  NSW_PROGRAM=$folder "$@" && status=0 || status=$?
  if read -r group 2>/dev/null <"$folder/group"; then    # else nsys started no program
    # nsys starts the program in a session of its own: a signal must be passed on
    trap 'kill -TERM -- "-$group" 2>/dev/null' TERM
    until [ -s "$folder/status" ] || ! kill -0 -- "-$group" 2>/dev/null; do sleep 0.1; done
    [ "$status" -ne 0 ] || read -r status 2>/dev/null <"$folder/status" || status=143
  fi
  rm -rf "$folder"
  exit "$status"
}
nsw_nsys_program() {    # PROGRAM WORD...: notes its session and its exit status for nsw_nsys_then_program
  echo $$ >"$NSW_PROGRAM/group"
  "$@"
  echo $? >"$NSW_PROGRAM/status"
}
nsw_nsys_reduce() {    # NSYS NAME RUN: a small database of each report of the run
  local at state from='' python='' packing=gz one found='' report name whole
  for at in "../../$3"/attempt-*; do
    { read -r state <"$at/status"; } 2>/dev/null && [ "$state" = state=done ] && from=$at
  done
  [ -n "$from" ] || { echo "nsw: no attempt of $3 is done" >&2; exit 1; }
  for one in python3 /usr/bin/python3 /usr/libexec/platform-python python; do
    "$one" -c 'import gzip, sqlite3, sys; sys.exit(sys.version_info < (3, 6))' 2>/dev/null && { python=$one; break; }
  done
  if "$python" -c 'import lzma' 2>/dev/null; then packing=xz; fi
  [ -n "$python" ] || echo "nsw: no python3 with sqlite3 was found here: the whole export is packed" >&2
  for report in "$from/$2"*.sqlite "$from/$2"*.nsys-rep; do
    [ -e "$report" ] || continue
    found=1 name=${report##*/} whole=$report
    name=${name%.*}
    [ ! -e "$name.sqlite.$packing" ] || continue
    if [ "${report##*.}" = nsys-rep ]; then
      whole=full.$name.sqlite
      "$1" export --type=sqlite --force-overwrite=true --output="$whole" "$report" || exit
      [ -s "$whole" ] || { echo "nsw: $1 made no export of $report" >&2; exit 1; }
    fi
    if [ -n "$python" ]; then "$python" ../../../tools/reduce_export.py "$whole" "$name.sqlite.$packing" || exit
    else gzip -c "$whole" >"$name.part" && mv "$name.part" "$name.sqlite.gz" || exit; fi
    [ "$whole" = "$report" ] || rm -f "$whole"
  done
  [ -n "$found" ] || { echo "nsw: $3 left no report" >&2; exit 1; }
}
