# a reduction runs beside the folders of the runs, in one of its own
nsw_vtune_tables() {    # VTUNE RESULT NAME: a result is finalised, and its functions and its summary are CSV
  local report
  "$1" -finalize -search-dir / -result-dir "$2" || exit
  for report in hotspots summary; do
    "$1" -report "$report" -result-dir "$2" -format csv -csv-delimiter comma -report-output "$3.$report.csv" || exit
  done
}
nsw_vtune_export() {    # VTUNE NAME: the tables beside each result
  local result
  for result in "$2"*.vtune; do nsw_vtune_tables "$1" "$result" "${result%.vtune}"; done
}
nsw_vtune_pack() {    # NAME: each result in one file
  local result
  for result in "$1"*.vtune; do tar -czf "$result.tar.gz" "$result" || exit; done
}
nsw_vtune_reduce() {    # VTUNE NAME RUN: the tables of each result of the run, packed
  local at state='' from='' result name
  for at in "../../$3"/attempt-*; do
    { read -r state <"$at/status"; } 2>/dev/null && [ "$state" = state=done ] && from=$at
  done
  [ -n "$from" ] || { echo "nsw: no attempt of $3 is done" >&2; exit 1; }
  for result in "$from/$2"*.vtune; do
    [ -d "$result" ] || { echo "nsw: $3 left no result" >&2; exit 1; }
    name=${result##*/} name=${name%.vtune}
    nsw_vtune_tables "$1" "$result" "$name"
    gzip -f "$name".*.csv || exit
  done
}
