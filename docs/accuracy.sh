#!/bin/sh
# Scores `meshwright estimate` on published measurements and writes the table into docs/accuracy.md.
#
# usage: docs/accuracy.sh [PROGRAM]
# The measurements and the scorer are not part of this repository; TRAINING_ROWS and SCORER name
# them (default: training_open.jsonl and score_training.py of a folder `shared` beside the project).
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
program=${1:-$root/build/meshwright}
scorer=${SCORER:-$root/../shared/tools/score_training.py}
rows=${TRAINING_ROWS:-$root/../shared/data/training_open.jsonl}
page=$root/docs/accuracy.md

if [ ! -f "$scorer" ] || [ ! -f "$rows" ]; then
    echo "accuracy: the published measurements are not here; set SCORER and TRAINING_ROWS" >&2
    exit 3
fi

table=$(mktemp)
trap 'rm -f "$table" "$page.new"' EXIT
{
    echo '```'
    python3 "$scorer" "$rows" --bin "$program"
    echo '```'
} >"$table"
awk -v table="$table" '
    /^<!-- table begins/ { print; while ((getline line < table) > 0) print line; skip = 1 }
    /^<!-- table ends/ { skip = 0 }
    !skip || /^<!-- table/ && !done[$0]++ && !skip { print }
' "$page" >"$page.new"
mv "$page.new" "$page"
echo "docs/accuracy.md: table renewed" >&2
