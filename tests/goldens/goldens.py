#!/usr/bin/env python3
"""Runs meshwright on a fixed set of scenarios and sets what it prints and writes beside what it did.

Usage: goldens.py PROGRAM                  compare with hashes.txt; exit 1 where something differs
       goldens.py PROGRAM --record         write what was chosen to hashes.txt
       goldens.py PROGRAM --beside OTHER   show how the answers of two programs differ
  --only WORD     cases whose name has this in it
  --share K/N     the cases K, K + N, K + 2 N, ...
"""
import argparse
import concurrent.futures
import difflib
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# How long a search or simulation took, the version, and where the program's own files lie are no
# part of an answer.
PASSING = re.compile(
    rb'(?<![\w/.])/[\w./+-]*/(?=(?:hw-profiles|models|published|stacks)/)|'
    rb'"timing":\s*\{[^}]*\},?|(?m: \(\d+\.\d s\)$)|"(?:wall_s|version)":\s*[^,}\n]*,?'
    # of files whose contents are compared, with what passes left out
    rb'|"file_bytes":\s*\d+,\s*"fnv1a64":\s*"[0-9a-f]*"')
OF_DRAWN = {  # commands of each drawn scenario, by the first word of its name
    "whole": ["estimate F --json", "estimate F", "launch F --dry-run"],
    "small": ["estimate F --json", "launch F --dry-run", "simulate F --json"],
    "search": ["plan F --json --top 3", "plan F -o out"],
}


def cases():
    """(name, arguments, scenario or None) of all, in a fixed order."""
    for line in (HERE / "scenarios.jsonl").open():
        drawn = json.loads(line)
        for command in OF_DRAWN[drawn["name"].split("-")[0]]:
            words = command.split()
            name = "-".join([drawn["name"], words[0], *(w.strip("-") for w in words[2:])])
            file = drawn["name"] + ".json"
            yield name, [file if w == "F" else w for w in words], drawn["scenario"]
    for line in (HERE / "commands.txt").open():
        if not line.startswith("#"):
            name, _, command = line.partition(":")
            yield name, command.split(), None


def answer(program, case):
    """All that one run prints and leaves, as bytes."""
    _, arguments, scenario = case
    with tempfile.TemporaryDirectory() as temp:
        # As deep as the folder of files, so that paths to others of the tree are the same.
        folder = pathlib.Path(temp) / "tests" / "goldens" / "files"
        shutil.copytree(HERE / "files", folder)
        for other in ("docs", "tests/fuzz"):
            (pathlib.Path(temp) / other).symlink_to(HERE.parent.parent / other)
        before = {path.name for path in folder.iterdir()}
        if scenario is not None:
            (folder / arguments[1]).write_text(json.dumps(scenario))
            before.add(arguments[1])
        environment = {k: v for k, v in os.environ.items() if k != "COLUMNS"}
        run = subprocess.run([program, *arguments], cwd=folder, env=environment, timeout=600,
                             stdin=subprocess.DEVNULL, capture_output=True, check=False)
        parts = [b"exit %d\n" % run.returncode, run.stdout, b"--- stderr\n", run.stderr]
        for path in sorted(folder.rglob("*")):
            relative = path.relative_to(folder)
            if path.is_file() and relative.parts[0] not in before:
                parts += [b"--- " + str(relative).encode() + b"\n", path.read_bytes()]
    return PASSING.sub(b"", b"".join(parts))


def compare_hashes(program, chosen, pool, record):
    hashes = {}
    for case, text in zip(chosen, pool.map(lambda case: answer(program, case), chosen)):
        hashes[case[0]] = hashlib.sha256(text).hexdigest()[:20]
    file = HERE / "hashes.txt"
    kept = dict(line.split() for line in file.read_text().splitlines())
    if record:
        known = kept | hashes
        lines = [f"{case[0]} {known[case[0]]}\n" for case in cases() if case[0] in known]
        file.write_text("".join(lines))
        return 0
    others = [name for name, value in hashes.items() if kept.get(name) != value]
    for name in others:
        print(f"{name}: " + ("differs" if name in kept else "is not in hashes.txt"))
    print(f"{len(hashes) - len(others)} of {len(hashes)} answers as recorded")
    return 1 if others else 0


def compare_programs(program, other, chosen, pool):
    num = 0
    both = lambda case: (answer(other, case), answer(program, case))
    for case, (was, now) in zip(chosen, pool.map(both, chosen)):
        if was == now:
            continue
        num += 1
        lines = [text.decode(errors="replace").splitlines() for text in (was, now)]
        print(f"=== {case[0]}: meshwright {' '.join(case[1])}")
        print("\n".join(difflib.unified_diff(*lines, "before", "after", lineterm="", n=1)))
    print(f"{len(chosen) - num} of {len(chosen)} answers alike")
    return 1 if num else 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("program")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--beside")
    parser.add_argument("--only", default="")
    parser.add_argument("--share", default="0/1")
    options = parser.parse_args()
    program = os.path.abspath(options.program)
    first, step = map(int, options.share.split("/"))
    chosen = [case for case in list(cases())[first::step] if options.only in case[0]]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        if options.beside:
            return compare_programs(program, os.path.abspath(options.beside), chosen, pool)
        return compare_hashes(program, chosen, pool, options.record)


if __name__ == "__main__":
    sys.exit(main())
