"""Spec 10.3 and 10.4: only the outermost write is replayed, and only when it was busy."""

import itertools

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction

from django_runstore.db import boundary
from django_runstore.db.boundary import MOST_ATTEMPTS, write
from django_runstore.errors import DatabaseFailure
from django_runstore.models import Run
from tests.conformance.race import race
from tests.db.reopened import reopened, write_lock_held_elsewhere

pytestmark = pytest.mark.django_db(transaction=True)


class Pauses(list[float]):
    """The pauses that were asked for, in milliseconds, instead of being made."""

    def sleep(self, seconds: float) -> None:
        self.append(seconds * 1000)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Pauses:
    noted = Pauses()
    monkeypatch.setattr(boundary.time, "sleep", noted.sleep)
    return noted


def busy() -> Exception:
    error = OperationalError("somebody else was faster")
    error.__cause__ = DatabaseFailure("busy")
    return error


class Body:
    """Insert a run, then fail as often as is wanted."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = iter(failures)
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        insert(f"attempt-{self.calls}")
        failure = next(self.failures, None)
        if failure is not None:
            raise failure
        return f"attempt-{self.calls}"


def insert(run_id: str) -> None:
    Run.unguarded.create(
        run_id=run_id, status="pending", created_at_ms=0, available_at_ms=0, state_json="{}"
    )


def stored() -> list[str]:
    return list(Run.objects.order_by("run_id").values_list("run_id", flat=True))


def test_a_busy_write_is_replayed_whole_and_keeps_nothing_of_what_failed(pauses):
    body = Body(busy(), busy())
    assert write("default", body) == "attempt-3"
    assert stored() == ["attempt-3"]


def test_a_database_that_stays_busy_is_reported_after_the_last_attempt(pauses):
    failures = [busy() for _ in range(MOST_ATTEMPTS)]
    body = Body(*failures)
    with pytest.raises(OperationalError) as caught:
        write("default", body)
    assert caught.value is failures[-1]
    assert (body.calls, len(pauses)) == (MOST_ATTEMPTS, MOST_ATTEMPTS - 1)
    assert stored() == []


def test_the_caller_bounds_the_number_of_attempts(pauses):
    for attempts in (1, 3):
        body = Body(*(busy() for _ in range(9)))
        with pytest.raises(OperationalError):
            write("default", body, attempts=attempts)
        assert body.calls == attempts
    assert len(pauses) == 2


def test_pauses_double_up_to_a_limit_and_are_jittered_below_it(pauses):
    for _ in range(20):
        with pytest.raises(OperationalError):
            write("default", Body(*(busy() for _ in range(MOST_ATTEMPTS))))
    longest = [50, 100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000]
    for pause, limit in zip(pauses, longest * 20, strict=True):
        assert limit / 2 <= pause <= limit
    assert len(set(pauses[:: len(longest)])) > 1


@pytest.mark.parametrize(
    "failure",
    [
        IntegrityError("a constraint"),
        OperationalError("database is locked"),
        ValueError("database is locked"),
        DatabaseFailure("io"),
        DatabaseFailure("unknown"),
        KeyError("busy"),
    ],
    ids=repr,
)
def test_what_is_not_busy_is_never_replayed(pauses, failure):
    body = Body(failure)
    with pytest.raises(type(failure)) as caught:
        write("default", body)
    assert caught.value is failure
    assert (body.calls, pauses, stored()) == (1, [], [])


def test_a_nested_write_is_never_replayed(pauses):
    body = Body(busy())
    with transaction.atomic():
        with pytest.raises(OperationalError):
            write("default", body)
        insert("callers")
    assert (body.calls, pauses) == (1, [])
    assert stored() == ["callers"]


def test_a_nested_write_is_a_savepoint_that_goes_with_the_callers_block():
    with transaction.atomic():
        write("default", Body())
        assert stored() == ["attempt-1"]
        transaction.set_rollback(True)
    assert stored() == []


def test_a_write_within_a_write_is_replayed_by_the_outer_one_alone(pauses):
    inner = Body(busy())
    assert write("default", lambda: write("default", inner)) == "attempt-2"
    assert stored() == ["attempt-2"]
    assert len(pauses) == 1


# --- callbacks -----------------------------------------------------------------------


def test_callbacks_run_once_and_from_the_committed_attempt_alone(pauses):
    called: list[int] = []
    attempts = itertools.count(1)

    def body() -> None:
        number = next(attempts)
        transaction.on_commit(lambda: called.append(number))
        assert called == []
        if number < 3:
            raise busy()

    write("default", body)
    assert called == [3]


def test_a_callback_that_meets_a_busy_database_does_not_replay_the_committed_write(pauses):
    body = Body()

    def failing() -> None:
        raise busy()

    def with_callback() -> None:
        body()
        transaction.on_commit(failing)

    with pytest.raises(OperationalError):
        write("default", with_callback)
    assert (body.calls, pauses, stored()) == (1, [], ["attempt-1"])


def test_callbacks_of_a_nested_write_wait_for_the_callers_commit():
    called: list[bool] = []
    with transaction.atomic():
        write("default", lambda: transaction.on_commit(lambda: called.append(True)))
        assert called == []
    assert called == [True]


def test_callbacks_of_a_nested_write_go_with_the_callers_rollback():
    called: list[bool] = []
    with transaction.atomic():
        write("default", lambda: transaction.on_commit(lambda: called.append(True)))
        transaction.set_rollback(True)
    assert called == []


# --- failures at commit ---------------------------------------------------------------


def failing_commits(monkeypatch: pytest.MonkeyPatch, *failures: Exception) -> None:
    waiting, commit = iter(failures), connection._commit

    def fail_first() -> None:
        failure = next(waiting, None)
        if failure is not None:
            raise failure
        commit()

    monkeypatch.setattr(connection, "_commit", fail_first)


def test_a_commit_that_finds_the_database_busy_is_replayed(monkeypatch, pauses):
    failing_commits(monkeypatch, busy(), busy())
    body = Body()
    assert write("default", body) == "attempt-3"
    assert stored() == ["attempt-3"]


def test_a_commit_that_fails_otherwise_is_not_replayed(monkeypatch, pauses):
    failing_commits(monkeypatch, IntegrityError("a deferred constraint"))
    body = Body()
    with pytest.raises(IntegrityError):
        write("default", body)
    assert (body.calls, stored()) == (1, [])


def orphan() -> None:
    Run.unguarded.create(
        run_id="orphan",
        status="pending",
        created_at_ms=0,
        available_at_ms=0,
        state_json="{}",
        parent_run_id="nobody",
    )


def test_a_constraint_that_the_commit_finds_broken_undoes_the_write(pauses):
    # The foreign key is deferred on both databases.
    with pytest.raises(IntegrityError):
        write("default", orphan)
    assert stored() == []
    assert pauses == []
    insert("afterwards")
    assert stored() == ["afterwards"]


# --- SQLite's write lock --------------------------------------------------------------


@pytest.mark.sqlite("has one lock for all writers")
@pytest.mark.parametrize("mode", ["DEFERRED", "IMMEDIATE"])
def test_the_write_lock_is_taken_before_the_body_begins(mode):
    def write_elsewhere() -> None:
        with pytest.raises(OperationalError, match="locked"):
            insert("elsewhere")

    with reopened(transaction_mode=mode, timeout=0):
        write("default", lambda: race(write_elsewhere))
    assert stored() == []


@pytest.mark.sqlite("has one lock for all writers")
@pytest.mark.parametrize("mode", ["DEFERRED", "IMMEDIATE"])
def test_a_write_that_never_gets_the_lock_is_reported_busy_after_the_last_attempt(mode, pauses):
    body = Body()
    with (
        reopened(transaction_mode=mode, timeout=0),
        write_lock_held_elsewhere(),
        pytest.raises(OperationalError, match="locked"),
    ):
        write("default", body)
    assert (body.calls, len(pauses)) == (0, MOST_ATTEMPTS - 1)


@pytest.mark.sqlite("has one lock for all writers")
@pytest.mark.parametrize("mode", ["DEFERRED", "IMMEDIATE"])
def test_a_write_gets_the_lock_on_the_attempt_after_it_was_let_go(mode, monkeypatch):
    with reopened(transaction_mode=mode, timeout=0):
        holder = write_lock_held_elsewhere()
        holder.__enter__()
        pauses = 0

        def let_go(_: float) -> None:
            nonlocal pauses
            pauses += 1
            if pauses == 2:
                holder.__exit__(None, None, None)

        monkeypatch.setattr(boundary.time, "sleep", let_go)
        write("default", Body())
        assert (stored(), pauses) == (["attempt-1"], 2)
