"""The indexes of runs, each with the question that it answers."""

from typing import Final

from django.db import models
from django.db.models import Q

from django_runstore.states import (
    CLAIMABLE_STATUSES,
    LIVE_STATUSES,
    TERMINAL_STATUSES,
    RunStatus,
)

_RUNNING: Final = Q(status=RunStatus.RUNNING)
_CLAIMABLE: Final = Q(status__in=CLAIMABLE_STATUSES)
_SETTLED: Final = Q(status__in=TERMINAL_STATUSES)
# A settled run keeps what it was waiting for, as a record, and waits no more.
_WAITING: Final = Q(waiting_reason__isnull=False, status__in=LIVE_STATUSES)

# Partial where they serve a hot query, so that millions of settled rows cost it
# nothing, and none on heartbeat_at_ms, so that a beat stays a narrow (HOT) update.
INDEXES: Final = [
    # In the order in which runs are claimed, down to the tie, so that a claim reads as
    # many rows as it takes, however many wait: for a supervisor of one queue, and for
    # one of several.
    models.Index(
        fields=["queue", "claim_order_ms", "available_at_ms", "run_id"],
        name="runstore_run_claimable",
        condition=_CLAIMABLE,
    ),
    models.Index(
        fields=["claim_order_ms", "available_at_ms", "run_id"],
        name="runstore_run_claimable_any",
        condition=_CLAIMABLE,
    ),
    # What waits longest in a queue, whatever its priority. No time is negative; a claim
    # does not say so, and is thereby kept from taking this index and sorting.
    models.Index(
        fields=["queue", "available_at_ms"],
        name="runstore_run_due",
        condition=_CLAIMABLE & Q(available_at_ms__gte=0),
    ),
    models.Index(fields=["run_id"], name="runstore_run_running", condition=_RUNNING),
    models.Index(
        fields=["run_id"],
        name="runstore_run_claimed",
        condition=Q(claim_host_id__isnull=False),
    ),
    models.Index(
        fields=["concurrency_key", "concurrency_limit"],
        name="runstore_run_concurrency",
        condition=_RUNNING & ~Q(concurrency_key=""),
    ),
    models.Index(
        fields=["parent_run"],
        name="runstore_run_children",
        condition=Q(parent_run__isnull=False),
    ),
    models.Index(
        fields=["cancel_requested_at_ms"],
        name="runstore_run_cancelling",
        condition=Q(cancel_requested_at_ms__isnull=False, status__in=LIVE_STATUSES),
    ),
    # In the order in which runs wake, down to the tie: for one reason, and for all.
    models.Index(
        fields=["waiting_reason", "waiting_wake_at_ms", "run_id"],
        name="runstore_run_waiting_idx",
        condition=_WAITING,
    ),
    models.Index(
        fields=["waiting_wake_at_ms", "run_id"],
        name="runstore_run_waiting_any",
        condition=_WAITING,
    ),
    # The lists of the admin, newest first. Ascending and read backwards: what is new then
    # goes to the end of its group, where a page is filled before it is split. A run is
    # in those by handler and queue once it is settled; the live ones are few. Without
    # the id, beside which a long name would not fit: few runs share a millisecond.
    models.Index(fields=["created_at_ms", "run_id"], name="runstore_run_newest"),
    models.Index(
        fields=["status", "created_at_ms"],
        name="runstore_run_by_status",
        condition=Q(status__in=[each for each in RunStatus if each != RunStatus.RUNNING]),
    ),
    models.Index(
        fields=["handler", "status", "created_at_ms"],
        name="runstore_run_by_handler",
        condition=_SETTLED,
    ),
    models.Index(
        fields=["queue", "status", "created_at_ms"],
        name="runstore_run_by_queue",
        condition=_SETTLED,
    ),
    # With the status, so that a day is counted without a look at the rows.
    models.Index(
        fields=["finished_at_ms", "status"],
        name="runstore_run_finished",
        condition=Q(finished_at_ms__isnull=False),
    ),
    models.Index(
        fields=["recovery_count"],
        name="runstore_run_recovering",
        condition=Q(recovery_count__gt=0, status__in=LIVE_STATUSES),
    ),
    # Of all runs, settled ones too: their ending is a change that followers wait for.
    models.Index(fields=["revision_xid", "revision"], name="runstore_run_changes"),
]
