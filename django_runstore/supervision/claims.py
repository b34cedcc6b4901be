"""What whoever executes runs asks for: what is due, and has a handler in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django_runstore import conf
from django_runstore.handlers import registry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django_runstore.owners import OwnerId
    from django_runstore.services import RunStore
    from django_runstore.snapshots import ClaimedRun


def claim_due(
    store: RunStore, owner: OwnerId, limit: int, queues: Sequence[str] | None
) -> tuple[ClaimedRun, ...]:
    """
    Own up to ``limit`` runs that are due, and leave those that no handler here can read.

    Args:
        queues: Only these queues; None for all.

    Raises:
        RunPersistenceFailed: the database failed.
    """
    return store.claim_many(
        owner,
        limit,
        queues=queues,
        handlers=registry.state_versions(),
        code_version=conf.current().code_version,
    )
