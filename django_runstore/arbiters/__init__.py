"""
Lease arbiters: who may hold a run, decided without touching a database.

One arbiter per database alias decides for every service over it
(``RUNSTORE["ARBITER"]``). ``DatabaseArbiter`` is the default and the only one whose
decisions are shared by all processes.
"""

from django_runstore.arbiters.database import DatabaseArbiter
from django_runstore.arbiters.lease import Lease
from django_runstore.arbiters.local import LocalArbiter
from django_runstore.arbiters.null import NullArbiter
from django_runstore.arbiters.protocol import LeaseArbiter, arbiter_for

__all__ = [
    "DatabaseArbiter",
    "Lease",
    "LeaseArbiter",
    "LocalArbiter",
    "NullArbiter",
    "arbiter_for",
]
