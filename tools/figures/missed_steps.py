#!/usr/bin/env python3
"""Where the steps of simumax-b200 lose their time, by kernels timed on that very machine.

MooreThreads/SimuMax publishes, beside the steps, the rates of single products on the same eight B200
(configs/system/b200_bf16_ceperm.json: share of 2,250 TFLOP/s; forward, input gradient, weight gradient
summed in fp32). The first table sets them beside what short tests of another B200 reach (our kernel
profile). The second prices the steps once more with the products at that rate and sets what remains
beside the measured time of one micro-batch: the difference of 32 and 8 micro-batches over 24, in which
what a step does once cancels. The third gives the host more time for a layer and pass, and shows which
steps of all sources that changes.

usage: tools/figures/missed_steps.py PROGRAM CASES.jsonl    (cases as `meshwright validate --data` takes them)
"""

import csv
import io
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
GPU = "b200-sxm-180g"
PEAK = 2250e12
FAMILY = "simumax-b200"

# Tokens, columns, inner length; published shares of the peak: forward, input gradient.
PRODUCTS = {
    "large": [(4096, 57344, 8192, .4867, .4829), (4096, 8192, 28672, .4847, .4742),
              (4096, 128256, 8192, .4874, .4710), (4096, 28672, 8192, .4943, .4819),
              (4096, 106496, 16384, .4961, .5116), (4096, 16384, 53248, .5109, .5007),
              (4096, 53248, 16384, .4887, .5116), (4096, 26624, 16384, .4973, .5127)],
    "small": [(4096, 10240, 8192, .6452, .4980), (4096, 5120, 8192, .6275, .6428),
              (4096, 1280, 8192, .5938, .6310), (4096, 8192, 1024, .6170, .6137),
              (4096, 7168, 8192, .6113, .4436), (4096, 8192, 3584, .5034, .4982),
              (4096, 2560, 16384, .6047, .5956), (4096, 16384, 6656, .4777, .4930)],
}

# Steps without pipeline: the layers that hold what remains.
JOBS = [("llama3_70b_tp2_pp1_dp4_l12_mbc%d_cef", 12), ("llama3_70b_l12_tp4_pp1_dp2_mbc%d_cef", 12),
        ("llama3_70b_l12_tp8_pp1_dp1_mbc%d_cef", 12), ("llama3_405b_l4_tp2_pp1_dp4_mbc%d_cef", 4),
        ("llama3_405b_l4_tp4_pp1_dp2_mbc%d_cef", 4), ("llama3_405b_l4_tp8_pp1_dp1_mbc%d_cef", 4),
        ("deepseekv2_tp1_ep8_pp1_dp8_l4_mbc%d_cef", 3),
        ("deepseekv3_l4_tp1_ep8_pp1_dp8_mbc%d_cef", 3)]


def short_test_shares(program, shapes):
    table = "gemm_dtype,m,n,k\n" + "".join("bfloat16,%d,%d,%d\n" % shape for shape in shapes)
    priced = subprocess.run([program, "kernel", "--gpu", GPU, "--kind", "gemm", "-"], input=table,
                            capture_output=True, text=True, check=True).stdout
    seconds = [float(row["predicted_s"]) for row in csv.DictReader(io.StringIO(priced))]
    return [2.0 * m * n * k / s / PEAK for (m, n, k), s in zip(shapes, seconds)]


def machine_rate(program):
    """Rate of the machine's products over short tests, of the large and of the small."""
    rates = {}
    for size, rows in PRODUCTS.items():
        shapes = [s for m, n, k, _, _ in rows for s in ((m, n, k), (m, k, n))]
        published = [share for row in rows for share in row[3:]]
        ratios = [p / s for p, s in zip(published, short_test_shares(program, shapes))]
        rates[size] = statistics.median(ratios)
        print("%s products: %.2f of the rate of short tests (median of %d; %.2f to %.2f)"
              % (size, rates[size], len(ratios), min(ratios), max(ratios)))
    return rates


def steps(program, cases, data, family=FAMILY):
    answer = subprocess.run(
        [program, "validate", "--data", cases, "--family", family, "--cases", "--json"],
        env=dict(os.environ, MESHWRIGHT_DATA=data), capture_output=True, text=True, check=True)
    return {case["id"]: case for case in json.loads(answer.stdout)["cases"]}


def copy_data(folder):
    for name in ("hw-profiles", "models", "stacks", "published"):
        shutil.copytree(os.path.join(ROOT, name), os.path.join(folder, name))


def with_rate(folder, rate):
    """A copy of the data in which 16-bit products run at `rate` of short tests in a long step."""
    copy_data(folder)
    path = os.path.join(folder, "hw-profiles/gpus/%s.json" % GPU)
    text = open(path).read()
    gpu = json.loads(text)
    watts = gpu["power_watts"] / rate ** (1 / gpu["efficiency"].get("power_exponent", 1 / 3))
    text = re.sub(r'("full_rate_watts": )[0-9.e+]+', r"\g<1>%.6g" % watts, text, count=1)
    open(path, "w").write(text)


def dense_rate(program, cases):
    """The rate at which the median dense step is neither too fast nor too slow, between two of a scan."""
    before = None
    for rate in (0.74, 0.72, 0.70, 0.68, 0.66, 0.64, 0.62, 0.60):
        with tempfile.TemporaryDirectory() as folder:
            with_rate(folder, rate)
            found = steps(program, cases, folder)
        error = statistics.median(
            case["error_frac"] for name, case in found.items() if "deepseek" not in name)
        if before and error >= 0:
            return rate + 0.02 * error / (error - before)
        before = error
    sys.exit("no rate fits dense steps")


def with_host(folder, seconds):
    """Gives Megatron Core's host `seconds` for each layer and pass, in a copy of the data."""
    path = os.path.join(folder, "stacks/megatron-core.json")
    text = re.sub(r'("host_layer_s": )[0-9.e+-]+', r"\g<1>%g" % seconds, open(path).read(), count=1)
    open(path, "w").write(text)


def family_error(found):
    return 100 * statistics.mean(abs(case["error_frac"]) for case in found.values())


def host_table(program, cases, rate):
    """Steps as the host's time for a layer grows: of the family, and of all other sources."""
    print("\nhost, ms a layer   Llama-70B tp 8, 4, 8, 32          family  family,   other steps"
          "\nand pass           micro-batches                              at %.2f   that change" % rate)
    before = None
    for host_s in (0.0002, 0.0014, 0.0018, 0.0022):
        with tempfile.TemporaryDirectory() as as_is, tempfile.TemporaryDirectory() as rated:
            copy_data(as_is)
            with_host(as_is, host_s)
            with_rate(rated, rate)
            with_host(rated, host_s)
            every = steps(program, cases, as_is, "")
            at_rate = family_error(steps(program, cases, rated))
        before = before or every
        family = {name: case for name, case in every.items() if case["family"] == FAMILY}
        tp8 = [100 * family["%s-llama3_70b_l12_tp8_pp1_dp1_mbc%d_cef" % (FAMILY, n)]["error_frac"]
               for n in (4, 8, 32)]
        changed = sum(abs(every[name]["step_time_s"] / before[name]["step_time_s"] - 1) > 0.005
                      for name in every if name not in family)
        print("%-18.1f %+6.1f %% %+7.1f %% %+7.1f %%  %10.1f %% %7.1f %% %13d"
              % (1e3 * host_s, *tp8, family_error(family), at_rate, changed))


def our_rate():
    gpu = json.load(open(os.path.join(ROOT, "hw-profiles/gpus/%s.json" % GPU)))
    part = gpu["power_watts"] / gpu["efficiency"]["full_rate_watts"]
    return part ** gpu["efficiency"].get("power_exponent", 1 / 3)


def micro_batch_ms(found, job, key):
    few, many = ("simumax-b200-" + job % n for n in (8, 32))
    return (found[many][key] - found[few][key]) / 24 * 1e3


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    program, cases = sys.argv[1:]
    rates = machine_rate(program)
    now = steps(program, cases, ROOT)
    with tempfile.TemporaryDirectory() as folder:
        with_rate(folder, rates["large"])
        timed = steps(program, cases, folder)
    print("mean error with products at that rate %.1f %%, as they are %.1f %%"
          % (family_error(timed), family_error(now)))
    rate = dense_rate(program, cases)
    print("dense steps: right in the median at %.2f of short tests; the profile has %.2f\n"
          % (rate, our_rate()))
    print("one micro-batch                measured  as it is  timed products  remains, ms a layer")
    for job, layers in JOBS:
        measured = micro_batch_ms(now, job, "measured_step_time_s")
        as_is, priced = (micro_batch_ms(found, job, "step_time_s") for found in (now, timed))
        print("%-30s %5.1f ms  %+6.1f %%  %+12.1f %%  %12.2f"
              % (job.replace("_mbc%d_cef", "").replace("_pp1", ""), measured,
                 100 * (as_is / measured - 1), 100 * (priced / measured - 1),
                 (measured - priced) / layers))
    host_table(program, cases, rate)


if __name__ == "__main__":
    main()
