#!/usr/bin/env python3
"""Throughput and memory of pipeline schedules against 1F1B, predicted and published.

usage: tools/figures/published_schedules.py PROGRAM
Qi et al. 2023, "Zero Bubble Pipeline Parallelism", arXiv:2401.10241, tables 3 to 5: GPT models on A100-SXM-80GB, 8 to a
node, RoCE, sequences of 1,024 tokens, a pipeline over all GPUs. Attention is not fused (table 1 counts the bytes of its
scores) and precision fp16 (the authors' script). ZB-1p is zb-h1 (table 5 has the same bubbles for both) and ZB-2p zb-h2 with
an order searched for the measured times, both with steps apart (training.optimizer_post_validation). "W later" is such
an order, a file: zb-h2 that delays the weight parts of rank r by r (F + B) / W micro-batches of the priced times instead of
2 r, which leaves no gap where W is shorter. 1F1B-I has as many chunks a rank as divide the layers. Table 10 is ZB-2p with steps that begin together, table 6 ZB-V, as others
transcribed them. NICs are taken as four of 200 Gb/s a node.
"""
import json
import os
import subprocess
import sys
import tempfile

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
# Share of the step that is idle with the fewest micro-batches, computed by the authors from measured times: table 5.
BUBBLES = {
    "1.5B": {"1f1b": 0.2431, "interleaved": 0.1055, "zb-h1": 0.1585, "zb-h2": 0.0433},
    "6.2B": {"1f1b": 0.2347, "interleaved": 0.0808, "zb-h1": 0.1323, "zb-h2": 0.0029},
    "14.6B": {"1f1b": 0.2552, "interleaved": 0.1104, "zb-h1": 0.1397, "zb-h2": 0.0066},
    "28.3B": {"1f1b": 0.2646, "interleaved": 0.1493, "zb-h1": 0.1421, "zb-h2": 0.0038},
}
# GB of all: table 4.
MEMORY = {
    "1.5B": {"1f1b": 30, "interleaved": 40, "zb-h1": 32, "zb-h2": 59},
    "6.2B": {"1f1b": 39, "interleaved": 48, "zb-h1": 42, "zb-h2": 70},
    "14.6B": {"1f1b": 32, "interleaved": 39, "zb-h1": 33, "zb-h2": 51},
    "28.3B": {"1f1b": 43, "interleaved": 58, "zb-h1": 44, "zb-h2": 74},
}
# Samples per GPU and second of ZB-2p with the fewest micro-batches whose optimizer waits for all ranks: table 10.
TOGETHER = {"1.5B": 13.11, "6.2B": 4.00, "14.6B": 1.68, "28.3B": 0.91}
# 6.2B on 16 GPUs, micro-batches of 6 sequences: table 6.
ZB_V_MODEL = (30, 32, 4096, 16, 6, 1, (48, 64, 128))
ZB_V = {"1f1b": (3.38, 3.57, 3.91), "zb-h1": (3.87, 4.00, 4.29), "zb-v": (4.15, 4.21, 4.35)}
ZB_V_BUBBLES = {"1f1b": 0.2668, "zb-h1": 0.1536, "zb-v": 0.0697}  # table 8
V_SCHEDULES = ("zb-v", "v-half", "v-min")


def job(layers, heads, hidden, gpus):
    """A GPT on the authors' nodes of eight A100."""
    return {
        "schema": 1,
        "model": {"model_type": "generic", "hidden_size": hidden, "num_hidden_layers": layers,
                  "num_attention_heads": heads, "vocab_size": 50304, "intermediate_size": 4 * hidden,
                  "gated_mlp": False, "norm": "layernorm", "position": "learned",
                  "tie_word_embeddings": False, "linear_bias": True},
        "cluster": {"gpu": "a100-sxm-80g", "num_gpus": gpus, "gpus_per_node": 8,
                    "scale_up": {"link": "nvlink3", "domain_gpus": 8},
                    "scale_out": {"nics_per_node": 4, "nic_bytes_per_s": 25e9}},
    }


def scenario(model, num_microbatches, schedule, apart):
    layers, heads, hidden, gpus, micro_batch, chunks, _ = model
    vpp = chunks if schedule == "interleaved" else 2 if schedule in V_SCHEDULES else 1
    return {
        **job(layers, heads, hidden, gpus),
        "training": {"seq_len": 1024, "global_batch": num_microbatches * micro_batch, "precision": "fp16",
                     "stack": "megatron-2022", "attention": "unfused", "optimizer_post_validation": apart},
        "parallel": {"pp": gpus, "vpp": vpp, "schedule": schedule, "micro_batch": micro_batch,
                     "zero_stage": 0},
    }


def predicted(program, model, num_microbatches, schedule, apart=None):
    """Samples per GPU and second, and GB of activations and of all that is live."""
    if apart is None:
        apart = schedule not in ("1f1b", "interleaved")
    done = subprocess.run([program, "estimate", "--json", "-"],
                          input=json.dumps(scenario(model, num_microbatches, schedule, apart)),
                          capture_output=True, text=True)
    if not done.stdout:
        sys.exit(done.stderr)
    answer = json.loads(done.stdout)
    return (answer["tokens_per_s_per_gpu"] / 1024, answer["memory_bytes"]["activations"] / 1e9,
            answer["memory_peak_bytes"] / 1e9)


def priced_work(program, model, num_microbatches):
    """Milliseconds of F, B and W on the second rank, which has no embedding."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        job = json.dumps(scenario(model, num_microbatches, "zb-h1", False))
        subprocess.run([program, "simulate", "-", "--trace", path, "--json"], input=job, text=True, check=True,
                       stdout=subprocess.DEVNULL)
        with open(path) as file:
            events = json.load(file)["traceEvents"]
    times = {e["name"].split()[0]: e["dur"] / 1e3 for e in events
             if e.get("ph") == "X" and e.get("args", {}).get("chunk") == 1}
    return times["F"], times["Bi"], times["Bw"]


def later_order(model, num_microbatches, times):
    """The text of a schedule file."""
    pp = model[3]
    lines = ["messages asynchronous"]
    for rank in range(pp):
        delay, ahead = round(rank * (times[0] + times[1]) / times[2]), 2 * (pp - 1 - rank)
        items, forward, back, weight = [], 0, 0, 0
        while weight < num_microbatches:
            if forward < num_microbatches:
                items.append("F%d" % forward)
                forward += 1
                if forward <= ahead:
                    continue
            if back < num_microbatches:
                items.append("B%d" % back)
                back += 1
                if back - weight <= delay:
                    continue
            items.append("W%d" % weight)
            weight += 1
        lines.append(" ".join(items))
    return "\n".join(lines) + "\n"


def predicted_later(program, model, num_microbatches):
    """As predicted, of "W later"."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(later_order(model, num_microbatches, priced_work(program, model, num_microbatches)))
        file.flush()
        return predicted(program, model, num_microbatches, "file:" + file.name, True)


def gain_cell(gain, published, counts):
    """The gain beside the published one; counts how many are within a fifth of it."""
    if published is None:
        return "%+5.1f %%" % (100 * gain)
    counts[0] += abs(gain / published - 1) <= 0.2
    counts[1] += 1
    return "%+5.1f %% (%+.1f %%)" % (100 * gain, 100 * published)


def bubble_gain(idle, schedule):
    return "(%+.1f %%)" % (100 * ((1 - idle[schedule]) / (1 - idle["1f1b"]) - 1))


def gains(program, counts):
    columns = ("interleaved", "zb-h1", "zb-h2", "zb-h2, W later", "zb-h2 together") + V_SCHEDULES
    print("Gain over 1f1b: predicted (published)")
    print("%-6s %4s  %-20s" % ("model", "m", "1f1b, samples/GPU/s") + "".join("%-20s" % c for c in columns).rstrip())
    for name, model in MODELS.items():
        for i, m in enumerate(model[-1]):
            base, base_published = predicted(program, model, m, "1f1b")[0], PUBLISHED[name]["1f1b"][i]
            row = "%-6s %4d  %-20s" % (name, m, "%.2f (%.2f)" % (base, base_published))
            for column in columns:
                schedule, together = column.split()[0].rstrip(","), column.endswith("together")
                answer = (predicted_later(program, model, m) if column.endswith("later") else
                          predicted(program, model, m, schedule, False if together else None))
                published = PUBLISHED[name][schedule][i] if schedule in PUBLISHED[name] else None
                if together:
                    published = TOGETHER[name] if i == 0 else None
                row += "%-20s" % gain_cell(answer[0] / base - 1, published and published / base_published - 1,
                                           counts.setdefault(column, [0, 0]))
            print(row.rstrip())
        print(("%-33s" % "       by the authors' bubbles" + "".join(
            "%8s%-12s" % ("", bubble_gain(BUBBLES[name], c)) for c in columns[:3])).rstrip())


def zb_v_gains(program, counts):
    print("6.2B on 16 GPUs, micro-batches of 6")
    for i, m in enumerate(ZB_V_MODEL[-1]):
        base = predicted(program, ZB_V_MODEL, m, "1f1b")[0]
        row = "%-6s %4d  %-20s" % ("6.2B", m, "%.2f (%.2f)" % (base, ZB_V["1f1b"][i]))
        for schedule in ("zb-h1", "zb-v"):
            answer = predicted(program, ZB_V_MODEL, m, schedule)
            row += "%-6s %-18s" % (schedule, gain_cell(answer[0] / base - 1, ZB_V[schedule][i] / ZB_V["1f1b"][i] - 1,
                                                       counts.setdefault(schedule, [0, 0])))
        print(row.rstrip())
    print("%-38s" % "       by the authors' bubbles" + "".join(
        "%10s%-15s" % ("", bubble_gain(ZB_V_BUBBLES, s)) for s in ("zb-h1", "zb-v")).rstrip())


def memory(program):
    print("GB with the most micro-batches: activations of the worst rank; all that is live: predicted (published)")
    for name, model in MODELS.items():
        row = "%-6s" % name
        for schedule in ("1f1b", "interleaved", "zb-h1", "zb-h2"):
            answer = predicted(program, model, model[-1][-1], schedule)
            row += " %-12s%-19s" % (schedule, "%.1f; %.1f (%d)" % (answer[1], answer[2], MEMORY[name][schedule]))
        print("%s W later %.1f; %.1f" % (row, *predicted_later(program, model, model[-1][-1])[1:]))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    counts = {}
    gains(sys.argv[1], counts)
    zb_v_gains(sys.argv[1], counts)
    memory(sys.argv[1])
    print("Gains within a fifth of the published: " + ", ".join(
        "%s %d of %d" % (c, *n) for c, n in counts.items() if n[1]))


if __name__ == "__main__":
    main()
