#!/usr/bin/env python3
"""The whole loop on this computer: measure its cores, plan for them, run plans, compare.

Profiles the cores (quick), searches the best plan of a small model for two processes, runs it, then runs
other ways to split the same step over two and sets each measured step beside the predicted one. Prints
the table of docs/loop.md.

usage: docs/loop.py PROGRAM [FOLDER]    (FOLDER keeps the profile, plans and logs)
"""

import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROUNDS, STEPS = 2, 5  # each plan twice, a round apart, as the machine drifts; the first two steps are left out
MODEL = {"model_type": "llama", "name": "tiny-llama", "hidden_size": 256, "intermediate_size": 704,
         "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4,
         "vocab_size": 1024, "max_position_embeddings": 512, "tie_word_embeddings": False}
TRAINING = {"seq_len": 256, "global_batch": 8, "precision": "fp32", "stack": "runtime"}
# Ways to split it over two processes.
PLANS = [
    ("dp 2, micro-batch 1", {"dp": 2, "micro_batch": 1}),
    ("dp 2, micro-batch 4", {"dp": 2, "micro_batch": 4}),
    ("dp 2, ZeRO-0", {"dp": 2, "micro_batch": 2, "zero_stage": 0}),
    ("dp 2, ZeRO-2", {"dp": 2, "micro_batch": 2, "zero_stage": 2}),
    ("dp 2, ZeRO-3", {"dp": 2, "micro_batch": 2, "zero_stage": 3}),
    ("dp 2, attention recomputed", {"dp": 2, "micro_batch": 2, "recompute": "selective"}),
    ("dp 2, all recomputed", {"dp": 2, "micro_batch": 2, "recompute": "full"}),
    ("tp 2", {"tp": 2, "micro_batch": 2}),
    ("tp 2, no sequence parallelism", {"tp": 2, "micro_batch": 2, "sequence_parallel": False}),
    ("tp 2, all recomputed", {"tp": 2, "micro_batch": 2, "recompute": "full"}),
    ("cp 2, ring", {"cp": 2, "micro_batch": 2}),
    ("cp 2, Ulysses", {"cp": 2, "micro_batch": 2, "cp_method": "ulysses"}),
    ("pp 2, 1f1b", {"pp": 2, "micro_batch": 1}),
    ("pp 2, 1f1b, micro-batch 2", {"pp": 2, "micro_batch": 2}),
    ("pp 2, gpipe", {"pp": 2, "micro_batch": 1, "schedule": "gpipe"}),
    ("pp 2, interleaved", {"pp": 2, "vpp": 2, "micro_batch": 1, "schedule": "interleaved"}),
    ("pp 2, zb-h1", {"pp": 2, "micro_batch": 1, "schedule": "zb-h1"}),
]


def call(*arguments):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit("%s: exit %d\n%s" % (" ".join(map(str, arguments)), done.returncode, done.stderr))
    return done.stdout


def two_cores(folder):
    """The profile's cluster with two of its cores."""
    profile = os.path.join(folder, "profile")
    with open(os.path.join(profile, "cluster.json"), encoding="utf-8") as source:
        cluster = json.load(source)
    cluster["gpu"] = os.path.join(profile, cluster["gpu"])
    cluster["scale_up"] = {"link": os.path.join(profile, cluster["scale_up"]["link"]), "domain_gpus": 2}
    cluster["num_gpus"] = cluster["gpus_per_node"] = 2
    for key in ("schema", "sources", "title", "name"):
        cluster.pop(key, None)
    return cluster


def scenario(folder, name, parallel):
    path = os.path.join(folder, name + ".json")
    job = {"schema": 1, "model": MODEL, "cluster": two_cores(folder), "training": TRAINING}
    if parallel is not None:
        job["parallel"] = parallel
    with open(path, "w", encoding="utf-8") as out:
        json.dump(job, out, indent=1)
    return path


def compared(program, path):
    return json.loads(call(program, "run", path, "--steps", STEPS, "--compare", "--json"))


def kendall_tau(pairs):
    """Of pairs of a predicted and a measured time; ties count as neither."""
    signs = [(a[0] - b[0]) * (a[1] - b[1]) for a, b in itertools.combinations(pairs, 2)]
    return (sum(s > 0 for s in signs) - sum(s < 0 for s in signs)) / len(signs)


def loop(program, folder):
    folder = os.path.abspath(folder)
    print(call(program, "profile", "--device", "cpu", "--quick", "-o",
               os.path.join(folder, "profile")).strip().splitlines()[-2], flush=True)
    job = scenario(folder, "job", None)
    plans = os.path.join(folder, "plans")
    call(program, "plan", job, "-o", plans)
    paths = [("the best plan found", os.path.join(plans, "plan.json"))]
    paths += [(name, scenario(folder, "plan-%d" % number, parallel))
              for number, (name, parallel) in enumerate(PLANS)]
    rounds = [[compared(program, path) for _, path in paths] for _ in range(ROUNDS)]
    print("\n| plan | predicted | measured | measured over predicted | memory |")
    print("| --- | --- | --- | --- | --- |")
    pairs = []
    for (name, _), *answers in zip(paths, *rounds):
        predicted, measured = answers[0]["predicted"], answers[0]["measured"]
        pairs.append((predicted["step_time_s"],
                      statistics.mean(answer["measured"]["step_time_s"] for answer in answers)))
        print("| %s | %.0f ms | %.0f ms | %.2f | %.3f |"
              % (name, 1e3 * pairs[-1][0], 1e3 * pairs[-1][1], pairs[-1][1] / pairs[-1][0],
                 measured["memory_peak_bytes"] / predicted["memory_peak_bytes"]))
    errors = [abs(p / m - 1) for p, m in pairs]
    print("\n%d plans: within 15 %%: %d; median error %.1f %%, largest %.1f %%; Kendall's tau %.2f"
          % (len(pairs), sum(e <= 0.15 for e in errors), 100 * statistics.median(errors),
             100 * max(errors), kendall_tau(pairs)))


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    if len(sys.argv) == 3:
        os.makedirs(sys.argv[2], exist_ok=True)
        loop(sys.argv[1], sys.argv[2])
        return
    with tempfile.TemporaryDirectory() as folder:
        loop(sys.argv[1], folder)


if __name__ == "__main__":
    main()
