#!/bin/sh
# docs/schedules has a picture of every schedule that the program supports, shown in
# docs/simulation.md; what they say still holds: the bubble within one per cent of the step, the
# activations in flight exactly. (tools/figures/draw_schedules.py draws them anew.)
set -eu
if [ ! -x "$MESHWRIGHT" ] || [ ! -x "$MESHWRIGHT_SIM" ]; then exit 77; fi
command -v python3 >/dev/null || exit 77
. tests/support.sh

python3 tools/figures/draw_schedules.py "$MESHWRIGHT" "$temp/schedules" >"$temp/captions"
[ "$(wc -l <"$temp/captions")" -ge 9 ] || fail "captions: $(cat "$temp/captions")"
(cd "$temp/schedules" && find . -name "*.svg" | sort) >"$temp/drawn"
(cd docs/schedules && find . -type f | sort) | diff - "$temp/drawn" || fail "docs/schedules is not what there is to draw"
python3 - "$temp/schedules" <<'END'
import os, re, sys, xml.dom.minidom

text = open("docs/simulation.md").read()
for name in sorted(os.listdir("docs/schedules")):
    titles = []
    for folder in sys.argv[1], "docs/schedules":
        path = os.path.join(folder, name)
        assert os.path.getsize(path) < 40000, path
        picture = xml.dom.minidom.parse(path)
        assert len(picture.getElementsByTagName("rect")) > 4 * 8 * 2, path
        titles.append(picture.getElementsByTagName("title")[0].firstChild.data)
    assert f"![{titles[1]}](schedules/{name})" in text, (name, titles[1])
    (now, drawn) = (re.match(r"(.*: bubble )(.*)( %.*)", title).groups() for title in titles)
    assert now[0] == drawn[0] and now[2] == drawn[2] and abs(float(now[1]) - float(drawn[1])) < 1, titles
END
