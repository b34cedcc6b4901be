"""
Runs for tests, in every status, each reached by the transitions that lead there.

Needs factory-boy, which is not a dependency of the package: install ``factory-boy``
where the tests are.
"""

# factory-boy says that it is typed, but its declarations are not.
# mypy: disable-error-code="no-untyped-call"

from typing import Any, Final, NoReturn

from factory.declarations import Sequence, Trait
from factory.django import DjangoModelFactory

from django_runstore.models import Run
from django_runstore.outcomes import Activated, Claimed, Transitioned
from django_runstore.owners import OwnerId
from django_runstore.services import RunStore
from django_runstore.snapshots import OwnedTransition
from django_runstore.states import RunStatus

_ENDING: Final = ("result_json", "error_json")


class RunFactory(DjangoModelFactory[Run]):
    """
    Make stored runs: ``RunFactory()``, ``RunFactory(running=True)``, ``create_batch(3)``.

    A status is a trait (``pending``, ``running``, ``suspended``, ``completed``, ``failed``,
    ``cancelled``, and ``claimed`` for a pending run that somebody has reserved) or the
    argument ``status``. Every write is one of ``RunStore``, so fences, ownership facts and
    times are what a real run has. ``raw()`` makes the rows that no service would.

    Args:
        owner: Who claims the run and executes it; by default one of its own, on no real host.
        clock: The store's clock while the run is made. With a ``FakeClock`` that lies behind,
            a running run comes out stale.
        using: Database alias.
        create's own arguments: ``run_id``, ``state_json``, ``handler``, ``queue``, ...
        result_json, error_json: Stored with the ending; the trait ``failed`` brings an error.

    Example::

        stale = RunFactory(running=True, clock=FakeClock(0), owner=somebody)
        RunFactory.create_batch(3, completed=True, result_json="42")
    """

    class Meta:
        model = Run
        skip_postgeneration_save = True

    class Params:
        pending = Trait(status=RunStatus.PENDING)
        claimed = Trait(is_claimed=True)
        running = Trait(status=RunStatus.RUNNING)
        suspended = Trait(status=RunStatus.SUSPENDED)
        completed = Trait(status=RunStatus.COMPLETED)
        failed = Trait(
            status=RunStatus.FAILED,
            error_json='{"type":"RuntimeError","message":"it broke","traceback":[]}',
        )
        cancelled = Trait(status=RunStatus.CANCELLED)

    run_id = Sequence(lambda number: f"run-{number}")
    state_json = "{}"
    status = RunStatus.PENDING
    is_claimed = False
    owner = Sequence(lambda number: OwnerId("factory.invalid", 1_000 + number, "factory"))
    clock = None
    using = "default"

    @classmethod
    def raw(cls, **columns: Any) -> Run:
        """
        Insert a row past every service, for rows that no service would write.

        The columns that have no default get one; nothing else is filled in, and only the
        database's own CHECKs object. ``using`` chooses the database.
        """
        using = columns.pop("using", "default")
        plain: dict[str, Any] = {
            "run_id": f"raw-{cls._next_number()}",
            "status": RunStatus.PENDING,
            "created_at_ms": 0,
            "available_at_ms": 0,
            "state_json": "{}",
        }
        row: Run = Run.unguarded.using(using).create(**(plain | columns))
        return _reread(row.run_id, using)

    @classmethod
    def _next_number(cls) -> int:
        return int(cls._meta.next_sequence())

    @classmethod
    def _build(cls, model_class: type[Run], *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse: what is not stored has gone through no transition."""
        raise NotImplementedError("RunFactory makes stored runs only; call RunFactory() instead.")

    @classmethod
    def _create(cls, model_class: type[Run], *args: Any, **wanted: Any) -> Run:  # noqa: ARG003 - factory-boy's signature
        """Create the run and lead it to the status that was asked for."""
        using, owner = wanted.pop("using"), wanted.pop("owner")
        store = RunStore(using, clock=wanted.pop("clock"))
        status, is_claimed = RunStatus(wanted.pop("status")), wanted.pop("is_claimed")
        ending = {name: wanted.pop(name, None) for name in _ENDING}
        run_id = wanted["run_id"]
        store.create(**wanted)
        if status != RunStatus.PENDING:
            fence = _own(store, run_id, owner)
            if status != RunStatus.RUNNING:
                _leave(store, owner, OwnedTransition(run_id, fence, status, **ending))
        if is_claimed:
            claimed = store.claim(run_id, store.get(run_id), owner)
            assert isinstance(claimed, Claimed), f"a {status} run cannot be claimed"
        return _reread(run_id, using)


def _own(store: RunStore, run_id: str, owner: OwnerId) -> int:
    owned = store.claim_and_own(run_id, store.get(run_id), owner)
    assert isinstance(owned, Activated)
    return owned.fence


def _leave(store: RunStore, owner: OwnerId, transition: OwnedTransition) -> None:
    if transition.to_status == RunStatus.CANCELLED:
        # Nothing is cancelled that nobody asked to stop.
        store.request_cancel(transition.run_id)
    answers = store.transition_many(owner, [transition])
    assert isinstance(answers[transition.run_id], Transitioned)


def _reread(run_id: str, using: str) -> Run:
    return Run.objects.using(using).get(pk=run_id)
