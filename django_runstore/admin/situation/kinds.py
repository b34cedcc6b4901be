"""The answers to "what is it doing, or why is it not running?"."""

from dataclasses import dataclass
from enum import StrEnum


class SituationKind(StrEnum):
    """What a run is doing, for programs."""

    ENDED = "ended"
    ADVANCING = "advancing"
    NOT_ADVANCING = "not_advancing"
    STALE_IN_DOUBT = "stale_in_doubt"
    STALE_AND_GONE = "stale_and_gone"
    BEING_TAKEN_OVER = "being_taken_over"
    CLAIMED = "claimed"
    CLAIM_IN_DOUBT = "claim_in_doubt"
    CLAIM_ABANDONED = "claim_abandoned"
    SLEEPING = "sleeping"
    WAITING = "waiting"
    PARKED = "parked"
    NOT_YET_DUE = "not_yet_due"
    HOST_OF_ITS_OWN = "host_of_its_own"
    HANDLER_MISSING = "handler_missing"
    STATE_TOO_NEW = "state_too_new"
    CONCURRENCY_LIMIT = "concurrency_limit"
    WAITING_FOR_WORKER = "waiting_for_worker"


@dataclass(frozen=True, slots=True)
class Situation:
    """
    The answer to "what is it doing, or why is it not running?".

    Attributes:
        sentences: Ready to be shown; still to be escaped.
        needs_attention: Whether it will not go on by itself, or has taken too long.
    """

    kind: SituationKind
    sentences: tuple[str, ...]
    needs_attention: bool = False

    def __str__(self) -> str:
        """Say all of it."""
        return " ".join(self.sentences)
