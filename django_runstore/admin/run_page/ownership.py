"""Who had the run, since when, and why it changed hands."""

from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext_lazy as _

from django_runstore.admin.run_page.facts import hand_overs
from django_runstore.admin.run_page.sections import PageOf, Section
from django_runstore.admin.run_page.stream import read_stream
from django_runstore.admin.run_page.tenures import tenures_of
from django_runstore.admin.run_page.timeline import MOST_TENURES, timeline_of
from django_runstore.models import JournalEntry
from django_runstore.services.facts import COMPANION

MOST_FACTS: Final = 100


class OwnershipSection(Section):
    """The ownership facts as a picture and as a table."""

    name = "ownership"
    title = _("Ownership history")
    template = "admin/runstore/run/ownership.html"

    def content(self, page: PageOf) -> Mapping[str, Any]:
        """Read one page of facts; the picture is of that page."""
        entries = JournalEntry.objects.using(page.using).filter(
            run_id=page.run.run_id, companion=COMPANION
        )
        stream = read_stream(entries, query=page.request.GET, name=self.name, size=MOST_FACTS)
        facts = hand_overs(reversed(stream.entries))
        tenures = tenures_of(facts)
        # On an older page a tenure that lasts beyond it has no known end, but no present either.
        latest_ms = facts[-1].at_ms if facts and stream.newer else page.now_ms
        return {
            "facts": facts[::-1],
            "chart": timeline_of(tenures, latest_ms),
            "undrawn": max(0, len(tenures) - MOST_TENURES),
            "most": MOST_TENURES,
            "stream": stream,
        }
