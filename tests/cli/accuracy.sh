#!/bin/sh
# The accuracy that there is cannot be lost silently: each main figure has a bar a little above it.
# The measurements have grown by half since docs/accuracy.md was written, by families that no fit has
# seen: bars of all of them are above that page's figures.
# Skips where the published measurements are not.
set -eu

scorer=../shared/tools/score_training.py
rows=../shared/data/training_open.jsonl
if [ ! -f "$scorer" ] || [ ! -f "$rows" ]; then
    echo "skipped: the published measurements are not here"
    exit 77
fi

. tests/support.sh
python3 "$scorer" "$rows" --bin "$MESHWRIGHT" --all --json >"$temp/scores"
python3 - "$temp/scores" <<'EOF'
import json
import sys

# A family may have rows of both sets: those whose settings are all stated come first.
rows = {}
for row in json.load(open(sys.argv[1])):
    rows.setdefault(row["family"], row)
whole, assumed = rows["ALL stated"], rows["ALL assumed"]
bars = [("cases", whole["cases"] >= 500, whole["cases"]),
        ("refused", whole["refused"] == 0, whole["refused"]),
        ("said not to fit", whole["said_oom"] <= 0.02 * whole["cases"], whole["said_oom"]),
        ("mean of families", whole["mean_of_families"] < 0.063, whole["mean_of_families"]),
        ("mean of cases", whole["mape"] < 0.067, whole["mape"]),
        ("median", whole["median"] < 0.048, whole["median"]),
        ("90th percentile", whole["p90"] < 0.142, whole["p90"]),
        ("bias", abs(whole["bias"]) < 0.01, whole["bias"]),
        ("in the 80 % interval", 0.75 <= whole["inside80"] <= 0.88, whole["inside80"]),
        ("regret", whole["regret"] < 0.030, whole["regret"]),
        ("order of configurations, tau", whole["tau"] > 0.60, whole["tau"]),
        ("assumed settings, mean of families", assumed["mean_of_families"] < 0.103,
         assumed["mean_of_families"]),
        ("assumed settings, in the 80 % interval", 0.75 <= assumed["inside80"] <= 0.88,
         assumed["inside80"]),
        ("assumed settings, order", assumed["tau"] >= 0.67, assumed["tau"]),
        ("memory of simumax-b200", rows["simumax-b200"]["mem_mape"] <= 0.005,
         rows["simumax-b200"]["mem_mape"]),
        ("memory of simumax-b200, worst", rows["simumax-b200"]["mem_max"] <= 0.015,
         rows["simumax-b200"]["mem_max"]),
        ("memory of torchtitan", rows["torchtitan"]["mem_mape"] < 0.06,
         rows["torchtitan"]["mem_mape"])]
for family, bar in [("fms-fsdp", 0.070), ("internevo", 0.058), ("korthikanti-mlsys23", 0.033),
                    ("megatron-sc21", 0.029), ("mosaicml-llm-foundry", 0.044),
                    ("nemo-24.05-h100", 0.040), ("simumax-b200", 0.045), ("torchtitan", 0.063),
                    ("vtrain-single", 0.083)]:
    bars.append((family, rows[family]["mape"] < bar, rows[family]["mape"]))
for name, held, figure in bars:
    print("ok    " if held else "MISSED", name, figure)
sys.exit(any(not held for _, held, _ in bars))
EOF
