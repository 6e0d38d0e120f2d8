#!/bin/sh
# Collectives inside layers in whole simulations: alone they take what the estimate grants them;
# what they share, and what is left of disturbed links, is worked out by hand.
set -eu
if [ ! -x "$MESHWRIGHT" ] || [ ! -x "$MESHWRIGHT_SIM" ]; then exit 77; fi
. tests/support.sh
unset MESHWRIGHT_SIM

apart='"overlap_grad_reduce": false, "overlap_param_gather": false'

# job FILE MODEL CLUSTER TRAINING PARALLEL [DISTURB]
job() {
    cat >"$temp/$1.json" <<END
{"schema": 1, "model": "$2", "cluster": $3, "parallel": {$5}, "disturb": [${6-}],
 "training": {"seq_len": 4096, "global_batch": 64, "precision": "bf16", $4}}
END
}

# on_path FILE KINDS KEY: of kinds of work on the critical path.
on_path() {
    python3 -c 'import json, sys
totals = json.load(open(sys.argv[1]))["critical_path"]["totals"]
print(sum(total[sys.argv[3]] for total in totals if total["kind"] in sys.argv[2].split()))' \
        "$temp/$1.full" "$2" "$3"
}

# play FILE OPTIONS...: as `simulate` of support.sh, with the whole answer in FILE.full as well.
play() {
    name=$1
    simulate "$@"
    cp "$temp/stdout" "$temp/$name.full"
}

# alone FILE: the step is the estimate's, to rounding, and the collectives of a kind are in it.
alone() {
    play "$1"
    claim "$1 alone takes what the estimate says" \
        "($(figure "$1" step_time_s) / $(figure "$1" estimate_step_time_s) - 1) ^ 2 < 1e-18"
    grep -q '"contended":[[:space:]]*false' "$temp/$1.out" || fail "$1 contends"
    claim "$1 has inner_$2 on its path" "$(on_path "$1" "inner_$2" estimated_s) > 0"
}

# --- Alone, by the kinds that cross nodes

two='"dgx-h100:2"'
experts='"tp": 2, "etp": 2, "ep": 8'
shards='"tp": 8, "zero_stage": 3'
job experts mixtral-8x7b "$two" "$apart" "$experts"
job kernels deepseek-v3 "$two" "$apart, \"moe_dispatcher\": \"deepep\"" '"ep": 16'
job shards llama-3.1-8b "$two" "$apart" "$shards"
job context llama-3.1-8b "$two" "$apart" '"tp": 4, "cp": 4'
job ulysses llama-2-7b "$two" "$apart" '"tp": 4, "cp": 4, "cp_method": "ulysses"'
job tensors llama-3.1-8b "$two" "$apart" '"tp": 16'
alone experts ep
alone kernels ep
alone shards shards
alone context cp
alone ulysses cp
alone tensors tp
printf '%s\n' 4e11,4e11,4e11,4e11 4e11,4e11,4e11,4e11 4e11,4e11,4e11,4e11 4e11,4e11,4e11,4e11 \
    >"$temp/even.csv"
four='"gpu": "h100-sxm-80g", "num_gpus": 32, "gpus_per_node": 8, "scale_up": {"link": "nvlink4"},
      "scale_out": {"nics_per_node": 8, "nic_bytes_per_s": 5e10}'
job matrix deepseek-v3 "{$four, \"bandwidth_matrix\": \"even.csv\"}" "$apart" '"ep": 32'
alone matrix ep

# Beside the rings of data parallelism they share the NICs; with pipeline messages as well.
job beside mixtral-8x7b "$two" '"overlap_grad_reduce": true, "overlap_param_gather": true' "$experts"
play beside
claim "what meets gradients takes longer" "$(figure beside contention) > 0 &&
    $(on_path beside inner_ep simulated_s) > $(on_path beside inner_ep estimated_s)"
kinds=$(sed -n 's/.*"kind":[[:space:]]*"\([^"]*\)".*/\1/p' "$temp/beside.full" | tr '\n' ' ')
claim "the path of $kinds adds up to the step" \
    "($(on_path beside "$kinds" simulated_s) / $(figure beside step_time_s) - 1) ^ 2 < 1e-18"

# --- Shares worked out by hand

# Rings of shards: GPU i and 8 + i over their NICs, one after the other with the computation, for T.
# Half of a NIC is T more, a quarter of it 3 T. GPU 1 whose NIC failed shares that of GPU 2: of two
# rings of different groups each has half, T more.
for case in 'half link 0.2 0.5' 'quarter link 0.2 0.25'; do
    # shellcheck disable=SC2086 # a list of words
    set -- $case
    job "$1" llama-3.1-8b "$two" "$apart" "$shards" "{\"link\": \"nic:$3\", \"bandwidth_factor\": $4}"
    play "$1"
done
job shared llama-3.1-8b "$two" "$apart" "$shards" '{"fail_nic": "nic:0.1"}'
play shared
T=$(figure half network)
claim "half of a NIC costs what shards take" \
    "$T > 0.5 * $(on_path shards inner_shards estimated_s) && $T < $(figure shards step_time_s)"
claim "a quarter costs three times that" "($(figure quarter network) / $T - 3) ^ 2 < 1e-6"
claim "two groups on one NIC have half of it each" "($(figure shared network) / $T - 1) ^ 2 < 1e-6"

# Up and down fast, a NIC has the mean of it: 0.8, T / 4 more, but for one time down a pass.
job flap llama-3.1-8b "$two" "$apart" "$shards" \
    '{"flap": "nic:0.2", "period_s": 1e-5, "down_frac": 0.2, "seed": 5}'
play flap
claim "a quick flap is a degraded link" "($(figure flap network) - $T / 4) ^ 2 < (0.02 * $T) ^ 2"

# 8 nodes, 4 to a leaf switch, whose 32 NICs have uplinks for 8. Experts are on all nodes, 4 of 7
# others beyond the leaf: the estimate grants 8 / (32 x 4 / 7) = 7 / 16 of a NIC. The flows go to the
# node two further on (of 3 1/2 leaves crossed in 7 steps that is the nearest), so 16 of 32 leave a
# leaf, with as many bytes as fill its uplinks in the time granted. When others take half of the uplinks
# of one leaf, it is twice that, which the estimate grants at 8 to one; with a quarter of the leaf four
# times, 16 to one.
leaves() {
    echo '{"gpu": "h100-sxm-80g", "num_gpus": 64, "gpus_per_node": 8, "scale_up": {"link": "nvlink4"},
        "scale_out": {"nics_per_node": 8, "nic_bytes_per_s": 5e10, "topology": "fat-tree",
                      "oversubscription": '"$1"'}}'
}
job wide qwen3-235b-a22b "$(leaves 4)" "$apart" '"ep": 64'
job busy qwen3-235b-a22b "$(leaves 4)" "$apart" '"ep": 64' \
    '{"background": "leaf:0-leaf:1", "bytes_per_s": 2e11}'
job spine qwen3-235b-a22b "$(leaves 4)" "$apart" '"ep": 64' '{"link": "leaf:1", "bandwidth_factor": 0.25}'
job quarter qwen3-235b-a22b "$(leaves 8)" "$apart" '"ep": 64'
job eighth qwen3-235b-a22b "$(leaves 16)" "$apart" '"ep": 64'
for name in wide busy spine quarter eighth; do play $name; done
passes='forward backward inner_ep'
# NAME OTHER: what NAME's passes take simulated is what OTHER's are estimated, but for layers that
# hide more than others
as_granted() {
    claim "$1 takes what $2 grants" \
        "($(on_path "$1" "$passes" simulated_s) / $(on_path "$2" "$passes" estimated_s) - 1) ^ 2 < 0.05 ^ 2"
}
claim "what leaves a leaf takes what is granted" \
    "($(figure wide step_time_s) / $(figure wide estimate_step_time_s) - 1) ^ 2 < 1e-6 ^ 2"
as_granted busy quarter
as_granted spine eighth

# --- Ports

# A port of which nothing is lost is as good as none in the scenario; of half of it tensor-parallel
# ranks see as much as they move, wherever it is, twice that of a third.
for case in 'whole 3 1' 'port 3 0.5' 'far 12 0.5' 'third 3 0.333333333333'; do
    # shellcheck disable=SC2086 # a list of words
    set -- $case
    job "$1" llama-3.1-8b "$two" "$apart" '"tp": 8' \
        "{\"link\": \"nvlink:$2\", \"bandwidth_factor\": $3}"
    play "$1"
done
job plain llama-3.1-8b "$two" "$apart" '"tp": 8'
play plain
claim "a whole port costs nothing" "$(figure whole network) == 0 &&
    ($(figure whole step_time_s) / $(figure plain step_time_s) - 1) ^ 2 < 1e-18"
port=$(figure port network)
claim "half of a port does" "$port > 0.1 * $(figure plain step_time_s)"
claim "it is the same in another node" "($(figure far network) / $port - 1) ^ 2 < 1e-12"
claim "a third costs twice as much" "($(figure third network) / $port - 2) ^ 2 < 1e-6"

# --- The same input, the same bytes
cp "$temp/busy.out" "$temp/first.out"
play busy
cmp "$temp/first.out" "$temp/busy.out" || fail "the same input twice"
