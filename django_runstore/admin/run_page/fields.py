"""What the page of a run shows of its columns, one method per field."""

import json

from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_runstore.admin.addresses import run_url
from django_runstore.admin.read_only import ReadOnlyAdmin, database_of
from django_runstore.admin.wording import age, claimant_of, moment, shown_text
from django_runstore.clocks import clock_for
from django_runstore.display_text import printable
from django_runstore.models import Run


class RunFields(ReadOnlyAdmin[Run]):
    """Values of a run in words."""

    @admin.display(description=_("run"))
    def whole_id(self, run: Run) -> str:
        """Show all of the id, whatever it is made of."""
        return shown_text(run.run_id)

    @admin.display(description=_("lineage"))
    def whole_lineage(self, run: Run) -> SafeString:
        """Link to the picture of the lineage, and say where in it this run stands."""
        url = run_url(run.run_id, self.admin_site, "lineage")
        if run.lineage_id is None:
            said = gettext("none; see parents and children")
        else:
            values = {"lineage": shown_text(run.lineage_id), "round": run.round_ordinal}
            said = gettext("%(lineage)s, round %(round)s") % values
        return format_html('<a href="{}">{}</a>', url, said)

    @admin.display(description=_("parent"))
    def parent(self, run: Run) -> SafeString | str:
        """Link to the run that this one descends from."""
        if run.parent_run_id is None:
            return "-"
        url = run_url(run.parent_run_id, self.admin_site)
        return format_html('<a href="{}">{}</a>', url, printable(run.parent_run_id))

    @admin.display(description=_("handler"))
    def whole_handler(self, run: Run) -> str:
        """Show all of a name that others chose."""
        return shown_text(run.handler) or "-"

    @admin.display(description=_("queue"))
    def whole_queue(self, run: Run) -> str:
        """Show all of a name that others chose."""
        return shown_text(run.queue)

    @admin.display(description=_("concurrency key"))
    def whole_concurrency_key(self, run: Run) -> str:
        """Show all of a name that others chose."""
        if not run.concurrency_key:
            return "-"
        return gettext("%(key)s (at most %(limit)d at once)") % {
            "key": shown_text(run.concurrency_key),
            "limit": run.concurrency_limit,
        }

    @admin.display(description=_("code version"))
    def whole_code_version(self, run: Run) -> str:
        """Show all of a name that others chose."""
        return shown_text(run.code_version) or "-"

    @admin.display(description=_("claimed by"))
    def claimant(self, run: Run) -> str:
        """Name who has reserved the run."""
        return claimant_of(run)

    @admin.display(description=_("claimed"))
    def claimed(self, run: Run) -> str:
        """Say when the claim was made."""
        return moment(run.claimed_at_ms)

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

    @admin.display(description=_("request seen"))
    def cancel_seen(self, run: Run) -> str:
        """Say when the owner acknowledged the request; a deferred column, read only if asked."""
        if run.cancel_requested_at_ms is None or run.cancel_acknowledgement_json is None:
            return moment(None)
        try:
            return moment(int(json.loads(run.cancel_acknowledgement_json)["observed_at_ms"]))
        except (ValueError, TypeError, KeyError, RecursionError):
            return gettext("unreadable")

    @admin.display(description=_("advanced"))
    def progressed(self, run: Run) -> str:
        """Say when work last moved, which is another thing than a heartbeat."""
        return age(run.progressed_at_ms, clock_for(database_of(run)).now_ms())

    @admin.display(description=_("waiting for"))
    def waiting(self, run: Run) -> str:
        """Say what a suspended run waits for."""
        return "-" if run.waiting_reason is None else printable(run.waiting_reason)

    @admin.display(description=_("wakes"))
    def wakes(self, run: Run) -> str:
        """Show a time of the store."""
        return moment(run.waiting_wake_at_ms)
