"""Feeds launches to the real argument validation of the software that they are for.

    real.py megatron CHECKOUT LAUNCHES.jsonl --te TRANSFORMER_ENGINE_CHECKOUT
    real.py torchtitan CHECKOUT LAUNCHES.jsonl
    real.py deepspeed MEGATRON_DEEPSPEED_CHECKOUT LAUNCHES.jsonl --te DEEPSPEED_CHECKOUT
    real.py nemo MEGATRON_BRIDGE_CHECKOUT LAUNCHES.jsonl --te MEGATRON_CORE_CHECKOUT
"""
import argparse
import collections
import json
import sys
import time

import refusals


def stack_of(name, checkout, te):
    if name == "megatron":
        from megatron_lm import Megatron
        return Megatron(checkout, te)
    if name == "deepspeed":
        from megatron_deepspeed import MegatronDeepSpeed
        return MegatronDeepSpeed(checkout, te)
    if name == "torchtitan":
        from titan import Titan
        return Titan(checkout, te)
    if name == "nemo":
        from bridge import Bridge
        return Bridge(checkout, te)
    raise SystemExit("no such stack: " + name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stack")
    parser.add_argument("checkout")
    parser.add_argument("launches")
    parser.add_argument("--te", help="a checkout of Transformer Engine; for deepspeed: of DeepSpeed; for "
                        "nemo: of its Megatron Core")
    parser.add_argument("--first", type=int, help="only the launch of this number")
    parser.add_argument("--quick", action="store_true",
                        help="of megatron: up to the configuration, and build no model")
    parser.add_argument("--verbose", action="store_true", help="a line for each launch")
    options = parser.parse_args()
    stack = stack_of(options.stack, options.checkout, options.te)
    stack.quick = options.quick
    counts, examples, slowest = collections.Counter(), {}, (0, None)
    with open(options.launches, encoding="utf-8") as file:
        for number, line in enumerate(file):
            if options.first is not None and number != options.first:
                continue
            launch, began = json.loads(line), time.monotonic()
            stack.prepare(launch)
            done = refusals.in_child(lambda stage, l=launch: stack.check(l, stage), stack.roots())
            slowest = max(slowest, (time.monotonic() - began, number))
            if options.verbose:
                print(f"{number} {time.monotonic() - began:.2f} s {vars(done)}", flush=True)
            key = (done.kind, done.stage, done.place)
            counts[key] += 1
            examples.setdefault(key, (number, done.message))
    print(f"{sum(counts.values())} launches, slowest: {slowest[0]:.1f} s, launch {slowest[1]}")
    for key, number in counts.most_common():
        print(f"{number:6} {' '.join(key)}" +
              (f"  e.g. launch {examples[key][0]}: {examples[key][1][:300]}" if key[0] != "ok" else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
