#!/usr/bin/env python3
"""Prints what profiler/measured says of whole steps of serving, of sizes that tensor cores dislike, of Mamba-2 and FSDP2 with the host's memory.

With a PROGRAM also how much longer the attention of engines takes, by the public tables, than what cuDNN
was measured to.

usage: tools/figures/measured_serving.py [--program PROGRAM] [FOLDER..]    (default: the two of 2026-11-28)
"""

import argparse
import collections
import csv
import io
import os
import statistics
import subprocess

from measured_rows import ROOT, rows_of

FOLDERS = ["h100-sxm-80g-2026-11-28", "h200-sxm-141g-2026-11-28"]


def steps(folder):
    rows = [row for row in rows_of(folder, "serve_steps.jsonl") if "seconds" in row]
    for kind, chosen in (("one token a sequence", [r for r in rows if not r["chunk"]]),
                         ("a chunk of a prompt", [r for r in rows if r["chunk"] and not r["decodes"]]),
                         ("both", [r for r in rows if r["chunk"] and r["decodes"]])):
        if chosen:
            over = [r["seconds"] / r["kernels_s"] for r in chosen]
            print(f"steps of {kind}: graph over the sum of kernels {statistics.median(over):.3f} "
                  f"({min(over):.3f} to {max(over):.3f}) in {len(over)}")
    for row in rows:
        read = row["weight_bytes"] + row["kv_bytes"]
        print(f"  {row['model']:24s} {row['decodes']:4d} x {row['context']:6d} + {row['chunk']:5d} behind {row['chunk_context']:6d}: "
              f"{row['seconds'] * 1e3:8.3f} ms, kernels {row['kernels_s'] * 1e3:8.3f} ms ({row['num_kernels']:4d}), host {row['host_s'] * 1e3:5.1f} ms, "
              f"{read / row['seconds'] / 1e12:.2f} TB/s of weights and cache, {row.get('sm_clock_hz', 0) / 1e6:.0f} MHz")


def alignment(folder):
    rows = [row for row in rows_of(folder, "alignment.jsonl") if "seconds" in row]
    groups = {}
    for row in (r for r in rows if r["kind"] == "aligned_product" and 4096 <= r["n"] < 4200 and 4096 <= r["k"] < 4200):
        name = next((f"{dim} by {row[dim] & -row[dim]}" for dim, base in (("n", 4096), ("k", 4096), ("m", 8192)) if row[dim] != base), "aligned")
        groups.setdefault((row["dtype"], name), []).append(2e-12 * row["m"] * row["n"] * row["k"] / row["seconds"])
    for (dtype, name), rates in sorted(groups.items()):
        print(f"  {dtype} {name}: {statistics.median(rates):.0f} TFLOP/s ({min(rates):.0f} to {max(rates):.0f}) in {len(rates)}")
    times = {(r["by"], r["pass"], r["head_dim"]): r["seconds"] for r in rows if r["kind"] == "aligned_attention" and r["sequence"] == 8192}
    for dim in sorted({key[2] for key in times}):
        print(f"  head size {dim}: " + ", ".join(f"{by} {times[by, 'forward', dim] * 1e3:.2f} and {times[by, 'both', dim] * 1e3:.2f} ms"
                                                  for by in ("default", "flash", "cudnn", "efficient") if (by, "both", dim) in times))


def mixers(folder):
    for row in rows_of(folder, "mixers.jsonl"):
        if row["kind"] == "mixer" and "forward_seconds" in row:
            tokens = row["batch_size"] * row["sequence"]
            options = {key: row[key] for key in ("heads", "groups", "chunk") if key in row}
            print(f"  {row['mixer']} {options} {row['batch_size']} x {row['sequence']}: {row['forward_seconds'] / tokens * 1e9:.0f} us a thousand tokens "
                  f"forward, {row['backward_seconds'] / tokens * 1e9:.0f} backward")


def host(folder):
    for row in rows_of(folder, "offload.jsonl"):
        if row["kind"] == "fsdp_offload" and "seconds" in row:
            print(f"  {row['model']} {row['batch']} x {row['seq']} {row['offload']}: {row['seconds'] * 1e3:.0f} ms, of these forward and backward "
                  f"{row['forward_backward_s'] * 1e3:.0f} and optimizer {row['optimizer_s'] * 1e3:.0f}; peak {row['peak_bytes'] / 1e9:.1f} GB")


def engine_attention(program):
    """Prompts: the tables' kernels as `meshwright kernel` has them over cuDNN's, by length."""
    folder = os.path.join(ROOT, "h200-sxm-141g-2026-11-26", "profile", "context_attention.csv")
    priced = subprocess.run([program, "kernel", "--gpu", "h200-sxm-141g", "--kind", "context_attention", folder],
                            capture_output=True, text=True, check=True).stdout
    ratios = collections.defaultdict(list)
    for row in csv.DictReader(io.StringIO(priced)):
        if row["kernel"].startswith("cudnn") and row["predicted_s"]:
            ratios[int(row["isl"])].append(1e3 * float(row["predicted_s"]) / float(row["latency_ms"]))
    print("engines' attention over cuDNN's on an H200, by tokens of a prompt (median, shapes):")
    for tokens in sorted(ratios):
        print(f"  {tokens:6} {statistics.median(ratios[tokens]):.2f} ({len(ratios[tokens])})")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program")
    parser.add_argument("folders", nargs="*")
    args = parser.parse_args()
    for name in args.folders or FOLDERS:
        folder = os.path.join(ROOT, name)
        print(name)
        for part in (steps, alignment, mixers, host):
            part(folder)
    if args.program:
        engine_attention(args.program)


main()
