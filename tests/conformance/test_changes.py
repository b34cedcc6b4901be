"""Spec 12 with departure D5: following the changes of runs page by page."""

import re
import threading

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction

from django_runstore import CursorExpired, InvalidRun
from django_runstore.db import change_statements
from django_runstore.models import Run
from django_runstore.snapshots import ChangePage, RunChange
from tests.conformance.world import SAFE, A, B, World
from tests.db.horizon import await_other_databases
from tests.db.reopened import second_connection
from tests.db.trigger_states import execute, last_revision_at

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.conformance("D5")]

INSERT = (
    "INSERT INTO runstore_run (run_id, status, created_at_ms, state_json) "
    "VALUES (%s, 'pending', 0, '1')"
)
TOUCH = "UPDATE runstore_run SET priority = priority + 1 WHERE run_id = %s"
DELETE = "DELETE FROM runstore_run WHERE run_id = %s"


class Follower:
    """Whoever goes on from page to page, beginning now."""

    def __init__(self, world: World, limit: int = 1_000) -> None:
        self.store, self.limit = world.store, limit
        self.cursor: str | None = None
        self.drain()

    def page(self) -> ChangePage:
        await_other_databases()
        page = self.store.changes(self.cursor, self.limit)
        self.cursor = page.cursor
        return page

    def drain(self) -> list[RunChange]:
        found: list[RunChange] = []
        while True:
            page = self.page()
            found += page.changes
            if not page.has_more:
                return found

    def names(self) -> list[str]:
        """The runs that have changed, a deleted one with a minus."""
        return [("-" if each.deleted else "") + each.run_id for each in self.drain()]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def follower(world: World) -> Follower:
    return Follower(world)


def test_a_follower_who_begins_gets_all_runs_and_all_tombstones(world: World):
    world.pending("a")
    world.pending("b")
    world.pending("gone")
    execute(DELETE, ["gone"])
    world.store.request_cancel("a", 1)
    begun = Follower(world, limit=2)
    begun.cursor = None
    found = {change.run_id: change for change in begun.drain()}
    revisions = dict(Run.objects.values_list("run_id", "revision"))
    assert found["a"] == RunChange("a", revisions["a"], deleted=False)
    assert found["b"] == RunChange("b", revisions["b"], deleted=False)
    assert found["gone"].deleted


def test_pages_are_full_and_in_order_and_the_last_one_says_so(world: World, follower: Follower):
    names = [f"run-{number}" for number in range(5)]
    for name in names:
        world.pending(name)
    follower.limit = 2
    pages = [follower.page() for _ in range(4)]
    assert [[each.run_id for each in page.changes] for page in pages] == [
        names[:2],
        names[2:4],
        names[4:],
        [],
    ]
    assert [page.has_more for page in pages] == [True, True, False, False]
    assert pages[3].cursor == pages[2].cursor


def test_a_full_last_page_is_the_last(world: World, follower: Follower):
    for name in ("a", "b"):
        world.pending(name)
    follower.limit = 2
    assert follower.page().has_more is False


def test_several_changes_of_a_run_come_as_the_latest(world: World, follower: Follower):
    world.active(A, "run")
    world.pending("another")
    world.store.request_cancel("run", 1)
    assert follower.names() == ["another", "run"]
    execute(DELETE, ["another"])
    world.pending("another")
    execute(DELETE, ["run"])
    assert follower.names() == ["another", "-run"]
    assert follower.names() == []


def test_beats_and_progress_are_not_followed(world: World, follower: Follower):
    world.active(A)
    follower.drain()
    world.store.heartbeat("run", A, 5, fence=1)
    world.store.reconfirm("run", A, 6, fence=1)
    world.store.heartbeat_many(A, [("run", 1)], 7)
    world.store.save_progress("run", A, fence=1, progress_json='"half"')
    assert follower.names() == []
    world.store.save_progress("run", A, fence=1, state_json='"half"')
    assert follower.names() == ["run"]


def test_progress_that_ends_a_series_of_recoveries_is_followed(world: World, follower: Follower):
    world.active(A)
    execute("UPDATE runstore_run SET recovery_count = 2")
    follower.drain()
    world.store.save_progress("run", A, fence=1)
    assert follower.names() == ["run"]
    world.store.save_progress("run", A, fence=1)
    assert follower.names() == []


def test_a_page_is_one_statement(world: World, follower: Follower, django_assert_num_queries):
    world.pending()
    with django_assert_num_queries(1):
        world.store.changes(follower.cursor)


def test_a_cursor_is_kept_whoever_asks_and_however_often(world: World, follower: Follower):
    world.pending()
    await_other_databases()
    again = [world.store.changes(follower.cursor) for _ in range(2)]
    again.append(async_to_sync(world.store.achanges)(follower.cursor))
    again.append(World().store.changes(after=follower.cursor))
    assert len(set(again)) == 1


@pytest.mark.parametrize(
    "after",
    [
        "",
        "x",
        "0" * 32,
        "0" * 32 + ".1",
        "0" * 32 + ".1.1.1",
        "0" * 32 + ".01.1",
        "0" * 32 + ".-1.1",
        "0" * 32 + ".1.1 ",
        "0" * 32 + ".1.1\n",
        "0" * 32 + ".\u0661.1",
        "A" * 32 + ".1.1",
        "0" * 32 + f".1.{SAFE + 1}",
        "0" * 32 + f".{2**63}.1",
        f"{'0' * 32}.1.{'9' * 900}",
        b"0.0.0",
        0,
        True,
        ("x",),
    ],
)
def test_what_is_no_cursor_is_refused(world: World, after):
    with pytest.raises(InvalidRun) as caught:
        world.store.changes(after)
    assert caught.value.detail == {
        "field": "after",
        "detail": "must be the cursor of an earlier page",
    }


# Another database, or the same with another history --------------------------------------------


def test_a_cursor_of_another_identity_is_expired(world: World, follower: Follower):
    world.store.rotate_identity()
    with pytest.raises(CursorExpired, match="start over with after=None") as caught:
        follower.page()
    assert caught.value.detail == {"field": "after", "reason": "identity"}
    assert (caught.value.code, caught.value.operation) == ("cursor_expired", "changes")
    assert Follower(world).names() == []


def test_a_cursor_from_beyond_what_was_written_is_expired(world: World, follower: Follower):
    # As after a restore of an older backup that nobody has rotated.
    world.pending()
    follower.drain()
    identity, xid, revision = str(follower.cursor).split(".")
    far = 1_000_000
    beyond = f"{identity}.{int(xid) + far if int(xid) else 0}.{int(revision) + far}"
    with pytest.raises(CursorExpired) as caught:
        world.store.changes(beyond)
    assert caught.value.detail == {"field": "after", "reason": "ahead"}


@pytest.mark.sqlite("its counter goes back with the file")
def test_a_database_whose_counter_went_back_expires_the_cursor(world: World, follower: Follower):
    world.pending()
    follower.drain()
    with (
        last_revision_at(world.store.revision() - 1),
        pytest.raises(CursorExpired, match="history"),
    ):
        follower.page()


def test_cursors_hold_nothing_but_identity_and_position(world: World, follower: Follower):
    world.pending("secret-name")
    follower.drain()
    assert re.fullmatch(rf"{world.store.identity()}\.\d+\.\d+", str(follower.cursor))


# Transactions ----------------------------------------------------------------------------------


def test_uncommitted_changes_of_others_are_not_seen(world: World, follower: Follower):
    world.pending("run")
    follower.drain()
    with second_connection() as other, other.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(TOUCH, ["run"])
        assert follower.names() == []
        cursor.execute("ROLLBACK")
        assert follower.names() == []
        cursor.execute("BEGIN")
        cursor.execute(TOUCH, ["run"])
        cursor.execute("COMMIT")
    assert follower.names() == ["run"]


def test_a_transaction_that_has_not_written_sees_what_is_committed(
    world: World, follower: Follower
):
    world.pending()
    with transaction.atomic():
        assert follower.names() == ["run"]


@pytest.mark.postgres("it tells transactions apart")
def test_a_transaction_that_has_written_sees_none_of_its_own_changes(
    world: World, follower: Follower
):
    world.pending("before")
    with transaction.atomic():
        world.pending("own")
        assert follower.names() == ["before"]
    assert follower.names() == ["own"]


@pytest.mark.sqlite("it does not tell transactions apart")
def test_a_transaction_that_has_written_sees_its_own_changes_too(world: World, follower: Follower):
    # So its cursor is kept with what it commits, or not at all.
    kept = follower.cursor
    with transaction.atomic():
        world.pending("own")
        assert follower.names() == ["own"]
        transaction.set_rollback(True)
    with pytest.raises(CursorExpired):
        follower.page()
    follower.cursor = kept
    world.pending("other")
    assert follower.names() == ["other"]


def test_a_savepoint_that_was_rolled_back_leaves_no_change(world: World, follower: Follower):
    world.pending("run")
    follower.drain()
    with transaction.atomic():
        world.pending("kept")
        with transaction.atomic():
            world.store.request_cancel("run", 1)
            transaction.set_rollback(True)
    assert follower.names() == ["kept"]


@pytest.mark.postgres("only there do writers overlap")
class TestWritersThatOverlap:
    """A writer that began earlier and commits later must not be gone past."""

    def test_a_later_commit_waits_for_an_earlier_writer(self, world: World, follower: Follower):
        with second_connection() as slow, slow.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(INSERT, ["slow"])
            world.pending("fast")
            assert follower.names() == []
            cursor.execute("COMMIT")
        found = follower.drain()
        assert [change.run_id for change in found] == ["slow", "fast"]
        assert found[0].revision < found[1].revision

    def test_an_earlier_writer_that_rolls_back_holds_nothing_any_more(
        self, world: World, follower: Follower
    ):
        with second_connection() as slow, slow.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(INSERT, ["slow"])
            world.pending("fast")
            cursor.execute("ROLLBACK")
        assert follower.names() == ["fast"]

    def test_a_low_revision_committed_late_is_not_gone_past(self, world: World, follower: Follower):
        # The writer of the lower revision is the younger transaction: ordered by revision alone
        # its change would come first, and a follower past the other would never see it.
        with second_connection() as first, second_connection() as second:
            old, young = first.cursor(), second.cursor()
            old.execute("BEGIN")
            old.execute(INSERT, ["old-1"])
            young.execute("BEGIN")
            young.execute(INSERT, ["young"])
            old.execute(INSERT, ["old-2"])
            old.execute("COMMIT")
            found = follower.drain()
            young.execute("COMMIT")
            found += follower.drain()
        assert [change.run_id for change in found] == ["old-1", "old-2", "young"]
        assert found[2].revision < found[1].revision

    def test_an_older_transaction_that_changes_a_run_last_is_the_one_that_is_seen(
        self, world: World, follower: Follower
    ):
        world.pending("run")
        follower.drain()
        with second_connection() as first:
            old = first.cursor()
            old.execute("BEGIN")
            old.execute(INSERT, ["other"])
            world.store.request_cancel("run", 1)
            assert follower.names() == []
            old.execute(TOUCH, ["run"])
            latest = self.revision_of(old, "run")
            assert follower.names() == []
            old.execute("COMMIT")
        found = {change.run_id: change.revision for change in follower.drain()}
        assert found.keys() == {"other", "run"}
        assert found["run"] == latest

    def test_who_only_reads_holds_nothing(self, world: World, follower: Follower):
        with second_connection() as reader, reader.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT count(*) FROM runstore_run")
            world.pending("run")
            assert follower.names() == ["run"]
            cursor.execute("COMMIT")

    def test_a_writer_of_another_table_holds_too(self, world: World, follower: Follower):
        # The price of not asking every writer who it is; it ends with the transaction.
        with second_connection() as other, other.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("CREATE TEMPORARY TABLE elsewhere (x int)")
            world.pending("run")
            assert follower.names() == []
            cursor.execute("COMMIT")
        assert follower.names() == ["run"]

    def test_an_old_snapshot_with_a_newer_cursor_finds_nothing_and_is_not_expired(
        self, world: World, follower: Follower
    ):
        with transaction.atomic():
            execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            assert Run.objects.count() == 0
            with second_connection() as other, other.cursor() as cursor:
                for _ in range(3):
                    cursor.execute(INSERT, ["run"])
                    cursor.execute(DELETE, ["run"])
                cursor.execute(
                    "SELECT revision_xid, revision FROM runstore_run_tombstone WHERE run_id = 'run'"
                )
                xid, revision = cursor.fetchone()
            newer = f"{world.store.identity()}.{xid}.{revision}"
            assert world.store.changes(newer) == ChangePage((), newer, has_more=False)
        assert follower.names() == ["-run"]

    def test_an_id_created_again_while_it_is_deleted_lives_and_rises(
        self, world: World, follower: Follower
    ):
        world.pending("run")
        follower.drain()
        with second_connection() as deleting, deleting.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(DELETE, ["run"])
            buried = self.revision_of(cursor, "run", "runstore_run_tombstone")
            inserting = threading.Thread(target=self.insert_elsewhere, args=["run"])
            inserting.start()
            wait_for_a_lock(cursor)
            # Drawn while the insert waits, so above the number that it has drawn.
            cursor.execute(
                "UPDATE runstore_run_tombstone SET revision = nextval('runstore_revision') "
                "WHERE run_id = 'run'"
            )
            buried = self.revision_of(cursor, "run", "runstore_run_tombstone")
            cursor.execute("COMMIT")
            inserting.join(60)
        (change,) = follower.drain()
        assert change == RunChange("run", Run.objects.get().revision, deleted=False)
        assert change.revision > buried
        assert self.tombstones("run") == 0

    def test_a_tombstone_that_an_old_snapshot_could_not_see_is_not_followed(
        self, world: World, follower: Follower
    ):
        world.pending("run")
        follower.drain()
        with second_connection() as other, other.cursor() as cursor:
            cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            cursor.execute(INSERT, ["first"])
            execute(DELETE, ["run"])
            cursor.execute(INSERT, ["run"])
            cursor.execute("COMMIT")
        assert self.tombstones("run") == 1
        # By transaction the deletion would even come last.
        assert sorted(follower.names()) == ["first", "run"]
        execute("DELETE FROM runstore_run_tombstone WHERE run_id = 'run'")

    @staticmethod
    def insert_elsewhere(run_id: str) -> None:
        with second_connection() as other, other.cursor() as cursor:
            cursor.execute(INSERT, [run_id])

    @staticmethod
    def revision_of(cursor, run_id: str, table: str = "runstore_run") -> int:
        cursor.execute(f"SELECT revision FROM {table} WHERE run_id = %s", [run_id])  # noqa: S608 - a test's own words
        (revision,) = cursor.fetchone()
        return int(revision)

    @staticmethod
    def tombstones(run_id: str) -> int:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM runstore_run_tombstone WHERE run_id = %s", [run_id]
            )
            (count,) = cursor.fetchone()
        return int(count)


def wait_for_a_lock(cursor) -> None:
    """Wait until somebody waits for the transaction of ``cursor``."""
    deadline = threading.Event()
    for _ in range(2_000):
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        if cursor.fetchone() != (0,):
            return
        deadline.wait(0.005)
    raise AssertionError("nobody waits")


@pytest.mark.sqlite("its planner is what is asked")
def test_a_page_reads_the_indexes_of_changes(world: World):
    world.active(B)

    with connection.cursor() as cursor:
        cursor.execute(
            f"EXPLAIN QUERY PLAN {change_statements._SQLITE}", {"revision": 5, "limit": 9}
        )
        plan = "\n".join(str(row[-1]) for row in cursor.fetchall())
    assert "USING COVERING INDEX runstore_run_changes" in plan or (
        "USING INDEX runstore_run_changes (revision_xid=? AND revision>?)" in plan
    )
    assert "SCAN runstore_run" not in plan
    assert "SEARCH runstore_run_tombstone USING" in plan


@pytest.mark.parametrize("limit", [0, 10_001, "5", None, 1.0])
def test_a_limit_is_an_integer_from_1_to_10000(world: World, limit):
    with pytest.raises(InvalidRun) as caught:
        world.store.changes(None, limit)
    assert caught.value.detail["field"] == "limit"
