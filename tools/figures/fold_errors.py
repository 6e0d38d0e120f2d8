#!/usr/bin/env python3
"""What the approximate fold of a simulation misses, on jobs that can be played unfolded as well.

Each job is played with every GPU (--fold none) and with the coarsest approximation there is (--fold
approximate; --fold auto takes a finer one where that is done in seconds). The step's error is that of its
time, the instruction's the most by which any instruction of any GPU begins or ends at another time, over
the step.

With --large: steps of jobs of 100,000 GPUs and more, which an exact fold (--fold full) plays in the place of
every GPU.

usage: tools/figures/fold_errors.py MESHWRIGHT_SIM [--jobs | --large]    (with --jobs a line for each)
"""

import json
import statistics
import struct
import subprocess
import sys
import tempfile

NETWORKS = {"rails, 2:1": {"topology": "rail-fat-tree", "oversubscription": 2},
            "rails, 4:1": {"topology": "rail-fat-tree", "oversubscription": 4},
            "fat tree, 2:1": {"topology": "fat-tree", "oversubscription": 2},
            "fat tree, 4:1": {"topology": "fat-tree", "oversubscription": 4},
            "dragonfly, 2:1": {"topology": "dragonfly", "oversubscription": 2},
            "2 NICs a node, 2:1": {"nics_per_node": 2, "nic_bytes_per_s": 2e11,
                                   "topology": "fat-tree", "oversubscription": 2}}
# Model, nodes of 8 GPUs, plan: stages that fill no leaves.
JOBS = [("llama-3.1-8b", 50, {"tp": 8, "pp": 2}),
        ("llama-3.1-8b", 90, {"tp": 4, "pp": 4}),
        ("llama-3.1-8b", 60, {"tp": 8, "cp": 2, "pp": 2}),
        ("llama-3.1-8b", 54, {"tp": 1, "pp": 4}),
        ("llama-3.1-8b", 45, {"tp": 2, "zero_stage": 3}),
        ("mixtral-8x7b", 54, {"tp": 2, "ep": 4, "pp": 2}),
        ("llama-3.1-70b", 90, {"tp": 8, "pp": 5, "vpp": 2}),
        ("llama-3.1-70b", 270, {"tp": 4, "pp": 10, "vpp": 4}),
        ("llama-3.1-70b", 200, {"tp": 8, "pp": 8})]
LARGE_NETWORKS = ["rails, 2:1", "fat tree, 2:1", "fat tree, 4:1"]
LARGE = [("deepseek-v3", 15360, {"tp": 2, "pp": 10, "vpp": 3, "ep": 64, "zero_stage": 1, "recompute": "full"}),
         ("llama-3.1-405b", 16384, {"tp": 8, "cp": 2, "pp": 8, "vpp": 16, "zero_stage": 1, "zero_group": 64})]


def scenario(model, nodes, network, parallel, seq_len=4096):
    gpus = 8 * nodes
    replicas = gpus // (parallel["tp"] * parallel.get("pp", 1) * parallel.get("cp", 1))
    scale_out = {"nics_per_node": 8, "nic_bytes_per_s": 5e10, **network}
    return {"schema": 1, "model": model, "parallel": {"micro_batch": 1, **parallel},
            "cluster": {"gpu": "h100-sxm-80g", "num_gpus": gpus, "gpus_per_node": 8,
                        "scale_up": {"link": "nvlink4"}, "scale_out": scale_out},
            "training": {"seq_len": seq_len, "precision": "bf16",
                         "global_batch": replicas * 2 * max(2, parallel.get("pp", 1))}}


def play(program, job, fold):
    """The answer, and of each stage and lane the times of its instructions; None where it is refused."""
    with tempfile.NamedTemporaryFile() as times:
        run = subprocess.run(["sh", "-c", 'exec "$1" --fold "$2" --all-times 3>"$3"', "sh", program, fold,
                              times.name], input=json.dumps(job).encode(), capture_output=True)
        if run.returncode == 2 and b"is not possible" in run.stderr:
            return None
        run.check_returncode()
        values = struct.iter_unpack("dd", times.read())
    answer = json.loads(run.stdout)
    return answer, [[[next(values) for _ in range(count)] for _ in range(answer["num_lanes"])]
                    for count in answer["num_instructions"]]


class Errors:
    """Of a folded simulation: lanes, replicas, and errors as fractions of the step."""

    def __init__(self, folded, times, whole, whole_times):
        step_s = whole["step_time_s"]
        per_lane = folded["num_folded"]
        lane_of = folded.get("lane_of") or [block % folded["num_lanes"]
                                            for block in range(whole["num_lanes"] // per_lane)]
        self.lanes, self.replicas = folded["num_lanes"], len(lane_of)
        self.step = folded["step_time_s"] / step_s - 1
        self.instruction = max(
            abs(a - b) / step_s
            for stage, replicas in enumerate(whole_times) for replica, instructions in enumerate(replicas)
            for own, other in zip(instructions, times[stage][lane_of[replica // per_lane]])
            for a, b in zip(own, other))


def measure(program, job):
    """None where no approximation leaves out half of the replicas, or an exact fold as much as it."""
    folded = play(program, job, "approximate")
    if not folded or folded[0]["folding"] != "approximate":
        return None
    return Errors(*folded, *play(program, job, "none"))


def print_large(program):
    print("| job | network | exact | approximate | error |")
    print("| --- | --- | --- | --- | --- |")
    for model, nodes, parallel in LARGE:
        for title in LARGE_NETWORKS:
            job = scenario(model, nodes, NETWORKS[title], parallel, 8192)
            exact, rough = (play(program, job, fold)[0] for fold in ("full", "approximate"))
            print("| %s on %s | %s | %.3f s, %d lanes | %.3f s, %d | %+.2f %% |" % (
                model, format(8 * nodes, ","), title, exact["step_time_s"], exact["num_lanes"],
                rough["step_time_s"], rough["num_lanes"],
                100 * (rough["step_time_s"] / exact["step_time_s"] - 1)), flush=True)


def main():
    program, shows_jobs = sys.argv[1], "--jobs" in sys.argv[2:]
    if "--large" in sys.argv[2:]:
        return print_large(program)
    print("| network | jobs folded | step, median | step, most | instruction, most |")
    print("| --- | --- | --- | --- | --- |")
    for title, network in NETWORKS.items():
        found = []
        for model, nodes, parallel in JOBS:
            error = measure(program, scenario(model, nodes, network, parallel))
            if error:
                found.append(error)
            if error and shows_jobs:
                print("%s, %s on %d nodes, %s: %d of %d, step %+.3f %%, instruction %.3f %%"
                      % (title, model, nodes, parallel, error.lanes, error.replicas, 100 * error.step,
                         100 * error.instruction), flush=True)
        steps = [100 * abs(error.step) for error in found]
        print("| %s | %d | %.2f %% | %.2f %% | %.2f %% |" % (
            title, len(found), statistics.median(steps), max(steps),
            100 * max(error.instruction for error in found)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
