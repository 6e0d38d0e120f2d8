"""Draws scenarios over all presets, clusters and constraints, plans them, and writes launches.

    sample.py --program build/meshwright --for megatron --count 2000 --seed 1 -o launches.jsonl

Half of the launches are the best plans of a scenario with a few constraints (`plan`, then `launch`
of each); half are configurations drawn whole and launched as given, which reaches corners that no
best plan is in. One line of the output is one launch: the scenario with its complete `parallel`
and, as a program under `torchrun` would see them, its arguments, its environment and its files.
At the end it says what was drawn and what meshwright itself refused, with its reasons.
"""
import argparse
import collections
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile

STACKS = {"megatron": "megatron-core", "nemo": "megatron-core", "torchtitan": "torchtitan",
          "deepspeed": "megatron-2021"}
TITAN_MODELS = ["llama-3-8b", "llama-3.1-8b", "llama-3-70b", "llama-3.1-70b", "llama-3.1-405b",
                "deepseek-v2-lite", "deepseek-v2", "deepseek-v3"]
SEQ_LENS = [1000, 1024, 2048, 4096, 4096, 8192, 8192, 16384, 32768, 131072]
GIVES_UP = 10  # refusals of a model, without one launch, after which it is drawn no more
LINE_S = 60  # longest time that one run of the program may take

CAPTURE = """#!/bin/sh
printf '%s\\0' "$@" >"$CAPTURE/argv"
env -0 >"$CAPTURE/env"
"""
KEPT_ENV = re.compile(r"^(CUDA_|PYTORCH_|TORCH_|NCCL_|NVTE_|TE_|HF_|UCX_|CUDNN_)")


class Program:
    """The meshwright that is tried."""

    def __init__(self, path):
        self.path = os.path.abspath(path)

    def run(self, scenario, *args):
        """(exit code, parsed answer or None, last line of the messages)"""
        try:
            done = subprocess.run([self.path, args[0], "-", *args[1:]], input=json.dumps(scenario),
                                  capture_output=True, text=True, timeout=LINE_S, check=False)
        except subprocess.TimeoutExpired:
            return 124, None, "took too long"
        answer = None
        if done.returncode in (0, 1) and done.stdout.strip():
            answer = json.loads(done.stdout)
        lines = done.stderr.strip().splitlines()
        return done.returncode, answer, lines[-1] if lines else ""

    def rows(self, command):
        done = subprocess.run([self.path, command, "--json"], capture_output=True, text=True,
                              check=True)
        return json.loads(done.stdout)[command]


def pick(rng, *weighted):
    """One of (weight, value)."""
    return rng.choices([v for _, v in weighted], [w for w, _ in weighted])[0]


def precisions_of(target, gpu):
    """What is worth drawing; meshwright refuses what the GPU lacks anyway."""
    if target == "deepspeed":
        return ((6, "bf16"), (3, "fp16"))
    if gpu.startswith("v100"):
        return ((1, "fp16"),)
    if target == "torchtitan":
        return ((6, "bf16"), (3, "fp8"), (1, "mxfp8"))
    if gpu.startswith(("a100", "a800", "mi250")):
        return ((8, "bf16"), (2, "fp16"))
    if gpu.startswith(("b200", "b300", "gb")):
        return ((8, "bf16"), (2, "fp16"), (4, "fp8"), (4, "mxfp8"), (4, "nvfp4"))
    return ((8, "bf16"), (2, "fp16"), (8, "fp8"))


def draw_training(rng, target, gpu):
    seq_len = rng.choice(SEQ_LENS)
    training = {"seq_len": seq_len, "stack": STACKS[target],
                "global_batch": rng.choice([8, 16, 32, 64, 96, 128, 256, 512, 1024, 2048])}
    training["precision"] = pick(rng, *precisions_of(target, gpu))
    if training["precision"] == "fp8" and rng.random() < 0.7:
        recipes = {"torchtitan": ["tensorwise", "rowwise"]}
        training["fp8_recipe"] = rng.choice(
            recipes.get(target, ["delayed", "current", "tensorwise", "block"]))
    options = [
        (0.15, "optimizer", ["sgd", "muon", "adam"]),
        (0.15, "optimizer_dtype", ["bf16", "fp32"]),
        (0.25, "grad_reduce_dtype", ["bf16", "fp32"]),
        (0.15, "attention", ["unfused", "flash"]),
        (0.2, "overlap_grad_reduce", [True, False]),
        (0.2, "overlap_param_gather", [True, False]),
        (0.2, "tp_comm_overlap", [True, False]),
        (0.3, "ep_overlap", [True, False]),
        (0.2, "cross_entropy_fused", [True, False]),
        (0.3, "cuda_graphs", ["none", "full", "layer", "attn", "attn,moe_router",
                              "attn,moe_router,moe_preprocess"]),
        (0.4, "moe_dispatcher", ["alltoall", "allgather", "deepep", "hybridep"]),
        (0.15, "capacity_factor", [1.0, 1.25]),
        (0.05, "causal", [False]),
        (0.4 if target == "torchtitan" else 0.05, "compile", [True, False]),
    ]
    for chance, key, values in options:
        if rng.random() < chance:
            training[key] = rng.choice(values)
    return training


def draw_some(rng, parallel, options):
    for chance, key, values in options:
        if rng.random() < chance:
            parallel[key] = rng.choice(values)


MODULES = ["core_attn", "mla_up_proj", "layernorm", "mlp", "moe", "moe_act", "shared_experts"]


def draw_habits(rng, parallel):
    """What a plan may have besides its degrees."""
    draw_some(rng, parallel, [
        (0.5, "recompute", ["none", "selective", "full"]),
        (0.3, "zero_stage", [0, 1, 2, 3]),
        (0.25, "cp_method", ["ring", "ulysses", "all-gather"]),
        (0.1, "order", ["tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"]),
        (0.15, "sequence_parallel", [True, False]),
        (0.1, "reshard_after_forward", [True, False]),
    ])
    if parallel.get("recompute") == "selective" and rng.random() < 0.5:
        parallel["recompute_modules"] = rng.sample(MODULES, rng.randint(1, 3))
    if parallel.get("recompute") == "full" and rng.random() < 0.3:
        parallel["recompute_layers"] = rng.randint(1, 4)


def draw_constraints(rng, target, experts):
    """A few degrees that `plan` has to keep."""
    parallel = {}
    draw_some(rng, parallel, [
        (0.3, "tp", [1, 2, 4, 8]), (0.3, "pp", [1, 2, 3, 4, 6, 8, 16]),
        (0.3, "cp", [1, 2, 4, 8, 16]), (0.4 if experts else 0.02, "ep", [1, 2, 4, 8, 16]),
        (0.1 if experts else 0.02, "etp", [1, 2]), (0.2, "vpp", [1, 2, 3, 4]), (0.2, "micro_batch", [1, 2, 4]),
    ])
    if rng.random() < 0.6:
        draw_habits(rng, parallel)
    if target == "torchtitan" and rng.random() < 0.3:
        parallel["schedule"] = rng.choice(["gpipe", "1f1b", "interleaved", "zb-v", "breadth-first"])
    return parallel


def draw_whole(rng, target, num_gpus, training, experts):
    """A configuration in full: degrees whose product is the cluster, and a batch they divide."""
    parallel, left = {}, num_gpus
    for key, values in (("tp", [1, 1, 2, 4, 8]), ("pp", [1, 1, 2, 2, 3, 4, 5, 8, 16]),
                        ("cp", [1, 1, 1, 2, 4, 8, 16])):
        value = rng.choice([v for v in values if left % v == 0])
        parallel[key], left = value, left // value
    parallel["dp"] = left
    if rng.random() < (0.8 if experts else 0.02):
        parallel["ep"] = rng.choice([1, 2, 4, 8, 16, 32])
    if rng.random() < (0.3 if experts else 0.02):
        parallel["etp"] = rng.choice([1, 2, 4])
    if parallel["pp"] > 1 and rng.random() < (0.05 if target == "deepspeed" else 0.5):
        parallel["vpp"] = rng.choice([1, 2, 2, 3, 4, 5])
    parallel["micro_batch"] = rng.choice([1, 1, 2, 3, 4])
    draw_habits(rng, parallel)
    if target == "torchtitan" and rng.random() < 0.4:
        parallel["schedule"] = rng.choice(["gpipe", "1f1b", "interleaved", "zb-v", "breadth-first"])
    wave = left * parallel["micro_batch"]
    if rng.random() < 0.95:
        training["global_batch"] = wave * rng.choice([1, 2, 3, 4, 5, 8, 16, 24, 32])
    return parallel


def draw(rng, target, models, clusters, whole):
    cluster, model = rng.choice(clusters), rng.choice(models)
    per_node, name = cluster["gpus_per_node"], cluster["name"]
    nodes = rng.choice([1, 1, 2, 2, 3, 4, 4, 6, 8, 16, 32, 64]) if per_node < 72 else \
        rng.choice([1, 1, 2, 4])
    training = draw_training(rng, target, cluster["gpu"])
    experts = model["active_parameters"] < model["num_parameters"]
    parallel = draw_whole(rng, target, per_node * nodes, training, experts) if whole else \
        draw_constraints(rng, target, experts)
    return {"schema": 1, "model": model["name"], "cluster": f"{name}:{nodes}",
            "training": training, "parallel": parallel}, cluster["gpu"], per_node * nodes


class Capture:
    """Runs start scripts with a torchrun that only writes down what it was given."""

    def __init__(self, folder):
        self.folder = folder
        path = os.path.join(folder, "torchrun")
        with open(path, "w", encoding="utf-8") as file:
            file.write(CAPTURE)
        os.chmod(path, 0o755)

    def run(self, files):
        for file in files:
            with open(os.path.join(self.folder, file["name"]), "w", encoding="utf-8") as out:
                out.write(file["text"])
        env = {"PATH": self.folder + ":" + os.environ["PATH"], "CAPTURE": self.folder,
               "NODE_RANK": "0", "MASTER_ADDR": "localhost", "MEGATRON_PATH": "/checkout",
               "MEGATRON_DEEPSPEED_PATH": "/checkout", "DATA_PATH": "/data/text",
               "TOKENIZER_MODEL": "/data/tokenizer", "TOKENIZER_PATH": "/data/tokenizer"}
        if "--mock-data" in files[0]["text"]:
            del env["DATA_PATH"]
        done = subprocess.run(["bash", os.path.join(self.folder, files[0]["name"])], env=env,
                              cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit("a start script of ours failed: " + done.stderr)
        argv, env = ([part for part in self.read(name).split("\0") if part or name == "argv"]
                     for name in ("argv", "env"))
        return argv[:-1], dict(line.split("=", 1) for line in env if KEPT_ENV.match(line))

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()


def launch(program, capture, scenario, target):
    """(launch, None) or (None, reason)"""
    code, answer, message = program.run(scenario, "launch", "--for", target, "--dry-run", "--json",
                                        "--force")
    if code != 0:
        return None, message
    argv, env = capture.run(answer["files"])
    files = {file["name"]: file["text"] for file in answer["files"][1:]}
    return {"target": target, "scenario": scenario, "argv": argv, "env": env, "files": files}, None


def ranks_of(made):
    """Ranks that torchrun starts: a plan may leave GPUs of the cluster idle."""
    def count(option):
        words = made["argv"]
        return int(words[words.index(option) + 1]) if option in words else 0
    return count("--nnodes") * count("--nproc-per-node")


def reason_of(message):
    """A refusal with its numbers and names taken out, to count by."""
    message = re.sub(r"^-: |^<stdin>: |^standard input: ", "", message)
    return re.sub(r"\d[\d.,]*", "N", message)[:110]


class Models:
    """What is drawn from: models that the target refuses whatever the plan leave it."""

    def __init__(self, models):
        self.models, self.refusals = models, collections.Counter()

    def launched(self, name):
        self.refusals[name] = -math.inf

    def refused(self, name, reason):
        if not re.match(r"(-: |<stdin>: |standard input: )?model", reason):
            return
        self.refusals[name] += 1
        if self.refusals[name] >= GIVES_UP:
            self.models = [model for model in self.models if model["name"] != name]


def plans_of(program, scenario, top):
    code, answer, message = program.run(scenario, "plan", "--json", "--top", str(top))
    if code != 0 or not answer:
        return [], message or "nothing fits"
    other = answer.get("stack", {})
    if other.get("planned_for", scenario["training"]["stack"]) != scenario["training"]["stack"]:
        return [], "model: " + other["reason"]
    made = [dict(scenario, parallel=plan["parallel"]) for plan in answer["plans"]]
    return made, None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--for", dest="target", required=True, choices=sorted(STACKS))
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--top", type=int, default=4)
    parser.add_argument("-o", "--output", required=True)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    program = Program(options.program)
    models, clusters = program.rows("models"), program.rows("clusters")
    if options.target == "torchtitan":
        models = [model for model in models if model["name"] in TITAN_MODELS]
    models = Models(models)
    refused, made, drawn, seen = collections.Counter(), collections.Counter(), 0, set()
    with tempfile.TemporaryDirectory() as folder, \
            open(options.output, "w", encoding="utf-8") as out:
        capture = Capture(folder)
        while sum(made.values()) < options.count:
            whole = made["given"] < made["planned"]
            kind = "given" if whole else "planned"
            scenario, gpu, num_gpus = draw(rng, options.target, models.models, clusters, whole)
            drawn += 1
            found, reason = ([scenario], None) if whole else \
                plans_of(program, scenario, options.top)
            if reason:
                refused[reason_of(reason)] += 1
                models.refused(scenario["model"], reason)
            for one in found:
                text = json.dumps(one, sort_keys=True)
                if text in seen:
                    continue
                seen.add(text)
                ready, reason = launch(program, capture, one, options.target)
                if not ready:
                    refused["launch: " + reason_of(reason)] += 1
                    models.refused(one["model"], reason)
                    continue
                made[kind] += 1
                models.launched(one["model"])
                ready.update(kind=kind, gpu=gpu, num_gpus=ranks_of(ready) or num_gpus)
                out.write(json.dumps(ready) + "\n")
    print(f"seed {options.seed}, for {options.target}: {drawn} scenarios drawn, "
          f"{sum(made.values())} launches ({made['planned']} of plans, {made['given']} as given), "
          f"{sum(refused.values())} refused by meshwright:")
    for reason, number in refused.most_common():
        print(f"{number:6} {reason}")


if __name__ == "__main__":
    sys.exit(main())
