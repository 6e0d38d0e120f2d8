#!/bin/sh
# HTML reports in headless Chromium (tests/page/check.mjs). Screenshots and prints stay in the build
# folder's report-pages. Skips where node, npm, Chromium or the page are missing; and under the
# sanitizers, where the page is the same.
set -eu
. tests/support.sh
chromium=${CHROMIUM-$(command -v chromium || true)}
build=$(dirname "$MESHWRIGHT")
skip() {
    echo "skipped: $*"
    exit 77
}
command -v node >/dev/null || skip "no node"
command -v npm >/dev/null || skip "no npm"
[ -x "$chromium" ] || skip "no chromium"
[ -s "$build/page/page.html" ] || skip "this build has no page"
if grep -qa __asan_init "$MESHWRIGHT"; then skip "the page is that of the plain build"; fi
export CHROMIUM="$chromium"

cp -R tests/page "$temp/page"
(cd "$temp/page" && npm ci --ignore-scripts --prefer-offline) >"$temp/npm.log" 2>&1 || skip "npm reaches no registry"

cat >"$temp/job.json" <<'END'
{"schema": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100:2",
 "training": {"seq_len": 4096, "global_batch": 128, "precision": "bf16"}}
END
cat >"$temp/sensitivity.json" <<'END'
{"schema": 1, "sensitivity": {"change_frac": 0.2, "limited_by": "compute", "base": {"step_time_s": 2}, "rows": [
  {"resource": "compute", "saves_frac": 0.1, "costs_frac": 0.2,
   "better": {"factor": 1.2, "step_time_s": 1.8}, "worse": {"factor": 0.8, "step_time_s": 2.4}},
  {"resource": "memory", "saves_frac": 0, "costs_frac": null,
   "better": {"factor": 1.2, "step_time_s": 2}, "worse": {"factor": 0.8}}]}}
END
sed 's/"model"/"parallel": {"tp": 2, "pp": 4, "vpp": 2}, "model"/' "$temp/job.json" >"$temp/whole.json"
answers 0 plan "$temp/job.json" --pareto --json
mv "$temp/stdout" "$temp/pareto.json"
answers 0 whatif "$temp/job.json" --vary cluster.num_gpus=8,16,32 --vary training.seq_len=4096,8192 \
    --replan --json
mv "$temp/stdout" "$temp/grid.json"
# Large values along the axis, and a price, which moves no step.
answers 0 whatif "$temp/whole.json" --vary cluster.scale_out.nic_bytes_per_s=25e9,50e9,100e9 --json
mv "$temp/stdout" "$temp/links.json"
answers 0 whatif "$temp/whole.json" --vary cluster.price_usd_per_gpu_hour=2,3,4 --json
mv "$temp/stdout" "$temp/price.json"
answers 0 whatif "$temp/whole.json" --goodput --json
mv "$temp/stdout" "$temp/goodput.json"
sed 's/"tp": 2/"tp": 4/' "$temp/whole.json" >"$temp/other.json"
answers 0 compare "$temp/whole.json" "$temp/other.json" --json
mv "$temp/stdout" "$temp/comparison.json"
set -- "$temp/whole.json" "$temp/pareto.json" "$temp/grid.json" "$temp/sensitivity.json" "$temp/goodput.json" \
    "$temp/comparison.json" "$temp/links.json" "$temp/price.json"
if [ -x "${MESHWRIGHT_SIM-}" ]; then
    answers 0 simulate "$temp/whole.json" --json
    mv "$temp/stdout" "$temp/simulation.json"
    set -- "$@" "$temp/simulation.json"
fi
answers 0 report "$@" -o "$temp/whole.html"

# A job whose pipeline is too long to draw in full.
cat >"$temp/large.json" <<'END'
{"schema": 1, "model": "llama-3.1-405b", "cluster": "dgx-h100:256",
 "training": {"seq_len": 8192, "global_batch": 2048, "precision": "bf16"},
 "parallel": {"tp": 8, "pp": 16, "vpp": 8}}
END
answers 0 report "$temp/large.json" --no-simulation -o "$temp/large.html"
grep -q 'in the middle of the step are not drawn' "$temp/large.html" || fail "nothing was left out"

# Names that would be markup.
printf '%s' '{"schema": 1, "model": {"name": "<script>alert(1)</script>\"\u0027\n<img src=x onerror=alert(2)>",
 "model_type": "llama", "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 4,
 "num_attention_heads": 8, "vocab_size": 1000}, "cluster": "dgx-h100:1",
 "training": {"seq_len": 512, "global_batch": 64, "precision": "bf16"}, "parallel": {"pp": 2}}' \
    >"$temp/<img src=x onerror=alert(3)>.json"
answers 0 report "$temp/<img src=x onerror=alert(3)>.json" "$temp/grid.json" -o "$temp/evil.html"

mkdir -p "$build/report-pages"
(cd "$temp/page" && node check.mjs "$build/report-pages" "$temp/whole.html" "$temp/large.html" "$temp/evil.html")
