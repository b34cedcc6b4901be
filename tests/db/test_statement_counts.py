"""How many statements each operation costs: a change of these numbers is a decision."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from django_runstore import InvalidRun, Journal, RunSnapshot, Waiting
from django_runstore.snapshots import OwnedTransition, RunNote
from tests.conformance.journal.sample import event
from tests.conformance.world import A, B, P, World, fresh_evidence, running

pytestmark = pytest.mark.django_db(transaction=True)

# BEGIN and COMMIT.
BLOCK = 2
# SQLite's write lock.
LOCK = {"sqlite": 1, "postgresql": 0}
# The isolation level and the lock timeout of a pulse.
PULSE = {"sqlite": 0, "postgresql": 2}


@dataclass
class Case:
    """
    One operation, what comes before it, and its statements beside block and lock.

    ``limits`` are those that are set in a block of its own alone.
    """

    before: Callable[[World], object]
    operation: Callable[[World], object]
    statements: int
    limits: int = 0


def nothing(world: World) -> None:
    """A store with no run."""


def pending(world: World) -> None:
    world.pending()


def two_rounds(world: World) -> None:
    world.pending("a", lineage_id="line", round_ordinal=0)
    world.pending("b", lineage_id="line", round_ordinal=1)


def thirty(world: World) -> None:
    for number in range(30):
        world.pending(f"run-{number:02}")


def thirty_owned(world: World) -> None:
    thirty(world)
    world.store.claim_many(A, 30)


def stale(world: World) -> RunSnapshot:
    seen = world.active(A)
    world.clock.set(31_000)
    return seen


PAIRS = [(f"run-{number:02}", 1) for number in range(30)]


def settlements(note: RunNote | None = None) -> list[OwnedTransition]:
    return [OwnedTransition(run_id, fence, "completed", note=note) for run_id, fence in PAIRS]


LOCK_ROW, WRITE_ROW, FACTS, NOTE = 1, 1, 1, 1
TAKE = LOCK_ROW + WRITE_ROW + FACTS
# Where the stream ends, and the entry; a known identity is looked up before.
ENDS, ENTRY, KNOWN = 1, 1, 1
# NOTIFY, and the lock of a stream without a row.
NOTICE = {"sqlite": 0, "postgresql": 1}[connection.vendor]
LOCK_LIMIT = {"sqlite": 0, "postgresql": 1}[connection.vendor]
LOCK_STREAM = {"sqlite": 0, "postgresql": 1}[connection.vendor]
FLOOR = 1


def journal_of(world: World) -> Journal:
    return Journal(clock=world.clock, arbiter=world.arbiter)


def emitted(world: World) -> None:
    world.active(A)
    for number in range(3):
        journal_of(world).emit_durable(event(source_seq=number), A)


def folded(world: World) -> None:
    emitted(world)
    journal_of(world).checkpoint("run", 2, {}, A)


WRITES = {
    "create": Case(nothing, lambda w: w.store.create("run", "{}"), 1 + NOTICE),
    "create for later": Case(
        nothing, lambda w: w.store.create("run", "{}", available_at_ms=10**12), 1
    ),
    "create a child": Case(
        pending, lambda w: w.store.create("child", "{}", parent_run_id="run"), 1 + 1 + NOTICE
    ),
    "request_cancel": Case(pending, lambda w: w.store.request_cancel("run", 5), 1 + NOTICE),
    "request_cancel of nobody": Case(nothing, lambda w: w.store.request_cancel("run", 5), 1 + 1),
    "request_cancel_lineage": Case(
        two_rounds, lambda w: w.store.request_cancel_lineage("a", 5), 1 + NOTICE
    ),
    "acknowledge_cancel": Case(
        lambda w: (w.active(A), w.store.request_cancel("run", 5)),
        lambda w: w.store.acknowledge_cancel("run", A, 5),
        LOCK_ROW + WRITE_ROW,
    ),
    "claim": Case(pending, lambda w: w.store.claim("run", P, A, 0), TAKE),
    "claim that loses": Case(nothing, lambda w: w.store.claim("run", P, A, 0), LOCK_ROW),
    "claim_and_own": Case(pending, lambda w: w.store.claim_and_own("run", P, A, 0), TAKE),
    "activate": Case(lambda w: w.claimed(A), lambda w: w.store.activate("run", A, 0, P), TAKE),
    "abandon_claim": Case(
        lambda w: w.claimed(A), lambda w: w.store.abandon_claim("run", A, 0), TAKE
    ),
    "recover_claim": Case(
        lambda w: (w.claimed(A), w.clock.set(31_000)),
        lambda w: w.store.recover_claim("run", A, 0, B, None, fresh_evidence(A, B, 31_000)),
        TAKE,
    ),
    "steal": Case(stale, lambda w: w.steal(B, running(A, 0)), TAKE),
    "heartbeat": Case(
        lambda w: w.active(A), lambda w: w.store.heartbeat("run", A, 5), LOCK_ROW + WRITE_ROW
    ),
    "reconfirm": Case(
        lambda w: w.active(A), lambda w: w.store.reconfirm("run", A, 5), LOCK_ROW + WRITE_ROW
    ),
    "save_progress": Case(
        lambda w: w.active(A),
        lambda w: w.store.save_progress("run", A, fence=1, progress_json="{}", state_json="1"),
        LOCK_ROW + WRITE_ROW,
    ),
    "transition_owned to running": Case(
        lambda w: w.active(A),
        lambda w: w.store.transition_owned("run", A, "running", "1"),
        LOCK_ROW + WRITE_ROW,
    ),
    "transition_owned to completed": Case(
        lambda w: w.active(A), lambda w: w.store.transition_owned("run", A, "completed"), TAKE
    ),
    "park": Case(
        lambda w: w.active(A),
        lambda w: w.store.park("run", Waiting("timer", 5), A, fence=1),
        LOCK_ROW + WRITE_ROW,
    ),
    "park that loses": Case(
        lambda w: w.active(A), lambda w: w.store.park("run", Waiting("timer"), B), LOCK_ROW
    ),
    "wake": Case(
        lambda w: (w.active(A), w.store.park("run", Waiting("timer"), A)),
        lambda w: w.store.wake("run"),
        LOCK_ROW + WRITE_ROW,
    ),
    "wake of one awake": Case(pending, lambda w: w.store.wake("run"), LOCK_ROW),
    "claim_many of 30": Case(thirty, lambda w: w.store.claim_many(A, 30), TAKE, LOCK_LIMIT),
    "claim_many of nothing": Case(
        nothing, lambda w: w.store.claim_many(A, 30), LOCK_ROW, LOCK_LIMIT
    ),
    "transition_many of 30": Case(
        thirty_owned,
        lambda w: w.store.transition_many(A, settlements()),
        LOCK_ROW + 30 * WRITE_ROW + FACTS,
    ),
    "transition_many of 30 with notes": Case(
        thirty_owned,
        lambda w: w.store.transition_many(A, settlements(RunNote("seen", {}))),
        LOCK_ROW + 30 * WRITE_ROW + FACTS + NOTE,
    ),
    "emit_durable": Case(
        lambda w: w.active(A),
        lambda w: journal_of(w).emit_durable(event(), A),
        LOCK_ROW + ENDS + WRITE_ROW + ENTRY + NOTICE,
    ),
    "emit_durable with a number": Case(
        lambda w: w.active(A),
        lambda w: journal_of(w).emit_durable(event(source_seq=9), A),
        LOCK_ROW + KNOWN + ENDS + WRITE_ROW + ENTRY + NOTICE,
    ),
    "emit_durable of a duplicate": Case(
        emitted, lambda w: journal_of(w).emit_durable(event(source_seq=1), A), LOCK_ROW + KNOWN
    ),
    "emit_durable_unfenced": Case(
        lambda w: w.active(A),
        lambda w: journal_of(w).emit_durable_unfenced(event(companion="audit")),
        LOCK_ROW + ENDS + ENTRY + NOTICE,
    ),
    "emit_durable_unfenced of a duplicate": Case(
        emitted, lambda w: journal_of(w).emit_durable_unfenced(event(source_seq=1)), KNOWN
    ),
    "emit_durable_unfenced for nobody": Case(
        nothing,
        lambda w: journal_of(w).emit_durable_unfenced(event()),
        LOCK_ROW + LOCK_STREAM + ENDS + ENTRY + NOTICE,
    ),
    "checkpoint": Case(
        emitted,
        lambda w: journal_of(w).checkpoint("run", 2, {}, A),
        LOCK_ROW + FLOOR + ENTRY + WRITE_ROW,
    ),
    # The checkpoint, a batch read, kept, deleted and an empty one read; older checkpoints and
    # this one.
    "compact": Case(folded, lambda w: journal_of(w).compact("run", A), LOCK_ROW + 1 + 4 + 2),
}
READS = {
    "get": lambda w: w.store.get("a"),
    "lineage": lambda w: w.store.lineage("a"),
    "latest_round": lambda w: w.store.latest_round("a"),
    "waiting": lambda w: w.store.waiting("a"),
    "waiting_runs": lambda w: w.store.waiting_runs(),
    "changes": lambda w: w.store.changes(),
    "identity": lambda w: w.store.identity(),
    "revision": lambda w: w.store.revision(),
}


def statements_of(action: Callable[[], object]) -> list[str]:
    with CaptureQueriesContext(connection) as queries:
        action()
    return [query["sql"] for query in queries]


@pytest.mark.parametrize("name", WRITES)
def test_a_write_costs_a_block_and_its_statements(name):
    case, world = WRITES[name], World()
    case.before(world)
    made = statements_of(lambda: case.operation(world))
    expected = BLOCK + LOCK[connection.vendor] + case.limits + case.statements
    assert len(made) == expected, made


@pytest.mark.parametrize("name", WRITES)
def test_in_a_callers_block_a_write_costs_a_savepoint_instead(name):
    case, world = WRITES[name], World()
    case.before(world)
    with transaction.atomic():
        made = statements_of(lambda: case.operation(world))
    assert len(made) == BLOCK + LOCK[connection.vendor] + case.statements, made


@pytest.mark.parametrize("name", READS)
def test_a_read_is_one_statement_without_a_block(name):
    world = World()
    two_rounds(world)
    assert len(statements_of(lambda: READS[name](world))) == 1


def test_a_pulse_for_many_runs_is_one_statement_in_a_block():
    world = World()
    thirty_owned(world)
    made = statements_of(lambda: world.store.heartbeat_many(A, PAIRS, 5))
    assert len(made) == BLOCK + LOCK[connection.vendor] + PULSE[connection.vendor] + 1, made


def test_a_pulse_asks_once_more_about_all_runs_it_did_not_renew():
    world = World()
    thirty_owned(world)
    world.store.transition_many(A, settlements()[:20])
    made = statements_of(lambda: world.store.heartbeat_many(A, PAIRS, 5))
    assert len(made) == BLOCK + LOCK[connection.vendor] + PULSE[connection.vendor] + 2, made


def test_evidence_that_is_missing_is_asked_for_without_a_write():
    world = World()
    seen = stale(world)
    assert len(statements_of(lambda: world.store.claim_and_own("run", seen, B))) == 1


def test_an_argument_that_is_refused_costs_no_statement():
    world = World()

    def refused() -> None:
        with pytest.raises(InvalidRun):
            world.store.claim("run", P, A, -1)

    assert statements_of(refused) == []


def test_no_statement_under_the_lock_reads_the_state():
    world = World()
    world.active(A)
    made = statements_of(lambda: world.store.heartbeat("run", A, 5))
    made += statements_of(lambda: world.store.transition_owned("run", A, "completed"))
    assert not [each for each in made if "state_json" in each]
