"""``using``: several databases, with and without a router, each with its own runs and clock."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, connections, transaction
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from django_runstore import LivenessEvidence, OwnerId, RunNotFound, RunSnapshot, RunStore, Waiting
from django_runstore.clocks import clock_for
from django_runstore.handlers.registry import handler, registry
from django_runstore.models import JournalEntry, Run
from django_runstore.outcomes import Activated, Transitioned, Updated
from django_runstore.snapshots import OwnedTransition
from django_runstore.testing import FakeClock, Runner
from tests.db.horizon import await_other_databases

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "elsewhere"])

OWNER = OwnerId("host", 1, "nonce")
OTHER = OwnerId("host", 2, "nonce")
PENDING = RunSnapshot("pending")


class RunsElsewhere:
    """A project that keeps its runs in a database of their own."""

    def db_for_read(self, model: type, **_: object) -> str | None:
        return "elsewhere" if model._meta.app_label == "runstore" else None

    db_for_write = db_for_read


@pytest.fixture(scope="module")
def elsewhere(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A second database of the same kind, migrated, under an alias of its own."""
    alias, known = "elsewhere", connection.settings_dict
    if connection.vendor == "sqlite":
        name = str(tmp_path_factory.mktemp("elsewhere") / "database.sqlite3")
    else:
        name = f"{known['NAME']}_elsewhere"
    connections.settings[alias] = known | {"NAME": name}
    with django_db_blocker.unblock():
        if connection.vendor == "postgresql":
            execute(f'CREATE DATABASE "{name}"')
        call_command("migrate", database=alias, verbosity=0)
        yield alias
        connections[alias].close()
        del connections[alias], connections.settings[alias]
        if connection.vendor == "postgresql":
            execute(f'DROP DATABASE "{name}"')


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def whole_life(store: RunStore, run_id: str) -> list[str]:
    """Take one run through every operation there is; give the answers."""
    store.create("root", "{}", lineage_id=run_id, round_ordinal=0)
    store.create(run_id, "{}", parent_run_id="root", lineage_id=run_id, round_ordinal=1)
    answers = [store.claim(run_id, store.get(run_id), OWNER)]
    answers.append(store.abandon_claim(run_id, OWNER, answers[0].claimed_at_ms))
    answers.append(store.claim(run_id, PENDING, OWNER))
    answers.append(store.activate(run_id, OWNER, answers[-1].claimed_at_ms, PENDING))
    fence = answers[-1].fence
    answers += [
        store.heartbeat(run_id, OWNER, fence=fence),
        store.reconfirm(run_id, OWNER, fence=fence),
        store.heartbeat_many(OWNER, [(run_id, fence)])[run_id],
        store.save_progress(run_id, OWNER, fence=fence, progress_json="{}"),
        store.park(run_id, Waiting("timer"), OWNER, fence=fence),
        store.transition_owned(run_id, OWNER, "suspended", fence=fence, available_at_ms=None),
    ]
    assert store.waiting(run_id) == Waiting("timer")
    assert [each.run_id for each in store.waiting_runs()] == [run_id]
    answers.append(store.wake(run_id))
    claimed = store.claim_many(OWNER, 10)
    assert {each.run.run_id for each in claimed} == {"root", run_id}
    answers += [store.request_cancel("root"), store.request_cancel_lineage(run_id)]
    assert store.acknowledge_cancel(run_id, OWNER)
    assert [row.run_id for row in store.lineage(run_id)] == ["root", run_id]
    assert store.latest_round("root").run_id == run_id
    endings = [OwnedTransition(each.run.run_id, each.fence, "cancelled") for each in claimed]
    answers += store.transition_many(OWNER, endings).values()
    return [answer.code for answer in answers]


EXPECTED = [
    "claimed",
    "abandoned",
    "claimed",
    "activated",
    "updated",
    "updated",
    "updated",
    "updated",
    "parked",
    "transitioned",
    "woken",
    "cancel_requested",
    "cancel_requested",
    "transitioned",
    "transitioned",
]


def everything_in(alias: str) -> tuple[int, int]:
    return (Run.objects.using(alias).count(), JournalEntry.objects.using(alias).count())


def test_every_operation_stays_on_its_alias(elsewhere: str):
    with CaptureQueriesContext(connection) as on_default:
        store = RunStore(elsewhere)
        assert whole_life(store, "run") == EXPECTED
        await_other_databases(elsewhere)
        changed = {each.run_id for each in store.changes().changes if not each.deleted}
        assert changed == {"root", "run"}
        assert store.revision() > 2
        assert store.rotate_identity().identity == store.identity()
    assert [query["sql"] for query in on_default] == []
    assert RunStore().identity() != store.identity()
    assert everything_in("default") == (0, 0)
    assert everything_in(elsewhere) == (2, 4 + 1 + 4 + 2)


@pytest.mark.parametrize("alias", ["default", "elsewhere"])
def test_a_router_does_not_lead_a_store_away_from_its_alias(elsewhere: str, alias: str):
    with override_settings(DATABASE_ROUTERS=[RunsElsewhere()]):
        assert whole_life(RunStore(alias), "run") == EXPECTED
        assert Run.objects.count() == everything_in(elsewhere)[0]
    (other,) = {"default", elsewhere} - {alias}
    assert everything_in(other) == (0, 0)


def test_one_id_is_two_runs_in_two_databases(elsewhere: str):
    here, there = RunStore(), RunStore(elsewhere)
    for store in (here, there):
        store.create("run", "{}")
    assert here.claim_and_own("run", PENDING, OWNER) == Activated(1)
    assert there.claim_and_own("run", PENDING, OTHER) == Activated(1)
    assert here.heartbeat("run", OWNER, fence=1) == Updated()
    assert there.transition_owned("run", OTHER, "completed", fence=1) == Transitioned()
    assert (here.get("run").status, there.get("run").status) == ("running", "completed")


def test_takeovers_stay_on_their_alias(elsewhere: str):
    clock = FakeClock(0)
    store = RunStore(elsewhere, clock=clock)
    store.create("run", "{}")
    store.claim_and_own("run", PENDING, OWNER)
    clock.set(31_000)
    evidence = LivenessEvidence(OWNER, 31_000, "same-host-pid-dead")
    stolen = store.steal("run", store.get("run"), OTHER, None, evidence)
    assert store.activate("run", OTHER, stolen.claimed_at_ms, store.get("run")).code == "activated"
    assert everything_in("default") == (0, 0)


def test_a_block_on_one_alias_does_not_hold_the_writes_on_another(elsewhere: str):
    with transaction.atomic():
        RunStore().create("here", "{}")
        RunStore(elsewhere).create("there", "{}")
        transaction.set_rollback(True)
    with pytest.raises(RunNotFound):
        RunStore().get("here")
    assert RunStore(elsewhere).get("there").run_id == "there"


def test_each_alias_has_its_own_clock(elsewhere: str):
    assert clock_for("default") is not clock_for(elsewhere)
    assert clock_for(elsewhere) is RunStore(elsewhere).clock


def test_a_runner_executes_what_is_in_its_own_database(elsewhere, monkeypatch):
    monkeypatch.setattr(registry, "_handlers", {})
    echo = handler("tests.echo")(lambda run: run.step("only", lambda: run.state))
    here, there = echo.submit("here"), echo.submit("there", using=elsewhere)

    report = Runner(elsewhere).run_until_idle(raise_errors=True)

    assert [execution.run_id for execution in report.executions] == [there.run_id]
    assert (here.status, there.result()) == ("pending", "there")
