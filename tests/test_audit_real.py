"""The audit on real code: SGLang 0.5.9 as a caller of FlashInfer 0.6.3, before and after its patch set."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import worlds
from test_flagship import CUDA, DISABLE, LOG, OPERATOR, PATCHES, SET
from worlds import RunPatchkit

CALLER = "sglang.srt.layers.quantization.modelopt_quant"
PATH = "sglang/srt/layers/quantization/modelopt_quant.py"
FP4 = "flashinfer.fp4_quantization.fp4_quantize"

Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site root with the Python code of both wheels, without FlashInfer's CUDA sources."""
    root = tmp_path_factory.mktemp("real") / "site"
    worlds.unpack_code(root, worlds.find_wheel("sglang", "0.5.9"))
    return worlds.unpack_code(root, worlds.find_wheel("flashinfer-python", "0.6.3"))


@pytest.fixture
def ask(site: Path, patchkit: RunPatchkit) -> Ask:
    """``ask(*patches)``: the audit's document with these patches applied."""

    def run(*patches: str) -> Any:
        where = ("--site-packages", site, "--patches", PATCHES)
        patchkit("revert", "--all", *where).expect()
        if patches:
            patchkit("apply", "--no-checks", *(f"{SET}/{name}" for name in patches), *where).expect()
        return patchkit("audit", CALLER, "--of", "flashinfer-python", "--json", *where).expect(1).json()

    return run


def open_of(document: Any, callable: str) -> list[Any]:
    return [hazard for hazard in document["hazards"] if hazard["callable"] == callable]


def owners_of(document: Any, callable: str) -> set[tuple[str, str | None, str]]:
    found = [each["by"] for each in document["covered"] if each["callable"] == callable]
    return {(by["owner"], by["patch"], by["effect"]) for by in found}


def functions(hazard: Any) -> list[str]:
    return [step["function"].rpartition(".")[2] for step in hazard["chain"]]


def test_the_import_map_has_every_branch_every_alias_and_where_each_name_is_defined(ask: Ask) -> None:
    rows = ask()["imports"]
    quantise = [row for row in rows if row["alias"] == "fp4_quantize"]
    assert [(row["line"], row["module"], row["name"], row["distribution"]) for row in quantise] == [
        (74, "flashinfer", "fp4_quantize", "flashinfer-python"),
        (76, "sgl_kernel", "scaled_fp4_quant", None),
        (78, "sgl_kernel", "scaled_fp4_quant", None),
    ]
    assert quantise[0]["branch"] == ["try", "if is_sm120_supported()", "try"]
    assert {(site["line"], site["use"]) for site in quantise[0]["sites"]} == {(146, "value"), (1290, "call")}

    defined = {(row["name"], row["alias"], row["line"]): row["definition"] for row in rows if row["distribution"]}
    told = {key: (found["path"], found["line"], found["kind"]) for key, found in defined.items()}
    assert told == {
        ("fp4_quantize", "fp4_quantize", 74): ("flashinfer/fp4_quantization.py", 629, "function"),
        ("mm_fp4", "flashinfer_fp4_gemm", 83): ("flashinfer/gemm/gemm_base.py", 2843, "function"),
        ("reorder_rows_for_gated_act_gemm", "reorder_rows_for_gated_act_gemm", 84): (
            "flashinfer/fused_moe/core.py",
            296,
            "function",
        ),
        ("shuffle_matrix_sf_a", "shuffle_matrix_sf_a", 84): ("flashinfer/fp4_quantization.py", 781, "function"),
        ("cutlass_fused_moe", "flashinfer_cutlass_fused_moe", 96): ("flashinfer/fused_moe/core.py", 702, "function"),
        ("ActivationType", "ActivationType", 97): ("flashinfer/fused_moe/core.py", 79, "class"),
        ("shuffle_matrix_a", "shuffle_matrix_a", 1205): ("flashinfer/fp4_quantization.py", 771, "function"),
        ("shuffle_matrix_sf_a", "shuffle_matrix_sf_a", 1205): ("flashinfer/fp4_quantization.py", 781, "function"),
    }


def test_unpatched_the_chains_lead_to_nvcc_and_to_the_loader(ask: Ask, site: Path) -> None:
    document = ask()
    found = {(hazard["construct"], hazard["path"], hazard["line"]): hazard for hazard in open_of(document, FP4)}
    nvcc = found["subprocess.check_output", "flashinfer/jit/cpp_ext.py", 69]
    assert functions(nvcc) == [
        "apply",
        "fp4_quantize",
        "get_fp4_quantization_module",
        "gen_fp4_quantization_sm121_module",
        "gen_fp4_quantization_module",
        "is_cuda_version_at_least",
        "get_cuda_version",
    ]
    loader = found["tvm_ffi.load_module", "flashinfer/jit/core.py", 306]
    assert functions(loader)[-2:] == ["build_and_load", "load"]
    assert {"lock", "file-system", "subprocess", "load-library"} <= {hazard["kind"] for hazard in found.values()}
    for hazard in document["hazards"]:  # each step names a line that there is
        for step in hazard["chain"]:
            assert (site / step["path"]).read_text().splitlines()[step["line"] - 1].strip()


def test_what_the_caller_wraps_in_an_operator_of_its_own_is_covered_by_it(ask: Ask) -> None:
    document = ask()
    assert not open_of(document, "flashinfer.gemm.gemm_base.mm_fp4")
    assert owners_of(document, "flashinfer.gemm.gemm_base.mm_fp4") == {("caller", None, "operator")}


def test_patched_by_default_it_is_covered_and_contradicts_fullgraph(ask: Ask) -> None:
    document = ask(CUDA, DISABLE)
    assert not open_of(document, FP4)
    assert owners_of(document, FP4) == {("patch", f"{SET}/{DISABLE}", "graph-break")}
    [found] = [each for each in document["contradictions"] if each["applied"]]
    assert (found["callable"], found["patch"]) == (FP4, f"{SET}/{DISABLE}")
    assert found["alternative"] == f"{SET}/{OPERATOR}"
    compiled = {(site["path"], site["line"]) for site in found["compiled"]}
    assert ("sglang/srt/model_executor/piecewise_cuda_graph_runner.py", 252) in compiled


def test_the_operator_leaves_the_logging_and_with_its_patch_nothing(ask: Ask) -> None:
    alone = ask(OPERATOR)
    left = open_of(alone, FP4)
    assert left and {step["path"] for hazard in left for step in hazard["chain"][2:]} == {"flashinfer/api_logging.py"}
    assert {tuple(hazard["patches"]) for hazard in left} == {(f"{SET}/{LOG}",)}

    both = ask(OPERATOR, LOG)
    assert not open_of(both, FP4)
    assert not [each for each in both["contradictions"] if each["applied"]]
    assert {patch for _, patch, _ in owners_of(both, FP4)} == {f"{SET}/{OPERATOR}", f"{SET}/{LOG}"}


def test_the_text_is_about_a_screen_and_names_the_line_that_calls(ask: Ask, site: Path, patchkit: RunPatchkit) -> None:
    ask()
    where = ("--site-packages", site, "--patches", PATCHES)
    said = patchkit("audit", CALLER, "--of", "flashinfer-python", *where).expect(1).out
    assert len(said.splitlines()) < 50
    assert f"called by ModelOptFp4LinearMethod.apply, {PATH}:1290\n" in said
    assert "at sglang/srt/model_executor/piecewise_cuda_graph_runner.py:252\n" in said


def test_what_other_callables_reach_stays_open_and_where_the_view_ends_is_counted(ask: Ask) -> None:
    document = ask(CUDA, DISABLE)
    assert open_of(document, "flashinfer.fused_moe.core.cutlass_fused_moe")
    unknown = document["unknown"]
    assert unknown["count"] == len(unknown["places"]) == sum(kind["count"] for kind in unknown["kinds"]) > 0
    assert "dynamic-dispatch" in {kind["kind"] for kind in unknown["kinds"]}
