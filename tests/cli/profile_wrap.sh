#!/bin/sh
# profile --wrap of a program without CUDA: what is missing is said, and nothing is left behind.
set -eu
. tests/support.sh

run_program profile -o "$temp/out" --wrap true
case $(cat "$temp/stderr") in
*"is not installed"*)
    echo "skipped: libmeshwright-wrap.so is not built, which needs the CUDA toolkit 13 with CUPTI"
    exit 77
    ;;
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

# A request to end is the program's too: it says so and ends, and we after it.
cat >"$temp/ends" <<'END'
#!/bin/sh
trap 'echo asked >"$1"; exit 7' TERM
echo ready >"$1"
while :; do sleep 0.05; done
END
chmod +x "$temp/ends"
"$MESHWRIGHT" profile -o "$temp/ended" --wrap "$temp/ends" "$temp/said" 2>"$temp/stderr" &
for _ in $(seq 100); do
    [ -s "$temp/said" ] && break
    sleep 0.05
done
kill -TERM $!
rc=0
wait $! || rc=$?
[ $rc -eq 3 ] || fail "exit $rc, not 3: $(cat "$temp/stderr")"
[ "$(cat "$temp/said")" = asked ] || fail "the program was not asked to end"
grep -q '(exit status 7)' "$temp/stderr" || fail "$(cat "$temp/stderr")"
[ ! -e "$temp/ended" ] || fail "left behind: $(ls "$temp/ended")"
