"""Supervisors describe themselves, so that people see which are there. Never evidence."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django_runstore.clocks import Clock, clock_for
from django_runstore.db.boundary import write
from django_runstore.models import SupervisorProcess
from django_runstore.owners import OwnerId

FORGOTTEN_AFTER_MS: Final = 24 * 60 * 60 * 1000
"""How long the row of a supervisor that was killed stays for people to see."""

# Nobody waits for these writes, so a busy database is left alone soon.
_ATTEMPTS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorDescription:
    """
    What a supervisor says about itself.

    Attributes:
        version: Of this package.
        queues: The only ones it serves; None for all.
        capacity: How many runs it executes at once.
    """

    version: str
    queues: Sequence[str] | None
    capacity: int


class SupervisorRegister:
    """
    The rows of ``SupervisorProcess``.

    Each operation raises whatever the database raises; nothing depends on its success.

    Args:
        using: Database alias.
        clock: By default the store's.
    """

    def __init__(self, using: str = "default", clock: Clock | None = None) -> None:
        self._using = using
        self._clock = clock

    def enter(self, owner: OwnerId, description: SupervisorDescription) -> None:
        """Write the row of ``owner``, and drop those silent for ``FORGOTTEN_AFTER_MS``."""
        now_ms = self._now_ms()
        queues = description.queues
        columns = {
            "started_at_ms": now_ms,
            "pulsed_at_ms": now_ms,
            "version": description.version,
            "queues_json": json.dumps(None if queues is None else list(queues)),
            "capacity": description.capacity,
        }

        def body() -> None:
            rows = SupervisorProcess.unguarded.using(self._using)
            rows.filter(pulsed_at_ms__lt=now_ms - FORGOTTEN_AFTER_MS).delete()
            self._rows_of(owner).delete()
            rows.create(host_id=owner.host_id, pid=owner.pid, nonce=owner.nonce, **columns)

        write(self._using, body, attempts=_ATTEMPTS)

    def touch(
        self, owner: OwnerId, *, is_draining: bool, hears_notices: bool | None = None
    ) -> bool:
        """
        Say that ``owner`` is there. False when its row is not, so that it enters again.

        Args:
            hears_notices: Whether notices of the database arrive; None where there are none.
        """
        now_ms = self._now_ms()

        def body() -> bool:
            columns = {
                "pulsed_at_ms": now_ms,
                "is_draining": is_draining,
                "hears_notices": hears_notices,
            }
            return bool(self._rows_of(owner).update(**columns))

        return write(self._using, body, attempts=_ATTEMPTS)

    def leave(self, owner: OwnerId) -> None:
        """Drop the row of ``owner``."""
        write(self._using, lambda: self._rows_of(owner).delete(), attempts=_ATTEMPTS)

    def _rows_of(self, owner: OwnerId) -> Any:  # noqa: ANN401 - an unguarded queryset
        return SupervisorProcess.unguarded.using(self._using).filter(
            host_id=owner.host_id, pid=owner.pid, nonce=owner.nonce
        )

    def _now_ms(self) -> int:
        clock = clock_for(self._using) if self._clock is None else self._clock
        return int(clock.now_ms())
