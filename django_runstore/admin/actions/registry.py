"""All actions on runs, in the order in which they are offered."""

from collections.abc import Sequence
from typing import Final

from django_runstore.admin.actions.cancel_lineage import CancelLineage
from django_runstore.admin.actions.cancel_run import CancelRun
from django_runstore.admin.actions.contract import RunAction
from django_runstore.admin.actions.release_claim import ReleaseClaim

ACTIONS: Final[Sequence[RunAction]] = (ReleaseClaim(), CancelRun(), CancelLineage())
