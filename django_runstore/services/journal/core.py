"""What the operations of ``Journal`` share: its options, its errors, and the fence."""

from collections.abc import Callable
from typing import ClassVar, Final, NoReturn, TypeVar

from django.db import Error as DjangoError
from django.utils.module_loading import import_string

from django_runstore import conf
from django_runstore.arbiters import LeaseArbiter
from django_runstore.arbiters.lease import AskGuard, Refused
from django_runstore.clocks import Clock
from django_runstore.db.failures import classify
from django_runstore.durable import durable_text, safe_integer
from django_runstore.errors import (
    DatabaseFailure,
    FailureCode,
    FenceLostError,
    InvalidEvent,
    JournalError,
    ReadFailed,
    SinkFailed,
    StoreError,
)
from django_runstore.owners import OwnerId
from django_runstore.redaction import Redactor
from django_runstore.services.core import StoreCore
from django_runstore.services.journal import arguments
from django_runstore.services.locked_run import LockedRun

T = TypeVar("T")

_GUARD_FAILED: Final = "consensus guard failed"


class JournalCore(StoreCore):
    """
    Ground of ``Journal``.

    Args:
        using: Database alias.
        clock: What dates entries and checkpoints; as for ``RunStore``.
        arbiter: Who decides about leases; the one that ``RunStore`` over ``using`` has.
        redactor: A function from a payload or meta to what is stored instead of it; by default
            ``RUNSTORE["REDACTOR"]``. It must give the same answer each time, or a retry is
            taken for other content.
        max_entry_bytes: The most UTF-8 bytes of payload and meta together; no bound by default.
    """

    service: ClassVar[str] = "Journal"

    def __init__(
        self,
        using: str = "default",
        clock: Clock | None = None,
        arbiter: LeaseArbiter | None = None,
        *,
        redactor: Redactor | None = None,
        max_entry_bytes: int | None = None,
    ) -> None:
        super().__init__(using, clock, arbiter)
        if redactor is not None and not callable(redactor):
            raise InvalidEvent("Journal", "redactor must be a function", {"field": "redactor"})
        self._redactor = redactor
        self._max_entry_bytes = (
            None
            if max_entry_bytes is None
            else arguments.positive("Journal", max_entry_bytes, "max_entry_bytes")
        )

    @property
    def redactor(self) -> Redactor:
        """What keeps credentials out of payload and meta."""
        if self._redactor is not None:
            return self._redactor
        found: Redactor = import_string(conf.current().redactor)
        return found

    def _kind_of_failure(self, code: FailureCode) -> type[JournalError]:
        return SinkFailed

    def _read(self, operation: str, body: Callable[[], T]) -> T:
        """Read, and give a failure of the database its type."""
        return self._typed(operation, body, ReadFailed)

    def _fenced(self, operation: str, run_id: str, owner: OwnerId, fence: int | None) -> LockedRun:
        """
        Lock the run and confirm that ``owner`` still has it.

        The first thing that a fenced write does, before it looks at anything else: whoever
        lost the run must not even learn that an event of its is there. Spec: run-store 8.4.
        """
        try:
            row = self._held(run_id, owner, fence)
        except (DjangoError, OSError, StoreError) as error:
            code = classify(error)
        else:
            return _lost(operation, run_id, owner, fence) if row is None else row
        # After the handler, as in the core: the driver's words stay behind.
        failure = SinkFailed(operation, _GUARD_FAILED, {"cause": code})
        failure.__cause__ = DatabaseFailure(code)
        raise failure

    def _held(self, run_id: str, owner: OwnerId, fence: int | None) -> LockedRun | None:
        row = self._lock(run_id)
        if row is None or not row.is_owned_by(owner, fence):
            return None
        decision = self._decide(row, row.lease, AskGuard(owner, fence))
        return None if isinstance(decision.answer, Refused) else row


def host_of(owner: OwnerId) -> dict[str, str]:
    """Name the owner's host for a span; an owner that no run can have may be any text."""
    host_id = durable_text(owner.host_id)
    return {} if host_id is None else {"owner_host_id": host_id}


def _lost(operation: str, run_id: str, owner: OwnerId, fence: int | None) -> NoReturn:
    # What no run can have for an owner is of any length and holds any characters.
    host_id, nonce = durable_text(owner.host_id) or "?", durable_text(owner.nonce) or "?"
    pid = "?" if safe_integer(owner.pid) is None else owner.pid
    grant = "" if fence is None else f" under fence {fence}"
    message = f"run {run_id} is no longer owned by {host_id}:{pid}:{nonce}{grant}"
    raise FenceLostError(operation, message, {"run_id": run_id})
