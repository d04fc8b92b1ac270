"""What calls and displays come to where their name or form alone tells: results of others, types of literals."""

from __future__ import annotations

import ast
import builtins

BUILTINS = frozenset(dir(builtins))
_SPECIAL = ("super", "type", "object")
SAME = frozenset(  # what gives back the function that it gets, as far as the tracer is concerned
    ("functools.cache", "functools.lru_cache", "functools.wraps", "functools.partial", "staticmethod", "classmethod")
)
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
VAGUE = frozenset(("typing.Any", "typing.Callable", "collections.abc.Callable", "object", "types.SimpleNamespace"))
TYPES = {ast.List: "list", ast.Tuple: "tuple", ast.Set: "set", ast.JoinedStr: "str", ast.ListComp: "list"}
TYPES |= {ast.Dict: "dict"}
TYPES |= {ast.SetComp: "set", ast.DictComp: "dict", ast.Compare: "bool", ast.GeneratorExp: "generator"}
