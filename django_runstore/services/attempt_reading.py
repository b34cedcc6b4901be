"""Read attempts, and what all operations on them share. Spec: run-store 5."""

from typing import Any, ClassVar

from django_runstore.attempt_rows import COLUMNS, decode_attempt, key_columns, step_columns
from django_runstore.attempts import AttemptId, AttemptKey, AttemptRecord
from django_runstore.errors import (
    AttemptConstraint,
    AttemptPersistenceFailed,
    AttemptStoreError,
    DetailValue,
    FailureCode,
    StoreError,
)
from django_runstore.metrics import tallies
from django_runstore.models import Attempt
from django_runstore.owners import OwnerId
from django_runstore.services import attempt_arguments as arguments
from django_runstore.services import door
from django_runstore.services.core import StoreCore
from django_runstore.services.twin import twin


class AttemptReading(StoreCore):
    """Ground of ``AttemptStore``: whoever looks on may read."""

    service = AttemptStoreError.service
    _failed: ClassVar[str] = "attempt persistence failed"

    @door.operation(tallies.uncounted)
    def get(self, attempt_id: AttemptId | AttemptRecord) -> AttemptRecord | None:
        """
        Read one attempt, or ``None`` where there is none. Unfenced: any observer may call.

        Args:
            attempt_id: An ``AttemptId``, or a whole ``AttemptRecord`` in its place.

        Raises:
            InvalidAttempt: the id breaks the contract; nothing was read.
            AttemptDecodeFailed: the row is none that this store could have written.
            AttemptPersistenceFailed: the database failed.
        """
        operation = "get"
        key = arguments.attempt_id(operation, attempt_id)
        note_attempt(key)
        return self._typed(operation, lambda: self._read(operation, key))

    @door.operation(tallies.uncounted)
    def latest(self, run_id: str, step_key_digest: str) -> AttemptRecord | None:
        """
        Read the attempt of a step with the highest number, or ``None``. Unfenced, as ``get``.

        Callers number attempts; this tells an owner what the ones before it have come to.

        Raises:
            InvalidAttempt: the id breaks the contract; nothing was read.
            AttemptDecodeFailed: the row is none that this store could have written.
            AttemptPersistenceFailed: the database failed.
        """
        operation = "latest"
        step = arguments.identifier(operation, (run_id, step_key_digest, 0))
        door.note(run_id=step.run_id, step_key_digest=step.step_key_digest)

        def read() -> AttemptRecord | None:
            attempts = Attempt.objects.using(self.using).filter(**step_columns(step))
            columns = attempts.order_by("-attempt").values(*COLUMNS).first()
            return None if columns is None else decode_attempt(operation, columns)

        return self._typed(operation, read)

    aget = twin(get)
    alatest = twin(latest)

    def _row(self, key: AttemptKey) -> Any:  # noqa: ANN401 - an unguarded queryset
        return Attempt.unguarded.using(self.using).filter(**key_columns(key))

    def _read(self, operation: str, key: AttemptKey) -> AttemptRecord | None:
        columns = self._row(key).values(*COLUMNS).first()
        return None if columns is None else decode_attempt(operation, columns)

    def _kind_of_failure(self, code: FailureCode) -> type[StoreError]:
        return AttemptConstraint if code == "constraint" else AttemptPersistenceFailed

    def _failure_detail(self, kind: type[StoreError], code: FailureCode) -> dict[str, DetailValue]:
        return {**super()._failure_detail(kind, code), "reason": code}


def note_attempt(key: AttemptKey, owner: OwnerId | None = None) -> None:
    """Tell the span which attempt it is about, and who writes it."""
    who = {} if owner is None else {"owner_host_id": owner.host_id}
    door.note(run_id=key.run_id, step_key_digest=key.step_key_digest, attempt=key.attempt, **who)
