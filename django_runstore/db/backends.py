"""What a database can do, each quirk asked as one question."""

from django.db import connections

from django_runstore import conf


def locks_rows(using: str) -> bool:
    """Tell whether ``SELECT ... FOR UPDATE`` locks; SQLite accepts and ignores it."""
    return bool(connections[using].features.has_select_for_update)


def skips_locked_rows(using: str) -> bool:
    """Tell whether a query may pass over rows that somebody else has locked."""
    return bool(connections[using].features.has_select_for_update_skip_locked)


def has_one_writer(using: str) -> bool:
    """
    Tell whether the whole database has a single write lock.

    There a transaction that has read and then writes may fail at once, without
    waiting, so every write of this package takes that lock first.
    """
    return connections[using].vendor == "sqlite"


def sends_notices(using: str) -> bool:
    """
    Tell whether a transaction can wake other sessions as it commits (NOTIFY).

    Never where ``RUNSTORE["NOTICES"]`` is off: nothing is sent then, and nobody listens.
    """
    return connections[using].vendor == "postgresql" and conf.current().notices
