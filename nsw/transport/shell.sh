umask 077; nsw_dir=$(mktemp -d) || exit 97
trap 'rm -rf "$nsw_dir"' EXIT
nsw_lock() {
  command -v flock >/dev/null || { echo free; return; }
  mkdir -p "${1%/*}" && exec 8<>"$1" || { echo free; return; }
  if flock -n 8; then echo free; else exec 8>&-; echo held; fi
}
nsw_end_group() {    # what timeout left of its group: SIGTERM came already, SIGKILL comes after 5 s
  local group at; read -r group <"$nsw_dir/group" || return
  for at in {1..100}; do
    kill -0 -- "-$group" 2>/dev/null || return
    [ "$at" != 50 ] || kill -KILL -- "-$group" 2>/dev/null
    sleep 0.1
  done
}
nsw_call() {
  local limit=$1 cwd=$2 input=$3 out=$nsw_dir/out err=$nsw_dir/err code start=$SECONDS
  shift 3
  ( { [ -z "$cwd" ] || cd -- "$cwd" || exit 1
      [ -z "$nsw_clear" ] || for name in $(compgen -e); do
        [[ " $nsw_keep " == *" $name "* ]] && continue
        for prefix in $nsw_clear; do [[ $name == "$prefix"* ]] && unset "$name"; done
      done
      echo "$BASHPID" >"$nsw_dir/group"    # timeout makes it a process group
      exec timeout -k 5 "$limit" "$@"; } <"$input" >"$out" 2>"$err" )
  code=$?
  case $code in 124 | 137) [ "$((SECONDS - start))" -lt "${limit%.*}" ] || nsw_end_group ;; esac
  printf '\n%s %s %s %s %s\n' "$nsw_token" "$code" "$((SECONDS - start))" "$(stat -c %s "$out")" "$(stat -c %s "$err")"
  cat "$out" "$err"
}
