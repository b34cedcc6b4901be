"""All actions on runs, in the order in which they are offered."""

from collections.abc import Sequence
from typing import Final

from django_runstore.admin.actions.cancel_lineage import CancelLineage
from django_runstore.admin.actions.cancel_run import CancelRun
from django_runstore.admin.actions.contract import RunAction
from django_runstore.admin.actions.release_claim import ReleaseClaim
from django_runstore.admin.actions.wake_run import WakeRun

ACTIONS: Final[Sequence[RunAction]] = (
    WakeRun(),
    ReleaseClaim(),
    CancelRun(),
    CancelLineage(),
)
