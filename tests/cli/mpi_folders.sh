#!/bin/sh
# Every mpirun that is started has a folder of its own for what it keeps, so that several at once do
# not meet in one; it is gone when the run has ended, or was stopped. A user's own choice stands.
set -eu
. tests/support.sh
export ASAN_OPTIONS=detect_leaks=0 # Open MPI's own
real=$(command -v mpirun) || { echo "skipped: there is no mpirun"; exit 77; }
runtime=$(dirname "$MESHWRIGHT")/meshwright-run
export MESHWRIGHT_RUN="$runtime" MESHWRIGHT_DATA="$PWD"
cd "$temp"
unset OMPI_MCA_orte_tmpdir_base
mkdir kept bin mine
TMPDIR=$temp/kept
export TMPDIR

# nothing_left CLAIM
nothing_left() {
    [ -z "$(ls -A kept)" ] || fail "$1: left behind: $(ls -A kept)"
}

# An mpirun that says where it keeps what.
cat >bin/mpirun <<END
#!/bin/sh
[ "\$1" = --version ] || echo "\$OMPI_MCA_orte_tmpdir_base" >>"$temp/where"
exec "$real" "\$@"
END
chmod +x bin/mpirun
path=$PATH
PATH=$temp/bin:$PATH
tiny_job two.json 2 '{"dp": 2, "micro_batch": 1}'
answers 0 run two.json --steps 1
answers 0 run two.json --steps 1
answers 0 profile --device cpu --quick --kind launch -o measured
[ "$(wc -l <where)" -eq 3 ] || fail "mpirun was started $(wc -l <where) times"
[ "$(sort -u where | grep -c "^$temp/kept/meshwright_......\$")" -eq 3 ] || fail "not three folders: $(cat where)"
nothing_left 'two runs and a profile'
rm where
export OMPI_MCA_orte_tmpdir_base="$temp/mine"
answers 0 run two.json --steps 1
answers 0 profile --device cpu --quick --kind launch -o measured-again
[ "$(sort -u where)" = "$temp/mine" ] || fail "not the user's: $(cat where)"
[ -d mine ] || fail "the user's is gone"
unset OMPI_MCA_orte_tmpdir_base
PATH=$path

# Six at once.
runs=''
for i in 1 2 3 4 5 6; do
    "$MESHWRIGHT" run two.json --steps 1 >"stdout.$i" 2>"stderr.$i" &
    runs="$runs $!"
done
i=0
for run in $runs; do
    i=$((i + 1))
    wait "$run" || fail "six at once: exit $?: $(cat "stderr.$i")"
done
nothing_left 'six at once'

# One that is stopped, and a plan that is refused by its processes.
"$MESHWRIGHT" run two.json --steps 100000000 --log steps.jsonl >stdout 2>stderr &
run=$!
for _ in $(seq 100); do
    [ ! -s steps.jsonl ] || break
    sleep 0.1
done
[ -s steps.jsonl ] || fail "the run did not begin: $(cat stderr)"
kill -TERM $run
code=0
wait $run || code=$?
[ "$code" -eq 3 ] || fail "stopped: exit $code: $(cat stderr)"
nothing_left 'one that is stopped'
answers 2 run two.json --data nowhere.txt
nothing_left 'one that is refused'
TMPDIR=$temp/none
answers 3 run two.json
grep -qx "$temp/none: a folder for mpirun cannot be made in it: No such file or directory" stderr ||
    fail "$(cat stderr)"
