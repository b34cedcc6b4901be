"""
Durable, fenced ownership of long runs, one row per run in a Django project's own database.

The vocabulary is imported at once. The services and ``handler`` need loaded
apps, so they are resolved on first use: ``from django_runstore import RunStore``
works in any module that Django imports after ``django.setup()``, while
``INSTALLED_APPS`` can import this package before it.
"""

import importlib
from typing import TYPE_CHECKING, Any, Final

from django_runstore.errors import (
    AttemptStoreError,
    CursorExpired,
    InvalidRun,
    JournalError,
    RunConstraint,
    RunDecodeFailed,
    RunNotFound,
    RunPersistenceFailed,
    RunStoreError,
)
from django_runstore.evidence import LivenessEvidence
from django_runstore.owners import OwnerId
from django_runstore.snapshots import (
    ClaimedRun,
    OwnedTransition,
    RunNote,
    RunRow,
    RunSnapshot,
    TransitionGuard,
    Waiting,
)
from django_runstore.states import RunStatus
from django_runstore.unset import UNSET

if TYPE_CHECKING:
    from django_runstore.handlers import handler
    from django_runstore.services import AttemptStore, Journal, RunStore

__version__ = "0.1.0.dev0"

__all__ = [
    "UNSET",
    "AttemptStore",
    "AttemptStoreError",
    "ClaimedRun",
    "CursorExpired",
    "InvalidRun",
    "Journal",
    "JournalError",
    "LivenessEvidence",
    "OwnedTransition",
    "OwnerId",
    "RunConstraint",
    "RunDecodeFailed",
    "RunNotFound",
    "RunNote",
    "RunPersistenceFailed",
    "RunRow",
    "RunSnapshot",
    "RunStatus",
    "RunStore",
    "RunStoreError",
    "TransitionGuard",
    "Waiting",
    "handler",
]

_LAZY: Final = {
    "AttemptStore": "django_runstore.services",
    "Journal": "django_runstore.services",
    "RunStore": "django_runstore.services",
    "handler": "django_runstore.handlers",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module attribute can be anything
    """Import the services on first use, once apps are loaded."""
    if name not in _LAZY:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(importlib.import_module(_LAZY[name]), name)
