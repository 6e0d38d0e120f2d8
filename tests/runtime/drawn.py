#!/usr/bin/env python3
"""Runs plans drawn at random: what their processes send is to the byte what the Program says, and
what each holds at its peak within 0.6 %. In a pipeline two messages more may be held, where the
receiver is late.

usage: drawn.py RUN [COUNT [SEED]]
COUNT plans that the runtime takes: 200 with MESHWRIGHT_TEST_FULL, else six of these, which
MESHWRIGHT_TEST_SEED says. Prints them, the one that is furthest off last.
Exit status 0 where all are as said, 77 without mpirun.
"""
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

MODELS = {
    "llama": {"model_type": "llama"},
    "gpt2": {"model_type": "gpt2", "n_positions": 256},
    "qwen3": {"model_type": "qwen3", "head_dim": 32},
    "mixtral": {"model_type": "mixtral", "num_local_experts": 8},
    "qwen3_moe": {"model_type": "qwen3_moe", "head_dim": 32, "num_experts": 8,
                  "num_experts_per_tok": 2, "moe_intermediate_size": 512},
}
EXPERTS = ("mixtral", "qwen3_moe")
TWO_CHUNKS = ("interleaved", "breadth-first", "zb-v", "v-half", "v-min")
SCHEDULES = ("1f1b", "gpipe", "zb-h1", "zb-h2", "dualpipe") + TWO_CHUNKS
SEQ_LEN, HIDDEN = 256, 256
BAND = 0.006
ALL, SAMPLE = 200, 6
MOST_REFUSED = 50  # for each plan that runs


def cluster(ranks):
    script = pathlib.Path(__file__).with_name("cluster.sh")
    done = subprocess.run(["sh", "-c", '. "$0"; cluster "$1"', script, str(ranks)],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def divisors(of, most):
    return [n for n in (1, 2, 4, 8) if of % n == 0 and n <= most]


def draw_parallel(rng, model, ranks):
    plan = {"micro_batch": rng.choice([1, 1, 2])}
    left = ranks
    for dimension in ("tp", "cp", "pp"):
        plan[dimension] = rng.choice(divisors(left, 4))
        left //= plan[dimension]
    plan["dp"] = left
    if plan["tp"] > 1 and model in ("llama", "gpt2"):
        plan["sequence_parallel"] = rng.random() < 0.75
    if plan["cp"] > 1:
        plan["cp_method"] = rng.choice(["ring", "all-gather", "ulysses"])
    plan["recompute"] = rng.choice(["none", "none", "selective", "full"])
    plan["zero_stage"] = rng.choice([0, 1, 1, 2, 3])
    if model in EXPERTS:
        shared = plan["tp"] * plan["cp"] * left
        plan["ep"] = rng.choice(divisors(shared, 8))
        plan["etp"] = rng.choice(divisors(shared // plan["ep"], 2))
    if plan["pp"] > 1:
        plan["schedule"] = rng.choice(SCHEDULES)
        if plan["schedule"] in TWO_CHUNKS:
            plan["vpp"] = 2
    return plan


def draw(rng):
    ranks = rng.choice([2, 4, 4, 8])
    name = rng.choice(list(MODELS))
    parallel = draw_parallel(rng, name, ranks)
    layers = max(4, parallel["pp"] * parallel.get("vpp", 1))
    model = dict(MODELS[name], name=name, hidden_size=HIDDEN, num_hidden_layers=layers,
                 num_attention_heads=8, num_key_value_heads=4, intermediate_size=512,
                 vocab_size=512, tie_word_embeddings=name == "gpt2" or rng.random() < 0.3)
    return ranks, {
        "schema": 1, "model": model, "cluster": cluster(ranks),
        "training": {"seq_len": SEQ_LEN, "global_batch": 16, "precision": "fp32",
                     "stack": "runtime"},
        "parallel": parallel,
    }


def message_bytes(parallel):
    tokens = parallel["micro_batch"] * SEQ_LEN / parallel["cp"]
    split = parallel["tp"] if parallel.get("sequence_parallel", True) else 1
    return 4 * HIDDEN * tokens / split


def run(program, ranks, folder):
    """The log's last line and what was printed; None where the runtime refuses the plan."""
    log = folder / "log"
    log.unlink(missing_ok=True)
    done = subprocess.run(
        ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), program, "plan.json",
         "--steps", "1", "--routing", "balanced", "--log", "log"],
        cwd=folder, capture_output=True, text=True, env=dict(os.environ, OPENBLAS_NUM_THREADS="1"))
    if done.returncode == 0:
        return log.read_text(), done.stdout
    refusal = re.search(r"^plan\.json: .*", done.stderr + done.stdout, re.M)
    if not refusal:
        sys.exit(f"drawn.py: {(folder / 'plan.json').read_text()}\n{done.stderr[-2000:]}")
    return None


def check(scenario, log, printed):
    """How far the memory is off, and the sentence of what is wrong, if anything."""
    off = abs(float(re.findall(r'"memory_off_frac": ([-+.e0-9]+)', log)[-1]))
    peak, said = map(int, re.findall(
        r'"memory_peak_bytes": (\d+), "program_peak_bytes": (\d+)', log)[-1])
    parallel = scenario["parallel"]
    late = 2 * message_bytes(parallel) / said if parallel["pp"] > 1 and peak > said else 0
    sent = re.findall(r"a collective of any process is off: (\d+) bytes", printed)
    if sent not in ([], ["0"]):
        return off, f"a collective sends {sent[0]} bytes more or less than the Program says"
    if off > BAND + late:
        return off, f"a process holds {off:.2%} more or less than the Program says"
    return off, None


def main():
    if shutil.which("mpirun") is None:
        sys.exit(77)
    program = os.path.abspath(sys.argv[1])
    count, left_out = ALL, 0
    if "MESHWRIGHT_TEST_FULL" not in os.environ:
        count = SAMPLE
        left_out = int(os.environ.get("MESHWRIGHT_TEST_SEED", 0)) % (ALL // SAMPLE) * SAMPLE
    if len(sys.argv) > 2:
        count, left_out = int(sys.argv[2]), 0
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    for _ in range(left_out):
        draw(rng)
    furthest, wrong, refused = (-1.0, ""), 0, 0
    most_refused = MOST_REFUSED * count
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        while count > 0:
            ranks, scenario = draw(rng)
            (folder / "plan.json").write_text(json.dumps(scenario))
            ran = run(program, ranks, folder)
            if ran is None:
                refused += 1
                if refused > most_refused:
                    sys.exit("drawn.py: the runtime refuses nearly all plans")
                continue
            count -= 1
            off, sentence = check(scenario, *ran)
            line = f"{off:.4f} {scenario['model']['name']} {json.dumps(scenario['parallel'])}"
            print(line, flush=True)
            furthest = max(furthest, (off, line))
            if sentence:
                wrong += 1
                print(f"drawn.py: {sentence}", flush=True)
    print(f"furthest off: {furthest[1]}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
