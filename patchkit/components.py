"""A bill of materials in CycloneDX, by its library: a component a distribution, with its patches as its pedigree.

Sources: the CycloneDX specification (``pedigree.patches``), the package URL specification (``pkg:pypi``). This module
needs the extra ``sbom``; who imports it says what to do where that is missing.

The library numbers every bill at random, stamps it with the time, and says of each component that it depends on
nothing. None of this is known here, so it is taken out again.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from xml.etree import ElementTree

from cyclonedx.exception.model import InvalidUriException
from cyclonedx.model import AttachedText, Encoding, Property, XsUri
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType, Diff, Patch, PatchClassification, Pedigree
from cyclonedx.model.issue import IssueClassification, IssueType, IssueTypeSource
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

from patchkit import __version__
from patchkit.bill import BilledDistribution, BilledPatch, BillFormat, PatchType, SpecVersion, classify_patch
from patchkit.bill import describe_patch as describe
from patchkit.provenance import Bug, OriginKind, read_bugs, read_origin

DIFF_TYPE = "text/x-diff"

_SCHEMAS = {
    SpecVersion.V1_4: SchemaVersion.V1_4,
    SpecVersion.V1_5: SchemaVersion.V1_5,
    SpecVersion.V1_6: SchemaVersion.V1_6,
    SpecVersion.V1_7: SchemaVersion.V1_7,
}
_TYPES = {
    PatchType.UNOFFICIAL: PatchClassification.UNOFFICIAL,
    PatchType.BACKPORT: PatchClassification.BACKPORT,
    PatchType.CHERRY_PICK: PatchClassification.CHERRY_PICK,
}
# What XML 1.0 cannot say, or a parser would change: control characters, lone surrogates, CR.
_UNSPEAKABLE = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_bill(
    distributions: Sequence[BilledDistribution],
    form: BillFormat,
    version: SpecVersion,
    *,
    timestamp: datetime | None = None,
) -> bytes:
    """The bill as UTF-8. The bytes are a function of the arguments; without ``timestamp`` it has none."""
    match form:
        case BillFormat.JSON:
            return write_json(to_document(distributions, version, timestamp=timestamp))
        case BillFormat.XML:
            return _write_xml(_to_bom(distributions, timestamp), _SCHEMAS[version], timed=timestamp is not None)


def write_json(document: Any) -> bytes:
    """A document of ours or of others as the bytes of a file; ASCII, so that no reader can mistake the encoding."""
    return (json.dumps(document, indent=2, ensure_ascii=True) + "\n").encode("ascii")


def to_document(
    distributions: Sequence[BilledDistribution], version: SpecVersion, *, timestamp: datetime | None = None
) -> dict[str, Any]:
    """The bill as a JSON document of that version."""
    outputter = make_outputter(_to_bom(distributions, timestamp), OutputFormat.JSON, _SCHEMAS[version])
    made: dict[str, Any] = json.loads(outputter.output_as_string())
    for key in ("serialNumber", "dependencies"):
        made.pop(key, None)
    if timestamp is None:
        made["metadata"].pop("timestamp", None)
    head = {key: made.pop(key) for key in ("$schema", "bomFormat", "specVersion", "version")}
    return {**head, "metadata": made.pop("metadata"), "components": made.pop("components", []), **made}


def _write_xml(bom: Bom, schema: SchemaVersion, *, timed: bool) -> bytes:
    root = ElementTree.fromstring(make_outputter(bom, OutputFormat.XML, schema).output_as_string())
    space = root.tag.partition("}")[0] + "}"
    root.attrib.pop("serialNumber", None)
    _remove(root, f"{space}dependencies")
    metadata = root.find(f"{space}metadata")
    if metadata is not None and not timed:
        _remove(metadata, f"{space}timestamp")
    ElementTree.register_namespace("", space[1:-1])
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'.encode()


def _remove(parent: ElementTree.Element, tag: str) -> None:
    for child in parent.findall(tag):
        parent.remove(child)


# ---- the library's values -------------------------------------------------------------------------------------


def _to_bom(distributions: Sequence[BilledDistribution], timestamp: datetime | None) -> Bom:
    tool = Component(type=ComponentType.APPLICATION, name="patchkit", version=__version__)
    # "cdx:reproducible" is a name of CycloneDX's property taxonomy.
    metadata = BomMetaData(timestamp=timestamp, properties=[Property(name="cdx:reproducible", value="true")])
    metadata.tools.components.add(tool)
    return Bom(components=map(_to_component, distributions), metadata=metadata)


def _to_component(distribution: BilledDistribution) -> Component:
    purl = PackageURL("pypi", None, distribution.name, distribution.version)
    notes = "\n".join(_speak(describe(patch.applied)) for patch in distribution.patches)
    return Component(
        type=ComponentType.LIBRARY,
        name=_speak(distribution.name),
        version=_speak(distribution.version),
        bom_ref=purl.to_string(),
        purl=purl,
        pedigree=Pedigree(patches=map(_to_patch, distribution.patches), notes=notes),
    )


def _to_patch(patch: BilledPatch) -> Patch:
    source = patch.applied.provenance
    origin = read_origin(source.origin)
    # The diff of a backport is not the one that its origin has.
    url = None if origin.kind is OriginKind.BACKPORT else _to_uri(origin.url)
    return Patch(
        type=_TYPES[classify_patch(source)],
        diff=Diff(text=_to_text(patch.diff), url=url),
        resolves=map(_to_issue, read_bugs(source.bug)),
    )


def _to_text(diff: bytes) -> AttachedText:
    """The diff as it is where both JSON and XML can say it, else in base64: reading it gives these bytes."""
    try:
        text = diff.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if _UNSPEAKABLE.search(text):
        return AttachedText(content=b64encode(diff).decode("ascii"), content_type=DIFF_TYPE, encoding=Encoding.BASE_64)
    return AttachedText(content=text, content_type=DIFF_TYPE)


def _to_issue(bug: Bug) -> IssueType:
    source = IssueTypeSource(name=bug.site, url=_to_uri(bug.url)) if bug.url else None
    return IssueType(
        type=IssueClassification.SECURITY if bug.advisory else IssueClassification.DEFECT,
        id=_speak(bug.id) or None,
        name=_speak(bug.words) or None,
        source=source,
    )


def _to_uri(url: str) -> XsUri | None:
    try:
        return XsUri(_speak(url)) if url else None
    except InvalidUriException:  # a stray percent sign, two fragments: no URI, and its words are in the notes
        return None


def _speak(text: str) -> str:
    """A line of text that JSON and XML can say."""
    return _UNSPEAKABLE.sub("\ufffd", " ".join(text.split()))
