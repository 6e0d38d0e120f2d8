#!/bin/sh
# What simulate makes of a simulator that is killed, interrupted, late or without memory in the
# middle of its work, and of its own end: exit code 3 and one sentence, no answer, no part of a
# trace, and no process left. (sim_process.sh has simulators that only play one; sim_disturb.sh
# those with runs of their own.)
set -eu
if [ ! -x "$MESHWRIGHT" ] || [ ! -x "$MESHWRIGHT_SIM" ]; then exit 77; fi
[ -r "/proc/$$/task/$$/children" ] || exit 77
. tests/support.sh
unset MESHWRIGHT_SIM
cd "$temp"

# A simulation of some seconds.
cat >job.json <<'END'
{"schema": 1, "model": "llama-3.1-70b", "cluster": "dgx-h100:512",
 "training": {"seq_len": 8192, "global_batch": 8192, "precision": "bf16"},
 "parallel": {"tp": 1, "pp": 8, "vpp": 5}}
END
program=
trap '[ -z "$program" ] || kill -KILL "$program" 2>/dev/null || true
    rm -rf "$temp"; [ $num_refusals_missed -eq 0 ] || exit 1' EXIT

# Starts a simulation with the options given and waits until the simulator is at work: program and
# simulator are their process ids.
start() {
    env --default-signal=INT,TERM "$MESHWRIGHT" simulate job.json --json --fold none \
        --trace trace.json --trace-ranks all "$@" >out 2>err &
    program=$!
    simulator=
    while [ -z "$simulator" ] && is_alive $program; do
        sleep 0.05
        simulator=$(children_of $program)
    done
    simulator=${simulator% }
    sleep 0.3
}

# ends CODE SENTENCE: the program, and its simulator.
ends() {
    rc=0
    wait $program || rc=$?
    if [ $rc -ne "$1" ] || [ -s out ] || [ "$(tail -n 1 err)" != "$2" ]; then
        fail "expected $1, $2; it was $rc: $(cat err)"
    fi
    program=
    # shellcheck disable=SC2086 # a list of processes
    ended "$2" $simulator
    [ -z "$(find . -name 'trace.json*')" ] || fail "$2: a trace is left"
}

start
kill -KILL "$simulator"
ends 3 'the simulator crashed: Killed'
start
kill -ABRT "$simulator"
ends 3 'the simulator crashed: Aborted'
for signal in INT TERM; do
    start
    kill -$signal $program
    ends 3 'interrupted: no answer'
done
start --timeout 0.5
ends 3 'the simulator was stopped after 0.5 s (--timeout)'
start
kill -KILL $program
ends 137 "$(tail -n 1 err)"

# Without memory, at several moments of its work. Sanitizers need more than can be limited.
prlimit --as=1000000000 "$MESHWRIGHT" simulate --help >/dev/null 2>&1 || exit 0
cat >job.json <<'END'
{"schema": 1, "model": "llama-3.1-70b", "cluster": "dgx-h100:128",
 "training": {"seq_len": 8192, "global_batch": 1024, "precision": "bf16"},
 "parallel": {"tp": 8, "pp": 8}}
END
for limit_kb in 50000 60000 70000 80000 90000 100000; do
    rc=0
    prlimit --as=${limit_kb}000 "$MESHWRIGHT" simulate job.json --fold none --json \
        --trace trace.json >out 2>err || rc=$?
    if [ $rc -ne 3 ] || [ -s out ] || ! tail -n 1 err | grep -q 'out of memory'; then
        fail "$limit_kb kB: exit $rc, $(cat err)"
    fi
    [ -z "$(find . -name 'trace.json*')" ] || fail "$limit_kb kB: a trace is left"
done
