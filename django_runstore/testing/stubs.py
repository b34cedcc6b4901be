"""A run store that stores nothing, for tests of code that is only about the answers."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NoReturn

from django_runstore.errors import RunPersistenceFailed
from django_runstore.outcomes import ClaimLost, NotFound
from django_runstore.services import RunStore
from django_runstore.snapshots import OwnedTransition

_UNAVAILABLE: Final = "no run store in this environment"


class StubRunStore(RunStore):
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

    def __init__(self, **overrides: Callable[..., Any]) -> None:
        super().__init__()
        unknown = sorted(set(overrides) - set(_DEFAULTS))
        if unknown:
            raise TypeError(f"RunStore has no operation {', '.join(unknown)}")
        for operation, answer in {**_DEFAULTS, **overrides}.items():
            # On the instance, in front of the real operations of the class.
            setattr(self, operation, answer)
            setattr(self, f"a{operation}", _awaitable(answer))


def _fails(operation: str) -> Callable[..., NoReturn]:
    def unavailable(*_: object, **__: object) -> NoReturn:
        raise RunPersistenceFailed(operation, _UNAVAILABLE)

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


_DEFAULTS: Final[Mapping[str, Callable[..., Any]]] = {
    **{
        operation: _fails(operation)
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
