#!/bin/sh
# GLPK (GPL-3) and SimGrid (whose Debian build holds GPL-2 code) never meet in one executable.
# See NOTICE. Reads MESHWRIGHT and MESHWRIGHT_SIM; exits 77 where one of them is not built.
set -eu
[ -e "$MESHWRIGHT" ] && [ -e "$MESHWRIGHT_SIM" ] || exit 77

# Fails if executable $1 needs a library whose name starts with $2.
refuse() {
    if readelf -d "$1" | grep "NEEDED.*\[$2"; then
        echo "$1 links $2"
        exit 1
    fi
}

refuse "$MESHWRIGHT" libsimgrid
refuse "$MESHWRIGHT_SIM" libglpk

# No function is defined in two of our libraries: the linker would take either, without a word.
twice=$(for library in "$(dirname "$MESHWRIGHT")"/libmw_*.a; do
    nm -g --defined-only "$library" 2>/dev/null | awk '$2 == "T" { print $3 }' | sort -u
done | sort | uniq -d)
[ -z "$twice" ] || {
    echo "defined twice: $twice"
    exit 1
}
