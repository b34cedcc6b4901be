"""What happened to a run, append only. Spec: run-store 2.5 and 4.2."""

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_runstore.models.constraints import integer_range, not_empty
from django_runstore.models.fields import DurableTextField, generated_datetime
from django_runstore.read_only import ReadOnlyManager, ReadOnlyModel, UnguardedManager


class JournalEntry(ReadOnlyModel):
    """
    One entry of a run's journal, in the run's own stream or in a companion of it.

    ``companion`` is empty for the run's own stream and ``run-store`` for ownership
    facts. The run id is plain text: the journal of a deleted run stays readable.
    """

    written_by = "django_runstore.RunStore"

    run_id = DurableTextField(_("run"))
    companion = DurableTextField(_("companion"), default="", db_default="", blank=True)
    seq = models.BigIntegerField(_("sequence"))
    source_id = DurableTextField(_("source"))
    # A source id may be as long as a run id, and both in one key would not fit a btree entry.
    source_hash = models.BinaryField(_("source digest"), max_length=32)
    source_seq = models.BigIntegerField(_("source sequence"))
    emitted_at_ms = models.BigIntegerField(_("emitted at (ms)"))
    emitted_at = generated_datetime("emitted_at_ms", _("emitted"))
    event_type = DurableTextField(_("event type"))
    payload_json = models.TextField(_("payload"))
    meta_json = models.TextField(_("meta"), default="null", db_default="null")

    objects = ReadOnlyManager()
    unguarded = UnguardedManager()

    class Meta:
        db_table = "runstore_journal_entry"
        base_manager_name = "objects"
        verbose_name = _("journal entry")
        verbose_name_plural = _("journal entries")
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["run_id", "companion", "seq"], name="runstore_journal_sequence"
            ),
            models.UniqueConstraint(
                fields=["run_id", "companion", "source_hash", "source_seq"],
                name="runstore_journal_source",
            ),
            *(
                not_empty("runstore_journal", column)
                for column in ("run_id", "source_id", "event_type")
            ),
            *(
                integer_range("runstore_journal", column)
                for column in ("seq", "source_seq", "emitted_at_ms")
            ),
        ]

    def __str__(self) -> str:
        """Name the stream, the position and the kind of event."""
        stream = f"{self.run_id}/{self.companion}" if self.companion else self.run_id
        return f"{stream}#{self.seq} {self.event_type}"
