#!/bin/sh
# Failed NICs, links that come and go, and spines in whole simulations: what they cost is worked out
# from the undisturbed time of the one collective that crosses them, or lies between two others.
set -eu
if [ ! -x "$MESHWRIGHT" ] || [ ! -x "$MESHWRIGHT_SIM" ]; then exit 77; fi
. tests/support.sh
unset MESHWRIGHT_SIM

# job FILE DISTURB [PARALLEL CLUSTER]
job() {
    cat >"$temp/$1.json" <<EOF
{"schema": 1, "model": "llama-3.1-8b", "cluster": ${4:-\"dgx-h100:2\"},
 "training": {"seq_len": 4096, "global_batch": 64, "precision": "bf16",
              "overlap_grad_reduce": false, "overlap_param_gather": false},
 "parallel": {${3:-\"tp\": 8}}, "disturb": [$2]}
EOF
}

# tp 8, dp 2 on two nodes: GPU i and 8 + i are a ring over their NICs and nothing else. All 8 rings
# run at the same time, for T; half of a NIC is T more.
job half '{"link": "nic:0.2", "bandwidth_factor": 0.5}'
simulate half
answers 0 simulate "$temp/half.json"
! grep -q 'simulation and estimate disagree' "$temp/stdout" || fail "an undisturbed estimate is compared"
T=$(figure half network)
claim "half of a NIC costs time" "$T > 0"

# GPU 1 shares the NIC of GPU 2, each has half of it: T more. When 1 and 2 fail, three GPUs share
# NIC 3: 2 T more. When NIC 1 fails in both nodes the rings of GPUs 1 and 2 share NIC 2: T more.
job one '{"fail_nic": "nic:0.1"}'
job two '{"fail_nic": "nic:0.1"}, {"fail_nic": "nic:0.2"}'
job both '{"fail_nic": "nic:0.1"}, {"fail_nic": "nic:1.1"}'
for name in one two both; do simulate $name; done
claim "a NIC that failed doubles what the next carries" "($(figure one network) / $T - 1) ^ 2 < 1e-6"
claim "two that failed triple it" "($(figure two network) / $T - 2) ^ 2 < 1e-6"
claim "on both ends it is no more" "($(figure both network) / $T - 1) ^ 2 < 1e-6"
grep -q '"folding_reason":.*disturb\[0\].fail_nic makes the network' "$temp/one.out" ||
    fail "folding with a failed NIC"

# Out of step, with pipeline messages: still between nothing and half of the neighbour.
jitter='{"jitter_frac": 0.05, "seed": 1}'
plan='"tp": 2, "pp": 2'
job less "$jitter, {\"link\": \"nic:0.2\", \"bandwidth_factor\": 0.5}" "$plan"
job gone "$jitter, {\"fail_nic\": \"nic:0.1\"}" "$plan"
for name in less gone; do simulate $name --repetitions 3; done
claim "a NIC that failed costs at most what half of its neighbour does" \
    "$(figure gone network) > 0 && $(figure gone network) <= $(figure less network) * (1 + 1e-9)"

# A NIC that is down for a fifth of every 100 us has 0.8 left: T / 4 more, but for one time down.
job flap '{"flap": "nic:0.2", "period_s": 1e-4, "down_frac": 0.2, "seed": 5}'
simulate flap --repetitions 4
claim "a quick flap is a degraded link" "($(figure flap network) - $T / 4) ^ 2 < (2.1e-5) ^ 2"
cp "$temp/flap.out" "$temp/first.out"
simulate flap --repetitions 4
cmp "$temp/first.out" "$temp/flap.out" || fail "the same seed twice"
sed -i 's/"seed": 5/"seed": 6/' "$temp/flap.json"
simulate flap --repetitions 4
cmp -s "$temp/first.out" "$temp/flap.out" && fail "another seed, the same bytes"
job never '{"flap": "nic:0.2", "period_s": 1e-4, "down_frac": 0, "seed": 5}'
simulate never
claim "a flap that is never down costs nothing" "$(figure never network) == 0"
# Down for 10 ms once a 100 s: a step is hit rarely, and by 10 ms at most.
job rare '{"flap": "nic:0.2", "period_s": 100, "down_frac": 1e-4, "seed": 5}'
simulate rare --repetitions 50
claim "once down costs that time at most" "$(figure rare network) >= 0 &&
    $(figure rare p95_step_time_s) <= $(figure rare undisturbed_step_time_s) + 0.010001"

# 64 nodes, dp 64 over two blocks of 32 nodes: one flow of each rail and direction crosses its
# leaves' 32 uplinks, which 512 to 1 leaves a sixteenth of a NIC. Of the one spine half remains.
wide='{"gpu": "h100-sxm-80g", "num_gpus": 512, "gpus_per_node": 8, "scale_up": {"link": "nvlink4"},
  "scale_out": {"nics_per_node": 8, "nic_bytes_per_s": 5e10, "oversubscription": 512}}'
job narrow '{"link": "spine:0", "bandwidth_factor": 0.5}' '"tp": 8' "$wide"
job leaves '{"link": "leaf:0", "bandwidth_factor": 0.5}' '"tp": 8' "$wide"
for name in narrow leaves; do simulate $name; done
claim "half of the only spine is half of every leaf" "$(figure narrow network) > 0 &&
    ($(figure narrow network) / $(figure leaves network) - 1) ^ 2 < 1e-6"

cd "$temp"
job alone '{"fail_nic": "nic:0.0"}' '"tp": 8' \
    '{"gpu": "h100-sxm-80g", "num_gpus": 16, "gpus_per_node": 8, "scale_up": {"link": "nvlink4"},
      "scale_out": {"nics_per_node": 1, "nic_bytes_per_s": 5e10}}'
refuses 'alone.json: disturb[0].fail_nic: node 0 has no other NIC that works and could take its traffic' \
    simulate alone.json
job far '{"flap": "spine:4", "period_s": 1, "down_frac": 0.1}'
refuses 'far.json: disturb[0].flap: spine 4 is out of range; expected 0 to 3' simulate far.json
