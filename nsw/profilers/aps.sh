nsw_aps_report() {    # APS RESULT: the report as text, and its page
  "$1" --report="$2" >"$2.txt"
}
