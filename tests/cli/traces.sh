#!/bin/sh
# Traces of plans and simulations: JSON that Perfetto opens, named tracks, no overlaps.
set -eu
command -v python3 >/dev/null || exit 77
. tests/support.sh
cd "$temp"

cat >check.py <<'END'
import json, sys

path, processes, least = sys.argv[1], sys.argv[2].split(","), int(sys.argv[3])
trace = json.load(open(path))
assert trace["displayTimeUnit"] == "ms"
names, tracks = {}, {}
for event in trace["traceEvents"]:
    place = event["pid"], event["tid"]
    if event["ph"] == "M":
        names.setdefault(place, {}).update({event["name"]: event["args"]})
        continue
    assert event["ph"] == "X" and event["ts"] >= 0 and event["dur"] >= 0 and event["name"]
    start = round(event["ts"] * 1000)
    tracks.setdefault(place, []).append((start, -start - round(event["dur"] * 1000)))
found = [name["process_name"]["name"] for name in names.values() if "process_name" in name]
assert found == processes, found
num_slices = 0
for place, slices in tracks.items():
    assert "name" in names[place]["thread_name"] and "sort_index" in names[place]["thread_sort_index"]
    enclosing = []
    for start, end in sorted(slices):
        num_slices += 1
        while enclosing and enclosing[-1] <= start:
            enclosing.pop()
        assert not enclosing or -end <= enclosing[-1], (names[place], start, -end, enclosing)
        enclosing.append(-end)
assert num_slices >= least, num_slices
# The last slice is the host's, and the trace of the estimate ends with its step.
hosts = [e for e in trace["traceEvents"] if e["name"] == "host" and e["ph"] == "X"]
assert [e["pid"] for e in hosts] == list(range(1, len(processes) + 1)), hosts
last = max(e["ts"] + e["dur"] for e in trace["traceEvents"] if e["ph"] == "X" and e["pid"] == 1)
assert abs(last - hosts[0]["ts"] - hosts[0]["dur"]) < 0.01
step_us = 1e6 * json.load(open(sys.argv[4]))["step_time_s"]
assert abs(last - step_us) < 0.01, (last, step_us)
END

# job PARALLEL
job() {
    cat >job.json <<END
{"schema": 1, "model": "mixtral-8x7b", "cluster": "dgx-h100:2",
 "training": {"seq_len": 2048, "global_batch": 32, "precision": "bf16"}, "parallel": {$1}}
END
}

job '"tp": 2, "pp": 4, "vpp": 2, "ep": 2'
"$MESHWRIGHT" plan job.json -o out >/dev/null
"$MESHWRIGHT" estimate out/plan.json --json >estimate.json
python3 check.py out/trace.json estimate 200 estimate.json

[ -x "$MESHWRIGHT_SIM" ] || exit 0
for parallel in '"tp": 2, "pp": 4, "vpp": 2, "ep": 2' '"tp": 2, "pp": 4, "schedule": "gpipe"' \
    '"tp": 2, "pp": 4, "schedule": "zb-h1"' \
    '"tp": 8' '"tp": 2, "ep": 4, "zero_stage": 0' '"tp": 1, "pp": 2, "recompute": "full"'; do
    job "$parallel"
    "$MESHWRIGHT" estimate job.json --json >estimate.json 2>/dev/null || [ $? -eq 1 ] # too large
    "$MESHWRIGHT" simulate job.json --trace trace.json >/dev/null
    python3 check.py trace.json estimate,simulation 20 estimate.json
    "$MESHWRIGHT" simulate job.json --trace trace.json --operators >/dev/null
    python3 check.py trace.json estimate,simulation 500 estimate.json
done
# Nothing else is left beside the trace.
[ "$(find . -name '*tmp*')" = "" ]
