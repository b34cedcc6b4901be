"""What an action on runs is: its name, who may do it, what it shows first, and what it answers."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, Final

from django.db import DatabaseError, transaction
from django.utils.functional import Promise
from django.utils.translation import gettext as _

from django_runstore.errors import RunStoreError
from django_runstore.models import Run
from django_runstore.services import RunStore
from django_runstore.states import is_terminal_run_status

Words = str | Promise

MOST_RUNS: Final = 200
"""Runs of one action; more than a person means to act on with one click."""

COLUMNS: Final = (
    "run_id",
    "status",
    "lineage_id",
    "round_ordinal",
    "created_at_ms",
    "finished_at_ms",
    "cancel_requested_at_ms",
    "claim_host_id",
    "claim_pid",
    "claim_nonce",
    "claimed_at_ms",
    "fence",
    "available_at_ms",
    "waiting_reason",
    "waiting_wake_at_ms",
)
"""What actions judge a run by; nothing wide."""


@dataclass(frozen=True, slots=True)
class Member:
    """A run on the confirmation page, and what there is to know about it."""

    run: Run
    note: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """
    Runs that the action treats alike.

    Attributes:
        is_affected: Whether the action will do something to them.
        has_more: Whether there are more than ``members``.
    """

    heading: str
    members: Sequence[Member]
    is_affected: bool = False
    has_more: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """
    What became of the action for one run.

    Attributes:
        words: The same for all runs with the same outcome.
        is_done: Whether something was changed now.
        detail: What differs from run to run, such as a time.
    """

    run_id: str
    words: str
    is_done: bool
    detail: str = ""

    def __str__(self) -> str:
        """Say it for one run alone."""
        return f"{self.words} ({self.detail})" if self.detail else self.words


@dataclass(frozen=True, slots=True)
class Acting:
    """
    The circumstances of an action.

    Attributes:
        record: Writes into a run's history who did what, and what the answer was.
        shown_at_ms: When the confirmation page was made, as far as the form says so; for
            words only.
    """

    store: RunStore
    record: Callable[[Run, str], object]
    shown_at_ms: int | None = None

    def settled_meanwhile(self, run: Run) -> bool:
        """
        Tell whether a run that has ended did so after the confirmation page was shown.

        Args:
            run: As it was read before the action; it may have ended only after that.
        """
        if not is_terminal_run_status(run.status):
            return True
        shown_at_ms, finished_at_ms = self.shown_at_ms, run.finished_at_ms
        return (
            shown_at_ms is not None and finished_at_ms is not None and finished_at_ms >= shown_at_ms
        )


class RunAction(ABC):
    """
    One thing that people can have done to runs from the admin.

    A file of its own per action; ``registry.ACTIONS`` lists them. Lists, pages and
    confirmations offer whatever is there.
    """

    name: ClassVar[str]
    """In addresses and menus; a slug."""

    permission: ClassVar[str]
    """The codename that it takes, beside the permission to view runs."""

    label: ClassVar[Words]
    """On the button of one run."""

    list_label: ClassVar[Words]
    """In the menu of the list."""

    confirm_label: ClassVar[Words]
    """On the button that does it."""

    meaning: ClassVar[Sequence[Words]]
    """What it does and what it does not do, one paragraph each."""

    is_drastic: ClassVar[bool] = False
    """Whether the button warns by its looks."""

    @abstractmethod
    def is_offered(self, run: Run, using: str) -> bool:
        """Tell whether a button for it belongs on the page of ``run``."""

    @abstractmethod
    def preview(self, runs: Sequence[Run], store: RunStore) -> Sequence[Group]:
        """Say of every run what would become of it; writes nothing."""

    @abstractmethod
    def perform(self, runs: Sequence[Run], acting: Acting) -> Iterator[Answer]:
        """Do it, one run after the other, and yield what became of each."""


def carry_out(run: Run, acting: Acting, label: Words, operation: Callable[[], Answer]) -> Answer:
    """
    Perform ``operation`` and enter its answer into the history of ``run``, both or neither.

    A failure of one run is an answer, so that it keeps nothing from the others.
    """
    try:
        with transaction.atomic(using=acting.store.using):
            answer = operation()
            acting.record(run, f"{label}: {answer}")
    except RunStoreError as error:
        return failed(run, acting, label, error)
    return answer


def failed(run: Run, acting: Acting, label: Words, error: RunStoreError) -> Answer:
    """
    Say that a run could not be dealt with, and that somebody tried; nothing else is written.

    The code is all of the error that is safe to repeat.
    """
    answer = Answer(run.run_id, _("Failed (%(code)s)") % {"code": error.code}, is_done=False)
    # Where the database itself is away there is no history to write to.
    with suppress(DatabaseError):
        acting.record(run, f"{label}: {answer}")
    return answer


def gone(run_id: str) -> Answer:
    """Say that a run is no longer there."""
    return Answer(run_id, _("Not there any more"), is_done=False)
