#!/bin/sh
# docs/rules/ shows the rules of the stacks as their files have them, and says where they do not.
set -eu
python3 tools/figures/rule_tables.py --check
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
mkdir -p "$copy/docs" "$copy/stacks" "$copy/tools/figures"
cp -r docs/rules "$copy/docs"
cp tools/figures/rule_tables.py "$copy/tools/figures"
cp -r stacks/rules "$copy/stacks"
sed -i 's/"id": "no-tp"/"id": "no-tensors"/' "$copy/stacks/rules/pytorch-fsdp.json"
cd "$copy"
if python3 tools/figures/rule_tables.py --check >found; then
    echo "a changed rule is not seen" >&2
    exit 1
fi
grep -q 'docs/rules/pytorch-fsdp.md$' found
