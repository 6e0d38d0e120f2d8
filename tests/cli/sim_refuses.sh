#!/bin/sh
# What meshwright-sim says of bad input: one line and the exit code of the contract. Beside the
# refusal of a scenario stands the document that marks it as one, else no output.
set -eu
[ -x "$MESHWRIGHT_SIM" ] || exit 77
. tests/support.sh

# Runs it on the document $3 with the options that follow; expects exit code $1, line $2 and the
# output $output.
says() {
    code=$1
    line=$2
    document=$3
    shift 3
    rc=0
    printf '%s' "$document" | "$MESHWRIGHT_SIM" "$@" >"$temp/out" 2>"$temp/err" || rc=$?
    if [ "$rc" -ne "$code" ] || [ "$(cat "$temp/err")" != "meshwright-sim: $line" ] ||
        [ "$(tr -d '\n\t ' <"$temp/out" | sed 's/"version":"[0-9.]*",//')" != "$output" ]; then
        echo "expected $code, $line; it was $rc:"
        cat "$temp/err" "$temp/out"
        exit 1
    fi
}

job='{"schema": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100:1",
 "training": {"seq_len": 4096, "global_batch": 64, "precision": "bf16"}}'

output='{"schema":1,"refused":true}'
says 2 "job.json: empty; expected one JSON document" "" --file job.json
says 2 "--fold tp is not possible: there is one tensor-parallel rank" "$job" --fold tp
output=
says 2 "--fold all: legal are auto, none, tp, full and approximate" "$job" --fold all
says 2 "--repetitions 0: expected 1 to 1000000" "$job" --repetitions 0
says 2 "--repetitions 2x: expected 1 to 1000000" "$job" --repetitions 2x
says 2 "--nonsense: no such option" "$job" --nonsense
says 2 "job.json: the scenario is read from standard input" "$job" job.json
