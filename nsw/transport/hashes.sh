mapfile -t -d '' files
for file in "${files[@]}"; do
  sum=
  [ -f "$file" ] && [ ! -L "$file" ] && sum=$(sha256sum <"$file")
  printf '%s\0' "${sum%% *}"
done
:
