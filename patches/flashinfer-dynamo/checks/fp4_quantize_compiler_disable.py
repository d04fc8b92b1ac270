"""Does torch.compile leave fp4_quantize alone? Needs torch; no GPU, no nvcc.

A stand-in for the CUDA kernel, on CPU tensors: the graph of a caller may hold the caller's own operation only.
"""

import importlib
import os
import re
import sys
import tempfile
import traceback
import types
import warnings
from pathlib import Path

PATCHED = ("flashinfer/fp4_quantization.py", "flashinfer/quantization/fp4_quantization.py")
REQUIRED = {"torch", "tvm_ffi"}  # what PATCHED imports besides FlashInfer
SKIPPED = 77


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


def stand_in(torch, module):
    """Put a kernel for CPU tensors where FlashInfer would build and load its own."""

    def kernel(input, _scale, sf_vec_size, *_arguments):
        quantised = torch.full((*input.shape[:-1], input.shape[-1] // 2), 7, dtype=torch.uint8)
        return quantised, torch.full((input.numel() // sf_vec_size,), 5, dtype=torch.uint8)

    for name in vars(module).copy():
        if re.fullmatch(r"get_fp4_quantization_\w*module", name):
            setattr(module, name, lambda *_arguments: types.SimpleNamespace(fp4_quantize_sm100=kernel))
    module.get_compute_capability = lambda _device: (10, 0)
    module.device_support_pdl = lambda _device: False


def main():
    flashinfer = load("flashinfer")
    import torch

    quantise = flashinfer.fp4_quantize
    outermost = Path(quantise.__code__.co_filename)
    # A wrapper around the disabled function copies its marks (functools.wraps), so the marks prove nothing.
    require(
        outermost.is_relative_to(Path(torch.__file__).parent),
        f"fp4_quantize is not disabled for torch.compile: outermost is a function in {outermost}",
    )
    stand_in(torch, sys.modules[quantise.__module__])
    operations = []

    def backend(graph, _inputs):
        operations.append([str(node.target) for node in graph.graph.nodes if node.op.startswith("call_")])
        return graph.forward

    compiled = torch.compile(lambda x, scale: quantise(x * 2, scale, 16, False, False), backend=backend)
    quantised, scales = compiled(torch.randn(8, 64, dtype=torch.bfloat16), torch.ones(1))
    require((quantised == 7).all() and (scales == 5).all(), "the compiled caller does not give the kernel's result")
    require(operations == [["<built-in function mul>"]], f"torch.compile looked into fp4_quantize: {operations}")
    print("torch.compile leaves fp4_quantize alone: one graph, one break")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FLASHINFER_WORKSPACE_BASE"] = folder  # the import makes its cache folder there, not in the home
        os.environ.update(FLASHINFER_LOGLEVEL="1", FLASHINFER_LOGDEST=os.devnull)  # the order of decorators counts then
        main()
