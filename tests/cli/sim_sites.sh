#!/bin/sh
# A measured bandwidth matrix, and groups joined by slow links: even ones are the plain cluster; what
# slow ones cost is worked out from the time of the one collective or message that crosses them; the
# estimate knows it as well.
set -eu
if [ ! -x "$MESHWRIGHT" ] || [ ! -x "$MESHWRIGHT_SIM" ]; then exit 77; fi
. tests/support.sh
unset MESHWRIGHT_SIM

# machine NUM_GPUS: the members of a cluster of H100 nodes.
machine() {
    echo '"gpu": "h100-sxm-80g", "num_gpus": '"$1"', "gpus_per_node": 8, "scale_up": {"link": "nvlink4"},
        "scale_out": {"nics_per_node": 8, "nic_bytes_per_s": 5e10}'
}

# job FILE CLUSTER PARALLEL [DISTURB]
job() {
    cat >"$temp/$1.json" <<EOF
{"schema": 1, "model": "llama-3.1-8b", "cluster": {$2},
 "training": {"seq_len": 4096, "global_batch": 64, "precision": "bf16",
              "overlap_grad_reduce": false, "overlap_param_gather": false},
 "parallel": {$3}, "disturb": [${4-}]}
EOF
}

# matrix FILE NUM_NODES BYTES_PER_S
matrix() {
    awk -v n="$2" -v b="$3" 'BEGIN {
        for (i = 0; i < n; i++) for (j = 0; j < n; j++) printf "%s%s", b, j + 1 < n ? "," : "\n"
    }' >"$temp/$1.csv"
}

# equal FILE FILE: the same steps, simulated and estimated.
equal() {
    for key in step_time_s estimate_step_time_s; do
        claim "$1 and $2 take as long" "($(figure "$1" $key) / $(figure "$2" $key) - 1) ^ 2 < 1e-18"
    done
}

# All pairs as fast as the NICs of a node, 4e11 B/s: the plain cluster, folded or not.
matrix even 4 4e11
for plan in '"tp": 8' '"tp": 2, "pp": 4' '"tp": 4, "cp": 2, "pp": 2'; do
    job plain "$(machine 32)" "$plan"
    job even "$(machine 32), \"bandwidth_matrix\": \"even.csv\"" "$plan"
    for fold in none auto; do
        simulate plain --fold $fold
        simulate even --fold $fold
        equal plain even
    done
done

# tp 8, dp 2 on two nodes: GPU i and 8 + i are a ring and cross nothing but the pair. Half of the
# NICs' bytes/s there is what half of a NIC costs, T, in simulation and estimate.
job degraded "$(machine 16)" '"tp": 8' '{"link": "nic:0.2", "bandwidth_factor": 0.5}'
simulate degraded
T=$(figure degraded network)
claim "half of a NIC costs time" "$T > 0"
whole=$(figure degraded undisturbed_step_time_s)
matrix half 2 2e11
job half "$(machine 16), \"bandwidth_matrix\": \"half.csv\"" '"tp": 8'
simulate half
for key in step_time_s estimate_step_time_s; do
    claim "half of the bytes/s take twice as long" "(($(figure half $key) - $whole) / $T - 1) ^ 2 < 1e-6"
done
grep -q '"name":.*"node:0-node:1"' "$temp/half.out" || fail "the pairs are no links"
grep -q '"contended":.*false' "$temp/half.out" || fail "an even ring is contended"

# Only the way back is slow: the ring waits for it all the same.
printf '# from\n0,4e11\n2e11,0\n' >"$temp/back.csv"
job back "$(machine 16), \"bandwidth_matrix\": \"back.csv\"" '"tp": 8'
simulate back
equal half back

# The same by two groups, and 1 ms for each of the crossings: gradients of a step are reduced and
# weights gathered, two each.
groups() {
    echo "\"groups\": [{$(machine 8)}, {$(machine 8)}],
        \"between\": {\"bytes_per_s\": $1, \"latency_s\": $2}"
}
job apart "$(groups 2e11 0)" '"tp": 8'
job far "$(groups 2e11 1e-3)" '"tp": 8'
for name in apart far; do simulate $name; done
equal half apart
grep -q '"name":.*"group:0-group:1"' "$temp/far.out" || fail "the groups are joined by no link"
claim "latency is paid per crossing" \
    "($(figure far step_time_s) - $(figure apart step_time_s) - 4e-3) ^ 2 < 1e-14"

# A pipeline across the groups: 8 GPUs of a stage share 4e9 B/s, and both see it.
job pipe "$(groups 4e9 0)" '"tp": 8, "pp": 2'
job free "$(machine 16)" '"tp": 8, "pp": 2'
for name in pipe free; do simulate $name; done
claim "a slow link between stages costs time" \
    "$(figure pipe step_time_s) > 1.01 * $(figure free step_time_s)"
claim "the estimate sees it" \
    "($(figure pipe estimate_step_time_s) / $(figure pipe step_time_s) - 1) ^ 2 < 1e-6"

# A failed NIC leaves the pair as it is: two GPUs share one NIC.
job gone "$(machine 16), \"bandwidth_matrix\": \"even2.csv\"" '"tp": 8' '{"fail_nic": "nic:0.1"}'
matrix even2 2 4e11
simulate gone
claim "a NIC fails beside a matrix" "($(figure gone network) / $T - 1) ^ 2 < 1e-6"

# plan finds plans on it, and plan.json still leads to the matrix from another folder.
job search "$(machine 16), \"bandwidth_matrix\": \"half.csv\"" '"tp": 8'
sed -i '/"disturb"/s/, "disturb": \[\]//' "$temp/search.json"
mkdir "$temp/out"
answers 0 plan "$temp/search.json" -o "$temp/out"
answers 0 estimate "$temp/out/plan.json"

cd "$temp"
printf '0,0\n4e11,0\n' >zero.csv
job zero "$(machine 16), \"bandwidth_matrix\": \"zero.csv\"" '"tp": 8'
refuses 'zero.json: cluster.bandwidth_matrix: zero.csv line 1: 0 from node 0 to node 1: all nodes of a job reach each other' \
    simulate zero.json
job leaf "$(machine 16), \"bandwidth_matrix\": \"half.csv\"" '"tp": 8' \
    '{"link": "leaf:0", "bandwidth_factor": 0.5}'
refuses 'leaf.json: disturb[0].link: a bandwidth_matrix stands in the place of leaf and spine switches; expected a NIC or port of a GPU, of background two nodes' \
    simulate leaf.json
job ends "$(groups 2e11 0)" '"tp": 8' '{"background": "leaf:0-group:1", "bytes_per_s": 1e9}'
refuses 'ends.json: disturb[0].background: "leaf:0-group:1": expected two switches, two groups or two nodes' \
    simulate ends.json
cd "$OLDPWD"

# Others on the pair take as much as is measured less: half of 4e11 B/s.
job busy "$(machine 16), \"bandwidth_matrix\": \"even2.csv\"" '"tp": 8' \
    '{"background": "node:0-node:1", "bytes_per_s": 2e11}'
job crowded "$(groups 4e11 0)" '"tp": 8' '{"background": "group:0-group:1", "bytes_per_s": 2e11}'
for name in busy crowded; do
    simulate $name
    claim "$name others take half" "($(figure "$name" step_time_s) / $(figure half step_time_s) - 1) ^ 2 < 1e-9"
done
