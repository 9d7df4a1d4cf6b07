# each process has left NAME.gmon.PID; the functions' names are in the program
nsw_gprof_print() {    # GPROF NAME PROGRAM OPTION...
  local data program
  program=$(command -v "$3") || program=$3
  for data in "$2"*.gmon.*; do
    [ -e "$data" ] || { echo "nsw: $3 wrote no profile: it was not built with -pg, or a signal ended it" >&2; exit 1; }
    "$1" --brief "${@:4}" "$program" "$data" >"${data/.gmon./.}.gprof.txt" || exit
  done
}
