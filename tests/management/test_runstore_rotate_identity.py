"""``manage.py runstore_rotate_identity``: after a restore, everything can be followed again."""

import json
import re
from io import StringIO
from typing import Any

import pytest
from django.core.checks import Warning  # noqa: A004 - Django's own name
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from django_runstore import CursorExpired, RunPersistenceFailed, RunStore
from django_runstore.checks import check_revisions
from django_runstore.models import Run, RunTombstone, StoreIdentity
from django_runstore.services import following
from tests.db.horizon import await_other_databases
from tests.db.reopened import second_connection
from tests.db.trigger_states import execute, identity_gone, install_again, triggers_off

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.conformance("D5")]

# More transactions than any cluster of a test will have made.
FAR = 10**12


def rotate(*arguments: str, **options: Any) -> str:
    out = StringIO()
    call_command("runstore_rotate_identity", *arguments, stdout=out, **options)
    return out.getvalue()


def drained(store: RunStore, after: str | None) -> tuple[list[tuple[str, bool]], str]:
    """All that changed after a cursor, in order, and the cursor to go on with."""
    found: list[tuple[str, bool]] = []
    while True:
        await_other_databases()
        page = store.changes(after)
        after = page.cursor
        found += [(change.run_id, change.deleted) for change in page.changes]
        if not page.has_more:
            return found, after


def messages() -> list[str]:
    found = check_revisions(databases=["default"])
    assert all(isinstance(message, Warning) for message in found)
    return [str(message.id) for message in found]


@pytest.fixture
def store() -> RunStore:
    execute("DELETE FROM runstore_run_tombstone")
    store = RunStore()
    for run_id in ("a", "b", "gone"):
        store.create(run_id, "{}")
    execute("DELETE FROM runstore_run WHERE run_id = 'gone'")
    return store


ALL = {("a", False), ("b", False), ("gone", True)}


def test_it_says_what_it_did(store: RunStore):
    old = store.identity()
    said = rotate()
    new = store.identity()
    assert new != old
    assert said == (f"The identity of 'default' is now {new}; stamped anew: 2 runs, 1 tombstone.\n")


def test_it_says_so_as_json_too(store: RunStore):
    said = json.loads(rotate("--json"))
    assert said == {
        "database": "default",
        "identity": store.identity(),
        "runs": 2,
        "tombstones": 1,
    }
    assert re.fullmatch("[0-9a-f]{32}", said["identity"])


def test_it_can_be_silent(store: RunStore):
    assert rotate(verbosity=0) == ""


def test_every_run_and_tombstone_has_a_new_revision_of_its_own(store: RunStore):
    highest = store.revision()
    rotate()
    revisions = [
        *Run.objects.values_list("revision", flat=True),
        *RunTombstone.objects.values_list("revision", flat=True),
    ]
    assert len(set(revisions)) == 3
    assert min(revisions) > highest
    assert store.revision() == max(revisions) == highest + 3


def test_a_follower_starts_over_and_then_goes_on(store: RunStore):
    _, cursor = drained(store, None)
    rotate()
    with pytest.raises(CursorExpired):
        store.changes(cursor)
    found, cursor = drained(store, None)
    assert (set(found), len(found)) == (ALL, 3)
    store.request_cancel("b", 1)
    assert drained(store, cursor)[0] == [("b", False)]


def restored_elsewhere() -> None:
    """Leave the tables as a dump of another, older server would: its transactions, our counter."""
    if connection.vendor == "sqlite":
        execute(f"UPDATE runstore_run SET revision = revision + {FAR}")  # noqa: S608 - a test's own words
        execute(f"UPDATE runstore_run_tombstone SET revision = revision + {FAR}")  # noqa: S608 - a test's own words
        return
    with triggers_off():
        execute(f"UPDATE runstore_run SET revision_xid = {FAR}, revision = revision + {FAR}")  # noqa: S608 - a test's own words
    execute(
        f"UPDATE runstore_run_tombstone SET revision_xid = {FAR} + 1, revision = revision + {FAR}"  # noqa: S608 - a test's own words
    )


def test_what_a_restore_has_put_into_the_future_is_followed_again(store: RunStore):
    _, cursor = drained(store, None)
    restored_elsewhere()
    assert messages() == ["runstore.W005"]
    if connection.vendor == "postgresql":
        # Withheld, since no transaction of this server has come so far.
        assert drained(store, None)[0] == []
    rotate()
    assert messages() == []
    found, cursor = drained(store, None)
    assert (set(found), len(found)) == (ALL, 3)
    # The counter, too, has caught up: what changes now comes after what was restored.
    store.create("gone", "{}")
    execute("DELETE FROM runstore_run WHERE run_id = 'a'")
    assert drained(store, cursor)[0] == [("gone", False), ("a", True)]


def test_a_lost_identity_comes_back_with_a_counter_that_goes_on(store: RunStore):
    highest = store.revision()
    with identity_gone():
        assert messages() == ["runstore.W004"]
        rotate()
        assert store.revision() == highest + 3
        assert messages() == []
        store.request_cancel("a", 1)
        new = StoreIdentity.objects.get().identity
        kept = store.revision()
        execute("DELETE FROM runstore_store_identity")
    # The fixture has put the old row back; leave one that fits the rows.
    rotate(verbosity=0)
    assert store.identity() != new
    assert store.revision() > kept


def test_without_triggers_nothing_is_rotated(store: RunStore):
    old = store.identity()
    with triggers_off():
        assert messages() == ["runstore.W003"]
        with pytest.raises(CommandError, match="triggers of the run table"):
            rotate()
        with pytest.raises(RunPersistenceFailed) as caught:
            store.rotate_identity()
        assert caught.value.detail == {"stage": "triggers"}
    assert store.identity() == old
    install_again()


def test_it_is_undone_with_the_transaction_around_it(store: RunStore):
    old, rows = store.identity(), list(Run.objects.values())
    with transaction.atomic():
        assert store.rotate_identity().runs == 2
        transaction.set_rollback(True)
    assert (store.identity(), list(Run.objects.values())) == (old, rows)


@pytest.mark.postgres("its writers overlap")
def test_it_gives_up_on_a_writer_that_does_not_end_and_changes_nothing(
    store: RunStore, monkeypatch
):
    monkeypatch.setattr(following, "_LOCK_TIMEOUT_MS", 50)
    old = store.identity()
    with second_connection() as other, other.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("UPDATE runstore_run SET priority = 5 WHERE run_id = 'a'")
        with pytest.raises(CommandError, match=r"busy.*Stop the supervisors"):
            rotate()
        cursor.execute("COMMIT")
    assert store.identity() == old
    assert Run.objects.get(pk="a").priority == 5


@pytest.mark.postgres("its writers overlap")
def test_a_writer_waits_for_it_and_is_followed_under_the_new_identity(store: RunStore):
    with second_connection() as other, other.cursor() as cursor:
        cursor.execute("SET lock_timeout = '50ms'")
        with transaction.atomic():
            store.rotate_identity()
            with pytest.raises(Exception, match="lock timeout"):
                cursor.execute("UPDATE runstore_run SET priority = 5 WHERE run_id = 'a'")
            # Who reads does not wait.
            cursor.execute("SELECT count(*) FROM runstore_run")
        _, after = drained(store, None)
        cursor.execute("UPDATE runstore_run SET priority = 5 WHERE run_id = 'a'")
    assert drained(store, after)[0] == [("a", False)]


@pytest.mark.postgres("its sequence may be left behind")
def test_a_sequence_that_was_not_restored_catches_up(store: RunStore):
    highest = store.revision()
    try:
        execute("SELECT setval('runstore_revision', 1)")
        rotate()
        assert min(Run.objects.values_list("revision", flat=True)) > highest
    finally:
        execute(f"SELECT setval('runstore_revision', {highest + 100})")


@pytest.mark.parametrize("counted", [0, 7])
def test_a_database_without_runs_counts_on_from_where_it_was(counted):
    call_command("migrate", "runstore", "zero", verbosity=0)
    call_command("migrate", verbosity=0)
    store = RunStore()
    for number in range(counted):
        store.create(f"{number}", "{}")
    with triggers_off():
        execute("DELETE FROM runstore_run")
    assert store.revision() == counted
    for _ in range(2):
        rotate()
        assert store.revision() == counted
    store.create("next", "{}")
    assert store.revision() == Run.objects.get().revision == counted + 1


def test_an_unknown_alias_is_refused():
    with pytest.raises(CommandError):
        rotate("--database", "nowhere")
