#!/bin/sh
# docs/scenario.md has every key that the tables of config/ accept, and every name they list.
set -eu
page=docs/scenario.md
num_missing=0

# want WORD FILE: the page has `WORD`, also as a part: `scale_out.WORD`, `WORD (..`.
want() {
    grep -qE "[\`.\"]$1[\`\":]" $page && return
    echo "$page: no $1 ($2)"
    num_missing=$((num_missing + 1))
}

for file in config/job/scenario.c config/job/training.c config/job/parallel.c config/cluster/cluster.c \
    config/job/scenario_disturb.c; do
    keys=$(sed -n '/_FIELDS\[\] = {/,/^};/p; /^    {[a-z_]*_read,/,/},/p' $file |
        grep -oE '([A-Z]+\("?|\{")[a-z_0-9]+' | sed -E 's/.*[("]//' | sort -u)
    [ -n "$keys" ] || num_missing=$((num_missing + 1))
    for key in $keys; do
        case $key in
        title | sources) ;; # of a preset's file
        *_read | json_* | arena) ;; # of functions
        *) want "$key" $file ;;
        esac
    done
done
for file in config/job/training.c config/job/parallel.c config/cluster/cluster.c; do
    for name in $(sed -n '/_NAMES\[[A-Z_ +1]*\] *= *{/,/};/{/#include/!p}' $file |
        grep -oE '"[^"]+"' | tr -d '"'); do
        want "$name" $file
    done
done
schedules=$(sed -n 's/^X([A-Z0-9_]*, "\(.*\)")$/\1/p' config/job/schedules.def)
for name in $schedules; do
    want "$name" config/job/schedules.def
done
techniques=$(sed -n 's/^TECHNIQUE[A-Z_]*([A-Z0-9_]*, \([a-z_0-9]*\)[,)].*$/\1/p' config/software/techniques.def)
[ -n "$techniques" ] || num_missing=$((num_missing + 1))
for key in $techniques; do
    want "$key" config/software/techniques.def
done
[ $num_missing -eq 0 ]
