"""What is due and passed over by every claim, because somebody has it locked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from django_runstore.db.backends import skips_locked_rows
from django_runstore.db.lock_wait import limit_lock_wait
from django_runstore.models import Run

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


def others_hold_due(
    using: str,
    now_ms: int,
    queues: Sequence[str] | None,
    handlers: Collection[str],
    *,
    lock_wait_ms: int,
) -> bool:
    """
    Tell whether a due run is locked by somebody else's transaction at this moment.

    A claim that found nothing is no proof that nothing is left: it passes over such runs. Runs
    that it passes over for another reason, as it does with unreadable ones, do not count.

    Args:
        lock_wait_ms: How long to wait for a lock on the whole table.
    """
    if not skips_locked_rows(using):
        return False
    due = Run.objects.using(using).claimable(now_ms).filter(handler__in=handlers)
    if queues is not None:
        due = due.filter(queue__in=queues)
    with transaction.atomic(using=using):
        limit_lock_wait(using, lock_wait_ms)
        free = due.select_for_update(no_key=True, skip_locked=True).values("run_id")
        return due.exclude(pk__in=free).exists()
