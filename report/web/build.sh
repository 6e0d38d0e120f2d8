#!/bin/sh
# Makes FOLDER/page.html of this folder: npm installs what the lock file names into FOLDER, esbuild
# packs it. Where that fails the text is empty and as old as can be, so that the next build tries
# again; the build goes on.
#
# usage: build.sh NODE NPM FOLDER
set -eu
node=$1
npm=$2
folder=$3
web=$(cd "$(dirname "$0")" && pwd)

mkdir -p "$folder"
rm -rf "$folder/web"
cp -R "$web" "$folder/web"
rm -rf "$folder/web/node_modules"
if (cd "$folder/web" && "$npm" ci --ignore-scripts --prefer-offline &&
    "$node" build.mjs "$folder/page.html") >"$folder/page.log" 2>&1; then
    exit 0
fi
tail -n 5 "$folder/page.log" >&2
echo "warning: this build makes no HTML reports: npm or esbuild failed ($folder/page.log)" >&2
: >"$folder/page.html"
touch -t 198001010000 "$folder/page.html"
