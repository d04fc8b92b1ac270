"""Does FlashInfer's own operator hand enable_pdl on as enable_pdl? Needs torch; no GPU, no nvcc.

A stand-in for fp4_quantize, on CPU tensors, binds what the operator passes to the parameters of the real one.
"""

import importlib
import inspect
import os
import sys
import tempfile
import traceback
import warnings

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


def main():
    flashinfer = load("flashinfer")
    import torch

    parameters, seen = inspect.signature(flashinfer.fp4_quantize), []

    def stand_in(*arguments, **options):
        seen.append(parameters.bind(*arguments, **options).arguments)
        return torch.zeros(1, dtype=torch.uint8), torch.zeros(1, dtype=torch.uint8)

    sys.modules[flashinfer.fp4_quantize.__module__].fp4_quantize = stand_in
    x, scale = torch.ones(16, 64, dtype=torch.bfloat16), torch.ones(1)
    for value in (True, False, None):
        torch.ops.flashinfer.fp4_quantize(x, scale, enable_pdl=value)
        passed = seen.pop()
        require("is_global_scale_inversed" not in passed, f"enable_pdl={value} arrives as is_global_scale_inversed")
        require(passed.get("enable_pdl") is value, f"enable_pdl={value} arrives as {passed.get('enable_pdl')}")
    print("torch.ops.flashinfer.fp4_quantize passes enable_pdl by name")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FLASHINFER_WORKSPACE_BASE"] = folder  # the import makes its cache folder there, not in the home
        os.environ["FLASHINFER_LOGLEVEL"] = "0"
        main()
