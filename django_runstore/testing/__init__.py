"""
Helpers for testing code that uses this package; part of its public API.

Resolved on first use, so that a pytest plugin may import this package before the settings.
"""

import importlib
from typing import TYPE_CHECKING, Any, Final

from django_runstore.testing.clocks import FakeClock, clock_skew, use_clock

if TYPE_CHECKING:
    from django_runstore.testing.faults import FrozenOwner, crash_after, freeze_owner, partition
    from django_runstore.testing.reports import Execution, RunnerReport
    from django_runstore.testing.runner import Runner
    from django_runstore.testing.runner_errors import (
        BlockIsOpenError,
        NeverIdleError,
        NotClaimableError,
        RunnerError,
        UnknownHandlerError,
    )

__all__ = [
    "BlockIsOpenError",
    "Execution",
    "FakeClock",
    "FrozenOwner",
    "NeverIdleError",
    "NotClaimableError",
    "Runner",
    "RunnerError",
    "RunnerReport",
    "UnknownHandlerError",
    "clock_skew",
    "crash_after",
    "freeze_owner",
    "partition",
    "use_clock",
]

_MODULES: Final = {
    "BlockIsOpenError": "runner_errors",
    "Execution": "reports",
    "FrozenOwner": "faults",
    "NeverIdleError": "runner_errors",
    "NotClaimableError": "runner_errors",
    "Runner": "runner",
    "RunnerError": "runner_errors",
    "RunnerReport": "reports",
    "UnknownHandlerError": "runner_errors",
    "crash_after": "faults",
    "freeze_owner": "faults",
    "partition": "faults",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module attribute can be anything
    """Import what was asked for."""
    if name not in _MODULES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
