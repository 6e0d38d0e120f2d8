#!/bin/sh
# Renews docs/gallery: the charts of a report of the demo's job, as the report's own buttons save
# them, and the top of its page.
#
# usage: tools/figures/gallery.sh [PROGRAM]      (needs node, npm and Chromium)
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
program=$(realpath "${1:-$root/build/meshwright}")
job=$root/docs/examples/llama-3.1-70b-128xh100.json
CHROMIUM=${CHROMIUM-$(command -v chromium)}
export CHROMIUM

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$program" plan "$job" -o "$folder/demo" >/dev/null
"$program" plan "$job" --json >"$folder/plans.json"
"$program" plan "$job" --pareto --json >"$folder/trades.json"
"$program" whatif "$job" --vary cluster.num_gpus=64,128,256,512 --vary training.seq_len=4096,8192,16384 \
    --replan --json >"$folder/grid.json"
"$program" whatif "$folder/demo/plan.json" --goodput --json >"$folder/goodput.json"
sed 's/"dgx-h100:16"/"dgx-h200:16"/' "$job" >"$folder/h200.json"
"$program" plan "$folder/h200.json" -o "$folder/other" >/dev/null
(cd "$folder" && "$program" compare demo/plan.json other/plan.json --json >comparison.json)
(cd "$folder" && "$program" report demo/plan.json plans.json trades.json grid.json goodput.json comparison.json \
    -o report.html)
cp -R "$root/tests/page" "$folder/page"
(cd "$folder/page" && npm ci --ignore-scripts --prefer-offline >/dev/null)
mkdir -p "$root/docs/gallery"
cd "$folder/page"
node pictures.mjs "$root/docs/gallery" "$folder/report.html" layout.svg waterfall.svg memory.svg \
    timeline.png links.svg alternatives.svg pareto-2.svg whatif.svg accuracy.svg goodput.svg \
    compare-step.svg
