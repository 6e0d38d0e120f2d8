#!/usr/bin/env python3
"""Sets predictions beside what profiler/torch measured on one GPU (profiler/measured/README.md).

Products, attention: the rate of short tests over what the model says of them, by median. Power: rates
of long runs over those of the kernel profile, beside the share that whole published steps were fitted
to. Steps: kernels of each kind, summed over a step, beside the parts of the prediction.

usage: docs/measured.py PROGRAM [FOLDER]
"""

import collections
import csv
import io
import json
import os
import statistics
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
GPU = "h100-sxm-80g"
FOLDER = os.path.join(ROOT, "profiler/measured/h100-sxm-80g-2026-11-22")
KINDS = [("products", ("nvjet", "splitk", "gemm", "cutlass")),
         ("attention", ("sdpa", "flash", "dot_do_o", "convert_dq")),
         ("optimizer", ("fusedopti", "tensorlis", "lpnorm")),
         ("copies of shards", ("memcpy", "chunk_cat", "catarray")), ("memory", ("",))]


def rows_of(folder, name):
    with open(os.path.join(folder, name), encoding="ascii") as lines:
        return [json.loads(line) for line in lines]


def profile():
    with open(os.path.join(ROOT, "hw-profiles/gpus", GPU + ".json"), encoding="ascii") as text:
        return json.load(text)


def priced_products(program, shapes):
    """Seconds of (dtype, m, n, k) by the kernel profile: short tests."""
    table = "gemm_dtype,m,n,k\n" + "".join("%s,%d,%d,%d\n" % shape for shape in shapes)
    priced = subprocess.run([program, "kernel", "--gpu", GPU, "--kind", "gemm", "-"], input=table,
                            capture_output=True, text=True, check=True).stdout
    return [float(row["predicted_s"]) for row in csv.DictReader(io.StringIO(priced))]


def print_errors(title, ratios):
    errors = sorted(abs(ratio - 1) for ratio in ratios)
    print("  %-34s %4d  %+6.1f %%  %5.1f %%  %5.1f %%" % (
        title, len(errors), 100 * (statistics.median(ratios) - 1), 100 * statistics.median(errors),
        100 * errors[int(0.9 * (len(errors) - 1))]))


def products(program, folder):
    rows = [row for row in rows_of(folder, "gemm.jsonl") if row["kind"] == "gemm"]
    times = priced_products(program, [("bfloat16", r["m"], r["n"], r["k"]) for r in rows])
    print("Products, predicted over measured            median  |error|     p90")
    for layout in dict.fromkeys(row["layout"] for row in rows):
        print_errors(layout, [time / row["seconds"] for time, row in zip(times, rows)
                              if row["layout"] == layout])


def attention(folder):
    gpu = profile()
    peak, efficiency = gpu["peak_flops_per_s"]["bf16"], gpu["efficiency"]
    print("Attention of cuDNN, predicted over measured")
    rows = [row for row in rows_of(folder, "attention.jsonl") if row.get("backend") == "cudnn"
            and "error" not in row]
    for dim in 128, 64:
        for backward in False, True:
            ratios = []
            for row in rows:
                tokens, rank = row["seq_len"], row["batch_size"] * row["num_heads"]
                if row["head_dim"] != dim or rank * tokens < 128 * 4 * gpu["num_sms"]:
                    continue  # too small to fill the SMs
                flops = 2.0 * rank * tokens**2 * dim * (2.5 if backward else 1)
                half = efficiency["attention_half_tokens"]
                frac = efficiency["attention_backward_frac"]
                head = efficiency["attention_backward_head64_frac"]
                if not backward:
                    half = efficiency["attention_forward_half_tokens"]
                    frac = efficiency["attention_forward_frac"]
                    head = efficiency["attention_head64_frac"]
                rate = peak * frac * (head if dim == 64 else 1) * tokens / (tokens + half)
                seconds = row["forward_s"]
                if backward:
                    seconds = row["forward_backward_s"] - seconds
                ratios.append(flops / rate / seconds)
            print_errors("heads of %d, %s" % (dim, "backward" if backward else "forward"), ratios)


def power(program, folder):
    gpu = profile()
    rows = [row for row in rows_of(folder, "sustained.jsonl") if row.get("op") == "mm"
            and row["input_scale"] == 1]
    times = priced_products(program, [(r["dtype"], r["m"], r["n"], r["k"]) for r in rows])
    print("Products for 3 s, over the rate of short tests")
    for time, row in zip(times, rows):
        print("  board %s %-8s %5d %5d %5d  %.2f at %4.0f MHz, %3.0f W, %d C" % (
            row["board"], row["dtype"], row["m"], row["n"], row["k"], time / row["last_s"],
            row["sm_clock_hz"] / 1e6, row["power_watts"], row["temperature_c"]))
    watts, efficiency = gpu["power_watts"], gpu["efficiency"]
    for name in "full_rate_watts", "light_rate_watts":
        print("  published steps, %s: %.2f" % (name, (watts / efficiency[name]) ** (1 / 3)))
    print("Products of [8192 x 8192 x 8192] in turn with copies or nothing, board b")
    for row in rows_of(folder, "mix.jsonl"):
        if row.get("m") == 8192:
            print("  %3.0f %% products, %3.0f %% copies  %.3f ms at %4.0f MHz, %3.0f W" % (
                100 * row["busy_frac"], 100 * row["copy_frac"], 1e3 * row["product_s"],
                row["sm_clock_hz"] / 1e6, row["power_watts"]))


def kind_of(kernel):
    return next(kind for kind, words in KINDS if any(word in kernel.lower() for word in words))


def steps(program, folder):
    print("Steps, ms: measured / predicted            step  products attention  memory  optimizer "
          "copies   idle;  peak GB")
    for row in rows_of(folder, "steps.jsonl"):
        answer = json.loads(subprocess.run(
            [program, "estimate", "-", "--json"], input=json.dumps(row["scenario"]),
            capture_output=True, text=True, check=False).stdout)
        sums = collections.Counter()
        for name, _, seconds in row["measured"]["kernels"]:
            sums[kind_of(name)] += 1e3 * seconds
        step, parts = 1e3 * row["truth"]["step_time_s"], answer["parts_s"]
        print("  %-36s" % row["id"].removeprefix("torch-" + GPU + "-"),
              "%4.0f/%4.0f" % (step, 1e3 * answer["step_time_s"]),
              *("%4.0f/%4.0f" % (sums[kind], 1e3 * parts[kind])
                for kind in ("products", "attention", "memory", "optimizer")),
              "%4.0f" % sums["copies of shards"],
              "%5.0f/%4.0f" % (step - 1e3 * row["measured"]["kernels_s"], 1e3 * parts["host"]),
              "; %4.1f/%4.1f" % (row["truth"]["memory_peak_bytes"] / 1e9,
                                 answer["memory_peak_bytes"] / 1e9))


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = sys.argv[2] if len(sys.argv) > 2 else FOLDER
    products(sys.argv[1], folder)
    attention(folder)
    power(sys.argv[1], folder)
    steps(sys.argv[1], folder)


main()
