#!/bin/sh
# Names and paths that would steer a terminal, break lines or turn letters around are shown escaped,
# wherever they are printed or written as text.
set -eu
. tests/support.sh
mkdir "$temp/work"
cd "$temp/work"

# Escape, bell, newline, DEL, a C1 control (U+009B) and a mark of direction (U+202E).
cat >job.json <<'END'
{"schema": 1, "model": {"model_type": "llama", "hidden_size": 1024, "intermediate_size": 4096,
  "name": "a\u001b[2J\u001b]0;x\u0007b\nc\u007fd\u009b2Je\u202ef", "num_hidden_layers": 8,
  "num_attention_heads": 8, "vocab_size": 32000},
 "cluster": "dgx-h100:1",
 "training": {"seq_len": 1024, "global_batch": 64}}
END
escaped='a\u001b[2J\u001b]0;x\u0007b\nc\u007fd\u009b2Je\u202ef'

# clean FILE...: nothing but printable letters, spaces and ends of lines.
clean() {
    python3 - "$@" <<'END'
import re, sys
for path in sys.argv[1:]:
    text = open(path, "rb").read().decode()
    found = re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]", text)
    if path.endswith((".html", ".json")):  # of the page and cJSON's tabs
        found = re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]", text)
    if found:
        at = found.start()
        sys.exit("%s: %r in %r" % (path, found.group(), text[max(0, at - 60):at + 60]))
END
}

# shown CODE ARGUMENTS...: nothing of it steers a terminal.
shown() {
    answers "$@"
    clean "$temp/stdout" "$temp/stderr" || fail "meshwright $*"
}

# named: the answer has the name, escaped.
named() {
    grep -qF "$escaped" "$temp/stdout" || fail "not with the escaped name: $(cat "$temp/stdout")"
}

shown 0 plan job.json -o out
named
sed 's/"cluster"/"parallel": {"tp": 2}, "cluster"/' job.json >tp.json
shown 0 estimate tp.json
named
shown 0 whatif tp.json --vary training.seq_len=512,1024 -o grid
shown 0 whatif tp.json --sensitivity
shown 0 whatif tp.json --goodput
shown 0 whatif job.json --tokens 1e9 --days 30 --on dgx-h100
shown 0 compare tp.json out/plan.json -o both
shown 0 launch tp.json --dry-run
shown 0 launch tp.json --scheduler slurm --dry-run
shown 0 launch tp.json --scheduler k8s --dry-run
for format in md csv html; do
    run_program report out/plan.json --no-simulation --format $format -o report.$format
    [ $rc -eq 0 ] || [ $format = html ] || fail "report: $(cat "$temp/stderr")"
    [ ! -s report.$format ] || clean report.$format || fail "report.$format"
done
[ ! -x "${MESHWRIGHT_SIM-}" ] || shown 0 simulate tp.json
for answer in "plan job.json" "estimate tp.json" "compare tp.json out/plan.json"; do
    # shellcheck disable=SC2086 # a list of words
    answers 0 $answer --json
    cp "$temp/stdout" answer.json
    clean answer.json || fail "$answer --json"
done
clean out/* grid/* both/* || fail "a file of an answer"
python3 - <<'END'
import json
name = json.load(open("job.json"))["model"]["name"]
assert json.load(open("out/plan.json"))["model"]["name"] == name # JSON's escapes are the same text
END
printf '%s' '{"model_type": "llama", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 8, "num_attention_heads": 8, "vocab_size": 32000, "name": "m\u001b[31m"}' >model.json


# Names of files and folders, and refusals that quote them.
odd=$(printf 'x\033[2J\302\233y')
cp tp.json "$odd.json"
shown 0 estimate "$odd.json"
shown 0 plan "$odd.json" -o "$odd"
shown 2 plan "$odd.json" -o "$odd.json/x"
shown 0 launch "$odd/plan.json" -o "$odd"
shown 2 plan "no $odd"
shown 2 estimate job.json "--$odd"
shown 2 "$odd"
shown 0 compare tp.json "$odd.json"
shown 0 report "$odd.json" --no-simulation --format md -o "$odd.md"
sed 's/"seq_len": 1024/"seq_len": 1024, "a\\u001b": 1/' job.json >key.json
shown 2 plan key.json
sed 's/"predicted":/"version": "v\\u001b[31m", "predicted":/; s/"version":[[:space:]]*"meshwright[^,]*,//; s/"global_batch":[[:space:]]*64/"global_batch": 128/' \
    out/plan.json >forged.json
shown 0 estimate forged.json
grep -qF 'v\u001b[31m' "$temp/stderr" || fail "not told who wrote it: $(cat "$temp/stderr")"
shown 0 whatif tp.json --vary "model=./model.json,$odd.json"
