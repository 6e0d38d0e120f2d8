#!/usr/bin/env python3
"""Prints the table of docs/models-presets.md: what `meshwright models` says of released files.

Usage: tools/figures/model_files.py PROGRAM FILE.json...
"""
import json
import pathlib
import subprocess
import sys


def count(number):
    if number == 0:
        return ""
    return "%.4g" % (number / 1e9)


def row(program, path):
    """The cells of one file: it alone, else with --text-only, else the reason."""
    for more in ([], ["--text-only"]):
        run = subprocess.run([program, "models", path, "--json", *more],
                             capture_output=True, text=True, check=False)
        if run.returncode == 0:
            s = json.loads(run.stdout)["summary"]
            return [count(s["parameters"]), count(s["active_parameters"]),
                    count(s["mtp_parameters"]), "`--text-only`" if more else ""]
    return ["", "", "", run.stderr.strip().split(": ", 2)[-1]]


def main():
    print("| file | parameters, G | active, G | MTP, G | read by |")
    print("| --- | --- | --- | --- | --- |")
    for path in sys.argv[2:]:
        name = pathlib.Path(path).stem.replace("--", "/")
        print("| " + " | ".join([name, *row(sys.argv[1], path)]) + " |")


main()
