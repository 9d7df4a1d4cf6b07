nsw_ncu_lock() {    # another user's lock file cannot be opened, and ncu gives up: so it gets a folder of its own
  local dir=/tmp/nsw-ncu-$UID lock=${TMPDIR:-/tmp}/nsight-compute-lock
  export NSW_BEFORE=nsw_ncu_lock    # of the ranks on other nodes too
  { [ -e "$lock" ] && [ ! -w "$lock" ]; } || return 0
  mkdir -m 700 "$dir" 2>/dev/null
  # another user may have made the one of that name first, with links in it
  if [ -L "$dir" ] || [ ! -O "$dir" ]; then dir=$(mktemp -d /tmp/nsw-ncu-XXXXXXXX); fi
  export TMPDIR=$dir
}
nsw_ncu_pages() {    # NCU NAME [PAGE]: the pages of its reports as CSV
  # versions before 2024 shorten no names and know no option for it, the first ones have another word for units; few
  # paths tell the version
  local report page out code=0 words
  for report in "$2"*.ncu-rep "$2"*.nsight-cuprof-report; do
    [ -e "$report" ] || continue
    for page in raw details session ${3-}; do
      out=${report%.*}.$page.csv words=("$1" --import "$report" --page "$page" --csv)
      # without line information there is no such page, and the plain one has the instructions
      if [ "$page" = source ] && "${words[@]}" --print-source sass,cuda >"$out" && grep -q '"Address"' "$out"; then
        continue
      fi
      "${words[@]}" --print-units base --rename-kernels off >"$out" || "${words[@]}" --print-units base >"$out" ||
        "${words[@]}" --units base >"$out" || { code=$?; rm -f "$out"; }
    done
  done
  exit "$code"
}
