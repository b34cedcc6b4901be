"""
The durations every lease rests on, and the reasoning that ties them together.

A peer may take a run when its stamp is older than *stale after* by the peer's own
clock, which may run ahead of the owner's by the *skew allowance*. So an owner must have
acted by stale after - skew allowance; one more interval is kept for a single bounded
reconfirmation. What remains is the *write tolerance*: how long an owner may go on
without a confirmed heartbeat. It is derived here and restated nowhere.

Spec: run-store 1.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

HEARTBEAT_INTERVAL_MS: Final = 1_000
"""Period of the supervision pulse, in milliseconds."""

STALE_AFTER_MS: Final = 30_000
"""A stamp must be strictly older than this, in milliseconds, before a run may be taken."""

SKEW_ALLOWANCE_MS: Final = 10_000
"""Clock offset budgeted between hosts, in milliseconds; also how far a reading may lead."""

PRIORITY_STEP_MS: Final = 60_000
"""
How much longer waiting one step of priority is worth, in milliseconds.

A run of priority 1 is claimed before one of priority 0 that has been due up to a minute longer,
so that a stream of important runs holds the others up for a while and not for ever. Part of a
generated column: another value needs a migration.
"""

MINIMUM_INTERVALS_TO_STALE: Final = 3
"""How many pulses have to be missed, at the least, before a run counts as stale."""


@dataclass(frozen=True, slots=True)
class LeaseDurations:
    """The three durations a deployment may choose; the fourth follows from them."""

    heartbeat_interval_ms: int = HEARTBEAT_INTERVAL_MS
    stale_after_ms: int = STALE_AFTER_MS
    skew_allowance_ms: int = SKEW_ALLOWANCE_MS

    @property
    def write_tolerance_ms(self) -> int:
        """How long an owner may work on without a confirmed heartbeat, in milliseconds."""
        return self.stale_after_ms - self.skew_allowance_ms - self.heartbeat_interval_ms

    def is_stale(self, stamp_ms: int, now_ms: int) -> bool:
        """Tell whether ``stamp_ms`` is strictly older than stale-after; equal is still fresh."""
        return stamp_ms < now_ms - self.stale_after_ms

    def complaints(self) -> tuple[str, ...]:
        """
        List the combinations that make the reasoning of this module false.

        Returns:
            One sentence per broken rule, naming the values and what to change; empty when
            the durations can be used.
        """
        named = {
            "HEARTBEAT_INTERVAL_MS": self.heartbeat_interval_ms,
            "STALE_AFTER_MS": self.stale_after_ms,
            "SKEW_ALLOWANCE_MS": self.skew_allowance_ms,
        }
        not_positive = tuple(
            f"{name} must be greater than 0, not {value}."
            for name, value in named.items()
            if value <= 0
        )
        if not_positive:
            # The rules below compare the three; with a zero among them they would only
            # repeat the same complaint in other words.
            return not_positive
        return tuple(self._broken_relations())

    def _broken_relations(self) -> list[str]:
        broken: list[str] = []
        if self.stale_after_ms < MINIMUM_INTERVALS_TO_STALE * self.heartbeat_interval_ms:
            broken.append(
                f"STALE_AFTER_MS ({self.stale_after_ms}) must be at least "
                f"{MINIMUM_INTERVALS_TO_STALE} x HEARTBEAT_INTERVAL_MS "
                f"({self.heartbeat_interval_ms}): otherwise one late pulse loses the run."
            )
        if self.skew_allowance_ms <= self.heartbeat_interval_ms:
            broken.append(
                f"SKEW_ALLOWANCE_MS ({self.skew_allowance_ms}) must be greater than "
                f"HEARTBEAT_INTERVAL_MS ({self.heartbeat_interval_ms}): otherwise a reading "
                f"that is one pulse old may be refused as coming from the future."
            )
        if self.write_tolerance_ms <= self.heartbeat_interval_ms:
            broken.append(
                f"STALE_AFTER_MS - SKEW_ALLOWANCE_MS - HEARTBEAT_INTERVAL_MS "
                f"({self.write_tolerance_ms}) must be greater than HEARTBEAT_INTERVAL_MS "
                f"({self.heartbeat_interval_ms}): otherwise an owner has to stop before its "
                f"next pulse. Raise STALE_AFTER_MS or lower the others."
            )
        return broken


WRITE_TOLERANCE_MS: Final = LeaseDurations().write_tolerance_ms
"""The default write tolerance, in milliseconds: 19 seconds, derived and never restated."""
