"""An audit as a JSON document (docs/reference/json.md). Keys are stable, unknown values null."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from patchkit.audited import (
    DOUBTS,
    Audit,
    Contradiction,
    Cover,
    Covered,
    Definition,
    Hazard,
    Import,
    Place,
    Site,
    Step,
    Unknown,
)
from patchkit.patchset import PatchId
from patchkit.report import SCHEMA


def to_audit_document(audit: Audit) -> dict[str, Any]:
    """The JSON document of ``audit``."""
    return {
        "schema": SCHEMA,
        "command": "audit",
        "ok": audit.complete,
        "exit_code": int(audit.exit_code),
        "environment": {"site_root": audit.site_root, "python": audit.python},
        "caller": {"name": audit.caller, "files": list(audit.files)},
        "distributions": [{"name": each.name, "version": each.version} for each in audit.subjects],
        "table": audit.table,
        "imports": [_from_import(each) for each in audit.imports],
        "hazards": [{**_from_hazard(each), "patches": _from_ids(each.patches)} for each in audit.hazards],
        "covered": [_from_covered(each) for each in audit.covered],
        "contradictions": [_from_contradiction(each) for each in audit.contradictions],
        "unknown": _from_unknown(audit.unknown),
        "warnings": [{"code": notice.code, "message": notice.message} for notice in audit.notices],
    }


def _from_place(place: Place) -> dict[str, Any]:
    return {"path": place.path, "line": place.line}


def _from_ids(ids: Sequence[PatchId]) -> list[str]:
    return [str(id) for id in ids]


def _from_import(found: Import) -> dict[str, Any]:
    return {
        **_from_place(found.place),
        "module": found.module,
        "name": found.name or None,
        "alias": found.alias,
        "branch": list(found.branch),
        "distribution": found.distribution,
        "definition": _from_definition(found.definition),
        "sites": [_from_site(site) for site in found.sites],
    }


def _from_definition(found: Definition | None) -> dict[str, Any] | None:
    return None if found is None else {**_from_place(found.place), "symbol": found.symbol, "kind": found.kind.value}


def _from_site(site: Site) -> dict[str, Any]:
    return {**_from_place(site.place), "function": site.function or None, "use": site.use.value, "text": site.text}


def _from_hazard(found: Hazard) -> dict[str, Any]:
    return {
        **_from_place(found.place),
        "callable": found.callable,
        "kind": found.kind,
        "construct": found.construct,
        "reason": found.reason,
        "confidence": found.confidence.value,
        "chain": [_from_step(step) for step in found.chain],
        "sites": [{**_from_place(step.place), "function": step.function or None} for step in found.sites],
    }


def _from_step(step: Step) -> dict[str, Any]:
    return {
        **_from_place(step.place),
        "function": step.function or None,
        "calls": step.calls,
        "confidence": step.confidence.value,
        "branch": list(step.branch),
    }


def _from_cover(cover: Cover) -> dict[str, Any]:
    return {
        **_from_place(cover.place),
        "function": cover.function,
        "maker": cover.maker,
        "effect": cover.effect.value,
    }


def _from_covered(found: Covered) -> dict[str, Any]:
    patch = None if found.patch is None else str(found.patch)
    by = {"owner": found.owner.value, "patch": patch, **_from_cover(found.cover)}
    return {**_from_hazard(found.hazard), "by": by}


def _from_contradiction(found: Contradiction) -> dict[str, Any]:
    return {
        "callable": found.callable,
        "graph_break": _from_cover(found.cover),
        "owner": found.owner.value,
        "patch": None if found.patch is None else str(found.patch),
        "applied": found.applied,
        "compiled": [{**_from_site(each.site), "sure": each.sure} for each in found.compiles],
        "alternative": None if found.alternative is None else str(found.alternative),
    }


def _from_unknown(found: Sequence[Unknown]) -> dict[str, Any]:
    counts = Counter(each.doubt for each in found)
    return {
        "count": len(found),
        "kinds": [
            {"kind": doubt.value, "count": count, "meaning": DOUBTS[doubt]} for doubt, count in counts.most_common()
        ],
        "places": [
            {
                **_from_place(each.place),
                "kind": each.doubt.value,
                "function": each.function or None,
                "text": each.text,
            }
            for each in found
        ],
    }
