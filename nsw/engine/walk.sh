walk() {
  local path=${2%/} rest=$1 part target
  while [ -n "$rest" ]; do
    part=${rest%%/*} rest=${rest#"$part"} rest=${rest#/}
    [ -n "$part" ] || continue
    path=$path/$part
    [ -e "$path" ] || [ -L "$path" ] || return 0
    seen+=("$path")
    [ "${#seen[@]}" -le 500 ] || exit 1
    [ -L "$path" ] || continue
    target=$(readlink -- "$path") || exit 1
    case $target in
      /*) walk "$target" "" ;;
      *) walk "$target" "${path%/*}" ;;
    esac
  done
}
seen=(/)
walk "$1" "" || exit
printf '%s\0' "$EUID"
stat --printf '%u\t%U\t%f\t%n\0' -- "${seen[@]}"
