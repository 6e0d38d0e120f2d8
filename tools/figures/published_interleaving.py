#!/usr/bin/env python3
"""Interleaving against 1F1B, predicted and published.

usage: tools/figures/published_interleaving.py PROGRAM
Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM",
arXiv:2104.04473, figures 12 and 18: GPT-3 of 175 G parameters on 12 DGX A100-80GB, tensor parallelism 8, a pipeline of 12,
micro-batches of one sequence, all activations recomputed; interleaved with 2 layers a chunk (NVIDIA/Megatron-LM,
examples/sc21/run_figure_12.sh, run_figure_18.sh). The published teraFLOP/s are those that others read off the figures,
to about 1; the paper's text has "10+%" for interleaving and up to 11 % for scatter/gather.
Experiments run on a changed copy of the bundled data: without scatter/gather, and with exchanges that take longer.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

BATCHES = (12, 24, 36, 48, 60)
PUBLISHED = {  # batch: 1F1B, interleaved, interleaved without scatter/gather
    12: (81, 119, 108),
    60: (136, 147, 131),
}
LAYERS, HIDDEN, SEQ_LEN, VOCAB, GPUS = 96, 12288, 2048, 51200, 96


def scenario(batch, vpp):
    return {
        "schema": 1, "model": "gpt3-175b", "cluster": "dgx-a100-80g:12",
        "training": {"seq_len": SEQ_LEN, "global_batch": batch, "precision": "fp16", "stack": "megatron-2021",
                     "attention": "unfused"},
        "parallel": {"tp": 8, "pp": 12, "vpp": vpp, "micro_batch": 1, "zero_stage": 0, "sequence_parallel": False,
                     "recompute": "full"},
    }


def teraflops(batch, step_time_s):
    """Per GPU, as the paper counts them (equation 3)."""
    flops = 96 * batch * SEQ_LEN * LAYERS * HIDDEN ** 2
    flops *= 1 + SEQ_LEN / (6 * HIDDEN) + VOCAB / (16 * LAYERS * HIDDEN)
    return flops / step_time_s / GPUS / 1e12


def run(program, command, batch, vpp, data=None):
    environment = dict(os.environ, **({"MESHWRIGHT_DATA": data} if data else {}))
    done = subprocess.run([program, command, "--json", "-"], input=json.dumps(scenario(batch, vpp)),
                          capture_output=True, text=True, env=environment)
    if not done.stdout:
        sys.exit(done.stderr)
    return teraflops(batch, json.loads(done.stdout)["step_time_s"])


def changed_data(folder, path, pattern, change):
    """A copy of the bundled data in which `change` replaces what matches in the files of a folder."""
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    for part in ("models", "stacks", "hw-profiles", "published"):
        shutil.copytree(os.path.join(root, part), os.path.join(folder, part))
    path = os.path.join(folder, path)
    for name in os.listdir(path):
        with open(os.path.join(path, name)) as file:
            text = re.sub(pattern, change, file.read())
        with open(os.path.join(path, name), "w") as file:
            file.write(text)
    return folder


def line(label, both, published):
    text = "%-34s %.1f  %.1f  %+.1f %%" % (label, *both, 100 * (both[1] / both[0] - 1))
    if published:
        text += "  (%d  %d  %+.1f %%)" % (*published, 100 * (published[1] / published[0] - 1))
    print(text)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = sys.argv[1]
    print("teraFLOP/s per GPU: predicted (published)\nbatch: 1f1b, interleaved, gain")
    for batch in BATCHES:
        line("%d" % batch, [run(program, "estimate", batch, vpp) for vpp in (1, 4)], PUBLISHED.get(batch, ())[:2])
    simulated = [run(program, "simulate", 60, vpp) for vpp in (1, 4)]
    line("60, simulated", simulated, PUBLISHED[60][:2])
    for tenths in (2, 4, 6):
        with tempfile.TemporaryDirectory() as folder:
            data = changed_data(folder, "hw-profiles/links", r'("p2p_latency_s": )([0-9.e-]+)',
                                lambda m: m.group(1) + repr(float(m.group(2)) + tenths * 1e-4))
            line("60, exchanges 0.%d ms longer" % tenths,
                 [run(program, "estimate", 60, vpp, data) for vpp in (1, 4)], PUBLISHED[60][:2])
    print("batch: interleaved without scatter/gather, with it, gain")
    with tempfile.TemporaryDirectory() as folder:
        data = changed_data(folder, "stacks", r'("p2p_scatter_gather": )true', r"\1false")
        for batch, command in ((12, "estimate"), (60, "estimate"), (60, "simulate")):
            line("%d%s" % (batch, ", simulated" if command == "simulate" else ""),
                 (run(program, command, batch, 4, data), run(program, command, batch, 4)),
                 (PUBLISHED[batch][2], PUBLISHED[batch][1]))


if __name__ == "__main__":
    main()
