#!/bin/sh
# `validate` and the scorer of docs/accuracy.md say the same of the same measurements. Skips where
# those are not here (SCORER and TRAINING_ROWS name them, as for tools/figures/accuracy.sh).
set -eu

scorer=${SCORER:-../shared/tools/score_training.py}
rows=${TRAINING_ROWS:-../shared/data/training_open.jsonl}
converter=$(dirname "$scorer")/training_cases.py
if [ ! -f "$scorer" ] || [ ! -f "$converter" ] || [ ! -f "$rows" ]; then
    echo "skipped: the published measurements are not here"
    exit 77
fi

. tests/support.sh
python3 "$converter" "$rows" >"$temp/cases.jsonl"
python3 "$scorer" "$rows" --bin "$MESHWRIGHT" --all --json >"$temp/theirs.json"
"$MESHWRIGHT" validate --data "$temp/cases.jsonl" --all --json >"$temp/ours.json"
python3 - "$temp/theirs.json" "$temp/ours.json" <<'END'
import json
import sys

theirs, ours = (json.load(open(path)) for path in sys.argv[1:])
# The scorer's key, then ours.
KEYS = {"cases": "num_cases", "refused": "num_refused", "said_oom": "num_misfits", "mape": "mape_frac",
        "median": "median_frac", "p90": "p90_frac", "bias": "bias_frac", "inside80": "inside_interval_frac",
        "mem_n": "num_memory", "mem_mape": "memory_mape_frac", "mem_max": "memory_max_frac",
        "jobs": "num_jobs", "tau": "kendall_tau", "regret": "regret_frac"}

rows = []
for part in (ours["stated"], ours["assumed"]):
    for score in [*part["families"], {**part["all"], "family": "ALL"}]:
        rows.append(score)
    rows[-1]["mean_of_families"] = part["mean_of_families_frac"]
different = []
for their, our in zip(theirs, rows, strict=True):
    if their["family"].split()[0] != our["family"]:
        different.append((their["family"], our["family"]))
    for key, our_key in [*KEYS.items(), ("mean_of_families", "mean_of_families")]:
        a, b = their.get(key), our.get(our_key)
        a, b = a or 0, b or 0  # absent, null and no case
        if abs(a - b) > 1e-9 * max(1, abs(a)):
            different.append((their["family"], key, a, b))
print(f"{len(rows)} lines compared")
for line in different:
    print("DIFFERENT", *line)
sys.exit(bool(different))
END
