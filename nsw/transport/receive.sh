set -e; umask 077
folder=$1 modes=() targets=()
mkdir -p -- "$folder"; trap 'rm -rf -- "$folder"' EXIT
while IFS= read -r -d '' size && [ "$size" != end ]; do
  IFS= read -r -d '' mode; IFS= read -r -d '' target
  head -c "$size" >"$folder/${#targets[@]}"
  modes+=("$mode") targets+=("$target")
done
[ "$size" = end ]
for n in "${!targets[@]}"; do
  target=${targets[n]}
  parent=${target%/*}    # each process that is started costs more than a small file
  [ "$target" = "$parent" ] || [ -d "$parent" ] || mkdir -p -- "$parent"
  chmod "${modes[n]}" "$folder/$n"
  mv -fT -- "$folder/$n" "$target"
done
