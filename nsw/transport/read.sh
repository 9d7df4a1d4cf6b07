limit=$1 head_or_tail=$2; mapfile -t -d '' files
for file in "${files[@]}"; do
  if [ -e "$file" ] && [ ! -f "$file" ]; then echo "unknown it is not a regular file"    # a pipe would be waited for
  elif error=$( { "$head_or_tail" -c "$limit" -- "$file" >"$nsw_dir/file"; } 2>&1 ); then
    printf 'file %s\n' "$(stat -c %s "$nsw_dir/file")"; cat "$nsw_dir/file"
  else case $error in
    *'No such file'*|*'Not a directory'*) echo absent ;;
    *) printf 'unknown %s\n' "${error//$'\n'/ }" ;;
  esac; fi
done
