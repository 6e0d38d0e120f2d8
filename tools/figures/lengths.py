#!/usr/bin/env python3
"""Sequences of many lengths: the settings of FlexSP (Wang et al., ASPLOS 2025) planned anew.

Usage: tools/figures/lengths.py [MESHWRIGHT]     (default build/meshwright)

64 A100 of 40 GB on nodes of 8 with 400 Gb/s each, 512 sequences a step, ZeRO 3, Ulysses. The
lengths are not published as a list. Here so many are longer than x as (512 / x)^a, up to the context:
a = 1 for CommonCrawl, with which 512 sequences fill the five micro-batches of 384K tokens of the
paper's first case; a = 1.161 for Wikipedia, with which 96 % are below 8K.
"""
import json
import math
import subprocess
import sys

PROGRAM = sys.argv[1] if len(sys.argv) > 1 else "build/meshwright"
MODELS = {"GPT-7B": (4096, 32, "none"), "GPT-13B": (5120, 40, "selective"), "GPT-30B": (6656, 60, "full")}
CASES = [  # model, data, a, context, longest of the step, nodes
    *[("GPT-7B", "CommonCrawl", 1.0, k, k, 8) for k in (64, 128, 192, 384)],
    ("GPT-7B", "CommonCrawl", 1.0, 384, 90, 8),
    ("GPT-7B", "Wikipedia", 1.161, 384, 384, 8),
    ("GPT-13B", "CommonCrawl", 1.0, 192, 192, 8),
    ("GPT-30B", "CommonCrawl", 1.0, 192, 192, 8),
    ("GPT-7B", "CommonCrawl", 1.0, 128, 128, 4),
]
SHORTEST = 512


def histogram(a, longest):
    """Lengths a factor of sqrt 2 apart, each the mean of its bucket."""
    edges, out = [SHORTEST], []
    while edges[-1] < longest:
        edges.append(min(edges[-1] * math.sqrt(2), longest))
    above = lambda x: (SHORTEST / x) ** a
    mean = lambda x, y: math.log(y / x) * SHORTEST if a == 1 else (
        a * SHORTEST ** a * (y ** (1 - a) - x ** (1 - a)) / (1 - a))
    whole = 1 - above(longest)
    for x, y in zip(edges, edges[1:]):
        frac = (above(x) - above(y)) / whole
        out.append({"length": int(mean(x, y) / (above(x) - above(y))), "frac": frac})
    return out


def scenario(model, a, context, longest, nodes):
    hidden, layers, recompute = MODELS[model]
    return {
        "schema": 1,
        "model": {"model_type": "generic", "name": model, "hidden_size": hidden,
                  "intermediate_size": 4 * hidden, "num_hidden_layers": layers,
                  "num_attention_heads": 64, "vocab_size": 50304,
                  "max_position_embeddings": context},
        "cluster": {"gpu": "a100-sxm-40g", "num_gpus": 8 * nodes, "gpus_per_node": 8,
                    "scale_up": {"link": "nvlink3", "domain_gpus": 8},
                    "scale_out": {"nics_per_node": 1, "nic_bytes_per_s": 50e9,
                                  "topology": "fat-tree", "oversubscription": 1.0}},
        "training": {"seq_len": context, "global_batch": 512, "precision": "bf16",
                     "sequence_lengths": histogram(a, longest)},
        "parallel": {"tp": 1, "zero_stage": 3, "cp_method": "ulysses", "recompute": recompute},
    }


def plan(job):
    run = subprocess.run([PROGRAM, "plan", "-", "--json"], input=json.dumps(job), text=True,
                         capture_output=True)
    if run.returncode:
        sys.exit(run.stderr)
    return json.loads(run.stdout)


def main():
    print("| model | lengths | context, longest | GPUs | tokens | cp that holds the context | "
          "best of one size | several sizes | gain over these | bound, gap |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for model, data, a, k, longest, nodes in CASES:
        job = scenario(model, a, k * 1024, longest * 1024, nodes)
        free = plan(job)
        # The largest where, by our account of the memory, none holds the whole context.
        sizes = free["many_sizes"]["sizes"]
        holds = [s["cp"] for s in sizes if s["capacity_tokens"] >= k * 1024] or [sizes[-1]["cp"]]
        job["parallel"]["cp"] = holds[0]
        fixed = plan(job)["one_size"]["step_time_s"]
        one, many = free["one_size"], free["many_sizes"]["step_time_s"]
        print(f"| {model} | {data} | {k}K, {longest}K | {8 * nodes} | {free['num_tokens'] / 1e6:.2f} M "
              f"| cp {holds[0]}: {fixed:.1f} s | cp {one['parallel']['cp']}: {one['step_time_s']:.1f} s "
              f"| {many:.1f} s | {fixed / many:.2f}x, {one['step_time_s'] / many:.2f}x "
              f"| {free['bound_s']:.1f} s, {100 * free['gap_frac']:.1f} % |", flush=True)


main()
