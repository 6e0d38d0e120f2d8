#!/usr/bin/env python3
"""Feeds spoiled scenarios to `meshwright estimate -`: it answers or refuses, and never crashes.

usage: mutations.py MESHWRIGHT SEEDS_FOLDER [COUNT]
Exit status 0 where every run ended with 0 to 3 in time, with a sentence where it was refused.
"""
import json
import pathlib
import random
import subprocess
import sys

LIMIT_S = 20
EXTREMES = [0, -1, 0.5, 3, 7, 1e308, 2**31, 2**63, None, True, "", "8", [], {}, [[1]]]


def places(node, found):
    """Every (container, key) of a document."""
    for key in node if isinstance(node, dict) else range(len(node)):
        found.append((node, key))
        if isinstance(node[key], (dict, list)):
            places(node[key], found)
    return found


def spoil_tree(document, other, rng):
    node, key = rng.choice(places(document, []))
    kind = rng.randrange(5)
    if kind == 0:
        node[key] = rng.choice(EXTREMES)
    elif kind == 1 and isinstance(node[key], (int, float)):
        node[key] = node[key] * rng.choice([2, 2, 3, 4, 1000]) if rng.randrange(2) else node[key] // 2
    elif kind == 2:
        del node[key]
    elif kind == 3:
        donor, donor_key = rng.choice(places(other, []))
        node[key] = donor[donor_key]
    elif isinstance(node, dict):
        node[str(key) + rng.choice("xyz_")] = node.pop(key)


def nudge(document, rng):
    """Doubles, halves or drops one number that a job may well have."""
    numbers = [(node, key) for part in ("training", "parallel") for node, key in places(document[part], [])
               if isinstance(node, dict) and type(node[key]) is int]
    node, key = rng.choice(numbers)
    kind = rng.randrange(3)
    if kind == 0:
        node[key] *= 2
    elif kind == 1:
        node[key] = max(1, node[key] // 2)
    elif document["training"] is not node:
        del node[key]


def spoil_text(text, rng):
    data = bytearray(text.encode())
    at = rng.randrange(len(data))
    kind = rng.randrange(3)
    if kind == 0:
        data[at] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del data[at:]
    else:
        data[at:at] = data[at:at + 30]
    return bytes(data)


def drop_unsupported(document):
    """Takes out what is legal but refused, so that the rest is tried."""
    document.pop("disturb", None)
    document["training"].pop("sequence_lengths", None)
    for key in ("layers", "placement"):
        document["parallel"].pop(key, None)


def sample(seeds, rng):
    document, other = (json.loads(rng.choice(seeds)) for _ in range(2))
    if rng.randrange(4):
        drop_unsupported(document)
    if rng.randrange(2):
        nudge(document, rng)
        return json.dumps(document).encode()
    for _ in range(rng.randrange(1, 3)):
        spoil_tree(document, other, rng)
    text = json.dumps(document)
    return spoil_text(text, rng) if rng.randrange(6) == 0 else text.encode()


def run(program, data):
    """What is wrong with the run, or None; and its exit status."""
    try:
        done = subprocess.run([program, "estimate", "-"], input=data, capture_output=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return f"no answer within {LIMIT_S} s", -1
    said = done.stderr.decode(errors="replace")
    if done.returncode not in (0, 1, 2, 3):
        return f"exit status {done.returncode}: {said[-2000:]}", done.returncode
    if done.returncode >= 2 and (not said.strip() or done.stdout):
        return f"refused with standard output {done.stdout[:200]} and standard error {said[:200]}", done.returncode
    return None, done.returncode


def main():
    program, folder = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 200
    seeds = [path.read_text() for path in sorted(pathlib.Path(folder).glob("*.json"))]
    rng = random.Random(2024)
    statuses, wrong = {}, 0
    for _ in range(count):
        data = sample(seeds, rng)
        problem, status = run(program, data)
        statuses[status] = statuses.get(status, 0) + 1
        if problem:
            wrong += 1
            print(problem, "\n  for", data.decode(errors="replace"))
    print(f"{count} runs, exit statuses {dict(sorted(statuses.items()))}, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
