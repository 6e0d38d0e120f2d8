#!/usr/bin/env python3
"""Throughput and memory of a vocabulary spread over the pipeline, predicted and published.

usage: tools/figures/published_vocab.py PROGRAM
Yeung et al., "Balancing Pipeline Parallelism with Vocabulary Parallelism", MLSys 2025, arXiv:2411.05288: GPT models of
about 4 G parameters on one server of eight A100-SXM-80GB, a pipeline over all of them, 128 micro-batches of one
sequence, 1F1B. The published figures are those of the authors' artifact, which match the paper's table 5
(sail-sg/VocabularyParallelism, artifact/example-results/full-exp.txt; for 2,048 tokens and 256k the baseline is the run
of artifact/test_one_host.csv, 80.72 TFLOP/s, for the 17.29 % of the former are of a run that was disturbed: its memory,
35.56, is above that of 4,096 tokens). vocab-1 is the paper's algorithm 1 (two barriers), vocab-2 its algorithm 2 (one).
V-half: the shape of the authors' script (sail-sg/zero-bubble-pipeline-parallelism, branch v-half-vocab,
examples/pretrain_zero_bubble.sh) with 128 micro-batches; they publish gains from 7.2 % to 143 % over all of theirs.
"""
import json
import subprocess
import sys

# Sequence length, vocabulary in thousands: MFU in percent and peak memory in GB of the baseline, vocab-1, vocab-2.
PUBLISHED = {
    (2048, 32): ((47.52, 53.10, 52.56), (16.01, 16.64, 15.87)),
    (2048, 64): ((40.82, 52.74, 52.36), (17.74, 17.48, 16.64)),
    (2048, 128): ((33.70, 52.22, 51.95), (21.00, 18.40, 17.56)),
    (2048, 256): ((25.87, 51.73, 51.20), (None, 19.44, 18.85)),
    (4096, 32): ((52.82, 58.52, 58.23), (22.23, 24.97, 23.39)),
    (4096, 64): ((45.78, 58.22, 57.94), (23.98, 24.58, 23.14)),
    (4096, 128): ((37.13, 57.87, 57.40), (27.22, 26.10, 24.56)),
    (4096, 256): ((27.63, 57.31, 56.61), (33.86, 27.38, 26.25)),
}
METHODS = ("baseline", "vocab-1", "vocab-2")
BARRIERS = {"vocab-1": 2, "vocab-2": 1}


def scenario(method, seq_len, thousands, v_half=False):
    layers, heads, hidden = (16, 32, 4096) if v_half else (32, 24, 3072)
    parallel = {"pp": 8, "micro_batch": 1, "zero_stage": 1}
    if v_half:
        parallel["schedule"] = "v-half"
    if method != "baseline":
        parallel.update({"vocab_parallel": True, "vocab_barriers": BARRIERS[method]})
    return {
        "schema": 1,
        "model": {"model_type": "generic", "hidden_size": hidden, "num_hidden_layers": layers,
                  "num_attention_heads": heads, "vocab_size": 1000 * thousands, "intermediate_size": 4 * hidden,
                  "gated_mlp": False, "norm": "layernorm", "position": "learned",
                  "tie_word_embeddings": False, "linear_bias": True},
        "cluster": {"gpu": "a100-sxm-80g", "num_gpus": 8, "gpus_per_node": 8,
                    "scale_up": {"link": "nvlink3", "domain_gpus": 8},
                    "scale_out": {"nics_per_node": 4, "nic_bytes_per_s": 25e9}},
        "training": {"seq_len": seq_len, "global_batch": 128, "precision": "fp16",
                     "stack": "megatron-2022", "attention": "flash"},
        "parallel": parallel,
    }


def predicted(program, *job, **options):
    """MFU in percent and peak memory in GB."""
    done = subprocess.run([program, "estimate", "--json", "-"], input=json.dumps(scenario(*job, **options)),
                          capture_output=True, text=True)
    if not done.stdout:
        sys.exit(done.stderr)
    answer = json.loads(done.stdout)
    return 100 * answer["mfu_frac"], answer["memory_peak_bytes"] / 1e9


def row(seq_len, thousands, answers, mfus, peaks):
    cells = ["%5d %5dk" % (seq_len, thousands)]
    for i, (mfu, peak) in enumerate(answers):
        text = "%.1f (%.1f) %%" % (mfu, mfus[i]) if mfus else "%.1f %%" % mfu
        if i:
            text += " %+.0f %%" % (100 * (mfu / answers[0][0] - 1))
            text += " (%+.0f %%)" % (100 * (mfus[i] / mfus[0] - 1)) if mfus else ""
        known = peaks and peaks[i]
        cells.append("%-*s" % (31 if i == 0 else 45, "%s  %.1f%s GB" % (text, peak, " (%.1f)" % known if known else "")))
    print(" ".join(cells).rstrip())


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print("MFU, gain over the baseline, peak memory of the worst GPU: predicted (published)")
    print("1f1b: tokens, vocabulary; baseline, vocab-1, vocab-2")
    for (seq_len, thousands), (mfus, peaks) in PUBLISHED.items():
        row(seq_len, thousands, [predicted(sys.argv[1], m, seq_len, thousands) for m in METHODS], mfus, peaks)
    print("v-half: tokens, vocabulary; baseline, vocab-1, vocab-2")
    for thousands in (32, 64, 128, 256):
        row(4096, thousands, [predicted(sys.argv[1], m, 4096, thousands, v_half=True) for m in METHODS], None, None)


if __name__ == "__main__":
    main()
