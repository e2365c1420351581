#!/usr/bin/env bash
# Keeps time stamps of sources by their content, so that a new clone need not build again what another one has built.
#   begin    notes the sources that ./test is about to build
#   keep     at its end: they count as built, unless one of them was edited meanwhile
#   adopt    in another clone: a file with the same content gets the same time stamp, every other one that of now
#   forget   something else is about to be built, so that nothing is known any more
# To be run at the root of the clone, with CARGO_TARGET_DIR set.
set -euo pipefail
built=$CARGO_TARGET_DIR/sources
begun=$built.begun

# Each file in a line: its hash, its time stamp, its name.
list() {
  join -j 2 -o 1.1,2.1,0 \
    <(find crates testing xtask docs examples ./*.toml -type f -print0 | sort -z | xargs -0 sha256sum | sed 's/  / /' | sort -k 2,2) \
    <(find crates testing xtask docs examples ./*.toml -type f -printf '%T@ %p\n' | sort -k 2,2)
}

adopt() {
  local known now
  known=$(mktemp)
  [ ! -f "$built" ] || cp "$built" "$known"
  now=$(date +@%s.%N)
  list | awk -v now="$now" '
    NR == FNR { stamp[$3, $1] = "@" $2; next }
    { print (($3, $1) in stamp ? stamp[$3, $1] : now), $3 }' "$known" - |
    while read -r stamp file; do touch -d "$stamp" "$file"; done
  rm "$known"
}

case $1 in
  begin) list >"$begun" ;;
  keep) if [ "$(list)" = "$(cat "$begun")" ]; then mv "$begun" "$built"; fi ;;
  adopt) adopt ;;
  forget) rm -f "$built" ;;
esac
