"""Bound how long maintenance waits for locks that somebody else holds."""

from django.db import connections

from django_runstore.db.backends import has_one_writer


def limit_lock_wait(using: str, timeout_ms: int) -> None:
    """
    Let no statement of this transaction wait longer than ``timeout_ms`` for a lock.

    The setting ends with the transaction, so a pooler in transaction mode keeps nothing of
    it. SQLite has a busy timeout per connection instead.
    """
    if has_one_writer(using):
        return
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [f"{timeout_ms}ms"])
