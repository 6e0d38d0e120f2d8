#!/bin/sh
# Renews the tables of docs/accuracy.md, predictions of published steps by `meshwright validate`, and
# those of docs/calibration.md, one step calibrated by another (`validate --pairs`), and the scores
# that reports show (published/accuracy.json).
#
# usage: tools/figures/accuracy.sh [PROGRAM]
#        tools/figures/accuracy.sh --by kind,gpu,tp [PROGRAM]
# The second renews nothing: it prints bias and mean error of the kinds of models, GPUs and degrees of
# tensor parallelism with 15 rows and more, in view and with each row's family left out of the fit.
# The bundled set is always there. The larger set is not part of this repository; TRAINING_ROWS names
# it and TRAINING_CASES the program that turns its rows into cases (default: training_open.jsonl and
# training_cases.py of a folder `shared` beside the project). Without it its tables stay as they are.
set -eu

by=
if [ "${1-}" = --by ]; then
    [ $# -ge 2 ] || {
        echo "accuracy.sh: --by needs names: kind, gpu, tp, joined by commas" >&2
        exit 2
    }
    by=$2
    shift 2
fi
root=$(cd "$(dirname "$0")/../.." && pwd)
program=${1:-$root/build/meshwright}
cases=${TRAINING_CASES:-$root/../shared/tools/training_cases.py}
rows=${TRAINING_ROWS:-$root/../shared/data/training_open.jsonl}
page=$root/docs/accuracy.md

folder=$(mktemp -d)
trap 'rm -rf "$folder" "$root"/docs/*.md.new' EXIT

# Bias and mean error of the groups $2 of the steps in the file $1.
groups() {
    "$program" calibrate --steps "$1" --by "$2" | sed -n '/^Bias and mean error of groups/,/^$/p'
}

if [ -n "$by" ]; then
    steps=$root/published/training.jsonl
    if [ -f "$cases" ] && [ -f "$rows" ]; then
        steps=$folder/cases.jsonl
        python3 "$cases" "$rows" >"$steps"
    fi
    groups "$steps" "$by"
    exit
fi

# Puts the file $2 between the marks of table $1 of the page.
renew() {
    awk -v table="$2" -v name="$1" '
        $0 == "<!-- " name " begins -->" {
            print; print "```"; while ((getline line < table) > 0) print line; print "```"; skip = 1
        }
        $0 == "<!-- " name " ends -->" { skip = 0 }
        !skip && $0 != "<!-- " name " begins -->"
    ' "$page" >"$page.new"
    mv "$page.new" "$page"
}

# Whether one step calibrates another; that it does not help is an answer, too.
pairs() {
    "$program" validate --pairs "$@" 2>"$folder/verdict" && return
    grep -q "does not make predictions better" "$folder/verdict" || { cat "$folder/verdict" >&2; exit 1; }
}

"$program" validate --worst 0 >"$folder/bundled"
renew bundled "$folder/bundled"
"$program" validate --json >"$folder/bundled.json"
larger=
pairs >"$folder/bundled-pairs"
if [ -f "$cases" ] && [ -f "$rows" ]; then
    python3 "$cases" "$rows" >"$folder/cases.jsonl"
    "$program" validate --data "$folder/cases.jsonl" --worst 0 >"$folder/stated"
    "$program" validate --data "$folder/cases.jsonl" --worst 10 | sed -n '/^Largest errors/,$p' >"$folder/worst"
    "$program" validate --data "$folder/cases.jsonl" --all --worst 0 | sed -n '/^$/,$p' | sed 1d >"$folder/assumed"
    groups "$folder/cases.jsonl" kind,gpu,tp | sed '/^$/d' >"$folder/groups"
    for table in groups stated worst assumed; do renew $table "$folder/$table"; done
    larger=$folder/stated.json
    "$program" validate --data "$folder/cases.jsonl" --json >"$larger"
    pairs --data "$folder/cases.jsonl" >"$folder/pairs"
    page=$root/docs/calibration.md
    renew pairs "$folder/pairs"
    echo "docs/accuracy.md, docs/calibration.md: all tables renewed" >&2
else
    echo "docs/accuracy.md, docs/calibration.md: tables of the bundled set renewed; the larger set is not here" >&2
fi
page=$root/docs/calibration.md
renew bundled-pairs "$folder/bundled-pairs"
python3 "$root/tools/figures/accuracy_data.py" "$root/published/accuracy.json" \
    "The larger set=$larger" "The bundled set=$folder/bundled.json"
