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
names, tracks, arrows = {}, {}, {}
for event in trace["traceEvents"]:
    place = event["pid"], event["tid"]
    if event["ph"] == "M":
        names.setdefault(place, {}).update({event["name"]: event["args"]})
        continue
    if event["ph"] in "sf":
        assert event["ph"] == "s" or event["bp"] == "e"
        arrows.setdefault(event["id"], []).append((event["ph"], event["ts"], place))
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
# Arrows lead from one track to another of the same process, in time, from slice to slice.
for ends in arrows.values():
    (begin, left, source), (end, arrived, target) = sorted(ends, reverse=True)
    assert (begin, end) == ("s", "f") and left <= arrived, ends
    assert source[0] == target[0] and source[1] != target[1], ends
    for at, place in (left, source), (arrived, target):
        at = round(at * 1000)
        assert any(start <= at <= -end for start, end in tracks[place]), ends
num_sends = sum(e["ph"] == "X" and e["cat"] == "send" for e in trace["traceEvents"])
num_expected = int(sys.argv[5]) if len(sys.argv) > 5 else num_sends
assert len(arrows) == num_expected, (len(arrows), num_expected)
# The last slice is the host's, and each timeline ends with its step.
hosts = [e for e in trace["traceEvents"] if e["name"] == "host" and e["ph"] == "X"]
assert [e["pid"] for e in hosts] == list(range(1, len(processes) + 1)), hosts
for host, answer in zip(hosts, sys.argv[4].split(",")):
    last = max(e["ts"] + e["dur"] for e in trace["traceEvents"]
               if e["ph"] == "X" and e["pid"] == host["pid"])
    assert abs(last - host["ts"] - host["dur"]) < 0.01
    step_us = 1e6 * json.load(open(answer))["step_time_s"]
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
    '"tp": 2, "pp": 4, "schedule": "zb-h1"' '"tp": 2, "pp": 4, "vocab_parallel": true' \
    '"tp": 2, "pp": 4, "schedule": "dualpipe", "vocab_parallel": true' \
    '"tp": 8' '"tp": 2, "ep": 4, "zero_stage": 0' '"tp": 1, "pp": 2, "recompute": "full"'; do
    job "$parallel"
    "$MESHWRIGHT" estimate job.json --json >estimate.json 2>/dev/null || [ $? -eq 1 ] # too large
    "$MESHWRIGHT" simulate job.json --trace trace.json --json >simulation.json
    python3 check.py trace.json estimate,simulation 20 estimate.json,simulation.json
    "$MESHWRIGHT" simulate job.json --trace trace.json --operators >/dev/null
    python3 check.py trace.json estimate,simulation 500 estimate.json,simulation.json
done

# Chosen ranks, folded and not: tp 2, pp 4, dp 2, so 4 ranks a stage, 2 lanes folded, 1 of them fully.
job '"tp": 2, "pp": 4, "ep": 2'
"$MESHWRIGHT" estimate job.json --json >estimate.json 2>/dev/null || [ $? -eq 1 ]
for fold in none tp full; do
    "$MESHWRIGHT" simulate job.json --fold $fold --trace trace.json --json >simulation.json
    "$MESHWRIGHT" simulate job.json --fold $fold --trace trace.json --trace-ranks all >/dev/null
    python3 check.py trace.json estimate,simulation 500 estimate.json,simulation.json
    for rank in 0 5 15; do
        grep -q "\"rank $rank stage $((rank / 4)) compute\"" trace.json || fail "no track of rank $rank"
    done
    # Ranks 3 and 7 are neighbours in one pipeline, 9 is in another: 16 micro-batches there and
    # back in both timelines; of the estimate also between stages 1 and 2.
    "$MESHWRIGHT" simulate job.json --fold $fold --trace trace.json --trace-ranks 9,3-3,7 >/dev/null
    python3 check.py trace.json estimate,simulation 100 estimate.json,simulation.json 96
    grep -o '"rank [0-9]* stage [0-9]* compute"' trace.json | tr '\n' ' ' >tracks
    [ "$(cat tracks)" = '"rank 3 stage 0 compute" "rank 7 stage 1 compute" "rank 9 stage 2 compute" ' ] ||
        fail "$(cat tracks)"
done
refuses 'meshwright: simulate: --trace-ranks needs --trace FILE' simulate job.json --trace-ranks 1
rm trace.json
expected='expected numbers and ranges such as 0-7,64, or all'
for list in '' x 0- -1 ,1 1,,2 '0 1' 1.5; do
    refuses "meshwright: --trace-ranks: \"$list\" is not a list of ranks; $expected" \
        simulate job.json --trace trace.json "--trace-ranks=$list"
done
refuses 'meshwright: --trace-ranks: the range 7-3 ends before it begins' \
    simulate job.json --trace trace.json --trace-ranks 7-3
refuses 'meshwright: --trace-ranks: there is no rank 16; this plan has ranks 0 to 15' \
    simulate job.json --trace trace.json --trace-ranks 0-16
refuses 'meshwright: --trace-ranks: there is no rank 99999999999999999999; this plan has ranks 0 to 15' \
    simulate job.json --trace trace.json --trace-ranks 99999999999999999999
[ ! -e trace.json ] || fail "a refusal left a trace"
# Nothing else is left beside the trace.
[ "$(find . -name '*tmp*')" = "" ]
