"""What happened to a run, in order, and what was kept of it. Spec: run-store 2.5 and 4.2."""

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_runstore.display_text import printable
from django_runstore.durable import MAX_SAFE_INTEGER
from django_runstore.models.constraints import HasBytes, integer_range, not_empty
from django_runstore.models.fields import DurableTextField, generated_datetime
from django_runstore.read_only import ReadOnlyManager, ReadOnlyModel, UnguardedManager


class JournalEntry(ReadOnlyModel):
    """
    One entry of a run's journal, in the run's own stream or in a companion of it.

    ``companion`` is empty for the run's own stream and ``run-store`` for ownership
    facts. The run id is plain text: the journal of a deleted run stays readable.
    """

    written_by = "django_runstore.Journal"

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
        """Name the stream, the position and the kind of event for people."""
        stream = f"{self.run_id}/{self.companion}" if self.companion else self.run_id
        return f"{printable(stream)}#{self.seq} {printable(self.event_type)}"


class JournalCheckpoint(ReadOnlyModel):
    """A folded state of a stream up to ``seq``; what lies below it may be compacted."""

    written_by = "django_runstore.Journal"

    run_id = DurableTextField(_("run"))
    companion = DurableTextField(_("companion"), default="", db_default="", blank=True)
    seq = models.BigIntegerField(_("sequence"))
    state_json = models.TextField(_("state"))
    created_at_ms = models.BigIntegerField(_("created at (ms)"))
    compacted_at_ms = models.BigIntegerField(_("compacted at (ms)"), null=True, blank=True)

    objects = ReadOnlyManager()
    unguarded = UnguardedManager()

    class Meta:
        db_table = "runstore_journal_checkpoint"
        base_manager_name = "objects"
        verbose_name = _("journal checkpoint")
        verbose_name_plural = _("journal checkpoints")
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["run_id", "companion", "seq"], name="runstore_checkpoint_sequence"
            ),
            models.CheckConstraint(
                name="runstore_checkpoint_state_json_not_empty", condition=HasBytes("state_json")
            ),
            not_empty("runstore_checkpoint", "run_id"),
            *(integer_range("runstore_checkpoint", column) for column in ("seq", "created_at_ms")),
            integer_range("runstore_checkpoint", "compacted_at_ms", nullable=True),
        ]

    def __str__(self) -> str:
        """Name the stream and the position."""
        stream = f"{self.run_id}/{self.companion}" if self.companion else self.run_id
        return f"{stream}@{self.seq}"


class JournalDedup(ReadOnlyModel):
    """The identity of a compacted entry, so that an exact retry of it is still a duplicate."""

    written_by = "django_runstore.Journal"

    run_id = DurableTextField(_("run"))
    companion = DurableTextField(_("companion"), default="", db_default="", blank=True)
    source_hash = models.BinaryField(_("source digest"), max_length=32)
    source_seq = models.BigIntegerField(_("source sequence"))
    seq = models.BigIntegerField(_("sequence"))
    content_hash = models.BinaryField(_("content digest"), max_length=32)

    objects = ReadOnlyManager()
    unguarded = UnguardedManager()

    class Meta:
        db_table = "runstore_journal_dedup"
        base_manager_name = "objects"
        verbose_name = _("compacted journal identity")
        verbose_name_plural = _("compacted journal identities")
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["run_id", "companion", "source_hash", "source_seq"],
                name="runstore_dedup_source",
            ),
            not_empty("runstore_dedup", "run_id"),
            *(integer_range("runstore_dedup", column) for column in ("seq", "source_seq")),
        ]

    def __str__(self) -> str:
        """Name the stream and the position the entry had."""
        stream = f"{self.run_id}/{self.companion}" if self.companion else self.run_id
        return f"{stream}#{self.seq}"


class JournalGeneration(ReadOnlyModel):
    """How often a run's stream was rewound, and to where. No row means never."""

    written_by = "django_runstore.Journal"

    run_id = DurableTextField(_("run"), primary_key=True)
    generation = models.BigIntegerField(_("generation"))
    after_seq = models.BigIntegerField(_("after sequence"))

    objects = ReadOnlyManager()
    unguarded = UnguardedManager()

    class Meta:
        db_table = "runstore_journal_generation"
        base_manager_name = "objects"
        verbose_name = _("journal generation")
        verbose_name_plural = _("journal generations")
        constraints: ClassVar = [
            not_empty("runstore_generation", "run_id"),
            models.CheckConstraint(
                name="runstore_generation_generation_range",
                condition=models.Q(generation__gte=1, generation__lte=MAX_SAFE_INTEGER),
            ),
            models.CheckConstraint(
                name="runstore_generation_after_seq_range",
                condition=models.Q(after_seq__gte=-1, after_seq__lte=MAX_SAFE_INTEGER),
            ),
        ]

    def __str__(self) -> str:
        """Name the run and the generation."""
        return f"{self.run_id} generation {self.generation}"
