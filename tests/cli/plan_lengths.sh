#!/bin/sh
# plan of sequences of many lengths: groups of one size and of several, the bound, and what is
# refused.
set -eu
. tests/support.sh
cd "$temp"

# job LENGTHS PARALLEL: job.json
job() {
    cat >job.json <<END
{"schema": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100:2",
 "training": {"seq_len": 4194304, "global_batch": 64, "precision": "bf16",
              "sequence_lengths": [$1]},
 "parallel": {$2}}
END
}

job '{"length": 2048, "frac": 0.875}, {"length": 65536, "frac": 0.125}' '"tp": 1'
answers 0 plan job.json
for text in 'Groups of one size' 'Groups of several sizes' 'no assignment takes less than'; do
    grep -q "$text" stdout || fail "no \"$text\": $(cat stdout)"
done

# The same bytes twice, but for the time it took.
answers 0 plan job.json --json
sed '/"timing"/,$d' stdout >first.out
answers 0 plan job.json --json
sed '/"timing"/,$d' stdout >second.out
cmp first.out second.out || fail "the second answer differs"
for key in schema one_size many_sizes gain_frac bound_s gap_frac longest_tokens search; do
    grep -q "\"$key\":" first.out || fail "no $key"
done
sequences=$(sed -n '/"many_sizes"/,$p' first.out | sed -n 's/.*"num_sequences":[^0-9]*//p' |
    tr -d ',' | awk '{ sum += $1 } END { print sum }')
[ "$sequences" -eq 64 ] || fail "$sequences sequences run, not 64"
claim "the bound is below the answer" "$(figure first bound_s) <= $(figure first step_time_s)"

job '{"length": 2048, "frac": 0.5}, {"length": 4194304, "frac": 0.5}' ''
answers 1 plan job.json --json
grep -q '^job.json: training.sequence_lengths: length 4194304 fits on no group of up to 16 GPUs' stderr ||
    fail "$(cat stderr)"
grep -q '"many_sizes":.*null' stdout || fail "$(cat stdout)"

job '{"length": 2048, "frac": 0.5}, {"length": 4096, "frac": 0.4}' ''
refuses 'job.json: training.sequence_lengths: the fractions add up to 0.9; expected 1' plan job.json
job '{"length": 2048, "frac": 1}' '"pp": 2'
refuses 'job.json: parallel.pp: more than 1 with training.sequence_lengths is legal, but not supported yet' \
    plan job.json
job '{"length": 2048, "frac": 1}' ''
for option in '--top 3' '--compare tp=2' --pareto --robust '--min-gpus-for 1e5' '--deadline 1e9,1e3' \
    --layerwise '--seed 1' '--placement-moves 9' '--budget 5' '-o out'; do
    name=${option%% *}
    [ "$name" != -o ] || name=--output
    # shellcheck disable=SC2086 # an option and its value
    refuses "meshwright: plan: $name is legal, but not supported with training.sequence_lengths yet" \
        plan job.json $option
done
[ ! -e out ] || fail "a folder for a refusal"
refuses 'job.json: training.sequence_lengths: legal, but only plan supports it yet' \
    whatif job.json --vary training.global_batch=64
for command in estimate simulate launch; do
    refuses 'job.json: training.sequence_lengths: legal, but only plan supports it yet' \
        "$command" job.json
done
