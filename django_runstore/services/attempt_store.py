"""``AttemptStore``: what every step of a run did, written by the run's owner. Spec: run-store 5."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.db.models import F, Value
from django.db.models.functions import Coalesce, Greatest

from django_runstore.arbiters import LeaseArbiter
from django_runstore.attempt_rows import (
    JSON_VALUES,
    json_columns,
    key_columns,
    value_columns,
)
from django_runstore.attempts import (
    AttemptId,
    AttemptKey,
    AttemptPatch,
    AttemptRecord,
    FinishAttempt,
    same_content,
)
from django_runstore.clocks import Clock
from django_runstore.errors import (
    AttemptUnknown,
)
from django_runstore.metrics import tallies
from django_runstore.models import Attempt
from django_runstore.outcomes import (
    AttemptHeartbeatOutcome,
    Conflict,
    ExistingSame,
    FenceLost,
    Finished,
    FinishOutcome,
    Inserted,
    NotFound,
    Patched,
    PatchOutcome,
    PutOutcome,
    RunMissing,
    StateChanged,
    Updated,
    Upserted,
)
from django_runstore.owners import OwnerId
from django_runstore.services import attempt_arguments as arguments
from django_runstore.services import door
from django_runstore.services.attempt_reading import AttemptReading, note_attempt
from django_runstore.services.twin import twin
from django_runstore.unset import UNSET

_DISAPPEARED: Final = "attempt disappeared during put"


class AttemptStore(AttemptReading):
    """
    The attempts at the steps of runs. Spec: run-store 5.

    Every write is made under the lock of the run's row, and only while that row is running
    under the given owner (and ``fence``): a displaced owner changes nothing. Write what
    there is to say about a run before settling or suspending it; afterwards every write is
    ``FenceLost``. Nothing here is redacted: checkpoints and outcomes are stored as given.

    Pass ``fence=``, the grant number from ``Activated`` or ``ClaimedRun``: the owner triple
    alone cannot tell two executions of one run by the same process apart.

    Args:
        using: Database alias.
        in_progress_states: A list or tuple of 1 to 256 state names. An attempt in any other
            state is finished, and only ``patch()`` still changes it.
        max_checkpoint_bytes: 1 to 16,777,216; how many bytes of JSON a checkpoint may cost.
        put_mode: What ``put()`` does to an attempt that is in progress: ``insert`` leaves it,
            ``upsert`` replaces it.
        clock, arbiter: As for ``RunStore``. Attempts are dated by their callers and fenced by
            the run's row, whoever decides about its lease.

    Raises:
        InvalidAttempt: an option breaks these rules.

    Every operation has an async twin with an ``a`` prefix, to be called outside atomic blocks.

    Example::

        attempts = AttemptStore()
        attempt = AttemptRecord("report-2026-10", digest, 0, "running", now_ms)
        match attempts.put(attempt, me, fence=fence):
            case Inserted() | ExistingSame():
                ...  # do the work, then finish()
            case lost:
                print(lost.code)
    """

    def __init__(
        self,
        using: str = "default",
        in_progress_states: Sequence[str] = ("running",),
        max_checkpoint_bytes: int = 1_048_576,
        put_mode: str = "insert",
        clock: Clock | None = None,
        arbiter: LeaseArbiter | None = None,
    ) -> None:
        super().__init__(using, clock, arbiter)
        self._options = arguments.options(
            "__init__", in_progress_states, max_checkpoint_bytes, put_mode
        )

    @door.operation(tallies.uncounted)
    def put(
        self, attempt: AttemptRecord, owner: OwnerId, *, fence: int | None = None
    ) -> PutOutcome:
        """
        Store an attempt as a whole: a new one, or in ``upsert`` mode one that is in progress.

        Any state and any times are accepted for a new attempt. The content of two attempts
        is the same when states, times and names are, and values mean the same: the order of
        an object's keys does not matter, and absent is not null.

        Args:
            attempt: Exactly an ``AttemptRecord``.
            fence: The grant this ownership began with; checked too when given.

        Returns:
            ``Inserted``: new and stored.
            ``Upserted``: it was in progress and is replaced, absent values included.
            ``ExistingSame``: stored before with the same content; nothing was written.
            ``Conflict``: stored with other content, which stands.
            ``FenceLost``: the run is not running under this owner (and grant); stop.
            ``RunMissing``: there is no such run.

        Raises:
            InvalidAttempt: an argument breaks the contract; nothing was read.
            AttemptDecodeFailed: the attempt stored under this id cannot be read.
            AttemptPersistenceFailed: the database failed.
        """
        operation = "put"
        holder = arguments.owner(operation, owner)
        given = arguments.record(operation, attempt, self._options.max_checkpoint_bytes)
        columns = arguments.storable(operation, value_columns(given))
        grant = arguments.fence(operation, fence)
        note_attempt(given, holder)

        def body() -> PutOutcome:
            run = self._lock(given.run_id)
            if run is None:
                return RunMissing()
            if not run.is_owned_by(holder, grant):
                return FenceLost()
            row = self._row(given)
            state = row.values_list("state", flat=True).first()
            if state is None:
                Attempt.unguarded.using(self.using).create(
                    **key_columns(given), step_key_digest=given.step_key_digest, **columns
                )
                return Inserted()
            if self._options.put_mode == "upsert" and state in self._options.in_progress_states:
                if row.update(**columns) == 1:
                    return Upserted()
                raise AttemptUnknown(operation, _DISAPPEARED)
            stored = self._read(operation, given)
            if stored is None:
                raise AttemptUnknown(operation, _DISAPPEARED)
            return ExistingSame() if same_content(given, stored) else Conflict()

        return self._write(operation, body)

    @door.operation(tallies.uncounted)
    def heartbeat(
        self,
        run_id: str,
        step_key_digest: str,
        attempt: int,
        owner: OwnerId,
        now_ms: int,
        checkpoint: Any = UNSET,  # noqa: ANN401 - any JSON value
        *,
        fence: int | None = None,
    ) -> AttemptHeartbeatOutcome:
        """
        Say that the attempt goes on, with its checkpoint when there is one.

        Args:
            now_ms: Milliseconds since the Unix epoch, bound to no clock. The stamp never
                goes back: of it and what is stored the later one stands.
            checkpoint: Replaces the stored one; ``UNSET`` keeps it, ``None`` is a null.
            fence: The grant this ownership began with; checked too when given.

        Returns:
            ``Updated``: done.
            ``NotFound``: there is no such attempt.
            ``FenceLost``: the run is not running under this owner (and grant); stop.
            ``StateChanged``: the attempt is not in progress; its stamp is as it was.
        """
        operation = "heartbeat"
        holder = arguments.owner(operation, owner)
        key = arguments.identifier(operation, (run_id, step_key_digest, attempt))
        reading = arguments.now_ms(operation, now_ms)
        value = arguments.checkpoint(operation, checkpoint, self._options.max_checkpoint_bytes)
        columns = arguments.storable(operation, json_columns({"checkpoint": value}))
        grant = arguments.fence(operation, fence)
        note_attempt(key, holder)
        stamp = Greatest(Coalesce(F("heartbeat_at_ms"), Value(reading)), Value(reading))
        changes = {**columns, "heartbeat_at_ms": stamp}
        return self._write(
            operation, lambda: self._change_in_progress(key, holder, grant, changes) or Updated()
        )

    @door.operation(tallies.uncounted)
    def finish(
        self, record: FinishAttempt, owner: OwnerId, *, fence: int | None = None
    ) -> FinishOutcome:
        """
        End an attempt that is in progress: once, and for good.

        Args:
            record: Exactly a ``FinishAttempt``; error, outcome and meta are kept where absent.
            fence: The grant this ownership began with; checked too when given.

        Returns:
            ``Finished``: done.
            ``NotFound``: there is no such attempt.
            ``FenceLost``: the run is not running under this owner (and grant); stop.
            ``StateChanged``: it had ended before, and stays as it ended.
        """
        operation = "finish"
        holder = arguments.owner(operation, owner)
        given = arguments.finish(operation, record, self._options.in_progress_states)
        grant = arguments.fence(operation, fence)
        note_attempt(given, holder)
        changes = {
            "state": given.state,
            "finished_at_ms": given.finished_at_ms,
            **json_columns({name: getattr(given, name) for name in ("error", "outcome", "meta")}),
        }
        return self._write(
            operation,
            lambda: self._change_in_progress(given, holder, grant, changes) or Finished(),
        )

    @door.operation(tallies.uncounted)
    def patch(
        self,
        attempt_id: AttemptId | AttemptRecord,
        patch: AttemptPatch,
        owner: OwnerId,
        *,
        fence: int | None = None,
    ) -> PatchOutcome:
        """
        Replace values of an attempt, in progress or finished; never its state or its times.

        Args:
            attempt_id: An ``AttemptId``, or a whole ``AttemptRecord`` in its place.
            patch: Exactly an ``AttemptPatch``; an empty one only asks whether it would be made.
            fence: The grant this ownership began with; checked too when given.

        Returns:
            ``Patched``: done.
            ``NotFound``: there is no such attempt.
            ``FenceLost``: the run is not running under this owner (and grant); stop.
        """
        operation = "patch"
        holder = arguments.owner(operation, owner)
        key = arguments.attempt_id(operation, attempt_id)
        given = arguments.patch(operation, patch, self._options.max_checkpoint_bytes)
        grant = arguments.fence(operation, fence)
        values = json_columns({name: getattr(given, name) for name in JSON_VALUES})
        changes = arguments.storable(operation, values)
        note_attempt(key, holder)

        def body() -> PatchOutcome:
            run = self._lock(key.run_id)
            row = self._row(key)
            if not row.exists():
                return NotFound()
            if run is None or not run.is_owned_by(holder, grant):
                return FenceLost()
            if changes and row.update(**changes) != 1:
                return NotFound()
            return Patched()

        return self._write(operation, body)

    aput = twin(put)
    aheartbeat = twin(heartbeat)
    afinish = twin(finish)
    apatch = twin(patch)

    def _change_in_progress(
        self, key: AttemptKey, owner: OwnerId, fence: int | None, changes: Mapping[str, Any]
    ) -> NotFound | FenceLost | StateChanged | None:
        """Change an attempt in progress under the run's lock, or name what is in the way."""
        run = self._lock(key.run_id)
        row = self._row(key)
        if run is not None and run.is_owned_by(owner, fence):
            if row.filter(state__in=self._options.in_progress_states).update(**changes):
                return None
            return StateChanged() if row.exists() else NotFound()
        return FenceLost() if row.exists() else NotFound()
