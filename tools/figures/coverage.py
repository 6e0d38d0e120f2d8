#!/usr/bin/env python3
"""Says what published steps cover, and how much further off predictions are of what they do not.

usage: coverage.py PROGRAM CASES.jsonl [-o FILE]
CASES as `meshwright validate --data` takes them; those whose source states everything count.
-o writes hw-profiles/coverage.json: the combinations of ingredients of these steps.

A step is covered where each two of its ingredients were seen together in some published step that
states everything. What is not covered is further off by step_spread: errors of steps that no fit
saw, for their sources leave something open, are compared, those that are covered with those that
are not (of the median size of each, which is 0.6745 standard deviations).
"""
import collections
import itertools
import json
import math
import os
import statistics
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
# As config/job/evidence.c has them.
NAMES = ("stack", "architecture", "link", "model", "precision", "zero_stage")
WAYS = ("tp", "pp", "cp", "ep")  # whether there is more than one


def profile(folder, name):
    with open(os.path.join(ROOT, "hw-profiles", folder, name + ".json"), encoding="utf-8") as file:
        return json.load(file)


def ingredients(scenario):
    """What a step is made of: (column, value), ways that are not used left out."""
    cluster, training, parallel = (scenario[key] for key in ("cluster", "training", "parallel"))
    link = cluster["scale_up"]["link"]
    values = {"stack": training["stack"],
              "architecture": profile("gpus", cluster["gpu"])["architecture"],
              "link": link.rstrip("0123456789-"),
              "model": "experts" if "expert" in json.dumps(scenario["model"]) else "dense",
              "precision": training["precision"], "zero_stage": parallel.get("zero_stage", 1)}
    if cluster["num_gpus"] == 1:
        del values["link"]
    for way in WAYS:
        if parallel.get(way, 1) > 1:
            values[way] = True
    return tuple(values.items())


def pairs(items):
    return [frozenset(pair) for pair in itertools.combinations(items, 2)]


def size(errors):
    return statistics.median(abs(e) for e in errors) / 0.6745


def main():
    arguments = sys.argv[1:]
    output = None
    if "-o" in arguments:
        at = arguments.index("-o")
        output = arguments[at + 1]
        del arguments[at:at + 2]
    if len(arguments) != 2:
        sys.exit(__doc__)
    with open(arguments[1], encoding="utf-8") as file:
        every = [json.loads(line) for line in file]
    cases = [case for case in every if case["gate"]]
    done = subprocess.run([arguments[0], "validate", "--data", arguments[1], "--all", "--cases",
                           "--json"], capture_output=True, text=True, check=True)
    answers = {answer["id"]: answer for answer in json.loads(done.stdout)["cases"]}
    errors = {"inside": [], "outside": []}
    for case in every:
        case["items"] = ingredients(case["scenario"])
    seen = {pair for case in cases for pair in pairs(case["items"])}
    reasons = collections.Counter()
    for case in every:
        if case["gate"] or "error" in answers[case["id"]]:
            continue
        missing = set(pairs(case["items"])) - seen
        error = -math.log1p(answers[case["id"]]["error_frac"])
        errors["outside" if missing else "inside"].append(error)
        reasons.update(" and ".join(sorted("%s %s" % item for item in pair)) for pair in missing)
    inside, outside = size(errors["inside"]), size(errors["outside"])
    extra = math.sqrt(max(0, outside ** 2 - inside ** 2))
    print("steps that no fit saw: %d covered, %.1f %% off; %d not, %.1f %%; more by %.3f" % (
        len(errors["inside"]), 100 * inside, len(errors["outside"]), 100 * outside, extra))
    for reason, count in reasons.most_common():
        print("  %3d %s" % (count, reason))
    counts = collections.Counter(case["items"] for case in cases)
    print("%d combinations of ingredients in %d steps of %d families" % (
        len(counts), len(cases), len({case["family"] for case in cases})))
    if not output:
        return
    rows = []
    for items, count in sorted(counts.items(), key=lambda entry: str(entry[0])):
        rows.append({**dict(items), "num_steps": count})
    document = {"schema": 1, "title": "what published steps cover",
                "step_spread": round(extra, 4), "steps": rows,
                "measured": {"command": "tools/figures/coverage.py PROGRAM CASES.jsonl -o FILE",
                             "num_steps": len(cases),
                             "num_families": len({case["family"] for case in cases})},
                "sources": {"steps": "ingredients of published steps whose sources state all "
                                     "settings (published/training.jsonl is a part of them)",
                            "step_spread": "tools/figures/coverage.py: errors of steps that no fit saw, those "
                                           "that are not covered beside those that are"}}
    text = json.dumps({**document, "steps": None}, indent=4)
    lines = ",\n        ".join(json.dumps(row) for row in rows)
    with open(output, "w", encoding="utf-8") as file:
        file.write(text.replace('"steps": null', '"steps": [\n        %s\n    ]' % lines) + "\n")


main()
