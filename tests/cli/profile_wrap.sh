#!/bin/sh
# profile --wrap of a program without CUDA: what is missing is said, and nothing is left behind.
set -eu
. tests/support.sh

run_program profile -o "$temp/out" --wrap true
case $(cat "$temp/stderr") in
*"is not installed"*) exit 77 ;; # built without the CUDA toolkit
*"not supported yet"* | *"is no command"* | *"unknown command"*) exit 77 ;;
esac
[ $rc -eq 3 ] || fail "exit $rc, not 3: $(cat "$temp/stderr")"
expected="nothing was recorded: true did not use CUDA: no process of it initialised the driver with"
grep -q "^$expected our environment\$" "$temp/stderr" || fail "$(cat "$temp/stderr")"
[ ! -s "$temp/stdout" ] || fail "printed: $(cat "$temp/stdout")"
[ ! -e "$temp/out" ] || fail "left behind: $(ls "$temp/out")"

# Folders that were made for it go with their parents; one that was there stays.
answers 3 profile -o "$temp/one//two/three/" --wrap true
[ ! -e "$temp/one" ] || fail "left behind: $(find "$temp/one")"
mkdir "$temp/there"
answers 3 profile -o "$temp/there/new" --wrap true
[ -z "$(ls "$temp/there")" ] || fail "left behind: $(ls "$temp/there")"
answers 3 profile -o "$temp/there" --wrap true
[ -d "$temp/there" ] || fail "removed a folder that was there"
refuses '/nowhere/program: No such file or directory' \
    profile -o "$temp/one/two" --wrap /nowhere/program
[ ! -e "$temp/one" ] || fail "left behind: $(find "$temp/one")"
