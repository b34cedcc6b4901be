"""The run row: one per run, everything its owner may write. Spec: run-store 2.1."""

from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.db import models
from django.db.models import F, Q, Value
from django.db.models.functions import Cast
from django.utils.translation import gettext_lazy as _

from django_runstore.display_text import printable
from django_runstore.durations import PRIORITY_STEP_MS
from django_runstore.models.constraints import (
    HasBytes,
    all_null,
    all_set,
    integer_range,
    not_empty,
)
from django_runstore.models.fields import DurableTextField, generated_datetime
from django_runstore.models.run_indexes import INDEXES
from django_runstore.querysets import RunQuerySet
from django_runstore.read_only import ReadOnlyModel, UnguardedManager
from django_runstore.states import (
    RunStatus,
)

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

OWNER_COLUMNS: Final = ("owner_host_id", "owner_pid", "owner_nonce", "heartbeat_at_ms")
CLAIM_COLUMNS: Final = ("claim_host_id", "claim_pid", "claim_nonce", "claimed_at_ms")

_RUNNING: Final = Q(status=RunStatus.RUNNING)


def _time(verbose_name: "_StrPromise", *, null: bool = True) -> "models.BigIntegerField[Any, Any]":
    """A point in time in integer milliseconds: exact comparison is what the fence rests on."""
    return models.BigIntegerField(verbose_name, null=null, blank=null)


def _count(verbose_name: "_StrPromise") -> "models.BigIntegerField[Any, Any]":
    return models.BigIntegerField(verbose_name, default=0, db_default=0)


def _label(verbose_name: "_StrPromise", default: str = "") -> DurableTextField:
    return DurableTextField(verbose_name, default=default, db_default=default, blank=True)


def _optional(verbose_name: "_StrPromise") -> DurableTextField:
    return DurableTextField(verbose_name, null=True, blank=True)


def _wide(verbose_name: "_StrPromise", *, null: bool = True) -> "models.TextField[Any, Any]":
    """JSON as text, byte for byte; a JSON column would reorder keys and refuse an escaped NUL."""
    return models.TextField(verbose_name, null=null, blank=null)


class Run(ReadOnlyModel):
    """
    One run. Read it with the ORM; ``RunStore`` writes it.

    ``Run.objects`` has the reporting queries (``claimable``, ``stale``, ``lineage_of``, ...).
    """

    written_by = "django_runstore.RunStore"

    run_id = DurableTextField(_("run"), primary_key=True)
    status = DurableTextField(_("status"), choices=RunStatus.choices)
    created_at_ms = _time(_("created at (ms)"), null=False)
    started_at_ms = _time(_("started at (ms)"))
    finished_at_ms = _time(_("finished at (ms)"))
    created_at = generated_datetime("created_at_ms", _("created"))
    started_at = generated_datetime("started_at_ms", _("started"))
    finished_at = generated_datetime("finished_at_ms", _("finished"))

    owner_host_id = _optional(_("owner host"))
    owner_pid = models.BigIntegerField(_("owner pid"), null=True, blank=True)
    owner_nonce = _optional(_("owner nonce"))
    heartbeat_at_ms = _time(_("heartbeat at (ms)"))
    owner_fence = models.BigIntegerField(
        _("owner fence"), null=True, blank=True, help_text=_("The grant of the current owner.")
    )
    claim_host_id = _optional(_("claimant host"))
    claim_pid = models.BigIntegerField(_("claimant pid"), null=True, blank=True)
    claim_nonce = _optional(_("claimant nonce"))
    claimed_at_ms = _time(_("claimed at (ms)"))
    fence = models.BigIntegerField(
        _("fence"), default=0, db_default=0, help_text=_("The last grant handed out; never reused.")
    )

    # No index: nothing looks children up in the hot path, and the partial one below serves reports.
    parent_run = models.ForeignKey(
        "self",
        models.PROTECT,
        verbose_name=_("parent"),
        null=True,
        blank=True,
        db_index=False,
        related_name="children",
    )
    lineage_id = _optional(_("lineage"))
    round_ordinal = models.BigIntegerField(_("round"), null=True, blank=True)
    cancel_requested_at_ms = _time(_("cancel requested at (ms)"))
    cancel_acknowledgement_json = _wide(_("cancel acknowledgement"))
    waiting_reason = _optional(_("waiting for"))
    waiting_wake_at_ms = _time(_("wakes at (ms)"))
    waiting_token = _optional(_("waiting token"))
    waiting_request = _wide(_("waiting request"))

    handler = _label(_("handler"))
    queue = _label(_("queue"), "default")
    priority = models.IntegerField(
        _("priority"),
        default=0,
        db_default=0,
        help_text=_("Higher runs first; each step is worth a minute of waiting."),
    )
    concurrency_key = _label(_("concurrency key"))
    concurrency_limit = models.IntegerField(
        _("concurrency limit"),
        default=1,
        db_default=1,
        help_text=_("How many runs with the same concurrency key may be live at once."),
    )
    available_at_ms = _time(_("available at (ms)"))
    claim_order_ms = models.GeneratedField(
        expression=F("available_at_ms")
        - Cast(F("priority"), models.BigIntegerField()) * Value(PRIORITY_STEP_MS),
        output_field=models.BigIntegerField(null=True),
        db_persist=True,
        verbose_name=_("claim order (ms)"),
        help_text=_("Runs are claimed in this order: those that are due first, with priority."),
    )
    deadline_at_ms = _time(_("deadline at (ms)"))
    code_version = _label(_("code version"))
    state_version = _count(_("state version"))
    failure_count = _count(_("failures"))
    recovery_count = _count(_("recoveries"))
    progressed_at_ms = _time(_("progressed at (ms)"))
    journal_seq = _count(_("next journal sequence"))
    ownership_seq = _count(_("next ownership sequence"))

    # Set by triggers alone (db/triggers.py), whoever writes the row.
    revision = models.BigIntegerField(
        _("revision"),
        default=0,
        db_default=0,
        editable=False,
        help_text=_("The number of the latest change; beats and progress are no changes."),
    )
    revision_xid = models.BigIntegerField(
        _("writing transaction"),
        default=0,
        db_default=0,
        editable=False,
        help_text=_("PostgreSQL: which transaction made the latest change."),
    )

    progress_json = _wide(_("progress"))
    result_json = _wide(_("result"))
    error_json = _wide(_("error"))
    state_json = _wide(_("state"), null=False)

    objects = RunQuerySet.as_manager()
    unguarded = UnguardedManager()

    class Meta:
        db_table = "runstore_run"
        base_manager_name = "objects"
        verbose_name = _("run")
        verbose_name_plural = _("runs")
        permissions: ClassVar = [
            ("cancel_run", "Can cancel a run"),
            ("cancel_lineage", "Can cancel a lineage"),
            ("wake_run", "Can wake a waiting run"),
            ("release_claim", "Can release a stale claim"),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                name="runstore_run_status_known", condition=Q(status__in=RunStatus.values)
            ),
            # running <=> owned. The fence of the owner may be missing from rows that
            # other tools wrote; then every fenced write is refused.
            models.CheckConstraint(
                name="runstore_run_owner",
                condition=(
                    _RUNNING
                    & all_set(OWNER_COLUMNS)
                    & Q(owner_pid__gte=0)
                    & ~Q(owner_host_id="")
                    & ~Q(owner_nonce="")
                )
                | (~_RUNNING & all_null(OWNER_COLUMNS) & Q(owner_fence__isnull=True)),
            ),
            models.CheckConstraint(
                name="runstore_run_claim",
                condition=all_null(CLAIM_COLUMNS)
                | (
                    all_set(CLAIM_COLUMNS)
                    & Q(claim_pid__gte=0)
                    & ~Q(claim_host_id="")
                    & ~Q(claim_nonce="")
                ),
            ),
            models.CheckConstraint(
                name="runstore_run_waiting",
                condition=Q(waiting_reason__isnull=False)
                | all_null(("waiting_wake_at_ms", "waiting_token")),
            ),
            models.CheckConstraint(
                name="runstore_run_fences",
                condition=Q(owner_fence__isnull=True)
                | (Q(owner_fence__gte=0) & Q(owner_fence__lte=F("fence"))),
            ),
            models.CheckConstraint(
                name="runstore_run_state_json_not_empty", condition=HasBytes("state_json")
            ),
            *(
                not_empty("runstore_run", column)
                for column in (
                    "run_id",
                    "lineage_id",
                    "waiting_reason",
                    "waiting_token",
                    "queue",
                )
            ),
            *(
                integer_range("runstore_run", column)
                for column in (
                    "created_at_ms",
                    "fence",
                    "failure_count",
                    "recovery_count",
                    "state_version",
                    "journal_seq",
                    "ownership_seq",
                )
            ),
            *(
                integer_range("runstore_run", column, nullable=True)
                for column in (
                    "started_at_ms",
                    "finished_at_ms",
                    "heartbeat_at_ms",
                    "claimed_at_ms",
                    "round_ordinal",
                    "cancel_requested_at_ms",
                    "waiting_wake_at_ms",
                    "available_at_ms",
                    "deadline_at_ms",
                    "progressed_at_ms",
                )
            ),
            models.CheckConstraint(
                name="runstore_run_concurrency_limit", condition=Q(concurrency_limit__gte=1)
            ),
            models.UniqueConstraint(
                fields=["lineage_id", "round_ordinal"],
                name="runstore_run_lineage_round",
                condition=Q(lineage_id__isnull=False),
            ),
        ]
        indexes: ClassVar = INDEXES

    def __str__(self) -> str:
        """Name the run on one line, as pages and their histories do; the id itself is ``pk``."""
        return printable(self.run_id)
