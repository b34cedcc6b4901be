"""
The processes that own runs, execute them, and notice when somebody else does no more.

Resolved on first use: a worker imports this package before its settings are known.
"""

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from django_runstore.supervision.pulse import Pulse
    from django_runstore.supervision.supervisor import Supervisor, SupervisorOptions
    from django_runstore.supervision.sweeper import Sweeper

__all__ = ["Pulse", "Supervisor", "SupervisorOptions", "Sweeper"]

_MODULES: Final = {
    "Pulse": "django_runstore.supervision.pulse",
    "Supervisor": "django_runstore.supervision.supervisor",
    "SupervisorOptions": "django_runstore.supervision.supervisor",
    "Sweeper": "django_runstore.supervision.sweeper",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module attribute can be anything
    """Import what was asked for."""
    if name not in _MODULES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(importlib.import_module(_MODULES[name]), name)
