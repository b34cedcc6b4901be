"""What the list shows of a run, one method per column."""

from django.contrib import admin
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _

from django_runstore import conf
from django_runstore.admin.badges import status_badge
from django_runstore.admin.read_only import ReadOnlyAdmin, database_of
from django_runstore.admin.wording import (
    age,
    brief,
    moment,
    owner_of,
)
from django_runstore.clocks import clock_for
from django_runstore.models import Run


class RunColumns(ReadOnlyAdmin[Run]):
    """Values of a run in a few words."""

    @admin.display(description=_("run"))
    def name(self, run: Run) -> str:
        """Show the id, short enough for a list."""
        return brief(run.run_id)

    @admin.display(description=_("status"))
    def status_badge(self, run: Run) -> SafeString:
        """Show the status in word and shape."""
        return status_badge(run.status)

    @admin.display(description=_("lineage / round"))
    def lineage(self, run: Run) -> str:
        """Name the logical run and the place in it."""
        if run.lineage_id is None:
            return "-"
        return f"{brief(run.lineage_id)} / {run.round_ordinal}"

    @admin.display(description=_("owner"))
    def owner(self, run: Run) -> str:
        """Name the process that owns the run."""
        return owner_of(run)

    @admin.display(description=_("heartbeat"))
    def heartbeat(self, run: Run) -> str:
        """Say when the owner was last heard of."""
        if run.heartbeat_at_ms is None:
            return "-"
        now_ms = int(self._now_ms(run))
        said = age(run.heartbeat_at_ms, now_ms)
        is_stale = conf.current().lease.is_stale(run.heartbeat_at_ms, now_ms)
        return _now("%(age)s (stale)") % {"age": said} if is_stale else said

    @admin.display(description=_("created"))
    def created(self, run: Run) -> str:
        """Show a time of the store."""
        return moment(run.created_at_ms)

    @admin.display(description=_("started"))
    def started(self, run: Run) -> str:
        """Show a time of the store."""
        return moment(run.started_at_ms)

    @admin.display(description=_("finished"))
    def finished(self, run: Run) -> str:
        """Show a time of the store."""
        return moment(run.finished_at_ms)

    @staticmethod
    def _now_ms(run: Run) -> float:
        return clock_for(database_of(run)).now_ms()
