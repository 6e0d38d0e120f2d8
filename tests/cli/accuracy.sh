#!/bin/sh
# The figures of docs/accuracy.md cannot be lost silently: each main one has a bar a little above it.
# Skips where the published measurements are not.
set -eu

scorer=../shared/tools/score_training.py
rows=../shared/data/training_open.jsonl
if [ ! -f "$scorer" ] || [ ! -f "$rows" ]; then
    echo "skipped: the published measurements are not here"
    exit 77
fi

. tests/support.sh
python3 "$scorer" "$rows" --bin "$MESHWRIGHT" --json >"$temp/scores"
python3 - "$temp/scores" <<'EOF'
import json
import sys

rows = {row["family"]: row for row in json.load(open(sys.argv[1]))}
whole = rows["ALL stated"]
bars = [("cases", whole["cases"] >= 500, whole["cases"]),
        ("refused", whole["refused"] == 0, whole["refused"]),
        ("said not to fit", whole["said_oom"] <= 2, whole["said_oom"]),
        ("mean of families", whole["mean_of_families"] < 0.050, whole["mean_of_families"]),
        ("mean of cases", whole["mape"] < 0.058, whole["mape"]),
        ("median", whole["median"] < 0.045, whole["median"]),
        ("memory of simumax-b200", rows["simumax-b200"]["mem_mape"] <= 0.005,
         rows["simumax-b200"]["mem_mape"]),
        ("memory of simumax-b200, worst", rows["simumax-b200"]["mem_max"] <= 0.015,
         rows["simumax-b200"]["mem_max"]),
        ("memory of torchtitan", rows["torchtitan"]["mem_mape"] < 0.06,
         rows["torchtitan"]["mem_mape"])]
for family, bar in [("fms-fsdp", 0.048), ("internevo", 0.058), ("korthikanti-mlsys23", 0.033),
                    ("megatron-sc21", 0.029), ("mosaicml-llm-foundry", 0.055),
                    ("nemo-24.05-h100", 0.040), ("simumax-b200", 0.045), ("torchtitan", 0.073),
                    ("vtrain-single", 0.083)]:
    bars.append((family, rows[family]["mape"] < bar, rows[family]["mape"]))
for name, held, figure in bars:
    print("ok    " if held else "MISSED", name, figure)
sys.exit(any(not held for _, held, _ in bars))
EOF
