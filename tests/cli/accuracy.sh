#!/bin/sh
# The figures of docs/accuracy.md cannot be lost silently: no stated case refused, mean of families
# and the share said not to fit within their bars. Skips where the published measurements are not.
set -eu

scorer=../shared/tools/score_training.py
rows=../shared/data/training_open.jsonl
if [ ! -f "$scorer" ] || [ ! -f "$rows" ]; then
    echo "skipped: the published measurements are not here"
    exit 77
fi

scores=$(mktemp)
trap 'rm -f "$scores"' EXIT
python3 "$scorer" "$rows" --bin "$MESHWRIGHT" --json >"$scores"
python3 - "$scores" <<'EOF'
import json
import sys

rows = {row["family"]: row for row in json.load(open(sys.argv[1]))}
whole = rows["ALL stated"]
bars = [("cases", whole["cases"] >= 500, whole["cases"]),
        ("refused", whole["refused"] == 0, whole["refused"]),
        ("said not to fit", whole["said_oom"] <= 0.03 * whole["cases"], whole["said_oom"]),
        ("mean of families", whole["mean_of_families"] < 0.13, whole["mean_of_families"]),
        ("megatron-sc21", rows["megatron-sc21"]["mape"] < 0.06, rows["megatron-sc21"]["mape"]),
        ("memory of simumax-b200", rows["simumax-b200"]["mem_mape"] <= 0.005,
         rows["simumax-b200"]["mem_mape"]),
        ("memory of simumax-b200, worst", rows["simumax-b200"]["mem_max"] <= 0.015,
         rows["simumax-b200"]["mem_max"]),
        ("memory of torchtitan", rows["torchtitan"]["mem_mape"] < 0.06,
         rows["torchtitan"]["mem_mape"])]
for name, held, figure in bars:
    print("ok    " if held else "MISSED", name, figure)
sys.exit(any(not held for _, held, _ in bars))
EOF
