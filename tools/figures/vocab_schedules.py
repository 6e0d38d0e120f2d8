#!/usr/bin/env python3
"""Every schedule with embedding and head on their stages, and spread over all of them.

usage: tools/figures/vocab_schedules.py PROGRAM
Llama 3.1 8B (vocabulary 128,256) as a pipeline of eight H100, 64 micro-batches of one sequence of 4,096 tokens. Writes
a table: step, its bubble and the memory of the worst GPU, estimated; and by how much the simulated step differs.
"""
import json
import subprocess
import sys

SCHEDULES = (("gpipe", 1), ("1f1b", 1), ("interleaved", 2), ("interleaved", 4), ("breadth-first", 2), ("zb-h1", 1),
             ("zb-h2", 1), ("zb-v", 2), ("v-half", 2), ("v-min", 2), ("dualpipe", 2))


def answer(program, command, parallel):
    scenario = {"schema": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100:1",
                "training": {"seq_len": 4096, "global_batch": 64, "precision": "bf16"},
                "parallel": {"pp": 8, **parallel}}
    done = subprocess.run([program, command, "--json", "-"], input=json.dumps(scenario), capture_output=True,
                          text=True)
    if not done.stdout:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def main(program):
    print("| schedule | on their stages | one barrier | two barriers | simulated |")
    print("| --- | --- | --- | --- | --- |")
    for schedule, vpp in SCHEDULES:
        cells, most = [], 0
        for spread in ({}, {"vocab_parallel": True}, {"vocab_parallel": True, "vocab_barriers": 2}):
            parallel = {"schedule": schedule, "vpp": vpp, **spread}
            estimate = answer(program, "estimate", parallel)
            simulated_s = answer(program, "simulate", parallel)["step_time_s"]
            most = max(most, simulated_s / estimate["step_time_s"] - 1, key=abs)
            cells.append(f"{estimate['step_time_s']:.2f} s, {estimate['breakdown_s']['bubble']:.2f} s, "
                         f"{estimate['memory_peak_bytes'] / 1e9:.1f} GB")
        print(f"| {schedule}{f' x {vpp}' if vpp > 1 else ''} | {' | '.join(cells)} | {100 * most:+.2f} % |")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
