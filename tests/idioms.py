"""A table of ways in which Python code comes to call a function: each a small library, and a caller that reaches `bad`.

A block begins with ``=== what it shows | demand``. The demand is ``found`` (the audit must tell the hazard) or
``counted`` (it may say that it cannot know). The text up to ``---`` is the library's module ``lib.m``, behind a header
that defines ``bad``; ``--- path`` begins another file. Where no caller is given it calls ``lib.m.f()``.
"""

from __future__ import annotations

from dataclasses import dataclass

HEADER = 'import subprocess\n\n\ndef bad(*args, **kwargs):\n    subprocess.run(["true"])\n\n\n'
CALLER = "from lib.m import f\n\n\ndef run():\n    f()\n"


@dataclass(frozen=True)
class Idiom:
    """``files`` are texts by path: those of ``lib/`` are the distribution's, those of ``app/`` the caller's."""

    name: str
    found: bool
    files: dict[str, str]


def read_idioms(text: str) -> list[Idiom]:
    return [_read(block) for block in text.split("\n=== ")[1:]]


def _read(block: str) -> Idiom:
    head, _, _ = block.partition("\n")
    name, _, demand = head.partition(" | ")
    assert demand in ("found", "counted"), head
    library, *others = block[len(head) :].split("\n--- ")
    files = {"lib/__init__.py": "", "lib/m.py": HEADER + library.strip("\n") + "\n"}
    for other in others:
        path, _, content = other.partition("\n")
        files[path.strip()] = content.strip("\n") + "\n"
    files.setdefault("app/c.py", CALLER)
    return Idiom(name, demand == "found", files)


NAMES = (
    r"""
=== a plain call | found
def f():
    bad()
=== an alias of an alias, sixty long | counted
a0 = bad
a1 = a0; a2 = a1; a3 = a2; a4 = a3; a5 = a4; a6 = a5; a7 = a6; a8 = a7; a9 = a8; a10 = a9
b1 = a10; b2 = b1; b3 = b2; b4 = b3; b5 = b4; b6 = b5; b7 = b6; b8 = b7; b9 = b8; b10 = b9
c1 = b10; c2 = c1; c3 = c2; c4 = c3; c5 = c4; c6 = c5; c7 = c6; c8 = c7; c9 = c8; c10 = c9
d1 = c10; d2 = d1; d3 = d2; d4 = d3; d5 = d4; d6 = d5; d7 = d6; d8 = d7; d9 = d8; d10 = d9
e1 = d10; e2 = e1; e3 = e2; e4 = e3; e5 = e4; e6 = e5; e7 = e6; e8 = e7; e9 = e8; e10 = e9
f1 = e10; f2 = f1; f3 = f2; f4 = f3; f5 = f4; f6 = f5; f7 = f6; f8 = f7; f9 = f8; f10 = f9
def f():
    f10()
=== a name that is bound twice | found
def good(): pass
x = good
if bad.__name__:
    x = bad
def f():
    x()
=== a global that a function binds | found
hook = None
def set_hook():
    global hook
    hook = bad
def f():
    set_hook()
    hook()
=== a nonlocal name | found
def f():
    go = None
    def inner():
        nonlocal go
        go = bad
    inner()
    go()
=== a walrus | found
def f():
    if (go := bad):
        go()
=== a variable of a comprehension that has the name of another | found
def good(): pass
go = good
def f():
    return [go() for go in [bad]]
=== a variable of a comprehension, in a lambda | found
def good(): pass
go = good
def f():
    [g() for g in [(lambda: go()) for go in [bad]]]
=== a variable of a comprehension of a module, in a lambda | found
def good(): pass
go = good
CALLS = [lambda go=go: go() for go in [bad]]
def f():
    for call in CALLS:
        call()
=== a function that is kept before it is defined anew | found
def g():
    bad()
before = g
def g():
    before()
def f():
    g()
=== a method that a class takes before the function is defined anew | found
def go(self):
    bad()
class C:
    go = go
def go(self): pass
def f():
    C().go()
=== a default that is taken before the function is defined anew | found
def g():
    bad()
def h(go=g):
    go()
def g(): pass
def f():
    h()
=== the last of two star imports | found
--- lib/n.py
def go(): pass
--- lib/o.py
from .m import bad as go
--- lib/p.py
from .n import *
from .o import *
--- app/c.py
from lib.p import go
def run():
    go()
=== a star import after a definition | found
--- lib/o.py
from .m import bad as go
--- lib/p.py
def go(): pass
from .o import *
def f():
    go()
--- app/c.py
from lib.p import f
def run():
    f()
=== an exception that has the name of a function | counted
def go(): pass
class E(Exception):
    def __call__(self):
        bad()
def f():
    try:
        raise E
    except E as go:
        go()
=== unpacking a tuple | found
def f():
    go, _ = bad, 1
    go()
=== unpacking with a star | counted
def f():
    _, *rest = 1, bad
    rest[0]()
=== unpacking what a function gives | counted
def pair():
    return 1, bad
def f():
    _, go = pair()
    go()
=== a loop over functions | found
def f():
    for go in (bad, bad):
        go()
=== a loop over pairs | counted
def f():
    for _, go in [(1, bad)]:
        go()
=== a comprehension | found
def f():
    return [go() for go in [bad]]
=== a generator expression | found
def f():
    return list(bad() for _ in [1])
=== a captured pattern | counted
def f():
    match [bad]:
        case [go]:
            go()
=== a pattern of a whole | counted
def f():
    match bad:
        case go:
            go()
=== a default of a parameter | found
def f(go=bad):
    go()
=== a default in another function | found
def g(*, go=bad):
    go()
def f():
    g()
=== a callback | found
def g(go):
    go()
def f():
    g(bad)
=== a callback by a star argument | found
def g(*goes):
    goes[0]()
def f():
    g(*[bad])
=== a callback by keywords from a dict | found
def g(go):
    go()
def f():
    g(**{"go": bad})
=== a chain of functions that return it, fifty long | counted
def r0(): return bad
"""
    + "\n".join(f"def r{i}(): return r{i - 1}()" for i in range(1, 51))
    + r"""
def f():
    r50()()
=== a conditional expression | found
def f(x=1):
    (bad if x else None)()
=== an or | found
def f(x=None):
    (x or bad)()
=== an exception's attribute | found
class E(Exception):
    def __init__(self, go):
        self.go = go
def f():
    try:
        raise E(bad)
    except E as e:
        e.go()
=== __wrapped__ | found
import functools
@functools.cache
def worse():
    bad()
def f():
    worse.__wrapped__()
=== a function's __call__ | found
def f():
    bad.__call__()
=== an attribute of a function | found
def g(): pass
g.helper = bad
def f():
    g.helper()
=== a function's __get__ | counted
class C: pass
def f():
    bad.__get__(C())()
=== a local class that hides a module | found
class torch:
    class version:
        cuda = None
def f():
    if torch.version.cuda is not None:
        return None
    bad()
=== a parameter that hides a module | found
def g(torch):
    if torch.compiler.is_compiling():
        return None
    bad()
def f():
    class T:
        class compiler:
            @staticmethod
            def is_compiling(): return False
    g(T)
=== a variable called TYPE_CHECKING | found
TYPE_CHECKING = True
def f():
    if TYPE_CHECKING:
        bad()
=== a name from __builtins__ that is hidden | found
def len(x):
    bad()
def f():
    len([])
=== a default of getattr | found
def f():
    getattr(f, "nothing", bad)()
=== a name from a star import | found
def g(): pass
--- lib/n.py
from .m import *
def f():
    bad()
--- app/c.py
from lib.n import f
def run():
    f()
=== a computed __all__ | found
def _hidden():
    bad()
__all__ = [name for name in globals() if name.startswith("_h")]
--- app/c.py
from lib.m import *
def run():
    _hidden()
=== an __all__ that is added to by a method | found
def _hidden():
    bad()
__all__ = []
__all__.append("_hidden")
--- app/c.py
from lib.m import *
def run():
    _hidden()
=== an __all__ of two lists | found
def _hidden():
    bad()
__all__ = ["bad"] + ["_hidden"]
--- lib/n.py
from lib.m import *
def f():
    _hidden()
--- app/c.py
from lib.n import f
def run():
    f()
=== a relative import through two packages | found
--- lib/a/__init__.py
from .b import go
--- lib/a/b.py
from ..m import bad as go
--- app/c.py
from lib.a import go
def run():
    go()
=== a module's __getattr__ | counted
--- lib/__init__.py
def __getattr__(name):
    import lib.m
    return getattr(lib.m, name)
--- app/c.py
import lib
def run():
    lib.bad()
=== what a module's __getattr__ does | found
--- lib/__init__.py
def __getattr__(name):
    from .m import bad
    bad()
    return name
--- app/c.py
import lib
def run():
    return lib.anything
=== import_module with a written name | found
--- app/c.py
import importlib
def run():
    importlib.import_module("lib.m").bad()
=== import_module with a relative name | counted
--- lib/n.py
import importlib
def f():
    importlib.import_module(".m", "lib").bad()
--- app/c.py
from lib.n import f
def run():
    f()
=== import_module with a computed name | counted
--- lib/n.py
import importlib
def f(name="m"):
    importlib.import_module(f"lib.{name}").bad()
--- app/c.py
from lib.n import f
def run():
    f()
=== sys.modules | counted
import sys
def f():
    sys.modules["lib.m"].bad()
=== a module that an own function returns | found
def g(): pass
--- app/a.py
import lib.m
def module():
    return lib.m
--- app/c.py
from app.a import module
def run():
    module().bad()
=== a caller's module that imports nothing itself | found
class C:
    def go(self):
        bad()
--- app/a.py
from lib.m import C
def make():
    return C()
--- app/c.py
from app.a import make
def run():
    make().go()
=== an object behind an attribute, in a caller's module that imports nothing | found
class C:
    def go(self):
        bad()
--- app/a.py
from lib.m import C
class Holder:
    def __init__(self):
        self.inner = C()
--- app/c.py
from app.a import Holder
def run():
    Holder().inner.go()
=== a base class two modules up, in a caller's module that imports nothing | found
class B:
    def go(self):
        bad()
--- app/a.py
from lib.m import B
class Mine(B):
    pass
--- app/b.py
from app.a import Mine
class Last(Mine):
    pass
--- app/c.py
from app.b import Last
def run():
    Last().go()
=== an object that an own module hands to another one | counted
class C:
    def go(self):
        bad()
--- app/a.py
def use(it):
    it.go()
--- app/c.py
from lib.m import C
from app.a import use
def run():
    use(C())
=== what an own module keeps in a table | found
class C:
    def go(self):
        bad()
--- app/a.py
from lib.m import C
TABLE = {"c": C}
def make(name):
    return TABLE[name]()
--- app/c.py
from app.a import make
def run():
    make("c").go()
"""
)

CLASSES = r"""
=== a hook that a subclass overrides | found
class B:
    def go(self):
        self.hook()
    def hook(self): pass
class C(B):
    def hook(self):
        bad()
def g(b: B):
    b.go()
def f():
    g(C())
=== a method that a subclass overrides, behind an annotation | found
class B:
    def go(self): pass
class C(B):
    def go(self):
        bad()
def g(b: B):
    b.go()
def f():
    g(C())
=== a method that a subclass overrides, behind a return type | found
class B:
    def go(self): pass
class C(B):
    def go(self):
        bad()
def make() -> B:
    return C()
def f():
    make().go()
=== a subclass in another module | found
class B:
    def go(self): pass
def g(b: B):
    b.go()
--- lib/n.py
from lib import m
class C(m.B):
    def go(self):
        m.bad()
def f():
    m.g(C())
--- app/c.py
from lib.n import f
def run():
    f()
=== a hook that the caller's subclass overrides | found
class B:
    def go(self):
        self.hook()
    def hook(self): pass
--- app/c.py
from lib.m import B, bad
class Mine(B):
    def hook(self):
        bad()
def run():
    Mine().go()
=== what the caller's subclass makes | found
class Good:
    def go(self): pass
class Bad:
    def go(self):
        bad()
class B:
    def make(self):
        return Good()
    def go(self):
        self.make().go()
--- app/c.py
from lib.m import B, Bad
class Mine(B):
    def make(self):
        return Bad()
def run():
    Mine().go()
=== an abstract method | found
import abc
class B(abc.ABC):
    @abc.abstractmethod
    def go(self): ...
class C(B):
    def go(self):
        bad()
def g(b: B):
    b.go()
def f():
    g(C())
=== a Protocol | found
from typing import Protocol
class P(Protocol):
    def go(self) -> None: ...
class C:
    def go(self):
        bad()
def g(p: P):
    p.go()
def f():
    g(C())
=== a TypeVar | found
from typing import TypeVar
T = TypeVar("T")
class C:
    def go(self):
        bad()
def g(x: T):
    x.go()
def f():
    g(C())
=== Self | found
from typing import Any
try:
    from typing import Self
except ImportError:
    Self = Any
class B:
    def me(self) -> Self:
        return self
    def go(self): pass
class C(B):
    def go(self):
        bad()
def f():
    C().me().go()
=== a class method that makes the class | found
class B:
    @classmethod
    def make(cls):
        return cls()
    def go(self): pass
class C(B):
    def go(self):
        bad()
def f():
    C.make().go()
=== type(self)() | found
class B:
    def go(self):
        type(self)().hook()
    def hook(self): pass
class C(B):
    def hook(self):
        bad()
def f():
    C().go()
=== self.__class__() | found
class B:
    def go(self):
        self.__class__().hook()
    def hook(self): pass
class C(B):
    def hook(self):
        bad()
def f():
    C().go()
=== super() in a diamond | found
class A:
    def go(self): pass
class B(A):
    def go(self):
        super().go()
class C(A):
    def go(self):
        bad()
class D(B, C): pass
def f():
    D().go()
=== the second base's method before the grandparent's | found
class A:
    def go(self): pass
class B(A): pass
class C(A):
    def go(self):
        bad()
class D(B, C): pass
def f():
    D().go()
=== the grandparent's method before the second base's | found
class A:
    def go(self):
        bad()
class B(A): pass
class C:
    def go(self): pass
class D(B, C): pass
def f():
    D().go()
=== a mixin's method of the other base | found
class Mixin:
    def go(self):
        self.hook()
class C(Mixin):
    def hook(self):
        bad()
def f():
    C().go()
=== super().__init__ with arguments of the old form | found
class B:
    def __init__(self):
        bad()
class C(B):
    def __init__(self):
        super(C, self).__init__()
def f():
    C()
=== a call through the class | found
class B:
    def go(self):
        bad()
class C(B):
    def go(self):
        B.go(self)
def f():
    C().go()
=== a base that is made by a function | found
class B:
    def __init__(self):
        bad()
def base():
    return B
class C(base()): pass
def f():
    C()
=== a base out of a table | found
class B:
    def go(self):
        bad()
BASES = {"b": B}
class C(BASES["b"]): pass
def f():
    C().go()
=== a class made by type() | found
class B:
    def go(self):
        bad()
def f():
    type("C", (B,), {})().go()
=== a subclass of Popen | found
class P(subprocess.Popen): pass
def f():
    P(["true"])
=== a subclass of Popen with an __init__ | found
class P(subprocess.Popen):
    def __init__(self):
        super().__init__(["true"])
def f():
    P()
=== a thread's run | found
import threading
class T(threading.Thread):
    def run(self):
        bad()
def f():
    t = T()
    t.start()
    t.join()
=== a visitor of ast | found
import ast
class V(ast.NodeVisitor):
    def visit_Pass(self, node):
        bad()
def f():
    V().visit(ast.parse("pass"))
=== a visitor of ast, in the caller | found
import ast
class V(ast.NodeVisitor):
    def visit_Pass(self, node):
        bad()
--- app/c.py
import ast
from lib.m import V
def run():
    V().visit(ast.parse("pass"))
=== __new__ | found
class C:
    def __new__(cls):
        bad()
def f():
    C()
=== __init_subclass__ of a class in a function | found
class B:
    def __init_subclass__(cls):
        bad()
def f():
    class C(B): pass
=== __set_name__ of a class in a function | found
class D:
    def __set_name__(self, owner, name):
        bad()
def f():
    class C:
        x = D()
=== the body of a class in a function | found
def f():
    class C:
        x = bad()
=== a class in a function of the caller | found
def g(): pass
--- app/c.py
from lib.m import bad
def run():
    class C:
        x = bad()
=== a decorator out of a table, in a function | counted
def deco(g):
    bad()
    return g
TABLE = [deco]
def f(n=0):
    @(TABLE[n])
    def inner(): pass
=== a decorator in a function | found
def deco(g):
    bad()
    return g
def f():
    @deco
    def inner(): pass
=== a metaclass's __call__ | found
class M(type):
    def __call__(cls):
        bad()
class C(metaclass=M): pass
def f():
    C()
=== an inherited metaclass's __call__ | found
class M(type):
    def __call__(cls):
        bad()
class B(metaclass=M): pass
class C(B): pass
def f():
    C()
=== a metaclass's __getitem__ | found
class M(type):
    def __getitem__(cls, item):
        bad()
class C(metaclass=M): pass
def f():
    C[1]
=== a metaclass's method | found
class M(type):
    def go(cls):
        bad()
class C(metaclass=M): pass
def f():
    C.go()
=== a metaclass's __iter__ | found
class M(type):
    def __iter__(cls):
        bad()
        return iter(())
class C(metaclass=M): pass
def f():
    list(C)
=== a metaclass's __instancecheck__ | found
class M(type):
    def __instancecheck__(cls, it):
        bad()
class C(metaclass=M): pass
def f():
    isinstance(1, C)
=== a metaclass's __new__, in a function | found
class M(type):
    def __new__(meta, name, bases, space):
        bad()
        return super().__new__(meta, name, bases, space)
def f():
    class C(metaclass=M): pass
=== __class_getitem__ | found
class C:
    def __class_getitem__(cls, item):
        bad()
def f():
    C[int]
=== a dataclass's __post_init__ | found
import dataclasses
@dataclasses.dataclass
class C:
    a: int = 0
    def __post_init__(self):
        bad()
def f():
    C()
=== a dataclass's default_factory | found
import dataclasses
@dataclasses.dataclass
class C:
    a: int = dataclasses.field(default_factory=bad)
def f():
    C()
=== a dataclass's default_factory that is a class | found
import dataclasses
class D:
    def __init__(self):
        bad()
@dataclasses.dataclass
class C:
    a: D = dataclasses.field(default_factory=D)
def f():
    C()
=== a NamedTuple's method | found
from typing import NamedTuple
class C(NamedTuple):
    a: int = 0
    def go(self):
        bad()
def f():
    C().go()
=== an enum member's method | found
import enum
class E(enum.Enum):
    A = 1
    def go(self):
        bad()
def f():
    E.A.go()
=== an enum's _missing_ | found
import enum
class E(enum.Enum):
    A = 1
    @classmethod
    def _missing_(cls, value):
        bad()
        return cls.A
def f():
    E(2)
=== a method of the members of an enum in a loop | found
import enum
class E(enum.Enum):
    A = 1
    def go(self):
        bad()
def f():
    for e in E:
        e.go()
=== a class attribute that holds a function | found
class C:
    go = staticmethod(bad)
def f():
    C().go()
=== a class attribute that holds a lambda | found
class C:
    go = lambda self: bad()
def f():
    C().go()
=== an attribute that is set in another function | found
class C: pass
def prepare(c):
    c.go = bad
def f():
    c = C()
    prepare(c)
    c.go()
=== an attribute that is set twice | found
class C:
    def __init__(self):
        self.go = print_nothing
    def go2(self):
        self.go()
def print_nothing(): pass
def f():
    c = C()
    c.go = bad
    c.go2()
=== a method that __init__ replaces by a table's | found
TABLE = {}
TABLE["x"] = bad
class C:
    def __init__(self):
        self.go = TABLE["x"]
def f():
    C().go()
=== an object's __dict__ | counted
class C:
    def go(self): pass
def f():
    c = C()
    c.__dict__["go"] = bad
    c.go()
=== raise of a class | found
class E(Exception):
    def __init__(self):
        bad()
def f():
    try:
        raise E
    except E:
        pass
=== raise of an object | found
class E(Exception):
    def __init__(self, text):
        bad()
def f():
    try:
        raise E("x")
    except E:
        pass
=== raise from a class | found
class E(Exception):
    def __init__(self):
        bad()
def f():
    try:
        raise ValueError from E
    except ValueError:
        pass
=== functools.partialmethod | found
import functools
class C:
    def on(self, x):
        bad()
    go = functools.partialmethod(on, 1)
def f():
    C().go()
=== functools.cached_property | found
import functools
class C:
    @functools.cached_property
    def p(self):
        bad()
def f():
    C().p
=== a property made by a call | found
class C:
    def get(self):
        bad()
    p = property(get)
def f():
    C().p
=== a property's setter | found
class C:
    @property
    def p(self): return 1
    @p.setter
    def p(self, value):
        bad()
def f():
    C().p = 1
=== a property's setter by augmented assignment | found
class C:
    @property
    def p(self): return 1
    @p.setter
    def p(self, value):
        bad()
def f():
    C().p += 1
=== a property's deleter | found
class C:
    @property
    def p(self): return 1
    @p.deleter
    def p(self):
        bad()
def f():
    del C().p
=== a property of an unknown object | found
class C:
    @property
    def p(self):
        bad()
def g(c):
    return c.p
def f():
    g(C())
=== a property that a subclass overrides | found
class B:
    @property
    def p(self): return 1
    def go(self):
        return self.p
class C(B):
    @property
    def p(self):
        bad()
def f():
    C().go()
=== a property by getattr | found
class C:
    @property
    def p(self):
        bad()
def f():
    getattr(C(), "p")
=== a property by hasattr | found
class C:
    @property
    def p(self):
        bad()
def f():
    hasattr(C(), "p")
=== a property by a class pattern | found
class C:
    @property
    def p(self):
        bad()
def f():
    match C():
        case C(p=1):
            pass
"""

SPECIAL_METHODS = {
    "__add__": "C() + 1",
    "__radd__": "1 + C()",
    "__iadd__": "c = C(); c += 1",
    "__sub__": "C() - 1",
    "__mul__": "C() * 1",
    "__matmul__": "C() @ 1",
    "__truediv__": "C() / 1",
    "__rfloordiv__": "1 // C()",
    "__mod__": "C() % 1",
    "__divmod__": "divmod(C(), 1)",
    "__pow__": "C() ** 1",
    "__lshift__": "C() << 1",
    "__and__": "C() & 1",
    "__ror__": "1 | C()",
    "__xor__": "C() ^ 1",
    "__neg__": "-C()",
    "__pos__": "+C()",
    "__invert__": "~C()",
    "__abs__": "abs(C())",
    "__int__": "int(C())",
    "__float__": "float(C())",
    "__index__": "[1][C()]",
    "__round__": "round(C())",
    "__eq__": "C() == 1",
    "__ne__": "C() != 1",
    "__lt__": "C() < 1",
    "__gt__": "1 < C()",
    "__le__": "C() <= 1",
    "__ge__": "C() >= 1",
    "__hash__": "{C(): 1}",
    "__bool__": "1 if C() else 2",
    "__len__": "not C()",
    "__contains__": "1 in C()",
    "__getitem__": "C()[1]",
    "__setitem__": "C()[1] = 2",
    "__delitem__": "del C()[1]",
    "__missing__": "C()[1]",
    "__iter__": "[x for x in C()]",
    "__next__": "next(C())",
    "__reversed__": "reversed(C())",
    "__length_hint__": "import operator; operator.length_hint(C())",
    "__str__": "f'{C()}'",
    "__repr__": "'%r' % C()",
    "__format__": "'{}'.format(C())",
    "__bytes__": "bytes(C())",
    "__getattr__": "C().zzz",
    "__getattribute__": "C().zzz",
    "__setattr__": "C().zzz = 1",
    "__delattr__": "del C().zzz",
    "__dir__": "dir(C())",
    "__call__": "C()()",
    "__del__": "C()",
    "__copy__": "import copy; copy.copy(C())",
    "__deepcopy__": "import copy; copy.deepcopy([C()])",
    "__reduce__": "import pickle; pickle.dumps(C())",
    "__getstate__": "import pickle; pickle.dumps(C())",
    "__fspath__": "import os; os.fspath(C())",
    "__sizeof__": "import sys; sys.getsizeof(C())",
}

SPECIAL = r"""
=== __enter__ | found
class C:
    def __enter__(self):
        bad()
    def __exit__(self, *args): pass
def f():
    with C(): pass
=== __exit__ | found
class C:
    def __enter__(self): pass
    def __exit__(self, *args):
        bad()
def f():
    with C(): pass
=== a guard of a pattern | found
def f():
    match 1:
        case x if bad():
            pass
=== a value of a pattern | found
class C:
    @property
    def p(self):
        bad()
IT = C()
def f():
    match 1:
        case IT.p:
            pass
=== a default of a lambda | found
def f():
    return lambda x=bad(): x
=== a default of a function in a function | found
def f():
    def inner(x=bad()): pass
=== an except clause | found
def f():
    try:
        raise ValueError
    except (bad() or ValueError):
        pass
=== a special method of an unknown object | found
class C:
    def __add__(self, other):
        bad()
def g(c):
    return c + 1
def f():
    g(C())
=== a special method of an object made at import | found
class C:
    def __add__(self, other):
        bad()
IT = [C()]
def g(c):
    return c + 1
def f():
    for each in IT:
        g(each)
=== a special method that a subclass has | found
class B: pass
class C(B):
    def __len__(self):
        bad()
        return 1
def g(b: B):
    return len(b)
def f():
    g(C())
=== a special method of a foreign base's subclass | found
class D(dict):
    def __missing__(self, key):
        bad()
def f():
    D()["x"]
=== a special method behind an annotation of others | found
import collections.abc
class D(collections.abc.Sized):
    def __len__(self):
        bad()
        return 1
def g(d: collections.abc.Sized):
    return len(d)
def f():
    g(D())
=== unpacking calls __iter__ | found
class C:
    def __iter__(self):
        bad()
        return iter((1, 2))
def f():
    a, b = C()
=== a star argument calls __iter__ | found
class C:
    def __iter__(self):
        bad()
        return iter(())
def f():
    [*C()]
=== two stars call keys() | found
class C:
    def keys(self):
        bad()
        return ()
    def __getitem__(self, key): pass
def f():
    {**C()}
=== yield from calls __iter__ | found
class C:
    def __iter__(self):
        bad()
        return iter(())
def g():
    yield from C()
def f():
    list(g())
=== await | found
import asyncio
class C:
    def __await__(self):
        bad()
        return iter(())
async def g():
    await C()
def f():
    asyncio.run(g())
=== async with | found
import asyncio
class C:
    async def __aenter__(self):
        bad()
    async def __aexit__(self, *args): pass
async def g():
    async with C(): pass
def f():
    asyncio.run(g())
=== async for | found
import asyncio
class C:
    def __aiter__(self):
        return self
    async def __anext__(self):
        bad()
        raise StopAsyncIteration
async def g():
    async for _ in C(): pass
def f():
    asyncio.run(g())
=== while | found
class C:
    def __bool__(self):
        bad()
        return False
def f():
    c = C()
    while c: pass
=== assert | found
class C:
    def __bool__(self):
        bad()
        return True
def f():
    assert C()
=== a comprehension's condition | found
class C:
    def __bool__(self):
        bad()
        return True
def f():
    [1 for c in [C()] if c]
=== a slice | found
class C:
    def __getitem__(self, item):
        bad()
def f():
    C()[1:2]
=== sorted() compares | found
class C:
    def __lt__(self, other):
        bad()
        return True
def f():
    sorted([C(), C()])
=== a format specification | found
class C:
    def __format__(self, spec):
        bad()
        return ""
def f():
    f"{C():>3}"
=== print() of an object | found
class C:
    def __str__(self):
        bad()
        return ""
def f():
    print(C(), end="")
=== a value pattern compares | found
class C:
    def __eq__(self, other):
        bad()
        return True
    __hash__ = None
def f():
    match C():
        case 1: pass
=== a descriptor's __get__ | found
class D:
    def __get__(self, it, kind):
        bad()
class C:
    p = D()
def f():
    C().p
=== a descriptor's __get__ by the class | found
class D:
    def __get__(self, it, kind):
        bad()
class C:
    p = D()
def f():
    C.p
=== a descriptor's __set__ | found
class D:
    def __set__(self, it, value):
        bad()
class C:
    p = D()
def f():
    C().p = 1
=== a descriptor's __delete__ | found
class D:
    def __delete__(self, it):
        bad()
class C:
    p = D()
def f():
    del C().p
=== a descriptor of the unknown object's class | found
class D:
    def __get__(self, it, kind):
        bad()
class C:
    p = D()
def g(c):
    c.p
def f():
    g(C())
=== a descriptor that gives a function | counted
class D:
    def __get__(self, it, kind):
        return bad
class C:
    go = D()
def f():
    C().go()
=== an object with __call__ behind an attribute | found
class D:
    def __call__(self):
        bad()
class C:
    go = D()
def f():
    C().go()
=== what __getattr__ gives | counted
class C:
    def __getattr__(self, name):
        return bad
def f():
    C().anything()
=== a proxy | found
class Real:
    def go(self):
        bad()
class Proxy:
    def __init__(self, it):
        self._it = it
    def __getattr__(self, name):
        return getattr(self._it, name)
def f():
    Proxy(Real()).go()
=== a proxy's property | counted
class Real:
    @property
    def p(self):
        bad()
class Proxy:
    def __init__(self, it):
        self._it = it
    def __getattr__(self, name):
        return getattr(self._it, name)
def f():
    Proxy(Real()).p
=== what __enter__ gives | found
class Inner:
    def go(self):
        bad()
class C:
    def __enter__(self):
        return Inner()
    def __exit__(self, *args): pass
def f():
    with C() as it:
        it.go()
=== what __iter__ gives | found
class Inner:
    def go(self):
        bad()
class C:
    def __iter__(self):
        yield Inner()
def f():
    for it in C():
        it.go()
=== what __getitem__ gives | found
class Inner:
    def go(self):
        bad()
class C:
    def __getitem__(self, key):
        return Inner()
def f():
    C()[1].go()
=== what __add__ gives | found
class Inner:
    def go(self):
        bad()
class C:
    def __add__(self, other):
        return Inner()
def f():
    (C() + 1).go()
=== what a generator gives | found
class Inner:
    def go(self):
        bad()
def each():
    yield Inner()
def f():
    for it in each():
        it.go()
=== a method that is asked for and kept | found
class C:
    def go(self):
        bad()
def f():
    go = C().go
    go()
"""

FUNCTIONS = r"""
=== a decorator's wrapper | found
def deco(g):
    def inner():
        bad()
        return g()
    return inner
@deco
def f(): pass
=== a decorator with arguments | found
def deco(x):
    def outer(g):
        def inner():
            bad()
            return g()
        return inner
    return outer
@deco(1)
def f(): pass
=== a decorator class | found
class Deco:
    def __init__(self, g):
        self.g = g
    def __call__(self):
        bad()
@Deco
def f(): pass
=== a decorator class with arguments | found
class Deco:
    def __init__(self, x):
        self.x = x
    def __call__(self, g):
        def inner():
            bad()
        return inner
@Deco(1)
def f(): pass
=== a decorator class that is a descriptor | found
class Deco:
    def __init__(self, g):
        self.g = g
    def __get__(self, it, kind):
        bad()
        return self.g.__get__(it)
class C:
    @Deco
    def go(self): pass
def f():
    C().go()
=== a decorator object's method | found
class Registry:
    def wrap(self, g):
        def inner():
            bad()
        return inner
REGISTRY = Registry()
@REGISTRY.wrap
def f(): pass
=== a decorator out of a table | found
def deco(g):
    return bad
TABLE = {"d": deco}
@TABLE["d"]
def f(): pass
=== a decorator that puts another function in place | found
def deco(g):
    return bad
@deco
def f(): pass
=== a decorator that is a lambda | found
@lambda g: bad
def f(): pass
=== a decorator of a class | found
def deco(c):
    class Other(c):
        def __init__(self):
            bad()
    return Other
@deco
class C: pass
def f():
    C()
=== a decorator of a class that sets a method | found
def deco(c):
    c.go = bad
    return c
@deco
class C:
    def go(self): pass
def f():
    C().go()
=== a decorator of a class that wraps a method by setattr | found
def deco(c):
    setattr(c, "go", bad)
    return c
@deco
class C:
    def go(self): pass
def f():
    C().go()
=== a decorator of a method | found
import functools
def deco(g):
    @functools.wraps(g)
    def inner(*args):
        bad()
        return g(*args)
    return inner
class C:
    @deco
    def go(self): pass
def f():
    C().go()
=== functools.wraps and a closure | counted
import functools
def make(go):
    @functools.wraps(go)
    def inner():
        return go()
    return inner
f = make(bad)
=== a closure's variable | found
def make(go):
    def inner():
        go()
    return inner
def f():
    make(bad)()
=== functools.singledispatch | found
import functools
@functools.singledispatch
def g(x): pass
@g.register
def _(x: int):
    bad()
def f():
    g(1)
=== functools.singledispatch with a type | found
import functools
@functools.singledispatch
def g(x): pass
@g.register(int)
def _(x):
    bad()
def f():
    g(1)
=== functools.singledispatch by a call | found
import functools
@functools.singledispatch
def g(x): pass
g.register(int, bad)
def f():
    g(1)
=== functools.singledispatch in the caller | found
import functools
@functools.singledispatch
def g(x): pass
def h():
    g(1)
--- app/c.py
from lib.m import g, h, bad
@g.register
def _(x: int):
    bad()
def run():
    h()
=== functools.singledispatchmethod | found
import functools
class C:
    @functools.singledispatchmethod
    def go(self, x): pass
    @go.register
    def _(self, x: int):
        bad()
def f():
    C().go(1)
=== functools.partial | found
import functools
go = functools.partial(bad, 1)
def f():
    go()
=== functools.partial of a callback | found
import functools
def g(go):
    go()
def f():
    functools.partial(g, bad)()
=== functools.reduce | found
import functools
def f():
    functools.reduce(bad, [1, 2])
=== functools.cmp_to_key | found
import functools
def compare(a, b):
    bad()
    return 0
def f():
    sorted([1, 2], key=functools.cmp_to_key(compare))
=== functools.total_ordering | found
import functools
@functools.total_ordering
class C:
    def __lt__(self, other):
        bad()
        return True
def f():
    C() >= C()
=== map | found
def f():
    list(map(bad, [1]))
=== filter with a lambda | found
def f():
    list(filter(lambda x: bad(), [1]))
=== map with what an attribute keeps | counted
class C:
    def __init__(self, go):
        self.go = go
    def all(self):
        return list(map(self.go, [1]))
def make(**kwargs):
    return C(**kwargs)
IT = make(go=bad)
def f():
    IT.all()
=== a sort key that an attribute keeps | counted
class C:
    def __init__(self, go):
        self.go = go
    def all(self):
        return sorted([1], key=self.go)
def make(**kwargs):
    return C(**kwargs)
IT = make(go=bad)
def f():
    IT.all()
=== a decorator with arguments that makes an object which decorates | found
class Deco:
    def __call__(self, g):
        def inner():
            bad()
        return inner
def deco(x):
    return Deco()
@deco(1)
def f(): pass
=== a decorator that makes an object which is called | found
class Deco:
    def __call__(self):
        bad()
def deco(g):
    return Deco()
@deco
def f(): pass
=== a stream that closes itself | found
import io
class S(io.TextIOBase):
    def flush(self):
        bad()
def f():
    S()
=== a sort key | found
def f():
    [1].sort(key=bad)
=== a class handed to map | found
class C:
    def __init__(self, x):
        bad()
def f():
    list(map(C, [1]))
=== a class in a default dict | found
import collections
class C:
    def __init__(self):
        bad()
def f():
    collections.defaultdict(C)["x"]
=== a bound method handed on | found
class C:
    def go(self, x):
        bad()
def f():
    list(map(C().go, [1]))
=== an object handed on that is called | found
class C:
    def __call__(self, x):
        bad()
def f():
    list(map(C(), [1]))
=== a function in a list handed on | found
def g(goes):
    for go in goes:
        go()
def f():
    g([bad])
=== a function in a dict handed on | found
def g(goes):
    goes["x"]()
def f():
    g({"x": bad})
=== a function in a tuple that is handed on by name | found
def g(goes):
    goes[0]()
def f():
    goes = (bad,)
    g(goes)
=== a thread's target | found
import threading
def f():
    t = threading.Thread(target=bad)
    t.start()
    t.join()
=== atexit | found
import atexit
def f():
    atexit.register(bad)
    atexit._run_exitfuncs()
=== weakref.finalize | found
import weakref
class C: pass
def f():
    c = C()
    weakref.finalize(c, bad)
    del c
=== contextlib.contextmanager | found
import contextlib
@contextlib.contextmanager
def g():
    bad()
    yield
def f():
    with g(): pass
=== contextlib.ExitStack.callback | found
import contextlib
def f():
    with contextlib.ExitStack() as stack:
        stack.callback(bad)
=== contextlib.ExitStack.enter_context | found
import contextlib
class C:
    def __enter__(self):
        bad()
    def __exit__(self, *args): pass
def f():
    with contextlib.ExitStack() as stack:
        stack.enter_context(C())
=== contextlib.ContextDecorator | found
import contextlib
class C(contextlib.ContextDecorator):
    def __enter__(self):
        bad()
    def __exit__(self, *args): pass
@C()
def f(): pass
=== contextlib.closing | found
import contextlib
class C:
    def close(self):
        bad()
def f():
    with contextlib.closing(C()): pass
=== a context manager that is annotated with what it gives | found
import contextlib
from typing import Iterator
class C:
    def go(self):
        bad()
@contextlib.contextmanager
def g() -> Iterator[C]:
    yield C()
def f():
    with g() as it:
        it.go()
=== a coroutine that is annotated | counted
import asyncio
from typing import Awaitable
class C:
    def go(self):
        bad()
async def make():
    return C()
def g() -> Awaitable[C]:
    return make()
async def h():
    (await g()).go()
def f():
    asyncio.run(h())
=== an object handed to a library | counted
import heapq
class C:
    def go(self):
        bad()
    def __lt__(self, other):
        return True
--- app/c.py
import heapq
from lib.m import C
def run():
    them = [C()]
    heapq.heapify(them)
    heapq.heappop(them).go()
=== a copy | found
import copy
class C:
    def go(self):
        bad()
def f():
    copy.copy(C()).go()
=== the greatest of some functions | found
def f():
    max([bad], key=id)()
=== a generator's send | found
def g():
    bad((yield))
def f():
    it = g()
    next(it)
    try:
        it.send(1)
    except StopIteration:
        pass
=== an async function | found
import asyncio
async def g():
    bad()
def f():
    asyncio.run(g())
=== an async generator | found
import asyncio
async def g():
    yield bad()
async def h():
    async for _ in g(): pass
def f():
    asyncio.run(h())
=== operator.methodcaller | counted
import operator
class C:
    def go(self):
        bad()
def f():
    operator.methodcaller("go")(C())
=== operator.attrgetter | counted
import operator
class C:
    @property
    def p(self):
        bad()
def f():
    operator.attrgetter("p")(C())
=== operator.call on a table | counted
import operator
class C:
    def go(self):
        bad()
def f():
    operator.attrgetter("go")(C())()
=== getattr with a written name | found
class C:
    def go(self):
        bad()
def f():
    getattr(C(), "go")()
=== getattr with a computed name | counted
class C:
    def go(self):
        bad()
def f(name="go"):
    getattr(C(), name)()
=== getattr on a module with a computed name | counted
import sys
def f(name="bad"):
    getattr(sys.modules[__name__], name)()
=== object.__getattribute__ | counted
class C:
    def go(self):
        bad()
def f():
    object.__getattribute__(C(), "go")()
=== globals() | counted
def f():
    globals()["bad"]()
=== locals() | counted
def f():
    go = bad
    locals()["go"]()
=== vars() of a class | counted
class C:
    def go(self):
        bad()
def f():
    vars(C)["go"](None)
=== __subclasses__() | found
class B: pass
class C(B):
    def go(self):
        bad()
def f():
    for each in B.__subclasses__():
        each().go()
=== eval | counted
def f():
    eval("bad()")
=== eval of a name | counted
def f():
    eval("bad")()
=== exec | counted
def f():
    exec("bad()")
=== compile | counted
def f():
    eval(compile("bad()", "x", "exec"))
=== a function that exec made | counted
exec("def g(): bad()")
def f():
    g()
=== a function that globals() bound | counted
def g(): pass
globals()["g"] = bad
def f():
    g()
=== a function that globals().update bound | counted
def g(): pass
globals().update(g=bad)
def f():
    g()
=== a lambda in a table | found
TABLE = {"x": lambda: bad()}
def f():
    TABLE["x"]()
=== a known table that is added to | found
def good(): pass
TABLE = {"a": good}
TABLE["b"] = bad
def f():
    TABLE["b"]()
=== a known table that a function adds to | counted
def good(): pass
TABLE = {"a": good}
def register(name, go):
    TABLE[name] = go
register("b", bad)
def f():
    TABLE["b"]()
=== a known table that a decorator adds to | counted
def good(): pass
TABLE = {"a": good}
def register(go):
    TABLE["b"] = go
    return go
@register
def worse():
    bad()
def f():
    TABLE["b"]()
=== a known list that is appended to | found
def good(): pass
HOOKS = [good]
HOOKS.append(bad)
def f():
    for go in HOOKS:
        go()
=== a known table that is updated | found
def good(): pass
TABLE = {"a": good}
TABLE.update(b=bad)
def f():
    TABLE["b"]()
=== a known table by another name | counted
def good(): pass
TABLE = {"a": good}
OTHER = TABLE
OTHER["b"] = bad
def f():
    TABLE["b"]()
=== a known table that is handed on and added to | counted
def good(): pass
TABLE = {"a": good}
def fill(table):
    table["b"] = bad
fill(TABLE)
def f():
    TABLE["b"]()
=== a known table that another module adds to | found
def good(): pass
TABLE = {"a": good}
def g():
    TABLE["b"]()
--- lib/n.py
from lib import m
m.TABLE["b"] = m.bad
f = m.g
--- app/c.py
from lib.n import f
def run():
    f()
=== a known table that the caller adds to | found
def good(): pass
TABLE = {"a": good}
def g():
    TABLE["b"]()
--- app/c.py
from lib.m import TABLE, bad, g
TABLE["b"] = bad
def run():
    g()
=== a known table of an object that is added to | found
def good(): pass
class C:
    def __init__(self):
        self.table = {"a": good}
    def add(self, name, go):
        self.table[name] = go
    def go(self):
        self.table["b"]()
def f():
    c = C()
    c.add("b", bad)
    c.go()
=== a display that is merged | found
def good(): pass
def f():
    ({"a": good} | {"b": bad})["b"]()
=== a display with two stars | found
def good(): pass
MORE = {"b": bad}
TABLE = {"a": good, **MORE}
def f():
    TABLE["b"]()
=== a display with a star | found
def good(): pass
MORE = [bad]
ALL = [good, *MORE]
def f():
    ALL[1]()
=== dict() of keywords | counted
TABLE = dict(a=bad)
def f():
    TABLE["a"]()
=== a nested table | found
TABLE = {"a": {"b": bad}}
def f():
    TABLE["a"]["b"]()
=== a table's get with a default | found
def good(): pass
TABLE = {"a": good}
def f():
    TABLE.get("b", bad)()
=== a table's items | found
TABLE = {"a": bad}
def f():
    for _, go in TABLE.items():
        go()
=== a table's keys | found
TABLE = {bad: 1}
def f():
    for go in TABLE:
        go()
=== next(iter()) | found
TABLE = [bad]
def f():
    next(iter(TABLE))()
=== zip | found
def f():
    for _, go in zip([1], [bad]):
        go()
=== a table that is a comprehension | found
TABLE = {n: bad for n in "ab"}
def f():
    TABLE["a"]()
=== a SimpleNamespace | found
import types
def f():
    types.SimpleNamespace(go=bad).go()
=== a SimpleNamespace that is changed | found
import types
def good(): pass
def f():
    it = types.SimpleNamespace(go=good)
    it.go = bad
    it.go()
=== a type alias in an annotation | found
from typing import Union
class C:
    def go(self):
        bad()
Both = Union[C, int]
def g(x: Both):
    x.go()
def f():
    g(C())
=== an annotation that is wrong | found
class Good:
    def go(self): pass
class C(Good):
    def go(self):
        bad()
def g(x: "Good"):
    x.go()
def f():
    g(C())
=== isinstance narrows to a base | found
class B:
    def go(self): pass
class C(B):
    def go(self):
        bad()
def g(x):
    if isinstance(x, B):
        x.go()
def f():
    g(C())
=== a list of bases | found
class B:
    def go(self): pass
class C(B):
    def go(self):
        bad()
def g(them: list[B]):
    for it in them:
        it.go()
def f():
    g([C()])
=== an object kept by a base's annotation | found
class B:
    def go(self): pass
class C(B):
    def go(self):
        bad()
class Holder:
    def __init__(self, it: B):
        self.it = it
    def go(self):
        self.it.go()
def f():
    Holder(C()).go()
"""

PATCHING = r"""
=== a method that is set from outside | found
class C:
    def go(self): pass
def worse(self):
    bad()
C.go = worse
def f():
    C().go()
=== a method that is set from outside and was not there | found
class C: pass
def worse(self):
    bad()
C.go = worse
def f():
    C().go()
=== a method that another module sets | found
class C:
    def go(self): pass
def g():
    C().go()
--- lib/n.py
from lib import m
def worse(self):
    m.bad()
m.C.go = worse
f = m.g
--- app/c.py
from lib.n import f
def run():
    f()
=== a method that the caller sets | found
class C:
    def go(self): pass
def f():
    C().go()
--- app/c.py
from lib.m import C, bad, f
C.go = bad
def run():
    f()
=== a method that the caller sets in a function | found
class C:
    def go(self): pass
def f():
    C().go()
--- app/c.py
from lib import m
def run():
    m.C.go = m.bad
    m.f()
=== setattr on a class | found
class C:
    def go(self): pass
setattr(C, "go", bad)
def f():
    C().go()
=== setattr on a class in a loop | counted
class C:
    def go(self): pass
for name in ["go"]:
    setattr(C, name, bad)
def f():
    C().go()
=== type.__setattr__ on a class | found
class C:
    def go(self): pass
type.__setattr__(C, "go", bad)
def f():
    C().go()
=== a special method that is set from outside | counted
class C: pass
C.__len__ = lambda self: bad() or 1
def f():
    len(C())
=== a function of a module that is set | found
def good(): pass
def g():
    good()
--- lib/n.py
import lib.m
lib.m.good = lib.m.bad
f = lib.m.g
--- app/c.py
from lib.n import f
def run():
    f()
=== a function of a module that the caller sets | found
def good(): pass
def f():
    good()
--- app/c.py
from lib import m
m.good = m.bad
def run():
    m.f()
=== a function of a module that setattr sets | found
import sys
def good(): pass
setattr(sys.modules[__name__], "good", bad)
def f():
    good()
=== a function that is set through sys.modules | found
import sys
def good(): pass
sys.modules[__name__].good = bad
def f():
    good()
=== a module in sys.modules | found
def good(): pass
--- lib/n.py
import sys
import types
def good(): pass
class Fake(types.ModuleType):
    @staticmethod
    def good():
        from lib.m import bad
        bad()
sys.modules["lib.n"] = Fake("lib.n")
--- lib/o.py
import lib.n
import sys
def f():
    sys.modules["lib.n"].good()
--- app/c.py
from lib.o import f
def run():
    f()
=== a module in sys.modules, imported by name | counted
import sys
class Fake:
    @staticmethod
    def good():
        bad()
sys.modules["lib.n"] = Fake
import lib.n
def f():
    from lib.n import good
    good()
--- lib/n.py
def good(): pass
=== unittest.mock.patch | found
import unittest.mock
def good(): pass
def g():
    good()
def f():
    with unittest.mock.patch("lib.m.good", bad):
        g()
=== a method that a function of the library sets | counted
class C:
    def go(self): pass
def patch(kind, name, value):
    setattr(kind, name, value)
patch(C, "go", bad)
def f():
    C().go()
=== __class__ that is set | counted
class A:
    def go(self): pass
class C:
    def go(self):
        bad()
def f():
    a = A()
    a.__class__ = C
    a.go()
=== __bases__ that are set | counted
class Good:
    def go(self): pass
class Bad:
    def go(self):
        bad()
class B(Good): pass
B.__bases__ = (Bad,)
def f():
    B().go()
=== __code__ that is set | counted
def good(): pass
def worse():
    return subprocess.run(["true"])
good.__code__ = worse.__code__
def f():
    good()
=== __call__ of an instance's class, set from outside | counted
class C: pass
C.__call__ = bad
def f():
    C()()
=== an attribute of an object made at import | found
class C:
    def __init__(self):
        self.go = good
def good(): pass
IT = C()
IT.go = bad
def f():
    IT.go()
=== a name that `del` takes away from a class | found
class B:
    def go(self):
        bad()
class C(B):
    def go(self): pass
    del go
def f():
    C().go()
"""

EXPRESSIONS = """
=== a field of a dataclass that has a base of others | counted
import abc, dataclasses
from typing import Any
class Bad:
    def go(self):
        bad()
@dataclasses.dataclass
class C(abc.ABC):
    impl: Any
def f():
    C(Bad()).impl.go()
=== the value of a member of an enumeration | found
import enum, functools
class E(enum.Enum):
    GO = functools.partial(bad)
def f():
    E.GO.value()
=== a default of a dataclass that another value takes the place of | counted
import dataclasses
from typing import Callable
def good(): pass
@dataclasses.dataclass
class C:
    go: Callable = good
IT = C(bad)
def f():
    IT.go()
=== a default of a NamedTuple that another value takes the place of | counted
from typing import Callable, NamedTuple
def good(): pass
class P(NamedTuple):
    go: Callable = good
IT = P(go=bad)
def f():
    IT.go()
=== a union one part of which says nothing | counted
from typing import Protocol, Union
class P(Protocol):
    def go(self) -> None: ...
class Good:
    def go(self): pass
class Bad:
    def go(self):
        bad()
def g(x: Union[Good, P]):
    x.go()
def f():
    g(Bad())
=== the first part of an annotated tuple | found
class Good:
    def go(self): pass
class C:
    def go(self):
        bad()
def g(pair: "tuple[C, Good]"):
    pair[0].go()
def f():
    g((C(), Good()))
=== keys of an annotated dict | found
class Good: pass
class C:
    def go(self):
        bad()
def g(table: "dict[C, Good]"):
    for key in table:
        key.go()
def f():
    g({C(): Good()})
=== a name that a loop binds which does not run | counted
def good(): pass
go = bad
for _ in ():
    go = good
def f():
    go()
=== a name of an import that fails, and is suppressed | counted
import contextlib
go = bad
with contextlib.suppress(ImportError):
    from lib.fast import go
def f():
    go()
--- lib/fast.py
raise ImportError("no")
def go(): pass
=== an assertion in a branch that is not taken | counted
class Good:
    def go(self): pass
class Bad:
    def go(self):
        bad()
def g(x, strict=False):
    if strict:
        assert isinstance(x, Good)
    x.go()
def f():
    g(Bad())
=== an assertion that names a protocol as well | counted
from typing import Protocol, runtime_checkable
@runtime_checkable
class P(Protocol):
    def go(self): ...
class Good:
    def go(self): pass
class Bad:
    def go(self):
        bad()
def g(x):
    assert isinstance(x, (Good, P))
    x.go()
def f():
    g(Bad())
=== an assertion of an abstract class that another one is registered with | counted
import abc
class Good(abc.ABC):
    def go(self): pass
@Good.register
class Bad:
    def go(self):
        bad()
def g(x):
    assert isinstance(x, Good)
    x.go()
def f():
    g(Bad())
=== a method that an object of another class is handed to | found
class A:
    def run(self):
        self.hook()
    def hook(self): pass
class B:
    def hook(self):
        bad()
def f():
    A.run(B())
=== a method that another class takes over | found
class A:
    def run(self):
        self.hook()
    def hook(self): pass
class B:
    run = A.run
    def hook(self):
        bad()
def f():
    B().run()
=== an operation in place that gives another object | counted
class Bad:
    def go(self):
        bad()
class Good:
    def go(self): pass
    def __iadd__(self, other):
        return Bad()
def f():
    x = Good()
    x += 1
    x.go()
=== a slice that gives another object | found
class Bad:
    def go(self):
        bad()
class Good:
    def go(self): pass
    def __getitem__(self, part):
        return Bad()
def f():
    Good()[1:2].go()
=== an object that another one is awaited of | counted
import asyncio
class Bad:
    def go(self):
        bad()
class Lazy:
    def go(self): pass
    def __await__(self):
        return Bad()
        yield
async def h():
    (await Lazy()).go()
def f():
    asyncio.run(h())
=== an asynchronous context that gives another object | found
import asyncio
class Bad:
    def go(self):
        bad()
class Context:
    def go(self): pass
    async def __aenter__(self):
        return Bad()
    async def __aexit__(self, *args): pass
async def h():
    async with Context() as it:
        it.go()
def f():
    asyncio.run(h())
=== super() of another class | found
class A:
    def go(self):
        bad()
class B(A):
    def go(self): pass
class C(B):
    def go(self):
        super(B, self).go()
def f():
    C().go()
=== super() kept in a variable, of a diamond | found
class A:
    def go(self): pass
class B(A):
    def go(self):
        above = super()
        above.go()
class C(A):
    def go(self):
        bad()
class D(B, C): pass
def f():
    D().go()
=== a metaclass makes its class | counted
class M(type):
    def make(cls):
        return cls()
class C(metaclass=M):
    def __init__(self):
        bad()
def f():
    C.make()
=== a metaclass puts another method in place | counted
class M(type):
    def __new__(kind, name, bases, names):
        names["go"] = lambda self: bad()
        return super().__new__(kind, name, bases, names)
class C(metaclass=M):
    def go(self): pass
def f():
    C().go()
=== a decorator of a class that gives a function | found
def single(kind):
    def get(*args):
        bad()
        return kind(*args)
    return get
@single
class C:
    def go(self): pass
def f():
    C().go()
=== a decorator of a class that is a class | found
class Proxy:
    def __init__(self, kind):
        self.kind = kind
    def __call__(self):
        bad()
        return self.kind()
@Proxy
class C:
    def go(self): pass
def f():
    C().go()
=== a list in a table, and what is added to it | counted
def good(): pass
HOOKS = {"pre": [good]}
HOOKS["pre"].append(bad)
def f():
    for go in HOOKS["pre"]:
        go()
=== a table in a table, one element of which is set | counted
def good(): pass
T = {"a": {"x": good}}
T["a"]["x"] = bad
def f():
    T["a"]["x"]()
=== a comprehension that is written without blanks | counted
def good(): pass
go = good
def f():
\treturn[go()for go in[bad]]
=== TYPE_CHECKING of something else than typing | found
class Config:
    TYPE_CHECKING = True
def f():
    if Config.TYPE_CHECKING:
        bad()
=== a namespace that is kept in a variable | counted
def good(): pass
names = globals()
names["good"] = bad
def f():
    good()
=== the globals of a function | counted
def good(): pass
def g():
    good()
g.__globals__["good"] = bad
def f():
    g()
=== a private name that is set from outside | found
class C:
    def __go(self): pass
    def run(self):
        self.__go()
C._C__go = bad
def f():
    C().run()
=== setattr by another name | counted
put = setattr
def good(): pass
class C:
    go = staticmethod(good)
put(C, "go", bad)
def f():
    C.go()
=== unittest.mock.patch that is started | counted
import unittest.mock
def good(): pass
unittest.mock.patch("lib.m.good", bad).start()
def f():
    good()
"""
"""What expressions are: members, fields, annotations, names, results of operations."""


def _special(name: str, text: str) -> str:
    result = {"__hash__": "1", "__str__": '""', "__repr__": '""', "__format__": '""', "__bytes__": 'b""'}
    result |= {"__int__": "1", "__index__": "0", "__float__": "1.0", "__iter__": "iter(())", "__dir__": "[]"}
    result |= {"__bool__": "True", "__len__": "1", "__length_hint__": "1", "__sizeof__": "1", "__reduce__": '"x"'}
    base = {"__missing__": "(dict)", "__getstate__": ""}.get(name, "")
    body = f"    def {name}(self, *args):\n        bad()\n        return {result.get(name, 'None')}\n"
    lines = "".join(f"    {line}\n" for line in text.split("; "))
    return f"\n=== {name} | found\nclass C{base}:\n{body}def f():\n{lines}"


# ---- callers of several modules: what one of them puts where another finds it ----------------------------------

OWN_MODULES = r"""
=== several modules of the caller: registry in a third module | counted
class C:
    def go(self):
        bad()
--- app/reg.py
TABLE = {}
--- app/a.py
from lib.m import C
from app.reg import TABLE
TABLE["x"] = C
--- app/c.py
import app.a
from app.reg import TABLE
def run():
    TABLE["x"]().go()
=== several modules of the caller: attribute injected into a class of another module | counted
class C:
    def go(self):
        bad()
--- app/h.py
class Holder: pass
--- app/a.py
from lib.m import C
from app.h import Holder
Holder.impl = C()
--- app/c.py
import app.a
from app.h import Holder
def run():
    Holder.impl.go()
=== several modules of the caller: a template method in a base | counted
class C:
    def go(self):
        bad()
--- app/base.py
class Base:
    def run(self):
        self.make().go()
--- app/c.py
from lib.m import C
from app.base import Base
class Mine(Base):
    def make(self):
        return C()
def run():
    Mine().run()
=== several modules of the caller: global state in a third module | counted
class C:
    def go(self):
        bad()
--- app/state.py
current = []
--- app/w.py
from app.state import current
def work():
    current[0].go()
--- app/c.py
from lib.m import C
from app.state import current
from app.w import work
def run():
    current.append(C())
    work()
=== several modules of the caller: a generator of an own module | counted
class C:
    def go(self):
        bad()
--- app/a.py
from lib.m import C
def each():
    yield C()
--- app/c.py
from app.a import each
def run():
    for it in each():
        it.go()
=== several modules of the caller: a list of own module | counted
class C:
    def go(self):
        bad()
--- app/a.py
from lib.m import C
ITS = [C()]
--- app/c.py
from app.a import ITS
def run():
    ITS[0].go()
=== several modules of the caller: module level call into own module | counted
class C:
    def go(self):
        bad()
--- app/u.py
ITS = []
def use(it):
    ITS.append(it)
def run():
    for it in ITS:
        it.go()
--- app/a.py
from lib.m import C
from app.u import use
use(C())
--- app/c.py
import app.a
from app.u import run
=== several modules of the caller: a decorator of an own object | counted
class C:
    def go(self): bad()
--- app/u.py
class App:
    def __init__(self): self.routes = {}
    def route(self, path):
        def deco(fn):
            self.routes[path] = fn
            return fn
        return deco
    def serve(self, path):
        self.routes[path]().go()
app = App()
--- app/c.py
from lib.m import C
from app.u import app
@app.route("/")
def index():
    return C()
def run():
    app.serve("/")
"""

IDIOMS = [
    *read_idioms(NAMES),
    *read_idioms(CLASSES),
    *read_idioms("".join(_special(name, text) for name, text in SPECIAL_METHODS.items())),
    *read_idioms(SPECIAL),
    *read_idioms(FUNCTIONS),
    *read_idioms(PATCHING),
    *read_idioms(EXPRESSIONS),
    *read_idioms(OWN_MODULES),
]

# ---- what others get: constructs themselves, and callbacks of which nothing is known ----

IDIOMS += read_idioms(
    r"""
=== a construct that is handed to map | found
def f():
    list(map(subprocess.run, [["true"]]))
=== a construct that is handed to starmap | found
import itertools
def f():
    list(itertools.starmap(subprocess.run, [(["true"],)]))
=== a construct that an exit stack calls back | found
import contextlib
def f():
    with contextlib.ExitStack() as stack:
        stack.callback(subprocess.run, ["true"])
=== a construct that is a key | found
def f():
    sorted([["true"]], key=subprocess.run)
=== an unknown callback of a regular expression | counted
import re
class C:
    def __init__(self, go):
        self.go = go
    def all(self):
        re.sub("a", self.go, "a")
IT = C(lambda found: bad() or "")
def f():
    IT.all()
=== an unknown callback of accumulate | counted
import itertools
class C:
    def __init__(self, go):
        self.go = go
    def all(self):
        list(itertools.accumulate([1, 2], self.go))
IT = C(bad)
def f():
    IT.all()
=== an unknown callback of an exit stack | counted
import contextlib
class C:
    def __init__(self, go):
        self.go = go
    def all(self):
        with contextlib.ExitStack() as stack:
            stack.callback(self.go)
IT = C(bad)
def f():
    IT.all()
=== an unknown callback of iter | counted
class C:
    def __init__(self, go):
        self.go = go
    def all(self):
        list(iter(self.go, None))
IT = C(bad)
def f():
    IT.all()
"""
)

# ---- what classes of others call of those that inherit from them, and what operations ask without a word of it ----

IDIOMS += read_idioms(
    r"""
=== update, which UserDict calls when it is made | found
import collections
class D(collections.UserDict):
    def update(self, *args, **kwargs):
        bad()
def f():
    D({"a": 1})
=== update, which Counter calls for a subclass of the caller | found
import collections
class D(collections.Counter):
    def update(self, *args, **kwargs):
        bad()
--- app/c.py
from lib.m import D
class Mine(D):
    def __init__(self):
        super().__init__("abc")
def run():
    Mine()
=== items, which an abstract mapping compares | found
import collections.abc
class M(collections.abc.Mapping):
    def __getitem__(self, key): return 1
    def __iter__(self): return iter(())
    def __len__(self): return 0
    def items(self):
        bad()
        return []
IT = M()
def f():
    return IT == IT
=== a class method of a base that makes objects of the class | found
import collections
class D(collections.UserDict):
    def __setitem__(self, key, value):
        bad()
def f():
    D.fromkeys("abc")
=== the same, taken from the class before | found
import collections
class D(collections.UserDict):
    def __setitem__(self, key, value):
        bad()
make = D.fromkeys
def f():
    make("abc")
=== a hook of a visitor | found
import ast
class V(ast.NodeVisitor):
    def visit_Name(self, node):
        bad()
def f():
    V().visit(ast.parse("x"))
=== an encoder that the standard library makes | found
import json
class E(json.JSONEncoder):
    def default(self, each):
        bad()
        return 1
def f():
    E().encode(object())
=== dict of an object with keys | found
class C:
    def keys(self):
        bad()
        return []
    def __getitem__(self, key): pass
def f():
    dict(C())
=== a property that a format string asks for | found
class C:
    @property
    def p(self):
        bad()
def f():
    "{0.p}".format(C())
=== a subclass hook | found
import abc
class C(abc.ABC):
    @classmethod
    def __subclasshook__(cls, other):
        bad()
        return True
def f():
    isinstance(1, C)
=== an object made by object.__new__ | found
class C:
    def __add__(self, other):
        bad()
def f():
    object.__new__(C) + 1
=== fields of a data class that are compared | found
import dataclasses
class C:
    def __eq__(self, other):
        bad()
@dataclasses.dataclass
class D:
    x: object
A, B = D(C()), D(C())
def f():
    A == B
=== tables in tables that are compared | found
class C:
    def __eq__(self, other):
        bad()
A, B = [[C()]], [[C()]]
def f():
    A == B
=== an object that is closed by others, made at import | counted
import contextlib
class C:
    def close(self):
        bad()
IT = contextlib.closing(C())
def f():
    with IT: pass
"""
)

# ---- what the observer of the runs does not see: locks, files, the environment (docs/measurements/dynamo.md) ----

UNSEEN = read_idioms(
    r"""
=== a condition that was made at import is entered | counted
import threading
IT = threading.Condition()
def f():
    with IT: pass
=== a semaphore that was made at import is entered | counted
import threading
IT = threading.Semaphore()
def f():
    with IT: pass
=== a lock between processes that was made at import is entered | counted
import multiprocessing
IT = multiprocessing.Lock()
def f():
    with IT: pass
=== a lock of a table that makes locks | counted
import collections
import threading
LOCKS = collections.defaultdict(threading.Lock)
def f():
    with LOCKS["x"]: pass
=== a lock that an exit stack enters | counted
import contextlib
import threading
LOCK = threading.Lock()
def f():
    with contextlib.ExitStack() as stack:
        stack.enter_context(LOCK)
=== a file that was opened at import is read | counted
IT = open(__file__)
def f():
    IT.read()
=== a file that was opened at import is iterated over | counted
IT = open(__file__)
def f():
    for line in IT: pass
=== a file that an object opened at import is read | counted
class C:
    def __init__(self):
        self.file = open(__file__)
    def go(self):
        self.file.read()
IT = C()
def f():
    IT.go()
=== a folder that was made at import is entered | counted
import tempfile
IT = tempfile.TemporaryDirectory()
def f():
    with IT: pass
=== a variable of the environment is set | counted
import os
def f():
    os.environ["X"] = "1"
=== a function of a library is handed to map | counted
import ctypes
IT = ctypes.CDLL(None)
def f():
    list(map(IT.abs, [1]))
=== a function that asks the file system is handed to any | counted
import os
def f():
    any(map(os.path.exists, ["/"]))
=== a field whose default is the time | counted
import dataclasses
import time
@dataclasses.dataclass
class C:
    at: float = dataclasses.field(default_factory=time.time)
def f():
    C()
=== forward of an autograd function, by apply | counted
import torch
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        bad()
        return x
apply = Fn.apply
def f():
    apply(torch.ones(1))
=== a module in a Sequential that was made at import | counted
import torch
class Mod(torch.nn.Module):
    def forward(self, x):
        bad()
        return x
IT = torch.nn.Sequential(Mod())
def f():
    IT(torch.ones(1))
=== a module that is handed to another one | counted
import torch
class Mod(torch.nn.Module):
    def forward(self, x):
        bad()
        return x
def f():
    torch.nn.Sequential(Mod())(torch.ones(1))
=== a module behind eval | counted
import torch
class Mod(torch.nn.Module):
    def forward(self, x):
        bad()
        return x
IT = Mod().eval()
def f():
    IT(torch.ones(1))
=== a hook of a module | counted
import torch
class Mod(torch.nn.Module):
    def forward(self, x):
        return x
IT = Mod()
IT.register_forward_hook(bad)
def f():
    IT(torch.ones(1))
=== forward, set on the object | counted
import torch
class Mod(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.forward = self.inner
    def inner(self, x):
        bad()
        return x
IT = Mod()
def f():
    IT(torch.ones(1))
=== a method that the initialiser of a base calls | counted
import torch
class L(torch.nn.Linear):
    def reset_parameters(self):
        bad()
--- app/c.py
from lib.m import L
class Mine(L):
    def __init__(self):
        super().__init__(1, 1)
def run():
    Mine()
=== a tensor of a subclass | counted
import torch
class T(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        bad()
        return super().__torch_function__(func, types, args, kwargs or {})
def f():
    torch.ones(1).as_subclass(T) + 1
"""
)
