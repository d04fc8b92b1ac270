"""The results of `flashinfer_compile.py` as Markdown: `python tests/gpu/table.py results.json ... > table.md`.

Several files (say, one a release, from runs on one machine) make one page.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Document = dict[str, Any]
Run = dict[str, Any]  # one variant of one release
Lines = Iterator[str]

STATES = {"cold": "kernel not built", "built": "kernel on disk", "loaded": "kernel loaded"}
SHOWN_INPUT = "(130, 1024) torch.bfloat16"


def markdown(documents: list[Document]) -> str:
    runs = sorted((run for document in documents for run in document["runs"]), key=release)
    sections = (
        machines(documents),
        tracing(runs),
        layouts(runs),
        shapes(runs),
        graphs(runs),
        costs(runs),
        errors(runs),
    )
    return "\n".join(line for section in sections for line in (*section, "")).rstrip() + "\n"


def release(run: Run) -> list[int]:
    """What runs are sorted by: the numbers of the version, which is enough for the few releases of a page."""
    return [int(number) for number in re.findall("[0-9]+", run["flashinfer"])]


def table(head: list[str], rows: list[list[str]]) -> Lines:
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def releases(runs: list[Run]) -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run["flashinfer"], []).append(run)
    return found


def by_variant(runs: list[Run], rows: dict[str, Callable[[dict[str, Any]], str]]) -> Lines:
    """A table with a column a variant; each row asks the scenarios of a run for a cell."""
    variants = list(dict.fromkeys(run["variant"] for run in runs))
    cells = [
        [version, name, *(cell(run["scenarios"]) for run in group)]
        for version, group in releases(runs).items()
        for name, cell in rows.items()
    ]
    return table(["FlashInfer", "", *variants], cells)


def machines(documents: list[Document]) -> Lines:
    yield "## Machine"
    yield ""
    rows = []
    for document in documents:
        here = next(run["scenarios"]["machine"] for run in document["runs"])
        kernel = "`quantiser.cu`" if document["stand_in"] else "as shipped"
        gpu = f"{here.get('gpu', 'none: a rehearsal')} ({here.get('capability', '-')})"
        torch = f"{here.get('torch')}, Triton {here.get('triton')}, tvm-ffi {here.get('apache-tvm-ffi')}"
        versions = ", ".join(releases(document["runs"]))
        rows.append(
            [versions, gpu, str(document["driver"]), str(document["nvcc"]), torch, str(here.get("python")), kernel]
        )
    yield from table(["FlashInfer", "GPU", "driver", "nvcc", "PyTorch", "Python", "FP4 kernel"], rows)
    yield ""
    yield from patches(sorted((run for document in documents for run in document["runs"]), key=release))


def patches(runs: list[Run]) -> Lines:
    rows = []
    for run in runs:
        applied, kernel = run["applied"], run["scenarios"].get("kernel", {})
        diffs = ", ".join(f"`{name}`" for name in applied["patches"].values()) if applied else "none"
        results = applied["symbol_checks"] + applied["python_checks"] if applied else []
        checks = ", ".join(f"{results.count(result)} {result}" for result in dict.fromkeys(results)) or "-"
        bytes_equal = f"{kernel.get('equal_bytes', '?')} of {kernel.get('bytes', '?')}"
        reverted = "-" if not applied else "yes" if run["reverted_byte_for_byte"] else "**no**"
        rows.append([run["flashinfer"], run["variant"], diffs, checks, reverted, bytes_equal])
    head = [
        "FlashInfer",
        "variant",
        "diffs",
        "checks of the patches",
        "reverted byte for byte",
        "kernel = reference, bytes",
    ]
    return table(head, rows)


def tracing(runs: list[Run]) -> Lines:
    yield "## torch.compile of a caller: graph breaks"
    yield ""
    rows = {
        f"{words}, fullgraph={fullgraph}": lambda found, label=f"trace-{state}-{suffix}": traced(found.get(label))
        for fullgraph, suffix in ((False, "breaks-allowed"), (True, "fullgraph"))
        for state, words in STATES.items()
    }
    yield from by_variant(runs, rows)  # type: ignore[arg-type]


def traced(found: dict[str, Any] | None) -> str:
    if found is None:
        return "not run"
    if "error" in found:
        return f"**fails**: {reason(found['error'])}"
    return f"{verdict(found)}, {count(len(found['graph_breaks']), 'graph break')}, {count(found['graphs'], 'graph')}"


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def verdict(found: dict[str, Any]) -> str:
    return {"works": "equal", "differs": "**differs**"}.get(found["outcome"], f"**{found['outcome']}**")


def reason(error: dict[str, Any]) -> str:
    """Where Dynamo stopped, short: the builtin or method that it names, else the first words of the message."""
    explanation = error.get("explanation") or ""
    named = explanation.split("`")
    what = f"`{named[1].rstrip('.')}`" if len(named) > 2 and "wrapped" not in explanation else error["message"]
    where = f" in `{error['where'][-1]}`" if error["where"] and "wrapped" not in explanation else ""
    return f"{what}{where}"


def layouts(runs: list[Run]) -> Lines:
    yield "## Compiled equals eager: bytes, shapes, dtypes, strides"
    yield ""
    names = layout_names(runs)
    rows = {name: lambda found, name=name: layout_cell(found.get("layouts", {}), name) for name in names}
    yield from by_variant(runs, rows)  # type: ignore[arg-type]


def layout_names(runs: list[Run]) -> list[str]:
    found = (run["scenarios"].get("layouts", {}).get("layouts", []) for run in runs)
    return list(dict.fromkeys(row["layout"] for rows in found for row in rows))


def layout_cell(found: dict[str, Any], name: str) -> str:
    row = next((row for row in found.get("layouts", []) if row["layout"] == name), None)
    if row is None:
        return failure(found)
    total = row["equal"] + len(row["other"])
    refused = f", {row['refused_by_both']} refused by both" if row["refused_by_both"] else ""
    return f"{row['equal']} of {total}{refused}"


def shapes(runs: list[Run]) -> Lines:
    yield f"Results for an input {SHOWN_INPUT}, the same in all runs that are not marked:"
    yield ""
    seen: dict[str, dict[str, list[str]]] = {}
    for run in runs:
        for row in run["scenarios"].get("layouts", {}).get("layouts", []):
            for what, values, scales in row["shapes"]:
                if what == SHOWN_INPUT:
                    places = seen.setdefault(row["layout"], {}).setdefault(f"{values} | {scales}", [])
                    places.append(f"{run['flashinfer']} {run['variant']}")
    yield from ("| layout | values | scales |", "| --- | --- | --- |")
    for name, results in seen.items():
        for result, places in results.items():
            mark = f" ({', '.join(places)})" if len(results) > 1 else ""
            yield f"| {name}{mark} | {result} |"


def graphs(runs: list[Run]) -> Lines:
    yield "## Dynamic sizes, CUDA graphs, FakeTensors"
    yield ""
    rows = {
        f"dynamic first dimension, {way}": lambda found, way=way: dynamic_cell(found.get("dynamic", {}), way)
        for way in ("dynamic=True", "mark_dynamic", "automatic")
    }
    rows |= {
        'mode="reduce-overhead"': lambda found: overhead_cell(found.get("reduce_overhead", {})),
        "CUDA graph captured and replayed": lambda found: equal_cell(found.get("capture", {})),
        "FakeTensorMode, 6 layouts": lambda found: equal_cell(found.get("fake", {})),
        "torch.library.opcheck": lambda found: opcheck_cell(found.get("opcheck", {})),
    }
    yield from by_variant(runs, rows)  # type: ignore[arg-type]


def failure(found: dict[str, Any]) -> str:
    """A cell for what gave no numbers."""
    if not found:
        return "not run"
    if "error" not in found:
        return str(found.get("why", found["outcome"]))
    error = found["error"]
    return f"**fails**: {error['class'].split('.')[-1]}: {error['message'][:120]}"


def equal_cell(found: dict[str, Any]) -> str:
    return f"equal {found['equal']} of {found['of']}" if "of" in found else failure(found)


def dynamic_cell(found: dict[str, Any], way: str) -> str:
    if "ways" not in found:
        return failure(found)
    return f"{equal_cell(found['ways'][way])}, {count(found['ways'][way]['graphs'], 'graph')}"


def overhead_cell(found: dict[str, Any]) -> str:
    if "of" not in found:
        return failure(found)
    return (
        f"{equal_cell(found)}, {count(found['graph_launches_a_call'], 'CUDA graph')} a call, {found['skips']} skipped"
    )


def opcheck_cell(found: dict[str, Any]) -> str:
    if "tests" not in found:
        return failure(found)
    bad = [name for name, result in found["tests"].items() if result != "SUCCESS"]
    return f"{len(found['tests']) - len(bad)} of {len(found['tests'])} pass{': not ' + ', '.join(bad) if bad else ''}"


def costs(runs: list[Run]) -> Lines:
    yield "## Cost of a call on the host, microseconds"
    yield ""
    yield "One number a pass. `two additions, compiled` does not call FlashInfer: it says how fast the machine was."
    yield ""
    names = list(dict.fromkeys(name for run in runs for one in passes(run["scenarios"]) for name in one))
    rows = {name: lambda found, name=name: cost_cell(found, name) for name in names}
    yield from by_variant(runs, rows)  # type: ignore[arg-type]


def passes(found: dict[str, Any]) -> list[dict[str, float]]:
    return [one["microseconds"] for label, one in found.items() if label.startswith("cost-") and "microseconds" in one]


def cost_cell(found: dict[str, Any], name: str) -> str:
    return ", ".join(str(one[name]) for one in passes(found)) or "not run"


def errors(runs: list[Run]) -> Lines:
    yield "## What Dynamo and others said"
    yield ""
    seen: dict[str, list[str]] = {}
    for run in runs:
        for label, found in run["scenarios"].items():
            if "error" in found:
                error = found["error"]
                words = f"`{error['class']}`: {error['message']}. {error.get('explanation') or ''}".rstrip()
                where = (
                    f" Last frames: {', '.join(f'`{frame}`' for frame in error['where'])}." if error["where"] else ""
                )
                seen.setdefault(words + where, []).append(f"{run['flashinfer']} {run['variant']} {label}")
    for words, places in seen.items():
        yield f"- {words}"
        yield f"  ({'; '.join(places)})"


if __name__ == "__main__":
    sys.stdout.write(markdown([json.loads(Path(name).read_text()) for name in sys.argv[1:]]))
