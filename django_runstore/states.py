"""The six statuses of a run and which of them end it. Spec: run-store 1.2."""

from typing import Final

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class RunStatus(TextChoices):
    """
    Where a run stands.

    ``pending`` and ``suspended`` runs can be claimed, a ``running`` one has exactly
    one owner, and the other three are terminal: a run never leaves them.
    """

    PENDING = "pending", _("pending")
    RUNNING = "running", _("running")
    SUSPENDED = "suspended", _("suspended")
    COMPLETED = "completed", _("completed")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("cancelled")


CLAIMABLE_STATUSES: Final = (RunStatus.PENDING, RunStatus.SUSPENDED)
LIVE_STATUSES: Final = (RunStatus.PENDING, RunStatus.RUNNING, RunStatus.SUSPENDED)
TERMINAL_STATUSES: Final = (RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED)


def is_terminal_run_status(status: str) -> bool:
    """Tell whether a run in ``status`` is settled for good."""
    return status in TERMINAL_STATUSES
