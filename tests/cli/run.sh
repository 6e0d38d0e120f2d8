#!/bin/sh
# run: a small model trained on this computer, alone and by two processes, set beside what is
# predicted for the cores; its log calibrates predictions; mistakes are refused before anything runs.
set -eu
. tests/support.sh
export ASAN_OPTIONS=detect_leaks=0 # Open MPI's own
command -v mpirun >/dev/null || { echo "skipped: there is no mpirun"; exit 77; }
cd "$temp"

# loss: that of the last step of the answer.
loss() {
    sed -n 's/^step 6: loss \([0-9.]*\),.*/\1/p' "$temp/stdout"
}

tiny_job one.json 1 '{"micro_batch": 2}'
answers 0 run one.json --steps 6 --log one.jsonl
one=$(loss)
[ -n "$one" ] || fail "no loss in: $(cat "$temp/stdout")"
[ "$(wc -l <one.jsonl)" -eq 6 ] || fail "one.jsonl: not a line a step"

tiny_job two.json 2 '{"dp": 2, "micro_batch": 2}'
answers 0 run two.json --steps 6 --compare
[ "$(loss)" = "$one" ] || fail "two processes end at $(loss), one at $one"
grep -q '^step .* measured over predicted\|^memory ' "$temp/stdout" || fail "nothing is compared"
answers 0 run two.json --steps 6 --compare --json
python3 - "$temp/stdout" <<'PY'
import json, sys
answer = json.load(open(sys.argv[1]))
assert answer["parallel"]["dp"] == 2 and answer["measured"]["num_steps"] == 6, answer
ratio = answer["measured"]["memory_peak_bytes"] / answer["predicted"]["memory_peak_bytes"]
assert 0.95 < ratio < 1.05, ratio
PY

# Experts, with the same tokens for each.
sed 's/"model_type": "llama"/"model_type": "mixtral", "num_local_experts": 4/' one.json >experts.json
answers 0 run experts.json --steps 2 --routing balanced
grep -q '^step 2: loss' "$temp/stdout" || fail "experts: $(cat "$temp/stdout")"

# A router's own choice is uneven: time and memory are predicted of what was counted.
tiny_job routed.json 2 '{"dp": 2, "ep": 2, "micro_batch": 2}'
sed -i 's/"model_type": "llama"/"model_type": "mixtral", "num_local_experts": 4/' routed.json
answers 0 run routed.json --steps 6 --compare --json --data "$OLDPWD/LICENSE" --log routed.jsonl
python3 - "$temp/stdout" routed.jsonl <<'PY'
import json, statistics, sys
answer = json.load(open(sys.argv[1]))
steps = [json.loads(line) for line in open(sys.argv[2])]
predicted, planned, measured = answer["predicted"], answer["planned"], answer["measured"]
counted = statistics.median(step["moe_imbalance"] for step in steps[2:])
assert counted > 1.01 and abs(predicted["moe_imbalance"] - counted) < 1e-9, (counted, answer)
assert predicted["step_time_s"] != planned["step_time_s"], answer
ratio = [measured["memory_peak_bytes"] / p["memory_peak_bytes"] for p in (predicted, planned)]
assert abs(ratio[0] - 1) < 0.01 < ratio[1] - 1, ratio
PY

# A pipeline: what each does with a step, and the three timelines side by side.
tiny_job pipeline.json 2 '{"pp": 2, "micro_batch": 1}'
answers 0 run pipeline.json --steps 6 --compare --json --trace trace.json
python3 - "$temp/stdout" trace.json <<'PY'
import collections, json, sys
answer = json.load(open(sys.argv[1]))
kinds = {"forward", "backward", "optimizer", "waiting"}
for source in "predicted", "simulated", "measured":
    work = answer[source]["work_s"]
    assert set(work) == kinds and min(work.values()) > 0, (source, work)
    if source != "measured":
        assert abs(sum(work.values()) / answer[source]["step_time_s"] - 1) < 1e-6, (source, answer)
trace = json.load(open(sys.argv[2]))["traceEvents"]
names = {e["pid"]: e["args"]["name"] for e in trace if e["name"] == "process_name"}
assert list(names.values()) == ["estimate", "simulation", "measured"], names
tracks = {(e["pid"], e["tid"]): e["args"]["name"] for e in trace if e["name"] == "thread_name"}
slices = collections.defaultdict(list)
for e in trace:
    if e["ph"] == "X":
        slices[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"], e["name"]))
computed = collections.defaultdict(list)
for track, events in slices.items():
    events.sort()
    assert all(a[1] <= b[0] + 1e-6 for a, b in zip(events, events[1:])), (tracks[track], events)
    if tracks[track].endswith("compute"):
        computed[names[track[0]]].append([e[2] for e in events if e[2] != "host"])
# Each rank does in the run what the Program says, in its order.
assert len(computed["measured"]) == 2 and len(computed["estimate"]) == 2, computed
assert sorted(computed["measured"]) == sorted(computed["estimate"]), computed
PY

simulator=${MESHWRIGHT_SIM-}
export MESHWRIGHT_SIM="$temp/none"
answers 0 run pipeline.json --steps 6 --compare
grep -q 'pipeline.json: not simulated: MESHWRIGHT_SIM' "$temp/stderr" || fail "$(cat "$temp/stderr")"
grep -q '^forward .* - ' "$temp/stdout" || fail "no column of what was not simulated"
export MESHWRIGHT_SIM="$simulator"
refuses 'pipeline.json: is the scenario pipeline.json; expected another file to write' \
    run pipeline.json --trace pipeline.json
refuses 'meshwright: --compare: needs --steps of 5 or more, of which 2 are warm-up' \
    run two.json --compare --steps 4
refuses 'meshwright: --json: goes with --compare; --log writes each step as JSON' run two.json --json
refuses 'meshwright: --steps: "0" is not a whole number from 1 to 1000000000' run two.json --steps 0
refuses 'meshwright: --routing: "even" is unknown; expected learned or balanced' \
    run two.json --routing even
refuses 'meshwright: --device: "tpu" is unknown; expected cpu or cuda' run two.json --device tpu
refuses 'two.json: is the scenario two.json; expected another file to write' \
    run two.json --log two.json
# What is written takes no other file's place.
cp "$OLDPWD/LICENSE" text
refuses 'text: is the text text; expected another file to write' run two.json --data text --log text
refuses './text: is the text text; expected another file to write' \
    run two.json --steps 6 --data text --trace ./text
refuses './new: is the log new; expected another file to write' \
    run two.json --steps 6 --log new --trace ./new
cmp text "$OLDPWD/LICENSE"
[ ! -e new ] || fail "a refusal left a log"

# A format of its own is predicted too, and its bytes are the Program's.
tiny_job tp.json 2 '{"tp": 2}'
answers 0 run tp.json --steps 6 --dtype fp64 --compare --json
python3 - "$temp/stdout" <<'PY'
import json, sys
answer = json.load(open(sys.argv[1]))
ratio = answer["measured"]["memory_peak_bytes"] / answer["predicted"]["memory_peak_bytes"]
assert 0.95 < ratio < 1.05, ratio
PY
grep -qx 'the most that a collective of any process is off: 0 bytes' "$temp/stderr" ||
    fail "fp64: $(cat "$temp/stderr")"

# Nothing is predicted in a format that one of several groups lacks, whichever that is.
sed '/"fp64"/d; s/"name": "v100-sxm2-32g"/"name": "own"/' "$OLDPWD/hw-profiles/gpus/v100-sxm2-32g.json" >own.json
single='"num_gpus": 1, "gpus_per_node": 1, "scale_up": {"link": "nvlink2"},
  "scale_out": {"nics_per_node": 1, "nic_bytes_per_s": 1e9}}'
tiny_job like.json 1 '{"pp": 2, "micro_batch": 1}'
python3 - "$single" like.json groups.json <<'PY'
import json, sys
job = json.load(open(sys.argv[2]))
job["cluster"] = {"groups": [json.loads('{"gpu": "%s", %s' % (gpu, sys.argv[1])) for gpu in ("v100-sxm2-32g", "./own.json")],
                  "between": {"bytes_per_s": 1e9, "latency_s": 1e-5}}
json.dump(job, open(sys.argv[3], "w"))
PY
answers 0 run groups.json --steps 6 --dtype fp64 --compare
grep -q '^groups.json: predicted in fp32, since own has no fp64$' "$temp/stderr" || fail "$(cat "$temp/stderr")"

# A rank without layers or ends.
tiny_job empty.json 3 '{"pp": 3, "stages": [{"layers": 1, "embedding": true}, {"layers": 0}, {"layers": 1, "loss": true}]}'
answers 0 run empty.json --steps 6 --compare --log empty.jsonl
! grep -q 'inf\|nan' empty.jsonl || fail "$(tail -1 empty.jsonl)"

# mpirun's own failure is no answer.
OMPI_MCA_rmaps_base_mapping_policy=none_such
export OMPI_MCA_rmaps_base_mapping_policy
answers 3 run two.json --steps 1
unset OMPI_MCA_rmaps_base_mapping_policy

MESHWRIGHT_RUN=$temp/none
export MESHWRIGHT_RUN
answers 3 run one.json
grep -q "MESHWRIGHT_RUN: $temp/none is not a program" "$temp/stderr" || fail "$(cat "$temp/stderr")"
