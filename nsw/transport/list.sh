shopt -s nullglob dotglob
mapfile -t -d '' folders
for folder in "${folders[@]}"; do
  if [ -d "$folder" ]; then
    [ -r "$folder" ] && [ -x "$folder" ] || { printf 'unknown\0'; continue; }
    printf 'folder\0'
    files=("$folder"/*)
    [ "${#files[@]}" = 0 ] || printf '%s\0' "${files[@]}" | xargs -0 stat --printf '%F\t%s\t%n\0' --
    printf 'end\0'
  elif [ -e "$folder" ] || [ -e "${folder%/*}" ] || [ -e / ]; then printf 'absent\0'
  fi
done
:
