"""What a sweeper reads: a page of stale rows, narrow, by way of the partial indexes."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import transaction

from django_runstore.db.backends import has_one_writer
from django_runstore.db.boundary import is_nested
from django_runstore.db.lock_wait import limit_statements
from django_runstore.models import Run
from django_runstore.owners import OwnerId
from django_runstore.states import RunStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django_runstore.querysets import RunQuerySet


@dataclass(frozen=True, slots=True)
class StaleRow:
    """
    A row with a stale stamp, as far as it takes to tell whether it moves.

    Attributes:
        holder: The owner, or for a pending claim the claimant.
        stamp_ms: The heartbeat, or for a pending claim its time.
        fence: The last grant handed out for the run.
    """

    run_id: str
    holder: OwnerId
    stamp_ms: int
    fence: int


@dataclass(frozen=True, slots=True)
class Page:
    """
    Which rows are wanted: the first ``size`` after one run id, with stamps before a time.

    Attributes:
        lock_wait_ms: How long the query may wait for a locked table.
    """

    using: str
    after: str
    size: int
    stale_before_ms: int
    lock_wait_ms: int


def stale_running(page: Page) -> list[StaleRow]:
    """List running runs whose owner has not beaten since ``stale_before_ms``, by run id."""
    running = Run.objects.using(page.using).filter(
        status=RunStatus.RUNNING, heartbeat_at_ms__lt=page.stale_before_ms
    )
    return _read(page, running, "owner", "heartbeat_at_ms")


def stale_claims(page: Page) -> list[StaleRow]:
    """List runs with a claim from before ``stale_before_ms`` that nobody activated, by run id."""
    claimed = Run.objects.using(page.using).filter(
        claim_host_id__isnull=False, claimed_at_ms__lt=page.stale_before_ms
    )
    return _read(page, claimed, "claim", "claimed_at_ms")


def _read(page: Page, runs: RunQuerySet, role: str, stamp: str) -> list[StaleRow]:
    columns = ("run_id", f"{role}_host_id", f"{role}_pid", f"{role}_nonce", stamp, "fence")
    wanted = runs.filter(run_id__gt=page.after).order_by("run_id").values_list(*columns)
    with bounded_statements(page.using, page.lock_wait_ms):
        return [
            StaleRow(run_id, OwnerId(host_id, pid, nonce), stamp_ms, fence)
            for run_id, host_id, pid, nonce, stamp_ms, fence in wanted[: page.size]
        ]


@contextmanager
def bounded_statements(using: str, lock_wait_ms: int) -> Iterator[None]:
    """Give up on a locked table, or a statement that hangs, instead of waiting for ever."""
    if is_nested(using) or has_one_writer(using):
        # A caller's transaction keeps its own limit, and readers of SQLite wait for nobody.
        yield
        return
    with transaction.atomic(using=using):
        limit_statements(using, lock_wait_ms)
        yield
