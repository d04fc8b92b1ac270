"""Is the FP4 kernel one opaque operator, and does it get what the eager call gets? Needs torch; no GPU, no nvcc.

A stand-in for the CUDA kernel, on CPU tensors, notes its arguments. Compiled with fullgraph=True and eager, a caller
must reach it with the same ones and give the same result. A diff meant for another version may apply and work
eagerly; it fails here.
"""

import importlib
import os
import sys
import tempfile
import traceback
import types
import warnings

PATCHED = ("flashinfer/fp4_quantization.py", "flashinfer/quantization/fp4_quantization.py")
REQUIRED = {"torch", "tvm_ffi"}  # what PATCHED imports besides FlashInfer
SKIPPED = 77
OPERATOR = "patchkit_flashinfer.fp4_quantize.default"
# shape, sf_vec_size, sf_use_ue8m0, is_sf_swizzled_layout, is_sf_8x4_layout, rows of scale factors
CASES = (
    ((100, 128), 16, False, True, False, 128),
    ((100, 128), 16, False, True, True, 104),
    ((100, 128), 16, False, False, False, 100),
    ((100, 128), 32, True, True, False, 128),
    ((3, 5, 128), 16, False, False, False, 15),
)


def load(name):
    """Import a module of FlashInfer. Exit 77 if the environment keeps it from loading; raise if the patch does.

    The patch is at fault when the error passes through PATCHED below the last import statement, when something of
    FlashInfer's own is not there, and for every error but those by which an environment makes itself known.
    """
    try:
        return importlib.import_module(name)
    except (ImportError, OSError, RuntimeError) as error:
        frames = traceback.extract_tb(error.__traceback__)
        start = max(index for index, frame in enumerate(frames) if frame.name == "<module>")
        missing = (getattr(error, "name", None) or "").partition(".")[0]
        not_installed = isinstance(error, ModuleNotFoundError) and missing in REQUIRED
        in_patched = any(frame.filename.endswith(PATCHED) for frame in frames[start:])
        if missing == "flashinfer" or (in_patched and not not_installed):
            raise
        print(f"flashinfer cannot be imported here: {type(error).__name__}: {error}")
        sys.exit(SKIPPED)


def require(truth, words):
    """Fail with ``words`` unless ``truth`` (an assert would do nothing under PYTHONOPTIMIZE)."""
    if not truth:
        sys.exit(words)


def stand_in(torch, module, seen):
    """Put a kernel for CPU tensors where FlashInfer would build and load its own; it adds its arguments to ``seen``."""

    def kernel(input, scale, sf_vec_size, *arguments):
        _ue8m0, swizzled, small, *_others = arguments
        seen.append((tuple(input.shape), input.stride(), scale is not None, sf_vec_size, *arguments))
        rows = input.numel() // input.shape[-1]
        if swizzled:
            rows = -rows // (8 if small else 128) * -(8 if small else 128)
        pairs = input.to(torch.uint8).unflatten(-1, (-1, 2))
        count = torch.arange(rows * input.shape[-1] // sf_vec_size)
        return (pairs[..., 0] * 16 + pairs[..., 1]).contiguous(), count.to(torch.uint8)

    module.get_fp4_quantization_module = lambda _architecture: types.SimpleNamespace(fp4_quantize_sm100=kernel)
    module.get_compute_capability = lambda _device: (10, 0)


def check_shapes(torch, quantise):
    """On FakeTensors nothing can run but the operator's own statement of its results."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        for shape, vec_size, *layout, rows in CASES:
            quantised, scales = quantise(torch.empty(shape, dtype=torch.bfloat16), torch.empty(1), vec_size, *layout)
            require(tuple(quantised.shape) == (*shape[:-1], shape[-1] // 2), f"{layout}: {quantised}")
            require(tuple(scales.shape) == (rows, shape[-1] // vec_size), f"{layout}: {scales}")
            require(quantised.dtype == scales.dtype == torch.uint8, f"{quantised.dtype}, {scales.dtype}")


def check_graph(torch, quantise):
    """A caller is one graph, and the operator is in it."""
    operations = []

    def backend(graph, _inputs):
        operations.extend(str(node.target) for node in graph.graph.nodes if node.op == "call_function")
        return graph.forward

    torch.compile(lambda x, scale: quantise(x * 2, scale), fullgraph=True, backend=backend)(
        torch.ones(100, 128, dtype=torch.bfloat16), torch.ones(1)
    )
    require(OPERATOR in operations, f"the graph does not hold {OPERATOR}: {operations}")


def check_results(torch, quantise, seen):
    """Compiled and eager callers reach the kernel with the same arguments and give the same result."""
    cases = [(torch.randint(0, 15, shape).to(torch.bfloat16), *rest) for shape, *rest, _rows in CASES]
    cases.append((torch.randint(0, 15, (128, 128)).to(torch.bfloat16).t(), 16, False, False, False))  # column-major
    for x, *arguments in cases:
        torch._dynamo.reset()
        compiled = torch.compile(quantise, fullgraph=True, backend="aot_eager", dynamic=True)
        seen.clear()
        eager, traced = quantise(x, torch.ones(1), *arguments), compiled(x, torch.ones(1), *arguments)
        require(seen[1:] == seen[:1], f"the kernel gets {seen[:1]} eagerly and {seen[1:]} compiled")
        require(all(map(torch.equal, eager, traced)), f"{arguments}: the compiled result differs from the eager one")
        require([one.stride() for one in eager] == [one.stride() for one in traced], f"{arguments}: other strides")


def main():
    flashinfer = load("flashinfer")
    import torch

    quantise, seen = flashinfer.fp4_quantize, []
    require(hasattr(torch.ops.patchkit_flashinfer, "fp4_quantize"), f"{OPERATOR} is not registered")
    try:
        check_shapes(torch, quantise)
        stand_in(torch, sys.modules[quantise.__module__], seen)
        check_graph(torch, quantise)
        check_results(torch, quantise, seen)
    except Exception as error:
        sys.exit(f"fp4_quantize cannot be traced: {type(error).__name__}: {str(error)[:500]}")
    print("fullgraph=True traces fp4_quantize as one operator; arguments and results are those of the eager call")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FLASHINFER_WORKSPACE_BASE"] = folder  # the import makes its cache folder there, not in the home
        os.environ["FLASHINFER_LOGLEVEL"] = "0"  # what logging does to a graph is another patch's matter
        main()
