#!/usr/bin/env python3
"""Fits how far memory accounts are from measured memories, and says how well the intervals hold.

usage: memory_spreads.py PROGRAM CASES.jsonl [ROWS.jsonl] [-o FILE]
CASES as `meshwright validate --data` takes them; ROWS (optional) are the rows that they were made
of, whose memories without a stated meaning are used for unlike software only. published/memory.jsonl,
reported figures and runs that ran out of memory, is read too. -o writes hw-profiles/memory.json.

Law:      log(measured / predicted) follows Student's law with four degrees of freedom; its scale
          differs by stack and by kind of model (dense, experts). A run without a measured memory
          that ran says that what it needed was less than there was, one that ran out of memory that
          it was more: both are counted as such.
Scale:    of the largest likelihood. A family counts as at most 8 rows. Kinds of one stack share
          PRIOR_ROWS rows of their stack's scale, and stacks PRIOR_ROWS rows of `other`: what other
          software than a stack's file describes deviates from it (DeepSpeed, nanotron).
Left out: each family's rows are compared with an interval fitted without that family.
Source:   Lange, Little and Taylor, J. Amer. Statist. Assoc. 84, 1989; Tobin, "Estimation of
          relationships for limited dependent variables", Econometrica 26, 1958 (bounds as data).
"""
import json
import math
import os
import statistics
import subprocess
import sys

FREEDOM, QUANTILE_90, FAMILY_ROWS, PRIOR_ROWS = 4, 1.5332062740589, 8, 2
KINDS = ("dense", "experts")
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
# Software or machines that no file here describes, priced by the nearest: which account their
# figure is compared with (where the source does not say, the most that it can mean).
UNLIKE = {"nanotron": "memory_peak_bytes", "bigscience-a100": "memory_device_bytes",
          "infini-4090": "memory_peak_bytes", "stas-deepspeed": "memory_reserved_bytes"}
# What a source did that its scenario does not say.
#   first_step: its figure is of the first iteration, whose forward and backward find no moments
#     (FusedAdam makes them in its first step), and whose update holds the gradients of the shard
#     in fp32 (NVIDIA/Megatron-LM, optimizer/distrib_optimizer.py, _copy_model_grads_to_main_grads).
#   training: torchtitan compiles the loss since 2025 (docs/accuracy.md); NeMo's fused loss of 2025
#     was Megatron's native one, which keeps the fp32 softmax as the unfused does
#     (megatron/core/fusions/fused_cross_entropy.py).
CONDITIONS = {"together-b200-8gpu": {"first_step": True}, "together-b300": {"first_step": True},
              "torchtitan-h200": {"training": {"cross_entropy_fused": True}},
              "torchtitan-gb200": {"training": {"cross_entropy_fused": True}},
              "dgxc-25.02": {"training": {"cross_entropy_fused": False}}}


def read_lines(path):
    return [json.loads(line) for line in open(path, encoding="utf-8") if line.strip()]


def predict(program, cases):
    """The answers of validate for all cases, in their order."""
    text = "".join(json.dumps({**{key: value for key, value in case.items() if key != "reported"},
                               "truth": {"step_time_s": 1.0}}) + "\n" for case in cases)
    done = subprocess.run([program, "validate", "--data", "-", "--all", "--cases", "--json"],
                          input=text, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["cases"]


def first_step(answer, training):
    parts = answer["memory_bytes"]
    peak = answer["memory_peak_bytes"]
    masters = parts["optimizer"] / 3  # of 12 bytes a parameter 4, the moments 8
    wide = masters if training.get("grad_reduce_dtype") == "bf16" else 0
    return max(peak - 2 * masters, peak - parts["activations"] + wide)


def has_experts(model):
    if isinstance(model, str):
        model = json.load(open(os.path.join(ROOT, "models", model + ".json"), encoding="utf-8"))
    return "expert" in json.dumps(model)


class Row:
    """error: log of measured over predicted. room: log of available over needed. ran: whether it
    did; None where a memory was measured."""

    def __init__(self, case, answer, key, measured):
        condition = CONDITIONS.get(case["family"], {})
        training = case["scenario"]["training"]
        self.name, self.family, self.stated = case["id"], case["family"], case["gate"]
        self.stack = training["stack"]
        self.kind = KINDS[has_experts(case["scenario"]["model"])]
        self.error = self.ran = None
        self.room = math.log(answer["memory_available_bytes"] / answer["memory_needs_bytes"])
        self.probability = answer["fits_probability_frac"]
        if measured:
            predicted = answer[key]
            if condition.get("first_step"):
                predicted = first_step(answer, training)
            self.error = math.log(measured / predicted)
        else:
            self.ran = not case["truth"].get("ran_out_of_memory", False)


def measured_of(case):
    for key in ("memory_peak_bytes", "memory_reserved_bytes"):
        if key in case["truth"]:
            return key, case["truth"][key]
    return None, None


def rows_of(program, cases, unstated):
    """Rows as the fit takes them, and the errors of the stated ones as the scenario has them."""
    asked = [json.loads(json.dumps(case)) for case in cases]
    for case in asked:
        case["scenario"]["training"].update(CONDITIONS.get(case["family"], {}).get("training", {}))
    plain, answers = predict(program, cases), predict(program, asked)
    rows, raw = [], {}
    for case, before, answer in zip(cases, plain, answers):
        if "error" in answer:
            continue
        key, measured = measured_of(case)
        if case["family"] in UNLIKE:
            key, measured = UNLIKE[case["family"]], measured or unstated.get(case["id"])
            if not measured:
                continue
        elif not (case["gate"] or "reported" in case):
            continue
        row = Row(case, answer, key, measured)
        rows.append(row)
        if case["gate"] and measured and case["family"] not in UNLIKE:
            raw[row.name] = math.log(measured / before[key])
    return rows, raw, {case["id"]: answer for case, answer in zip(cases, plain)}


# --- The fit

def student_log_density(x):
    return -2.5 * math.log1p(x * x / FREEDOM)


def student_probability(x):
    s = x / math.sqrt(FREEDOM + x * x)
    return max(1e-12, 0.5 + 0.75 * (s - s ** 3 / 3))


def log_likelihood(rows, prior, scale):
    families = {}
    for row in rows:
        families.setdefault((row.family, row.ran is None), []).append(row)
    total = PRIOR_ROWS * (student_log_density(prior / scale) - math.log(scale)) if prior else 0
    for members in families.values():
        weight = min(FAMILY_ROWS, len(members)) / len(members)
        for row in members:
            if row.ran is None:
                total += weight * (student_log_density(row.error / scale) - math.log(scale))
            else:
                total += weight * math.log(student_probability(
                    (row.room if row.ran else -row.room) / scale))
    return total


def scale_of(rows, prior=None):
    if not rows:
        return prior
    grid = [0.002 * 1.02 ** i for i in range(270)]
    return max(grid, key=lambda scale: log_likelihood(rows, prior, scale))


class Scales:
    def __init__(self, rows):
        self.rows = [row for row in rows if row.family not in UNLIKE]
        self.other = scale_of([row for row in rows if row.family in UNLIKE])

    def of(self, stack, kind):
        own = [row for row in self.rows if row.stack == stack]
        if not own:
            return self.other
        base = scale_of(own, self.other)
        return scale_of([row for row in own if row.kind == kind], base)


# --- What is printed

def half_width(scale, slack):
    return math.exp(QUANTILE_90 * math.hypot(scale, slack / math.sqrt(12))) - 1


def slack_of(stack):
    return json.load(open(os.path.join(ROOT, "stacks", stack + ".json")))["residency"]["allocator_slack_frac"]


def held(rows, raw, width_of):
    inside, widths, families = 0, [], {}
    for row in rows:
        if row.name not in raw:
            continue
        width = width_of(row)
        ok = abs(raw[row.name]) <= math.log1p(width)
        inside += ok
        widths.append(width)
        tally = families.setdefault(row.family, [0, 0, []])
        tally[0] += ok
        tally[1] += 1
        tally[2].append(width)
    return inside, widths, families


def main():
    arguments = sys.argv[1:]
    output = None
    if "-o" in arguments:
        at = arguments.index("-o")
        output = arguments[at + 1]
        del arguments[at:at + 2]
    if len(arguments) not in (2, 3):
        sys.exit(__doc__)
    program, path = arguments[:2]
    unstated = {}
    for row in read_lines(arguments[2]) if len(arguments) > 2 else []:
        memory = row["measured"].get("mem_gb_per_gpu")
        if memory:
            unstated[row["id"]] = memory * row["measured"].get("mem_unit_bytes", 2 ** 30)
    reports = read_lines(os.path.join(ROOT, "published", "memory.jsonl"))
    for report in reports:
        report["reported"] = True
    cases = read_lines(path)
    rows, raw, plain = rows_of(program, cases + reports, unstated)
    scales = Scales(rows)
    stacks = sorted({row.stack for row in scales.rows})
    print("%-16s %-8s %8s %11s %6s %12s %8s" % ("stack", "model", "measured", "ran or not",
                                                "scale", "80 % within", "families"))
    for stack in stacks:
        for kind in KINDS:
            own = [row for row in scales.rows if (row.stack, row.kind) == (stack, kind)]
            scale = scales.of(stack, kind)
            print("%-16s %-8s %8d %11d %6.3f %10.1f %% %8d" % (
                stack, kind, sum(row.ran is None for row in own),
                sum(row.ran is not None for row in own), scale,
                100 * half_width(scale, slack_of(stack)), len({row.family for row in own})))
    print("%-25s %8d %11s %6.3f\n" % ("other software", sum(row.family in UNLIKE for row in rows),
                                      "", scales.other))
    without = {}

    def shipped(row):
        return math.expm1(QUANTILE_90 * plain[row.name]["memory_spread"])

    def left_out(row):
        if row.family not in without:
            without[row.family] = Scales([one for one in rows if one.family != row.family])
        return half_width(without[row.family].of(row.stack, row.kind), slack_of(row.stack))

    for title, width_of in (("as shipped", shipped), ("families left out", left_out)):
        inside, widths, families = held(rows, raw, width_of)
        print("%s: %d of %d stated memories (%.1f %%) in their 80 %% interval, median half-width "
              "%.1f %%" % (title, inside, len(widths), 100 * inside / len(widths),
                           100 * statistics.median(widths)))
    for family, (inside, num, widths) in sorted(families.items()):
        print("  %-22s %2d of %2d, within %.1f %%" % (family, inside, num,
                                                    100 * statistics.median(widths)))
    stated = [case["id"] for case in cases if case["gate"]]
    low = [name for name in stated if plain[name]["fits_probability_frac"] < 0.5]
    print("\nof %d stated runs, which all ran, %d (%.1f %%) get less than a half: %s" % (
        len(stated), len(low), 100 * len(low) / len(stated), ", ".join(low)))
    for report in reports:
        if report["truth"].get("ran_out_of_memory"):
            print("ran out of memory: %-28s %.0f %%" % (
                report["id"], 100 * plain[report["id"]]["fits_probability_frac"]))
    if output:
        save(output, scales, stacks, rows)


def save(output, scales, stacks, rows):
    document = {
        "schema": 1, "title": "before any run of one's own",
        "stacks": {stack: {kind: round(scales.of(stack, kind), 4) for kind in KINDS}
                   for stack in stacks},
        "other": {kind: round(scales.other, 4) for kind in KINDS},
        "measured": {"command": "tools/figures/memory_spreads.py PROGRAM CASES.jsonl ROWS.jsonl -o FILE",
                     "num_memories": sum(row.ran is None for row in rows),
                     "num_runs": sum(row.ran is not None for row in rows),
                     "num_families": len({row.family for row in rows})},
        "sources": {
            "stacks": "scales of log(measured / predicted) of published memories, Student's law "
                      "with four degrees of freedom, and runs that ran or ran out of memory as "
                      "bounds; tools/figures/memory_spreads.py",
            "other": "the same of software that no file of stacks/ describes, priced by the "
                     "nearest: " + ", ".join(sorted(UNLIKE))}}
    with open(output, "w", encoding="utf-8") as out:
        json.dump(document, out, indent=4)
        out.write("\n")


main()
