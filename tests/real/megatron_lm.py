"""Megatron-LM's own checks of one launch, without PyTorch and without a GPU.

In the order in which a job meets them, each by Megatron-LM's code:
  arguments  parse_args, validate_args (megatron/training/arguments.py)
  groups     initialize_model_parallel (megatron/core/parallel_state.py), which only counts here
  configuration  TransformerConfig or MLATransformerConfig, with its __post_init__
  model      get_model (megatron/training/training.py): the layers of a rank of the first and of
             the last stage with all that their constructors check, Transformer Engine's among
             them, and their wrapping for data parallelism
  shapes     Transformer Engine's checks of the shapes of 8-bit products, of those layers
  attention  its checks of an attention whose sequence is split over ranks
  experts    a layer of experts up to its router
  optimizer  OptimizerConfig, get_megatron_optimizer
  schedule   get_forward_backward_func up to the first forward (megatron/core/pipeline_parallel)
"""
import argparse
import collections
import dataclasses
import logging
import os
import sys

import groups
import standins
import te
import torch_standin

VERSIONS = {"torch": "2.9.0", "triton": "3.5.0", "apex": None, "einops": None,
            "numpy.dtypes": None, "onnx": None, "tensorstore": None, "zarr": None, "transformers": "4.57.0",
            "wandb": None, "tqdm": None, "psutil": None, "regex": None,
            "sentencepiece": None, "tiktoken": None, "scipy": None, "sympy": None, "deep_ep": None,
            "nvidia_resiliency_ext": None, "emerging_optimizers": None,
            "fused_weight_gradient_mlp_cuda": None}


OPTIMIZER_WORDS = ("optimizer", "fsdp", "sharding", "overlap", "grad", "exp-avg", "bf16", "fp16",
                   "fp8", "fp4", "num-experts", "graph", "untie", "mtp")
DEEP_LAUNCHES = 5
# Its sharded optimizer walks over parameters x buckets: more than this would take minutes.
OPTIMIZED_PARAMETERS = 6000


def capability(gpu):
    """CUDA's compute capability, from NVIDIA's list of its GPUs; of AMD's, what ROCm answers."""
    for prefix, version in (("v100", (7, 0)), ("a100", (8, 0)), ("a800", (8, 0)), ("h", (9, 0)),
                            ("gh200", (9, 0)), ("l40s", (8, 9)), ("rtx4090", (8, 9)),
                            ("rtx-pro-6000", (12, 0)), ("b200", (10, 0)), ("b300", (10, 3)),
                            ("gb200", (10, 0)), ("gb300", (10, 3)), ("mi250", (9, 0)),
                            ("mi355", (9, 5)), ("mi3", (9, 4))):
        if gpu.startswith(prefix):
            return version
    raise KeyError(gpu)


class Reached(Exception):
    """The first forward: everything before it was accepted."""


class ShardedModule(torch_standin.Module):
    """Megatron-FSDP's inner module, which works on tensors: the adapter's checks come before."""

    def __init__(self, module, **_):
        super().__init__()
        self.module = module

    def __getattr__(self, name):
        if name.startswith("_") or name == "build_schedule_plan":  # which is the model's own
            raise AttributeError(name)
        return standins.Instance()


class Megatron:
    """A checkout of Megatron-LM, imported once."""

    def __init__(self, checkout, te_checkout):
        self.root = os.path.abspath(checkout) + os.sep
        standins.stand_in_for({**VERSIONS, **te.STAND_INS})
        self.torch = torch_standin.install()
        import torch.distributed
        import torch.distributed.device_mesh
        torch.distributed.DeviceMesh = torch.distributed.device_mesh.DeviceMesh = groups.Mesh
        import einops  # pylint: disable=import-error
        einops.rearrange = torch_standin.rearrange
        logging.disable(logging.CRITICAL)
        self.te_root = te.load(te_checkout)
        sys.path.insert(0, self.root)
        import megatron.training  # pylint: disable=import-error,unused-import
        import megatron.core.parallel_state
        import megatron.core.distributed.fsdp.mcore_fsdp_adapter as fsdp
        import gpt_builders
        import model_provider
        fsdp.MegatronFSDP = ShardedModule
        self.seen, self.deep, self.quick = collections.Counter(), True, False
        self.products = 0

    def roots(self):
        return [self.root, self.te_root]

    def machine(self, launch, rank):
        torch, (major, minor) = self.torch, capability(launch["gpu"])
        torch.cuda.get_device_capability = lambda *_: (major, minor)
        torch.cuda.get_device_properties = lambda *_: argparse.Namespace(major=major, minor=minor)
        torch.cuda.device_count = lambda: 8
        return groups.fill(torch, launch["num_gpus"], rank)

    def arguments(self, launch, rank=0):
        from megatron.training import arguments
        argv = launch["argv"]
        program = next(i for i, word in enumerate(argv) if word.endswith(".py"))
        for name in list(os.environ):
            if name.startswith(("CUDA_", "PYTORCH_", "TORCH_", "NCCL_", "NVTE_")):
                del os.environ[name]
        os.environ.update(launch["env"], RANK=str(rank), WORLD_SIZE=str(launch["num_gpus"]))
        sys.argv = argv[program:]
        return arguments.validate_args(arguments.parse_args(),
                                       {"tokenizer_type": "GPT2BPETokenizer"})

    def groups(self, args):
        from megatron.core import parallel_state as mpu
        mpu.initialize_model_parallel(
            args.tensor_model_parallel_size, args.pipeline_model_parallel_size,
            args.virtual_pipeline_model_parallel_size,
            context_parallel_size=args.context_parallel_size,
            hierarchical_context_parallel_sizes=args.hierarchical_context_parallel_sizes,
            expert_model_parallel_size=args.expert_model_parallel_size,
            num_distributed_optimizer_instances=args.num_distributed_optimizer_instances,
            expert_tensor_parallel_size=args.expert_tensor_parallel_size,
            order="tp-cp-ep-pp-dp" if args.use_tp_pp_dp_mapping else "tp-cp-ep-dp-pp",
            create_gloo_process_groups=args.enable_gloo_process_groups,
            high_priority_stream_groups=args.high_priority_stream_groups)

    def configuration(self, args):
        from megatron.training.arguments import core_transformer_config_from_args
        core_transformer_config_from_args(args)

    def model(self, args):
        """All chunks of this rank, as pretrain_gpt.py builds and wraps them."""
        from functools import partial
        from megatron.core import tensor_parallel
        from megatron.core.enums import ModelType
        from megatron.training import global_vars, training
        from megatron.training.tokenizer.tokenizer import _vocab_size_with_padding
        from gpt_builders import gpt_builder
        from model_provider import model_provider
        tensor_parallel.model_parallel_cuda_manual_seed(
            args.seed, args.te_rng_tracker, args.inference_rng_tracker,
            use_cudagraphable_rng=args.cuda_graph_impl != "none")
        args.padded_vocab_size = _vocab_size_with_padding(args.vocab_size + 1, args)
        global_vars.set_args(args)
        return training.get_model(partial(model_provider, gpt_builder),
                                  ModelType.encoder_or_decoder, wrap_with_ddp=self.deep)

    def shapes(self, args, model):
        """What Transformer Engine's products ask of their shapes in 8 bits, each shape once."""
        import transformer_engine.pytorch as te_pytorch  # pylint: disable=import-error
        from transformer_engine.pytorch.utils import assert_dim_for_all_gather, \
            assert_dim_for_fp8_exec
        if not (args.fp8 or args.fp4):
            return
        quantizer = te.quantizer("nvfp4" if args.fp4 else args.fp8_recipe)
        tokens = args.seq_length // args.context_parallel_size * args.micro_batch_size
        blocks = "nvfp4" if args.fp4 else args.fp8_recipe
        asked = set()
        for module in (module for chunk in model for module in chunk.modules()):
            plain = isinstance(module, (te_pytorch.Linear, te_pytorch.LayerNormLinear))
            if not plain and not isinstance(module, te_pytorch.GroupedLinear):
                continue
            split = module.sequence_parallel and module.parallel_mode == "column"
            rows = tokens // args.tensor_model_parallel_size if split else tokens
            for weight in module.parameters(recurse=False):
                if weight.dim() != 2 or (plain, rows, weight.shape) in asked:
                    continue
                asked.add((plain, rows, weight.shape))
                if plain:
                    tensor = torch_standin.Tensor(rows, weight.shape[-1])
                    assert_dim_for_fp8_exec(tensor, weight)
                    assert_dim_for_all_gather(tensor, split, quantizer)
                if blocks in ("mxfp8", "nvfp4"):
                    te.starts(quantizer.make_empty, (tokens, weight.shape[-1]))
                    te.starts(quantizer.make_empty, tuple(weight.shape))
        self.products += len(asked)

    def attention(self, args, model):
        """What Transformer Engine's attention asks of context parallelism, each kind once."""
        import transformer_engine.pytorch as te_pytorch  # pylint: disable=import-error
        if args.context_parallel_size == 1:
            return
        kinds = {}
        for module in (module for chunk in model for module in chunk.modules()):
            if isinstance(module, te_pytorch.DotProductAttention):
                kinds.setdefault((module.window_size, module.softmax_type), module)
        for module in kinds.values():
            te.attention_over_cp(module, args)

    def experts(self, args, model):
        """A layer of experts up to its router."""
        from megatron.core.transformer.moe.moe_layer import MoELayer
        layer = next((module for chunk in model for module in chunk.modules()
                      if isinstance(module, MoELayer)), None)
        if layer:
            router, layer.router = layer.router, te.within
            layer.moe_layer_recompute = False  # PyTorch's checkpoint would call no forward
            te.starts(layer.forward, torch_standin.Tensor(
                args.seq_length, args.micro_batch_size, args.hidden_size))
            layer.router = router

    def optimizer(self, args, model):
        from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
        if sum(1 for chunk in model for _ in chunk.parameters()) > OPTIMIZED_PARAMETERS:
            return
        names = [field.name for field in dataclasses.fields(OptimizerConfig)]
        config = OptimizerConfig(**{name: getattr(args, name) for name in names
                                    if hasattr(args, name)})
        if "muon" not in config.optimizer:
            get_megatron_optimizer(config, model,
                                   use_gloo_process_groups=args.enable_gloo_process_groups)

    def schedule(self, args, model):
        """The schedule up to its first forward."""
        from megatron.core import num_microbatches_calculator as calculator
        from megatron.core.pipeline_parallel import get_forward_backward_func

        def forward_step(*_, **__):
            raise Reached

        calculator.init_num_microbatches_calculator(
            args.rank, args.rampup_batch_size, args.global_batch_size, args.micro_batch_size,
            args.data_parallel_size, args.decrease_batch_size_if_needed)
        try:
            get_forward_backward_func()(
                forward_step_func=forward_step, data_iterator=[None] * len(model), model=model,
                num_microbatches=calculator.get_num_microbatches(), seq_length=args.seq_length,
                micro_batch_size=args.micro_batch_size,
                decoder_seq_length=args.decoder_seq_length, forward_only=False)
        except Reached:
            pass

    def ranks(self, args):
        """One rank of the first and one of the last stage."""
        from megatron.core import parallel_state as mpu
        stages = mpu.get_pipeline_model_parallel_group().ranks
        return sorted({stages[0], stages[-1]})

    def prepare(self, launch):
        """Wraps and optimizes at the first launches of each set of options of these alone: both
        ask of the options only, and cost as much as the rest."""
        options = tuple(word for word in launch["argv"] if word.startswith("--") and
                        any(part in word for part in OPTIMIZER_WORDS))
        self.seen[options] += 1
        self.deep = self.seen[options] <= DEEP_LAUNCHES

    def check(self, launch, stage):
        stage("arguments")
        self.machine(launch, 0)
        args = self.arguments(launch)
        stage("groups")
        self.groups(args)
        stage("configuration")
        self.configuration(args)
        if self.quick:
            return
        for rank in self.ranks(args):
            if rank:
                from megatron.core import parallel_state as mpu
                from megatron.training import global_vars
                mpu.destroy_model_parallel()
                global_vars.unset_global_variables()
                self.machine(launch, rank)
                args = self.arguments(launch, rank)
                self.groups(args)
            stage("model")
            model = self.model(args)
            stage("shapes")
            self.shapes(args, model)
            stage("attention")
            self.attention(args, model)
            stage("experts")
            self.experts(args, model)
            if rank == 0:
                stage("optimizer")
                if self.deep:
                    self.optimizer(args, model)
                stage("schedule")
                self.schedule(args, model)
        stage("all")
