"""Megatron-DeepSpeed's and DeepSpeed's own checks of one launch, without PyTorch or a GPU.

In the order in which a job meets them, each by their own code:
  arguments  parse_args, validate_args (megatron/arguments.py), and DeepSpeed's added arguments
  groups     initialize_model_parallel (megatron/core/parallel_state.py), which only counts here
  model      model_provider (pretrain_gpt.py): the layers of a rank of the first, second and last
             stage, with all that their constructors check
  config     DeepSpeedConfig of ds_config.json (deepspeed/runtime/config.py): the batch, ZeRO,
             data types
  engine     what DeepSpeedEngine and PipelineEngine ask of them before they build the optimizer
"""
import json
import logging
import os
import sys
import tempfile
import types

import groups
import pydantic_standin
import standins
import torch_standin

VERSIONS = {"torch": "2.6.0", "triton": "3.2.0", "hjson": None, "cpuinfo": None, "psutil": None,
            "tqdm": None, "einops": None, "transformers": None, "regex": None, "nltk": None,
            "sentencepiece": None, "apex": None, "flash_attn": "2.7.4", "ninja": None,
            "filelock": None, "deepspeed.ops.transformer.inference.triton": None,
            "tensorboard": None, "wandb": None, "amp_C": None, "fused_layer_norm_cuda": None,
            "fused_weight_gradient_mlp_cuda": None,
            "msgpack": None, "py3nvml": None}


class MegatronDeepSpeed:
    """Checkouts of Megatron-DeepSpeed and of DeepSpeed, imported once."""

    def __init__(self, checkout, deepspeed_checkout):
        self.sources = [os.path.abspath(path) + os.sep for path in (checkout, deepspeed_checkout)]
        standins.stand_in_for(VERSIONS)
        pydantic_standin.install()
        self.torch = torch_standin.install()
        self.torch.version.__version__ = VERSIONS["torch"]
        self.torch.cuda.get_device_capability = lambda *_: (8, 0)
        built = types.ModuleType("deepspeed.git_version_info")  # of the kernels that were built
        vars(built).update(version="0.16.4", git_hash="", git_branch="", installed_ops={},
                           compatible_ops={}, accelerator_name="cuda", torch_info={})
        sys.modules[built.__name__] = built
        logging.disable(logging.CRITICAL)
        os.environ["DS_ACCELERATOR"] = "cuda"
        sys.path[:0] = self.sources
        import deepspeed  # pylint: disable=import-error
        import apex.normalization
        apex.normalization.MixedFusedRMSNorm = torch_standin.Norm
        import megatron.arguments
        import deepspeed.runtime.utils as utils
        utils.see_memory_usage = lambda *_, **__: None
        import pretrain_gpt
        pretrain_gpt.update_rotary_pos_emb = lambda *_: None  # computes a table
        self.deepspeed = deepspeed

    def roots(self):
        return self.sources

    def machine(self, launch, rank):
        torch = self.torch
        torch.cuda.get_device_capability = lambda *_: (8, 0)
        torch.cuda.device_count = lambda: 8
        groups.fill(torch, launch["num_gpus"], rank)
        from deepspeed import comm
        comm.comm.cdb = types.SimpleNamespace(
            broadcast=lambda *_, **__: None, all_reduce=lambda *_, **__: None,
            barrier=lambda *_, **__: None, is_initialized=lambda: True, get_rank=torch.distributed.get_rank,
            get_world_size=torch.distributed.get_world_size, new_group=torch.distributed.new_group)

    def arguments(self, launch, folder, rank=0):
        from megatron import arguments
        argv = launch["argv"]
        program = next(i for i, word in enumerate(argv) if word.endswith(".py"))
        argv = [os.path.join(folder, os.path.basename(word))
                if word.endswith("ds_config.json") else word for word in argv[program:]]
        for name in list(os.environ):
            if name.startswith(("CUDA_", "PYTORCH_", "NCCL_")):
                del os.environ[name]
        os.environ.update(launch["env"], RANK=str(rank), WORLD_SIZE=str(launch["num_gpus"]),
                          LOCAL_RANK=str(rank % 8))
        sys.argv = argv
        args = arguments.parse_args()
        return arguments.validate_args(args, {"tokenizer_type": "GPT2BPETokenizer"})

    def groups(self, args):
        from megatron.core import parallel_state as mpu
        mpu.initialize_model_parallel(
            args.tensor_model_parallel_size, args.pipeline_model_parallel_size,
            args.ds_sequence_parallel_size, args.virtual_pipeline_model_parallel_size,
            args.pipeline_model_parallel_split_rank,
            use_distributed_optimizer=args.use_distributed_optimizer)
        return mpu

    def prepare(self, launch):
        pass

    def check(self, launch, stage):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "ds_config.json"), "w", encoding="utf-8") as file:
                file.write(launch["files"]["ds_config.json"])
            self.check_in(launch, folder, stage)

    def check_in(self, launch, folder, stage):
        stage("arguments")
        self.machine(launch, 0)
        args = self.arguments(launch, folder)
        stage("groups")
        mpu = self.groups(args)
        stage("config")
        from deepspeed.runtime.config import DeepSpeedConfig
        config = json.loads(launch["files"]["ds_config.json"])
        DeepSpeedConfig(config, mpu if args.no_pipeline_parallel else self.grid(mpu))
        stage("model")
        for rank in self.ranks(mpu):
            if rank:
                mpu.destroy_model_parallel()
                self.machine(launch, rank)
                args = self.arguments(launch, folder, rank)
                self.groups(args)
            self.model(args, config, mpu)
        stage("all")

    def grid(self, mpu):
        """What a pipelined model hands DeepSpeed in place of mpu (PipelineModule.mpu)."""
        from deepspeed.runtime.pipe.topology import PipelineParallelGrid, \
            PipeModelDataParallelTopology
        return PipelineParallelGrid(topology=PipeModelDataParallelTopology(
            num_pp=mpu.get_pipeline_model_parallel_world_size(),
            num_mp=mpu.get_tensor_model_parallel_world_size(),
            num_dp=mpu.get_data_parallel_world_size()))

    def ranks(self, mpu):
        """One rank of the first and one of the last stage."""
        stages = mpu.get_pipeline_model_parallel_group().ranks
        return sorted({stages[0], stages[-1]})

    def model(self, args, config, mpu):
        from megatron import global_vars
        from megatron.core import tensor_parallel
        from megatron.core.enums import ModelType
        import pretrain_gpt
        tensor_parallel.model_parallel_cuda_manual_seed(args.seed)
        args.padded_vocab_size = 51200
        args.deepspeed_config_dict, args.rank = config, self.torch.distributed.get_rank()
        args.model_type = ModelType.encoder_or_decoder
        global_vars._GLOBAL_ARGS = args
        self.deepspeed.zero.Init = standins.Instance  # it only replaces tensors
        pretrain_gpt.model_provider(mpu.is_pipeline_first_stage(), mpu.is_pipeline_last_stage())
