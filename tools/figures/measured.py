#!/usr/bin/env python3
"""Sets predictions beside what was measured on one GPU (profiler/measured/README.md).

Products: those of `meshwright profile`, timed by CUPTI. The gradient of a weight that is summed in fp32
has costmodel/kernel/compute.c's share of the further bytes; fp8 is shown with and without what the public
tables hold of quantization, which is fitted here. Attention: the law of costmodel/kernel/compute.c, in the
mean of short tests. Power: rates of long runs over those of the kernel profile, beside the share that
whole published steps were fitted to. Beside: products while another kernel moves bytes. Steps: kernels
of each kind, summed over a step, beside the parts of the prediction.

usage: tools/figures/measured.py PROGRAM [FOLDER..]    (default: all of profiler/measured)
"""

import collections
import csv
import io
import json
import os
import statistics
import subprocess
import sys

from measured_rows import rows_of

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
EPILOGUE_EXPOSED_FRAC = 0.5  # costmodel/kernel/compute.c
KINDS = [("products", ("nvjet", "splitk", "gemm", "cutlass")),
         ("attention", ("sdpa", "flash", "dot_do_o", "convert_dq")),
         ("optimizer", ("fusedopti", "tensorlis", "lpnorm")),
         ("copies of shards", ("memcpy", "chunk_cat", "catarray")), ("memory", ("",))]


def flash_attention_2():
    """On Hopper the share of cuDNN's rate, that at head size 64, and tokens at half of it."""
    path = os.path.join(ROOT, "hw-profiles/architectures/hopper.json")
    with open(path, encoding="ascii") as text:
        older = json.load(text)["attention"]["older"]
    law = next(one for one in older if one["generation"] == 2)
    return [tuple(law[f"{way}_{key}"] for key in ("frac", "head64_frac", "half_tokens"))
            for way in ("forward", "backward")]


def profile(gpu):
    with open(os.path.join(ROOT, "hw-profiles/gpus", gpu + ".json"), encoding="ascii") as text:
        return json.load(text)


def priced_products(program, gpu, shapes):
    """Seconds of (dtype, m, n, k) by the kernel profile: short tests."""
    table = "gemm_dtype,m,n,k\n" + "".join("%s,%d,%d,%d\n" % shape for shape in shapes)
    priced = subprocess.run([program, "kernel", "--gpu", gpu, "--kind", "gemm", "-"], input=table,
                            capture_output=True, text=True, check=True).stdout
    return [float(row["predicted_s"]) for row in csv.DictReader(io.StringIO(priced))]


def print_errors(title, ratios):
    errors = sorted(abs(ratio - 1) for ratio in ratios)
    print("  %-34s %4d  %+6.1f %%  %5.1f %%  %5.1f %%" % (
        title, len(errors), 100 * (statistics.median(ratios) - 1), 100 * statistics.median(errors),
        100 * errors[int(0.9 * (len(errors) - 1))]))


def table_of(folder, name):
    """Rows of a table of `meshwright profile`, with numbers for shapes and seconds."""
    with open(os.path.join(folder, "profile", name + ".csv"), encoding="ascii") as lines:
        rows = list(csv.DictReader(lines))
    for row in rows:
        row.update({key: int(row[key]) for key in "mnk"}, seconds=float(row["latency_ms"]) * 1e-3)
    return rows


def quantization(rows, times, byte_s):
    """Bytes a value and seconds that the tables' fp8 products take beside ours: medians over shapes.

    The seconds of shapes whose input is small; then the bytes of those whose input is large.
    """
    rest = [(time - row["seconds"], row["m"] * row["k"]) for row, time in zip(rows, times)]
    once_s = statistics.median(s for s, values in rest if values < 2**22)
    return once_s, statistics.median((s - once_s) / values / byte_s for s, values in rest
                                     if values >= 2**25)


def products(program, gpu, folder):
    device = profile(gpu)
    byte_s = 1 / (device["memory_bandwidth_bytes_per_s"] * device["efficiency"]["memory_frac"])
    print("Products, predicted over measured            median  |error|     p90")
    for dtype in "bfloat16", "fp8":
        rows = [row for row in table_of(folder, "gemm") if row["gemm_dtype"] == dtype]
        times = priced_products(program, gpu, [(dtype, r["m"], r["n"], r["k"]) for r in rows])
        print_errors("forward, " + dtype, [t / r["seconds"] for t, r in zip(times, rows)])
        if dtype == "fp8":
            once_s, num_bytes = quantization(rows, times, byte_s)
            print_errors("the same with %.1f us, %.1f bytes" % (1e6 * once_s, num_bytes),
                         [t / (r["seconds"] + once_s + num_bytes * r["m"] * r["k"] * byte_s)
                          for t, r in zip(times, rows)])
    rows = [row for row in table_of(folder, "gemm_backward") if row["gemm_dtype"] == "bfloat16"]
    times = priced_products(program, gpu, [("bfloat16", r["m"], r["n"], r["k"]) for r in rows])
    ratios = collections.defaultdict(list)
    for row, time in zip(rows, times):
        if row["out_dtype"] == "float32":  # read and written in fp32 instead of written in bf16
            time += EPILOGUE_EXPOSED_FRAC * (8 - 2) * row["m"] * row["n"] * byte_s
        ratios[row["layout"] + ", " + row["out_dtype"]].append(time / row["seconds"])
    for name, values in ratios.items():
        print_errors(name, values)


def memory_bound(gpu, folder):
    """Shares of the datasheet's bandwidth that large arrays reach."""
    peak = profile(gpu)["memory_bandwidth_bytes_per_s"]
    shares = collections.defaultdict(list)
    with open(os.path.join(folder, "profile/memory_bound.csv"), encoding="ascii") as lines:
        for row in csv.DictReader(lines):
            if float(row["bytes"]) > 3e8:
                shares[row["op"]].append(float(row["bytes"]) / float(row["latency_ms"]) * 1e3 / peak)
    print("Share of the datasheet's bandwidth, over 0.3 GB (memory_frac %.3f): " %
          profile(gpu)["efficiency"]["memory_frac"] +
          ", ".join("%s %.2f" % (op, statistics.median(each)) for op, each in shares.items()))


def beside(folder):
    print("Products beside a kernel that moves bytes on so many SMs, slower by")
    rows = [row for row in rows_of(folder, "contention.jsonl") if row["kind"] == "contention"]
    alone = {(r["m"], r["n"], r["k"]): r["beside_s"] for r in rows if r["blocks"] == 0}
    for blocks in sorted({row["blocks"] for row in rows} - {0}):
        those = [row for row in rows if row["blocks"] == blocks]
        print("  %2d SMs, %.2f TB/s alone  " % (
            blocks, 1e-12 * statistics.median(r["mover_alone_bytes_per_s"] for r in those)) +
            "  ".join("%3.0f %%" % (100 * (r["beside_s"] / alone[r["m"], r["n"], r["k"]] - 1))
                      for r in those))


def attention(gpu, folder):
    device = profile(gpu)
    peak, e = device["peak_flops_per_s"]["bf16"], device["efficiency"]
    # Of the peak at head size 128, of that at 64, tokens at half of it: forward, backward.
    newest = [(e["attention_forward_frac"], e["attention_head64_frac"],
               e["attention_forward_half_tokens"]),
              (e["attention_backward_frac"], e["attention_backward_head64_frac"],
               e["attention_half_tokens"])]
    flash = [(law[0] * frac, head, half)
             for law, (frac, head, half) in zip(newest, flash_attention_2())]
    print("Attention, predicted over measured")
    for backend, laws in ("cudnn", newest), ("flash", flash):
        rows = [row for row in rows_of(folder, "attention.jsonl")
                if row.get("backend") == backend and "error" not in row]
        for dim in 128, 64:
            for backward, (frac, head, half) in enumerate(laws):
                ratios = []
                for row in rows:
                    tokens, rank = row["seq_len"], row["batch_size"] * row["num_heads"]
                    if row["head_dim"] != dim or rank * tokens < 128 * 4 * device["num_sms"]:
                        continue  # too small to fill the SMs
                    flops = 2.0 * rank * tokens**2 * dim * (2.5 if backward else 1)
                    rate = peak * frac * (head if dim == 64 else 1) * tokens / (tokens + half)
                    seconds = row["forward_backward_s"] - row["forward_s"] if backward \
                        else row["forward_s"]
                    ratios.append(flops / rate / seconds)
                print_errors("%s, heads of %d, %s" % (backend, dim, "backward" if backward
                                                      else "forward"), ratios)


def power(program, gpu, folder):
    device = profile(gpu)
    rows = [row for row in rows_of(folder, "sustained.jsonl") if row.get("op") == "mm"
            and row["input_scale"] == 1]
    times = priced_products(program, gpu, [(r["dtype"], r["m"], r["n"], r["k"]) for r in rows])
    print("Products for 3 s, over the rate of short tests")
    for time, row in zip(times, rows):
        print("  board %s %-8s %5d %5d %5d  %.2f at %4.0f MHz, %3.0f W, %d C" % (
            row["board"], row["dtype"], row["m"], row["n"], row["k"], time / row["last_s"],
            row["sm_clock_hz"] / 1e6, row["power_watts"], row["temperature_c"]))
    watts, efficiency = device["power_watts"], device["efficiency"]
    for name in "full_rate_watts", "light_rate_watts":
        print("  published steps, %s: %.2f" % (name, (watts / efficiency[name]) ** (1 / 3)))
    print("Products of [8192 x 8192 x 8192] in turn with copies or nothing")
    for row in rows_of(folder, "mix.jsonl"):
        if row.get("m") == 8192:
            print("  %3.0f %% products, %3.0f %% copies  %.3f ms at %4.0f MHz, %3.0f W" % (
                100 * row["busy_frac"], 100 * row["copy_frac"], 1e3 * row["product_s"],
                row["sm_clock_hz"] / 1e6, row["power_watts"]))


def launches(folder):
    with open(os.path.join(folder, "profile/launch.csv"), encoding="ascii") as lines:
        print("Launches, us: " + ", ".join(
            "%s of %s %.2f" % (row["op"], row["num_kernels"], 1e3 * float(row["latency_ms"]))
            for row in csv.DictReader(lines)))


def held(folder):
    """What steps hold beside live tensors, and the host's time for one."""
    print("Steps                                 reserved / peak, device - reserved; host ms a layer, "
          "us a kernel")
    for row in rows_of(folder, "steps.jsonl"):
        truth, measured = row["truth"], row["measured"]
        layers = row["scenario"]["model"]["num_hidden_layers"]
        waits = measured["host_s"] > 1.1 * measured["kernels_s"]
        print("  %-36s %.2f, %.2f GB; %4.1f, %4.1f%s" % (
            row["id"].split("-", 4)[-1],
            truth["memory_reserved_bytes"] / truth["memory_peak_bytes"],
            (measured["memory_device_bytes"] - truth["memory_reserved_bytes"]) / 1e9,
            1e3 * measured["host_s"] / layers, 1e6 * measured["host_s"] / measured["num_kernels"],
            "  waits for the host" if waits else ""))


def kind_of(kernel):
    return next(kind for kind, words in KINDS if any(word in kernel.lower() for word in words))


def steps(program, gpu, folder):
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
        print("  %-36s" % row["id"].removeprefix("torch-" + gpu + "-"),
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
    program = sys.argv[1]
    root = os.path.join(ROOT, "profiler/measured")
    folders = sys.argv[2:] or [entry.path for entry in sorted(os.scandir(root), key=lambda e: e.name)
                               if entry.is_dir()]
    for folder in folders:
        if not os.path.exists(os.path.join(folder, "profile", "gemm.csv")):
            continue  # tools/figures/measured_training.py, or the tables that README.md names
        gpu = "-".join(os.path.basename(os.path.normpath(folder)).split("-")[:-3])
        print("== " + gpu)
        products(program, gpu, folder)
        memory_bound(gpu, folder)
        attention(gpu, folder)
        power(program, gpu, folder)
        if os.path.exists(os.path.join(folder, "contention.jsonl")):
            beside(folder)
        steps(program, gpu, folder)
        held(folder)
        launches(folder)


main()
