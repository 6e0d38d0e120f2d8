"""Runs a program written for Megatron Bridge without it: python3 run_bridge.py TABLE PROGRAM ARGUMENTS...

Stands in for torch, megatron.core and megatron.bridge. Its configuration has the keys that TABLE
(docs/launch/nemo.md) documents, with their types and values, and no others; pretrain() prints it as
JSON. What the user sets is USERS_OWN.
"""

import json
import re
import runpy
import sys
import types

USERS_OWN = {
    "train": {"train_iters": int},
    "validation": {"eval_interval": int, "eval_iters": int},
    "optimizer": {"lr": float},
    "model": {"moe_aux_loss_coeff": float, "transformer_layer_spec": object},
    "dataset": {"data_path": list, "split": str, "random_seed": int, "reset_position_ids": bool,
                "reset_attention_mask": bool, "eod_mask_loss": bool, "dataloader_type": str},
    "tokenizer": {"tokenizer_type": str, "tokenizer_model": str},
    "checkpoint": {"save": str, "load": str, "save_interval": int},
}
LINE = re.compile(r"\| `(\w+)\.(\w+)` \| (.*) \| (?:[^|]*) \|$")


class Name:
    """A member of torch or of an enumeration: equal to its spelling."""

    def __init__(self, text):
        self.text = text


def legal(text):
    """A test of a value, of the second column of the table."""
    text = text.replace("\\|", "|")
    if text == "true|false":
        return lambda value: isinstance(value, bool)
    if text == "list":
        return lambda value: isinstance(value, (list, tuple)) and len(value) > 0
    if text == "text":
        return lambda value: isinstance(value, str)
    if text.startswith("from "):
        least = float(text[5:])
        return lambda value: type(value) in (int, float) and value >= least
    return lambda value: (value.text if isinstance(value, Name) else value) in text.split("|")


def table(path):
    sections = {}
    for line in open(path, encoding="utf-8"):
        match = LINE.match(line.rstrip("\n"))
        if match:
            sections.setdefault(match[1], {})[match[2]] = legal(match[3])
    for section, keys in USERS_OWN.items():
        for key, kind in keys.items():
            sections.setdefault(section, {})[key] = (
                lambda value, kind=kind: value is None or isinstance(value, kind))
    # Data take the place of the vocabulary of mock data.
    known = sections["tokenizer"]["vocab_size"]
    sections["tokenizer"]["vocab_size"] = lambda value: value is None or known(value)
    return sections


def part_class(name, keys):
    class Part:
        def __init__(self, **values):
            self.__dict__["values"] = {}
            for key, value in values.items():
                setattr(self, key, value)

        def __getattr__(self, key):
            if key not in keys:
                raise AttributeError(f"{name}.{key}: no such key")
            return self.values.get(key)

        def __setattr__(self, key, value):
            if key not in keys:
                raise AttributeError(f"{name}.{key}: no such key")
            if not keys[key](value):
                raise TypeError(f"{name}.{key}: {value!r} is not legal")
            self.values[key] = value

    return Part


class Container:
    def __init__(self, **parts):
        self.__dict__.update(parts)


class Backends(type):
    def __getitem__(cls, name):
        return Name(name)


def spelled(value):
    if isinstance(value, Name):
        return value.text
    if isinstance(value, tuple):
        return list(value)
    return getattr(value, "__name__", None) or type(value).__name__


def pretrain(config, forward_step_func):
    assert forward_step_func is forward_step
    print(json.dumps({name: part.values for name, part in vars(config).items()},
                     default=spelled, indent=1))


def forward_step():
    pass


def module(name, **members):
    made = types.ModuleType(name)
    made.__path__ = []
    vars(made).update(members)
    sys.modules[name] = made
    parent, _, child = name.rpartition(".")
    if parent:
        if parent not in sys.modules:
            module(parent)
        setattr(sys.modules[parent], child, made)


def stand_in(sections):
    def part(name):
        return part_class(name, sections.get(name, {}))

    class ConfigContainer(Container):
        def __init__(self, **parts):
            super().__init__(rerun_state_machine=part("rerun_state_machine")(), **parts)

    module("torch", **{name: Name(name) for name in ("float32", "bfloat16", "float16")})
    module("megatron.core.models.gpt.gpt_layer_specs", get_gpt_decoder_block_spec=len)
    module("megatron.core.transformer.enums", AttnBackend=Backends("AttnBackend", (), {}))
    module("megatron.bridge.models.gpt_provider", GPTModelProvider=part("model"))
    module("megatron.bridge.models.mla_provider", MLAModelProvider=part("model"))
    module("megatron.bridge.training.config", ConfigContainer=ConfigContainer,
           CheckpointConfig=part("checkpoint"), DistributedDataParallelConfig=part("ddp"),
           DistributedInitConfig=part("dist"), GPTDatasetConfig=part("dataset"),
           LoggerConfig=part("logger"), OptimizerConfig=part("optimizer"), RNGConfig=part("rng"),
           SchedulerConfig=part("scheduler"), TokenizerConfig=part("tokenizer"),
           TrainingConfig=part("train"), ValidationConfig=part("validation"))
    module("megatron.bridge.training.gpt_step", forward_step=forward_step)
    module("megatron.bridge.training.mixed_precision", MixedPrecisionConfig=part("mixed_precision"))
    module("megatron.bridge.training.pretrain", pretrain=pretrain)


stand_in(table(sys.argv[1]))
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
