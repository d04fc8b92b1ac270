"""Can a function with API logging be traced, and is it still logged where nothing traces?

Needs torch; no GPU, no nvcc.
"""

import importlib
import os
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

PATCHED = "flashinfer/api_logging.py"
REQUIRED = {"torch"}  # what PATCHED imports besides FlashInfer
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


def main(log):
    api_logging = load("flashinfer.api_logging")
    import torch

    @api_logging.flashinfer_api
    def patchkit_probe(x):
        return x + 1

    compiled = torch.compile(lambda x: patchkit_probe(x * 2), fullgraph=True, backend="eager")
    try:
        result = compiled(torch.ones(2)).tolist()
    except torch._dynamo.exc.Unsupported as error:
        sys.exit("torch.compile stops in API logging: " + " ".join(str(error).split("\n", 2)[:2]))
    require(result == [3.0, 3.0], "the compiled caller gives another result")
    require("patchkit_probe" not in log.read_text(), "a call was logged while torch.compile traced it")
    require(patchkit_probe(torch.ones(2)).tolist() == [2.0, 2.0], "the eager call gives another result")
    require("patchkit_probe" in log.read_text(), "an eager call is no longer logged")
    print("API logging is left out while something compiles, and only then")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        os.environ["FLASHINFER_WORKSPACE_BASE"] = folder  # the import makes its cache folder there, not in the home
        os.environ.update(FLASHINFER_LOGLEVEL="3", FLASHINFER_LOGDEST=str(log))  # read at import
        main(log)
