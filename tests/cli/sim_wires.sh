#!/bin/sh
# The hybrid cube mesh of the DGX-1: simulation and estimate agree, steps of rings one by one take
# as long as all together, replicas fold by whole nodes; what other NVLinks carry does not contend;
# a port to a switch is faster.
set -eu
if [ ! -x "$MESHWRIGHT" ] || [ ! -x "$MESHWRIGHT_SIM" ]; then exit 77; fi
. tests/support.sh
sim=$MESHWRIGHT_SIM
unset MESHWRIGHT_SIM

# job FILE CLUSTER PARALLEL
job() {
    cat >"$temp/$1.json" <<EOF
{"schema": 1, "model": "llama-3.1-8b", "cluster": $2,
 "training": {"seq_len": 1024, "global_batch": 64, "precision": "fp16"}, "parallel": {$3}}
EOF
}


for plan in '"tp": 8' '"tp": 2' '"tp": 1' '"tp": 2, "pp": 4' '"tp": 1, "pp": 8' '"tp": 2, "pp": 4, "vpp": 2' \
    '"tp": 2, "zero_stage": 0'; do
    for nodes in 1 2; do
        job mesh '"dgx-1-v100:'$nodes'"' "$plan"
        simulate mesh
        step_s=$(figure mesh step_time_s)
        claim "simulation and estimate of $plan on $nodes nodes" \
            "($step_s / $(figure mesh estimate_step_time_s) - 1) ^ 2 < 1e-4"
        "$sim" --fold none --stepwise <"$temp/mesh.json" >"$temp/mesh.out"
        claim "steps of $plan on $nodes nodes" "($(figure mesh step_time_s) / $step_s - 1) ^ 2 < 1e-6"
    done
done

# Whole nodes fold: 1 of 4.
job nodes '"dgx-1-v100:4"' '"tp": 4'
simulate nodes --fold none
whole=$(figure nodes step_time_s)
simulate nodes --fold full
claim "nodes fold" "($(figure nodes step_time_s) / $whole - 1) ^ 2 < 1e-14"
job nodes '"dgx-1-v100:1"' '"tp": 2'
answers 2 simulate "$temp/nodes.json" --fold full
grep -q 'not whole scale-up domains, which links of their own need' "$temp/stderr" || fail "why it is not folded"
answers 2 simulate "$temp/nodes.json" --fold tp
grep -q 'its ranks have links of their own inside a scale-up domain' "$temp/stderr" || fail "why tp is not"

# Rings in the two quads (0 to 3, 4 to 7) and messages between them use different NVLinks: they have
# what is granted to them. The links of pairs are named.
job quads '"dgx-1-v100:1"' '"tp": 1, "pp": 2, "zero_stage": 1'
simulate quads --fold none
claim "no contention" "$(figure quads flow_lost_frac) < 1e-9"
grep -q '"name":.*"nvlink:[0-9]-nvlink:[0-9]"' "$temp/quads.out" || fail "the pairs have no links"

# tp 2 on GPUs 0 and 1 has one of 6 NVLinks; with a port of 12 to all others it takes much less.
# Neither fits.
job pairs '"dgx-1-v100:1"' '"tp": 2, "dp": 4'
node='"scale_up": {"link": "nvlink3"}, "scale_out": {"nics_per_node": 4, "nic_bytes_per_s": 1.25e10, "topology": "fat-tree"}'
job port '{"gpu": "v100-sxm2-32g", "num_gpus": 8, "gpus_per_node": 8, '"$node"'}' '"tp": 2, "dp": 4'
for name in pairs port; do
    answers 1 estimate "$temp/$name.json" --json
    mv "$temp/stdout" "$temp/$name.out"
done
claim "a pair of the mesh is slow" "$(figure pairs tp_exposed) > 2 * $(figure port tp_exposed)"
