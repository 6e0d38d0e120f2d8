"""Shows which rules the real code refuses, too: a launch that breaks one rule, for each of them.

    shown.py megatron PROGRAM CHECKOUT --te TRANSFORMER_ENGINE_CHECKOUT
    shown.py torchtitan PROGRAM CHECKOUT
    shown.py deepspeed PROGRAM MEGATRON_DEEPSPEED_CHECKOUT --te DEEPSPEED_CHECKOUT

Every rule of a table has a scenario that breaks it alone (`breaks`). It is launched by a program
that does not know that rule, and the launch is given to the real code:
  refused    as the rule says
  accepted   it may be refused later (by a kernel), or be another computation than was priced
  no flag    it is the launch of the scenario that obeys the rule (`obeys`): there is no way to
             ask the software for the difference, which no launch can show
  unwritten  meshwright refuses it for another reason, or the rule's example states facts that no
             scenario can
Exits with 1 where a rule that stops the software (`stops`) was launched and accepted.
"""
import argparse
import collections
import json
import os
import sys
import tempfile

import real
import refusals
import sample

TABLES = {"megatron": ["megatron-core"], "torchtitan": ["torchtitan"],
          "deepspeed": ["for-deepspeed"]}
DATA = ("models", "hw-profiles", "stacks")
# Facts of an example that a config.json, or the scenario, can state.
MODEL_KEYS = {"hidden": "hidden_size", "heads": "num_attention_heads", "ffn": "intermediate_size",
              "kv_heads": "num_key_value_heads", "head_dim": "head_dim",
              "kv_lora_rank": "kv_lora_rank", "expert_ffn": "moe_intermediate_size",
              "shared_ffn": "shared_expert_intermediate_size", "mtp": "num_nextn_predict_layers",
              "qkv_bias": "attention_bias", "mlp_bias": "mlp_bias"}
SCENARIO_KEYS = {"order": "parallel", "recompute": "parallel", "fp8_recipe": "training"}
OF_PRESETS = ("name", "source", "published_parameters", "parameters_source")


def merge(document, over):
    for key, value in over.items():
        if value is None:
            document.pop(key, None)
        elif isinstance(value, dict) and isinstance(document.get(key), dict):
            merge(document[key], value)
        else:
            document[key] = value


def scenario_of(rule, target, obeys, data):
    """The scenario that breaks a rule, as tests/planner/test_rule_tables.c makes it, or the one
    that is like it and obeys; None where it states a fact that no scenario can."""
    scenario = {"schema": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100:2",
                "training": {"seq_len": 4096, "global_batch": 64,
                             "stack": sample.STACKS[target]}, "parallel": {}}
    merge(scenario, rule["breaks"])
    if obeys:
        merge(scenario, rule["obeys"])
    facts = scenario.pop("facts", {})
    for key, value in facts.items():
        if key in SCENARIO_KEYS:
            scenario[SCENARIO_KEYS[key]][key] = value
        elif key not in MODEL_KEYS:
            return None
    sizes = {MODEL_KEYS[key]: value for key, value in facts.items() if key in MODEL_KEYS}
    if sizes:
        with open(os.path.join(data, "models", scenario["model"] + ".json"),
                  encoding="utf-8") as file:
            model = {key: value for key, value in json.load(file).items()
                     if key not in OF_PRESETS}
        if model["model_type"] == "llama":
            model["head_dim"] = model["hidden_size"] // model["num_attention_heads"]
        scenario["model"] = {**model, **sizes}
    return scenario


def data_without(folder, data, table, rule):
    """A folder of data like `data`, whose table lacks the rule."""
    for name in os.listdir(data):
        if name in DATA[:2]:
            os.symlink(os.path.join(data, name), os.path.join(folder, name))
    os.makedirs(os.path.join(folder, "stacks", "rules"))
    for kept in ("stacks", "stacks/rules"):
        for name in os.listdir(os.path.join(data, kept)):
            if name.endswith(".json") and not (kept == "stacks/rules" and name == table + ".json"):
                os.symlink(os.path.join(data, kept, name), os.path.join(folder, kept, name))
    with open(os.path.join(data, "stacks/rules", table + ".json"), encoding="utf-8") as file:
        lacking = json.load(file)
    lacking["rules"] = [each for each in lacking["rules"] if each["id"] != rule["id"]]
    with open(os.path.join(folder, "stacks/rules", table + ".json"), "w",
              encoding="utf-8") as file:
        json.dump(lacking, file)


def launch_without(program, data, table, rule, target):
    """(launch, None), or (None, why there is none)"""
    scenarios = [scenario_of(rule, target, obeys, data) for obeys in (False, True)]
    if not scenarios[0]:
        return None, "facts that no scenario states"
    with tempfile.TemporaryDirectory() as folder:
        data_without(folder, data, table, rule)
        os.environ["MESHWRIGHT_DATA"] = folder
        try:
            capture = sample.Capture(folder)
            made, reason = sample.launch(program, capture, scenarios[0], target)
            obeying, _ = sample.launch(program, capture, scenarios[1], target) \
                if scenarios[1] else (None, None)
        finally:
            del os.environ["MESHWRIGHT_DATA"]
    if made:
        made["same"] = bool(obeying) and all(made[key] == obeying[key]
                                             for key in ("argv", "env", "files"))
    return made, reason


def machine_of(program, launch):
    name, _, nodes = launch["scenario"]["cluster"].partition(":")
    cluster = next(each for each in program.rows("clusters") if each["name"] == name)
    return {"gpu": cluster["gpu"], "num_gpus": cluster["gpus_per_node"] * int(nodes or 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stack", choices=sorted(TABLES))
    parser.add_argument("program")
    parser.add_argument("checkout")
    parser.add_argument("--te", help="a checkout of Transformer Engine; for deepspeed: of DeepSpeed")
    parser.add_argument("--data", default=os.path.join(os.path.dirname(__file__), "..", ".."),
                        help="the folder with models, hw-profiles and stacks")
    parser.add_argument("--rule", help="only the rule of this id")
    options = parser.parse_args()
    data, program = os.path.abspath(options.data), sample.Program(options.program)
    rules = []
    for table in TABLES[options.stack]:
        with open(os.path.join(data, "stacks/rules", table + ".json"), encoding="utf-8") as file:
            rules += [(table, rule) for rule in json.load(file)["rules"]
                      if options.rule in (None, rule["id"])]
    launches = [launch_without(program, data, table, rule, options.stack)
                for table, rule in rules]
    stack = real.stack_of(options.stack, options.checkout, options.te)
    counts, failed = collections.Counter(), False
    for (table, rule), (launch, reason) in zip(rules, launches):
        if launch and launch["same"]:
            kind, reason = "no flag", ""
        elif launch:
            launch.update(machine_of(program, launch))
            stack.prepare(launch)
            stack.deep = True
            done = refusals.in_child(lambda stage, l=launch: stack.check(l, stage), stack.roots())
            kind = {"ok": "accepted"}.get(done.kind, done.kind)
            reason = f"{done.stage} {done.place} {done.message[:200]}" if done.place else ""
            failed |= kind == "accepted" and rule.get("stops", False)
        else:
            kind = "unwritten"
        counts[kind] += 1
        stops = "stops" if rule.get("stops") else "lacks"
        print(f"{kind:9} {stops} {table}/{rule['id']}  {reason}".rstrip())
    print(f"{len(rules)} rules: " + ", ".join(f"{number} {kind}"
                                              for kind, number in counts.most_common()))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
