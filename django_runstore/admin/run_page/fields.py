"""What the page of a run shows of its columns, one method per field."""

from urllib.parse import urlencode

from django.contrib import admin
from django.db.models.functions import Left, Length
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _

from django_runstore import conf
from django_runstore.admin.addresses import run_url
from django_runstore.admin.notes import notes_table
from django_runstore.admin.ownership import ownership_table
from django_runstore.admin.read_only import ReadOnlyAdmin, database_of
from django_runstore.admin.wording import (
    HIDDEN,
    LONGEST_SHOWN,
    age,
    claimant_of,
    moment,
    pretty_json,
    shown_text,
)
from django_runstore.clocks import clock_for
from django_runstore.display_text import printable
from django_runstore.models import Run


class RunFields(ReadOnlyAdmin[Run]):
    """Values of a run in words."""

    @admin.display(description=_("parent"))
    def parent(self, run: Run) -> SafeString | str:
        """Link to the run that this one descends from."""
        if run.parent_run_id is None:
            return "-"
        url = run_url(run.parent_run_id, self.admin_site)
        return format_html('<a href="{}">{}</a>', url, printable(run.parent_run_id))

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

    @admin.display(description=_("waiting for"))
    def waiting(self, run: Run) -> str:
        """Say what a suspended run waits for."""
        return "-" if run.waiting_reason is None else printable(run.waiting_reason)

    @admin.display(description=_("wakes"))
    def wakes(self, run: Run) -> str:
        """Show a time of the store."""
        return moment(run.waiting_wake_at_ms)

    @admin.display(description=_("run"))
    def whole_id(self, run: Run) -> str:
        """Show all of the id, whatever it is made of."""
        return shown_text(run.run_id)

    @admin.display(description=_("journal notes"))
    def notes(self, run: Run) -> SafeString | str:
        """Show what was remarked about the run."""
        return notes_table(run.run_id, database_of(run))

    @staticmethod
    def _now_ms(run: Run) -> float:
        return clock_for(database_of(run)).now_ms()

    @staticmethod
    def _text(run: Run, column: str) -> SafeString | str:
        """Show the beginning of a wide text; hidden ones are not even read."""
        if not conf.current().admin_shows_state:
            return str(HIDDEN)
        found = Run.objects.using(database_of(run)).filter(pk=run.pk)
        head, length = found.values_list(Left(column, LONGEST_SHOWN), Length(column)).get()
        return pretty_json(head, length)
