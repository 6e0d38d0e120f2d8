#!/bin/sh
# Runs one fuzz target: on its corpus, then on what libFuzzer makes of it.
# Usage: run.sh PROGRAM TARGET SECONDS FOLDER
#   SECONDS 0: the corpus alone
#   FOLDER  where new inputs of interest go (FOLDER/TARGET/) and what was found: TARGET-crash-...,
#           TARGET-timeout-..., TARGET-oom-...; made where it is missing
# Ends with 0 where nothing was found. Says how many inputs were tried.
set -eu
program=$1 target=$2 seconds=$3 folder=$4
here=$(cd "$(dirname "$0")" && pwd)

case $target in
scenario | model | published | profile) dictionary=json ;;
nemo) dictionary=yaml ;;
deepspeed) dictionary=shell ;;
*) dictionary=$target ;;
esac
mkdir -p "$folder/$target"
[ "$seconds" -gt 0 ] && limit=-max_total_time=$seconds || limit=-runs=0
log=$folder/$target.log
# The machine's answers do not count here: leaks are found at the end of each input.
code=0
"$program" "$folder/$target" "$here/corpus/$target" -dict="$here/dictionaries/$dictionary.dict" \
    -artifact_prefix="$folder/$target-" "$limit" -max_len="${FUZZ_MAX_LEN:-20000}" \
    -timeout=2 -rss_limit_mb="${FUZZ_RSS_MB:-1500}" -print_final_stats=1 -verbosity=1 >"$log" 2>&1 || code=$?
tried=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
if [ "$code" -ne 0 ]; then
    tail -n 60 "$log"
    echo "fuzz $target: found something after ${tried:-some} inputs; the input is at $folder/$target-*"
    exit 1
fi
echo "fuzz $target: $tried inputs, nothing found"
