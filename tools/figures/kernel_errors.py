#!/usr/bin/env python3
"""What the kernel profiles miss on shapes left out, for every kind but products, and where MLA misses.

The first table is that of `meshwright calibrate --kernels`, which leaves out whole groups of shapes.
The second leaves out one number of heads of generation_mla after the other: a profile is fitted to the
rows of the others (`calibrate`), and prices those of this one (`kernel --profile`).

usage: tools/figures/kernel_errors.py PROGRAM KERNELS    (a folder for each GPU, KIND.csv.gz in it)
"""

import csv
import gzip
import io
import os
import re
import subprocess
import sys
import tempfile

GPUS = {"a100_sxm": "a100-sxm-80g", "l40s": "l40s-48g", "h100_sxm": "h100-sxm-80g",
        "h200_sxm": "h200-sxm-141g", "b200_sxm": "b200-sxm-180g", "gb200": "gb200-186g",
        "b300_sxm": "b300-sxm-288g", "gb300": "gb300-288g", "rtx_pro_6000_server": "rtx-pro-6000-96g"}
KINDS = ["context_attention", "generation_attention", "context_mla", "generation_mla", "moe"]
MLA = "generation_mla"


def calibrate(program, folder, gpu, kind, profile):
    """What the program says of a fit: rows, groups, left out median, 90 %, bias, fitted median, 90 %."""
    answer = subprocess.run([program, "calibrate", "--kernels", folder, "--gpu", gpu, "--kind", kind,
                             "-o", profile], capture_output=True, text=True, check=True).stdout
    line = next(line for line in answer.splitlines() if line.startswith(kind + " "))
    return re.findall(r"[-+0-9.]+", line[len(kind):])


def errors_of_kinds(program, kernels):
    print("left out: median / 90 %% (rows)\n%-14s %s" % ("", "".join("%22s" % k for k in KINDS)))
    for folder, gpu in GPUS.items():
        cells = []
        for kind in KINDS:
            path = os.path.join(kernels, folder)
            if not os.path.exists(os.path.join(path, kind + ".csv.gz")):
                cells.append("-")
                continue
            with tempfile.TemporaryDirectory() as temp:
                fit = calibrate(program, path, gpu, kind, os.path.join(temp, "profile.json"))
            cells.append("%s / %s (%s)" % (fit[2], fit[3], fit[0]))
        print("%-14s %s" % (gpu, "".join("%22s" % c for c in cells)))


def write_rows(stream, rows, columns):
    table = csv.DictWriter(stream, columns, extrasaction="ignore", lineterminator="\n")
    table.writeheader()
    table.writerows(rows)


def heads_error(program, gpu, rows, heads):
    """Median and 90th percentile of the error on one number of heads, fitted to the others."""
    kept = [row for row in rows if row["num_heads"] != heads]
    left = [row for row in rows if row["num_heads"] == heads]
    priced = io.StringIO()
    write_rows(priced, left, [c for c in rows[0] if c != "latency_ms"])
    with tempfile.TemporaryDirectory() as temp:
        with open(os.path.join(temp, MLA + ".csv"), "w", encoding="utf-8") as table:
            write_rows(table, kept, list(rows[0]))
        profile = os.path.join(temp, "profile.json")
        calibrate(program, temp, gpu, MLA, profile)
        answer = subprocess.run([program, "kernel", "--gpu", gpu, "--kind", MLA, "--profile", profile, "-"],
                                input=priced.getvalue(), capture_output=True, text=True, check=True).stdout
    errors = sorted(abs(1e3 * float(p["predicted_s"]) / float(m["latency_ms"]) - 1)
                    for p, m in zip(csv.DictReader(io.StringIO(answer)), left))
    return 100 * errors[len(errors) // 2], 100 * errors[int(0.9 * len(errors))]


def errors_of_heads(program, kernels):
    print("\n%s by the number of heads left out: median / 90 %%" % MLA)
    for folder, gpu in GPUS.items():
        path = os.path.join(kernels, folder, MLA + ".csv.gz")
        if not os.path.exists(path):
            continue
        with gzip.open(path, "rt", encoding="utf-8") as table:
            rows = list(csv.DictReader(table))
        heads = sorted({row["num_heads"] for row in rows}, key=int)
        cells = ["%s: %.1f / %.1f" % (h, *heads_error(program, gpu, rows, h)) for h in heads]
        print("%-14s %s" % (gpu, "   ".join(cells)))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    errors_of_kinds(*sys.argv[1:])
    errors_of_heads(*sys.argv[1:])


if __name__ == "__main__":
    main()
