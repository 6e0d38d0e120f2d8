# Compares every instruction of every GPU of a folded simulation with the unfolded one (sim_folds.sh,
# sim_likeness.sh) and prints whether it contends, how it is folded, ranks a lane stands for, lanes, and
# GPUs a stage.
# Arguments: answer and times of the folded, then of the unfolded simulation.
import json
import struct
import sys


def load(answer_path, times_path):
    answer = json.load(open(answer_path))
    times = struct.iter_unpack("dd", open(times_path, "rb").read())
    lanes = range(answer["num_lanes"])
    return answer, [[[next(times) for _ in range(count)] for _ in lanes]
                    for count in answer["num_instructions"]]


folded, folded_times = load(*sys.argv[1:3])
whole, whole_times = load(*sys.argv[3:5])
allowed_s = 1e-7 * whole["step_time_s"]
lane_of = folded.get("lane_of") or [block % folded["num_lanes"] for block in
                                    range(whole["num_lanes"] // folded["num_folded"])]
assert folded["folding"] == "full" and whole["folding"] == "none"
assert folded["num_lanes"] * folded["num_folded"] < whole["num_lanes"]
assert abs(folded["step_time_s"] - whole["step_time_s"]) < allowed_s
for stage, lanes in enumerate(whole_times):
    for replica, instructions in enumerate(lanes):
        lane = lane_of[replica // folded["num_folded"]]
        for i, times in enumerate(instructions):
            others = folded_times[stage][lane][i]
            off_s = max(abs(a - b) for a, b in zip(times, others))
            assert off_s < allowed_s, f"stage {stage} replica {replica} instruction {i}: {off_s} s"
print(whole["contended"], "sorted" if "lane_of" in folded else "turned", folded["num_folded"], folded["num_lanes"], len(whole_times[0]))
