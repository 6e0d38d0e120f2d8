#!/usr/bin/env python3
"""Errors of kernels in sample and left out, side by side, by groups that five folds leave out whole.

A group is all shapes of one n, k (products); of one hidden_size, inter_size, num_experts, topk (experts);
of one number of GPUs (collectives: a fold for each). Which fold a group is in is a hash of it. A profile is
fitted to the rows of the other folds (`calibrate`), and prices those of this one (`kernel --profile`); in
sample are the same rows by the fit to all. A form of a model is chosen by the left-out figures.

usage: tools/figures/left_out_groups.py PROGRAM KERNELS [--kind KIND] [--gpu NAME] [--folds N]
(KERNELS: a folder for each GPU, KIND.csv.gz in it; --folds N: only the first N of the five)
"""

import argparse
import csv
import gzip
import io
import os
import subprocess
import tempfile
import zlib

GPUS = {"a100_sxm": "a100-sxm-80g", "l40s": "l40s-48g", "h100_sxm": "h100-sxm-80g",
        "h200_sxm": "h200-sxm-141g", "b200_sxm": "b200-sxm-180g", "gb200": "gb200-186g",
        "b300_sxm": "b300-sxm-288g", "gb300": "gb300-288g", "rtx_pro_6000_server": "rtx-pro-6000-96g"}
KINDS = {"gemm": ["n", "k"], "moe": ["hidden_size", "inter_size", "num_experts", "topk"], "nccl": ["num_gpus"]}
NUM_FOLDS = 5
MEASURED = "latency_ms"


def write_rows(stream, rows, columns):
    table = csv.DictWriter(stream, columns, extrasaction="ignore", lineterminator="\n")
    table.writeheader()
    table.writerows(rows)


def fit(program, gpu, kind, rows, folder):
    """The path of a profile that is fitted to the rows."""
    with open(os.path.join(folder, kind + ".csv"), "w", encoding="utf-8") as table:
        write_rows(table, rows, list(rows[0]))
    profile = os.path.join(folder, "profile.json")
    subprocess.run([program, "calibrate", "--kernels", folder, "--gpu", gpu, "--kind", kind, "-o", profile],
                   stdout=subprocess.DEVNULL, check=True)
    return profile


def errors(program, gpu, kind, rows, profile):
    """Absolute errors of the rows that have a price."""
    shapes = io.StringIO()
    write_rows(shapes, rows, [c for c in rows[0] if c != MEASURED])
    answer = subprocess.run([program, "kernel", "--gpu", gpu, "--kind", kind, "--profile", profile, "-"],
                            input=shapes.getvalue(), capture_output=True, text=True, check=True).stdout
    return [abs(1e3 * float(priced["predicted_s"]) / float(row[MEASURED]) - 1)
            for priced, row in zip(csv.DictReader(io.StringIO(answer)), rows) if priced["predicted_s"]]


def fold_of(row, kind):
    values = [row[c] for c in KINDS[kind]]
    return values[0] if kind == "nccl" else zlib.crc32(",".join(values).encode()) % NUM_FOLDS


def words(found):
    found = sorted(found)
    if not found:
        return "-"
    return "%.1f / %.1f %%" % (100 * found[len(found) // 2], 100 * found[int(0.9 * len(found))])


def score(program, folder, gpu, kind, num_folds):
    with gzip.open(os.path.join(folder, kind + ".csv.gz"), "rt", encoding="utf-8") as table:
        rows = list(csv.DictReader(table))
    of_fold = {}
    for row in rows:
        of_fold.setdefault(fold_of(row, kind), []).append(row)
    scored = sorted(of_fold)[:num_folds]
    left_out, inside = [], []
    with tempfile.TemporaryDirectory() as temp:
        profile = fit(program, gpu, kind, rows, temp)
        for fold in scored:
            inside += errors(program, gpu, kind, of_fold[fold], profile)
    for fold in scored if len(of_fold) > 1 else []:
        with tempfile.TemporaryDirectory() as temp:
            kept = [row for other in of_fold if other != fold for row in of_fold[other]]
            left_out += errors(program, gpu, kind, of_fold[fold], fit(program, gpu, kind, kept, temp))
    print("| %s | `%s` | %d | %s | %s |" % (gpu, kind, len(inside), words(inside), words(left_out)), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program")
    parser.add_argument("kernels")
    parser.add_argument("--kind", choices=list(KINDS))
    parser.add_argument("--gpu", choices=list(GPUS.values()))
    parser.add_argument("--folds", type=int, default=NUM_FOLDS)
    given = parser.parse_args()
    print("| GPU | kind | rows | in sample | left out |\n| --- | --- | --- | --- | --- |")
    for folder, gpu in GPUS.items():
        for kind in KINDS:
            path = os.path.join(given.kernels, folder)
            if given.kind not in (None, kind) or given.gpu not in (None, gpu):
                continue
            if os.path.exists(os.path.join(path, kind + ".csv.gz")):
                score(given.program, path, gpu, kind, given.folds)


if __name__ == "__main__":
    main()
