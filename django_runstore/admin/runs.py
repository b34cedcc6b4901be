"""The admin of runs: what each is doing, who has it, and why it changed hands."""

from typing import ClassVar, Final
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.contrib.admin.utils import quote
from django.db import router
from django.db.models import Q, QuerySet
from django.db.models.functions import Left, Length
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _

from django_runstore import conf
from django_runstore.admin.cancelling import MOST_CANCELLED, REQUESTED, cancel_runs, named
from django_runstore.admin.filters import CreatedFilter, HandlerFilter, QueueFilter, StatusFilter
from django_runstore.admin.ownership import ownership_table
from django_runstore.admin.read_only import ReadOnlyAdmin, database_of
from django_runstore.admin.wording import (
    LONGEST_SHOWN,
    age,
    claimant_of,
    moment,
    owner_of,
    pretty_json,
)
from django_runstore.clocks import clock_for
from django_runstore.models import Run
from django_runstore.services import RunStore
from django_runstore.supervision.announcements import printable

_WIDE: Final = (
    "state_json",
    "result_json",
    "error_json",
    "progress_json",
    "waiting_request",
    "cancel_acknowledgement_json",
)
_HIDDEN: Final = _("Hidden by RUNSTORE['ADMIN_SHOWS_STATE'].")


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin[Run]):
    """Newest first; found by the beginning of the run id or lineage, or by handler."""

    list_display = (
        "name",
        "status",
        "handler",
        "queue",
        "lineage",
        "owner",
        "heartbeat",
        "created",
        "started",
        "finished",
    )
    list_filter = (StatusFilter, QueueFilter, HandlerFilter, CreatedFilter)
    search_fields = ("run_id", "lineage_id", "handler")
    search_help_text = _("The beginning of a run id or a lineage, or the name of a handler.")
    ordering = ("-created_at_ms", "-run_id")
    actions = ("cancel_selected",)
    fieldsets: ClassVar = (
        (
            None,
            {
                "fields": (
                    "run_id",
                    "status",
                    "handler",
                    "queue",
                    "priority",
                    "lineage",
                    "parent",
                    "code_version",
                    "failure_count",
                    "recovery_count",
                )
            },
        ),
        (
            _("Ownership"),
            {
                "fields": (
                    "owner",
                    "heartbeat",
                    "owner_fence",
                    "claimant",
                    "claimed",
                    "fence",
                    "ownership",
                    "journal",
                )
            },
        ),
        (
            _("Times"),
            {
                "fields": (
                    "created",
                    "available",
                    "started",
                    "progressed",
                    "finished",
                    "deadline",
                    "cancel_requested",
                )
            },
        ),
        (_("Data"), {"fields": ("progress", "error", "result", "state")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        """Leave wide texts where they are: a state may have megabytes."""
        return super().get_queryset(request).defer(*_WIDE)

    def search(self, queryset: QuerySet[Run], term: str) -> QuerySet[Run]:
        """Find runs by what people have at hand."""
        return queryset.filter(
            Q(run_id__startswith=term) | Q(lineage_id__startswith=term) | Q(handler=term)
        )

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        """Tell whether the user may ask runs to stop; being able to see them is not enough."""
        return request.user.has_perm("runstore.cancel_run")

    @admin.action(description=_("Ask the selected runs to stop"), permissions=["cancel"])
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[Run]) -> None:
        """Request cancellation, and report each outcome in words."""
        selected = queryset.order_by("run_id")[: MOST_CANCELLED + 1]
        runs = {run.run_id: run for run in selected}
        if len(runs) > MOST_CANCELLED:
            message = _now("Select at most %(most)d runs; none was asked to stop.")
            self.message_user(request, message % {"most": MOST_CANCELLED}, messages.ERROR)
            return
        # Where writes go, whatever database the list was read from.
        store = RunStore(router.db_for_write(Run))
        note = str(REQUESTED)
        outcomes = cancel_runs(
            store, runs, lambda run_id: self.log_change(request, runs[run_id], note)
        )
        for words, run_ids in outcomes:
            level = messages.SUCCESS if words == note else messages.WARNING
            self.message_user(request, f"{words}: {named(run_ids)}", level)

    @admin.display(description=_("run"))
    def name(self, run: Run) -> str:
        """Show the id, short enough for a list."""
        return printable(run.run_id)

    @admin.display(description=_("lineage / round"))
    def lineage(self, run: Run) -> str:
        """Name the logical run and the place in it."""
        if run.lineage_id is None:
            return "-"
        return f"{printable(run.lineage_id)} / {run.round_ordinal}"

    @admin.display(description=_("parent"))
    def parent(self, run: Run) -> SafeString | str:
        """Link to the run that this one descends from."""
        if run.parent_run_id is None:
            return "-"
        site = self.admin_site.name
        url = reverse(
            "admin:runstore_run_change", args=[quote(run.parent_run_id)], current_app=site
        )
        return format_html('<a href="{}">{}</a>', url, printable(run.parent_run_id))

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

    @admin.display(description=_("claimed by"))
    def claimant(self, run: Run) -> str:
        """Name who has reserved the run."""
        return claimant_of(run)

    @admin.display(description=_("claimed"))
    def claimed(self, run: Run) -> str:
        """Say when the claim was made."""
        return moment(run.claimed_at_ms)

    @admin.display(description=_("ownership history"))
    def ownership(self, run: Run) -> SafeString | str:
        """Show who had the run, and on what evidence it changed hands."""
        return ownership_table(run.run_id, database_of(run))

    @admin.display(description=_("journal"))
    def journal(self, run: Run) -> SafeString:
        """Link to the entries of this run."""
        url = reverse("admin:runstore_journalentry_changelist", current_app=self.admin_site.name)
        query = urlencode({"q": run.run_id})
        return format_html('<a href="{}?{}">{}</a>', url, query, _now("Journal entries"))

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

    @admin.display(description=_("claimable from"))
    def available(self, run: Run) -> str:
        """Show a time of the store."""
        return moment(run.available_at_ms)

    @admin.display(description=_("deadline"))
    def deadline(self, run: Run) -> str:
        """Show a time of the store."""
        return moment(run.deadline_at_ms)

    @admin.display(description=_("asked to stop"))
    def cancel_requested(self, run: Run) -> str:
        """Show a time of the store."""
        return moment(run.cancel_requested_at_ms)

    @admin.display(description=_("advanced"))
    def progressed(self, run: Run) -> str:
        """Say when work last moved, which is another thing than a heartbeat."""
        return age(run.progressed_at_ms, self._now_ms(run))

    @admin.display(description=_("progress"))
    def progress(self, run: Run) -> SafeString | str:
        """Show what the handler said last."""
        return self._text(run, "progress_json")

    @admin.display(description=_("error"))
    def error(self, run: Run) -> SafeString | str:
        """Show why the run failed."""
        return self._text(run, "error_json")

    @admin.display(description=_("result"))
    def result(self, run: Run) -> SafeString | str:
        """Show what the handler returned."""
        return self._text(run, "result_json")

    @admin.display(description=_("state"))
    def state(self, run: Run) -> SafeString | str:
        """Show what the handler saved."""
        return self._text(run, "state_json")

    @staticmethod
    def _now_ms(run: Run) -> float:
        return clock_for(database_of(run)).now_ms()

    @staticmethod
    def _text(run: Run, column: str) -> SafeString | str:
        """Show the beginning of a wide text; hidden ones are not even read."""
        if not conf.current().admin_shows_state:
            return str(_HIDDEN)
        found = Run.objects.using(database_of(run)).filter(pk=run.pk)
        head, length = found.values_list(Left(column, LONGEST_SHOWN), Length(column)).get()
        return pretty_json(head, length)
