#!/bin/sh
# Groups of different machines: where only a price differs, they are the groups of one machine; else
# simulation and estimate agree where nothing contends, folded or not, and faster machines are never
# slower.
set -eu
if [ ! -x "$MESHWRIGHT" ] || [ ! -x "$MESHWRIGHT_SIM" ]; then exit 77; fi
. tests/support.sh
unset MESHWRIGHT_SIM

# h100 NUM_GPUS [MORE], a100 NUM_GPUS: a group.
h100() {
    echo '{"gpu": "h100-sxm-80g", "num_gpus": '"$1"', "gpus_per_node": 8,
        "scale_up": {"link": "nvlink4"},
        "scale_out": {"nics_per_node": 8, "nic_bytes_per_s": 5e10}'"${2-}"'}'
}
a100() {
    echo '{"gpu": "a100-sxm-80g", "num_gpus": '"$1"', "gpus_per_node": 4,
        "scale_up": {"link": "nvlink3"},
        "scale_out": {"nics_per_node": 4, "nic_bytes_per_s": 2.5e10, "topology": "fat-tree"}}'
}

# job FILE GROUPS BYTES_PER_S PARALLEL [DISTURB]
job() {
    cat >"$temp/$1.json" <<EOF
{"schema": 1, "model": "llama-3.1-8b",
 "cluster": {"groups": [$2], "between": {"bytes_per_s": $3, "latency_s": 2e-5}},
 "training": {"seq_len": 4096, "global_batch": 64, "precision": "bf16"},
 "parallel": {$4}, "disturb": [${5-}]}
EOF
}

# same FILE FILE KEY...: figures that do not differ.
same() {
    a=$1 b=$2
    shift 2
    for key; do
        claim "$key of $a and $b" "($(figure "$a" "$key") / $(figure "$b" "$key") - 1) ^ 2 < 1e-18"
    done
}

# A price is no reason for another step, whichever the plan, with contention or without.
other=', "price_usd_per_gpu_hour": 17'
for plan in '"tp": 8, "pp": 2' '"tp": 2, "pp": 4' '"tp": 4, "pp": 4, "vpp": 2' \
    '"tp": 4, "pp": 4, "schedule": "dualpipe"' '"tp": 2, "pp": 2, "cp": 2'; do
    for fold in none auto; do
        between=4e9
        [ $fold = none ] || between=1e12
        job alike "$(h100 16), $(h100 16)" $between "$plan"
        job priced "$(h100 16), $(h100 16 "$other")" $between "$plan"
        simulate alike --fold $fold
        simulate priced --fold $fold
        same alike priced step_time_s estimate_step_time_s activities
    done
done

# Stages of their own machines: estimate and simulation agree where nothing contends, within 10 %
# where something does; folded steps are the unfolded.
num_uncontended=0
for plan in '"tp": 8, "pp": 4' '"tp": 4, "pp": 4' '"tp": 4, "pp": 8, "schedule": "gpipe"' \
    '"tp": 2, "pp": 2, "dp": 8' '"tp": 4, "pp": 4, "schedule": "zb-h1"' '"tp": 4, "cp": 2, "pp": 4'; do
    job unlike "$(h100 16), $(a100 16)" 1e11 "$plan"
    simulate unlike --fold none
    cp "$temp/unlike.out" "$temp/whole.out"
    tolerance=0.1
    if grep -q '"contended":.*false' "$temp/unlike.out"; then
        tolerance=0.01
        num_uncontended=$((num_uncontended + 1))
    fi
    claim "simulation and estimate of $plan" \
        "($(figure unlike step_time_s) / $(figure unlike estimate_step_time_s) - 1) ^ 2 < $tolerance ^ 2"
    simulate unlike
    claim "folded $plan" "($(figure unlike step_time_s) / $(figure whole step_time_s) - 1) ^ 2 < 1e-14"
done
[ $num_uncontended -ge 2 ] || fail "$num_uncontended uncontended jobs"

# The slower group sets the pace, and fewer layers there help; a slow link between costs time.
job fast "$(h100 16), $(h100 16 "$other")" 1e11 '"tp": 8, "pp": 4'
job mixed "$(h100 16), $(a100 16)" 1e11 '"tp": 8, "pp": 4'
stages='{"layers": 12, "embedding": true}, {"layers": 11}, {"layers": 5}, {"layers": 4, "loss": true}'
job sized "$(h100 16), $(a100 16)" 1e11 '"tp": 8, "pp": 4, "stages": ['"$stages"']'
job slow "$(h100 16), $(a100 16)" 1e9 '"tp": 8, "pp": 4'
for name in fast mixed sized slow; do simulate $name; done
claim "slower machines are slower" "$(figure mixed step_time_s) > 1.5 * $(figure fast step_time_s)"
claim "stages sized by speed" "$(figure sized step_time_s) < 0.8 * $(figure mixed step_time_s)"
claim "a slow link between" "$(figure slow step_time_s) > 1.3 * $(figure mixed step_time_s)"
grep -q '"name":.*"group:0-group:1"' "$temp/slow.out" || fail "the groups are joined by no link"

# A GPU of the second group, by its number in the whole.
job straggler "$(h100 16), $(a100 16)" 1e11 '"tp": 8, "pp": 4' '{"slow_gpu": 31, "factor": 1.5}'
simulate straggler
claim "a straggler costs time" "$(figure straggler stragglers) > 0.01"

# A NIC of the second group, links between the groups with others on them.
job degraded "$(h100 16), $(a100 16)" 1e11 '"tp": 4, "pp": 4' '{"link": "nic:4.2", "bandwidth_factor": 0.01}'
job gone "$(h100 16), $(a100 16)" 1e11 '"tp": 4, "pp": 4' '{"fail_nic": "nic:4.2"}'
job crowded "$(h100 16), $(a100 16)" 1e11 '"tp": 4, "pp": 4' '{"background": "group:0-group:1", "bytes_per_s": 9.9e10}'
for name in degraded gone crowded; do
    simulate $name
    claim "$name costs time" "$(figure "$name" network) > 0.001"
done
answers 0 simulate "$temp/degraded.json"
grep -q '^not played *on groups of different machines the exchanges of tp inside computations' "$temp/stdout" ||
    fail "$(cat "$temp/stdout")"
sentence=$(sed -n 's/^not played  *//p' "$temp/stdout")
grep -q "\"not_played\":.*\[\"$sentence\"\]" "$temp/degraded.out" || fail "--json says nothing of it"
grep -q '"not_played":.*\[\]' "$temp/straggler.out" || fail "nobody asked what links do not slow"
claim "another NIC takes over" "$(figure gone network) < $(figure degraded network)"

cd "$temp"
job plan "$(h100 16), $(a100 16)" 1e11 '"tp": 8'
sed -i '/"disturb"/s/, "disturb": \[\]//' plan.json
refuses 'plan.json: cluster.groups: of different machines are legal, but plan --pareto does not support them yet' \
    plan plan.json --pareto
sed -i 's/"tp": 8/"tp": 8, "pp": 4/' plan.json
answers 0 estimate plan.json
refuses 'plan.json: cluster.groups: of different machines are legal, but launch does not support them yet' \
    launch plan.json --for megatron --scheduler torchrun -o .
