"""PyTorch as far as constructors go: tensors that have a shape and no values, and modules.

Everything else of PyTorch is a plain stand-in (standins.py).
"""
import importlib
import math
import re

import numpy

import standins

DTYPES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4,
          "int16": 2, "int8": 1, "uint8": 1, "bool": 1, "float8_e4m3fn": 1, "float8_e5m2": 1,
          "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "float4_e2m1fn_x2": 1, "complex64": 8}
SAME_SHAPE = """abs add add_ all_reduce bfloat16 bool clamp clone contiguous copy_ cos cpu cuda detach
detach_ div div_ double exp fill_ float half int log long masked_fill mul mul_ neg normal_ requires_grad_
record_stream sin sigmoid softmax sqrt sub sub_ to tril triu trunc_normal_ uniform_ zero_
cumsum expand_as outer roll""".split()


class Dtype:
    def __init__(self, name):
        self.name, self.itemsize = name, DTYPES[name]
        self.is_floating_point = "float" in name

    def __repr__(self):
        return "torch." + self.name


DTYPE = {name: Dtype(name) for name in DTYPES}


class Device:
    def __init__(self, name="cuda", index=0):
        self.type, self.index = str(name).split(":")[0], index

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


class Size(tuple):
    def numel(self):
        return math.prod(self)

    def __getitem__(self, index):
        part = super().__getitem__(index)
        return Size(part) if isinstance(part, tuple) else part


class Tensor:
    """A shape and attributes that others set; no values."""

    def __init__(self, *shape, dtype=None, device=None, requires_grad=False):
        self.shape, self.requires_grad = Size(shape), requires_grad
        self.dtype = dtype or DTYPE["float32"]
        self.device = device if isinstance(device, Device) else Device()
        self.grad, self.is_cuda, self.layout, self._base = None, True, None, None
        self.is_meta, self.is_leaf = False, True
        self.grad_fn = standins.Instance()

    def size(self, dim=None):
        return self.shape if dim is None else self.shape[dim]

    def dim(self):
        return len(self.shape)

    ndim = property(dim)

    def numel(self):
        return math.prod(self.shape)

    nelement = numel

    def element_size(self):
        return self.dtype.itemsize

    def stride(self, dim=None):
        strides = [math.prod(self.shape[i + 1:]) for i in range(len(self.shape))]
        return tuple(strides) if dim is None else strides[dim]

    def is_contiguous(self, **_):
        return True

    def data_ptr(self):
        return 0

    def storage_offset(self):
        return 0

    @property
    def data(self):
        return self

    @data.setter
    def data(self, _):
        pass

    def type(self):
        names = {"float32": "Float", "float16": "Half", "bfloat16": "BFloat16", "uint8": "Byte"}
        return f"torch.cuda.{names.get(self.dtype.name, 'Other')}Tensor"

    @property
    def T(self):  # pylint: disable=invalid-name
        return self.like(*reversed(self.shape))

    def ravel(self):
        return self.like(self.numel())

    flatten = ravel

    def tolist(self):
        raise TypeError("a stand-in tensor has no values")

    def like(self, *shape):
        return Tensor(*shape, dtype=self.dtype)

    def view(self, *shape):
        shape = list(shape[0] if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else shape)
        if not all(isinstance(size, int) for size in shape):
            return self
        if -1 in shape:
            shape[shape.index(-1)] = self.numel() // -math.prod(shape)
        return self.like(*shape)

    reshape = view

    def __getitem__(self, index):
        if isinstance(index, slice) and len(self.shape) == 1:
            return self.like(len(range(*index.indices(self.shape[0]))))
        return self

    def __setitem__(self, _, __):
        pass

    def __len__(self):
        return self.shape[0]

    def _same(self, *_, **__):
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _same
    __rtruediv__ = __pow__ = __rpow__ = __neg__ = __invert__ = __and__ = __or__ = _same
    __lt__ = __gt__ = __le__ = __ge__ = _same


for _name in SAME_SHAPE:
    setattr(Tensor, _name, Tensor._same)


class Ranks(Tensor):
    """Whole numbers that a mesh of ranks is made of: the one kind of tensor with values."""

    def __init__(self, values):
        super().__init__(*values.shape, dtype=None)
        self.values = values

    def tolist(self):
        return self.values.tolist()

    def item(self):
        return self.values.item()

    def __iter__(self):
        return (Ranks(part) for part in self.values)

    def __getitem__(self, index):
        part = self.values[index]
        return Ranks(part) if isinstance(part, numpy.ndarray) else int(part)

    def reshape(self, *shape):
        return Ranks(self.values.reshape(*shape))

    view = reshape


def rearrange(tensor, pattern, **sizes):
    """einops.rearrange of a tensor with values."""
    values = tensor.values if isinstance(tensor, Ranks) else tensor
    axes, wanted = ([(inner or outer).split()
                     for inner, outer in re.findall(r"\(([^)]*)\)|(\S+)", side)]
                    for side in pattern.split("->"))
    for group, size in zip(axes, values.shape):
        known = math.prod(sizes.get(name, 1) for name in group)
        for name in group:
            sizes.setdefault(name, size // known)
    names = [name for group in axes for name in group]
    whole = values.reshape([sizes[name] for name in names])
    whole = whole.transpose([names.index(name) for group in wanted for name in group])
    made = whole.reshape([math.prod(sizes[name] for name in group) for group in wanted])
    return Ranks(made) if isinstance(tensor, Ranks) else made


class Parameter(Tensor):
    def __new__(cls, data=None, requires_grad=True):
        if type(data) not in (Tensor, Parameter) and isinstance(data, Tensor):
            return data  # a class of somebody's own, as quantized weights are
        return object.__new__(cls)

    def __init__(self, data=None, requires_grad=True):
        super().__init__(*(data.shape if data is not None else (0,)),
                         dtype=getattr(data, "dtype", None), requires_grad=requires_grad)


class Module:
    """torch.nn.Module: a tree with parameters and buffers."""

    def __init__(self, *_, **__):
        self.__dict__.setdefault("training", True)

    def register_parameter(self, name, parameter):
        setattr(self, name, parameter)

    def register_buffer(self, name, tensor, persistent=True):
        setattr(self, name, tensor)

    def add_module(self, name, module):
        setattr(self, name, module)

    register_module = add_module

    def children(self):
        return [value for value in vars(self).values() if isinstance(value, Module)]

    def modules(self):
        yield self
        for child in self.children():
            yield from child.modules()

    def named_parameters(self, recurse=True, **_):
        for module in self.modules() if recurse else [self]:
            for name, value in vars(module).items():
                if isinstance(value, Parameter):
                    yield name, value

    def parameters(self, recurse=True):
        return (value for _, value in self.named_parameters(recurse))

    def named_modules(self, *_, **__):
        return (("", module) for module in self.modules())

    def named_children(self):
        return ((name, value) for name, value in vars(self).items() if isinstance(value, Module))

    def buffers(self, **_):
        return iter(())

    def named_buffers(self, **_):
        return iter(())

    def _same(self, *_, **__):
        return self

    def _cast(self, name):
        for parameter in self.parameters():
            if parameter.dtype is None or parameter.dtype.is_floating_point:
                parameter.dtype = DTYPE[name]
        return self

    def half(self):
        return self._cast("float16")

    def bfloat16(self):
        return self._cast("bfloat16")

    def float(self):
        return self._cast("float32")

    to = cuda = cpu = train = eval = apply = _apply = _same
    requires_grad_ = zero_grad = to_empty = _same
    register_forward_pre_hook = register_forward_hook = register_full_backward_hook = _same
    register_state_dict_pre_hook = register_load_state_dict_post_hook = _same
    _register_load_state_dict_pre_hook = _register_state_dict_hook = _same


class ModuleList(Module):
    def __init__(self, modules=()):
        super().__init__()
        self.items = list(modules)

    def children(self):
        return [item for item in self.items if isinstance(item, Module)]

    def append(self, module):
        self.items.append(module)
        return self

    def __iter__(self):
        return iter(self.items)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


class ModuleDict(Module):
    def __init__(self, modules=None):
        super().__init__()
        self.items_ = dict(modules or {})

    def children(self):
        return list(self.items_.values())

    def __getitem__(self, key):
        return self.items_[key]

    def __setitem__(self, key, value):
        self.items_[key] = value

    def __delitem__(self, key):
        del self.items_[key]

    def __contains__(self, key):
        return key in self.items_

    def __iter__(self):
        return iter(self.items_)

    def keys(self):
        return self.items_.keys()

    def items(self):
        return self.items_.items()

    def values(self):
        return self.items_.values()

    def __len__(self):
        return len(self.items_)


class Linear(Module):
    def __init__(self, in_features, out_features, bias=True, **_):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(Tensor(out_features, in_features))
        self.bias = Parameter(Tensor(out_features)) if bias else None


class Embedding(Module):
    def __init__(self, num_embeddings, embedding_dim, **_):
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.weight = Parameter(Tensor(num_embeddings, embedding_dim))


class Norm(Module):
    def __init__(self, normalized_shape, *_, **__):
        super().__init__()
        shape = normalized_shape if isinstance(normalized_shape, (list, tuple)) \
            else (normalized_shape,)
        self.weight = Parameter(Tensor(*shape))


class Optimizer:
    def __init__(self, params=(), defaults=None, **_):
        params = list(params)
        self.param_groups = params if params and isinstance(params[0], dict) else \
            [{"params": params}]
        self.defaults, self.state = dict(defaults or {}), {}

    def state_dict(self):
        first, groups = 0, []
        for group in self.param_groups:
            after = first + len(group["params"])
            groups.append({**group, "params": list(range(first, after))})
            first = after
        return {"state": {}, "param_groups": groups}

    def load_state_dict(self, state):
        pass

    def zero_grad(self, *_, **__):
        pass


Norm.reset_parameters = lambda self: None


class Generator(standins.Instance):
    pass


def make_tensor(*shape, dtype=None, device=None, requires_grad=False, size=None, **_):
    shape = size if size is not None else shape
    if len(shape) == 1 and isinstance(shape[0], (list, tuple)):
        shape = shape[0]
    return Tensor(*shape, dtype=dtype, device=device, requires_grad=requires_grad)


def like(tensor, *_, **__):
    return Tensor(*tensor.shape, dtype=tensor.dtype)


SUBMODULES = """nn nn.functional nn.init nn.parameter nn.modules nn.modules.module cuda cuda.amp
distributed version compiler backends backends.cuda amp autograd utils optim optim.optimizer
_C library""".split()


def install():
    """Fills the stand-in for PyTorch; returns it."""
    import torch  # pylint: disable=import-error

    for name in SUBMODULES:
        importlib.import_module("torch." + name)

    torch.version.cuda, torch.version.hip = "12.9", None
    torch.dtype, torch.device, torch.Tensor, torch.Generator = Dtype, Device, Tensor, Generator
    torch.Size = Size
    for name in DTYPES:
        setattr(torch, name, DTYPE[name])
    for short, name in (("float", "float32"), ("half", "float16"), ("double", "float64"),
                        ("long", "int64"), ("int", "int32"), ("short", "int16")):
        setattr(torch, short, getattr(torch, name))
    for name in ("empty", "zeros", "ones", "rand", "randn"):
        setattr(torch, name, make_tensor)
    for name in ("empty_like", "zeros_like", "ones_like", "clone"):
        setattr(torch, name, like)
    torch.tensor = lambda data, dtype=None, **_: Tensor(
        *([len(data)] if isinstance(data, (list, tuple)) else []), dtype=dtype)
    torch.arange = lambda *args, **_: Ranks(numpy.arange(*(int(a) for a in args)))
    torch.tril = torch.triu = like
    torch.linspace = lambda start, end, steps, **_: Ranks(numpy.linspace(start, end, steps))
    nn = torch.nn
    nn.Module, nn.Parameter, nn.parameter.Parameter = Module, Parameter, Parameter
    nn.ModuleList, nn.ModuleDict, nn.Sequential = ModuleList, ModuleDict, ModuleList
    nn.Linear, nn.Embedding, nn.LayerNorm, nn.RMSNorm = Linear, Embedding, Norm, Norm
    nn.modules.module.Module = Module
    torch.optim.Optimizer = torch.optim.optimizer.Optimizer = Optimizer
    torch.optim.AdamW = torch.optim.Adam = torch.optim.SGD = type("Adam", (Optimizer,), {})
    torch.is_grad_enabled = lambda: True
    torch.is_tensor = lambda value: isinstance(value, Tensor)
    torch.get_default_dtype = lambda: torch.float32
    torch.get_autocast_gpu_dtype = lambda: torch.bfloat16
    torch.is_autocast_enabled = lambda *_: False
    torch.cuda.is_available = lambda: True
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved",
                 "max_memory_reserved", "memory_cached", "max_memory_cached"):
        setattr(torch.cuda, name, lambda *_: 0)
    torch.cuda.current_device = lambda: 0
    torch.compiler.is_compiling = lambda: False
    return torch
