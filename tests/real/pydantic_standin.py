"""pydantic 2 as far as DeepSpeed's configuration classes use it, for where none is installed.

Unknown keys, values of another type, outside an enumeration or outside their bounds are refused, and
validators run, as in pydantic. Where pydantic 2 is installed it is used instead.
"""
import enum
import sys
import types
import typing


class FieldInfo:
    def __init__(self, default=..., default_factory=None, alias=None, json_schema_extra=None,
                 **bounds):
        self.default, self.default_factory = default, default_factory
        self.alias, self.json_schema_extra = alias, json_schema_extra
        self.bounds = {key: bounds[key] for key in ("ge", "gt", "le", "lt") if key in bounds}

    def is_required(self):
        return self.default is ... and not self.default_factory

    def get_default(self, **_):
        return self.value()

    def value(self):
        return self.default_factory() if self.default_factory else self.default


def field_validator(*names, mode="after", **_):
    def mark(function):
        function = getattr(function, "__func__", function)
        function.validates, function.mode = names, mode
        return function
    return mark


def model_validator(mode="after"):
    def mark(function):
        function.validates, function.mode = (), mode
        return function
    return mark


def fits(kind, value):
    """The value as a field of this type holds it; ValueError where it cannot."""
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        for each in inside:
            try:
                return fits(each, value)
            except ValueError:
                continue
        raise ValueError(f"{value!r} is none of {inside}")
    if origin is typing.Literal:
        if value not in inside:
            raise ValueError(f"{value!r} is none of {inside}")
        return value
    if kind in (typing.Any, None) or origin or not isinstance(kind, type):
        return value
    if kind is type(None):
        if value is not None:
            raise ValueError(f"{value!r} is not None")
        return value
    if issubclass(kind, enum.Enum):
        return value if isinstance(value, kind) else kind(value)
    if issubclass(kind, BaseModel):
        return value if isinstance(value, kind) else kind(**value)
    if kind is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if kind is int and isinstance(value, float) and value == int(value):
        return int(value)
    if kind in (int, bool, str) and not isinstance(value, kind):
        raise ValueError(f"{value!r} is no {kind.__name__}")
    return value


class BaseModel:
    model_config = {}

    def __init_subclass__(cls, **_):
        cls.model_fields = dict(getattr(cls, "model_fields", {}))
        for name in vars(cls).get("__annotations__", {}):
            if name.startswith("_") or name in ("model_config", "model_fields"):
                continue
            given = vars(cls).get(name, ...)
            cls.model_fields[name] = given if isinstance(given, FieldInfo) else FieldInfo(given)

    def __init__(self, **data):
        cls = type(self)
        hints = typing.get_type_hints(cls)
        names = {field.alias or name: name for name, field in cls.model_fields.items()}
        names.update((name, name) for name in cls.model_fields)
        self.__dict__["model_fields_set"] = set()
        for function in self.validators("before", ()):
            data = function(data)
        values = {}
        for key, value in data.items():
            if key not in names:
                raise ValueError(f"{cls.__name__}: {key}: extra inputs are not permitted")
            values[names[key]] = value
            self.model_fields_set.add(names[key])
        for name, field in cls.model_fields.items():
            given = name in values
            value = values[name] if given else field.value()
            for function in self.validators("before", name):
                value = function(value)
            if given and (value is not None or field.default is not None):
                value = self.checked(name, field, hints.get(name, typing.Any), value)
            for function in self.validators("after", name):
                value = function(value, types.SimpleNamespace(data=self.__dict__, field_name=name))
            if value is ...:
                raise ValueError(f"{cls.__name__}: {name}: field required")
            self.__dict__[name] = value
        for function in self.validators("after", ()):
            function()

    def checked(self, name, field, kind, value):
        try:
            value = fits(kind, value)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{type(self).__name__}: {name}: {error}") from error
        tests = {"ge": lambda a, b: a >= b, "gt": lambda a, b: a > b, "le": lambda a, b: a <= b,
                 "lt": lambda a, b: a < b}
        for test, bound in field.bounds.items():
            if not tests[test](value, bound):
                raise ValueError(f"{type(self).__name__}: {name}: {value} is not {test} {bound}")
        return value

    def validators(self, mode, name):
        """Functions of the class that look at this field, or (), at the whole."""
        found = []
        for base in type(self).__mro__:
            for function in vars(base).values():
                plain = getattr(function, "__func__", function)
                names = getattr(plain, "validates", None)
                if names is None or getattr(plain, "mode", "") != mode:
                    continue
                if (name == () and names == ()) or (name != () and name in names):
                    found.append(self.bound(plain, whole=name == ()))
        return found

    def bound(self, function, whole):
        count = function.__code__.co_argcount
        if whole and function.mode == "after":
            return lambda: function(self)
        return lambda *args: function(type(self), *args[:count - 1])

    def model_dump(self, **_):
        return {name: self.__dict__[name] for name in type(self).model_fields}

    dict = model_dump


def install():
    """Makes this `import pydantic` where no pydantic of version 2 is."""
    try:
        import pydantic
        if pydantic.VERSION.startswith("2"):
            return
    except ImportError:
        pass
    module = types.ModuleType("pydantic")
    module.BaseModel, module.VERSION, module.__version__ = BaseModel, "2.0", "2.0"
    module.Field = lambda default=..., **settings: FieldInfo(
        default, json_schema_extra={key: settings.pop(key) for key in list(settings)
                                    if key in ("deprecated", "new_param", "new_param_fn",
                                               "deprecated_msg", "set_new_param")}
        or settings.pop("json_schema_extra", None), **settings)
    module.ConfigDict = dict
    module.PositiveInt = module.NonNegativeInt = int
    module.field_validator, module.model_validator = field_validator, model_validator
    module.field_serializer = lambda *_, **__: lambda function: function
    for name in [name for name in sys.modules if name.split(".")[0] == "pydantic"]:
        del sys.modules[name]
    sys.modules["pydantic"] = module
