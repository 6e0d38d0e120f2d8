#!/usr/bin/env python3
"""Writes docs/rules/NAME.md, the tables of rules as people read them, from stacks/rules/NAME.json.

Usage: tools/figures/rule_tables.py [--check]    from the root of the tree
--check writes nothing and ends with 1 where a page is not what its file says.
"""
import json
import pathlib
import sys


def cell(text):
    return text.replace("|", "\\|")


def page(table, file):
    targets = {True: "started by nothing here", False: "started by `launch --for %s`"}
    launch = table["launch"]
    is_target = table["name"].startswith("for-")
    started = (
        "a target of `launch` for plans of %s" % ", ".join("`%s`" % name for name in launch)
        if is_target
        else targets[not launch] % ((", ".join(launch),) if launch else ())
    )
    lines = [
        "# Rules of `%s`" % table["name"],
        "",
        "%s, %s. Generated from [%s](../../%s) by `tools/figures/rule_tables.py`; how a rule is written and"
        % (table["software"], started, file.name, file.as_posix()),
        "asked: [rules.md](../rules.md).",
        "",
    ]
    lines += ["- `%s`: %s" % (name, version) for name, version in table["sources"].items()]
    for stops, title in (
        (True, "What stops the software"),
        (False, "What it lacks"),
    ):
        rules = [rule for rule in table["rules"] if rule.get("stops", False) == stops]
        if not rules:
            continue
        lines += ["", "## " + title, "", "| rule | key | must hold | source |", "| --- | --- | --- | --- |"]
        for rule in rules:
            name, path, place = rule["source"]
            lines.append(
                "| `%s` | `%s` | `%s` | `%s`: %s, %s |"
                % (rule["id"], rule["key"], cell(rule["holds"]), name, cell(path), cell(place))
            )
    return "\n".join(lines) + "\n"


def main():
    check = "--check" in sys.argv[1:]
    folder = pathlib.Path("docs/rules")
    differs = []
    names = set()
    for file in sorted(pathlib.Path("stacks/rules").glob("*.json")):
        text = page(json.loads(file.read_text(encoding="utf-8")), file)
        out = folder / (file.stem + ".md")
        names.add(out.name)
        if check:
            if not out.exists() or out.read_text(encoding="utf-8") != text:
                differs.append(out.as_posix())
        else:
            folder.mkdir(exist_ok=True)
            out.write_text(text, encoding="utf-8")
    differs += [old.as_posix() for old in sorted(folder.glob("*.md")) if old.name not in names]
    if differs:
        print("not as stacks/rules says (tools/figures/rule_tables.py writes them): " + ", ".join(differs))
        sys.exit(1)


main()
