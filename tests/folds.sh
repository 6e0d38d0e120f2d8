# tests/folds.sh - what the tests of folds share. They source it after tests/support.sh.
# shellcheck shell=sh disable=SC2154 # $temp is of that
. tests/sample.sh
simulator=$MESHWRIGHT_SIM
unset MESHWRIGHT_SIM
model=llama-3.1-8b
global_batch=64

# job PARALLEL [TRAINING [DISTURB]]: of $model on $cluster, with $global_batch sequences
job() {
    cat >"$temp/job.json" <<END
{"schema": 1, "model": "$model", "cluster": $cluster,
 "training": {"seq_len": 4096, "global_batch": $global_batch, "precision": "bf16"${2-}},
 "parallel": {$1}, "disturb": [${3-}]}
END
}

# same PARALLEL [TRAINING [OPTION]]: folded and unfolded, one case in three
same() {
    one_of 3 || return 0
    job "$1" "${2-}"
    for fold in full none; do
        "$simulator" --fold $fold --all-times ${3:+"$3"} <"$temp/job.json" >"$temp/$fold.json" \
            3>"$temp/$fold.times" || fail "$1 on $cluster"
    done
    python3 tests/cli/folds_compare.py "$temp/full.json" "$temp/full.times" "$temp/none.json" \
        "$temp/none.times" >>"$temp/jobs" || fail "$model, $1 on $cluster"
}

# machine NODES SCALE_OUT [DOMAIN_GPUS]
machine() {
    cluster='{"gpu": "h100-sxm-80g", "num_gpus": '$((8 * $1))', "gpus_per_node": 8,
              "scale_up": {"link": "nvlink4", "domain_gpus": '${3:-8}'},
              "scale_out": {"nic_bytes_per_s": 5e10, '$2'}}'
}
