#!/bin/sh
# Bad usage: exit 2, one sentence on standard error, nothing on standard output.
set -eu
. tests/support.sh
cd "$temp"

cat >job.json <<'END'
{"schema": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100:1",
 "training": {"seq_len": 4096, "global_batch": 64, "precision": "bf16"}, "parallel": {"tp": 8}}
END


refuses 'meshwright: no command given; meshwright --help shows how to begin'
refuses 'meshwright: unknown command "estimat"; the nearest is estimate' estimat job.json
refuses 'meshwright: unknown command "xyzzy"; meshwright --help lists the commands' xyzzy
refuses 'meshwright: unknown option --json before the command; meshwright --help shows how to begin' \
    --json plan job.json

refuses 'meshwright: estimate: no SCENARIO given; meshwright estimate --help shows examples' estimate
refuses 'meshwright: launch: no PLAN given; meshwright launch --help shows examples' launch
refuses 'meshwright: estimate: one argument too many: "b.json"' estimate a.json b.json
refuses 'meshwright: estimate: unknown option --jsn; the nearest is --json' estimate job.json --jsn
refuses 'meshwright: plan: unknown option -z; meshwright plan --help lists the options' plan -z job.json
refuses 'meshwright: plan: --top needs a value: --top K' plan job.json --top
refuses 'meshwright: plan: -o needs a value: -o DIR' plan job.json -o
refuses 'meshwright: plan: --json takes no value' plan job.json --json=yes
# Of two values the first would be lost without a word.
refuses 'meshwright: plan: --output is given twice; it takes one value' plan job.json -o a --output b
refuses 'meshwright: plan: --output is given twice; it takes one value' plan job.json -oa -o a
refuses 'meshwright: simulate: --trace is given twice; it takes one value' \
    simulate job.json --trace=a --trace b
refuses 'meshwright: whatif: --replan takes no value' whatif job.json --replan=yes
refuses 'meshwright: simulate: --t could mean several options; meshwright simulate --help lists them' \
    simulate job.json --t 3
refuses 'meshwright: --top: "0" is not a whole number from 1 to 1000' plan job.json --top 0
refuses 'meshwright: --top: "3x" is not a whole number from 1 to 1000' plan job.json --top=3x
refuses 'meshwright: --top: "99999999999999999999" is not a whole number from 1 to 1000' \
    plan job.json --top 99999999999999999999
refuses 'meshwright: --budget: "nan" is not a number of at least 0.001' plan job.json --budget nan
refuses 'meshwright: --objective: "fast" is unknown; expected throughput, cost, energy or memory' \
    plan job.json --objective fast
refuses 'meshwright: --budget: "0" is not a number of at least 0.001' plan job.json --budget 0
# Values of the questions, and questions that do not go together.
refuses 'meshwright: --min-gpus-for: "0" is not a number of at least 0.001' \
    plan job.json --min-gpus-for 0
refuses 'meshwright: --deadline: "15e12" is not TOKENS,SECONDS; write both, as in 15T,60d' \
    plan job.json --deadline 15e12
refuses 'meshwright: --deadline: "soon" is not a number of at least 1' \
    plan job.json --deadline 15e12,soon
refuses 'meshwright: --compare: tq: unknown key; the nearest known one is "tp"' \
    plan job.json --compare tq=4
refuses 'meshwright: --compare: tp: 0 is out of range; expected 1 to 1048576' \
    plan job.json --compare tp=0
refuses 'meshwright: --compare: "pp": there is no =; expected KEY=VALUE,..., as in tp=4,pp=8,recompute=full' \
    plan job.json --compare pp
refuses 'meshwright: --compare: "tp=4,tp=8": tp stands there twice; expected KEY=VALUE,..., as in tp=4,pp=8,recompute=full' \
    plan job.json --compare tp=4,tp=8
refuses 'meshwright: plan: --pareto does not go with --objective: a frontier lists all plans that are best in some way' \
    plan job.json --pareto --objective memory
refuses 'meshwright: plan: --pareto does not go with --top: a frontier lists all plans that are best in some way' \
    plan job.json --top 3 --pareto
refuses 'meshwright: plan: --min-gpus-for does not go with --deadline: they are two questions; ask one at a time' \
    plan job.json --min-gpus-for 1e6 --deadline 1e9,1e3
refuses "meshwright: plan: --robust does not go with --objective energy: only a step's time has an interval and a rate" \
    plan job.json --robust --objective energy
refuses 'meshwright: whatif: no --vary given, as in --vary cluster.num_gpus=64,128; other questions are --sensitivity, --goodput, --tokens N --days D' \
    whatif job.json
refuses 'job.json: cluster.num_gpu: unknown key; the nearest known one is "num_gpus"' \
    whatif job.json --vary cluster.num_gpu=8
# Every point is refused: bad input, told once.
bad_tp=$("$MESHWRIGHT" estimate - 2>&1 <<END || true
$(sed 's/"tp": 8/"tp": 3/' job.json)
END
)
refuses "job.json${bad_tp#standard input}" whatif job.json --vary parallel.tp=3,5
refuses "job.json${bad_tp#standard input}" whatif job.json --vary parallel.tp=3 --json -o new
[ ! -e new ] || fail "whatif: left something behind"
"$MESHWRIGHT" whatif job.json --vary parallel.tp=3,8 >stdout
head -n 1 stdout | grep -q '^llama-3.1-8b .* on 8 x h100-sxm-80g; ' || fail "$(cat stdout)"
grep -q ' [0-9.]* k .* tp 8 ' stdout || fail "$(cat stdout)"
refuses 'meshwright: --fold: "half" is unknown; expected auto, none, tp or full' \
    simulate job.json --fold half
refuses 'meshwright: --repetitions: "0" is not a whole number from 1 to 1000000' \
    simulate job.json --repetitions 0
refuses 'meshwright: simulate: --operators needs --trace FILE' simulate job.json --operators
refuses 'meshwright: --for: "neemo" is unknown; expected megatron, torchtitan, deepspeed, nemo or runtime' \
    launch job.json --for neemo
refuses 'meshwright: unknown model "llama-3.1-71b"; the nearest is llama-3.1-70b' \
    models llama-3.1-71b
refuses 'meshwright: unknown cluster "dgx-h10"; the nearest is dgx-h100' clusters dgx-h10

# A legal slip of the unit is said, and priced.
cat >fast.json <<'END'
{"schema": 1, "model": "llama-3.1-8b",
 "cluster": {"gpu": "h100-sxm-80g", "num_gpus": 16, "gpus_per_node": 8,
  "scale_up": {"link": "nvlink4", "domain_gpus": 8},
  "scale_out": {"nics_per_node": 8, "nic_bytes_per_s": 400e9}},
 "training": {"seq_len": 4096, "global_batch": 64}, "parallel": {"tp": 8}}
END
for command in estimate simulate; do
    answers 0 $command fast.json
    grep -qxF 'fast.json: cluster: nic_bytes_per_s 4e+11 is 3200 Gbit/s, more than any NIC: are these bits?' \
        "$temp/stderr" || fail "$(cat "$temp/stderr")"
done

# Scenarios: the file, the place, what was found and what is expected.
refuses 'nofile.json: cannot be read: No such file or directory' estimate nofile.json
refuses 'standard input: empty; expected one JSON document' estimate -
sed 's/"tp": 8/"tp": 3/' job.json >bad.json
for command in estimate simulate launch; do
    refuses 'bad.json: parallel: tp 3 x cp 1 x pp 1 = 3 does not divide num_gpus 8; num_gpus 6 would be filled, or idle_gpus 2' \
        $command bad.json
done
sed 's/"tp"/"pt"/' job.json >bad.json
refuses 'bad.json: parallel.pt: unknown key; the nearest known one is "tp"' plan bad.json
