#!/bin/sh
# What models and clusters show can be pasted into a scenario and means the same as the name.
set -eu
. tests/support.sh
cd "$temp"

# job MODEL CLUSTER, both as JSON
job() {
    cat <<END
{"schema": 1, "model": $1, "cluster": $2,
 "training": {"seq_len": 4096, "global_batch": 144, "precision": "bf16"}, "parallel": {"tp": 4}}
END
}

"$MESHWRIGHT" models llama-3.1-8b --json >shown.json
model=$(python3 -c 'import json; print(json.dumps(json.load(open("shown.json"))["model"]))')
for name in dgx-h100 gb200-nvl72 rtx4090-node hgx-mi300x; do
    cluster=$("$MESHWRIGHT" clusters "$name" --json)
    job '"llama-3.1-8b"' "\"$name:1\"" | "$MESHWRIGHT" estimate - --json >named.json || [ $? -eq 1 ]
    job "$model" "$cluster" | "$MESHWRIGHT" estimate - --json >pasted.json || [ $? -eq 1 ]
    grep -q step_time_s named.json || fail "$name: no estimate"
    cmp named.json pasted.json || fail "$name: the pasted object means something else"
done
"$MESHWRIGHT" clusters dgx-h100 | grep -q '"num_gpus"' || fail "no object after the table"
"$MESHWRIGHT" clusters --help | grep -q 'clusters dgx-h100 --json' || fail "not in the help"

# A model of one's own file: what it weighs, what its layers are, what a token leaves behind. The
# weights of DeepSeek-V3 are 671.0 G, of which 36.6 G are active beside the word table; its
# multi-token prediction 11.6 G.
"$MESHWRIGHT" models deepseek-v3 --json | python3 -c '
import json, sys
answer = json.load(sys.stdin)
open("config.json", "w").write(json.dumps(answer["model"]))
s = answer["summary"]
assert abs(s["parameters"] / 671.0e9 - 1) < 1e-3, s
assert abs(s["active_parameters"] / 36.6e9 - 1) < 1e-2, s
assert abs(s["mtp_parameters"] / 11.6e9 - 1) < 1e-2, s
assert s["cache_bytes_per_token"] == 61 * 2 * (512 + 64), s
assert [(k["num_layers"], k["mixer"]["kind"], k["feed_forward"]["kind"]) for k in s["layers"]] == [
    (3, "latent_attention", "dense"), (58, "latent_attention", "experts")], s["layers"]
assert s["parameters"] > sum(k["num_layers"] * k["parameters"] for k in s["layers"]), s
' || fail "the summary of deepseek-v3"
"$MESHWRIGHT" models ./config.json --json >file.json || fail "a file is not shown"
python3 -c '
import json
file = json.load(open("file.json"))
assert file["summary"]["model_type"] == "deepseek_v3", file["summary"]
assert file["model"] == json.load(open("config.json"))
' || fail "the summary of a file"
"$MESHWRIGHT" models ./config.json >text || fail "a file has no text"
grep -q "^layers      3: latent attention, 128 heads of 192, rank 512; gated MLP of 18432$" text || fail "$(cat text)"
grep -q "^            58: latent attention, .*; 8 of 256 gated experts of 2048, shared 2048$" text || fail "$(cat text)"

# A hybrid: what a sequence leaves in states, 36 layers of 64 heads of 128 x 128 in fp32 and three
# inputs of a convolution over 12288 numbers in 16 bits; a token leaves keys and values in 12.
"$MESHWRIGHT" models qwen3.5-122b-a10b --json | python3 -c '
import json, sys
s = json.load(sys.stdin)["summary"]
assert s["state_bytes_per_sequence"] == 36 * (64 * 128 * 128 * 4 + 3 * 12288 * 2), s
assert s["cache_bytes_per_token"] == 12 * 2 * 2 * 256 * 2, s
assert [(k["num_layers"], k["mixer"]["kind"]) for k in s["layers"]] == [
    (36, "gated_delta"), (12, "attention")], s["layers"]
' || fail "the summary of qwen3.5-122b-a10b"

# A model with a tower that is not modelled is refused by that; its text alone can be pasted.
python3 -c '
import json
text = {"model_type": "deepseek_v3", **{k: v for k, v in json.load(open("config.json")).items()
        if k not in ("name", "source", "model_type")}}
json.dump({"model_type": "kimi_k2", "text_config": text, "vision_config": {"hidden_size": 8}},
          open("wrapped.json", "w"))
'
"$MESHWRIGHT" models ./wrapped.json >text 2>&1 && fail "a tower that is not modelled is shown"
grep -q 'vision_config: the tower for images of "kimi_k2" is not modelled yet; .*--text-only' text ||
    fail "$(cat text)"
"$MESHWRIGHT" models ./wrapped.json --text-only --json >text.json || fail "no text alone"
python3 -c '
import json
print(json.dumps({"schema": 1, "model": json.load(open("text.json"))["model"], "cluster": "dgx-h100:256",
                  "training": {"seq_len": 4096, "global_batch": 2048}}))' >pasted.json
"$MESHWRIGHT" estimate pasted.json >text 2>&1 || [ $? -eq 1 ] || fail "$(cat text)"
grep -q "^wrapped (671 G parameters" text || fail "$(cat text)"

"$MESHWRIGHT" models ./nowhere.json >text 2>&1 && fail "a file that is not there is shown"
grep -q "nowhere.json" text || fail "$(cat text)"

# What the default software cannot train is planned for another, which is said first; where no
# launch file can be written, none is claimed.
cat >job.json <<END
{"schema": 1, "model": "gemma-2-2b", "cluster": "dgx-h100:1",
 "training": {"seq_len": 4096, "global_batch": 16, "precision": "bf16"}}
END
"$MESHWRIGHT" plan job.json -o out >stdout 2>stderr
head -n 1 stdout | grep -q "^megatron-core cannot run gemma-2-2b: Megatron-LM's GPT lacks norms after .* (rule megatron-core/norms-after: NVIDIA/Megatron-LM@.*). Planned for pytorch-fsdp, which can; no launch files for this model; training.stack chooses another.$" ||
    fail "$(head -n 1 stdout)"
grep -q "no launch files: nothing here starts pytorch-fsdp" stderr || fail "$(cat stderr)"
grep -q 'out/plan.json; its trace and this report are beside it' stdout || fail "$(tail -n 1 stdout)"
[ ! -e out/launch.sh ] || fail "a launch file"
[ -e out/plan.json ] || fail "no plan.json"

# Nothing of a tensor-parallel plan crosses the simulated network.
[ -x "$MESHWRIGHT_SIM" ] || exit 0
job '"llama-3.1-8b"' '"dgx-h100:1"' | sed 's/"tp": 4/"tp": 8/' >tp.json
"$MESHWRIGHT" simulate tp.json | tr -s ' \n' ' ' |
    grep -q "none: nothing of this plan's traffic crosses the simulated network" ||
    fail "$("$MESHWRIGHT" simulate tp.json)"
"$MESHWRIGHT" simulate tp.json --json | grep -q '"network_used":.*false' || fail "JSON of simulate"
