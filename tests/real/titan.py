"""torchtitan's own checks of one launch, without PyTorch and without a GPU.

The keys of torchtitan.toml are held against the classes of torchtitan/config/job_config.py (tyro,
which reads them into those classes, is stood in for: unknown keys, values of another type or
outside a Literal are refused here as it refuses them). Then torchtitan's Trainer starts (train.py):
ParallelDims, the model at its full size, the converters of float8 and mx, the batch, pipelining
and parallelize, the optimizer, by torchtitan's own code. PyTorch's pipelining schedules are run
where a folder with PyTorch's sources is given, and stood in for by their names otherwise.
"""
import dataclasses
import importlib.metadata
import importlib.util
import logging
import os
import sys
import tempfile
import tomllib
import types
import typing

import groups
import standins
import torch_standin
from megatron_lm import capability

VERSIONS = {"torch": "2.9.0", "torchao": "0.13.0", "torchdata": None, "datasets": None,
            "tyro": None, "tokenizers": None, "safetensors": None, "wandb": None, "fsspec": None,
            "tensorboard": None, "jinja2": None, "triton": "3.4.0", "liger_kernel": None,
            "torchft": None}
SINGLE = ("Schedule1F1B", "ScheduleGPipe")
MULTI = ("ScheduleInterleaved1F1B", "ScheduleLoopedBFS", "ScheduleInterleavedZeroBubble",
         "ScheduleZBVZeroBubble", "ScheduleDualPipeV")


def metrics(*_):
    """torchtitan's MetricsProcessor, which reads the memory of a GPU at its start."""
    stats = types.SimpleNamespace(max_reserved_gib=0.0, max_reserved_pct=0.0)
    monitor = types.SimpleNamespace(device_name="", get_peak_stats=lambda: stats)
    return types.SimpleNamespace(color=standins.Instance(), device_memory_monitor=monitor,
                                 num_flops_per_token=0, optimizers=None)


class Schedule:
    def __init__(self, stages, n_microbatches, loss_fn=None, **_):
        self.stages, self.n_microbatches = stages, n_microbatches


class PipelineScheduleSingle(Schedule):
    pass


class PipelineScheduleMulti(Schedule):
    pass


class PipelineStage:
    def __init__(self, submodule, stage_index, num_stages, device, *_, group=None, **__):
        self.submod, self.stage_index, self.num_stages = submodule, stage_index, num_stages
        self.group, self.device = group, device
        self.group_rank, self.group_size = group.rank(), group.size()
        self.is_first, self.is_last = stage_index == 0, stage_index == num_stages - 1
        self.has_backward = False
        self.stage_index_to_group_rank = {}


def schedules():
    """torch.distributed.pipelining.schedules by its names."""
    import torch.distributed.pipelining as pipelining  # pylint: disable=import-error
    import torch.distributed.pipelining.schedules as module
    classes = {name: type(name, (PipelineScheduleSingle,), {}) for name in SINGLE}
    classes.update((name, type(name, (PipelineScheduleMulti,), {})) for name in MULTI)

    def get_schedule_class(name):
        known = {each.removeprefix("Schedule").lower(): cls for each, cls in classes.items()}
        if name.lower() not in known:
            raise ValueError(f"Unknown schedule name {name}")
        return known[name.lower()]

    vars(module).update(classes, PipelineScheduleSingle=PipelineScheduleSingle,
                        PipelineScheduleMulti=PipelineScheduleMulti, _PipelineSchedule=Schedule,
                        _PipelineScheduleRuntime=Schedule, get_schedule_class=get_schedule_class)
    pipelining.PipelineStage = pipelining.stage = PipelineStage


def value_check(where, kind, value):
    """What tyro refuses of a value of a field of this type."""
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        good = value in inside
    elif origin is list:
        good = isinstance(value, list) and all(isinstance(each, inside[0]) for each in value
                                               if isinstance(inside[0], type))
    elif inside:  # X | None
        good = any(each is type(None) or isinstance(value, typing.get_origin(each) or each)
                   for each in inside if isinstance(typing.get_origin(each) or each, type))
    else:
        good = isinstance(value, kind) and not (kind is int and isinstance(value, bool)) or \
            kind is float and isinstance(value, int)
    if not good:
        raise ValueError(f"{where}: {value!r} is no {kind}")


def job_config(text, job_config_module):
    """torchtitan's JobConfig of a file, and a refusal of what it has no field for."""
    hints, sections = typing.get_type_hints(job_config_module.JobConfig), {}
    for section, keys in tomllib.loads(text).items():
        if section not in hints:
            raise ValueError(f"{section}: no such section")
        kinds = typing.get_type_hints(hints[section])
        for key, value in keys.items():
            if key not in kinds:
                raise ValueError(f"{section}.{key}: no such key")
            value_check(f"{section}.{key}", kinds[key], value)
        sections[section] = hints[section](**keys)
    return job_config_module.JobConfig(**sections)


class MXLinearConfig:
    """torchao's, which is stood in for."""

    @classmethod
    def from_recipe_name(cls, name):
        if name not in ("mxfp8_emulated", "mxfp8_cublas", "mxfp4_cutlass"):
            raise ValueError("Unknown config recipe name " + name)
        return cls()


class Titan:
    """A checkout of torchtitan, imported once."""

    def __init__(self, checkout, _):
        self.root = os.path.abspath(checkout) + os.sep
        standins.stand_in_for(VERSIONS)
        self.torch = torch_standin.install()
        import torch.distributed.device_mesh  # pylint: disable=import-error
        schedules()
        logging.disable(logging.CRITICAL)
        os.environ.update(LOCAL_RANK="0")
        real = importlib.metadata.version
        importlib.metadata.version = lambda name: VERSIONS.get(name) or real(name)
        sys.path.insert(0, self.root)
        import torchao.prototype.mx_formats.config as formats  # pylint: disable=import-error
        formats.MXLinearConfig = MXLinearConfig
        import torchtitan.distributed.utils
        torchtitan.distributed.utils.set_determinism = lambda *_, **__: None
        import torchtitan.train
        import torchtitan.models.llama3
        import torchtitan.models.deepseek_v3
        import torchtitan.protocols.train_spec as specs
        for name in ("llama3", "deepseek_v3"):  # files that are yours to bring
            spec = specs.get_train_spec(name)
            spec.build_tokenizer_fn = None
            spec.build_metrics_processor_fn = metrics
            spec.build_dataloader_fn = lambda **_: standins.Instance()
        self.train = torchtitan.train

    def roots(self):
        return [self.root, os.path.abspath(__file__)]

    def prepare(self, launch):
        pass

    def machine(self, launch):
        torch, version = self.torch, capability(launch["gpu"])
        torch.cuda.get_device_capability = lambda *_: version
        torch.cuda.get_device_name = lambda *_: launch["gpu"]
        torch.distributed.device_mesh.init_device_mesh = groups.init_mesh(
            torch, launch["num_gpus"], 0)
        os.environ.update(RANK="0", WORLD_SIZE=str(launch["num_gpus"]))

    def check(self, launch, stage):
        stage("config")
        self.machine(launch)
        import torchtitan.config.job_config as module
        import torchtitan.distributed.parallel_dims as parallel_dims
        parallel_dims.init_device_mesh = self.torch.distributed.device_mesh.init_device_mesh
        config = job_config(launch["files"]["torchtitan.toml"], module)
        stage("trainer")
        with tempfile.TemporaryDirectory() as folder:
            config.job.dump_folder = folder
            self.train.Trainer(config)
        stage("all")
