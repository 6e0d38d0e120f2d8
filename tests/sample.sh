# tests/sample.sh - of many alike cases a run takes a sample, another one at each commit.
# ./dev makes MESHWRIGHT_TEST_SEED of the commit; with MESHWRIGHT_TEST_FULL all cases are taken.
# shellcheck shell=sh
num_offered=0

# one_of N: whether the next case is of the sample.
one_of() {
    num_offered=$((num_offered + 1))
    [ -n "${MESHWRIGHT_TEST_FULL-}" ] || [ $(((num_offered + ${MESHWRIGHT_TEST_SEED:-0}) % $1)) -eq 0 ]
}

# sampled COUNT: of so many cases of a kind, how many a sample of one in three has at least.
sampled() {
    if [ -n "${MESHWRIGHT_TEST_FULL-}" ]; then echo "$1"; else echo $(($1 / 4)); fi
}
