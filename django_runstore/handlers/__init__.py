"""Handlers: the functions that execute runs, and how runs are submitted to them."""

from django_runstore.handlers.context import RunContext
from django_runstore.handlers.errors import (
    HandlerError,
    InvalidHandler,
    InvalidValue,
    RunCancelled,
    RunFailed,
    RunIdTaken,
    RunUnfinished,
    RunUnsuccessful,
)
from django_runstore.handlers.handle import RunHandle
from django_runstore.handlers.interruption import RunInterrupted
from django_runstore.handlers.registry import Handler, handler, registry
from django_runstore.handlers.retrying import ExponentialBackoff, NonRetryableError, RetryPolicy

__all__ = [
    "ExponentialBackoff",
    "Handler",
    "HandlerError",
    "InvalidHandler",
    "InvalidValue",
    "NonRetryableError",
    "RetryPolicy",
    "RunCancelled",
    "RunContext",
    "RunFailed",
    "RunHandle",
    "RunIdTaken",
    "RunInterrupted",
    "RunUnfinished",
    "RunUnsuccessful",
    "handler",
    "registry",
]
