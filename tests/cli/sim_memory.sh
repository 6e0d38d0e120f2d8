#!/bin/sh
# A trace of every GPU of a large job is streamed: neither program takes more memory for it, and
# whoever stops it while it is written gets no half of it.
set -eu
if [ ! -x "$MESHWRIGHT" ] || [ ! -x "$MESHWRIGHT_SIM" ]; then exit 77; fi
command -v python3 >/dev/null || exit 77
. tests/support.sh
cd "$temp"
# A sanitizer keeps what is freed; not so much of it.
export ASAN_OPTIONS="${ASAN_OPTIONS-}${ASAN_OPTIONS:+:}quarantine_size_mb=1"
cat >job.json <<'END'
{"schema": 1, "model": "llama-3.1-70b", "cluster": "dgx-h100:128",
 "training": {"seq_len": 8192, "global_batch": 1024, "precision": "bf16"},
 "parallel": {"tp": 8, "pp": 8}}
END

# peak OPTIONS...: the most memory that either program had, kB.
peak() {
    python3 - "$MESHWRIGHT" simulate job.json --fold none --json "$@" <<'END'
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
END
}

# main_peak OPTIONS...: the same of the main program alone: the simulator answers from a file.
main_peak() {
    MESHWRIGHT_SIM=$temp/replay peak "$@"
}
real=$MESHWRIGHT_SIM
cat >replay <<END
#!/bin/sh
cat >/dev/null
case \$* in
*--all-times*) cat times >&3 ;;
esac
exec cat answer
END
chmod +x replay
cat >record <<END
#!/bin/sh
"$real" "\$@" >answer 3>times
END
chmod +x record
MESHWRIGHT_SIM=$temp/record "$MESHWRIGHT" simulate job.json --fold none --json --trace t.json \
    --trace-ranks all >/dev/null 2>&1 || true # it hears nothing
if [ ! -s answer ] || [ ! -s times ]; then fail "no answer is recorded"; fi

without=$(peak)
# The bar of docs/simulation.md. Sanitizers, which need more than this, take more.
if prlimit --as=1000000000 "$MESHWRIGHT" simulate --help >/dev/null 2>&1; then
    [ "$without" -lt 80000 ] || fail "peak memory: $without kB"
fi
with=$(peak --trace trace.json --trace-ranks all)
[ "$(wc -c <trace.json)" -gt 50000000 ] || fail "not much of a trace: $(wc -c <trace.json) bytes"
[ "$with" -lt $((without + without / 20)) ] || fail "peak memory: $without kB, with a trace $with kB"
rm trace.json
without=$(main_peak)
with=$(main_peak --trace trace.json --trace-ranks all)
[ "$with" -lt $((without + 4000)) ] || fail "main program: $without kB, with a trace $with kB"

# Stopped while it is being written: its folder holds a new file, or one without a name.
for signal in INT TERM KILL; do
    rm -f trace.json
    env --default-signal=INT MESHWRIGHT_SIM="$temp/replay" "$MESHWRIGHT" simulate job.json --json \
        --trace trace.json --trace-ranks all --fold none >out 2>err &
    program=$!
    writing=
    while [ -z "$writing" ] && kill -0 $program 2>/dev/null; do
        writing=$(find "/proc/$program/fd" -lname "$temp/#*" -o -lname "$temp/trace.json.tmp*" \
            2>/dev/null || true)
    done
    kill -$signal $program
    rc=0
    wait $program || rc=$?
    [ -z "$(find . -name 'trace.json*')" ] || fail "SIG$signal: a trace is left"
    [ $signal = KILL ] && continue
    if [ $rc -ne 3 ] || [ -s out ] || [ "$(cat err)" != "interrupted: no answer" ]; then
        fail "SIG$signal: exit $rc, $(cat err)"
    fi
done
