#!/bin/sh
# Fits the parameters of whole steps to published measurements, and writes those of GPUs
# (full_rate_watts, light_rate_watts and, where a file states it, power_exponent in
# hw-profiles/gpus, with their sources) and the spreads of the
# interval (hw-profiles/steps.json) into the data files. Those of stacks are only printed.
#
# usage: tools/figures/whole_steps.sh PROGRAM ROWS.jsonl [ARCHITECTURE...]
#        (rows as `meshwright validate --data` takes them; GPUs of other architectures are left alone)
# PROGRAM must be built from this source tree. Twice in a row changes nothing but the last digit.
set -eu

[ $# -ge 2 ] || {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
root=$(cd "$(dirname "$0")/../.." && pwd)
fit=$(mktemp)
trap 'rm -f "$fit"' EXIT
program=$1 rows=$2
shift 2
"$program" calibrate --steps "$rows" --json >"$fit"
python3 - "$fit" "$*" "$root"/hw-profiles/gpus/*.json <<'EOF'
import json
import re
import sys
from math import inf

# Of which GPU of an architecture the rows are; the others are scaled from it by bf16 peak.
REFERENCE = {"ampere": "a100-sxm-80g", "hopper": "h100-sxm-80g", "blackwell": "b200-sxm-180g"}
WITH_ROWS = ("a100-sxm", "h100-sxm-80g", "h200", "b200", "b300", "gb200", "gb300")
KEYS = ("full_rate_watts", "light_rate_watts", "power_exponent")
LARGEST = {"power_exponent": 1}

fit = json.load(open(sys.argv[1]))
fitted = {(p["parameter"], p["architecture"]): p for p in fit["parameters"] if "architecture" in p}
architectures = sys.argv[2].split() or list(REFERENCE)
texts = {path: open(path).read() for path in sys.argv[3:]}
gpus = {path: json.loads(text) for path, text in texts.items()}
by_name = {gpu["name"]: gpu for gpu in gpus.values()}


def digits(value):
    return float("%.3g" % value)


def value_and_source(gpu, key):
    row = fitted.get((key, gpu["architecture"]))
    if not row:
        value = gpu["efficiency"][key]
        return value, ("estimate: %.2g times the board's power; no published step of this "
                       "architecture is among the rows of tools/figures/whole_steps.sh, and those that are "
                       "fitted draw 1.2 to 3.5 times theirs" % (value / gpu["power_watts"]))
    reference = by_name[REFERENCE[gpu["architecture"]]]
    value = digits(min(LARGEST.get(key, inf), reference["efficiency"][key] * row["factor"]))
    how = ("fitted by meshwright calibrate --steps (tools/figures/whole_steps.sh) to %d published steps of "
           "%d families; spread %.0f %% over families left out"
           % (row["num_rows"], row["num_families"], 100 * row["spread"]))
    if gpu["name"].startswith(WITH_ROWS):
        return value, how + "; one value for the GPUs of this architecture that have rows"
    peak = gpu["peak_flops_per_s"]["bf16"] / reference["peak_flops_per_s"]["bf16"]
    return (digits(value * peak), "that of %s (%s), scaled by bf16 peak: the same energy per flop; "
            "no steps of this GPU" % (reference["name"], how))


for path, gpu in gpus.items():
    if gpu["architecture"] not in architectures:
        continue
    text = texts[path]
    for key in KEYS:
        if key not in gpu["efficiency"]:
            continue
        value, source = value_and_source(gpu, key)
        text = re.sub(r'("%s": )[0-9.e+]+' % key, lambda m: m.group(1) + "%.15g" % value, text)
        text = re.sub(r'("%s": )"[^"]*"' % key, lambda m: m.group(1) + json.dumps(source), text)
    open(path, "w").write(text)
EOF
"$program" calibrate --steps "$rows" -o "$root/hw-profiles/steps.json"
