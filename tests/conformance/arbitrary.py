"""Anything that a caller may pass: values, look-alikes and records with anything inside."""

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

from hypothesis import strategies as st

from django_runstore import (
    LivenessEvidence,
    OwnerId,
    RunRow,
    RunSnapshot,
    TransitionGuard,
)
from django_runstore.snapshots import OwnedTransition, RunNote
from tests.conformance.hostile import HOSTILE, Number, Text

RECORDS = (
    OwnerId,
    RunSnapshot,
    RunRow,
    LivenessEvidence,
    TransitionGuard,
    OwnedTransition,
    RunNote,
)


@dataclass(frozen=True)
class Recipe:
    """How to make an object; hypothesis looks into everything it draws, so it draws these."""

    make: Callable[..., Any]
    parts: tuple[Any, ...] = ()

    def __call__(self) -> Any:
        parts = [part() if type(part) is Recipe else part for part in self.parts]
        return self.make(*parts)


def same(value: Any) -> Any:
    return value


def as_list(*members: Any) -> list[Any]:
    return list(members)


def as_tuple(*members: Any) -> tuple[Any, ...]:
    return members


def as_dict(*members: Any) -> dict[Any, Any]:
    return dict(zip(["host_id", "pid", "status", "\ud800"], members, strict=False))


def recipes(make: Callable[..., Any], *parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Recipe]:
    return st.tuples(*parts).map(lambda drawn: Recipe(make, drawn))


texts = st.one_of(
    st.text(max_size=8),
    st.text(st.characters(categories=["Cs", "Cc", "Lo"]), max_size=4),
    st.sampled_from(["", "run", "new", "running", "pending", "absent", "{}", "x" * 2_000]),
)
numbers = st.one_of(
    st.integers(-2, 2),
    st.integers(),
    st.sampled_from([2**31, 2**53 - 1, 2**53, 2**63, -(2**64), 10**400]),
    st.floats(),
    st.decimals(),
    st.booleans(),
)
leaves = st.one_of(
    recipes(same, texts),
    recipes(same, numbers),
    recipes(same, st.binary(max_size=4)),
    recipes(same, st.sampled_from([None, dt.date(2026, 1, 1), Fraction(1, 2), int, len, ..., 1j])),
    recipes(Text, st.sampled_from(["run", "running", "{}", "absent", "lease-expired"])),
    recipes(Number, st.integers(0, 2)),
    recipes(SimpleNamespace),
    st.sampled_from(sorted(HOSTILE)).map(lambda name: Recipe(HOSTILE[name])),
    recipes(object.__new__, st.sampled_from(RECORDS)),
)


def composed(inner: st.SearchStrategy[Recipe]) -> st.SearchStrategy[Recipe]:
    """Containers, and this package's own records, with anything inside."""
    few = st.lists(inner, max_size=3)
    return st.one_of(
        *(
            few.map(lambda parts, make=make: Recipe(make, tuple(parts)))
            for make in (as_list, as_tuple, as_dict)
        ),
        recipes(OwnerId, inner, inner, inner),
        recipes(RunSnapshot, inner, inner, inner),
        recipes(LivenessEvidence, inner, inner, inner, inner),
        recipes(TransitionGuard, inner),
        recipes(RunNote, inner, inner),
        recipes(OwnedTransition, *[inner] * 11),
    )


anything = st.recursive(leaves, composed, max_leaves=8)
