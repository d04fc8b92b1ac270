"""FlashInfer's fp4_quantize under torch.compile on a GPU: unpatched, and with each of the two patches for it.

    python tests/gpu/flashinfer_compile.py --wheel flashinfer_python-0.6.3-py3-none-any.whl --output DIR

For each wheel and each variant it makes a site root of its own, applies the patch with `patchkit`, runs every scenario
of `scenarios.py` in a process of its own, and reverts. DIR gets results.json and results.md (`table.py`). The
interpreter that runs this needs PyTorch with CUDA, FlashInfer's dependencies and patchkit's; nvcc must be there
(CUDA_HOME), and a GPU.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from table import markdown

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parent.parent
SET = "flashinfer-dynamo"
OPERANDS = {
    "unpatched": [],
    "compiler-disable": [f"{SET}/fp4-quantize-compiler-disable", f"{SET}/cuda-version-from-torch"],
    "custom-op": [f"{SET}/fp4-quantize-custom-op"],
}
FULLGRAPH = "custom-op"  # the variant that is compiled with fullgraph=True wherever a scenario does not ask both ways
SOURCES = (  # what FlashInfer builds its module from, relative to flashinfer/data/csrc/nv_internal
    "tensorrt_llm/thop/fp4Quantize.cpp",
    "tensorrt_llm/thop/fp4Op.cpp",
    "cpp/kernels/quantization.cu",
    "cpp/common/envUtils.cpp",
    "cpp/common/logger.cpp",
    "cpp/common/stringUtils.cpp",
    "cpp/common/tllmException.cpp",
)
KERNEL = "cpp/kernels/quantization.cu"
ONCE = ("kernel", "layouts", "fake", "dynamic", "reduce_overhead", "capture", "opcheck")
SECONDS = 400  # for one scenario


@dataclass(frozen=True)
class Options:
    device: str
    stand_in: bool
    jobs: int
    passes: int
    work: Path


@dataclass
class Root:
    """One site root: a release of FlashInfer, and which variant of it."""

    version: str
    variant: str
    site: Path
    applied: dict[str, Any] | None = None
    reverted: bool | None = None
    results: dict[str, Any] = field(default_factory=dict)

    @property
    def work(self) -> Path:
        return self.site.parent


def say(words: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {words}\n")
    sys.stdout.flush()


# --- site roots


def install(wheel: Path, work: Path) -> Path:
    """The wheel, installed by pip into a folder of its own; its dependencies are those of this interpreter."""
    site = work / "site"
    command = [
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--no-compile",
        "--target",
        str(site),
        str(wheel),
    ]
    subprocess.run([sys.executable, "-m", *command], check=True)
    return site


def version_of(site: Path) -> str:
    [info] = site.glob("flashinfer_python-*.dist-info")
    return info.name.removeprefix("flashinfer_python-").removesuffix(".dist-info")


def replace_kernel(site: Path) -> None:
    """Put `quantiser.cu` in the place of the sources of FlashInfer's FP4 module; FlashInfer itself then builds it."""
    sources = site / "flashinfer/data/csrc/nv_internal"
    for name in SOURCES:
        (sources / name).parent.mkdir(parents=True, exist_ok=True)
        (sources / name).write_text("")
    header = f"#define KERNEL_ARGUMENTS {kernel_arguments(site)}\n"
    (sources / KERNEL).write_text(header + (HERE / "quantiser.cu").read_text())


def kernel_arguments(site: Path) -> int:
    """How many arguments the release passes to its compiled kernel: read from the call of ``module.fp4_quantize``."""
    places = (site / "flashinfer" / name for name in ("quantization/fp4_quantization.py", "fp4_quantization.py"))
    source = next(path for path in places if path.exists()).read_text(encoding="utf-8")
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return next(len(call.args) for call in calls if ast.unparse(call.func) == "module.fp4_quantize")


def digests(site: Path) -> dict[str, str]:
    """The digest of every file but compiled ones."""
    files = (path for path in site.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(site)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def make_roots(wheel: Path, options: Options) -> list[Root]:
    first = install(wheel, options.work / wheel.stem / "unpatched")
    if options.stand_in:
        replace_kernel(first)
    version = version_of(first)
    roots = []
    for variant in OPERANDS:
        site = options.work / wheel.stem / variant / "site"
        if site != first:
            shutil.copytree(first, site)
        roots.append(Root(version, variant, site))
    return roots


# --- patchkit


def patchkit(root: Root, *words: str) -> dict[str, Any]:
    """Run patchkit of this checkout on the site root; its JSON document. SystemExit where it fails."""
    command = [sys.executable, "-m", "patchkit", *words, "--json"]
    command += ["--site-packages", str(root.site), "--python", sys.executable, "--patches", str(CHECKOUT / "patches")]
    done = subprocess.run(command, env=variables(root), cwd=CHECKOUT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def apply(root: Root) -> None:
    """Apply and verify the patches of the variant, their checks among it."""
    operands = OPERANDS[root.variant]
    if not operands:
        return
    rows = patchkit(root, "apply", *operands)["patches"]
    patchkit(root, "verify")
    root.applied = {
        "patches": {row["patch"]: row["variant"] for row in rows},
        "symbol_checks": [check["result"] for row in rows for check in row["checks"] if check["kind"] == "symbol"],
        "python_checks": [python_check(root, row["patch"]) for row in rows],
    }


def python_check(root: Root, patch: str) -> str:
    """A patch's own python check. Run from here: PyTorch lies outside the site root, so patchkit leaves it out."""
    program = CHECKOUT / "patches" / SET / "checks" / f"{patch.replace('-', '_')}.py"
    command = [sys.executable, "-B", str(program)]
    code = subprocess.run(command, env=variables(root), capture_output=True, check=False).returncode
    return {0: "passed", 77: "skipped"}.get(code, "failed")


def revert(root: Root, before: dict[str, str]) -> None:
    """Revert, and note whether the site root is, byte for byte, what it was."""
    if root.applied:
        patchkit(root, "revert", "--all")
        root.reverted = digests(root.site) == before


# --- scenarios


def variables(root: Root, workspace: str = "workspace") -> dict[str, str]:
    """The environment of a scenario: FlashInfer's own variables and patchkit's are not carried over."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FLASHINFER_", "PATCHKIT_"))}
    search = [str(root.site), str(CHECKOUT), *filter(None, [os.environ.get("PYTHONPATH")])]
    kept |= {"PYTHONPATH": os.pathsep.join(search), "FLASHINFER_WORKSPACE_BASE": str(root.work / workspace)}
    kept |= {"TORCHINDUCTOR_CACHE_DIR": str(root.work / "inductor"), "FLASHINFER_CUDA_ARCH_LIST": ""}
    return {name: value for name, value in kept.items() if value}


def run(root: Root, options: Options, name: str, *words: str, label: str = "", fresh: bool = False) -> None:
    """One scenario in a process of its own, into ``root.results``; ``fresh``: nothing of FlashInfer is built yet."""
    label = label or name
    result = root.work / f"{label}.json"
    command = [sys.executable, str(HERE / "scenarios.py"), name, "--result", str(result), "--device", options.device]
    command += [*words, *(["--stand-in"] if options.stand_in else [])]
    environment = variables(root, label if fresh else "workspace")
    if options.device == "cpu":
        environment["FLASHINFER_CUDA_ARCH_LIST"] = "9.0a"
    start = time.monotonic()
    with (root.work / f"{label}.log").open("w") as log:
        ended = ending(command, environment, log)
    found = (
        json.loads(result.read_text()) if result.exists() else {"outcome": "fails", "error": died(root, label, ended)}
    )
    root.results[label] = found | {"seconds": round(time.monotonic() - start, 1)}
    say(f"{root.version} {root.variant} {label}: {found['outcome']}")


def ending(command: list[str], environment: dict[str, str], log: Any) -> str:
    try:
        code = subprocess.run(command, env=environment, stdout=log, stderr=log, timeout=SECONDS, check=False).returncode
    except subprocess.TimeoutExpired:
        return f"ran longer than {SECONDS} seconds"
    return f"ended by signal {-code}" if code < 0 else f"ended with {code}"


def died(root: Root, label: str, ended: str) -> dict[str, Any]:
    lines = (root.work / f"{label}.log").read_text(errors="replace").split("\n")
    return {
        "class": "the process",
        "message": ended,
        "explanation": next(filter(None, reversed(lines)), ""),
        "where": [],
    }


def scenarios(root: Root) -> Iterator[tuple[str, list[str], str, bool]]:
    """Name, arguments, label, and whether nothing is built yet, of each scenario that may run beside others."""
    for state in ("cold", "built", "loaded"):
        for fullgraph in ([], ["--fullgraph"]):
            label = f"trace-{state}-{'fullgraph' if fullgraph else 'breaks-allowed'}"
            yield "trace", ["--state", state, *fullgraph], label, state == "cold"
    for name in ONCE:
        yield name, ["--fullgraph"] if root.variant == FULLGRAPH else [], name, False


def side_by_side(roots: list[Root], options: Options) -> None:
    """All that only tells right from wrong."""
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda root: run(root, options, "machine"), roots))  # builds the kernels
        waiting = [
            pool.submit(run, root, options, name, *words, label=label, fresh=fresh)
            for root in roots
            for name, words, label, fresh in scenarios(root)
        ]
        for one in waiting:
            one.result()


def one_by_one(roots: list[Root], options: Options) -> None:
    """What is timed, with nothing else running; the variants take turns."""
    for number in range(options.passes):
        for root in roots:
            words = ["--fullgraph"] if root.variant == FULLGRAPH else []
            run(root, options, "cost", *words, label=f"cost-{number + 1}")


def driver() -> str | None:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    return output(command).strip().split("\n")[0] or None


def nvcc() -> str | None:
    home = os.environ.get("CUDA_HOME")
    words = output([f"{home}/bin/nvcc" if home else "nvcc", "--version"]).split("release ")
    return words[1].split(",")[0] if len(words) > 1 else None


def output(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""


def save(roots: list[Root], options: Options, folder: Path) -> None:
    rows = [
        {
            "flashinfer": root.version,
            "variant": root.variant,
            "applied": root.applied,
            "reverted_byte_for_byte": root.reverted,
            "scenarios": root.results,
        }
        for root in roots
    ]
    found = {"device": options.device, "driver": driver(), "nvcc": nvcc(), "stand_in": options.stand_in, "runs": rows}
    (folder / "results.json").write_text(json.dumps(found, indent=1) + "\n")
    (folder / "results.md").write_text(markdown([found]))


def measure(wheels: list[Path], options: Options, folder: Path) -> None:
    """Everything, in order. What is known is saved before the slow end: little is lost where it is cut short."""
    roots = [root for wheel in wheels for root in make_roots(wheel, options)]
    before = {root.site: digests(root.site) for root in roots}
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(apply, roots))
    say("patches applied")
    side_by_side(roots, options)
    save(roots, options, folder)
    one_by_one(roots, options)
    for root in roots:
        revert(root, before[root.site])
    save(roots, options, folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=Path, action="append", required=True, help="a wheel of flashinfer-python")
    parser.add_argument("--output", type=Path, required=True, help="where results.json and results.md go")
    parser.add_argument("--work", type=Path, help="where site roots and logs go (default: in the output folder)")
    parser.add_argument("--kernel", choices=("stand-in", "shipped"), default="stand-in", help="shipped: from SM100 on")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: a rehearsal of this program")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time; timed ones run alone"
    )
    parser.add_argument("--passes", type=int, default=2, help="how often the cost of a call is measured")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    work = (given.work or given.output / "work").resolve()
    options = Options(given.device, given.kernel == "stand-in", given.jobs, given.passes, work)
    measure([wheel.resolve() for wheel in given.wheel], options, given.output)


if __name__ == "__main__":
    main()
