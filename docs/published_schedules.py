#!/usr/bin/env python3
"""Throughput of pipeline schedules against 1F1B, predicted and published.

usage: docs/published_schedules.py PROGRAM
Qi et al. 2023, "Zero Bubble Pipeline Parallelism", arXiv:2401.10241, tables 3 and 4: GPT models on A100-SXM-80GB,
8 to a node, RoCE, sequences of 1,024 tokens, a pipeline over all GPUs. ZB-1p and ZB-2p are zb-h1 and zb-h2 with orders
searched for the profiled times, and with an optimizer step that does not wait for the gradient norm; those of 1F1B-I
have as many chunks a rank as divide the layers. NICs are taken as four of 200 Gb/s a node.
"""
import json
import subprocess
import sys

# name: layers, heads, hidden size, GPUs, micro-batch, chunks a rank when interleaved, micro-batches
MODELS = {
    "1.5B": (22, 24, 2304, 8, 6, 3, (24, 32, 64)),
    "6.2B": (30, 32, 4096, 8, 3, 4, (24, 32, 64)),
    "14.6B": (46, 40, 5120, 16, 1, 3, (48, 64, 128)),
    "28.3B": (62, 48, 6144, 32, 1, 2, (96, 128, 256)),
}
# Samples per GPU and second, for each number of micro-batches.
PUBLISHED = {
    "1.5B": {"1f1b": (11.8, 12.5, 13.6), "interleaved": (13.1, 13.4, 13.9),
             "zb-h1": (12.9, 13.4, 14.2), "zb-h2": (14.5, 14.8, 14.9)},
    "6.2B": {"1f1b": (3.5, 3.7, 4.03), "interleaved": (4.01, 4.08, 4.19),
             "zb-h1": (3.88, 4.0, 4.2), "zb-h2": (4.32, 4.35, 4.39)},
    "14.6B": {"1f1b": (1.4, 1.49, 1.64), "interleaved": (1.54, 1.59, 1.66),
              "zb-h1": (1.61, 1.67, 1.76), "zb-h2": (1.81, 1.83, 1.85)},
    "28.3B": {"1f1b": (0.76, 0.8, 0.88), "interleaved": (0.82, 0.85, 0.9),
              "zb-h1": (0.87, 0.9, 0.96), "zb-h2": (0.99, 1.0, 1.0)},
}
SCHEDULES = ("1f1b", "interleaved", "zb-h1", "zb-h2", "zb-v", "v-half", "v-min")


def scenario(name, num_microbatches, schedule):
    layers, heads, hidden, gpus, micro_batch, chunks, _ = MODELS[name]
    vpp = chunks if schedule == "interleaved" else 2 if schedule in ("zb-v", "v-half", "v-min") else 1
    return {
        "schema": 1,
        "model": {"model_type": "generic", "hidden_size": hidden, "num_hidden_layers": layers,
                  "num_attention_heads": heads, "vocab_size": 50304, "intermediate_size": 4 * hidden,
                  "gated_mlp": False, "norm": "layernorm", "position": "learned",
                  "tie_word_embeddings": False, "linear_bias": True},
        "cluster": {"gpu": "a100-sxm-80g", "num_gpus": gpus, "gpus_per_node": 8,
                    "scale_up": {"link": "nvlink3", "domain_gpus": 8},
                    "scale_out": {"nics_per_node": 4, "nic_bytes_per_s": 25e9}},
        "training": {"seq_len": 1024, "global_batch": num_microbatches * micro_batch,
                     "precision": "bf16", "stack": "megatron-2022", "attention": "flash"},
        "parallel": {"pp": gpus, "vpp": vpp, "schedule": schedule, "micro_batch": micro_batch,
                     "zero_stage": 0},
    }


def predicted(program, name, num_microbatches, schedule):
    """Samples per GPU and second, and GB of activations, or None where it is refused."""
    text = json.dumps(scenario(name, num_microbatches, schedule))
    done = subprocess.run([program, "estimate", "--json", "-"], input=text, capture_output=True,
                          text=True)
    if not done.stdout:
        return None
    answer = json.loads(done.stdout)
    return answer["tokens_per_s_per_gpu"] / 1024, answer["memory_bytes"]["activations"] / 1e9


def cell(gain, published):
    return "%+5.1f %%%s" % (100 * gain, " (%+.1f %%)" % (100 * published) if published is not None else "")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print("Throughput over 1f1b: predicted (published). GB: activations of the worst rank, most "
          "micro-batches.")
    print("%-6s %4s  %-22s" % ("model", "m", "1f1b, samples/GPU/s") +
          "".join("%-20s" % s for s in SCHEDULES[1:]))
    for name, model in MODELS.items():
        for i, m in enumerate(model[-1]):
            base, base_published = predicted(sys.argv[1], name, m, "1f1b"), PUBLISHED[name]["1f1b"][i]
            row = "%-6s %4d  %-22s" % (name, m, "%.2f (%.2f)" % (base[0], base_published))
            for schedule in SCHEDULES[1:]:
                answer = predicted(sys.argv[1], name, m, schedule)
                published = PUBLISHED[name].get(schedule)
                row += "%-20s" % ("-" if not answer else cell(
                    answer[0] / base[0] - 1, published[i] / base_published - 1 if published else None))
            print(row.rstrip())
        held = [predicted(sys.argv[1], name, model[-1][-1], s) for s in SCHEDULES]
        print("%-6s   GB  " % "" + "".join("%-20s" % ("-" if not h else "%.1f" % h[1]) if i else
                                           "%-22s" % "%.1f" % h[1] for i, h in enumerate(held)).rstrip())


if __name__ == "__main__":
    main()
