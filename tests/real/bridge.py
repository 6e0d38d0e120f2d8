"""Megatron Bridge's own checks of one launch, without PyTorch and without a GPU.

The launch's program runs as it is, over Megatron Bridge and the Megatron Core that it pins: it
builds a ConfigContainer of their classes and sets its keys. What it would train is validated as
pretrain() begins to (runtime_config_update: mixed precision, ConfigContainer.validate, with
TransformerConfig's and the providers' __post_init__ and finalize); nothing is built.
"""
import contextlib
import logging
import os
import runpy
import sys
import tempfile
import typing

import groups
import standins
import te
import torch_standin
from megatron_lm import VERSIONS, capability

STAND_INS = {"modelopt": None, "transformers": "4.57.0", "huggingface_hub": None, "omegaconf": None,
             "hydra": None, "rich": None, "accelerate": None, "safetensors": None, "mamba_ssm": None,
             "causal_conv1d": None, "datasets": None, "diffusers": None, "timm": None,
             "open_clip": None, "peft": None, "PIL": None, "qwen_vl_utils": None, "fla": None,
             "multistorageclient": None, "nvtx": None, "flashinfer": None, "mlflow": None,
             "comet_ml": None, "torchvision": None, "requests": None, "filelock": None, "megatron.core.ssm.ops": None}


class FusedAdam:
    """Transformer Engine's, by the arguments that it has from 2.1 on."""

    def __init__(self, params, master_weight_dtype=None, exp_avg_dtype=None, exp_avg_sq_dtype=None,
                 use_decoupled_grad=False):
        pass


class Bridge:
    """Checkouts of Megatron Bridge and of its Megatron Core (its 3rdparty), imported once."""

    def __init__(self, checkout, core_checkout):
        self.sources = [os.path.abspath(path) + os.sep for path in
                        (os.path.join(checkout, "src"), core_checkout)]
        standins.stand_in_for({**VERSIONS, **te.STAND_INS, **STAND_INS,
                               "transformer_engine": "2.9.0"})
        self.torch = torch_standin.install()
        logging.disable(logging.CRITICAL)
        if not hasattr(typing, "override"):  # of Python 3.12
            typing.override = lambda method: method
        sys.path[:0] = self.sources
        import megatron.bridge.training.config  # pylint: disable=import-error,unused-import
        import megatron.bridge.training.gpt_step
        import megatron.bridge.training.mixed_precision
        import megatron.bridge.training.pretrain
        import transformer_engine.pytorch.optimizers as optimizers
        optimizers.FusedAdam = FusedAdam
        self.config = megatron.bridge.training.config
        self.pretrain = megatron.bridge.training.pretrain

    def roots(self):
        return self.sources

    def prepare(self, launch):
        pass

    def machine(self, launch):
        major, minor = capability(launch["gpu"])
        self.torch.cuda.get_device_capability = lambda *_: (major, minor)
        self.torch.cuda.device_count = lambda: 8
        groups.fill(self.torch, launch["num_gpus"], 0)
        for name in list(os.environ):
            if name.startswith(("CUDA_", "PYTORCH_", "TORCH_", "NCCL_", "NVTE_")):
                del os.environ[name]
        os.environ.update(launch["env"], RANK="0", WORLD_SIZE=str(launch["num_gpus"]))

    def check(self, launch, stage):
        stage("program")
        self.machine(launch)
        kept = []
        self.pretrain.pretrain = lambda config, **_: kept.append(config)
        argv = launch["argv"]
        program = next(i for i, word in enumerate(argv) if word.endswith(".py"))
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            for name, text in launch["files"].items():
                with open(name, "w", encoding="utf-8") as file:
                    file.write(text)
            sys.argv = [os.path.basename(word) if word.endswith((".py", ".yaml")) else word
                        for word in argv[program:]]
            runpy.run_path(sys.argv[0], run_name="__main__")
        stage("validate")
        config, = kept
        self.config.runtime_config_update(config)
        stage("all")
