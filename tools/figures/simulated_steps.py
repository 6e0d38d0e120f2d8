#!/usr/bin/env python3
"""Published steps of several nodes: error of the simulator beside that of the estimate.

usage: tools/figures/simulated_steps.py PROGRAM CASES.jsonl    (cases as `meshwright validate --data` takes them)
Only cases whose source states every setting. Prints the mean absolute error of each family, and the steps that the
simulator misses by half a point more than the estimate does.
"""
import collections
import json
import os
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor


def crosses_nodes(case):
    cluster = case["scenario"]["cluster"]
    return case["gate"] and isinstance(cluster, dict) and cluster["num_gpus"] > cluster.get("gpus_per_node", 8)


def errors(program, case):
    """(simulated, estimated) relative errors, or what the program says instead."""
    ran = subprocess.run([program, "simulate", "-", "--json"], input=json.dumps(case["scenario"]), capture_output=True,
                         text=True)
    if ran.returncode not in (0, 1) or not ran.stdout:
        return ran.stderr.strip()
    answer = json.loads(ran.stdout)
    measured_s = case["truth"]["step_time_s"]
    return tuple(answer[key] / measured_s - 1 for key in ("step_time_s", "estimate_step_time_s"))


def mean(values):
    return 100 * statistics.mean(abs(value) for value in values)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[2]) as file:
        cases = [case for case in map(json.loads, file) if crosses_nodes(case)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda case: errors(sys.argv[1], case), cases))
    families, worse = collections.defaultdict(list), []
    for case, result in zip(cases, results):
        if isinstance(result, str):
            sys.exit(f"{case['id']}: {result}")
        families[case["family"]].append(result)
        if abs(result[0]) > abs(result[1]) + 0.005:
            worse.append("%s: simulated %+.1f %%, estimated %+.1f %%" % (case["id"], *(100 * e for e in result)))
    print("family                  steps  simulated  estimated")
    for family, pairs in sorted(families.items()) + [("all", [r for pairs in families.values() for r in pairs])]:
        print("%-22s %6d %8.2f %% %8.2f %%" % (family, len(pairs), *(mean(pair[i] for pair in pairs) for i in (0, 1))))
    print("\n".join(worse))


if __name__ == "__main__":
    main()
