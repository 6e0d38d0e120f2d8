#!/bin/sh
# parallel.placement: estimate and simulate know which node runs which ranks. A placed matrix is the
# matrix in that order, leaves and slow GPUs are those of the nodes; what cannot be is refused.
set -eu
if [ ! -x "$MESHWRIGHT" ] || [ ! -x "$MESHWRIGHT_SIM" ]; then exit 77; fi
. tests/support.sh
unset MESHWRIGHT_SIM

# job FILE CLUSTER PARALLEL [DISTURB]
job() {
    cat >"$temp/$1.json" <<END
{"schema": 1, "model": "llama-3.1-8b", "cluster": {"gpu": "h100-sxm-80g", "num_gpus": 32,
 "gpus_per_node": 8, "scale_up": {"link": "nvlink4"}, $2},
 "training": {"seq_len": 4096, "global_batch": 64, "precision": "bf16"},
 "parallel": {$3}, "disturb": [${4-}]}
END
}

nics='"scale_out": {"nics_per_node": 8, "nic_bytes_per_s": 5e10}'
echo "# nodes 0 to 3
0,1e11,2e11,3e10
4e11,0,3e11,4e11
5e10,2e11,0,6e10
4e11,7e10,9e10,0" >"$temp/own.csv"
echo "# nodes 2, 0, 3, 1
0,5e10,6e10,2e11
2e11,0,3e10,1e11
9e10,4e11,0,7e10
3e11,4e11,4e11,0" >"$temp/moved.csv"

for plan in '"tp": 8, "pp": 2' '"tp": 8' '"tp": 2, "pp": 4' '"tp": 4, "cp": 2, "pp": 2' '"tp": 4, "zero_stage": 3'; do
    job placed "$nics, \"bandwidth_matrix\": \"own.csv\"" "$plan, \"placement\": [2, 0, 3, 1]"
    job moved "$nics, \"bandwidth_matrix\": \"moved.csv\"" "$plan"
    job own "$nics, \"bandwidth_matrix\": \"own.csv\"" "$plan"
    job same "$nics, \"bandwidth_matrix\": \"own.csv\"" "$plan, \"placement\": [0, 1, 2, 3]"
    for file in placed moved own same; do simulate $file; done
    for key in step_time_s estimate_step_time_s; do
        claim "$plan: $key of a placement is that of the matrix in its order" \
            "($(figure placed $key) / $(figure moved $key) - 1) ^ 2 < 1e-18"
        claim "$plan: $key of the nodes' own order is that without" \
            "($(figure same $key) / $(figure own $key) - 1) ^ 2 < 1e-18"
    done
done

# A slow GPU is a node's, wherever that node stands: GPU 8 of node 1 is in the last stage here.
job slow "$nics" '"tp": 2, "pp": 4' '{"slow_gpu": 8, "factor": 2}'
job slow_last "$nics" '"tp": 2, "pp": 4' '{"slow_gpu": 24, "factor": 2}'
job slow_placed "$nics" '"tp": 2, "pp": 4, "placement": [0, 3, 2, 1]' '{"slow_gpu": 8, "factor": 2}'
for file in slow slow_last slow_placed; do simulate $file; done
claim "the slow GPU's stage matters" "$(figure slow step_time_s) != $(figure slow_last step_time_s)"
claim "a slow GPU moves with its node" \
    "($(figure slow_placed step_time_s) / $(figure slow_last step_time_s) - 1) ^ 2 < 1e-18"

# Leaves of 4 nodes with half of their uplinks: of 6 nodes the last two are on another. A ring of
# nodes 0, 1 and 2 crosses nothing, one of 0, 1 and 5 does; estimate and simulation agree.
sed 's/"num_gpus": 32/"num_gpus": 48/; s/"global_batch": 64/"global_batch": 48/' "$temp/slow.json" |
    sed 's/"nic_bytes_per_s": 5e10/&, "topology": "fat-tree", "oversubscription": 8/; s/"tp": 2, "pp": 4/"tp": 8, "pp": 2/
        s/"disturb".*/"disturb": []}/' >"$temp/leaf_own.json"
sed 's/"pp": 2/&, "placement": [0, 1, 5, 3, 4, 2]/' "$temp/leaf_own.json" >"$temp/leaf_placed.json"
for file in leaf_own leaf_placed; do simulate $file; done
claim "a placement crosses leaves" \
    "$(figure leaf_placed estimate_step_time_s) > $(figure leaf_own estimate_step_time_s)"
claim "the simulation crosses them too" \
    "$(figure leaf_placed step_time_s) > $(figure leaf_own step_time_s)"

# refused PLACEMENT SENTENCE: by all commands that take it.
refused() {
    job bad "$nics" "\"tp\": 8, \"placement\": $1"
    for command in estimate simulate plan; do
        refuses "$temp/bad.json: parallel.placement$2" $command "$temp/bad.json"
    done
}
refused '[0, 1, 1, 2]' ': node 1 stands here twice'
refused '[0, 1, 2]' ": 3 nodes; expected each of the cluster's 4"
refused '[0, 1, 2, 4]' '[3]: 4 is out of range; expected 0 to 3'
refused '[]' ': names no node; expected every node once'
sed 's/"link": "nvlink4"/"link": "nvlink4", "domain_gpus": 16/; s/\[\]/[0, 2, 1, 3]/' \
    "$temp/bad.json" >"$temp/apart.json"
refuses "$temp/apart.json: parallel.placement[1]: 2 is not of the scale-up domain of \
node 0; expected its 2 nodes one after the other" estimate "$temp/apart.json"

# --- plan places the nodes of the best plan: nodes 0 and 1, 2 and 3 had better not be neighbours

echo "0,3e10,4e11,4e11
3e10,0,4e11,4e11
4e11,4e11,0,3e10
4e11,4e11,3e10,0" >"$temp/pairs.csv"
cat >"$temp/plan.json" <<END
{"schema": 1, "model": "llama-3.1-8b", "cluster": {"gpu": "h100-sxm-80g", "num_gpus": 32,
 "gpus_per_node": 8, "scale_up": {"link": "nvlink4"}, $nics, "bandwidth_matrix": "pairs.csv"},
 "training": {"seq_len": 4096, "global_batch": 64}, "parallel": {"tp": 8, "pp": 2}}
END
answers 0 plan "$temp/plan.json" --json -o "$temp/placed"
sed '/"timing"/,$d' "$temp/stdout" >"$temp/placed.out"
answers 0 plan "$temp/plan.json" --json
sed '/"timing"/,$d' "$temp/stdout" >"$temp/again.out"
cmp "$temp/placed.out" "$temp/again.out" || fail "the same question has another answer"
answers 0 plan "$temp/plan.json" --json --placement-moves 0
sed '/"timing"/,$d' "$temp/stdout" >"$temp/own.out"
claim "a placement gains" "$(figure placed step_time_s) < $(figure own step_time_s)"
claim "what is gained is gained over the nodes' own order" \
    "$(figure placed default_step_time_s) == $(figure own step_time_s)"
claim "no step is below its bound" \
    "$(figure placed bound_step_time_s) <= $(figure placed step_time_s)"
! grep -q placement "$temp/own.out" || fail "--placement-moves 0 places nodes"
answers 0 estimate "$temp/placed/plan.json" --json
cp "$temp/stdout" "$temp/read.out"
claim "plan.json holds the placement" "$(figure placed step_time_s) == $(figure read step_time_s)"
answers 0 simulate "$temp/placed/plan.json"
answers 0 plan "$temp/plan.json"
grep -q "Its nodes, in the order of the ranks: " "$temp/stdout" || fail "the report names no order"

# The node with the first ranks is the master; each node's rank is its place in the list.
order=$(tr -d ' \t\n' <"$temp/placed/plan.json" | sed 's/.*"placement":\[\([0-9,]*\)\].*/\1/')
ranks=$(echo "$order" | tr ',' '\n' | awk '{ rank[$1] = NR - 1 }
    END { for (i = 0; i < NR; i++) printf "%s%d", i ? " " : "", rank[i] }')
for script in launch.sh launch.sbatch; do
    grep -qF "NODE_RANKS=\"$ranks\"" "$temp/placed/$script" || fail "$script: not $ranks of $order"
done
grep -qF "the address of node ${order%%,*}}" "$temp/placed/launch.sh" || fail "another master"
grep -qF "sed -n $((${order%%,*} + 1))p" "$temp/placed/launch.sbatch" || fail "another master"
if command -v shellcheck >/dev/null; then
    shellcheck "$temp/placed/launch.sh" "$temp/placed/launch.sbatch"
fi

# Both plans of a comparison are placed; another number of GPUs forgets the placement; a list of
# layers stands beside one.
answers 0 plan "$temp/plan.json" --compare vpp=1 --json
[ "$(grep -c '"default_step_time_s"' "$temp/stdout")" -eq 2 ] || fail "not both are placed"
answers 0 whatif "$temp/placed/plan.json" --vary training.global_batch=64 --json
sed '1,/"points"/d' "$temp/stdout" >"$temp/varied.out"
claim "whatif keeps the placement" "$(figure placed step_time_s) == $(figure varied step_time_s)"
job one "$nics" '"tp": 2, "placement": [0, 3, 2, 1]'
answers 0 whatif "$temp/one.json" --vary cluster.num_gpus=16,32
! grep -q 'placement' "$temp/stdout" || fail "a placement of 4 nodes for 2: $(cat "$temp/stdout")"
sed 's/"parallel": {/&"micro_batch": 1, "zero_stage": 1, "cp": 1, "placement": [2, 0, 3, 1], /
    s/"seq_len": 4096/"seq_len": 49152/; s/"tp": 8, "pp": 2/"tp": 2, "pp": 4/' \
    "$temp/plan.json" >"$temp/layers.json"
answers 0 plan "$temp/layers.json" --layerwise --top 1 --json -o "$temp/layers"
cp "$temp/stdout" "$temp/layers.out"
tr -d ' \t\n' <"$temp/layers/plan.json" | grep -q '"layers":\[{.*"placement":\[2,0,3,1\]' ||
    fail "plan.json has no layers and placement"
answers 0 estimate "$temp/layers/plan.json" --json
cp "$temp/stdout" "$temp/read.out"
claim "layers and placement are read again" \
    "($(figure layers step_time_s) / $(figure read step_time_s) - 1) ^ 2 < 1e-18"
answers 0 simulate "$temp/layers/plan.json"
refuses 'meshwright: plan: --layerwise does not go with --placement-moves: it leaves the nodes in their order' \
    plan "$temp/plan.json" --layerwise --placement-moves 100
refuses 'meshwright: plan: --pareto does not go with --seed: it leaves the nodes in their order' \
    plan "$temp/plan.json" --pareto --seed 1

# A matrix of the wrong size.
cp "$temp/pairs.csv" "$temp/kept.csv"
sed '$d' "$temp/kept.csv" >"$temp/pairs.csv"
refuses "$temp/plan.json: cluster.bandwidth_matrix: $temp/pairs.csv: found 3 rows, expected one for \
each of 4 nodes" plan "$temp/plan.json"
sed 's/,0$//' "$temp/kept.csv" >"$temp/pairs.csv"
refuses "$temp/plan.json: cluster.bandwidth_matrix: $temp/pairs.csv line 4: found 3 numbers, expected \
one for each of 4 nodes" plan "$temp/plan.json"
