"""Transformer Engine's Python, over stand-ins for PyTorch and for its own C++ and CUDA.

Its modules construct, with all that their constructors check; shapes() then asks what its forward
would ask of the tensors of one step. Kernels are not there, so nothing is computed.
"""
import os
import sys
import types

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
    return bare
