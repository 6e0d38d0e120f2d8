#!/usr/bin/env python3
"""What a datasheet alone gives: how far kernels are off on a GPU whose own tables nobody fitted.

Each GPU that has tables is left out in turn. Its kernels are priced with those of its nearest relative,
scaled to its peaks, bandwidth, SMs and cache, as GPUs without tables of their own are (`kernels_of`), and
its efficiencies are the relative's. Formats that the relative has no kernel of are not priced; the share
of such rows stands in brackets. Collectives are left out: links, not GPUs, decide them.

usage: tools/figures/left_out_gpus.py PROGRAM KERNELS [GPU...]    (a folder for each GPU, KIND.csv.gz in it)
"""

import csv
import gzip
import io
import json
import os
import subprocess
import sys
import tempfile

# Whose file names it if it had none: the nearest of its die, else of its architecture or of its
# kind of tensor cores and memory.
RELATIVES = {"a100_sxm": ("a100-sxm-80g", "h100-sxm-80g"), "h100_sxm": ("h100-sxm-80g", "h200-sxm-141g"),
             "h200_sxm": ("h200-sxm-141g", "h100-sxm-80g"), "b200_sxm": ("b200-sxm-180g", "gb200-186g"),
             "gb200": ("gb200-186g", "b200-sxm-180g"), "b300_sxm": ("b300-sxm-288g", "b200-sxm-180g"),
             "gb300": ("gb300-288g", "gb200-186g"), "l40s": ("l40s-48g", "rtx-pro-6000-96g"),
             "rtx_pro_6000_server": ("rtx-pro-6000-96g", "l40s-48g")}
KINDS = ["gemm", "context_attention", "generation_attention", "context_mla", "generation_mla", "moe"]
MOST_ROWS = 6000  # of a table: every so-many-th row, so that all shapes are met
MEASURED = "latency_ms"
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "hw-profiles", "gpus")


def gpu_of_relative(name, relative):
    """The file of a GPU that states its datasheet and takes all that is measured from a relative."""
    gpu, other = (json.load(open(os.path.join(ROOT, n + ".json"), encoding="utf-8")) for n in (name, relative))
    efficiency = dict(other["efficiency"])
    fracs = gpu["efficiency"]["gemm_max_frac"]
    efficiency["gemm_max_frac"] = {p: efficiency["gemm_max_frac"].get(p, fracs[p]) for p in fracs}
    return {**gpu, "name": "left-out", "kernels_of": relative, "efficiency": efficiency}


def errors_of(program, gpu_file, path, kind):
    """Absolute errors of the rows that have a price, and how many were asked for."""
    with gzip.open(path, "rt", encoding="utf-8") as table:
        rows = list(csv.DictReader(table))
    rows = rows[::max(1, len(rows) // MOST_ROWS)]
    shapes = io.StringIO()
    table = csv.DictWriter(shapes, [c for c in rows[0] if c != MEASURED], extrasaction="ignore",
                           lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    answer = subprocess.run([program, "kernel", "--gpu", gpu_file, "--kind", kind, "-"],
                            input=shapes.getvalue(), capture_output=True, text=True, check=True).stdout
    return [abs(1e3 * float(priced["predicted_s"]) / float(row[MEASURED]) - 1)
            for priced, row in zip(csv.DictReader(io.StringIO(answer)), rows)
            if priced["predicted_s"]], len(rows)


def cell(errors, num_rows):
    if not errors:
        return "-"
    errors = sorted(errors)
    text = "%.1f / %.1f %%" % (100 * errors[len(errors) // 2], 100 * errors[int(0.9 * len(errors))])
    missing = 1 - len(errors) / num_rows
    return text + (" (-%.0f %%)" % (100 * missing) if missing > 0 else "")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    program, kernels = sys.argv[1:3]
    print("| GPU | by | %s |\n|%s" % (" | ".join("`%s`" % k for k in KINDS), " --- |" * (len(KINDS) + 2)))
    for folder, (name, relative) in RELATIVES.items():
        if sys.argv[3:] and name not in sys.argv[3:]:
            continue
        with tempfile.TemporaryDirectory() as temp:
            gpu_file = os.path.join(temp, "gpu.json")
            with open(gpu_file, "w", encoding="utf-8") as out:
                json.dump(gpu_of_relative(name, relative), out)
            cells = []
            for kind in KINDS:
                path = os.path.join(kernels, folder, kind + ".csv.gz")
                cells.append(cell(*errors_of(program, gpu_file, path, kind))
                             if os.path.exists(path) else "-")
        print("| %s | %s | %s |" % (name, relative, " | ".join(cells)), flush=True)


if __name__ == "__main__":
    main()
