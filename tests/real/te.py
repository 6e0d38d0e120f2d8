"""Transformer Engine's Python, over stand-ins for PyTorch and for its own C++ and CUDA.

Its modules construct, with all that their constructors check; quantizer() and attention_over_cp()
then ask what its forward would ask of the tensors of one step. Kernels are not there, so nothing is
computed.
"""
import os
import sys
import types

import torch_standin

VERSION = "2.9.0"
# Its compiled half, and what it imports only to export models or to debug.
STAND_INS = {"transformer_engine_torch": None, "transformer_engine.pytorch.onnx_extensions": None,
             "flash_attn": None, "flash_attn_3": None, "flash_attn_2_cuda": None,
             "flash_attn_interface": None, "onnxscript": None, "nvdlfw_inspect": None}


def load(checkout):
    """Imports transformer_engine.pytorch of the checkout; returns the root of its sources."""
    root = os.path.abspath(checkout) + os.sep
    os.environ["NVTE_PROJECT_BUILDING"] = "1"  # no shared library is looked for
    package = types.ModuleType("transformer_engine")
    package.__path__, package.__version__ = [root + "transformer_engine"], VERSION
    sys.modules["transformer_engine"] = package
    import transformer_engine.common as common
    common.load_framework_extension = lambda *_: None
    package.common = common
    import transformer_engine.pytorch as pytorch
    package.pytorch = pytorch
    import transformer_engine_torch as compiled  # pylint: disable=import-error
    import transformer_engine.pytorch.cpp_extensions as extensions
    extensions.__getattr__ = lambda name: getattr(compiled, name)  # of `import *`
    compiled.get_cudnn_version = lambda: 91500  # 9.15.0
    compiled.get_cublasLt_version = lambda: 130000
    return root


def quantizer(recipe):
    """The quantizer of the activations of a recipe, without what its kernels need."""
    from transformer_engine.pytorch.tensor.float8_blockwise_tensor import Float8BlockQuantizer
    from transformer_engine.pytorch.tensor.float8_tensor import Float8Quantizer
    from transformer_engine.pytorch.tensor.mxfp8_tensor import MXFP8Quantizer
    from transformer_engine.pytorch.tensor.nvfp4_tensor import NVFP4Quantizer
    made = {"blockwise": Float8BlockQuantizer, "mxfp8": MXFP8Quantizer,
            "nvfp4": NVFP4Quantizer}.get(recipe, Float8Quantizer)
    bare = made.__new__(made)
    bare.block_len = 128  # of Float8BlockQuantizer
    bare.rowwise_usage = bare.columnwise_usage = False
    return bare


class Within(Exception):
    """The checks at the start of a forward are passed: what follows works on tensors."""


def within(*_, **__):
    raise Within


def starts(forward, *args, **kwargs):
    """Calls a forward for what it asks before it works on tensors, which have no values here."""
    try:
        forward(*args, **kwargs)
    except (Within, TypeError, AttributeError):
        pass


def attention_over_cp(module, args):
    """What Transformer Engine's attention asks where a sequence is split over ranks.

    module: a DotProductAttention that was constructed with a group of cp ranks
    """
    from transformer_engine.pytorch.attention.dot_product_attention import context_parallel
    heads = module.num_attention_heads // module.tp_size
    tokens = args.seq_length // args.context_parallel_size
    sizes = module.hidden_size_per_attention_head_k, module.hidden_size_per_attention_head_v
    query, key, value = (
        torch_standin.Tensor(args.micro_batch_size, tokens, number, size)
        for number, size in ((heads, sizes[0]), (module.num_gqa_groups_per_partition, sizes[0]),
                             (module.num_gqa_groups_per_partition, sizes[1])))

    for name in ("AttnFuncWithCPAndKVP2P", "AttnFuncWithCPAndKVAllGather",
                 "AttnFuncWithCPAndQKVOA2A"):
        made = getattr(context_parallel, name)
        made.apply = lambda *all_args, made=made: made.forward(types.SimpleNamespace(), *all_args)
    for name in ("flash_attn_a2a_communicate", "flash_attn_p2p_communicate",
                 "get_seq_chunk_ids_for_reordering_before_attn", "get_cu_seqlens_on_cp_rank"):
        setattr(context_parallel, name, within)
    context_parallel.dist_group_type = object
    context_parallel.fa_utils.v2_3_plus = True  # FlashAttention 2.3 or later is installed
    starts(context_parallel.attn_forward_func_with_cp, True, query, key, value, None, None, tokens,
           tokens, None, None, 0.0, module.cp_group, module.cp_global_ranks, module.cp_stream,
           module.cp_comm_type, attn_mask_type="causal", window_size=module.window_size,
           softmax_type=module.softmax_type,
           use_fused_attention=module.softmax_type != "vanilla" or sizes[0] != sizes[1])
