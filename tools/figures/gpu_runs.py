#!/usr/bin/env python3
"""Steps of the bundled runtime on one GPU beside what is predicted for that board.

Predicted from what `meshwright profile` measured on a GPU of that kind: its products (`calibrate --kernels`,
short calls that the power limit leaves at full clock), and from products alone, back to back on the very
board (operations.csv of tests/bench/bench_backend.c): what their sum keeps of those short calls is what the
power limit leaves, with those of the other two models alone in a column of its own. All else is the bundled
file's. Nothing is fitted to the runs.
Prints the table of docs/loop.md, and each model's products alone beside the prediction of their shapes.
The profile of each board is in the repository beside its runs: board.json, a GPU file, and kernels.json.

usage: tools/figures/gpu_runs.py PROGRAM             the table; exit 1 where a step with cuDNN's attention, which the
                                            prediction is of, is missed by more than 5 %, or a profile is not
                                            what its measurements give
       tools/figures/gpu_runs.py PROGRAM --write     writes the profiles anew
       tools/figures/gpu_runs.py PROGRAM GPU RUNS.jsonl PROFILE OPERATIONS.csv     of other measurements
"""

import csv
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
MEASURED = os.path.join(ROOT, "profiler", "measured")
# GPU, steps of the runtime, tables of `profile`, products alone on the runs' board
BOARDS = [(gpu, os.path.join(MEASURED, gpu + "-2026-11-23", "runs.jsonl"),
           os.path.join(MEASURED, gpu + "-2026-11-22", "profile"),
           os.path.join(MEASURED, gpu + "-2026-11-23", "operations-cudnn.csv"))
          for gpu in ("h100-sxm-80g", "h200-sxm-141g")]
WARM_UP = 2
MOST_ERROR_FRAC = 0.05
PROFILE_FILES = ("board.json", "kernels.json")


def gpu_file(folder, name, rate=1):
    """Writes FOLDER/board.json: the bundled GPU with kernels.json beside it and so much of their rate."""
    with open(os.path.join(ROOT, "hw-profiles", "gpus", name + ".json"), encoding="utf-8") as source:
        gpu = json.load(source)
    gpu.update(name=name + "-board", title=gpu["title"] + ", one board alone", kernels_of="./kernels.json")
    watts = gpu["power_watts"] / rate ** 3  # the clock goes with the cube root: costmodel/kernel/compute.h
    gpu["efficiency"]["full_rate_watts"] = gpu["efficiency"]["light_rate_watts"] = round(watts)
    kept = "products alone, back to back on this board (operations-cudnn.csv), keep %.3f of short calls' rate" % rate
    gpu["sources"].update(kernels_of="kernels.json says what was measured", full_rate_watts=kept,
                          light_rate_watts=kept)
    path = os.path.join(folder, "board.json")
    with open(path, "w", encoding="utf-8") as out:
        json.dump(gpu, out, indent=4)
        out.write("\n")
    return path


def board_sums(program, folder, name, profile, operations):
    """Writes FOLDER/kernels.json; milliseconds of each model's products alone and in short calls."""
    subprocess.run([program, "calibrate", "--kernels", profile, "--gpu", name,
                    "-o", os.path.join(folder, "kernels.json")], check=True, stdout=subprocess.DEVNULL)
    sums = product_sums(program, gpu_file(folder, name), operations)
    for model, (measured_ms, short_ms) in sums.items():
        print("%s: products of %s alone: %.1f ms a step, %.1f in short calls: %.3f"
              % (name, model, measured_ms, short_ms, measured_ms / short_ms))
    print("%s: together they keep %.3f of short calls' rate\n" % (name, rate_of(sums)))
    return sums


def rate_of(sums, left_out=None):
    used = [both for model, both in sums.items() if model != left_out]
    return sum(short_ms for _, short_ms in used) / sum(measured_ms for measured_ms, _ in used)


def scenario(run, gpu):
    return {"schema": 1, "model": run["model"],
            "cluster": {"gpu": gpu, "num_gpus": 1, "gpus_per_node": 1,
                        "scale_up": {"link": "nvlink4", "domain_gpus": 1},
                        "scale_out": {"nics_per_node": 1, "nic_bytes_per_s": 5e10}},
            "training": {"seq_len": run["seq_len"], "global_batch": run["global_batch"],
                         "precision": "bf16", "stack": "runtime"},
            "parallel": {"micro_batch": run["micro_batch"]}}


def estimate(program, folder, run, gpu):
    path = os.path.join(folder, "run.json")
    with open(path, "w", encoding="utf-8") as out:
        json.dump(scenario(run, gpu), out)
    return json.loads(subprocess.run([program, "estimate", path, "--json"], capture_output=True,
                                     text=True, check=True).stdout)


def alike(a, b):
    """Two parts of profiles; numbers that another compiler's fit gives are within 1 %."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, float) and isinstance(b, (int, float)):
        return math.isclose(a, b, rel_tol=0.01, abs_tol=1e-3)
    return a == b


def kept_profile(folder, runs_file, write):
    """Whether the profile beside the runs is that of the folder; with write it is made so."""
    kept = os.path.dirname(runs_file)
    if write:
        for file in PROFILE_FILES:
            shutil.copy(os.path.join(folder, file), kept)
    return all(alike(*(json.load(open(os.path.join(place, file), encoding="utf-8")) for place in (folder, kept)))
               for file in PROFILE_FILES)


def table(program, name, runs_file, profile, operations, keeps=None):
    """Prints the table of a board; what is wrong with it. keeps: whether its profile is written, or compared."""
    runs, wrong = {}, []
    with open(runs_file, encoding="utf-8") as lines:
        for line in lines:
            step = json.loads(line)
            key = tuple(step[k] for k in ("model", "seq_len", "global_batch", "micro_batch", "attention"))
            runs.setdefault(key, []).append(step)
    with tempfile.TemporaryDirectory() as folder:
        sums = board_sums(program, folder, name, profile, operations)
        print("| model, tokens, batch, micro-batch | attention | tokens/s | step | predicted for this board "
              "| by the others' products | for a cluster's | memory, measured over predicted |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |")
        for key, steps in runs.items():
            step_s = statistics.median(s["step_time_s"] for s in steps[WARM_UP:])
            cluster = estimate(program, folder, steps[0], name)
            gpu_file(folder, name, rate_of(sums, key[0]))
            others = estimate(program, folder, steps[0], "board.json")
            gpu_file(folder, name, rate_of(sums))
            board = estimate(program, folder, steps[0], "board.json")
            if key[4] == "cudnn" and abs(board["step_time_s"] / step_s - 1) > MOST_ERROR_FRAC:
                wrong.append("%s: %s is missed by more than %.0f %%" % (name, key[0], 100 * MOST_ERROR_FRAC))
            print("| %s, %d, %d, %d | %s | %.0f | %.1f ms | %.1f ms, %+.1f %% | %+.1f %% | %+.1f %% | %.4f |"
                  % (*key, key[1] * key[2] / step_s, 1e3 * step_s, 1e3 * board["step_time_s"],
                     100 * (board["step_time_s"] / step_s - 1),
                     100 * (others["step_time_s"] / step_s - 1),
                     100 * (cluster["step_time_s"] / step_s - 1),
                     steps[-1]["memory_peak_bytes"] / board["memory_peak_bytes"]))
        if keeps is not None and not kept_profile(folder, runs_file, keeps):
            wrong.append("%s: its profile is not what its measurements give: --write" % name)
    print()
    return wrong


# Tokens, hidden, queries with keys and values, MLP in and out, vocabulary: of tests/bench/bench_backend.c.
PRODUCTS = {"gpt2-124m": (32768, 768, 2304, 3072, 3072, 50304),
            "gpt2-1.5b": (16384, 1600, 4800, 6400, 6400, 50304),
            "llama-3.2-1b": (16384, 2048, 3072, 16384, 8192, 128256)}


def shapes(model):
    """m, n, k of each product's three parts, as bench_backend names them."""
    tokens, hidden, qkv, mlp_in, mlp_out, vocabulary = PRODUCTS[model]
    for name, n, k in (("qkv", qkv, hidden), ("attention_out", hidden, hidden), ("ffn_in", mlp_in, hidden),
                       ("ffn_out", hidden, mlp_out), ("head", vocabulary, hidden)):
        yield "product %s forward" % name, (tokens, n, k)
        yield "product %s backward_input" % name, (tokens, k, n)
        yield "product %s backward_weight" % name, (n, k, tokens)


def product_sums(program, gpu, operations_file):
    """Milliseconds of each model's products in a step: alone as measured, and as `estimate` has them in short calls."""
    with open(operations_file, encoding="utf-8") as lines:
        measured = {(row["model"], row["op"]): row
                    for row in csv.DictReader(line for line in lines if not line.startswith("#"))}
    named = [(model, *shape) for model in PRODUCTS for shape in shapes(model)]
    asked = "gemm_dtype,m,n,k\n" + "".join("bfloat16,%d,%d,%d\n" % shape for _, _, shape in named)
    answer = subprocess.run([program, "kernel", "--gpu", gpu, "--kind", "gemm", "--json", "-"], input=asked,
                            capture_output=True, text=True, check=True).stdout
    sums = {model: [0, 0] for model in PRODUCTS}
    for (model, op, _), short_s in zip(named, json.loads(answer)["formula_s"]):
        times = int(measured[model, op]["times_per_step"])
        sums[model][0] += times * float(measured[model, op]["median_us"]) * 1e-3
        sums[model][1] += times * short_s * 1e3
    return sums


def main():
    arguments = sys.argv[1:]
    if len(arguments) not in (1, 2, 5) or len(arguments) == 2 and arguments[1] != "--write":
        sys.exit(__doc__)
    program = os.path.abspath(arguments[0])
    if len(arguments) == 5:
        wrong = table(program, *arguments[1:])
    else:
        wrong = [line for board in BOARDS for line in table(program, *board, keeps=len(arguments) == 2)]
    for line in wrong:
        print(line, file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
