"""What the runner did, in a form that a test can compare."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from django_runstore.states import RunStatus
    from django_runstore.supervision.sweep_report import SweptRun

EndedAs: TypeAlias = Literal["completed", "failed", "interrupted", "died"]


@dataclass(frozen=True, slots=True)
class Execution:
    """
    One execution of one run.

    Attributes:
        fence: The grant it ran under.
        ended: How the handler ended. ``died``: by ``crash_after``, so nothing was settled.
        status: What that made of the run; None when it was somebody else's by then, when
            the process died, or while the outcome waits for a database that is away.
        reason: Why it was interrupted, such as ``cancelled`` or ``fence_lost``.
        error: What the handler raised, whatever it was; not compared.
    """

    run_id: str
    handler: str
    fence: int
    ended: EndedAs
    status: RunStatus | None
    reason: str | None = None
    error: BaseException | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RunnerReport:
    """
    What one call did.

    Attributes:
        executions: In the order in which they began.
        swept: The runs of dead owners that were looked at, with the evidence as reason.
        settled_late: What became of outcomes that an earlier call had to keep, by run id.
        advanced_ms: By how much the clock was advanced.
        is_cut_off: Whether the database could not be reached, so that this call ended
            early. As with a supervisor, nothing is lost: call again.
    """

    executions: tuple[Execution, ...] = ()
    swept: tuple[SweptRun, ...] = ()
    settled_late: tuple[tuple[str, RunStatus | None], ...] = ()
    advanced_ms: float = 0
    is_cut_off: bool = False

    def of(self, run_id: str) -> tuple[Execution, ...]:
        """Give the executions of one run."""
        return tuple(each for each in self.executions if each.run_id == run_id)
