"""
What breaks: typed exceptions with a stable code. Spec: run-store 10.

Losing a race is never raised; it is returned (``django_runstore.outcomes``). An
error names the operation, the field and the rule. It never carries state, a
rejected value or the driver's words: those can hold secrets and land in logs.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Final, Literal, TypeAlias

FailureCode: TypeAlias = Literal["busy", "constraint", "io", "unsupported", "unknown"]
DetailValue: TypeAlias = str | int | bool | None
Detail: TypeAlias = Mapping[str, DetailValue]

_NO_DETAIL: Final[Detail] = MappingProxyType({})


class DatabaseFailure(Exception):  # noqa: N818 - an internal cause, never raised to users by itself
    """
    A database failure reduced to its class, kept as the cause of a store error.

    The driver's own exception is left out on purpose: PostgreSQL quotes the whole
    failing row, state included, in its messages.
    """

    def __init__(self, code: FailureCode) -> None:
        super().__init__(code)
        self.code: FailureCode = code


class StoreError(Exception):
    """
    Base of every typed error of this package.

    Attributes:
        code: Stable snake_case code.
        operation: The operation that failed, such as ``claim``.
        detail: Small mapping that names the field and the rule; no payload.
    """

    service: ClassVar[str]
    code: ClassVar[str]

    def __init__(self, operation: str, message: str, detail: Detail = _NO_DETAIL) -> None:
        super().__init__(operation, message, detail)
        self.operation = operation
        self.detail: Detail = MappingProxyType(dict(detail))
        self.message = f"{self.code}: {self.service}.{operation}: {message}"

    def __str__(self) -> str:
        """Render code, service, operation and rule, as logs and tests see it."""
        return self.message

    def __reduce__(self) -> tuple[type["StoreError"], tuple[str, str, dict[str, DetailValue]]]:
        """Survive pickling: a mapping proxy does not, and workers send errors to each other."""
        operation, message, _ = self.args
        return type(self), (operation, message, dict(self.detail))


class RunStoreError(StoreError):
    """Base of the errors of ``RunStore``."""

    service = "RunStore"
    code = "run_store_error"


class InvalidRun(RunStoreError):  # noqa: N818 - the name is part of the API
    """An argument breaks the contract; nothing was read or written."""

    code = "invalid_run"

    def __init__(
        self,
        operation: str,
        detail: Detail,
        message: str = "run input is invalid",
    ) -> None:
        super().__init__(operation, message, detail)

    def __reduce__(self) -> tuple[type["InvalidRun"], tuple[str, dict[str, DetailValue], str]]:  # type: ignore[override]  # the argument order differs from the base class
        """Keep the argument order of this class when pickled."""
        return type(self), (self.operation, dict(self.detail), self.args[1])


class RunNotFound(RunStoreError):  # noqa: N818 - the name is part of the API
    """No run has this id."""

    code = "not_found_row"


class RunConstraint(RunStoreError):  # noqa: N818 - the name is part of the API
    """The database refused a duplicate id or round, or an unknown parent; nothing was written."""

    code = "constraint"


class RunDecodeFailed(RunStoreError):  # noqa: N818 - the name is part of the API
    """A stored row breaks the invariants; another writer put it there."""

    code = "decode_failed"


class RunPersistenceFailed(RunStoreError):  # noqa: N818 - the name is part of the API
    """The database failed; ``__cause__`` tells whether it was busy, I/O or something else."""

    code = "persistence_failed"


class JournalError(StoreError):
    """Base of the errors of ``Journal``. Spec: run-store 8.9."""

    service = "Journal"
    code = "journal_error"

    @property
    def checkpoint_seq(self) -> int | None:
        """The checkpoint that ``compacted`` and ``reader_behind`` are about."""
        found = self.detail.get("checkpoint_seq")
        return found if isinstance(found, int) else None


class InvalidEvent(JournalError):  # noqa: N818 - the name is part of the API
    """An argument breaks the contract; nothing was written."""

    code = "invalid_event"


class IdempotencyConflict(JournalError):  # noqa: N818 - the name is part of the API
    """The identity of an event was used before, for other content."""

    code = "idempotency_conflict"


class SequenceConflict(JournalError):  # noqa: N818 - the name is part of the API
    """Others kept taking the next sequence; begin the transaction anew."""

    code = "sequence_conflict"


class FenceLostError(JournalError):
    """The caller no longer owns the run; stop, another write would be a lie."""

    code = "fence_lost"


class SinkFailed(JournalError):  # noqa: N818 - the name is part of the API
    """The database failed a write; ``__cause__`` tells whether it was busy, I/O or else."""

    code = "sink_failed"


class ReadFailed(JournalError):  # noqa: N818 - the name is part of the API
    """The database failed a read; ``__cause__`` tells whether it was busy, I/O or else."""

    code = "read_failed"


class JournalDecodeFailed(JournalError):  # noqa: N818 - the name is part of the API
    """A stored row is none that the journal writes; another writer put it there."""

    code = "decode_failed"


class CheckpointInvalid(JournalError):  # noqa: N818 - the name is part of the API
    """There is no entry to checkpoint, or no checkpoint to compact to."""

    code = "checkpoint_invalid"


class ReaderBehind(JournalError):  # noqa: N818 - the name is part of the API
    """A reader that follows in this process still needs what was to be deleted."""

    code = "reader_behind"


class Compacted(JournalError):  # noqa: N818 - the name is part of the API
    """The entries after this cursor are deleted; begin with the checkpoint."""

    code = "compacted"


class CursorExpired(RunStoreError):  # noqa: N818 - the name is part of the API
    """
    The changes cannot be followed on from this cursor; start over with ``after=None``.

    The database has another identity than the one the cursor was made in, or has not come as
    far: it was restored, rotated, or is another database. What was built from the changes so
    far may hold what never happened here; build it anew. ``detail["reason"]`` is ``identity``
    or ``ahead``.
    """

    code = "cursor_expired"


class AttemptStoreError(StoreError):
    """Base of the errors of ``AttemptStore``."""

    service = "AttemptStore"
    code = "attempt_store_error"


class InvalidAttempt(AttemptStoreError):  # noqa: N818 - in line with InvalidRun
    """An argument breaks the contract; nothing was read or written."""

    code = "invalid_attempt"


class AttemptConstraint(AttemptStoreError):  # noqa: N818 - in line with RunConstraint
    """The database refused the row; nothing was written."""

    code = "constraint"


class AttemptDecodeFailed(AttemptStoreError):  # noqa: N818 - in line with RunDecodeFailed
    """A stored attempt breaks the invariants; another writer put it there."""

    code = "decode_failed"


class AttemptPersistenceFailed(AttemptStoreError):  # noqa: N818 - in line with RunPersistenceFailed
    """The database failed; ``__cause__`` tells whether it was busy, I/O or something else."""

    code = "persistence_failed"


class AttemptUnknown(AttemptStoreError):  # noqa: N818 - in line with RunNotFound
    """An attempt vanished under the run's lock, or there is no store (a stub)."""

    code = "unknown"
