"""What calls and displays come to where their name or form alone tells: results of others, types of literals."""

from __future__ import annotations

import ast
import builtins
import collections
import collections.abc
import enum

BUILTINS: dict[str, object] = dict(vars(builtins))
_SPECIAL = ("super", "type", "object")
SAME = frozenset(  # what gives back the function that it gets, as far as the tracer is concerned
    (
        "functools.cache",
        "functools.lru_cache",
        "functools.wraps",
        "functools.partial",
        "staticmethod",
        "classmethod",
        "functools.partialmethod",
        "functools.update_wrapper",
        "functools.singledispatch",
        "functools.singledispatchmethod",
    )
)
COPYING = frozenset(
    ("copy.copy", "copy.deepcopy", "dataclasses.replace", "typing.cast")
)  # what gives such an object as it gets
CHOOSING = frozenset(("next", "max", "min"))  # what gives an element of what it gets
PASSING = (  # where the result of a function may be what it got
    "functools.",
    "operator.",
    "itertools.",
    "copy.",
    "dataclasses.",
    "contextlib.",
    "typing.",
    "weakref.",
    "heapq.",
    "random.",
    "queue.",
    "asyncio.",
    "inspect.",
    "concurrent.futures.",
    "collections.",
    "sys.",
    "torch.nn.Module.get_submodule",
)
REFLECTIVE = frozenset(  # what asks for something by a name that is made at run time, or runs a text
    (
        "eval",
        "operator.methodcaller",
        "operator.attrgetter",
        "types.new_class",
        "inspect.getmembers",
        "gc.get_objects",
        "object.__getattribute__",
        "object.__setattr__",
        "type.__setattr__",
        "inspect.getattr_static",
    )
)
INERT = frozenset(  # what looks at an object or a class and calls nothing of it
    (
        "isinstance",
        "issubclass",
        "super",
        "id",
        "type",
        "callable",
        "typing.cast",
        "typing.NewType",
        "typing.TypeVar",
        "getattr",
        "hasattr",
        "staticmethod",
        "classmethod",
    )
)
PROTOCOL = (  # methods that the standard library calls of an object that it gets, without a word of its class
    *("close", "aclose", "read", "readline", "write", "flush", "keys", "acquire", "release", "emit", "fileno"),
)
CALLING: dict[str, tuple[int, ...]] = {  # what calls functions that it gets: by its name, their positions
    **dict.fromkeys(("map", "filter", "functools.reduce", "functools.cmp_to_key", "itertools.starmap"), (0,)),
    **dict.fromkeys(("itertools.takewhile", "itertools.dropwhile", "itertools.filterfalse"), (0,)),
    **dict.fromkeys(("itertools.groupby", "itertools.accumulate", "re.sub", "re.subn", "weakref.finalize"), (1,)),
    **dict.fromkeys(("atexit.register", "operator.call", "collections.defaultdict"), (0,)),
    **dict.fromkeys(("re.compile().sub", "re.compile().subn", "torch.utils.checkpoint.checkpoint", "torch.vmap"), (0,)),
    "torch.cond": (1, 2),
}
CALLING_METHODS: dict[str, tuple[int, ...]] = {  # the same of methods of others, by their last name
    **dict.fromkeys(("callback", "push", "push_async_exit", "register_hook", "add_done_callback", "submit"), (0,)),
    **dict.fromkeys(("enter_context", "call_soon", "apply_async", "run_in_executor", "tree_map"), (0,)),
    **dict.fromkeys(("register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook"), (0,)),
}
CALLING_SPACES = ("torch.func.", "torch.utils._pytree.")  # modules whose functions call the first that they get
CALLED = frozenset(("key", "target", "func", "function", "default_factory", "callback"))  # arguments that are called
HOLDING = frozenset(  # objects that call others, which they got when they were made
    ("torch.nn.Sequential", "contextlib.closing", "contextlib.aclosing", "contextlib.ExitStack")
)
FLUENT = frozenset(  # methods of others that give back the object that they are called on
    ("eval", "train", "to", "cuda", "cpu", "half", "float", "double", "bfloat16", "requires_grad_", "share_memory")
)
_STANDARD = {  # classes that others inherit from, of which it is known what they have
    **{f"{module}.{name}": object for module in ("typing", "typing_extensions") for name in ("Generic", "Protocol")},
    **{f"{module}.NamedTuple": collections.namedtuple("_", ()) for module in ("typing", "typing_extensions")},
    **{f"{module}.TypedDict": dict for module in ("typing", "typing_extensions")},
    **{f"enum.{name}": getattr(enum, name) for name in ("Enum", "IntEnum", "Flag", "IntFlag")},
    **{f"collections.{name}": getattr(collections, name) for name in collections.__all__},
    **{f"collections.abc.{name}": getattr(collections.abc, name) for name in collections.abc.__all__},
    "abc.ABC": object,
}


def has_attribute(owner: str, name: str) -> bool:
    """Whether a class of others may have an attribute; of most it is not known what they have."""
    kind = BUILTINS.get(owner, _STANDARD.get(owner))
    return not isinstance(kind, type) or hasattr(kind, name)


IMPORTING = ("importlib.import_module", "__import__")
RESULTS = {  # what a call of others gives, where its name does not say so
    "logging.getLogger": "logging.Logger",
    "threading.Lock": "threading.Lock",
    "threading.RLock": "threading.RLock",
    "sorted": "list",
    **{f"pathlib.Path.{name}": "pathlib.Path" for name in ("cwd", "home", "resolve", "absolute", "expanduser")},
    **{f"pathlib.Path.{name}": "pathlib.Path" for name in ("with_suffix", "with_name", "joinpath", "relative_to")},
    **dict.fromkeys(("pathlib.PurePath", "pathlib.PosixPath"), "pathlib.Path"),
}
RESULTS |= {name: name for name, value in vars(builtins).items() if isinstance(value, type) and name not in _SPECIAL}
RESULTS |= dict.fromkeys(("len", "id", "ord", "hash"), "int")
RESULTS |= dict.fromkeys(("repr", "chr", "ascii", "hex", "oct", "bin", "format", "input"), "str")
RESULTS |= dict.fromkeys(("isinstance", "issubclass", "callable", "hasattr", "any", "all"), "bool")
VAGUE = frozenset(("typing.Any", "typing.Callable", "collections.abc.Callable", "object", "types.SimpleNamespace"))
TYPING = (
    "typing.",
    "typing_extensions.",
    "collections.abc.",
)  # what is only there to be written in annotations says nothing of an object
TYPES = {ast.List: "list", ast.Tuple: "tuple", ast.Set: "set", ast.JoinedStr: "str", ast.ListComp: "list"}
TYPES |= {ast.Dict: "dict"}
TYPES |= {ast.SetComp: "set", ast.DictComp: "dict", ast.Compare: "bool", ast.GeneratorExp: "generator"}


def called_positions(name: str, arguments: int) -> tuple[int, ...]:
    """At which positions a function of others gets functions that it calls, when it gets so many ``arguments``."""
    if name == "iter":
        return (0,) if arguments == 2 else ()
    if name in CALLING:
        return CALLING[name]
    last = name.rpartition(".")[2]
    if "." in name and last in CALLING_METHODS:
        return CALLING_METHODS[last]
    return (0,) if name.startswith(CALLING_SPACES) else ()
