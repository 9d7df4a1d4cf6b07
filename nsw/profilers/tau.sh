# the profiles, out of their folders: NAME[.MULTI__METRIC].profile.NODE.CONTEXT.THREAD
nsw_tau_flatten() {    # NAME
  local folder file
  for folder in "$1"*.tau; do
    for file in "$folder"/profile.* "$folder"/*/profile.*; do
      [ -e "$file" ] || continue
      file=${file#"$folder"/}
      mv "$folder/$file" "${folder%.tau}.${file//\//.}" || exit
    done
  done
}
