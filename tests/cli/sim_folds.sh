#!/bin/sh
# Folding is exact: over schedules, parallelism and networks every instruction of every GPU of the
# unfolded simulation begins and ends when that of the GPU which stands for it in the folded one
# does. And it is refused where replicas are not in lockstep or do not lie alike.
set -eu
if [ ! -x "$MESHWRIGHT" ] || [ ! -x "$MESHWRIGHT_SIM" ]; then exit 77; fi
. tests/support.sh
. tests/folds.sh

# Every schedule, on rails in one block, and on leaf switches of 4 nodes whose uplinks are short.
model=llama-3.1-8b
for network in '"nics_per_node": 8, "topology": "rail-fat-tree"' \
    '"nics_per_node": 8, "topology": "fat-tree", "oversubscription": 4'; do
    machine 8 "$network"
    for schedule in '"pp": 1' '"pp": 2' '"pp": 2, "schedule": "gpipe"' '"pp": 4, "vpp": 2' \
        '"pp": 2, "vpp": 2, "schedule": "breadth-first"' '"pp": 4, "schedule": "zb-h1"' \
        '"pp": 2, "schedule": "zb-h2"' '"pp": 4, "schedule": "zb-v"' \
        '"pp": 2, "schedule": "v-half"' '"pp": 2, "schedule": "v-min"' \
        '"pp": 2, "schedule": "dualpipe"' '"pp": 4, "vocab_parallel": true' \
        '"pp": 4, "schedule": "v-half", "vocab_parallel": true' \
        '"pp": 4, "vpp": 2, "vocab_parallel": true' \
        '"pp": 4, "schedule": "dualpipe", "vocab_parallel": true'; do
        same "\"tp\": 4, $schedule"
    done
    # Replicas in other places of the rank order, with and without shards, and without overlap.
    for parallel in '"tp": 1' '"tp": 1, "pp": 4' '"tp": 2, "cp": 2, "pp": 2' \
        '"tp": 2, "zero_stage": 3' '"tp": 2, "pp": 2, "zero_stage": 3, "zero_group": 4' \
        '"tp": 4, "zero_stage": 0' '"tp": 2, "zero_group": 4' '"tp": 8, "pp": 2'; do
        same "$parallel"
        same "$parallel" ', "overlap_grad_reduce": false, "overlap_param_gather": false'
    done
    same '"tp": 2, "pp": 2' '' --stepwise
done

# NICs that GPUs share; rails without a spine; a domain of two nodes.
for network in '"nics_per_node": 2, "topology": "fat-tree"' \
    '"nics_per_node": 4, "topology": "rail-only"' '"nics_per_node": 8, "topology": "dragonfly"'; do
    for domain in 8 16; do
        machine 8 "$network" $domain
        for parallel in '"tp": 1, "pp": 2' '"tp": 2, "pp": 4, "vpp": 2' '"tp": 4'; do
            same "$parallel"
        done
    done
done

# Collectives inside layers that cross nodes, with messages and gradients beside them.
for network in '"nics_per_node": 8' '"nics_per_node": 2, "topology": "fat-tree", "oversubscription": 2'; do
    machine 8 "$network"
    for parallel in '"tp": 4, "cp": 4, "pp": 2, "vpp": 2' \
        '"tp": 8, "zero_stage": 3, "pp": 2' '"tp": 4, "zero_stage": 2' '"tp": 16, "pp": 2'; do
        same "$parallel"
    done
    model=llama-2-7b # as many key and value heads as queries
    same '"tp": 2, "cp": 16, "cp_method": "ulysses"'
    model=mixtral-8x7b
    for parallel in '"tp": 2, "etp": 2, "ep": 8, "pp": 2' '"tp": 4, "etp": 2, "ep": 8, "pp": 2, "vpp": 2'; do
        same "$parallel"
        same "$parallel" ', "ep_overlap": true, "moe_dispatcher": "deepep"'
    done
    model=llama-3.1-8b
done

# Stages that alternate: with whole nodes, parts of them and several nodes between their blocks, and
# where the network repeats at other periods than they do.
alternate='"order": "tp-cp-ep-pp-dp"'
for network in '"nics_per_node": 8' '"nics_per_node": 2, "topology": "fat-tree", "oversubscription": 2' \
    '"nics_per_node": 8, "topology": "rail-only"'; do
    for nodes in 4 8; do
        machine $nodes "$network"
        for parallel in '"tp": 1, "pp": 2' '"tp": 2, "pp": 4, "vpp": 2' '"tp": 4, "pp": 4, "zero_group": 2' \
            '"tp": 1, "pp": 4, "vocab_parallel": true' '"tp": 2, "pp": 2, "schedule": "dualpipe"'; do
            same "$parallel, $alternate"
        done
    done
done

# Experts.
model=mixtral-8x7b
machine 8 '"nics_per_node": 8'
for parallel in '"tp": 1, "ep": 8, "pp": 4' '"tp": 2, "ep": 4, "pp": 4' '"tp": 4, "ep": 2, "pp": 2'; do
    same "$parallel"
done

# The grid must keep testing what it is for: contention, and replicas that differ before they repeat.
num_contended=$(grep -c '^True' "$temp/jobs")
num_uneven=$(grep -cv ' 1 [0-9]*$' "$temp/jobs")
if [ "$num_contended" -lt "$(sampled 40)" ] || [ "$num_uneven" -lt "$(sampled 40)" ]; then
    fail "only $num_contended jobs contended, $num_uneven of several replicas"
fi

# refused REASON: --fold full is, and auto says why it does not.
refused() {
    refuses "--fold full is not possible: the data-parallel replicas cannot be folded: $1" \
        simulate "$temp/job.json" --fold full
    answers 0 simulate "$temp/job.json" --json
    grep -qF "; the data-parallel replicas are not folded: $1\"" "$temp/stdout" ||
        fail "not the reason: $1; $(grep folding "$temp/stdout")"
}

model=llama-3.1-8b
machine 4 '"nics_per_node": 8'
job '"tp": 16'
refuses "--fold tp is not possible: the tp groups cross scale-up domains inside a block of tensor-parallel ranks" \
    simulate "$temp/job.json" --fold tp
machine 2 '"nics_per_node": 8'
job '"tp": 4, "pp": 4'
refused 'there is one of them'
for disturb in '{"slow_gpu": 1, "factor": 1.5}' '{"jitter_frac": 0.01, "seed": 1}' \
    '{"link": "nic:0.0", "bandwidth_factor": 0.5}' '{"fail_nic": "nic:0.1"}'; do
    job '"tp": 4' '' "$disturb"
    name=${disturb#??}
    refused "disturb[0].${name%%\"*} breaks their lockstep"
done
# 5 of 10 nodes a stage, on leaf switches of 4 whose uplinks are short (else they are alike:
# tests/cli/sim_likeness.sh).
machine 10 '"nics_per_node": 8, "topology": "fat-tree", "oversubscription": 4'
global_batch=40
job '"tp": 8, "pp": 2'
refused 'they share leaf switches unevenly'
# Stages of 12 GPUs, across domains of 8.
machine 3 '"nics_per_node": 8'
global_batch=48
job '"tp": 4, "pp": 2'
refused 'they lie across scale-up domains unevenly'
global_batch=64
group='{"gpu": "h100-sxm-80g", "num_gpus": 8, "gpus_per_node": 8, "scale_up": {"link": "nvlink4"},
        "scale_out": {"nics_per_node": 8, "nic_bytes_per_s": 5e10}}'
cluster='{"groups": ['$group', '$group'], "between": {"bytes_per_s": 1e10, "latency_s": 1e-5}}'
job '"tp": 4'
refused 'the cluster is of several groups'
printf '4e11,4e11\n4e11,4e11\n' >"$temp/even.csv"
machine 2 '"nics_per_node": 8'
cluster="${cluster%\}}, \"bandwidth_matrix\": \"even.csv\"}"
job '"tp": 4'
refused 'a bandwidth_matrix makes the network uneven for them'
