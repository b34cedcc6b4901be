"""Faults that a test brings about: a death, a freeze, a database that is away."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import connections

from django_runstore.testing.moments import Moment, happening
from django_runstore.testing.runner import Runner
from django_runstore.testing.unreachable_database import unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django_runstore.testing.execution_in_process import ExecutionInProcess
    from django_runstore.testing.reports import RunnerReport


@contextmanager
def crash_after(
    step: str | None = None, *, before: str | None = None, unrecorded: str | None = None
) -> Iterator[None]:
    """
    Inside the block, kill the process of the first handler that comes to this moment.

    As by SIGKILL: nothing is settled, and nothing that the handler's ``finally`` blocks do
    gets into a database. The run stays with its dead owner until the lease has expired and
    the next ``run_until_idle()`` takes it over, on evidence.

    Args:
        step: Right after this step was recorded; it is not done again.
        before: Right before this step.
        unrecorded: After the function of this step has returned and before that is
            recorded. The step is done again: the moment for which it has to be idempotent.

    Raises:
        TypeError: not exactly one moment is given.
        AssertionError: no handler came to it.

    Example::

        with crash_after("charge"):
            runner.run_until_idle()
        runner.run_until_idle(advance_clock=True)
        gateway.charge.assert_called_once()
    """
    if step is before is unrecorded is None:
        raise TypeError("crash_after() needs a step, before=... or unrecorded=...")
    moment = Moment.given(after=step, before=before, unrecorded=unrecorded)
    with happening(moment, lambda execution: execution.die()):
        yield


@dataclass(slots=True)
class FrozenOwner:
    """
    What happened to an owner that was frozen.

    Attributes:
        run_id: The run it was executing; empty before it froze.
        fence: The grant that it believes to have.
        meanwhile: What the other runner did; None where the test took care of that.
    """

    run_id: str = ""
    fence: int = 0
    meanwhile: RunnerReport | None = None


@contextmanager
def freeze_owner(
    *,
    after: str | None = None,
    before: str | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> Iterator[FrozenOwner]:
    """
    Inside the block, freeze the first owner whose handler comes to this moment.

    As by a network cut or a SIGSTOP that outlasts the lease: the owner neither beats nor
    writes, somebody else takes over on evidence, and then the owner goes on as if nothing
    had been. Its next write answers ``FenceLost``, so that its handler is interrupted.

    Args:
        after, before: Right after this step was recorded, or right before it. By default
            before the first line of the handler.
        meanwhile: What happens while it is frozen. By default another ``Runner`` turns the
            ``FakeClock`` past the lease, takes over, and works until it is idle.

    Raises:
        TypeError: two moments are given; or by default, there is no ``FakeClock``.
        AssertionError: no handler came to the moment.

    Example::

        with freeze_owner(after="charge") as frozen:
            report = runner.run_until_idle()
        assert report.executions[0].reason == "fence_lost"
        assert frozen.meanwhile.executions[0].status == "completed"
    """
    frozen = FrozenOwner()

    def freeze(execution: ExecutionInProcess) -> None:
        frozen.run_id, frozen.fence = execution.run.run_id, execution.fence
        if meanwhile is None:
            frozen.meanwhile = Runner(execution.using).run_until_idle(advance_clock=True)
        else:
            meanwhile()

    with happening(Moment.given(after=after, before=before), freeze):
        yield frozen


@contextmanager
def partition(
    using: str | None = None, *, after: str | None = None, before: str | None = None
) -> Iterator[None]:
    """
    Inside the block, keep this thread from the database; afterwards all is well again.

    Services fail with the typed errors that a lost connection gives them, a handler is
    interrupted, and its outcome is settled once the database is back. A transaction that is
    open outside the block, such as that of a ``TestCase``, is left as it was.

    Args:
        using: Database alias; all of them by default.
        after, before: Not at once, but right after this step was recorded, or right before
            it; from then on until the block ends.

    Raises:
        TypeError: two moments are given.
        AssertionError: no handler came to the moment.
    """
    aliases = list(connections) if using is None else [using]
    with ExitStack() as cuts:
        if after is before is None:
            cuts.enter_context(unreachable(aliases))
            yield
        else:
            moment = Moment.given(after=after, before=before)
            with happening(moment, lambda _: cuts.enter_context(unreachable(aliases))):
                yield
