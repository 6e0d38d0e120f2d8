"""What mixers.py calls: the mixers of hybrid models with inputs for them, and a stand-in for Triton's autotuner."""

import functools
import importlib
import itertools
import json
import math
import os
import queue
import sys
import threading
import traceback
import zlib

import torch
import torch.nn.functional as F

BF16 = torch.bfloat16
SHAPES = ((4, 2048), (1, 32768), (1, 2048), (16, 2048), (4, 32768), (16, 4096), (4, 4096))  # batch, sequence
FEW = ((4, 2048), (1, 32768), (16, 4096))


def normal(*shape, scale=1.0, dtype=BF16):
    return torch.randn(*shape, dtype=dtype, device="cuda") * scale


@functools.cache
def kernel(module, name):
    return getattr(importlib.import_module(module), name)


# Mixers: each gives inputs, all with gradients, and a function of them.

def gdn(batch, sequence, key_heads=16, value_heads=32):
    call = kernel("fla.ops.gated_delta_rule", "chunk_gated_delta_rule")
    q, k, v = (normal(batch, sequence, heads, 128) for heads in (key_heads, key_heads, value_heads))
    decay = -F.softplus(normal(batch, sequence, value_heads, dtype=torch.float32))
    beta = normal(batch, sequence, value_heads).sigmoid()
    return (q, k, v, decay, beta), lambda *x: call(*x, use_qk_l2norm_in_kernel=True)[0]


def kda(batch, sequence, heads=32, safe_gate=False):
    call = kernel("fla.ops.kda", "chunk_kda")
    q, k, v, gate = (normal(batch, sequence, heads, 128) for _ in range(4))
    beta = normal(batch, sequence, heads)
    log_decay = torch.rand(heads, device="cuda") * 2.7
    bias = normal(heads * 128, dtype=torch.float32) - 4
    safe = {"safe_gate": True, "lower_bound": -5.0} if safe_gate else {}
    return (q, k, v, gate, beta, log_decay, bias), lambda q, k, v, gate, beta, log_decay, bias: call(
        q, k, v, gate, beta, A_log=log_decay, dt_bias=bias, use_qk_l2norm_in_kernel=True, use_gate_in_kernel=True,
        use_beta_sigmoid_in_kernel=True, state_v_first=True, **safe)[0]


def mamba2(batch, sequence, heads=128, groups=8, chunk=128):
    call = kernel("mamba_ssm.ops.triton.ssd_combined", "mamba_chunk_scan_combined")
    b, c = (normal(batch, sequence, groups, 128) for _ in range(2))
    a = -1 - 15 * torch.rand(heads, device="cuda")
    d, bias = (normal(heads, dtype=torch.float32) for _ in range(2))
    return (normal(batch, sequence, heads, 64), normal(batch, sequence, heads), a, b, c, d, bias - 4), \
        lambda x, dt, a, b, c, d, bias: call(x, dt, a, b, c, chunk, D=d, dt_bias=bias, dt_softplus=True)


def conv(batch, sequence, channels=8192):
    call = kernel("fla.modules.conv.causal_conv1d", "causal_conv1d")
    return (normal(batch, sequence, channels), normal(channels, 4)), \
        lambda x, weight: call(x, weight, None, activation="silu")[0]


def conv_pytorch(batch, sequence, channels=8192):
    return (normal(batch, channels, sequence), normal(channels, 1, 4)), lambda x, weight: F.silu(
        F.conv1d(x, weight, None, padding=3, groups=channels)[..., :sequence])


def norm(batch, sequence, heads=32):
    call = kernel("fla.modules.fused_norm_gate", "rms_norm_gated")
    return (normal(batch, sequence, heads, 128), normal(batch, sequence, heads, 128), normal(128)), \
        lambda x, gate, weight: call(x, gate, weight, None, "swish")


def norm_mamba(batch, sequence, width=8192, groups=8):
    call = kernel("mamba_ssm.ops.triton.layernorm_gated", "rmsnorm_fn")
    return (normal(batch, sequence, width), normal(batch, sequence, width), normal(width)), \
        lambda x, gate, weight: call(x, weight, None, z=gate, eps=1e-5, group_size=width // groups,
                                     norm_before_gate=False)


def gla(batch, sequence, heads=64):
    call = kernel("fla.ops.simple_gla", "chunk_simple_gla")
    decay = torch.arange(heads, device="cuda") * (-4.0 / heads)
    return tuple(normal(batch, sequence, heads, 128) for _ in range(3)), \
        lambda q, k, v: call(q, k, v, g_gamma=decay)[0]


def rwkv7(batch, sequence, heads=64):
    call = kernel("fla.ops.rwkv7", "chunk_rwkv7")
    r, k, v, w, rate = (normal(batch, sequence, heads, 64) for _ in range(5))
    key = F.normalize(normal(batch, sequence, heads, 64), dim=-1)
    return (r, -0.6065 * w.sigmoid(), k, v, -key, key * rate.sigmoid()), lambda *x: call(*x)[0]


def nsa(batch, sequence, heads=64, key_value_heads=4):
    call = kernel("fla.ops.nsa", "parallel_nsa")
    q = normal(batch, sequence, heads, 128)
    k, v = (normal(batch, sequence, key_value_heads, 128) for _ in range(2))
    gates = [normal(batch, sequence, heads).sigmoid() for _ in range(2)]
    return (q, k, v, *gates), lambda q, k, v, compressed, selected: call(
        q, k, v, g_cmp=compressed, g_slc=selected, block_counts=16, block_size=64)


def attention_inputs(batch, sequence, head_dim=64):
    return tuple(normal(batch, sequence, 16, head_dim).transpose(1, 2) for _ in range(3)), \
        F.scaled_dot_product_attention


# Steps of one token: each gives num_copies states and a function of the copy, and the state's bytes.

def step_gdn(batch, copies):
    call = kernel("fla.ops.gated_delta_rule", "fused_recurrent_gated_delta_rule")
    (q, k, v, decay, beta), _ = gdn(batch, 1)
    states = [normal(batch, 32, 128, 128, dtype=torch.float32) for _ in range(copies)]
    return lambda i: call(q, k, v, decay, beta=beta, initial_state=states[i], output_final_state=True,
                          use_qk_l2norm_in_kernel=True)


def step_kda(batch, copies):
    call = kernel("fla.ops.kda", "fused_recurrent_kda")
    (q, k, v, gate, beta, log_decay, bias), _ = kda(batch, 1)
    states = [normal(batch, 32, 128, 128, dtype=torch.float32) for _ in range(copies)]
    return lambda i: call(q, k, v, gate, beta, A_log=log_decay, dt_bias=bias, initial_state=states[i],
                          output_final_state=True, use_qk_l2norm_in_kernel=True, use_gate_in_kernel=True,
                          use_beta_sigmoid_in_kernel=True, state_v_first=True)


def step_mamba2(batch, copies):
    call = kernel("mamba_ssm.ops.triton.selective_state_update", "selective_state_update")
    x, b, c = normal(batch, 128, 64), normal(batch, 8, 128), normal(batch, 8, 128)
    step = normal(batch, 128)[:, :, None].expand(-1, -1, 64)
    a = -torch.rand(128, device="cuda")[:, None, None].expand(-1, 64, 128)
    d, bias = (torch.rand(128, device="cuda")[:, None].expand(-1, 64) for _ in range(2))
    states = [normal(batch, 128, 64, 128, dtype=torch.float32) for _ in range(copies)]
    return lambda i: call(states[i], x, step, a, b, c, D=d, dt_bias=bias, dt_softplus=True)


MIXERS = {  # part: (mixer, options, shapes), the first of a mixer before its variants
    "gdn": [(gdn, {}, SHAPES)],
    "mamba2": [(mamba2, {}, SHAPES)],
    "kda": [(kda, {}, SHAPES)],
    "conv": [(conv, {}, SHAPES[:5]), (conv_pytorch, {}, SHAPES[:2])],
    "norm": [(norm, {}, SHAPES[:5]), (norm_mamba, {}, SHAPES[:5])],
    "gla": [(gla, {}, SHAPES[:5])],
    "rwkv7": [(rwkv7, {}, SHAPES[:1])],
    "nsa": [(nsa, {}, SHAPES[:1])],
    "variants": [
        *((gdn, {"key_heads": 16 // tp, "value_heads": 32 // tp}, SHAPES[:2]) for tp in (8, 2, 4)),
        (kda, {"safe_gate": True}, FEW),
        *((kda, {"heads": 32 // tp}, SHAPES[:2]) for tp in (8, 2)),
        (gdn, {"key_heads": 32, "value_heads": 32}, SHAPES[:2]),
        *((conv, {"channels": channels}, SHAPES[:2]) for channels in (1024, 4096, 6144, 10240)),
        (gla, {"heads": 8}, SHAPES[:2])],
    "mamba2_variants": [(mamba2, {"heads": 64}, FEW), (mamba2, {"chunk": 256}, FEW),
                        (mamba2, {"heads": 16, "groups": 1}, SHAPES[:2])],
}
STEPS = {"gdn": step_gdn, "kda": step_kda, "mamba2": step_mamba2}
COMPILED = ("gdn", "mamba2", "kda", "conv", "norm", "gla", "decode", "rwkv7", "nsa", "mamba2_variants")


class Tuner:
    """Stands in for Triton's autotuner: fewer configurations, one choice a kernel and mixer; or only compiles."""

    def __init__(self, limit, worker=None, workers=1):
        self.limit, self.worker, self.workers = limit, worker, workers
        self.mixer, self.chosen, self.found = "", {}, {}
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.jit import JITFunction
        tuner = self
        Autotuner.run = lambda self, *args, **kwargs: tuner.run(self, args, kwargs)
        self.launch = JITFunction.run
        if worker is not None:
            JITFunction.run = lambda self, *args, **kwargs: tuner.compile(self, args, kwargs)

    def candidates(self, tuned, kwargs):
        """The first few: all block sizes before further numbers of warps and stages, 4 and 3 first."""
        name = f"{self.mixer} {tuned.base_fn.__name__}"
        if name in self.chosen:
            if name not in self.found:
                self.found[name] = [c for c in tuned.configs if str(c) == self.chosen[name]] or tuned.configs[:1]
            return self.found[name]
        groups = {}
        for config in sorted(tuned.prune_configs(kwargs), key=lambda c: 0.4 * abs(math.log2(c.num_warps) - 2)
                             + 0.5 * abs(c.num_stages - 3)):
            groups.setdefault(str(config.kwargs), []).append(config)
        ranks = itertools.zip_longest(*groups.values())
        return [c for rank in ranks for c in rank if c is not None][:self.limit]

    def run(self, tuned, args, kwargs):
        tuned.nargs = dict(zip(tuned.arg_names, args))
        if "NB" in kwargs:
            kwargs["NB"] = 1  # a key of the autotuner's that no kernel reads
        if tuned.base_fn.__name__.startswith("chunk_local_cumsum"):
            kwargs["B"] = 1  # not read either
        configs = self.candidates(tuned, kwargs)
        if self.worker is not None:
            for config in configs:
                tuned.fn.run(*args, **kwargs, **config.all_kwargs())
        elif len(configs) > 1:
            configs = [self.fastest(tuned, args, kwargs, configs)]
        config = tuned.best_config = configs[0]
        if self.worker is not None:
            return None
        self.chosen.setdefault(f"{self.mixer} {tuned.base_fn.__name__}", str(config))
        if config.pre_hook is not None:
            config.pre_hook({**tuned.nargs, **kwargs, **config.all_kwargs()})
        tuned.nargs = {}  # or the arrays of this call would live until the next
        return tuned.fn.run(*args, **kwargs, **config.all_kwargs())

    def fastest(self, tuned, args, kwargs, configs):
        tuned.do_bench = bench
        times = [tuned._bench(*args, config=config, **kwargs)[0] for config in configs]
        best = configs[times.index(min(times))]
        tuned.pre_hook({**tuned.nargs, **kwargs, **best.all_kwargs()}, reset_only=True)
        return best

    def compile(self, function, args, kwargs):
        """Compiles the kernel if it is this worker's, and never launches it."""
        params = {param.name: param for param in function.params}
        key = [function.__name__]
        for name, value in {**dict(zip(function.arg_names, args)), **kwargs}.items():
            param = params.get(name)
            if hasattr(value, "dtype"):
                key.append((name, str(value.dtype)))
            elif type(value) is int and param is not None and not param.is_constexpr:
                key.append((name, not param.do_not_specialize and (value == 1, value % 16 == 0)))
            elif name not in ("grid", "warmup"):
                key.append((name, repr(value)))
        if zlib.crc32(repr(key).encode()) % self.workers == self.worker:
            try:
                self.launch(function, *args, **{**kwargs, "warmup": True})
            except Exception as error:
                print(f"failed {function.__name__}: {str(error)[:200]!r}", flush=True)


def bench(call, quantiles=None):
    call()
    torch.cuda.synchronize()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(1_000_000)  # the host queues the calls meanwhile
    begin.record()
    for _ in range(5):
        call()
    end.record()
    torch.cuda.synchronize()
    return [begin.elapsed_time(end)] * 3


def generalize():
    """Numbers that only decode a block's place are no reason to compile anew for 1 and for multiples of 16."""
    from triton.runtime.jit import JITFunction, KernelInterface
    for name, module in list(sys.modules.items()):
        places = {"fla": ("B", "BS"), "mamba_ssm": ("batch", "nchunks", "rows_per_program")}.get(name.split(".")[0])
        if places is None:
            continue
        for value in list(vars(module).values()):
            while isinstance(value, KernelInterface) and not isinstance(value, JITFunction):
                value = value.fn
            for param in value.params if isinstance(value, JITFunction) else ():
                if param.name in places and not param.is_constexpr:
                    param.do_not_specialize = True


def load(path):
    """Imports the packages, without what slows their start: other back ends, and marks for torch.compile."""
    sys.path.insert(0, path)
    os.environ["FLA_DISABLE_BACKEND_DISPATCH"] = "1"
    torch.compiler.disable = lambda function=None, **_: function if function else lambda f: f
    for module in ("fla.ops.gated_delta_rule", "fla.ops.kda", "fla.ops.simple_gla", "fla.ops.rwkv7",
                   "fla.modules.conv.causal_conv1d", "fla.modules.conv.triton", "fla.modules.fused_norm_gate",
                   "mamba_ssm.ops.triton.ssd_combined", "mamba_ssm.ops.triton.selective_state_update"):
        try:
            importlib.import_module(module)
        except Exception:
            traceback.print_exc()
    if "fla.ops.common.chunk_o" in sys.modules:  # it refuses versions of Triton that miscompile a gradient
        sys.modules["fla.ops.common.chunk_o"].TRITON_ABOVE_3_7_1 = True
    generalize()


def leaves(make, batch, sequence, options):
    inputs, call = make(batch, sequence, **options)
    return [x.detach().requires_grad_() for x in inputs], call


def worker(args):
    """Compiles each part's first shape, then, when told what the first shapes chose, the other cases."""
    load(args.path)
    tuner = Tuner(args.configs, args.worker, args.workers)
    orders = queue.SimpleQueue()
    threading.Thread(target=read_orders, args=(orders,), daemon=True).start()
    for part in args.parts:
        for make, options, shapes in MIXERS.get(part, ()):
            if make is not conv_pytorch:
                walk(args, tuner, make, options, shapes[0][0])
        for make in STEPS.values() if part == "decode" else ():
            with torch.no_grad():
                guarded(args, lambda: make(16, 1)(0))
        print("done", part, flush=True)
        while not orders.empty():
            obey(args, tuner, orders.get())
    while True:
        obey(args, tuner, orders.get())


def read_orders(orders):
    for line in sys.stdin:
        orders.put(json.loads(line))
    os._exit(0)  # nobody listens any more


def guarded(args, call):
    try:
        call()
    except Exception as error:
        if args.worker == 0:
            print(f"failed in a worker: {str(error)[:200]!r}", flush=True)


def walk(args, tuner, make, options, batch):
    def once():
        inputs, call = leaves(make, batch, 512, options)
        y = call(*inputs)
        torch.autograd.grad(y, inputs, torch.empty_like(y), allow_unused=True)
    tuner.mixer = make.__name__
    guarded(args, once)


def obey(args, tuner, order):
    tuner.chosen.update(order)
    names = {name.split()[0] for name in order}
    for make, options, batch in dict.fromkeys(
            (make, tuple(options.items()), batch) for part in MIXERS.values() for make, options, shapes in part
            for batch, _ in shapes if make.__name__ in names):
        walk(args, tuner, make, dict(options), batch)
