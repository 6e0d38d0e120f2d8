#!/usr/bin/env python3
"""How far `kernel` is off on all measured rows of the GPUs with kernels of their own.

A row of the table for each GPU, a column for each kind: median and mean of |predicted / measured - 1| in %.
With a second PROGRAM (an older one, say) its figures stand before an arrow.

usage: tools/figures/rising_kernels.py PROGRAM KERNELS [PROGRAM]    (a folder for each GPU, KIND.csv.gz in it)
"""

import csv
import gzip
import io
import os
import statistics
import subprocess
import sys

GPUS = {"a100_sxm": "a100-sxm-80g", "l40s": "l40s-48g", "h100_sxm": "h100-sxm-80g",
        "h200_sxm": "h200-sxm-141g", "b200_sxm": "b200-sxm-180g", "gb200": "gb200-186g"}
KINDS = ["gemm", "nccl", "context_attention", "generation_attention", "context_mla", "generation_mla", "moe"]


def errors(program, path, gpu, kind):
    """|predicted / measured - 1| of the rows that have a price."""
    with gzip.open(path, "rt") as table:
        rows = list(csv.DictReader(table))
    text = io.StringIO()
    shapes = csv.DictWriter(text, [name for name in rows[0] if name != "latency_ms"], extrasaction="ignore")
    shapes.writeheader()
    shapes.writerows(rows)
    answer = subprocess.run([program, "kernel", "--gpu", gpu, "--kind", kind, "-"], input=text.getvalue(),
                            capture_output=True, text=True, check=True).stdout
    prices = [row["predicted_s"] for row in csv.DictReader(io.StringIO(answer))]
    return [abs(float(price) * 1e3 / float(row["latency_ms"]) - 1)
            for price, row in zip(prices, rows) if price]


def figures(program, path, gpu, kind):
    """Median and mean in per cent."""
    off = errors(program, path, gpu, kind)
    return f"{statistics.median(off) * 100:.1f}, {statistics.mean(off) * 100:.1f}"


def main():
    """Prints the table."""
    kernels, programs = sys.argv[2], sys.argv[3:] + sys.argv[1:2]
    print("| GPU | " + " | ".join(KINDS) + " |")
    print("| --- " * (1 + len(KINDS)) + "|")
    for folder, gpu in GPUS.items():
        cells = [gpu]
        for kind in KINDS:
            path = os.path.join(kernels, folder, kind + ".csv.gz")
            there = os.path.exists(path)
            cells.append(" -> ".join(figures(program, path, gpu, kind) for program in programs) if there else "-")
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
