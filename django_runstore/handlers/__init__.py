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

__all__ = [
    "Handler",
    "HandlerError",
    "InvalidHandler",
    "InvalidValue",
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
