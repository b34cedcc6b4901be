"""Runs by what people have at hand: the beginning of an id or of a lineage, or a handler."""

from collections.abc import Collection

from django.db.models import Q, QuerySet

from django_runstore.admin.keyset import Section
from django_runstore.models import Run
from django_runstore.states import CLAIMABLE_STATUSES, TERMINAL_STATUSES, RunStatus

NEWEST = ("created_at_ms", "run_id")

_LAST_CHARACTER = chr(0x10FFFF)
_BEFORE_SURROGATES = chr(0xD7FF)
_AFTER_SURROGATES = chr(0xE000)


def found_by(term: str) -> Q:
    """Match whatever the sections of a search consist of."""
    return _begins("run_id", term) | _begins("lineage_id", term) | Q(handler=term)


def search_sections(
    runs: QuerySet[Run], term: str, statuses: Collection[RunStatus]
) -> list[Section[Run]]:
    """
    Split what is found into three parts, each in the order of an index.

    In one order they would have to be sorted, and a short beginning can match every run.
    """
    by_id, by_lineage = _begins("run_id", term), _begins("lineage_id", term)
    others = runs.exclude(by_id).exclude(by_lineage)
    return [
        Section([runs.filter(by_id)], ("run_id",)),
        Section([runs.filter(by_lineage).exclude(by_id)], ("lineage_id", "round_ordinal")),
        Section(by_status(others.filter(handler=term), statuses), NEWEST),
    ]


def by_status(runs: QuerySet[Run], statuses: Collection[RunStatus]) -> list[QuerySet[Run]]:
    """
    Split runs of some statuses so that each part has an index.

    Those of a handler or queue and one terminal status are the end of an index; those that
    can be claimed, and those that run, are few enough to be sorted.
    """
    parts = [[each] for each in TERMINAL_STATUSES if each in statuses]
    parts.append([each for each in CLAIMABLE_STATUSES if each in statuses])
    parts.append([each for each in [RunStatus.RUNNING] if each in statuses])
    return [runs.filter(status__in=part) for part in parts if part]


def _begins(column: str, beginning: str) -> Q:
    """
    Match texts with a beginning as a range of an index in byte order.

    Unlike ``LIKE`` it tells upper from lower case on every database, as ids do.
    """
    condition = Q(**{f"{column}__gte": beginning})
    end = _first_text_behind(beginning)
    return condition if end is None else condition & Q(**{f"{column}__lt": end})


def _first_text_behind(beginning: str) -> str | None:
    """Give the smallest text that sorts behind all with this beginning; None when none does."""
    stem = beginning.rstrip(_LAST_CHARACTER)
    if not stem:
        return None
    last = stem[-1]
    behind = _AFTER_SURROGATES if last == _BEFORE_SURROGATES else chr(ord(last) + 1)
    return stem[:-1] + behind
