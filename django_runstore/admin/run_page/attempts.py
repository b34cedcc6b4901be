"""The attempts at the steps of a run: when, how long, and what came of them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.db.models import Q
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from django_runstore.admin.cursors import whole_number
from django_runstore.admin.json_text import read_json, shown_json
from django_runstore.admin.run_page.attempt_chart import chart_of
from django_runstore.admin.run_page.attempt_line import AttemptLine
from django_runstore.admin.run_page.sections import PageOf, Section
from django_runstore.admin.run_page.stream import turned_to
from django_runstore.admin.wording import age, duration, moment, shown_text
from django_runstore.models import Attempt

MOST_ATTEMPTS: Final = 50
LONGEST_JSON: Final = 2_000

_JSON: Final = ("checkpoint_json", "error_json", "outcome_json")
_COLUMNS: Final = (
    "pk",
    "step_key_digest",
    "step_name",
    "attempt",
    "state",
    "started_at_ms",
    "finished_at_ms",
    "heartbeat_at_ms",
)


class AttemptsSection(Section):
    """Attempts, the latest first, page by page."""

    name = "attempts"
    title = _("Attempts")
    template = "admin/runstore/run/attempts.html"

    def content(self, page: PageOf) -> Mapping[str, Any]:
        """Read one page; of long checkpoints, errors and outcomes the beginning."""
        found = _read(page)
        lines = [_line(values, page.now_ms) for values in found[:MOST_ATTEMPTS]]
        older = None
        if len(found) > MOST_ATTEMPTS:
            last = found[MOST_ATTEMPTS - 1]
            older = turned_to(
                page.request.GET, self.name, before=f"{last['started_at_ms']}-{last['pk']}"
            )
        is_elsewhere = _cursor(page.request.GET) is not None
        return {
            "lines": lines,
            "chart": chart_of(lines[::-1], page.now_ms),
            "older": older,
            "newest": turned_to(page.request.GET, self.name) if is_elsewhere else None,
        }


def _read(page: PageOf) -> Sequence[dict[str, Any]]:
    attempts = Attempt.objects.using(page.using).filter(run_id=page.run.run_id)
    cursor = _cursor(page.request.GET)
    if cursor is not None:
        started_at_ms, pk = cursor
        earlier = Q(started_at_ms__lt=started_at_ms)
        attempts = attempts.filter(earlier | Q(started_at_ms=started_at_ms, pk__lt=pk))
    wanted = {
        name: read for column in _JSON for name, read in read_json(column, LONGEST_JSON).items()
    }
    rows = attempts.annotate(has_error=Q(error_json__isnull=False), **wanted)
    ordered = rows.order_by("-started_at_ms", "-pk")
    return list(ordered.values(*_COLUMNS, "has_error", *wanted)[: MOST_ATTEMPTS + 1])


def _cursor(query: QueryDict) -> tuple[int, int] | None:
    started, _dash, pk = query.get("attempts_before", "").partition("-")
    numbers = whole_number(started), whole_number(pk)
    return None if numbers[0] is None or numbers[1] is None else (numbers[0], numbers[1])


def _line(values: Mapping[str, Any], now_ms: int) -> AttemptLine:
    started_at_ms, finished_at_ms = values["started_at_ms"], values["finished_at_ms"]
    end_ms = now_ms if finished_at_ms is None else finished_at_ms
    checkpoint, error, outcome = (shown_json(values, name, LONGEST_JSON) for name in _JSON)
    return AttemptLine(
        pk=values["pk"],
        step=shown_text(values["step_name"] or values["step_key_digest"]),
        attempt=values["attempt"],
        state=shown_text(values["state"]),
        started_at_ms=started_at_ms,
        finished_at_ms=finished_at_ms,
        started=moment(started_at_ms),
        finished=moment(finished_at_ms),
        lasted=duration(max(0, end_ms - started_at_ms)),
        heartbeat=age(values["heartbeat_at_ms"], now_ms),
        checkpoint=checkpoint,
        error=error,
        outcome=outcome,
        has_error=values["has_error"],
    )
