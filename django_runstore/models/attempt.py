"""One execution of one step of a run. Spec: run-store 2.2."""

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_runstore.display_text import printable
from django_runstore.models.constraints import HasBytes, integer_range, not_empty
from django_runstore.models.fields import DurableTextField, generated_datetime
from django_runstore.models.run import Run
from django_runstore.read_only import ReadOnlyManager, ReadOnlyModel, UnguardedManager


class Attempt(ReadOnlyModel):
    """
    One attempt at a step. Read it with the ORM; ``AttemptStore`` writes it.

    ``step_key_digest`` says which step of the run it is and ``attempt`` counts its
    executions; ``step_name`` is for people.
    """

    written_by = "django_runstore.AttemptStore"

    # No index: the unique key below begins with the run's id.
    run = models.ForeignKey(
        Run,
        models.PROTECT,
        verbose_name=_("run"),
        db_index=False,
        related_name="attempts",
    )
    step_key_digest = DurableTextField(_("step key"))
    # A step key may be as long as a run id, and both in one key would not fit a btree entry.
    step_key_hash = models.BinaryField(_("step key digest"), max_length=32)
    attempt = models.BigIntegerField(_("attempt"))
    step_name = DurableTextField(_("step"), default="", db_default="", blank=True)
    state = DurableTextField(_("state"))
    started_at_ms = models.BigIntegerField(_("started at (ms)"))
    finished_at_ms = models.BigIntegerField(_("finished at (ms)"), null=True, blank=True)
    heartbeat_at_ms = models.BigIntegerField(_("heartbeat at (ms)"), null=True, blank=True)
    started_at = generated_datetime("started_at_ms", _("started"))
    finished_at = generated_datetime("finished_at_ms", _("finished"))
    checkpoint_json = models.TextField(_("checkpoint"), null=True, blank=True)
    error_json = models.TextField(_("error"), null=True, blank=True)
    outcome_json = models.TextField(_("outcome"), null=True, blank=True)
    meta_json = models.TextField(_("meta"), default="null", db_default="null")

    objects = ReadOnlyManager()
    unguarded = UnguardedManager()

    class Meta:
        db_table = "runstore_attempt"
        base_manager_name = "objects"
        verbose_name = _("attempt")
        verbose_name_plural = _("attempts")
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["run", "step_key_hash", "attempt"], name="runstore_attempt_key"
            ),
            models.CheckConstraint(
                name="runstore_attempt_meta_json_not_empty", condition=HasBytes("meta_json")
            ),
            *(not_empty("runstore_attempt", column) for column in ("step_key_digest", "state")),
            *(integer_range("runstore_attempt", column) for column in ("attempt", "started_at_ms")),
            *(
                integer_range("runstore_attempt", column, nullable=True)
                for column in ("finished_at_ms", "heartbeat_at_ms")
            ),
        ]

    def __str__(self) -> str:
        """Name the run, the step and the attempt for people."""
        step = printable(self.step_name or self.step_key_digest)
        return f"{printable(self.run_id)} {step}#{self.attempt}"
