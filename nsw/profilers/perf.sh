# a table beside each recording, one row a function, with a tab between cells
nsw_perf_table() {    # PERF NAME
  local data
  for data in "$2"*.perf.data; do
    "$1" report --stdio --header --children --call-graph none --field-separator $'\t' \
      --fields overhead_children,overhead,sample,period,dso,symbol --input "$data" >"${data%.data}.txt" || exit
  done
}
