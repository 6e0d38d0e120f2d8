#!/usr/bin/env python3
"""The whole loop on this computer: measure its cores, plan for them, run plans, compare.

Profiles the cores (quick), searches the best plan of a small model for two processes, runs it and shows
where its time goes, then runs other ways to split the same step over two and sets each measured step beside
the predicted one. Prints the table of docs/loop.md.

A computer that others share is slower for seconds to minutes at a time, by 10 to 20 %, and that may hit the
profile or a plan. So all of it is done in rounds: of each kernel the fastest of all profiles counts, of each
plan the fastest step of all rounds, in another order each: both are of the undisturbed computer. The median
step is beside it.

usage: tools/figures/loop.py PROGRAM [FOLDER]    (FOLDER keeps the profile, plans and logs)
"""

import csv
import itertools
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

MOST_S = 108  # no round begins that would end later, but for the second
PROFILES, STEPS = 3, 3  # the first rounds begin with a profile; the first step warms up
MODEL = {"model_type": "llama", "name": "tiny-llama", "hidden_size": 256, "intermediate_size": 704,
         "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4,
         "vocab_size": 1024, "max_position_embeddings": 512, "tie_word_embeddings": False}
TRAINING = {"seq_len": 128, "global_batch": 8, "precision": "fp32", "stack": "runtime"}
# Ways to split it over two processes.
PLANS = [
    ("dp 2, micro-batch 1", {"dp": 2, "micro_batch": 1}),
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
    ("cp 2, ring, all recomputed", {"cp": 2, "micro_batch": 2, "recompute": "full"}),
    ("pp 2, 1f1b", {"pp": 2, "micro_batch": 1}),
    ("pp 2, 1f1b, micro-batch 2", {"pp": 2, "micro_batch": 2}),
    ("pp 2, 1f1b, micro-batch 4", {"pp": 2, "micro_batch": 4}),
    ("pp 2, 1f1b, all recomputed", {"pp": 2, "micro_batch": 1, "recompute": "full"}),
    ("pp 2, gpipe", {"pp": 2, "micro_batch": 1, "schedule": "gpipe"}),
    ("pp 2, interleaved", {"pp": 2, "vpp": 2, "micro_batch": 1, "schedule": "interleaved"}),
    ("pp 2, zb-h1", {"pp": 2, "micro_batch": 1, "schedule": "zb-h1"}),
]


def call(*arguments):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit("%s: exit %d\n%s" % (" ".join(map(str, arguments)), done.returncode, done.stderr))
    return done.stdout


def two_cores(profile):
    """The cluster of a profile's folder with two of its cores."""
    with open(os.path.join(profile, "cluster.json"), encoding="utf-8") as source:
        cluster = json.load(source)
    cluster["gpu"] = os.path.join(profile, cluster["gpu"])
    cluster["scale_up"] = {"link": os.path.join(profile, cluster["scale_up"]["link"]), "domain_gpus": 2}
    cluster["num_gpus"] = cluster["gpus_per_node"] = 2
    for key in ("schema", "sources", "title", "name"):
        cluster.pop(key, None)
    return cluster


def scenario(path, profile, parallel):
    job = {"schema": 1, "model": MODEL, "cluster": two_cores(profile), "training": TRAINING}
    if parallel is not None:
        job["parallel"] = parallel
    with open(path, "w", encoding="utf-8") as out:
        json.dump(job, out, indent=1)
    return path


class Row:
    """A plan, what is predicted of its step, and what its steps took."""

    def __init__(self, name, parallel):
        self.name, self.parallel = name, parallel
        self.predicted, self.measured, self.memory = 0, [], 0

    def run(self, program, path):
        log = path + "l"
        call(program, "run", path, "--steps", STEPS, "--log", log)
        with open(log, encoding="utf-8") as lines:
            steps = [step for step in map(json.loads, lines) if "step_time_s" in step]
        self.measured += [step["step_time_s"] for step in steps[1:]]
        self.memory = steps[-1]["memory_peak_bytes"] / steps[-1]["program_peak_bytes"]

    def predict(self, program, profile, path):
        answer = json.loads(call(program, "estimate", scenario(path, profile, self.parallel), "--json"))
        self.predicted = answer["step_time_s"]


def kendall_tau(pairs):
    """Of pairs of a predicted and a measured time; ties count as neither."""
    signs = [(a[0] - b[0]) * (a[1] - b[1]) for a, b in itertools.combinations(pairs, 2)]
    return (sum(s > 0 for s in signs) - sum(s < 0 for s in signs)) / len(signs)


def profiled(program, path):
    """Measures what path does not hold yet, and fits the cluster to it."""
    said = call(program, "profile", "--device", "cpu", "--quick", "-o", path)
    print("profile: " + said.strip().splitlines()[-3], flush=True)
    return path


def fastest_rows(tables):
    """Of tables of the same shapes each shape's fastest row, with the header first."""
    best, header = {}, tables[0][0]
    time_column = header.index("latency_ms")
    for row in itertools.chain.from_iterable(table[1:] for table in tables):
        shape = tuple(row[:time_column])
        if shape not in best or float(row[time_column]) < float(best[shape][time_column]):
            best[shape] = row
    return [header, *best.values()]


def best_profile(program, folder, profiles):
    """The profile of each kernel's fastest time: nothing is left to measure."""
    best = os.path.join(folder, "profile")
    os.makedirs(best, exist_ok=True)
    for name in sorted(name for name in os.listdir(profiles[0]) if name.endswith(".csv")):
        tables = []
        for profile in profiles:
            with open(os.path.join(profile, name), encoding="utf-8", newline="") as table:
                tables.append(list(csv.reader(table)))
        with open(os.path.join(best, name), "w", encoding="utf-8", newline="") as out:
            csv.writer(out, lineterminator="\n").writerows(fastest_rows(tables))
    shutil.copy(os.path.join(profiles[0], "device.json"), best)
    return profiled(program, best)


def best_plan(program, folder, profile):
    plans = os.path.join(folder, "plans")
    call(program, "plan", scenario(os.path.join(folder, "job.json"), profile, None), "-o", plans)
    with open(os.path.join(plans, "plan.json"), encoding="utf-8") as source:
        return Row("the best plan found", json.load(source)["parallel"])


def plan_path(folder, index):
    return os.path.join(folder, "plan-%d.json" % index)


def rounds(program, folder, start):
    """Profiles and runs everything until the time is up."""
    rows, profiles, took, number = [Row(name, parallel) for name, parallel in PLANS], [], 0, 0
    while number < 2 or time.monotonic() + took < start + MOST_S:
        if number < PROFILES:
            profiles.append(profiled(program, os.path.join(folder, "profile-%d" % number)))
        if number == 0:
            rows.insert(0, best_plan(program, folder, profiles[0]))
        began = time.monotonic()
        for index, row in random.Random(number).sample(list(enumerate(rows)), len(rows)):
            row.run(program, scenario(plan_path(folder, index), profiles[0], row.parallel))
        took, number = time.monotonic() - began, number + 1
        print("round %d: %d plans in %.0f s" % (number, len(rows), took), flush=True)
    return rows, profiles, number


def summary(name, pairs):
    errors = [abs(p / m - 1) for p, m in pairs]
    print("%s: within 15 %%: %d of %d; median error %.1f %%, largest %.1f %%; Kendall's tau %.2f"
          % (name, sum(e <= 0.15 for e in errors), len(pairs), 100 * statistics.median(errors),
             100 * max(errors), kendall_tau(pairs)))


def show(rows):
    print("| plan | predicted | fastest step | over predicted | median step | memory |")
    print("| --- | --- | --- | --- | --- | --- |")
    for row in rows:
        print("| %s | %.0f ms | %.0f ms | %.2f | %.0f ms | %.3f |"
              % (row.name, 1e3 * row.predicted, 1e3 * min(row.measured),
                 min(row.measured) / row.predicted, 1e3 * statistics.median(row.measured), row.memory))


def loop(program, folder):
    start, folder = time.monotonic(), os.path.abspath(folder)
    rows, profiles, number = rounds(program, folder, start)
    best = best_profile(program, folder, profiles)
    for index, row in enumerate(rows):
        row.predict(program, best, plan_path(folder, index))
    print("\n" + call(program, "run", plan_path(folder, 0), "--compare").strip() + "\n")
    show(rows)
    above = statistics.median(statistics.median(row.measured) / min(row.measured) - 1 for row in rows)
    print("\n%d plans, %d rounds, %d steps of each, %.0f s; steps were %.0f %% above their plan's fastest"
          % (len(rows), number, len(rows[0].measured), time.monotonic() - start, 100 * above))
    summary("fastest step", [(row.predicted, min(row.measured)) for row in rows])
    summary("median step", [(row.predicted, statistics.median(row.measured)) for row in rows])


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
