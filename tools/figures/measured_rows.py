"""Reads the tables of profiler/measured."""

import json
import os

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "profiler", "measured")


def rows_of(folder, name):
    """The rows of a folder's NAME.jsonl; none where it has no such file."""
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return []
    with open(path, encoding="ascii") as lines:
        return [json.loads(line) for line in lines]
