"""What the list shows of a run, one method per column."""

from typing import Final

from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_runstore import conf
from django_runstore.admin.attention import CRASH_LOOP
from django_runstore.admin.badges import attention_mark, status_badge
from django_runstore.admin.read_only import ReadOnlyAdmin, store_now_ms
from django_runstore.admin.wording import (
    age,
    brief,
    moment,
    owner_of,
    time_of_day,
)
from django_runstore.models import Run
from django_runstore.states import RunStatus, is_terminal_run_status

ACKNOWLEDGED: Final = "is_cancel_acknowledged"
"""An annotation: the acknowledgement itself may be long, and is not read for a list."""


class RunColumns(ReadOnlyAdmin[Run]):
    """Values of a run in a few words."""

    @admin.display(description=_("run"))
    def name(self, run: Run) -> str:
        """Show the id, short enough for a list."""
        return brief(run.run_id)

    @admin.display(description=_("status"))
    def status_badge(self, run: Run) -> SafeString:
        """Show the status in word and shape, and below it whether the run was asked to stop."""
        return _stacked(status_badge(run.status), self.cancellation(run))

    @admin.display(description=_("handler / queue"))
    def handler_and_queue(self, run: Run) -> SafeString:
        """Name the handler, and below it the queue; both may be as long as an id."""
        return _stacked(brief(run.handler) or "-", brief(run.queue))

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
    def heartbeat(self, run: Run) -> SafeString | str:
        """Say when the owner was last heard of."""
        if run.heartbeat_at_ms is None:
            return "-"
        now_ms = store_now_ms(run)
        said = age(run.heartbeat_at_ms, now_ms)
        is_stale = conf.current().lease.is_stale(run.heartbeat_at_ms, now_ms)
        return attention_mark(gettext("%(age)s (stale)") % {"age": said}) if is_stale else said

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

    @admin.display(description=_("progress"))
    def progress_age(self, run: Run) -> SafeString | str:
        """Say when the work last advanced, which is another thing than a heartbeat."""
        if run.status != RunStatus.RUNNING:
            return age(run.progressed_at_ms, store_now_ms(run))
        since_ms = run.started_at_ms if run.progressed_at_ms is None else run.progressed_at_ms
        now_ms = store_now_ms(run)
        said = gettext("none yet") if run.progressed_at_ms is None else age(since_ms, now_ms)
        if since_ms is None or since_ms >= now_ms - conf.current().admin_quiet_after_ms:
            return said
        return attention_mark(gettext("%(age)s (no progress)") % {"age": age(since_ms, now_ms)})

    @admin.display(description=_("failures / losses"))
    def setbacks(self, run: Run) -> SafeString | str:
        """Count failures, and workers and hosts lost since the last progress."""
        said = f"{run.failure_count} / {run.recovery_count}"
        return attention_mark(said) if run.recovery_count >= CRASH_LOOP else said

    def cancellation(self, run: Run) -> str:
        """Say whether the run was asked to stop, and whether its owner has heard of it."""
        if run.cancel_requested_at_ms is None:
            return ""
        asked = age(run.cancel_requested_at_ms, store_now_ms(run))
        if is_terminal_run_status(run.status):
            return gettext("asked to stop %(age)s") % {"age": asked}
        if getattr(run, ACKNOWLEDGED, False):
            return gettext("asked to stop %(age)s, stopping") % {"age": asked}
        return gettext("asked to stop %(age)s, not heard yet") % {"age": asked}

    @admin.display(description=_("created"))
    def created_at_time(self, run: Run) -> SafeString | str:
        """Show a time of the store, short enough for a list."""
        return time_of_day(run.created_at_ms, store_now_ms(run))

    @admin.display(description=_("started / finished"))
    def started_and_finished(self, run: Run) -> SafeString:
        """Show two times of the store, short enough for a list."""
        now_ms = store_now_ms(run)
        finished = "" if run.finished_at_ms is None else time_of_day(run.finished_at_ms, now_ms)
        return _stacked(time_of_day(run.started_at_ms, now_ms), finished)


def _stacked(first: str, second: str) -> SafeString:
    """Show two values in one cell, the second one below and in the background."""
    if not second:
        return format_html("{}", first)
    return format_html('{}<div class="runstore-second">{}</div>', first, second)
