#!/usr/bin/env python3
"""Writes the scores that reports show: the figures of docs/accuracy.md as JSON.

usage: accuracy_data.py FILE TITLE=ANSWER...
ANSWER is what `meshwright validate --json` printed. A set whose ANSWER is empty stays as it is in
FILE; it is how the larger set survives where its measurements are not.
"""
import json
import os
import sys

KEYS = ["family", "num_cases", "mape_frac", "median_frac", "p90_frac", "bias_frac",
        "inside_interval_frac"]


def score(row):
    """What a report shows of a family, with as many digits as it can use."""
    kept = {key: row[key] for key in KEYS if key in row and row[key] is not None}
    return {key: round(value, 6) if isinstance(value, float) else value
            for key, value in kept.items()}


path, *sets = sys.argv[1:]
before = {}
if os.path.exists(path):
    before = {entry["title"]: entry for entry in json.load(open(path))["sets"]}
entries = []
for named in sets:
    title, answer = named.split("=", 1)
    if answer:
        stated = json.load(open(answer))["stated"]
        entries.append({"title": title, "families": [score(row) for row in stated["families"]],
                        "all": score(stated["all"])})
    elif title in before:
        entries.append(before[title])
with open(path, "w") as out:
    json.dump({"schema": 1, "sets": entries}, out, indent=1)
    out.write("\n")
