#!/usr/bin/env python3
"""How far products are off that are priced with another GPU's measured kernels.

Each GPU that has a table of products takes the kernels of each other one in turn (`kernels_of`), scaled
to its own peaks, bandwidth, SMs and cache, as GPUs without a table of their own do.

usage: tools/figures/inherited_kernels.py PROGRAM KERNELS    (a folder for each GPU, gemm.csv.gz in it)
"""

import csv
import gzip
import io
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

GPUS = {"a100_sxm": "a100-sxm-80g", "l40s": "l40s-48g", "h100_sxm": "h100-sxm-80g",
        "h200_sxm": "h200-sxm-141g", "b200_sxm": "b200-sxm-180g", "gb200": "gb200-186g"}
LEAST_FLOPS = 3e10  # below, launches decide
SHAPE = ["gemm_dtype", "m", "n", "k"]


def products(path):
    with gzip.open(path, "rt", encoding="utf-8") as table:
        return [row for row in csv.DictReader(table) if row["gemm_dtype"] == "bfloat16" and
                2 * float(row["m"]) * float(row["n"]) * float(row["k"]) >= LEAST_FLOPS]


def log_errors(program, gpu_file, rows):
    shapes = io.StringIO()
    table = csv.DictWriter(shapes, SHAPE, extrasaction="ignore", lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    answer = subprocess.run([program, "kernel", "--gpu", gpu_file, "--kind", "gemm", "-"],
                            input=shapes.getvalue(), capture_output=True, text=True, check=True).stdout
    return [math.log(1e3 * float(priced["predicted_s"]) / float(row["latency_ms"]))
            for priced, row in zip(csv.DictReader(io.StringIO(answer)), rows)]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    program, kernels = sys.argv[1:]
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "hw-profiles", "gpus")
    means, spreads = {True: [], False: []}, {True: [], False: []}
    gpus = {name: json.load(open(os.path.join(root, name + ".json"), encoding="utf-8"))
            for name in GPUS.values()}
    for folder, name in GPUS.items():
        rows = products(os.path.join(kernels, folder, "gemm.csv.gz"))
        for relative in GPUS.values():
            if relative == name:
                continue
            with tempfile.TemporaryDirectory() as temp:
                path = os.path.join(temp, "gpu.json")
                with open(path, "w", encoding="utf-8") as out:
                    json.dump({**gpus[name], "name": "of-a-relative", "kernels_of": relative}, out)
                errors = log_errors(program, path, rows)
            foreign = gpus[name]["architecture"] != gpus[relative]["architecture"]
            mean, spread = statistics.mean(errors), statistics.pstdev(errors)
            means[foreign].append(mean)
            spreads[foreign].append(spread)
            print("%-14s by %-14s %5d products: %+5.1f %% in the mean, %4.1f %% from shape to shape"
                  % (name, relative, len(errors), 100 * mean, 100 * spread))
    for foreign, what in [(False, "one architecture"), (True, "another architecture")]:
        mean = math.sqrt(statistics.mean(m * m for m in means[foreign]))
        spread = math.sqrt(statistics.mean(s * s for s in spreads[foreign])) / 2
        print("%s: %.1f %% (mean, rms), %.1f %% (shapes, over two), together %.1f %%"
              % (what, 100 * mean, 100 * spread, 100 * math.hypot(mean, spread)))


if __name__ == "__main__":
    main()
