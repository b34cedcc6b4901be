"""What the tests of situations agree on."""

import os

from django_runstore import OwnerId
from django_runstore.models import Run
from django_runstore.process_identity import host_scope
from tests.supervision.sweeping import gone_pid

START = 1_000_000_000
OWNER = OwnerId("web-1", 4102, "9f3a61c2")
STALE_AFTER = 30_000


def set_columns(run, **columns):
    Run.unguarded.filter(pk=run.pk).update(**columns)


def dead():
    return OwnerId(host_scope(), gone_pid(), "t1-0123456789abcdef")


def alive():
    return OwnerId(host_scope(), os.getppid(), "u-0123456789abcdef")
