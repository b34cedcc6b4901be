"""A family as text for other tools: JSON, Mermaid and DOT. None of them holds any state."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from django_runstore.admin.lineage.family import EdgeKind, Family, Kin
from django_runstore.admin.wording import shown_text

_PLAIN: Final = re.compile("[A-Za-z0-9 _.:/-]")


@dataclass(frozen=True, slots=True)
class Export:
    """A format: how to write it, and what to call the file."""

    write: Callable[[Family], str]
    content_type: str
    file_name: str


def as_json(family: Family) -> str:
    """Write runs and lines; every id is exact."""
    value = {
        "run_id": family.origin.run_id,
        "lineage_id": family.logical_id,
        "is_complete": family.is_complete,
        "runs": [_facts(each) for each in family.kin],
        "edges": [
            {"from": edge.source, "to": edge.target, "kind": edge.kind.value}
            for edge in family.edges
        ],
    }
    return json.dumps(value, indent=2) + "\n"


def as_mermaid(family: Family) -> str:
    """Write a flow chart; whatever could mean something to Mermaid is written as a number."""
    return "\n".join(_mermaid_lines(family)) + "\n"


def as_dot(family: Family) -> str:
    """Write a directed graph for Graphviz."""
    return "\n".join(_dot_lines(family)) + "\n"


EXPORTS: Final[Mapping[str, Export]] = {
    "json": Export(as_json, "application/json", "lineage.json"),
    "mermaid": Export(as_mermaid, "text/plain; charset=utf-8", "lineage.mmd"),
    "dot": Export(as_dot, "text/plain; charset=utf-8", "lineage.dot"),
}


def _facts(kin: Kin) -> dict[str, object]:
    run = kin.run
    return {
        "run_id": run.run_id,
        "kinship": kin.kinship.value,
        "generation": kin.generation,
        "lineage_id": run.lineage_id,
        "round_ordinal": run.round_ordinal,
        "parent_run_id": run.parent_run_id,
        "status": run.status,
        "handler": run.handler,
        "queue": run.queue,
        "created_at_ms": run.created_at_ms,
        "started_at_ms": run.started_at_ms,
        "finished_at_ms": run.finished_at_ms,
        "cancel_requested_at_ms": run.cancel_requested_at_ms,
        "failure_count": run.failure_count,
        "recovery_count": run.recovery_count,
    }


def _mermaid_lines(family: Family) -> Iterator[str]:
    names = _names(family)
    yield "flowchart LR"
    if not family.is_complete:
        yield "  %% not complete: the family is larger than what was read"
    for kin in family.kin:
        text = "".join(map(_mermaid_character, _label(kin)))
        yield f'  {names[kin.run_id]}["{text}"]'
    for edge in family.edges:
        arrow = "-->" if edge.kind == EdgeKind.PARENT else "-.->"
        yield f"  {names[edge.source]} {arrow} {names[edge.target]}"


def _mermaid_character(character: str) -> str:
    return character if _PLAIN.fullmatch(character) else f"#{ord(character)};"


def _dot_lines(family: Family) -> Iterator[str]:
    names = _names(family)
    yield "digraph lineage {"
    yield '  graph [rankdir="LR"];'
    yield '  node [shape="box"];'
    if not family.is_complete:
        yield "  // not complete: the family is larger than what was read"
    for kin in family.kin:
        text = _label(kin).replace("\\", "\\\\").replace('"', '\\"')
        yield f'  {names[kin.run_id]} [label="{text}"];'
    for edge in family.edges:
        style = "" if edge.kind == EdgeKind.PARENT else ' [style="dashed"]'
        yield f"  {names[edge.source]} -> {names[edge.target]}{style};"
    yield "}"


def _names(family: Family) -> dict[str, str]:
    """Give every run a short name of ours: an id can hold anything."""
    return {kin.run_id: f"n{number}" for number, kin in enumerate(family.kin)}


def _label(kin: Kin) -> str:
    place = "" if kin.run.round_ordinal is None else f" {kin.run.round_ordinal}"
    said = f"{kin.run_id} ({kin.kinship.value}{place}, {kin.run.status})"
    return shown_text(said).replace("\n", "\\n").replace("\t", "\\t")
