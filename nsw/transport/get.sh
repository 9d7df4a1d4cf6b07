resumed=$1 sha256_is_fast=$2
list=$(mktemp) && sums=$(mktemp) || return; trap 'rm -f "$list" "$sums"' EXIT
starts=()
for ((n = 0; n < resumed; n++)); do IFS= read -r -d '' start && starts+=("$start") || return; done
cat >"$list"
xargs -0 stat --printf '%F\t%s\t%n\0' -- <"$list" || return
openssl_hashes() { set -o pipefail; xargs -0 openssl dgst -sha256 -binary <"$list" | od -An -v -tx1 -w32 | tr -d ' '; }
command -v openssl >/dev/null && grep -qwm 1 -e sha_ni -e sha2 /proc/cpuinfo 2>/dev/null || sha256_is_fast=
if [ -n "$sha256_is_fast" ]; then hash=sha256; openssl_hashes >"$sums" &
elif command -v b2sum >/dev/null; then hash=blake2b; xargs -0 b2sum -- <"$list" >"$sums" &
elif command -v openssl >/dev/null; then hash=sha256; openssl_hashes >"$sums" &
else hash=sha256; xargs -0 sha256sum -- <"$list" >"$sums" & fi
printf '%s\0' "$hash"
exec 5<"$list"
for start in "${starts[@]}"; do
  IFS= read -r -d '' file <&5 || return
  tail -c "+$((start + 1))" -- "$file" || return
done
xargs -0 -r cat -- <&5 || return
wait $! || return
sed 's/^\\//; s/ .*//' <"$sums" | tr '\n' '\0'
