#!/bin/sh
# The hybrid cube mesh of the DGX-1: simulation and estimate agree, steps of rings one by one take
# as long as all together, replicas fold by whole nodes; what other NVLinks carry does not contend;
# a port to a switch is faster. The same of a tree of PCIe switches, where traffic between sockets is
# slow and NICs of the other socket are reached through it.
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


# priced FILE: the estimate's answer into $temp/FILE.out, whether it fits or not.
priced() {
    run_program estimate "$temp/$1.json" --json
    [ $rc -le 1 ] || fail "$1: $(cat "$temp/stderr")"
    mv "$temp/stdout" "$temp/$1.out"
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
grep -q 'not whole scale-up domains, inside of which links are uneven' "$temp/stderr" || fail "why it is not folded"
answers 2 simulate "$temp/nodes.json" --fold tp
grep -q 'links inside its scale-up domain are uneven' "$temp/stderr" || fail "why tp is not"

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
for name in pairs port; do priced $name; done
claim "a pair of the mesh is slow" "$(figure pairs tp_exposed) > 2 * $(figure port tp_exposed)"

# --- A tree of PCIe switches

# pcie FILE NUM_NODES NICS SOCKET_BYTES_PER_S PARALLEL
pcie() {
    cat >"$temp/$1.json" <<EOF
{"schema": 1, "model": "llama-3.1-8b",
 "cluster": {"gpu": "l40s-48g", "num_gpus": $((8 * $2)), "gpus_per_node": 8,
  "scale_up": {"link": "pcie4", "gpus_per_switch": 2, "sockets": 2, "socket_bytes_per_s": $4},
  "scale_out": {"nics_per_node": $3, "nic_bytes_per_s": 1.25e10, "topology": "fat-tree"}},
 "training": {"seq_len": 1024, "global_batch": 64, "precision": "bf16"}, "parallel": {$5}}
EOF
}

for plan in '"tp": 8' '"tp": 2' '"tp": 2, "pp": 4' '"tp": 1, "pp": 8' '"tp": 2, "pp": 2' '"tp": 4, "zero_stage": 0'; do
    for nodes in 1 2; do
        pcie tree $nodes 4 2.4e10 "$plan"
        answers 0 simulate "$temp/tree.json" --json
        mv "$temp/stdout" "$temp/tree.out"
        step_s=$(figure tree step_time_s)
        tolerance=0.1
        ! grep -q '"contended":.*false' "$temp/tree.out" || tolerance=0.01
        claim "simulation and estimate of $plan on $nodes nodes" \
            "($step_s / $(figure tree estimate_step_time_s) - 1) ^ 2 < $tolerance ^ 2"
    done
done

# Slower sockets cost only what crosses them: tp 8, not tp 2 within a switch.
for tp in 8 2; do
    pcie fast 1 4 2.4e10 '"tp": '$tp
    pcie slow 1 4 6e9 '"tp": '$tp
    for name in fast slow; do priced $name; done
    if [ $tp -eq 8 ]; then
        claim "slow sockets" "$(figure slow tp_exposed) > 3 * $(figure fast tp_exposed)"
    else
        claim "one switch" "$(figure slow tp_exposed) == $(figure fast tp_exposed)"
    fi
done

# Gradients over one NIC a node: those of the second socket cross to it.
pcie far 2 1 1e9 '"tp": 1'
pcie near 2 1 2.4e10 '"tp": 1'
for name in far near; do
    answers 0 simulate "$temp/$name.json" --json
    mv "$temp/stdout" "$temp/$name.out"
done
claim "the way to the NIC" "$(figure far step_time_s) > 1.1 * $(figure near step_time_s)"
grep -q '"name":.*"socket:0.1-socket:0.0"' "$temp/far.out" || fail "no traffic between sockets"

# A port is reported by what it is, and disturbed by that name as by nvlink:GPU. The columns of the
# busiest links stay in line beside the long names of sockets.
grep -q '"name":.*"pcie:[0-9]* out"' "$temp/far.out" || fail "no port of PCIe"
grep -q '"name":.*"nvlink:' "$temp/far.out" && fail "NVLink on a node of PCIe"
for port in pcie nvlink; do
    sed 's/"training"/"disturb": [{"link": "'$port':3", "bandwidth_factor": 0.001}], "training"/' \
        "$temp/far.json" >"$temp/$port.json"
    simulate $port
done
cmp "$temp/pcie.out" "$temp/nvlink.out" || fail "two names of one port"
claim "a slow port" "$(figure pcie network) > 0"
answers 0 simulate "$temp/far.json"
sed -n '/^Busiest links/,/^$/s/%.*/%/p' "$temp/stdout" | awk '{ print length($0) }' | sort -u >"$temp/lengths"
grep -q 'socket:0.1-socket:0.0 ' "$temp/stdout" || fail "no sockets: $(cat "$temp/stdout")"
[ "$(wc -l <"$temp/lengths")" -eq 1 ] || fail "out of line: $(cat "$temp/stdout")"
