"""Async twins of the operations, made rather than written by hand."""

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.db import connections, transaction

from django_runstore.services.door import Entry, Service

S = TypeVar("S", bound=Service)
P = ParamSpec("P")
R = TypeVar("R")


def twin(
    method: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """
    Make the ``a``-prefixed twin of an operation.

    The twin opens a transaction of its own in Django's database thread. Inside an atomic
    block it is refused with ``RuntimeError``: it could run on another connection than the
    block, and then neither commit nor roll back with it.

    Cancelled, it ends at once. A call that its thread has begun is finished there all the
    same and may be committed; one that was still waiting for the thread is not made.
    """
    entry = Entry.of(method)

    async def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        # The span opens and closes here and not in the thread, which outlives a cancelled
        # task: whoever awaited the call sees it end when the waiting ends.
        with entry.open(self, args, kwargs) as passage:

            def outside_atomic() -> R:
                if joins_a_block(self.using):
                    _refuse(f"{type(self).__name__}.{call.__name__}")
                answer: R = passage.perform(lambda: entry.method(self, *args, **kwargs))
                return answer

            return passage.answers(await sync_to_async(outside_atomic, thread_sensitive=True)())

    call.__module__ = method.__module__
    call.__name__ = f"a{method.__name__}"
    call.__qualname__ = ".".join([*method.__qualname__.split(".")[:-1], call.__name__])
    call.__wrapped__ = method  # type: ignore[attr-defined]  # inspect.signature follows it
    call.__doc__ = f"Async twin of ``{method.__name__}``: same arguments, answers and errors."
    return call


def joins_a_block(using: str) -> bool:
    """Tell whether an atomic block is open; that of a ``TestCase`` counts as none."""
    if not connections[using].in_atomic_block:
        return False
    try:
        # Django's own rule for durable blocks, with its exemption for TestCase. Without a
        # savepoint, which would be a statement, and fail untyped where the database is away.
        with transaction.atomic(using=using, savepoint=False, durable=True):
            pass
    except RuntimeError:
        return True
    return False


def _refuse(operation: str) -> NoReturn:
    message = (
        f"{operation} was called inside an atomic block, which it could not join; "
        f"call it outside, or the operation without the prefix inside"
    )
    raise RuntimeError(message)
