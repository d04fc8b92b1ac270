"""Is get_cuda_version() answered by PyTorch, and does that leave FlashInfer's build flags as they are?

Needs torch; no GPU, no nvcc. Fails where nvcc is found and its release differs from torch.version.cuda so that one of
FlashInfer's own version tests turns: it would build and offer something else, without an error.
"""

import importlib
import os
import re
import subprocess
import sys
import tempfile
import traceback
import types
from pathlib import Path

PATCHED = "flashinfer/jit/cpp_ext.py"
REQUIRED = {"torch", "packaging"}  # what PATCHED imports besides FlashInfer
SKIPPED = 77
VERSION_TESTS = re.compile(
    r'is_cuda_version_at_least\(\s*"(?P<least>[\d.]+)"'
    r'|get_cuda_version\(\)\s*[<>=]=?\s*Version\(\s*"(?P<version>[\d.]+)"'
    r"|get_cuda_version\(\)(?P<major>\.major)\b"
)
FLAG = re.compile(r'"-D(?P<flag>\w+)".*is_cuda_version_at_least\(\s*"(?P<least>[\d.]+)"')


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


def answer_without_subprocess(module, query):
    """What the function says when PyTorch claims CUDA 99.9 and no process can be started."""

    def refuse(*_arguments, **_options):
        sys.exit("get_cuda_version() starts a process: it asks for nvcc before it asks PyTorch")

    kept = module.torch.version.cuda, module.subprocess
    module.torch.version.cuda = "99.9"
    module.subprocess = types.SimpleNamespace(
        check_output=refuse, run=refuse, CalledProcessError=subprocess.CalledProcessError, PIPE=-1, STDOUT=-2
    )
    try:
        return str(query())
    finally:
        module.torch.version.cuda, module.subprocess = kept


def answer_of_nvcc(module, query):
    """What FlashInfer's own question to nvcc says; None where it finds no nvcc."""
    kept = module.torch.version.cuda
    module.torch.version.cuda = None
    try:
        return query()
    except (RuntimeError, OSError, subprocess.CalledProcessError):
        return None
    finally:
        module.torch.version.cuda = kept


def sources(package):
    """FlashInfer's Python files as text, without the CUDA sources and what they bring along."""
    for folder, folders, files in os.walk(package):
        folders[:] = [name for name in folders if name not in {"data", "__pycache__"}]
        for file in files:
            if file.endswith(".py"):
                yield Path(folder, file).read_text(encoding="utf-8", errors="replace")


def turned_tests(package, ours, nvccs, version):
    """The CUDA versions that FlashInfer tests for and at which the two differ, each with the build flags it guards."""
    turned = {}
    for text in sources(package):
        for found in VERSION_TESTS.finditer(text):
            limit = version(found["least"] or found["version"] or str(max(ours.major, nvccs.major)))
            if (ours >= limit) != (nvccs >= limit):
                turned.setdefault(limit, set())
        for found in FLAG.finditer(text):
            if (limit := version(found["least"])) in turned:
                turned[limit].add(f"-D{found['flag']}")
    return turned


def mismatch(ours, nvccs, turned):
    """What would happen with the patch here, and what to do about it."""
    tests = ", ".join(map(str, sorted(turned)))
    flags = ", ".join(sorted(flag for flags in turned.values() for flag in flags))
    verb = "silently leave out" if ours < nvccs else "ask this nvcc for what it is too old for:"
    return (
        f"PyTorch is built for CUDA {ours} and nvcc is {nvccs}; FlashInfer decides at CUDA {tests} what it builds and\n"
        f"offers. With this patch it would {verb} what stands behind that{f' ({flags})' if flags else ''}.\n"
        f"Align the two (a PyTorch for CUDA {nvccs}, or CUDA_HOME at a toolkit {ours}), or leave this patch out\n"
        '(no other needs it): deselect = ["flashinfer-dynamo/cuda-version-from-torch"] in [tool.patchkit]'
    )


def main():
    module = load("flashinfer.jit.cpp_ext")
    query = getattr(module.get_cuda_version, "__wrapped__", module.get_cuda_version)  # past functools.cache
    answer = answer_without_subprocess(module, query)
    require(answer == "99.9", f"get_cuda_version() says {answer} where torch.version.cuda is 99.9")
    ours, nvccs = module.torch.version.cuda, answer_of_nvcc(module, query)
    if ours is None or nvccs is None:
        print("PyTorch is asked first; nothing to compare: " + ("no nvcc here" if ours else "this PyTorch has no CUDA"))
        return
    version = type(nvccs)
    turned = turned_tests(Path(module.__file__).parents[1], version(ours), nvccs, version)
    require(not turned, mismatch(version(ours), nvccs, turned))
    print(f"PyTorch is asked first; its CUDA {ours} and nvcc {nvccs} build the same")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FLASHINFER_WORKSPACE_BASE"] = folder  # the import makes its cache folder there, not in the home
        main()
