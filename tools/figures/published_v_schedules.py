#!/usr/bin/env python3
"""Memory and throughput of the V schedules, predicted and published.

usage: tools/figures/published_v_schedules.py PROGRAM
Qi et al. 2024, "Pipeline Parallelism with Controllable Memory", arXiv:2405.15362: GPT models (table 2) on A100-SXM-80GB,
8 to a node, a pipeline over all of them, sequences of 1,024 tokens; unfused attention and 16 bits, as in Qi et al. 2023
(tools/figures/published_schedules.py). Steps apart for the schedules of the authors' program. ACTIVATIONS and SAMPLES are of the
paper's table 4, as others transcribed it (activations: the range over models and micro-batches); FIGURE_7 is what others
read off that figure, to about half a percent of MFU. NICs are taken as four of 200 Gb/s a node.
"""
import json
import subprocess
import sys

from published_schedules import job

# name: layers, heads, hidden size, GPUs; sequences of a micro-batch in table 4; those and micro-batches in figure 7
MODELS = {
    "9.6B": (30, 40, 5120, 16, 4, 2, 64),
    "21B": (46, 48, 6144, 24, 2, 1, 96),
    "38.5B": (62, 64, 7168, 32, 1, 1, 128),
}
SCHEDULES = ("1f1b", "zb-h1", "zb-v", "v-half", "v-min")
ACTIVATIONS = {"1f1b": (35, 56), "zb-h1": (36, 48), "zb-v": (35, 56), "v-half": (19, 28), "v-min": (14, 19)}  # GB
FIGURE_7 = {  # MFU in percent
    "9.6B": (43.5, 48.5, 51, 46.5, 40.5),
    "21B": (42, 47.5, 50, 45.5, 40.5),
    "38.5B": (43, 47.5, 51.5, 46.5, 41),
}
TABLE_4 = (47.1, None, 53.2, 51.8, 43.7)  # MFU in percent of 38.5B, 512 micro-batches


def scenario(name, schedule, micro_batch, num_microbatches):
    layers, heads, hidden, gpus = MODELS[name][:4]
    training = {"seq_len": 1024, "global_batch": micro_batch * num_microbatches, "precision": "fp16",
                "stack": "megatron-2022", "attention": "unfused"}
    if schedule != "1f1b":
        training["optimizer_post_validation"] = True
    return {
        **job(layers, heads, hidden, gpus),
        "training": training,
        "parallel": {"pp": gpus, "schedule": schedule, "micro_batch": micro_batch, "zero_stage": 0,
                     **({"vpp": 2} if "v" in schedule else {})},
    }


def predicted(program, *job):
    """MFU in percent, GB of activations, GB of all that is live."""
    done = subprocess.run([program, "estimate", "--json", "-"], input=json.dumps(scenario(*job)), capture_output=True,
                          text=True)
    if not done.stdout:
        sys.exit(done.stderr)
    answer = json.loads(done.stdout)
    return 100 * answer["mfu_frac"], answer["memory_bytes"]["activations"] / 1e9, answer["memory_peak_bytes"] / 1e9


def mfu_row(label, answers, published):
    cells = []
    for i, answer in enumerate(answers):
        text = "%.1f %%" % answer[0] if published[i] is None else "%.1f (%.1f) %%" % (answer[0], published[i])
        if i:
            text += " %+.1f" % (100 * (answer[0] / answers[0][0] - 1))
            text += " %" if published[i] is None else " (%+.1f) %%" % (100 * (published[i] / published[0] - 1))
        cells.append("%-*s" % (17 if i == 0 else 33, text))
    print(("%-11s " % label + "".join(cells)).rstrip())


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = sys.argv[1]
    print("GB of activations on the worst rank, and of them over 1f1b's: predicted (closed form); GB of all that is live")
    print("%-11s " % "" + "".join("%-27s" % s for s in SCHEDULES).rstrip())
    of_models = []
    for name, (_, _, _, pp, micro_batch, _, _) in MODELS.items():
        answers = [predicted(program, name, s, micro_batch, 4 * pp) for s in SCHEDULES]
        of_models.append(answers)
        closed = (1, 1, 1, (pp + 2) // 2 / pp, (pp + 4) // 3 / pp)
        cells = ["%.1f  %.2f (%.2f)  %.1f" % (a[1], a[1] / answers[0][1], closed[i], a[2])
                 for i, a in enumerate(answers)]
        print(("%-11s " % name + "".join("%-27s" % c for c in cells)).rstrip())
    cells = ["%.0f to %.0f (%d to %d)" % (min(a[i][1] for a in of_models), max(a[i][1] for a in of_models),
                                          *ACTIVATIONS[s]) for i, s in enumerate(SCHEDULES)]
    print(("%-11s " % "(table 4)" + "".join("%-27s" % c for c in cells)).rstrip())
    print("MFU, and gain over 1f1b: predicted (figure 7; last line table 4)")
    for name, model in MODELS.items():
        mfu_row(name, [predicted(program, name, s, model[5], model[6]) for s in SCHEDULES], FIGURE_7[name])
    mfu_row("38.5B, 512", [predicted(program, "38.5B", s, 1, 512) for s in SCHEDULES], TABLE_4)


if __name__ == "__main__":
    main()
