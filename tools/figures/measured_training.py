#!/usr/bin/env python3
"""Prints what profiler/measured says of fine-tuning, of torchtitan's experts, of token mixers and of memory of the host.

usage: tools/figures/measured_training.py [FOLDER]    (default: profiler/measured/h100-sxm-80g-2026-11-27)
"""

import collections
import os
import statistics
import sys

from measured_rows import ROOT, rows_of

CLASSES = [  # of kernels by name, the first that holds
    ("attention", ("fmha", "flash", "sdpa", "attention")), ("experts' products", ("cutlass", "grouped")),
    ("products", ("nvjet", "splitk", "gemm")), ("optimizer and norm of gradients", ("multi_tensor", "fusedopti", "lpnorm")),
    ("copies and casts", ("memcpy", "copy", "chunk_cat", "catarray")),
    ("loss", ("softmax", "nll", "cross_entropy", "logsoftmax")),
    ("router, sort, gather, scatter", ("scatter", "gather", "index", "sort", "topk", "radix", "histogram", "scan", "fill_indices")),
    ("reductions", ("reduce",)), ("elementwise", ("elementwise",)),
]


def class_of(name):
    low = name.lower()
    return next((title for title, words in CLASSES if any(word in low for word in words)), "other")


def shares(kernels, total_s):
    """Milliseconds by class, of the kernels that are listed, and what is left."""
    sums = collections.Counter()
    for name, _, seconds in kernels:
        sums[class_of(name)] += seconds
    sums["not listed"] = total_s - sum(sums.values())
    return ", ".join(f"{title} {seconds * 1e3:.0f}" for title, seconds in sums.most_common() if seconds >= 5e-4)


def finetuning(folder):
    print("Fine-tuning under the Trainer: seconds a step, kernels (number), GB at rest and at the peak, reserved over peak")
    for row in rows_of(folder, "finetune.jsonl"):
        if row["kind"] != "finetune" or "error" in row:
            continue
        t = row["training"]
        how = [t["method"] + (f" {t['rank']} {t['targets']}" if t["method"] != "full" else f" {t['weights']}"),
               t["objective"] if t["objective"] != "sft" else "", "checkpointed" if t["checkpoint"] else "",
               t["optim"] if t["optim"] != "adamw_torch_fused" else "", t["attention"] if t["attention"] != "sdpa" else "",
               "frozen " + " ".join(t["frozen"]) if t["frozen"] else ""]
        print(f"  {t['model']:16s} {t['accumulate']} x {t['batch']} x {t['seq']:5d} {' '.join(x for x in how if x):38s} "
              f"{row['step_s']:.3f} s  {row['kernels_s']:.3f} s ({row['num_kernels']})  {row['tokens_per_s']:6.0f} tokens/s  "
              f"{row['rest_bytes'] / 1e9:5.1f} {row['peak_bytes'] / 1e9:5.1f} GB  "
              f"{row['reserved_bytes'] / row['peak_bytes']:.2f}")


def titan(folder):
    print("torchtitan's experts: milliseconds by class of kernel")
    for row in rows_of(folder, "titan_experts.jsonl"):
        m, truth = row["measured"], row["truth"]
        print(f"  {row['id']}: {truth['step_time_s'] * 1e3:.0f} ms, host {m['host_s'] * 1e3:.0f}, {m['num_kernels']:.0f} "
              f"kernels, peak {truth['memory_peak_bytes'] / 1e9:.1f} GB, reserved {truth['memory_reserved_bytes'] / 1e9:.1f}; "
              f"{shares(m['kernels'], m['kernels_s'])}")


def mixers(folder):
    print("Mixers: ms forward and backward, microseconds a thousand tokens, bytes saved a token, host ms")
    for row in rows_of(folder, "mixers.jsonl"):
        if row["kind"] == "mixer_decode":
            print(f"  {row['mixer']:12s} one token of {row['batch_size']:4d}: {row['seconds'] * 1e6:6.1f} us, "
                  f"{row['bytes'] / row['seconds'] / 1e12:.2f} TB/s of state")
        if row["kind"] != "mixer":
            continue
        tokens = row["batch_size"] * row["sequence"]
        what = " ".join(f"{key} {row[key]}" for key in ("by", "num_heads", "head_dim", "window", "sinks") if key in row)
        print(f"  {row['mixer']:12s} {row['batch_size']:3d} x {row['sequence']:5d} {what:52s} "
              f"{row['forward_seconds'] * 1e3:7.3f} {row['backward_seconds'] * 1e3:7.3f}  "
              f"{row['forward_seconds'] / tokens * 1e9:6.1f} {row['backward_seconds'] / tokens * 1e9:6.1f}  "
              f"{row['saved_bytes'] / tokens:7.0f}  {row['host_seconds'] * 1e3:.1f}")


def host(folder):
    print("Memory of the host")
    for row in rows_of(folder, "offload.jsonl"):
        if row["kind"] == "copies":
            gb = row["copied_bytes"] / 1e9
            print("  " + ", ".join(f"{name} {seconds * 1e3:.1f} ms" + (f" ({gb / seconds:.1f} GB/s)" if "to_" in name else "")
                                   for name, seconds in row["seconds"].items()))
        elif row["kind"] == "host_adam":
            print(f"  {row['by']:15s} {row['parameters']:.0e} parameters, {row['threads']:2d} threads: {row['seconds'] * 1e3:6.1f} "
                  f"ms, {28 * row['parameters'] / row['seconds'] / 1e9:5.1f} GB/s at 28 bytes each")


def same_shapes(folder, other, name, kinds):
    """Ratios of seconds of the same rows on two boards."""
    def key(row):
        return tuple((k, str(v)) for k, v in sorted(row.items()) if k not in ("seconds", "spread_frac", "split_seconds"))
    known = {key(row): row["seconds"] for row in rows_of(other, name) if "seconds" in row}
    ratios = collections.defaultdict(list)
    for row in rows_of(folder, name):
        if "seconds" in row and row.get("kind") in kinds and key(row) in known:
            ratios[row["kind"]].append(row["seconds"] / known[key(row)])
    for kind, values in sorted(ratios.items()):
        values.sort()
        print(f"  {name} {kind}: {len(values)} shapes, median {statistics.median(values):.2f}, from "
              f"{values[len(values) // 10]:.2f} to {values[-1 - len(values) // 10]:.2f} (tenths)")


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "h100-sxm-80g-2026-11-27")
    finetuning(folder)
    titan(folder)
    mixers(folder)
    host(folder)
    print("Seconds over those of the H200 of 2026-11-26")
    other = os.path.join(ROOT, "h200-sxm-141g-2026-11-26")
    for name in ("decode.jsonl", "experts.jsonl"):
        same_shapes(folder, other, name, {row.get("kind") for row in rows_of(folder, name)})


main()
