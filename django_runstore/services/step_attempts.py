"""The attempts of a handler's steps, dated by the store's own clock."""

from typing import Any

from django_runstore.attempts import AttemptId, AttemptRecord, FinishAttempt
from django_runstore.outcomes import FinishOutcome, PutOutcome
from django_runstore.owners import OwnerId
from django_runstore.services.attempt_store import AttemptStore
from django_runstore.unset import UNSET


class StepAttempts(AttemptStore):
    """
    An ``AttemptStore`` for callers without a clock.

    Reading a database's clock can be a query, which fails as the rest of them does: as
    ``AttemptPersistenceFailed``.
    """

    def begin_attempt(
        self,
        attempt: AttemptId,
        state: str,
        owner: OwnerId,
        *,
        fence: int,
        step_name: str,
        meta: Any,  # noqa: ANN401 - any JSON value
    ) -> PutOutcome:
        """Put a new attempt that starts now."""
        record = AttemptRecord(
            attempt.run_id,
            attempt.step_key_digest,
            attempt.attempt,
            state,
            self._now("put"),
            meta=meta,
            step_name=step_name,
        )
        return self.put(record, owner, fence=fence)

    def end_attempt(
        self,
        attempt: AttemptId,
        state: str,
        owner: OwnerId,
        *,
        fence: int,
        outcome: Any = UNSET,  # noqa: ANN401 - any JSON value
        error: Any = UNSET,  # noqa: ANN401 - any JSON value
    ) -> FinishOutcome:
        """Finish an attempt now."""
        record = FinishAttempt(
            attempt.run_id,
            attempt.step_key_digest,
            attempt.attempt,
            state,
            self._now("finish"),
            error=error,
            outcome=outcome,
        )
        return self.finish(record, owner, fence=fence)
