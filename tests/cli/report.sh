#!/bin/sh
# `report`: what it takes, what it refuses, the same tables in every format, and that no name of a
# model or file becomes markup, a formula or another cell.
set -eu
command -v python3 >/dev/null || exit 77
. tests/support.sh
accuracy=$PWD/docs/accuracy.md
scores=$PWD/published/accuracy.json
cd "$temp"

cat >job.json <<'END'
{"schema": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100:2",
 "training": {"seq_len": 4096, "global_batch": 64, "precision": "bf16"},
 "parallel": {"tp": 2, "pp": 4, "vpp": 2}}
END
answers 0 plan job.json --top 3 --json
mv stdout plans.json
COLUMNS=1000 answers 0 plan job.json --top 3
mv stdout plans.txt
answers 0 plan job.json --pareto --json
mv stdout pareto.json
answers 0 report pareto.json --format json
mv stdout pareto-report.json
COLUMNS=1000 answers 0 plan job.json --pareto
mv stdout pareto.txt
answers 0 whatif job.json --vary training.global_batch=32,64,128 --json
mv stdout grid.json
answers 0 estimate job.json --json
mv stdout estimate.json
cat >sensitivity.json <<'END'
{"schema": 1, "sensitivity": {"change_frac": 0.2, "limited_by": "compute", "base": {"step_time_s": 2}, "rows": [
  {"resource": "compute", "saves_frac": 0.1, "costs_frac": 0.2,
   "better": {"factor": 1.2, "step_time_s": 1.8}, "worse": {"factor": 0.8, "step_time_s": 2.4}},
  {"resource": "memory", "saves_frac": 0, "costs_frac": null,
   "better": {"factor": 1.2, "step_time_s": 2}, "worse": {"factor": 0.8}}]}}
END
answers 0 whatif job.json --goodput --json
mv stdout goodput.json
COLUMNS=1000 answers 0 whatif job.json --goodput
mv stdout goodput.txt
sed 's/"tp": 2/"tp": 4/' job.json >other-job.json
answers 0 compare job.json other-job.json --json
mv stdout comparison.json
COLUMNS=500 answers 0 compare job.json other-job.json
mv stdout comparison.txt
simulation=
if [ -x "${MESHWRIGHT_SIM-}" ]; then
    answers 0 simulate job.json --json
    mv stdout simulation.json
    simulation=simulation.json
fi
# shellcheck disable=SC2086 # a list of words
for format in json md csv; do
    answers 0 report job.json plans.json grid.json estimate.json sensitivity.json goodput.json \
        comparison.json $simulation \
        --format $format -o "all.$format"
    [ "$(cat stdout)" = "The report is all.$format." ] || fail "-o and an answer on standard output"
    answers 0 report job.json plans.json grid.json estimate.json sensitivity.json goodput.json \
        comparison.json $simulation \
        --format $format
    cmp stdout "all.$format" || fail "$format: another time, other bytes"
done
# What changes of prices, and what limits, is said in the summary; the table has the price.
answers 0 whatif job.json --vary cluster.price_usd_per_gpu_hour=2,4 --json
mv stdout price.json
answers 0 report price.json sensitivity.json --format json
mv stdout said.json
python3 - <<'END'
import json
report = json.load(open("said.json"))
section = report["parts"][0]["sections"][0]
assert section["title"] == "Cost over price_usd_per_gpu_hour" and section["data"]["figure"] == "usd_per_1e9_tokens", section
costs, limits = report["summary"]
assert costs.startswith("Of 2 changes that were asked 2 fit. A billion tokens cost least, "), costs
assert costs.endswith(" USD, with cluster.price_usd_per_gpu_hour 2."), costs
assert limits == "Limited by compute: 20 % more saves 10.00 % of the step.", limits
END
answers 0 whatif job.json --vary cluster.price_usd_per_gpu_hour=2,4
grep -q 'memory  *USD/1e9  plan$' stdout || fail "$(cat stdout)"
# What plan says of its space and of open switches, the report says, too.
cat >experts.json <<'END'
{"schema": 1, "model": "mixtral-8x7b", "cluster": "dgx-h100:4",
 "training": {"seq_len": 4096, "global_batch": 256, "precision": "bf16"}}
END
answers 0 plan experts.json --top 2 --json
mv stdout experts-plans.json
answers 0 plan experts.json --top 2 -o experts
tr -s ' \n' ' ' <stdout >experts.txt
answers 0 report experts-plans.json --format json
mv stdout experts-report.json
python3 - <<'END'
import json
answer, report = json.load(open("experts-plans.json")), json.load(open("experts-report.json"))
sections = {s["id"]: s for s in report["parts"][0]["sections"]}
space = answer["search"]["space"]
assert space.startswith("Searched with each: splits of whole layers over the stages, of which "), space
assert "; not: offload to the host" in space, space
assert sections["alternatives"]["text"].endswith(" " + space), sections["alternatives"]["text"]
assert space in open("experts.txt").read(), space
rows = sections["switches"]["rows"]
assert len(rows) == len(answer["switches"]) > 0, rows
for row, switch in zip(rows, answer["switches"]):
    assert row[:3] == [switch["change"], switch["gain_frac"], switch["step_time_s"]], (row, switch)
    assert row[3:] == [switch.get("plan_change"), switch.get("caution")], (row, switch)
    assert f"{row[0]}: " in open("experts.txt").read(), row
END
[ "$(grep -c 'Switches that the scenario leaves open' experts/report.html)" -gt 0 ] || fail "no switches in the page"
# Other questions have spaces of their own.
answers 0 plan job.json --pareto --json
grep -q '"space":.*the default one, and one with balanced stages; not: offload to the host, GPUs left idle, .*, nor what megatron-core lacks; what is stated is searched\.' stdout ||
    fail "$(grep '"space"' stdout)"
# A long value is shown where it differs.
python3 - <<'END'
import json
for name, last in (("even", 4), ("uneven", 3)):
    job = json.load(open("job.json"))
    stages = [{"layers": 4} for _ in range(8)]
    stages[0].update(embedding=True)
    stages[6]["layers"], stages[7] = 8 - last, {"layers": last, "loss": True}
    job["parallel"] = {"tp": 2, "pp": 8, "stages": stages}
    json.dump(job, open(f"{name}.json", "w"))
END
run_program compare even.json uneven.json
[ "$(grep '^parallel.stages' stdout)" = \
    'parallel.stages  ...},{"layers":4},{"layers":4,"loss":true}]  ...},{"layers":5},{"layers":3,"loss":true}]' ] ||
    fail "$(cat stdout stderr)"

answers 0 estimate job.json --json
mv stdout estimate.out

# The figures are those of the answers; the formats have the same cells.
python3 - "${simulation:-none}" <<'END'
import csv, json, re, sys

report = json.load(open("all.json"))
sections = {s["id"]: s for part in report["parts"] for s in part["sections"]}

# Rows of a section as people read them.
def table_of(name):
    lines = open("all.md").read().split(f"\n### {sections[name]['title']}\n", 1)[1].split("\n### ")[0].splitlines()
    rows = [line for line in lines if line.startswith("| ")][2:]
    return [[cell.strip().replace("\\", "") for cell in row.strip("|").split(" | ")] for row in rows]

need = ["figures", "layout", "waterfall", "parts", "memory", "timeline", "alternatives", "pareto",
        "whatif", "alternatives-2", "sensitivity", "goodput", "goodput-run", "goodput-basis",
        "compare-changes", "compare-step", "compare-memory", "compare-rates", "files", "assumptions",
        "accuracy"]
if sys.argv[1] != "none":
    need += ["simulation", "links", "path", "simulation-2"]
assert not [name for name in need if name not in sections], sections.keys()
estimate = json.load(open("estimate.out"))

def column(name, key):
    section = sections[name]
    at = [c["key"] for c in section["columns"]].index(key)
    return [row[at] for row in section["rows"]]

assert column("figures", "step_time_s") == [estimate["step_time_s"]]
near = lambda a, b: abs(a - b) <= 1e-9 * abs(b)
waterfall = column("waterfall", "time_s")
assert near(sum(waterfall[:-1]), waterfall[-1]) and near(waterfall[-1], estimate["step_time_s"])
assert near(max(column("memory", "device_bytes")), estimate["memory_device_bytes"])
assert len(sections["memory"]["rows"]) == 4
parts = [c["key"] for c in sections["memory"]["columns"]][1:8]
for i, whole in enumerate(column("memory", "device_bytes")):
    assert near(sum(column("memory", key)[i] for key in parts), whole)
gpus = sections["layout"]["data"]["gpus"]
assert sorted(gpu[2] for gpu in gpus) == list(range(16)) and len({tuple(g[:2]) for g in gpus}) == 16
plans = json.load(open("plans.json"))["plans"]
assert column("alternatives", "step_time_s") == [plan["step_time_s"] for plan in plans]
# The sentences of the report are those of the text; so are plans whose layers do not differ.
said = open("plans.txt").read()
for name, why in zip(column("alternatives", "plan"), column("alternatives", "why")):
    assert f" {name} " in said and f" {why}\n" in said and "exposed: " in why, (name, why)
searched = re.search(r"^Searched \d+ configurations: .*", said, re.M)[0]
assert searched in sections["alternatives"]["text"], searched
traded = json.load(open("pareto-report.json"))["parts"][0]["sections"][0]
frontier = open("pareto.txt").read().splitlines()
assert re.search(r"The frontier of step time, memory and energy: .*", traded["text"])[0].startswith(frontier[-2])
assert [row[1] in line for row, line in zip(traded["rows"], frontier[3:])] == [True] * len(traded["rows"])
assert column("whatif", "training.global_batch") == [32, 64, 128]
assert column("sensitivity", "less_step_time_s") == [2.4, None]
assert [row[1:3] for row in sections["sensitivity"]["rows"]] == [["-10.00 %", "+20.00 %"], ["+-0.00 %", "does not fit"]]
assert "tornado" not in [c["key"] for c in sections["sensitivity"]["columns"]]

goodput = json.load(open("goodput.json"))["goodput"]
basis = [f"{what:16}{text}" for what, text in sections["goodput-basis"]["rows"]]
assert basis == open("goodput.txt").read().splitlines()[3:-2], basis
spares, inputs = goodput["spares"], goodput["inputs"]
assert basis[0].startswith(f"failures        {inputs['failures_per_gpu_hour']:.3g} per GPU-hour: one in "), basis
assert f" on {goodput['num_gpus']} GPUs, {100 * inputs['hardware_frac']:.0f} % of them take" in basis[0], basis
best = next(i for i in goodput["intervals"] if i["num_steps"] == goodput["checkpoint_every_steps"])
assert basis[3].startswith(f"checkpoint      every {best['num_steps']} steps, ") and basis[3].endswith(
    f": {100 * best['formula_goodput_frac']:.2f} % of the time is progress, {100 * best['goodput_frac']:.2f}"
    f" +- {100 * best['goodput_error_frac']:.2f} % played"), basis
assert basis[5].startswith(f"spare nodes     {spares['best_num_nodes']} worth the price, for {goodput['num_nodes']} nodes"), basis
waits = 100 * (1 - spares["available_frac"])
assert f"with {spares['num_nodes'] or 'none'} the job waits {waits:.2f} % of the time" in basis[5], basis
assert column("goodput", "goodput_frac") == [i["goodput_frac"] for i in goodput["intervals"]]
assert near(sum(column("goodput-run", "time_s")), goodput["simulated"]["wall_s"])
assert near(sum(column("goodput-run", "time_frac")), 1)
comparison = json.load(open("comparison.json"))
terms = comparison["terms"]
steps, memory, rates = ("compare-step", "compare-memory", "compare-rates")
shown = [t for t in terms if t["a"] or t["b"]]
assert [t["name"] for t in shown] == column(steps, "term") + column(memory, "term") + column(rates, "term")
assert [t["b"] for t in shown] == column(steps, "b_s") + column(memory, "b_bytes") + column(rates, "b_figure")
assert near(sum(column(steps, "a_s")[:-1]), column(steps, "a_s")[-1])
assert column(memory, "term")[-1] == "memory_available_bytes" and "usd_per_1e9_tokens" in column(rates, "term")
assert ["parallel.tp", "2", "4"] in sections["compare-changes"]["rows"]
compared = re.sub(r" (0 ns|0 B|\+0\.0 %)(?=\s)", " 0", open("comparison.txt").read()).splitlines()
assert compared[-1].startswith("B trains ") and "Of the two that are compared: " + compared[-1] in report["summary"]
for name in (steps, memory, rates):  # the cells of the report are those of the text
    for row in table_of(name):
        assert any(line.split() == " ".join(row).split() for line in compared), (name, row)
assert any("of the time is progress" in said for said in report["summary"]), report["summary"]
runs = sections["timeline"]["data"]["runs"]
assert len(runs) == (2 if sys.argv[1] != "none" else 1)
for run in runs:
    tick = sections["timeline"]["data"]["tick_s"]
    for track, row in zip(run["tracks"], sections["timeline"]["rows"]):
        cells = track["slices"]
        slices = [cells[i:i + 5] for i in range(0, len(cells), 5)]
        forwards = {(s[3], s[4]) for s in slices if s[2] == 0}
        assert len(forwards) == 2 * 64 / 2, "a forward each chunk and micro-batch"
        assert all(0 <= s[0] and s[0] + s[1] <= run["end"] + 1 for s in slices)
        computing = sum(s[1] for s in slices if s[2] <= 4) * tick
        assert abs(computing - row[2]) < 1e-3 * row[2] + 400 * tick
        work = [s for s in slices if s[2] <= 4]
        assert all(a[0] + a[1] <= b[0] + 1 for a, b in zip(work, work[1:])), "one computation at a time"

rows = list(csv.reader(open("all.csv")))
assert rows[0] == ["section", "row", "column", "value"] and all(len(row) == 4 for row in rows)
flat = {}
for section, row, key, value in rows[1:]:
    flat.setdefault(section, {}).setdefault(int(row), []).append(value)
for name, section in sections.items():
    assert len(flat.get(name, {})) == len(section["rows"]), name
assert [float(v) for v in flat["waterfall"][1][1:]] == [float("%.15g" % v) for v in sections["waterfall"]["rows"][0][1:]]
text = open("all.md").read()
for section in sections.values():
    assert "### " in text and f"| {section['columns'][0]['title']} |".replace("_", "\\_").replace("#", "\\#") in text, section["id"]
END

# Names of all kinds of characters stay names.
mkdir "it's <b> & \"q\""
python3 - <<'END'
import json
name = "<script>alert(1)</script>\"'`|\n=cmd</script><!--"
model = json.loads("""{"model_type": "llama", "hidden_size": 512, "intermediate_size": 1024,
 "num_hidden_layers": 4, "num_attention_heads": 8, "vocab_size": 1000}""")
job = {"schema": 1, "model": {**model, "name": name}, "cluster": "dgx-h100:1",
       "training": {"seq_len": 512, "global_batch": 64, "precision": "bf16"}}
folder = "it's <b> & \"q\""
json.dump(job, open(f"{folder}/<img src=x onerror=alert(2)>\n.json", "w"))
grid = json.load(open("grid.json"))
grid["points"][0]["error"] = "=HYPERLINK(\"x\"),</script><script>alert(3)</script>"
json.dump(grid, open(f"{folder}/@grid.json", "w"))
END
for format in json md csv; do
    answers 0 report --no-simulation --format $format -o "evil.$format" "it's <b> & \"q\""/*
done
python3 - <<'END'
import csv, json
rows = list(csv.reader(open("evil.csv", newline="")))
assert all(len(row) == 4 for row in rows)
assert not [row for row in rows if row[3][:1] in ("=", "@")], "a formula"
text = open("evil.md").read()
assert "<script" not in text and "<img" not in text and "<b>" not in text
assert "<script>alert(1)</script>" in json.load(open("evil.json"))["title"]
END

# HTML, where this build has its page: no name ends the document that the page carries.
rc=0
"$MESHWRIGHT" report job.json --no-simulation -o page.html 2>stderr || rc=$?
if [ $rc -eq 0 ]; then
    [ "$(wc -c <page.html)" -lt 2500000 ] || fail "page.html is too large"
    answers 0 report --no-simulation -o evil.html "it's <b> & \"q\""/*
    [ "$(grep -c -i '<script>alert' evil.html)" -eq 0 ] || fail "a model's name is a script"
    [ "$(grep -c -o '<script' page.html)" -eq "$(grep -c -o '<script' evil.html)" ] || fail "evil.html: more scripts"
    if grep -q -E 'https?://[^ "]*\.(js|css|woff2?|png)|@import|<link rel="stylesheet' page.html; then fail "page.html asks for files"; fi
    answers 0 plan job.json -o out
    [ -s out/report.html ] || fail "plan -o: no report.html"
    answers 0 whatif job.json --vary training.seq_len=2048,4096 -o grid
    [ -s grid/report.html ] || fail "whatif -o: no report.html"
else
    [ $rc -eq 3 ] || fail "report without its page: exit $rc"
    grep -q '^meshwright: this build has no HTML reports: ' stderr || fail "$(cat stderr)"
    [ ! -e page.html ] || fail "a page from nowhere"
fi

# Refusals, before any work, with nothing left behind.
refuses 'meshwright: report: no FILE given; meshwright report --help shows examples' report
refuses 'meshwright: --format: "pdf" is unknown; expected html, md, csv or json' report job.json --format pdf
refuses 'nofolder/x.md: cannot be written: there is no folder nofolder' \
    report job.json --format md -o nofolder/x.md
refuses 'job.json: is the input job.json; expected another file to write' \
    report job.json --format md -o job.json
refuses 'missing.json: cannot be read: No such file or directory' report missing.json --format md
echo '{"schema": 1}' >other.json
refuses 'other.json: is nothing a report is made of; expected a plan.json, or what plan, estimate, simulate, whatif or compare print with --json' \
    report job.json other.json --format md -o new.md
sed 's/"step_time_s"/"step_time"/' plans.json >broken.json
refuses 'broken.json: plans[0].step_time_s: missing; expected a number' report broken.json --format md -o new.md
echo '{"vary": [], "points": []}' >broken.json
run_program report broken.json --format md -o new.md
[ $rc -eq 2 ] || fail "a grid without axes: exit $rc"
[ ! -e new.md ] || fail "a refusal left a file"

# The scores that reports show are those of docs/accuracy.md.
python3 - "$accuracy" "$scores" <<'END'
import json, re, sys

text = open(sys.argv[1]).read()
for entry, mark in zip(json.load(open(sys.argv[2]))["sets"], ("stated", "bundled")):
    table = text.split(f"<!-- {mark} begins -->")[1].split(f"<!-- {mark} ends -->")[0]
    rows = {m[1]: m for m in re.finditer(r"^(\S+|ALL stated) +(\d+) +\d+ +\d+ +(\S+) % +(\S+) % +(\S+) % +(\S+) % +(\S+) %", table, re.M)}
    assert len(rows) == len(entry["families"]) + 1, rows.keys()
    for score in entry["families"] + [{**entry["all"], "family": "ALL stated"}]:
        row = rows[score["family"]]
        keys = ["mape_frac", "median_frac", "p90_frac", "bias_frac", "inside_interval_frac"]
        assert int(row[2]) == score["num_cases"]
        for i, key in enumerate(keys):
            assert abs(float(row[3 + i]) - 100 * score[key]) < 0.051, (score["family"], key)
END
