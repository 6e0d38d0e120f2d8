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

