"""What is tried with one installed FlashInfer, one scenario a process: `python scenarios.py NAME --result FILE`.

Each scenario writes one JSON object. ``outcome`` is ``works``, ``differs`` (ran, with other results than eager code),
``fails`` (an exception, told under ``error``) or ``not run``. `flashinfer_compile.py` starts these processes;
FlashInfer must be importable in them. ``--stand-in`` says that `quantiser.cu` was put in place of FlashInfer's kernel:
then the check for the architecture, which 0.7.4 makes in Python, is switched off. ``--device cpu`` is a rehearsal of
this program: FlashInfer is told that the host is an SM90 device.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import torch

Outcome = dict[str, Any]
Tensors = tuple[torch.Tensor, torch.Tensor]
Quantise = Callable[..., Tensors]


class Case(NamedTuple):
    """What a scenario is told: the device, what is built when it begins, and how to compile."""

    device: str
    state: str = "loaded"
    fullgraph: bool = False


class Layout(NamedTuple):
    """Arguments of ``fp4_quantize`` behind the global scale."""

    vector: int
    ue8m0: bool
    swizzled: bool
    small_tiles: bool

    @property
    def name(self) -> str:
        tiles = "linear" if not self.swizzled else "8x4" if self.small_tiles else "128x4"
        return f"{self.vector} {'UE8M0' if self.ue8m0 else 'E4M3'}, {tiles}"


TILES = ((True, False), (True, True), (False, False))
LAYOUTS = [Layout(vector, ue8m0, *tiles) for vector, ue8m0 in ((16, False), (32, True)) for tiles in TILES]
SHAPES: list[tuple[tuple[int, ...], torch.dtype]] = [
    ((1, 128), torch.bfloat16),
    ((7, 256), torch.bfloat16),
    ((100, 512), torch.float16),
    ((128, 1024), torch.bfloat16),
    ((130, 1024), torch.bfloat16),
    ((1024, 256), torch.float16),
    ((3, 50, 256), torch.bfloat16),
    ((130, 96), torch.bfloat16),  # 6 or 3 blocks a row: no multiple of 4
]
COLUMN_MAJOR = ((64, 256), torch.bfloat16)
SIZES = (2, 17, 128, 129, 300, 1024)  # of a dynamic first dimension
COLUMNS = 4096  # where the cost of a call is measured


# --- FlashInfer, and the function that is compiled


def load_flashinfer(case: Case, *, stand_in: bool) -> Quantise:
    import flashinfer

    quantise: Quantise = flashinfer.fp4_quantize
    module = sys.modules[quantise.__module__]
    if stand_in:
        replace(module, "_check_block_scale_quantization_support", lambda *_: None)
    if case.device == "cpu":
        replace(module, "get_compute_capability", lambda _: (9, 0))
        replace(module, "device_support_pdl", lambda _: False)
    return quantise


def replace(module: ModuleType, name: str, function: Callable[..., object]) -> None:
    if hasattr(module, name):
        setattr(module, name, function)


def caller(quantise: Quantise, *arguments: object) -> Quantise:
    """A function as users compile it: something before the quantisation, something behind it."""

    def scaled_and_quantised(x: torch.Tensor, scale: torch.Tensor) -> Tensors:
        values, scales = quantise(x * 2, scale, *arguments)
        return values + 1, scales + 1

    return scaled_and_quantised


def numbers(case: Case, shape: tuple[int, ...], dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.randn(shape, device=case.device).to(dtype)


def global_scale(case: Case) -> torch.Tensor:
    return torch.tensor([3.0], device=case.device)


def equal(got: Tensors, wanted: Tensors) -> bool:
    """Whether bytes, shapes, dtypes and strides are the same."""
    return all(
        a.shape == b.shape and a.dtype == b.dtype and a.stride() == b.stride() and torch.equal(a, b)
        for a, b in zip(got, wanted, strict=True)
    )


class Counting:
    """The compiler that ``torch.compile`` uses by default; ``graphs`` says how often it was called."""

    def __init__(self) -> None:
        self.graphs = 0

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        from torch._inductor.compile_fx import compile_fx

        self.graphs += 1
        return compile_fx(graph, inputs)  # type: ignore[no-any-return]


# --- what went wrong, without the paths of one machine


def shown(path: str) -> str:
    """The last two parts of a path: which file of which package."""
    return "/".join(Path(path).parts[-2:])


def told(error: BaseException) -> dict[str, Any]:
    """An exception: its class, the first words of its message, and the innermost frame of the traced code."""
    text = re.sub(r" at 0x[0-9a-f]+", "", str(error))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    frames = re.findall(r'File "([^"]+)", line (\d+), in (\S+)', text)
    explanation = [line for line in lines if line.startswith("Explanation:")]
    return {
        "class": f"{type(error).__module__}.{type(error).__qualname__}",
        "message": lines[0] if lines else "",
        "explanation": explanation[0] if explanation else None,
        "where": [f"{shown(file)}:{line} {function}" for file, line, function in frames][-3:],
    }


def graph_breaks() -> list[str]:
    """The reasons for graph breaks so far, each once: Dynamo's first line and its explanation."""
    from torch._dynamo.utils import counters

    return [
        " / ".join(line.strip() for line in re.sub(r" at 0x[0-9a-f]+", "", reason).splitlines()[:2])
        for reason in counters["graph_break"]
    ]


# --- scenarios


def machine(case: Case, quantise: Quantise) -> Outcome:
    """What all this runs on; and a first call, which builds the kernel for the scenarios that come after it."""
    found: Outcome = {"outcome": "works", "python": platform.python_version(), "torch": torch.__version__}
    found |= {name: version_of(name) for name in ("triton", "apache-tvm-ffi")}
    if case.device == "cuda":
        found["gpu"] = torch.cuda.get_device_name()
        found["capability"] = ".".join(map(str, torch.cuda.get_device_capability()))
    quantise(numbers(case, (4, 128)), global_scale(case))
    return found


def version_of(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def kernel(case: Case, quantise: Quantise) -> Outcome:
    """The kernel against a quantiser in PyTorch, byte by byte: all layouts, all shapes but the last."""
    from reference import quantised

    same = total = 0
    for layout in LAYOUTS:
        for shape, dtype in SHAPES[:-1]:
            x, scale = numbers(case, shape, dtype), global_scale(case)
            wanted = quantised(x.reshape(-1, shape[-1]), scale, *layout)
            for got, want in zip(quantise(x, scale, *layout), wanted, strict=True):
                same += int((got.flatten() == want.flatten()).sum())
                total += want.numel()
    return {"outcome": "works" if same == total else "differs", "equal_bytes": same, "bytes": total}


def trace(case: Case, quantise: Quantise) -> Outcome:
    """Compile a caller: the kernel not built yet (``cold``), built by another process, or loaded in this one."""
    x, scale = numbers(case, (100, 512)), global_scale(case)
    function = caller(quantise)
    if case.state == "loaded":
        function(x, scale)
    compiler = Counting()
    outcome: Outcome = {}
    try:
        got = torch.compile(function, fullgraph=case.fullgraph, backend=compiler)(x, scale)
        outcome["outcome"] = "works" if equal(got, function(x, scale)) else "differs"
    except Exception as error:
        outcome |= {"outcome": "fails", "error": told(error)}
    return outcome | {"graphs": compiler.graphs, "graph_breaks": graph_breaks()}


def inputs(case: Case) -> Iterator[torch.Tensor]:
    for shape, dtype in SHAPES:
        yield numbers(case, shape, dtype)
    shape, dtype = COLUMN_MAJOR
    yield numbers(case, shape, dtype).t()


def refusal(function: Callable[[], Tensors]) -> Tensors | str:
    try:
        return function()
    except Exception as error:
        return type(error).__name__


def layouts(case: Case, quantise: Quantise) -> Outcome:
    """Each layout with each input: compiled against eager, and the shapes, dtypes and strides of both."""
    rows = []
    for layout in LAYOUTS:
        row: dict[str, Any] = {"layout": layout.name, "equal": 0, "refused_by_both": 0, "other": [], "shapes": []}
        for x in inputs(case):
            torch._dynamo.reset()
            function, scale = caller(quantise, *layout), global_scale(case)
            wanted = refusal(lambda f=function, x=x, s=scale: f(x, s))  # type: ignore[misc]
            compiled = torch.compile(function, fullgraph=case.fullgraph)
            got = refusal(lambda f=compiled, x=x, s=scale: f(x, s))  # type: ignore[misc]
            what = f"{tuple(x.shape)} {x.dtype}"
            if isinstance(got, str) or isinstance(wanted, str):
                alike = isinstance(got, str) and isinstance(wanted, str)
                row["refused_by_both"] += alike
                row["other"] += [] if alike else [f"{what}: eager {said(wanted)}, compiled {said(got)}"]
                continue
            row["equal"] += equal(got, wanted)
            row["other"] += [] if equal(got, wanted) else [f"{what}: other bytes, shape, dtype or stride"]
            row["shapes"].append([what, *(f"{tuple(t.shape)} {t.dtype}" for t in got)])
        rows.append(row)
    return {"outcome": "differs" if any(row["other"] for row in rows) else "works", "layouts": rows}


def said(result: Tensors | str) -> str:
    return result if isinstance(result, str) else "answers"


def fake(case: Case, quantise: Quantise) -> Outcome:
    """On FakeTensors, as `torch.export` and shape propagation do: the shapes of eager code, and no kernel started."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    real = [quantise(numbers(case, (100, 512)), global_scale(case), *layout) for layout in LAYOUTS]
    same = 0
    with FakeTensorMode():
        x = torch.empty(100, 512, dtype=torch.bfloat16, device=case.device)
        scale = torch.empty(1, device=case.device)
        for layout, wanted in zip(LAYOUTS, real, strict=True):
            got = quantise(x, scale, *layout)
            same += all(
                a.shape == b.shape and a.dtype == b.dtype and a.stride() == b.stride()
                for a, b in zip(got, wanted, strict=True)
            )
    if case.device == "cuda":
        torch.cuda.synchronize()  # where a kernel ran on pointers that do not exist
    return {"outcome": "works" if same == len(LAYOUTS) else "differs", "equal": same, "of": len(LAYOUTS)}


def dynamic(case: Case, quantise: Quantise) -> Outcome:
    """A first dimension of any size: six sizes through one compiled function, three ways to ask for it."""
    ways: dict[str, Any] = {}
    for way, dynamic_shapes in (("dynamic=True", True), ("mark_dynamic", None), ("automatic", None)):
        torch._dynamo.reset()
        compiler, function = Counting(), caller(quantise)
        compiled = torch.compile(function, fullgraph=case.fullgraph, dynamic=dynamic_shapes, backend=compiler)
        same = 0
        for rows in SIZES:
            x, scale = numbers(case, (rows, 512)), global_scale(case)
            if way == "mark_dynamic":
                torch._dynamo.mark_dynamic(x, 0)
            same += equal(compiled(x, scale), function(x, scale))
        ways[way] = {"equal": same, "of": len(SIZES), "graphs": compiler.graphs}
    return {"outcome": "works" if all(way["equal"] == len(SIZES) for way in ways.values()) else "differs", "ways": ways}


def reduce_overhead(case: Case, quantise: Quantise) -> Outcome:
    """``mode="reduce-overhead"``: results over six calls, and whether CUDA graphs are really replayed."""
    from torch._dynamo.utils import counters
    from torch.profiler import ProfilerActivity, profile

    function = caller(quantise)
    compiled = torch.compile(function, fullgraph=case.fullgraph, mode="reduce-overhead")
    same = 0
    for _ in range(6):
        x, scale = numbers(case, (100, 512)), global_scale(case)
        torch.compiler.cudagraph_mark_step_begin()
        got = tuple(t.clone() for t in compiled(x, scale))
        same += equal(got, function(x, scale))  # type: ignore[arg-type]
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled:
        torch.compiler.cudagraph_mark_step_begin()
        compiled(x, scale)
    launches = sum(event.count for event in profiled.key_averages() if event.key == "cudaGraphLaunch")
    return {
        "outcome": "works" if same == 6 else "differs",
        "equal": same,
        "of": 6,
        "graph_launches_a_call": launches,
        "skips": counters["inductor"]["cudagraph_skips"],
    }


def capture(case: Case, quantise: Quantise) -> Outcome:
    """A CUDA graph captured around the compiled function, as inference servers do, replayed on new numbers."""
    if case.device != "cuda":
        return {"outcome": "not run", "why": "there are no CUDA graphs on the host"}
    function = caller(quantise)
    x, scale = numbers(case, (100, 512)), global_scale(case)
    graph, got = captured(torch.compile(function, fullgraph=case.fullgraph), x, scale)
    same = 0
    for _ in range(3):
        x.copy_(numbers(case, (100, 512)))
        graph.replay()
        same += equal(got, function(x, scale))
    return {"outcome": "works" if same == 3 else "differs", "equal": same, "of": 3}


def captured(function: Quantise, x: torch.Tensor, scale: torch.Tensor) -> tuple[torch.cuda.CUDAGraph, Tensors]:
    """Warm up on a side stream, then capture: https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            function(x, scale)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        got = function(x, scale)
    return graph, got


def opcheck(case: Case, quantise: Quantise) -> Outcome:
    """PyTorch's own tests of a custom operator: schema, autograd registration, fake results, AOT compilation."""
    try:
        operator = torch.ops.patchkit_flashinfer.fp4_quantize.default
    except AttributeError:
        return {"outcome": "not run", "why": "there is no such operator"}
    given = {"input": numbers(case, (100, 512)), "global_scale": global_scale(case), "sf_vec_size": 16}
    given |= {"is_sf_swizzled_layout": True, "enable_pdl": False, "nvfp4_4over6_code": -1}
    arguments = tuple(given.get(argument.name, False) for argument in operator._schema.arguments)
    results = torch.library.opcheck(operator, arguments, raise_exception=False)
    good = all(result == "SUCCESS" for result in results.values())
    return {"outcome": "works" if good else "differs", "tests": {name: str(r) for name, r in results.items()}}


def cost(case: Case, quantise: Quantise) -> Outcome:
    """Host time of one call in microseconds: the best of nine rounds, which take turns, of 200 calls each."""
    x, scale = numbers(case, (1, COLUMNS)), global_scale(case)
    function = caller(quantise)
    compiled = torch.compile(function, fullgraph=case.fullgraph)
    floor = torch.compile(lambda x, scale: (x * 2, scale + 1))
    measured: dict[str, Callable[[], object]] = {
        "fp4_quantize alone, eager": lambda: quantise(x, scale),
        "caller, eager": lambda: function(x, scale),
        "caller, compiled": lambda: compiled(x, scale),
        "two additions, compiled": lambda: floor(x, scale),
    }
    if case.device == "cuda":
        graph, _ = captured(compiled, x, scale)
        measured["caller, CUDA graph replayed"] = graph.replay
    best = dict.fromkeys(measured, float("inf"))
    for _ in range(9):
        for name, call in measured.items():
            best[name] = min(best[name], host_time(case, call))
    return {"outcome": "works", "microseconds": {name: round(value, 1) for name, value in best.items()}}


def host_time(case: Case, call: Callable[[], object], calls: int = 200) -> float:
    """Microseconds a call, over ``calls`` calls, with the device idle before and not waited for behind them."""
    call()
    if case.device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls * 1e6


SCENARIOS: dict[str, Callable[[Case, Quantise], Outcome]] = {
    function.__name__: function
    for function in (machine, kernel, trace, layouts, fake, dynamic, reduce_overhead, capture, opcheck, cost)
}


def attempt(name: str, case: Case, *, stand_in: bool) -> Outcome:
    torch.manual_seed(0)
    try:
        return SCENARIOS[name](case, load_flashinfer(case, stand_in=stand_in))
    except Exception as error:
        traceback.print_exc()
        return {"outcome": "fails", "error": told(error)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=SCENARIOS)
    parser.add_argument("--result", type=Path, required=True)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--state", choices=("cold", "built", "loaded"), default="loaded")
    parser.add_argument("--fullgraph", action="store_true")
    parser.add_argument("--stand-in", action="store_true")
    given = parser.parse_args()
    case = Case(given.device, given.state, given.fullgraph)
    given.result.write_text(json.dumps(attempt(given.name, case, stand_in=given.stand_in)))


if __name__ == "__main__":
    main()
