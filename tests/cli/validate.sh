#!/bin/sh
# validate: both answers, a file of one's own, bounds, refusals.
set -eu
. tests/support.sh
bundled=$PWD/published/training.jsonl
cd "$temp"

# The bundled set, and the same rows as a file, give the same bytes.
answers 0 validate
mv stdout bundled.txt
grep -q '^ALL stated ' bundled.txt || fail "no line for all"
grep -q '^mean of families with 8 or more cases: ' bundled.txt || fail "no mean of families"
grep -q '^Largest errors$' bundled.txt || fail "no worst cases"
answers 0 validate --data "$bundled"
cmp stdout bundled.txt
"$MESHWRIGHT" validate --data - <"$bundled" | cmp - bundled.txt
answers 0 validate --json
mv stdout bundled.json
answers 0 validate --json
cmp stdout bundled.json
grep -q '"mean_of_families_frac":' bundled.json || fail "JSON without a mean of families"

# One family, case by case.
answers 0 validate --family megatron-sc21 --cases --worst 0
[ "$(grep -c ' sc21-table1-' stdout)" -eq 10 ] || fail "--cases: $(cat stdout)"
answers 0 validate --family torchtitan-h200 --cases --worst 0
[ "$(grep -c '  titan-h200-.*  [+-][0-9.]* %$' stdout)" -eq 2 ] || fail "no memory of a case: $(cat stdout)"
answers 0 validate --family megatron-sc21 --cases --json
[ "$(grep -c '"id":' stdout)" -eq 20 ] || fail "--cases --json: 10 of the worst and 10 cases"
refuses 'meshwright: --family: no family of the bundled set begins with "sc22"' validate --family sc22

# A bound that is missed is a "no" after the full answer.
answers 0 validate --bound 0.9
answers 1 validate --bound 0.0001
cmp stdout bundled.txt
grep -q '^meshwright: the mean of families is [0-9.]* %, above the bound of 0.0 %$' stderr ||
    fail "$(cat stderr)"
refuses 'meshwright: --bound: "15x": unknown unit "x"; expected a share from 0 to 1, or %' validate --bound 15x

# Rows: bad ones are refused with their place, refused scenarios are counted.
head -n 2 "$bundled" >rows.jsonl
sed -n 3p "$bundled" | sed 's/"step_time_s"/"step_time"/' >>rows.jsonl
refuses 'rows.jsonl:3: truth.step_time: unknown key; the nearest known one is "step_time_s"' \
    validate --data rows.jsonl
head -n 2 "$bundled" >rows.jsonl
echo '{"id": "x" 1}' >>rows.jsonl
refuses 'rows.jsonl: line 3, column 12: syntax error: expected "," or "}", found "1"' \
    validate --data rows.jsonl
refuses 'nofile.jsonl: cannot be read: No such file or directory' validate --data nofile.jsonl
head -n 2 "$bundled" >rows.jsonl
sed -n 3p "$bundled" | sed 's/"tp": [0-9]*/"tp": 0/' >>rows.jsonl
answers 0 validate --data rows.jsonl
grep -q '^refused [^ ]*: rows.jsonl:3: scenario: parallel.tp: 0 is out of range' stdout ||
    fail "$(cat stdout)"
answers 1 validate --data rows.jsonl --bound 0.9
grep -q '^meshwright: --bound: 1 of 3 stated cases were refused; the mean error of the others is [0-9.]* %$' \
    stderr || fail "$(cat stderr)"
sed -n 3p rows.jsonl >refused.jsonl
answers 2 validate --data refused.jsonl
grep -q '^refused.jsonl:1: scenario: parallel.tp: 0 is out of range' stderr || fail "$(cat stderr)"

# What is assumed is apart, and only shown where it is asked for.
sed 's/"gate": true/"gate": false/' "$bundled" | head -n 3 >assumed.jsonl
head -n 2 "$bundled" >>assumed.jsonl
answers 0 validate --data assumed.jsonl
grep -q '^left out: 3 cases for which something was assumed (--all)$' stdout || fail "$(cat stdout)"
answers 0 validate --data assumed.jsonl --all
grep -q '^ALL assumed  *3 ' stdout || fail "$(cat stdout)"

# The data folder lacks its set: the machine's fault.
MESHWRIGHT_DATA=$temp
export MESHWRIGHT_DATA
answers 3 validate
