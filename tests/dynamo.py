"""A program: each construct of the hazard table `dynamo`, run under torch.compile on a CPU, no GPU needed.

    python tests/dynamo.py patchkit/dynamo.toml          the table of results, as Markdown
    python tests/dynamo.py patchkit/dynamo.toml --json   the same as JSON

A construct is run alone first, so that it is known to work; then ``torch.compile(fullgraph=True, backend="eager")``
compiles a function that uses it. A hazard must end in ``torch._dynamo.exc.Unsupported``, what is said to be traced must
compile. It needs PyTorch and the standard library; constructs of libraries that are not there are "absent".
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# What a module of the standard library or of others is used with, by construct. ``D`` is a folder of its own, ``F`` a
# file in it, ``P`` and ``Q`` the same as paths, ``x`` the tensor that is compiled for, ``N`` the number of this run.
SNIPPETS = {
    "subprocess.run": "subprocess.run(['true'])",
    "subprocess.call": "subprocess.call(['true'])",
    "subprocess.check_call": "subprocess.check_call(['true'])",
    "subprocess.check_output": "subprocess.check_output(['true'])",
    "subprocess.Popen": "subprocess.Popen(['true']).wait()",
    "os.system": "os.system('true')",
    "os.popen": "os.popen('true').close()",
    "open": "open(F).close()",
    "os.path.exists": "os.path.exists(F)",
    "os.path.isfile": "os.path.isfile(F)",
    "os.path.isdir": "os.path.isdir(F)",
    "os.path.getmtime": "os.path.getmtime(F)",
    "os.path.getsize": "os.path.getsize(F)",
    "os.path.realpath": "os.path.realpath(F)",
    "os.path.abspath": "os.path.abspath(F)",
    "os.path.join": "os.path.join(D, 'a')",
    "os.path.dirname": "os.path.dirname(F)",
    "os.path.basename": "os.path.basename(F)",
    "os.makedirs": "os.makedirs(D, exist_ok=True)",
    "os.mkdir": "os.mkdir(D + f'/mkdir{N}')",
    "os.listdir": "os.listdir(D)",
    "os.scandir": "os.scandir(D).close()",
    "os.walk": "list(os.walk(D))",
    "os.stat": "os.stat(F)",
    "os.access": "os.access(F, 4)",
    "os.remove": "os.remove(NEW())",
    "os.unlink": "os.unlink(NEW())",
    "os.rename": "os.rename(NEW(), F + '.renamed')",
    "os.replace": "os.replace(NEW(), F + '.renamed')",
    "os.chmod": "os.chmod(F, 0o644)",
    "os.getcwd": "os.getcwd()",
    "os.getpid": "os.getpid()",
    "os.cpu_count": "os.cpu_count()",
    "os.uname": "os.uname()",
    "os.urandom": "os.urandom(1)",
    "os.environ.get": "os.environ.get('PATH')",
    "os.environ.__setitem__": "os.environ['PATCHKIT_X'] = '1'",
    "os.environ.setdefault": "os.environ.setdefault(f'PATCHKIT_{N}', '1')",
    "os.environ.update": "os.environ.update(PATCHKIT_X='1')",
    "os.putenv": "os.putenv('PATCHKIT_X', '1')",
    "os.getenv": "os.getenv('PATH')",
    "os.fspath": "os.fspath(F)",
    "pathlib.Path": "pathlib.Path(F)",
    "pathlib.Path.exists": "P.exists()",
    "pathlib.Path.is_file": "P.is_file()",
    "pathlib.Path.is_dir": "P.is_dir()",
    "pathlib.Path.mkdir": "Q.mkdir(exist_ok=True)",
    "pathlib.Path.resolve": "P.resolve()",
    "pathlib.Path.stat": "P.stat()",
    "pathlib.Path.open": "P.open().close()",
    "pathlib.Path.read_text": "P.read_text()",
    "pathlib.Path.read_bytes": "P.read_bytes()",
    "pathlib.Path.write_text": "P.write_text('a')",
    "pathlib.Path.write_bytes": "P.write_bytes(b'a')",
    "pathlib.Path.unlink": "pathlib.Path(NEW()).unlink()",
    "pathlib.Path.touch": "P.touch()",
    "pathlib.Path.glob": "list(Q.glob('*'))",
    "pathlib.Path.rglob": "list(Q.rglob('*'))",
    "pathlib.Path.iterdir": "list(Q.iterdir())",
    "pathlib.Path.rename": "pathlib.Path(NEW()).rename(F + '.renamed')",
    "pathlib.Path.replace": "pathlib.Path(NEW()).replace(F + '.renamed')",
    "pathlib.Path.symlink_to": "(Q / f'link{N}').symlink_to(F)",
    "pathlib.Path.cwd": "pathlib.Path.cwd()",
    "pathlib.Path.with_suffix": "P.with_suffix('.b')",
    "pathlib.Path.joinpath": "P.joinpath('a')",
    "shutil.which": "shutil.which('true')",
    "shutil.rmtree": "shutil.rmtree(tempfile.mkdtemp(dir=D))",
    "shutil.copy": "shutil.copy(F, F + '.copy')",
    "shutil.copyfile": "shutil.copyfile(F, F + '.copy')",
    "shutil.copytree": "shutil.copytree(D + '/empty', D + f'/tree{N}')",
    "shutil.move": "shutil.move(NEW(), F + '.moved')",
    "glob.glob": "glob.glob(D)",
    "tempfile.mkdtemp": "tempfile.mkdtemp(dir=D)",
    "tempfile.NamedTemporaryFile": "tempfile.NamedTemporaryFile(dir=D).close()",
    "tempfile.TemporaryDirectory": "tempfile.TemporaryDirectory(dir=D).cleanup()",
    "threading.Lock": "threading.Lock()",
    "threading.RLock": "threading.RLock()",
    "threading.Lock.acquire": "LOCK.acquire(); LOCK.release()",
    "threading.Lock.__enter__": "with LOCK: pass",
    "threading.RLock.__enter__": "with RLOCK: pass",
    "threading.Condition.acquire": "CONDITION.acquire(); CONDITION.release()",
    "threading.Condition.__enter__": "with CONDITION: pass",
    "threading.Semaphore.acquire": "SEMAPHORE.acquire(); SEMAPHORE.release()",
    "threading.Semaphore.__enter__": "with SEMAPHORE: pass",
    "threading.BoundedSemaphore.__enter__": "with BOUNDED: pass",
    "threading.Event.set": "EVENT.set()",
    "threading.Thread": "threading.Thread(target=int).start()",
    "threading.get_ident": "threading.get_ident()",
    "threading.local": "threading.local()",
    "multiprocessing.Lock": "multiprocessing.Lock()",
    "multiprocessing.Lock.acquire": "SHARED.acquire(); SHARED.release()",
    "multiprocessing.Lock.__enter__": "with SHARED: pass",
    "multiprocessing.RLock.__enter__": "with RSHARED: pass",
    "concurrent.futures.ThreadPoolExecutor": "concurrent.futures.ThreadPoolExecutor(1).shutdown()",
    "filelock.FileLock": "filelock.FileLock(F + '.lock')",
    "filelock.FileLock.acquire": "FILELOCK.acquire(); FILELOCK.release()",
    "filelock.FileLock.__enter__": "with FILELOCK: pass",
    "fcntl.flock": "fcntl.flock(FD, fcntl.LOCK_UN)",
    "ctypes.CDLL": "ctypes.CDLL(None)",
    "ctypes.cdll.LoadLibrary": "ctypes.cdll.LoadLibrary(None)",
    "ctypes.util.find_library": "ctypes.util.find_library('c')",
    "ctypes.CDLL()": "SYSTEM.getpid()",
    "tvm_ffi.load_module()": "MODULE.implements_function('a')",
    "tvm_ffi.get_global_func()": "GLOBAL('a')",
    "torch.ops.load_library": "torch.ops.load_library(SO)",
    "tvm_ffi.load_module": "tvm_ffi.load_module(SO)",
    "tvm_ffi.get_global_func": "tvm_ffi.get_global_func('ffi.String')",
    "importlib.import_module": "importlib.import_module('math')",
    "importlib.util.module_from_spec": "importlib.util.module_from_spec(importlib.machinery.ModuleSpec('a', None))",
    "importlib.metadata.version": "importlib.metadata.version('torch')",
    "importlib.reload": "importlib.reload(colorsys)",
    "__import__": "__import__('math')",
    "exec": "exec('1')",
    "compile": "compile('1', '', 'eval')",
    "time.time": "time.time()",
    "time.time_ns": "time.time_ns()",
    "time.perf_counter": "time.perf_counter()",
    "time.perf_counter_ns": "time.perf_counter_ns()",
    "time.monotonic": "time.monotonic()",
    "time.sleep": "time.sleep(0)",
    "time.strftime": "time.strftime('')",
    "datetime.datetime.now": "datetime.datetime.now()",
    "datetime.datetime.today": "datetime.datetime.today()",
    "random.random": "random.random()",
    "random.shuffle": "random.shuffle([1])",
    "uuid.uuid4": "uuid.uuid4()",
    "secrets.token_hex": "secrets.token_hex()",
    "print": "print('', end='')",
    "logging.getLogger": "logging.getLogger('a')",
    "logging.Logger.debug": "LOG.debug('a')",
    "logging.Logger.info": "LOG.info('a')",
    "logging.Logger.warning": "LOG.warning('a')",
    "logging.Logger.error": "LOG.error('a')",
    "logging.debug": "logging.debug('a')",
    "logging.info": "logging.info('a')",
    "logging.warning": "logging.warning('a')",
    "warnings.warn": "warnings.warn('a')",
    "sys.stdout.write": "sys.stdout.write('')",
    "sys.stderr.write": "sys.stderr.write('')",
    "inspect.stack": "inspect.stack()",
    "inspect.getsource": "inspect.getsource(textwrap.dedent)",
    "inspect.currentframe": "inspect.currentframe()",
    "gc.collect": "gc.collect()",
    "atexit.register": "atexit.register(int)",
    "json.dumps": "json.dumps({'a': N})",
    "json.loads": "json.loads('{}')",
    "json.dump": "json.dump({}, io.StringIO())",
    "json.load": "json.load(io.StringIO('{}'))",
    "pickle.dumps": "pickle.dumps(1)",
    "pickle.loads": "pickle.loads(pickle.dumps(1))",
    "hashlib.sha256": "hashlib.sha256(b'')",
    "hashlib.md5": "hashlib.md5(b'')",
    "hashlib.sha1": "hashlib.sha1(b'')",
    "socket.socket": "socket.socket().close()",
    "socket.gethostname": "socket.gethostname()",
    "urllib.request.urlopen": "urllib.request.urlopen('data:,a')",
    "torch.Tensor.tolist": "x.tolist()",
    "torch._dynamo.graph_break": "torch._dynamo.graph_break()",
    "torch._dynamo.skip_frame": "torch._dynamo.skip_frame()",
    "torch.save": "torch.save(x, F)",
    "torch.load": "torch.load(T)",
    "functools.cache": "CACHED(N)",
    "functools.lru_cache": "LRU(N)",
    "functools.partial": "functools.partial(FUNCTION, 1)()",
    "contextlib.nullcontext": "with contextlib.nullcontext(): pass",
    "contextlib.contextmanager": "with MANAGED(): pass",
    "contextlib.suppress": "with contextlib.suppress(ValueError): pass",
    "re.findall": "re.findall('a', f'a{N}')",
    "re.compile": "re.compile(f'a{N}')",
    "re.match": "re.match('a', f'a{N}')",
    "re.sub": "re.sub('a', 'b', f'a{N}')",
    "shlex.split": "shlex.split(f'a {N}')",
    "copy.copy": "copy.copy([N])",
    "copy.deepcopy": "copy.deepcopy([N])",
    "math.ceil": "math.ceil(1.5)",
    "itertools.chain": "list(itertools.chain([1], [2]))",
    "collections.defaultdict": "collections.defaultdict(list)[1].append(1)",
    "collections.OrderedDict": "collections.OrderedDict(a=1)",
    "dataclasses.replace": "dataclasses.replace(DATA, a=N)",
    "types.SimpleNamespace": "types.SimpleNamespace(a=1).a",
    "getattr": "getattr(math, NAME)",
    "hasattr": "hasattr(x, NAME)",
    "isinstance": "isinstance(x, torch.Tensor)",
    "packaging.version.Version": "packaging.version.Version(f'1.{N}')",
    "packaging.version.parse": "packaging.version.parse(f'1.{N}')",
    "torch.cuda.is_available": "torch.cuda.is_available()",
    "torch.compiler.is_compiling": "torch.compiler.is_compiling()",
    "torch.device": "torch.device('cpu')",
    "torch.empty": "torch.empty(1)",
}
CONSTANT = "@{maker}\ndef constant():\n    os.path.exists(F)\n    return 2\ndef opaque(x): return x * constant()"
SUBSTITUTE = "def opaque(x): {{body}}\n@{maker}(opaque)\ndef replacement(x): return x * 2"

# What makes a function opaque. Each defines ``opaque(x)``, which asks the file system and so cannot
# be traced.
BODY = "os.path.exists(F); return x * 2"
MAKERS = {
    "torch.compiler.disable": "@torch.compiler.disable\ndef opaque(x): {body}",
    "torch._dynamo.disable": "@torch._dynamo.disable\ndef opaque(x): {body}",
    "torch._dynamo.decorators.disable": "@torch._dynamo.decorators.disable\ndef opaque(x): {body}",
    "torch._disable_dynamo": "@torch._disable_dynamo\ndef opaque(x): {body}",
    "torch.compiler.allow_in_graph": "@torch.compiler.allow_in_graph\ndef opaque(x): {body}",
    "torch._dynamo.allow_in_graph": "@torch._dynamo.allow_in_graph\ndef opaque(x): {body}",
    "torch._dynamo.nonstrict_trace": "@torch._dynamo.nonstrict_trace\ndef opaque(x): {body}",
    "torch.compiler.assume_constant_result": CONSTANT.format(maker="torch.compiler.assume_constant_result"),
    "torch._dynamo.assume_constant_result": CONSTANT.format(maker="torch._dynamo.assume_constant_result"),
    "torch.compiler.substitute_in_graph": SUBSTITUTE.format(maker="torch.compiler.substitute_in_graph"),
    "torch._dynamo.substitute_in_graph": SUBSTITUTE.format(maker="torch._dynamo.substitute_in_graph"),
    "torch.library.custom_op": (
        "@torch.library.custom_op('dynamo_table::a', mutates_args=())\n"
        "def opaque(x: torch.Tensor) -> torch.Tensor: {body}\n"
        "opaque.register_fake(torch.empty_like)"
    ),
    "torch.library.define": (
        "torch.library.define('dynamo_table::b', '(Tensor x) -> Tensor')\n"
        "@torch.library.impl('dynamo_table::b', 'cpu')\n"
        "def implementation(x): {body}\n"
        "torch.library.register_fake('dynamo_table::b', torch.empty_like)\n"
        "opaque = torch.ops.dynamo_table.b"
    ),
    "torch.library.Library.define": (
        "LIBRARY = torch.library.Library('dynamo_table', 'FRAGMENT')\n"
        "LIBRARY.define('c(Tensor x) -> Tensor')\n"
        "def implementation(x): {body}\n"
        "LIBRARY.impl('c', implementation, 'CPU')\n"
        "torch.library.register_fake('dynamo_table::c', torch.empty_like)\n"
        "opaque = torch.ops.dynamo_table.c"
    ),
    "torch.library.impl": (
        "torch.library.define('dynamo_table::d', '(Tensor x) -> Tensor')\n"
        "@torch.library.impl('dynamo_table::d', 'cpu')\n"
        "def implementation(x): {body}\n"
        "torch.library.register_fake('dynamo_table::d', torch.empty_like)\n"
        "opaque = torch.ops.dynamo_table.d"
    ),
    "torch.library.Library.impl": (
        "OTHER = torch.library.Library('dynamo_table', 'FRAGMENT')\n"
        "OTHER.define('e(Tensor x) -> Tensor')\n"
        "def implementation(x): {body}\n"
        "OTHER.impl('e', implementation, 'CPU')\n"
        "torch.library.register_fake('dynamo_table::e', torch.empty_like)\n"
        "opaque = torch.ops.dynamo_table.e"
    ),
}
# What compiles ``construct`` as a whole, "{yes}" being the value of the argument that decides; ``X`` is a tensor.
WHOLES = {
    "torch.compile": "torch.compile(construct, fullgraph={yes}, backend='eager')(X)",
    "torch.nn.Module.compile": "MODEL.compile(fullgraph={yes}, backend='eager'); MODEL(X)",
    "torch._dynamo.optimize": "torch._dynamo.optimize('eager', nopython={yes})(construct)(X)",
    "torch._dynamo.eval_frame.optimize": "torch._dynamo.eval_frame.optimize('eager', nopython={yes})(construct)(X)",
    "torch.export.export": "torch.export.export(MODEL, (X,), strict={yes})",
    "torch._dynamo.error_on_graph_break": (
        "with torch._dynamo.error_on_graph_break({yes}): torch.compile(construct, backend='eager')(X)"
    ),
    "torch._dynamo.optimize_assert": "torch._dynamo.optimize_assert('eager')(construct)(X)",
    "torch._dynamo.export": "torch._dynamo.export(construct)(X)",
    "torch._dynamo.eval_frame.optimize_assert": "torch._dynamo.eval_frame.optimize_assert('eager')(construct)(X)",
}
# The same with other values, and what is no such place: each with whether a graph break is an error there.
SPELLINGS = {
    "torch.compile(fullgraph=1)": ("torch.compile(construct, fullgraph=1, backend='eager')(X)", True),
    "torch.compile(**{'fullgraph': True})": (
        "torch.compile(construct, **{'fullgraph': True}, backend='eager')(X)",
        True,
    ),
    "torch.compile(fullgraph=True)(f)": ("torch.compile(fullgraph=True, backend='eager')(construct)(X)", True),
    "functools.partial(torch.compile, fullgraph=True)": (
        "functools.partial(torch.compile, fullgraph=True, backend='eager')(construct)(X)",
        True,
    ),
    "torch.compile()": ("torch.compile(construct, backend='eager')(X)", False),
    "torch._dynamo.optimize()": ("torch._dynamo.optimize('eager')(construct)(X)", False),
    "torch.export.export()": ("torch.export.export(MODEL, (X,))", False),
    "torch.export.draft_export()": ("torch.export.draft_export(MODEL, (X,))", False),
    "torch._dynamo.explain()": ("torch._dynamo.explain(construct)(X)", False),
    "torch.compiler.set_stance('eager_then_compile')": (
        "with torch.compiler.set_stance('eager_then_compile'): torch.compile(construct, backend='eager')(X)",
        False,
    ),
}
# Conditions that hold while code is traced, and what would stop the tracer if they did not.
CONDITIONS = (
    "torch.compiler.is_compiling()",
    "torch.compiler.is_dynamo_compiling()",
    "torch._dynamo.is_compiling()",
)

SETUP = """
import atexit, collections, colorsys, concurrent.futures, contextlib, copy, ctypes, ctypes.util, dataclasses
import datetime, enum, fcntl, functools, gc, glob, hashlib, importlib, importlib.machinery, importlib.metadata
import importlib.util, inspect, io, itertools, json, logging, math, multiprocessing, os, pathlib, pickle, platform
import random, re, secrets, shlex, shutil, socket, subprocess, sys, tempfile, textwrap, threading, time, traceback
import types, urllib.request, uuid, warnings
import torch
try:
    import filelock
    FILELOCK = filelock.FileLock(F + '.lock')
except ImportError:
    pass
try:
    import packaging.version
except ImportError:
    pass
try:
    import tvm_ffi
except ImportError:
    pass
P, Q = pathlib.Path(F), pathlib.Path(D)
FD = os.open(F, os.O_RDONLY)
os.mkdir(D + '/empty')
CONDITION, SEMAPHORE, BOUNDED = threading.Condition(), threading.Semaphore(), threading.BoundedSemaphore()
EVENT, SHARED, RSHARED = threading.Event(), multiprocessing.Lock(), multiprocessing.RLock()
LOCK, RLOCK, LOG, NAME = threading.Lock(), threading.RLock(), logging.getLogger('a'), 'pi'
LOG.addHandler(logging.NullHandler())
LOG.propagate = False
T = D + '/tensor'
torch.save(torch.ones(1), T)
SO = torch._C.__file__
SYSTEM = ctypes.CDLL(None)
try:
    MODULE, GLOBAL = tvm_ffi.load_module(SO), tvm_ffi.get_global_func('ffi.String')
except NameError:
    pass
FUNCTION = lambda *given: 1
def NEW():
    return NEWS.pop()
@functools.cache
def CACHED(n): return n
@functools.lru_cache(maxsize=None)
def LRU(n): return n
@contextlib.contextmanager
def MANAGED(): yield
@dataclasses.dataclass
class DATA_: a: int = 1
DATA = DATA_()
class COLOUR(enum.Enum): RED = 1
"""


def run(constructs: list[str]) -> Iterator[dict[str, Any]]:
    """Each construct with how it ended: "stops", "traced", "absent" or "no snippet", and the tracer's words."""
    import torch

    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "file.txt")
        file.write_text("a")
        space: dict[str, Any] = {"D": folder, "F": str(file), "N": 0, "NEWS": []}
        exec(SETUP, space)
        for number, construct in enumerate(constructs):
            if construct not in SNIPPETS:
                yield {"construct": construct, "result": "no snippet", "words": ""}
                continue
            space["NEWS"][:] = [_new(folder, number, index) for index in range(4)]
            yield {"construct": construct, **_try(SNIPPETS[construct], 2 * number + 1, space, torch)}


def _new(folder: str, number: int, index: int) -> str:
    path = Path(folder, f"new{number}.{index}")
    path.touch()
    return str(path)


def _try(snippet: str, number: int, space: dict[str, Any], torch: Any) -> dict[str, str]:
    text = f"def construct(x):\n    global N\n{textwrap.indent(snippet, '    ')}\n    return x + 1\n"
    exec(text.replace("    global N\n", ""), space)
    space["N"] = number
    try:
        space["construct"](torch.ones(2))
    except (NameError, ModuleNotFoundError) as error:
        return {"result": "absent", "words": str(error)}
    space["N"] = number + 1
    torch._dynamo.reset()
    try:
        torch.compile(space["construct"], fullgraph=True, backend="eager")(torch.ones(2))
    except (torch._dynamo.exc.Unsupported, torch._dynamo.exc.UserError) as error:
        return {"result": "stops", "words": str(error).splitlines()[0]}
    return {"result": "traced", "words": ""}


def run_makers(makers: list[str]) -> Iterator[dict[str, Any]]:
    """Each maker with its effect: "graph-break" (not with fullgraph), "operator" (as a whole), or "none"."""
    import torch

    for maker in makers:
        module = sys.modules["dynamo_table"] = ModuleType("dynamo_table")  # allow_in_graph looks for it by name
        space = vars(module)
        space["F"] = __file__
        exec("import os, torch\n" + MAKERS[maker].replace("{body}", BODY), space)
        exec("def construct(x): return opaque(x) + 1", space)
        ends = {whole: _compiles(space["construct"], torch, whole=whole) for whole in (True, False)}
        effect = "operator" if ends[True] else "graph-break" if ends[False] and not ends[True] else "none"
        yield {"construct": maker, "result": effect}


def run_recursion(arguments: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Makers with ``argument=False``: whether what the opaque function calls is traced, and not the function itself."""
    import torch

    for maker, argument in arguments.items():
        graph: list[str] = []

        def record(module: Any, inputs: Any, graph: list[str] = graph) -> Any:
            graph.extend(str(node.target) for node in module.graph.nodes)
            return module

        space: dict[str, Any] = {}
        text = "import torch\ndef deep(x): return x.sin()\ndef own(x): return deep(x.cos())\n"
        exec(f"{text}opaque = {maker}(own, {argument}=False)\ndef construct(x): return opaque(x) + 1", space)
        torch._dynamo.reset()
        torch.compile(space["construct"], backend=record)(torch.ones(2))
        own, deep = "cos" in graph, "sin" in graph
        allowed = own or _compiles(space["construct"], torch, whole=True)
        effect = "none" if allowed else "graph-break-not-recursive" if deep else "graph-break"
        yield {"construct": f"{maker}({argument}=False)", "result": effect}


def run_wholes(snippets: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Each snippet that compiles ``construct``, with whether a graph break in it is an error."""
    import functools

    import torch

    warnings.simplefilter("ignore")
    for name, snippet in snippets.items():
        text = "@torch.compiler.disable\ndef opaque(x): return x * 2\ndef construct(x): return opaque(x) + 1\n"
        text += "class Model(torch.nn.Module):\n    def forward(self, x): return construct(x)\n"
        space: dict[str, Any] = {"torch": torch, "functools": functools, "X": torch.ones(2)}
        exec(f"{text}MODEL = Model()\n", space)
        torch._dynamo.reset()
        try:
            exec(snippet, space)
        except torch._dynamo.exc.Unsupported:
            yield {"construct": name, "result": "forbids"}
        else:
            yield {"construct": name, "result": "allows"}


def run_conditions(conditions: list[str]) -> Iterator[dict[str, Any]]:
    """Each condition with whether it holds while code is traced."""
    import torch

    for condition in conditions:
        space: dict[str, Any] = {"F": __file__}
        exec(
            f"import os, torch\ndef construct(x):\n    if {condition}: return x + 1\n    os.getpid()\n    return x",
            space,
        )
        yield {"construct": condition, "result": "holds" if _compiles(space["construct"], torch, whole=True) else "not"}


def _compiles(function: Any, torch: Any, *, whole: bool) -> bool:
    torch._dynamo.reset()
    try:
        torch.compile(function, fullgraph=whole, backend="eager")(torch.ones(2))
    except torch._dynamo.exc.Unsupported:
        return False
    return True


def measure(document: dict[str, Any]) -> dict[str, Any]:
    """What came out for each entry of a table, and what is not as the table says."""
    import torch

    hazards = [construct for entry in document["hazard"] for construct in entry["constructs"]]
    traced = [construct for entry in document["traced"] for construct in entry["constructs"]]
    effects = {maker: entry["effect"] for entry in document["opaque"] for maker in entry["makers"]}
    wanted = {**dict.fromkeys(hazards, "stops"), **{name: "traced" for name in traced if not name.endswith("*")}}
    rows = list(run([*wanted]))
    makers, conditions = list(run_makers([*effects])), list(run_conditions(list(CONDITIONS)))
    deciding = {
        maker: entry["recursive-argument"]
        for entry in document["opaque"]
        for maker in entry["makers"]
        if "recursive-argument" in entry
    }
    recursion = list(run_recursion(deciding))
    wholes = measure_wholes(document)
    wrong = [row for row in rows if row["result"] not in (wanted[row["construct"]], "absent")]
    wrong += [row for row in makers if row["result"] != effects[row["construct"]]]
    wrong += [row for row in conditions if row["result"] != "holds"]
    wrong += [row for row in recursion if row["result"] != "graph-break-not-recursive"]
    wrong += [row for row in wholes if row["result"] != row["wanted"]]
    return {
        "torch": torch.__version__,
        "rows": rows,
        "makers": [*makers, *recursion],
        "wholes": wholes,
        "conditions": conditions,
        "wrong": wrong,
    }


def measure_wholes(document: dict[str, Any]) -> list[dict[str, Any]]:
    """What forbids graph breaks: the table's functions with their argument true and false, and other spellings."""
    snippets: dict[str, str] = {}
    wanted: dict[str, str] = {}
    for entry in document["whole"]:
        for name in entry["callables"]:
            for value in (True, False) if "argument" in entry else (None,):
                told = f"{name}({entry['argument']}={value})" if value is not None else f"{name}()"
                snippets[told] = WHOLES[name].replace("{yes}", str(value))
                wanted[told] = "allows" if value is False else "forbids"
    snippets.update({name: snippet for name, (snippet, _) in SPELLINGS.items()})
    wanted.update({name: "forbids" if forbids else "allows" for name, (_, forbids) in SPELLINGS.items()})
    return [{**row, "wanted": wanted[row["construct"]]} for row in run_wholes(snippets)]


def main(arguments: list[str]) -> int:
    """Measure the table that is named first and print what came out; 1 where it is not as the table says."""
    document = tomllib.loads(Path(arguments[0]).read_text())
    found = measure(document)
    if "--json" in arguments:
        print(json.dumps(found, indent=1))
        return 1 if found["wrong"] else 0
    kinds = {construct: entry["kind"] for entry in document["hazard"] for construct in entry["constructs"]}
    print(f"PyTorch {found['torch']}, Python {sys.version_info[0]}.{sys.version_info[1]}.\n")
    print("| construct | kind | result | the tracer's words |\n| --- | --- | --- | --- |")
    for row in found["rows"]:
        print(f"| `{row['construct']}` | {kinds.get(row['construct'], '')} | {row['result']} | {row['words']} |")
    print("\n| what makes a function opaque | | result |\n| --- | --- | --- |")
    for row in (*found["makers"], *found["conditions"]):
        print(f"| `{row['construct']}` | | {row['result']} |")
    print("\n| what compiles as a whole | | a graph break |\n| --- | --- | --- |")
    for row in found["wholes"]:
        print(f"| `{row['construct']}` | | {'is an error' if row['result'] == 'forbids' else 'is allowed'} |")
    for row in found["wrong"]:
        print(f"not as the table says: {row}", file=sys.stderr)
    return 1 if found["wrong"] else 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main(sys.argv[1:]))
