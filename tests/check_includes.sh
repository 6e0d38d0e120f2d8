#!/bin/sh
# Rejects an #include in a wrong direction. Usage: check_includes.sh [ROOT]
#
# Data walks one way, so every folder may include only what the table below names: folders of
# this tree in quotes, from the root; libraries of others only where they are wrapped. Within a
# folder of several rooms the same holds between these, and no two of them include each other,
# whatever the way round. The check first proves itself on planted mistakes.
set -eu

# Folder, then what it may include. "*" is everything.
rules='
base:      base cjson
config:    base config
plan:      base config plan
workload:  base config plan workload
costmodel: base config plan workload costmodel
calibrate: base config plan workload costmodel calibrate gsl
planner:   base config plan workload costmodel planner glpk
sim:       base config plan workload costmodel sim simgrid
serving:   base config plan workload costmodel serving
whatif:    base config plan workload costmodel planner serving whatif
report:    base config plan workload costmodel calibrate planner sim serving whatif report
launch:    base config plan workload costmodel calibrate planner sim serving whatif launch
import:    base config plan launch import cjson toml
backend:   base backend cuda mpi
profiler:  base config backend profiler cuda
runtime:   base config plan workload costmodel backend runtime mpi
cli:       *
tests:     *
'

# Room, then the rooms of its folder that it may include, beside itself.
rooms='
config/machine:
config/model:
config/model/family: config/model
config/model/mixer:  config/model
config/kernels:      config/machine
config/software:     config/machine config/kernels
config/cluster:      config/machine config/kernels config/software
config/job:          config/machine config/model config/software config/cluster
workload/technique/technique.h:
workload/pass:       workload/technique/technique.h
workload/technique:  workload/technique/technique.h workload/pass
workload/step:       workload/technique/technique.h workload/pass
costmodel/kernel:
costmodel/network:   costmodel/kernel
costmodel/pass:      costmodel/kernel costmodel/network
costmodel/memory:
costmodel/step:      costmodel/kernel costmodel/network costmodel/pass costmodel/memory
planner/placement:
planner/planner.h:   planner/placement
planner/stages:
planner/space:       planner/planner.h planner/stages
planner/harvest:     planner/planner.h planner/stages planner/space
planner/why:         planner/planner.h planner/harvest
planner/groups:      planner/planner.h planner/stages planner/space planner/harvest planner/why
planner/search:      planner/planner.h planner/space planner/harvest planner/why
planner/layerwise:   planner/planner.h planner/space planner/harvest
planner/lengths:     planner/planner.h planner/space
planner/questions:   planner/planner.h planner/space planner/harvest planner/why planner/groups
planner/planner.c:   planner/planner.h planner/groups planner/search
cli:
cli/calibrate:       cli
cli/plan:            cli
cli/profile:         cli
cli/run:             cli
cli/simulate:        cli
cli/validate:        cli
cli/whatif:          cli
'

# Library, then a pattern for its headers.
libraries='
cjson:   ^(cjson/|cJSON)
glpk:    ^glpk
simgrid: ^(simgrid|xbt|smpi)/
gsl:     ^(gsl/|cminpack|minpack)
cuda:    ^(cuda|cupti|nvtx3|nccl|nvml|cublas)
mpi:     ^mpi
toml:    ^toml\+\+
cunit:   ^CUnit/
'

# Prints every wrong include below the folder $1.
check() {
    (
        cd "$1"
        find . \( -path './build*' -o -path './.*' -o -path ./docs \) -prune -o \
            \( -name '*.[ch]' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print |
            sed 's,^\./,,' | sort | while read -r file; do
            awk -v file="$file" -v rules="$rules" -v libraries="$libraries" -v rooms="$rooms" '
                # A path itself where it has a row, else its directory.
                function room_of(path) {
                    if (!(path in reach)) sub("/[^/]*$", "", path)
                    return path
                }
                function fail(why) { printf "%s:%d: %s: %s\n", file, NR, header, why }
                function may(what) { return index(allowed, " * ") || index(allowed, " " what " ") }
                BEGIN {
                    folder = file; sub("/.*", "", folder)
                    n = split(rules, row, "\n")
                    for (i = 1; i <= n; i++) {
                        name = row[i]; sub(":.*", "", name)
                        if (name == "") continue
                        known[name] = 1
                        if (name != folder) continue
                        sub("^[^:]*: *", "", row[i]); allowed = " " row[i] " "
                    }
                    if (!(folder in known)) {
                        printf "%s: %s/ has no row in tests/check_includes.sh\n", file, folder
                        exit
                    }
                    num_libraries = split(libraries, library, "\n")
                    n = split(rooms, row, "\n")
                    for (i = 1; i <= n; i++) {
                        name = row[i]; sub(":.*", "", name)
                        if (name == "") continue
                        sub("^[^:]*: *", "", row[i]); reach[name] = " " row[i] " "
                        sub("/.*", "", name); has_rooms[name] = 1
                    }
                    room = room_of(file)
                    if (folder in has_rooms && !(room in reach)) {
                        printf "%s: %s/ has no row among the rooms of tests/check_includes.sh\n",
                            file, room
                        exit
                    }
                }
                /^[ \t]*#[ \t]*include[ \t]*"/ {
                    split($0, part, "\""); header = part[2]
                    target = header; sub("/.*", "", target)
                    if (!(target in known)) fail("not written from the root of the tree")
                    else if (!may(target)) fail(folder " may not include " target)
                    else if (target == folder && folder in has_rooms) {
                        other = room_of(header)
                        if (other != room && !index(reach[room], " " other " "))
                            fail(room " may not include " other)
                    }
                }
                /^[ \t]*#[ \t]*include[ \t]*</ {
                    split($0, part, "[<>]"); header = part[2]
                    for (i = 1; i <= num_libraries; i++) {
                        name = library[i]; sub(":.*", "", name)
                        pattern = library[i]; sub("^[^:]*: *", "", pattern)
                        if (name != "" && header ~ pattern && !may(name))
                            fail(folder " may not include " name)
                    }
                }' "$file"
        done
    )
}

# Every unit test file has a row in suites.def, or it would never run.
check_suites() {
    find "$1/tests" -name 'test_*.c' | sort | while read -r file; do
        suite=$(basename "$file" .c)
        suite=${suite#test_}
        grep -q -e "^SUITE($suite)" -e "^CUPTI_SUITE($suite)" "$1/tests/suites.def" ||
            echo "tests/suites.def: no row SUITE($suite) for $file"
    done
}

# The table of rooms has no circle: tsort names the rooms of one.
check_rooms() {
    printf '%s\n' "$rooms" | tr -d ':' |
        awk '{ for (i = 2; i <= NF; i++) print $1, $i }' | tsort 2>&1 >"$temp/order" |
        sed 's,^,tests/check_includes.sh: ,'
}

# Plants one include in a tree of its own; the check must find it wrong ($3 is 1) or right (0).
prove() {
    mkdir -p "$temp/${1%/*}"
    echo "#include $2" >"$temp/$1"
    found=$(check "$temp" | wc -l)
    rm "$temp/$1"
    [ "$found" -eq "$3" ] || {
        echo "check_includes.sh: self-test: $1 with '$2' gave $found findings, expected $3"
        exit 1
    }
}

temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
prove planner/search/a.c '"sim/client.h"' 1
prove sim/a.cpp '"planner/planner.h"' 1
prove base/a.h '"config/model/model.h"' 1
prove costmodel/kernel/a.c '"collective.h"' 1
prove costmodel/kernel/a.c '"../base/status.h"' 1
prove config/job/a.c '<cjson/cJSON.h>' 1
prove sim/a.c '<glpk.h>' 1
prove newfolder/a.c '<math.h>' 1
prove planner/search/a.c '"costmodel/network/collective.h"' 0
prove planner/search/a.c '<glpk.h>' 0
prove sim/sgx.cpp '<simgrid/s4u.hpp>' 0
prove cli/main.c '"planner/planner.h"' 0
prove planner/harvest/a.c '"planner/search/search.h"' 1
prove planner/a.c '"planner/search/search.h"' 1
prove costmodel/newroom/a.c '"base/status.h"' 1
prove costmodel/kernel/a.c '"costmodel/pass/price.h"' 1
prove planner/search/a.c '"planner/harvest/harvest.h"' 0
prove planner/search/a.c '"planner/planner.h"' 0

root=${1:-$(dirname "$0")/..}
findings=$(check "$root"; check_rooms; check_suites "$root")
[ -z "$findings" ] || {
    printf '%s\n' "$findings"
    exit 1
}
