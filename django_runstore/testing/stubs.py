"""Stores that store nothing, for tests of code that is only about the answers."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Final, NoReturn

from django_runstore.errors import AttemptUnknown, RunPersistenceFailed, StoreError
from django_runstore.outcomes import ClaimLost, NotFound
from django_runstore.services import AttemptStore, RunStore
from django_runstore.services.core import StoreCore
from django_runstore.snapshots import OwnedTransition


class _Stub(StoreCore):
    """Answers each operation of the store it stands in for, as it is told to."""

    _defaults: ClassVar[Mapping[str, Callable[..., Any]]]

    def __init__(self, **overrides: Callable[..., Any]) -> None:
        super().__init__()
        unknown = sorted(set(overrides) - set(self._defaults))
        if unknown:
            service = type(self).__name__.removeprefix("Stub")
            raise TypeError(f"{service} has no operation {', '.join(unknown)}")
        for operation, answer in {**self._defaults, **overrides}.items():
            # On the instance, in front of the real operations of the class.
            setattr(self, operation, answer)
            setattr(self, f"a{operation}", _awaitable(answer))


def _fails(kind: type[StoreError], operation: str, message: str) -> Callable[..., NoReturn]:
    def unavailable(*_: object, **__: object) -> NoReturn:
        raise kind(operation, message)

    return unavailable


def _answers(outcome: object) -> Callable[..., object]:
    def answer(*_: object, **__: object) -> object:
        return outcome

    return answer


def _awaitable(answer: Callable[..., Any]) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the operation's own
        return answer(*args, **kwargs)

    return call


def _no_heartbeats(
    _owner: object, runs: Iterable[tuple[str, int]], *_: object, **__: object
) -> dict[str, NotFound]:
    return {run_id: NotFound() for run_id, _fence in runs}


def _no_transitions(_owner: object, transitions: Iterable[OwnedTransition]) -> dict[str, NotFound]:
    return {transition.run_id: NotFound() for transition in transitions}


_RUN_STORE: Final[Mapping[str, Callable[..., Any]]] = {
    **{
        operation: _fails(RunPersistenceFailed, operation, "no run store in this environment")
        for operation in (
            "create",
            "get",
            "lineage",
            "latest_round",
            "request_cancel_lineage",
            "waiting",
            "changes",
            "identity",
            "revision",
            "rotate_identity",
        )
    },
    **{
        operation: _answers(NotFound())
        for operation in (
            "request_cancel",
            "claim",
            "claim_and_own",
            "recover_claim",
            "heartbeat",
            "reconfirm",
            "transition_owned",
            "steal",
            "save_progress",
            "park",
            "wake",
        )
    },
    "activate": _answers(ClaimLost()),
    "abandon_claim": _answers(ClaimLost()),
    "acknowledge_cancel": _answers(outcome=False),
    "claim_many": _answers(()),
    "waiting_runs": _answers(()),
    "heartbeat_many": _no_heartbeats,
    "transition_many": _no_transitions,
}

_ATTEMPT_STORE: Final[Mapping[str, Callable[..., Any]]] = {
    operation: _fails(AttemptUnknown, operation, "the store is unavailable in this environment")
    for operation in ("put", "get", "latest", "heartbeat", "finish", "patch")
}


class StubRunStore(_Stub, RunStore):
    """
    Validates nothing, reads nothing, writes nothing. Spec: run-store 4.4.

    What has to return a run fails as ``persistence_failed``; everything else answers as if
    there were no run. Any operation can be overridden by name; its async twin follows.

    Args:
        overrides: What to call in place of an operation, by the operation's name.

    Raises:
        TypeError: there is no operation of that name.

    Example::

        store = StubRunStore(heartbeat=lambda *args, **kwargs: FenceLost())
        assert store.heartbeat("run", owner) == FenceLost()
    """

    _defaults = _RUN_STORE


class StubAttemptStore(_Stub, AttemptStore):
    """
    Validates nothing, reads nothing, writes nothing. Spec: run-store 5.4.

    Every operation fails as ``unknown``. Any one can be overridden by name; its async twin
    follows.

    Args:
        overrides: What to call in place of an operation, by the operation's name.

    Raises:
        TypeError: there is no operation of that name.

    Example::

        attempts = StubAttemptStore(get=lambda *args, **kwargs: None)
        assert attempts.get(AttemptId("run", "step", 0)) is None
    """

    _defaults = _ATTEMPT_STORE
