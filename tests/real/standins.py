"""Stand-ins for packages that need a GPU, or that are too large to bring along.

A stand-in module answers every attribute with a stand-in class. Such a class can be inherited
from, called, subscripted, used as a decorator and as a context manager, and compares by identity,
so that the modules of a training stack import, and their classes construct, without PyTorch.
Whatever a check reads of them (versions, ranks, the kind of GPU) is set by name in the files of
the stacks; nothing here answers a check by itself: a stand-in has no length, no order and no
number, and asking for one is an error.
"""
import abc
import importlib.abc
import importlib.machinery
import sys
import types


def is_decorating(args, kwargs):
    return len(args) == 1 and not kwargs and isinstance(args[0], (types.FunctionType, type))


class Kind(abc.ABCMeta):
    """The class of stand-in classes."""

    def __getattr__(cls, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        if "stand_in" not in cls.__dict__:  # a real class that inherits from a stand-in
            for base in cls.__mro__[1:]:
                if isinstance(base, Kind) and "stand_in" in base.__dict__:
                    return getattr(base, name)
            raise AttributeError(name)
        made = make(cls.__qualname__ + "." + name)
        setattr(cls, name, made)
        return made

    def __call__(cls, *args, **kwargs):
        if "stand_in" in cls.__dict__ and is_decorating(args, kwargs):
            return args[0]
        return super().__call__(*args, **kwargs)

    def __getitem__(cls, _):
        return cls

    def __iter__(cls):
        return iter(())

    def __contains__(cls, _):
        return False

    def __repr__(cls):
        return f"<stand-in {cls.__qualname__}>"

    def __enter__(cls):
        return cls

    def __exit__(cls, *_):
        return False


class Instance(metaclass=Kind):
    """What calling a stand-in gives."""

    def __init__(self, *args, **kwargs):
        pass

    def __init_subclass__(cls, **kwargs):
        pass

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Instance()

    def __call__(self, *args, **kwargs):
        return args[0] if is_decorating(args, kwargs) else Instance()

    def __getitem__(self, _):
        return Instance()

    def __setitem__(self, _, __):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False

    def __iter__(self):
        return iter(())

    def _self(self, *_):
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _self
    __rtruediv__ = __pow__ = __neg__ = __matmul__ = __invert__ = _self
    __iadd__ = __isub__ = __imul__ = __itruediv__ = _self


def make(name):
    return Kind(name, (Instance,), {"stand_in": True, "__qualname__": name, "__module__": "standins"})


class Module(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        full = self.__name__ + "." + name
        if full in sys.modules:
            return sys.modules[full]
        made = make(full)
        setattr(self, name, made)
        return made


def is_within(name, packages):
    """Whether a module is one of these packages or modules, or below one."""
    parts = name.split(".")
    return any(".".join(parts[:end]) in packages for end in range(1, len(parts) + 1))


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every module of the packages named."""

    def __init__(self, versions):
        self.versions = versions

    def find_spec(self, name, path=None, target=None):
        if not is_within(name, self.versions):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Module(spec.name)

    def exec_module(self, module):
        version = self.versions.get(module.__name__)
        if version:
            module.__version__ = version


def stand_in_for(versions):
    """From here on these packages are stand-ins, whether they are installed or not.

    versions: package to the version that it says it has, or to None.
    """
    for name in list(sys.modules):
        if is_within(name, versions):
            del sys.modules[name]
    sys.meta_path.insert(0, Finder(versions))

