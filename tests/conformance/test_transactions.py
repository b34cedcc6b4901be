"""Spec 10.4: row and facts commit or roll back together, also with a caller's transaction."""

from unittest import mock

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.http import HttpRequest, HttpResponse

from django_runstore import RunConstraint, RunNotFound, RunPersistenceFailed
from django_runstore.services import core
from tests.conformance.calls import CALLS
from tests.conformance.raw import failing_updates_of, update_raw
from tests.conformance.world import SUSPENDED, A, B, P, World, fresh_evidence, running, tables

SETUPS = {
    "claim": lambda world: world.pending(),
    "claim_and_own": lambda world: world.active(A),
    "steal": lambda world: world.active(A),
    "activate": lambda world: world.claimed(A),
    "abandon_claim": lambda world: world.claimed(A),
    "recover_claim": lambda world: world.claimed(A),
    "transition_owned": lambda world: world.active(A),
}
GRANTED = {
    "claim": {},
    "claim_and_own": {},
    "steal": {},
    "activate": {},
    "abandon_claim": {},
    "recover_claim": {},
    "transition_owned": {"to_status": "completed"},
}
LATER = {"claim_and_own", "steal", "recover_claim"}


def granted(world: World, operation: str):
    """Bring about an operation that succeeds and appends a fact."""
    SETUPS[operation](world)
    arguments = dict(GRANTED[operation])
    if operation in LATER:
        world.clock.set(31_000)
        arguments |= {"now_ms": 31_000, "evidence": fresh_evidence(A, B, 31_000)}
    return lambda: CALLS[operation].on(world.store, **arguments)


@pytest.mark.parametrize("operation", SETUPS)
def test_an_operation_whose_fact_cannot_be_appended_changes_nothing(
    database_world: World, operation
):
    perform = granted(database_world, operation)
    before = tables()
    failing = mock.patch.object(core, "append_facts", side_effect=DatabaseError("disk"))
    with failing, pytest.raises(RunPersistenceFailed) as caught:
        perform()
    assert caught.value.operation == operation
    assert tables() == before


@pytest.mark.parametrize("operation", SETUPS)
def test_an_operation_whose_row_cannot_be_written_leaves_no_fact(database_world: World, operation):
    perform = granted(database_world, operation)
    before = tables()
    with failing_updates_of("run"), pytest.raises(RunConstraint):
        perform()
    assert tables() == before


@pytest.mark.parametrize("operation", SETUPS)
def test_an_operation_rolls_back_with_the_block_around_it(database_world: World, operation):
    perform = granted(database_world, operation)
    before = tables()
    with transaction.atomic():
        perform()
        assert tables() != before
        transaction.set_rollback(True)
    assert tables() == before


def test_create_is_part_of_the_callers_transaction(database_world: World):
    with transaction.atomic():
        database_world.pending()
        transaction.set_rollback(True)
    with pytest.raises(RunNotFound):
        database_world.store.get("run")


def test_a_failed_operation_is_undone_by_its_own_savepoint(database_world: World):
    database_world.pending("taken")
    with transaction.atomic():
        database_world.pending("before")
        with pytest.raises(RunConstraint):
            database_world.pending("taken")
        database_world.pending("after")
    assert database_world.store.get("before").run_id == "before"
    assert database_world.store.get("after").run_id == "after"


def test_inside_a_block_an_operation_is_a_savepoint(database_world: World):
    database_world.pending()
    depths: list[int] = []

    def note_depth(*_: object) -> None:
        depths.append(depth())

    with transaction.atomic():
        outer = depth()
        noting = mock.patch.object(core, "append_facts", side_effect=note_depth)
        with noting:
            database_world.store.claim("run", P, A, 0)
    assert depths == [outer + 1]


def depth() -> int:
    return len(connection.savepoint_ids)


def test_a_block_that_broke_before_is_named_and_not_what_broke_it(database_world: World):
    database_world.pending()
    with transaction.atomic():
        with pytest.raises(IntegrityError), transaction.atomic(savepoint=False):
            update_raw("run", status="paused")
        with pytest.raises(RunPersistenceFailed, match="leave it before using the store") as caught:
            database_world.store.claim("run", P, A, 0)
    assert caught.value.detail["cause"] == "unknown"


@pytest.mark.django_db(transaction=True)
def test_callbacks_run_once_after_the_outermost_commit():
    world, called = World(), []
    world.pending()
    with transaction.atomic():
        with transaction.atomic():
            world.store.claim("run", P, A, 0)
            transaction.on_commit(lambda: called.append("inner"))
        assert called == []
    assert called == ["inner"]


@pytest.mark.django_db(transaction=True)
def test_a_view_under_atomic_requests_takes_its_runs_with_it():
    world = World()

    @transaction.atomic
    def view(request: HttpRequest) -> HttpResponse:
        world.pending("of-the-request")
        world.store.claim_and_own("of-the-request", P, A, 0)
        if request.method == "POST":
            raise ValueError("the view failed")
        return HttpResponse("ok")

    failing, working = HttpRequest(), HttpRequest()
    failing.method, working.method = "POST", "GET"
    with pytest.raises(ValueError, match="the view failed"):
        view(failing)
    assert tables() == ([], [])
    view(working)
    assert world.store.get("of-the-request").snapshot == running(A, 0)
    assert world.fact_names("of-the-request") == ["claimed", "activated"]


@pytest.mark.django_db(transaction=True)
def test_a_read_before_a_write_in_one_block_is_no_trouble():
    world = World()
    world.pending()
    with transaction.atomic():
        seen = world.store.get("run")
        assert world.store.claim_and_own("run", seen, A, 0).code == "activated"
        world.store.transition_owned("run", A, "suspended")
        assert world.store.get("run").snapshot == SUSPENDED


@pytest.mark.django_db(transaction=True)
def test_outside_a_block_each_operation_is_committed_when_it_returns():
    world = World()
    world.pending()
    world.store.claim("run", P, A, 0)
    assert not connection.in_atomic_block
    fresh = connection.copy()
    try:
        with fresh.cursor() as cursor:
            cursor.execute("SELECT claim_host_id FROM runstore_run WHERE run_id = 'run'")
            assert cursor.fetchone() == (A.host_id,)
    finally:
        fresh.close()
