"""What the filters by name offer: read from indexes, one probe per name, and bounded."""

from typing import Final, NamedTuple

from django.db import router
from django.http import HttpRequest

from django_runstore.db.distinct_names import Scan, distinct_names
from django_runstore.handlers import registry
from django_runstore.models import Run

MOST_OFFERED: Final = 100
"""Names per filter. A run of any other is found by the search, or by the name in the URL."""

_REMEMBERED: Final = "_runstore_names"
_LIVE: Final = "'pending', 'running', 'suspended'"
_SETTLED: Final = "status IN ('completed', 'failed', 'cancelled')"
_CLAIMABLE: Final = "status IN ('pending', 'suspended')"
_SCANS: Final = (
    Scan("handler", _SETTLED),
    Scan("queue", _SETTLED),
    Scan("queue", _CLAIMABLE),
    Scan("waiting_reason", f"status IN ({_LIVE}) AND waiting_reason IS NOT NULL"),
)


class Names(NamedTuple):
    """Names to choose from, ascending."""

    handlers: list[str]
    queues: list[str]
    waiting: list[str]


def names_offered(request: HttpRequest) -> Names:
    """
    List handlers, queues and reasons to wait, with one query per request.

    Handlers are those of settled runs and those that this process knows; queues those of
    settled and of claimable runs, and of those handlers. No index has the rest in order.
    """
    known: Names | None = getattr(request, _REMEMBERED, None)
    if known is None:
        handlers, settled, claimable, waiting = distinct_names(
            router.db_for_read(Run), _SCANS, MOST_OFFERED
        )
        declared = [each for each in map(registry.get, registry.names()) if each is not None]
        known = Names(
            _merged([*handlers, *(each.name for each in declared)]),
            _merged([*settled, *claimable, *(each.queue for each in declared)]),
            waiting,
        )
        setattr(request, _REMEMBERED, known)
    return known


def _merged(names: list[str]) -> list[str]:
    return sorted(set(names))[:MOST_OFFERED]
