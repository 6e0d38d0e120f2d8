#!/bin/sh
# What README.md prints is what the program prints: the lines of its output, but for those that
# stand for others (...) and the path of the folder.
set -eu
. tests/support.sh

sed -n '/^<!-- output begins -->/,/^<!-- output ends -->/p' README.md >"$temp/block"
grep '^\$ build/meshwright' "$temp/block" >"$temp/commands" || fail "README.md: no output"
grep -v -e '^[$<`]' -e '^\.\.\.$' "$temp/block" | sed "s|build/demo|$temp/demo|" >"$temp/expected"

while read -r _ _ arguments; do
    # shellcheck disable=SC2046 # words
    "$MESHWRIGHT" $(echo "$arguments" | sed "s|build/demo|$temp/demo|g") </dev/null
done <"$temp/commands" >"$temp/printed" 2>"$temp/said" || fail "$(cat "$temp/said")"

grep -vxFf "$temp/printed" "$temp/expected" >"$temp/missing" || true
[ -s "$temp/expected" ] || fail "README.md: no lines of output"
[ ! -s "$temp/missing" ] || fail "not printed, but in README.md:
$(cat "$temp/missing")"
