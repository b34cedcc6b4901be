"""
Spec 12 with departure D5: what counts as a change, what it leaves, and what refuses it.

On SQLite revisions are exact. PostgreSQL draws them from a sequence: here, where nobody else
writes and nothing is rolled back unseen, it gives the same numbers. Heartbeats and progress,
which the specification counts, are no changes (D5).
"""

import re

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from django_runstore import RunConstraint, RunPersistenceFailed, Waiting
from django_runstore.models import Run, RunTombstone, StoreIdentity
from django_runstore.outcomes import CancelRequested
from django_runstore.read_only import ReadOnlyModelError
from tests.concurrency.processes import let_loose
from tests.conformance.world import SAFE, A, B, P, World, owner_json, tables
from tests.db.horizon import await_other_databases
from tests.db.trigger_states import execute, identity_gone, last_revision_at, triggers_off

WAIT = Waiting("timer", 1)


@pytest.fixture
def world(database_world: World) -> World:
    return database_world


def stamps() -> dict[str, int]:
    return dict(Run.objects.values_list("run_id", "revision"))


def tombstones(*run_ids: str) -> dict[str, int]:
    buried = RunTombstone.objects.filter(pk__in=run_ids)
    return dict(buried.values_list("run_id", "revision"))


@pytest.mark.conformance(200, "D6")
def test_runs_from_before_revisions_are_numbered_by_age_and_then_by_id(world: World):
    # D6: this release's first migration makes tables and triggers in one, so the only runs
    # without revisions are those written while the triggers were away; rotating numbers them.
    with triggers_off():
        for run_id in ("b", "a"):
            world.pending(run_id)
        world.clock.set(5)
        world.pending("0 and younger")
    assert set(stamps().values()) == {0}
    execute("DELETE FROM runstore_run_tombstone")
    before = world.store.revision()
    rotated = world.store.rotate_identity()
    assert re.fullmatch("[0-9a-f]{32}", rotated.identity)
    assert world.store.revision() == before + 3
    if connection.vendor == "sqlite":
        assert stamps() == {"a": before + 1, "b": before + 2, "0 and younger": before + 3}
    # D5: on PostgreSQL each has a number, in no order.
    assert sorted(stamps().values()) == [before + 1, before + 2, before + 3]


@pytest.mark.conformance(201)
def test_each_acknowledgement_is_a_change_and_the_first_one_is_kept(world: World):
    world.active(A)
    world.store.request_cancel("run", 1)
    counted = world.store.revision()
    for number, at_ms in enumerate((4, 9, 4), start=1):
        assert world.store.acknowledge_cancel("run", A, at_ms) is True
        assert stamps() == {"run": counted + number}
    kept = world.columns()["cancel_acknowledgement_json"]
    world.store.transition_owned("run", A, "cancelled")
    counted = world.store.revision()
    assert world.store.acknowledge_cancel("run", A, 5) is False
    assert world.store.revision() == counted
    assert world.columns()["cancel_acknowledgement_json"] == kept
    acknowledged = world.store.get("run").cancel_acknowledgement
    assert (acknowledged.observed_at_ms, acknowledged.owner) == (4, A)
    assert owner_json(A)["nonce"] in kept


@pytest.mark.conformance(202)
def test_a_run_cannot_be_renamed(world: World):
    world.pending()
    counted, before = world.store.revision(), tables()
    for renaming in ("run_id = 'another'", "status = 'running', run_id = run_id || '!'"):
        with pytest.raises(IntegrityError), transaction.atomic():
            execute(f"UPDATE runstore_run SET {renaming}")  # noqa: S608 - a test's own words
    assert tables() == before
    assert world.store.revision() == counted
    # The same name is no renaming.
    execute("UPDATE runstore_run SET run_id = run_id")
    assert world.store.revision() == counted + 1


@pytest.mark.conformance(203, "D5")
@pytest.mark.django_db(transaction=True)
def test_every_change_by_anybody_counts_once(child_environment):
    world = World()
    # Revisions go on from wherever other tests have left them: 1 is the first number after.
    start, identity = world.store.revision(), world.store.identity()
    cursor = end_of_changes(world)
    world.pending("a")
    world.pending("b")
    assert stamps() == {"a": start + 1, "b": start + 2}
    world.store.claim_and_own("a", P, A, 0)
    assert world.store.request_cancel("a", 1) == CancelRequested(1)
    assert world.store.acknowledge_cancel("a", A, 2)
    assert world.store.acknowledge_cancel("a", A, 3)
    world.store.transition_owned("a", A, "cancelled")
    assert let_loose("delete_run", [{"run_id": "a"}], child_environment) == [1]
    assert world.store.revision() == start + 8
    assert stamps() == {"b": start + 2}
    assert tombstones("a", "b") == {"a": start + 8}
    await_other_databases()
    page = world.store.changes(cursor)
    assert [(each.run_id, each.revision, each.deleted) for each in page.changes] == [
        ("b", start + 2, False),
        ("a", start + 8, True),
    ]
    assert world.store.identity() == identity


def end_of_changes(world: World) -> str:
    await_other_databases()
    page = world.store.changes()
    while page.has_more:
        page = world.store.changes(page.cursor)
    return page.cursor


@pytest.mark.conformance(204)
def test_a_revision_that_cannot_advance_refuses_the_change(world: World):
    world.active(A)
    world.pending("gone")
    execute("DELETE FROM runstore_run WHERE run_id = 'gone'")
    before, buried = tables(), tombstones("gone")
    with last_revision_at(SAFE):
        for change in (
            lambda: world.pending("gone"),
            lambda: world.store.request_cancel("run", 1),
            lambda: world.store.transition_owned("run", A, "completed"),
            lambda: world.store.claim_many(B, 1) or world.store.park("run", WAIT, A),
        ):
            with pytest.raises(RunConstraint):
                change()
        with pytest.raises(IntegrityError), transaction.atomic():
            execute("DELETE FROM runstore_run")
    assert tables() == before
    assert tombstones("gone") == buried


@pytest.mark.conformance(204)
def test_the_last_revision_can_still_be_given(world: World):
    with last_revision_at(SAFE - 1):
        world.pending()
        assert stamps() == {"run": SAFE}
        with pytest.raises(RunConstraint):
            world.pending("next")
        execute("DELETE FROM runstore_run_tombstone")


@pytest.mark.conformance(204)
def test_without_an_identity_every_change_is_refused(world: World):
    world.active(A)
    before = tables()
    with identity_gone():
        for change in (
            lambda: world.pending("new"),
            lambda: world.store.request_cancel("run", 1),
            lambda: world.store.transition_owned("run", A, "completed"),
        ):
            with pytest.raises(RunConstraint):
                change()
        with pytest.raises(IntegrityError), transaction.atomic():
            execute("DELETE FROM runstore_run")
        # A beat is no change, and keeps the run with its owner.
        assert world.store.heartbeat("run", A, 7).code == "updated"
        for question in (world.store.identity, world.store.changes):
            with pytest.raises(RunPersistenceFailed, match="runstore_rotate_identity") as caught:
                question()
            assert caught.value.detail == {"stage": "identity"}
    before[0][0]["heartbeat_at_ms"] = 7
    assert tables() == before


@pytest.mark.conformance(204)
@pytest.mark.postgres("it has TRUNCATE")
@pytest.mark.django_db(transaction=True)
def test_without_an_identity_a_truncation_is_refused(world: World):
    world.pending()
    with (
        identity_gone(),
        pytest.raises(IntegrityError),
        transaction.atomic(),
    ):
        execute("TRUNCATE runstore_run CASCADE")
    assert stamps().keys() == {"run"}


@pytest.mark.conformance("D5")
def test_a_refused_or_lost_operation_is_no_change(world: World):
    world.active(A)
    world.store.request_cancel("run", 1)
    counted = world.store.revision()
    for lost in (
        world.store.claim("run", P, B, 0),
        world.store.claim_and_own("run", P, B, 0),
        world.store.heartbeat("run", B, 0),
        world.store.transition_owned("run", B, "completed"),
        world.store.request_cancel("run", 2),
        world.store.park("run", WAIT, B),
        world.store.wake("run"),
    ):
        assert lost.code not in {"claimed", "activated", "updated", "parked", "woken"}
    assert world.store.acknowledge_cancel("run", B, 1) is False
    with pytest.raises(RunConstraint):
        world.pending()
    # A number may have been drawn for the duplicate; no row carries it.
    assert world.store.revision() == counted + (connection.vendor == "postgresql")
    assert stamps() == {"run": counted}


def test_several_changes_in_one_block_leave_the_latest(world: World):
    counted = world.store.revision()
    with transaction.atomic():
        world.pending()
        world.store.request_cancel("run", 1)
        execute("UPDATE runstore_run SET priority = 4")
    assert stamps() == {"run": counted + 3}


def test_a_rolled_back_change_leaves_stamp_and_tombstone_as_they_were(world: World):
    world.pending()
    world.pending("gone")
    execute("DELETE FROM runstore_run WHERE run_id = 'gone'")
    before, buried, counted = stamps(), tombstones("run", "gone"), world.store.revision()
    with transaction.atomic():
        world.store.request_cancel("run", 1)
        world.pending("gone")
        execute("DELETE FROM runstore_run WHERE run_id = 'run'")
        transaction.set_rollback(True)
    assert (stamps(), tombstones("run", "gone")) == (before, buried)
    if connection.vendor == "sqlite":
        assert world.store.revision() == counted


def test_a_deleted_id_keeps_its_tombstone_until_it_lives_again(world: World):
    for _ in range(2):
        world.pending()
        created = stamps()["run"]
        assert tombstones("run") == {}
        execute("DELETE FROM runstore_run")
        assert tombstones("run") == {"run": created + 1}
    world.pending("another")
    assert tombstones("run") == {"run": created + 1}


@pytest.mark.postgres("it has TRUNCATE")
@pytest.mark.django_db(transaction=True)
def test_a_truncation_leaves_a_tombstone_of_each_run(world: World):
    for run_id in ("a", "b"):
        world.pending(run_id)
    last = world.store.revision()
    execute("TRUNCATE runstore_run CASCADE")
    buried = tombstones("a", "b")
    assert buried.keys() == {"a", "b"}
    assert len(set(buried.values())) == 2
    assert min(buried.values()) > last


def test_the_rows_beside_the_runs_are_for_reading(world: World):
    world.pending()
    execute("DELETE FROM runstore_run")
    for row in (StoreIdentity.objects.get(), RunTombstone.objects.get(pk="run")):
        for write in (row.save, row.delete, type(row).objects.all().delete):
            with pytest.raises(ReadOnlyModelError):
                write()


@pytest.mark.parametrize(
    "insert",
    [
        "runstore_store_identity (id, identity) VALUES (2, '{digits}')",
        "runstore_store_identity (id, identity) VALUES (1, '{digits}')",
        "runstore_run_tombstone (run_id, revision, revision_xid) VALUES ('', 1, 1)",
        "runstore_run_tombstone (run_id, revision, revision_xid) VALUES ('x', 0, 1)",
        "runstore_run_tombstone (run_id, revision, revision_xid) VALUES ('x', 1, 1), ('y', 1, 1)",
        "runstore_run_tombstone (run_id, revision, revision_xid) VALUES ('x', 9007199254740992, 1)",
    ],
)
def test_impossible_rows_beside_the_runs_are_refused(db, insert):
    with pytest.raises(IntegrityError), transaction.atomic():
        execute("INSERT INTO " + insert.format(digits="0123456789abcdef" * 2))


@pytest.mark.parametrize("identity", ["", "0" * 31, "0" * 33, "A" * 32, "g" * 32])
def test_an_identity_is_32_lower_case_hexadecimal_digits(db, identity):
    with pytest.raises(DatabaseError), transaction.atomic():
        execute("UPDATE runstore_store_identity SET identity = %s", [identity])
