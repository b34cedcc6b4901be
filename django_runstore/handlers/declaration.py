"""Check what ``@handler`` is given, when a module is imported and not when a run fails."""

import inspect
from collections.abc import Callable
from typing import Any, Final, Literal, NoReturn, TypeAlias, get_args

from django_runstore.durable import durable_text
from django_runstore.durable.integers import exact_integer, safe_integer
from django_runstore.handlers.errors import InvalidHandler
from django_runstore.handlers.retrying import (
    MOST_ATTEMPTS,
    Backoff,
    ExponentialBackoff,
    RetryPolicy,
    is_backoff,
)
from django_runstore.handlers.upgrading import Upgrade

OnNoProgress: TypeAlias = Literal["flag", "stop"]
ConcurrencyKey: TypeAlias = str | Callable[[Any], str]

_INTEGER_BOUND: Final = 2**31


def admit_text(value: object, field: str, rule: str) -> str:
    """Admit durable text."""
    text = durable_text(value)
    if text is None:
        refuse(rule, field)
    return text


def admit_priority(value: object) -> int:
    """Admit a 32-bit integer."""
    rank = exact_integer(value)
    if rank is None or not -_INTEGER_BOUND <= rank < _INTEGER_BOUND:
        refuse("a priority must be a 32-bit integer", "priority")
    return rank


def admit_positive(value: object, field: str, largest: int = _INTEGER_BOUND - 1) -> int:
    """Admit an integer from 1 on."""
    number = exact_integer(value)
    if number is None or not 1 <= number <= largest:
        refuse(f"{field} must be an integer from 1 to {largest}", field)
    return number


def admit_duration(value: object, field: str) -> int | None:
    """Admit positive milliseconds or nothing."""
    if value is None:
        return None
    duration_ms = safe_integer(value)
    if duration_ms is None or duration_ms < 1:
        refuse(f"{field} must be whole milliseconds above 0, or None", field)
    return duration_ms


def admit_retries(max_attempts: object, backoff: Backoff | None) -> RetryPolicy:
    """Admit how often a run may fail, and how long it waits in between."""
    most = admit_positive(max_attempts, "max_attempts", MOST_ATTEMPTS)
    if backoff is None:
        return RetryPolicy(most, ExponentialBackoff())
    if not is_backoff(backoff):
        refuse(
            "a backoff must be milliseconds, a list of them, or a function of the failures",
            "backoff",
        )
    return RetryPolicy(most, backoff)


def admit_concurrency_key(value: ConcurrencyKey) -> ConcurrencyKey:
    """Admit a function, a text, or the empty text, which stands for no limit."""
    if callable(value) or value == "":
        return value
    return admit_text(value, "concurrency_key", "a concurrency key must be durable text")


def admit_state_version(state_version: object, upgrade: Upgrade | None) -> int:
    """Admit a version, and that it has an upgrade exactly where there are older ones."""
    version = admit_positive(state_version, "state_version")
    if (version > 1) != callable(upgrade):
        refuse("upgrade must be a function from state_version 2 on, and none before", "upgrade")
    return version


def admit_on_no_progress(value: OnNoProgress) -> OnNoProgress:
    """Admit one of the two words."""
    if value not in get_args(OnNoProgress):
        refuse("on_no_progress must be 'flag' or 'stop'", "on_no_progress")
    return value


def check_function(function: object) -> None:
    """Refuse what is no plain function, or would run nothing when it is called."""
    if not callable(function) or isinstance(function, type):
        refuse("a handler must be a function that takes the run", "function")
    # An object that can be called is judged by what calling it runs. Not what a decorator
    # wraps: async_to_sync makes a plain function of an async one.
    for called in (function, type(function).__call__):
        if inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called):
            refuse("async handlers are not supported yet; declare a plain function", "function")
        if inspect.isgeneratorfunction(called):
            refuse("a handler must not yield: calling it would run nothing of it", "function")


def refuse(rule: str, field: str) -> NoReturn:
    """Say what is wrong with a declaration."""
    raise InvalidHandler("handler", rule, {"field": field, "detail": rule})
