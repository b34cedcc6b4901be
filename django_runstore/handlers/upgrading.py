"""Bring the state of an older release into the shape that this one reads."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from django_runstore.handlers.values import encode_value

if TYPE_CHECKING:
    from django_runstore.handlers.context import RunContext
    from django_runstore.handlers.registry import Handler

Upgrade: TypeAlias = Callable[[Any, int], Any]
"""Takes the state and the version it is of; returns it in the version of the handler."""


class UpgradeFailedError(Exception):
    """The state of a run could not be upgraded; the cause is what the project's function raised."""


def upgrade_state(handler: "Handler", context: "RunContext") -> None:
    """
    Upgrade the state of a run that an older release wrote, and store it under the fence.

    Raises:
        UpgradeFailedError: the function raised, or returned what cannot be stored.
        RunInterrupted: the run should stop, or is no longer this process's.
        RunPersistenceFailed: the database failed.
    """
    if handler.upgrade is None or context.state_version >= handler.state_version:
        return
    try:
        state = handler.upgrade(context.state, context.state_version)
        text = encode_value("upgrade", "state", state)
    except Exception as error:
        raise UpgradeFailedError from error
    context.store_upgraded(text, handler.state_version)
