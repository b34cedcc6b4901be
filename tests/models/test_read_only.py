"""The ORM is for reading: every write past the services is refused and says where to go."""

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction

from django_runstore import RunStore
from django_runstore.models import JournalEntry, Run
from django_runstore.outcomes import Claimed
from django_runstore.owners import OwnerId
from django_runstore.read_only import ReadOnlyModelError
from django_runstore.snapshots import RunSnapshot
from django_runstore.testing import FakeClock

ROW = {"run_id": "new", "status": "pending", "created_at_ms": 0, "state_json": "{}"}
A = OwnerId("host", 1, "nonce")


@pytest.fixture
def run(db):
    store = RunStore(clock=FakeClock(0))
    store.create("run", "{}")
    store.create("child", "{}", parent_run_id="run")
    assert store.claim("run", RunSnapshot("pending"), A, 0) == Claimed(0, 1)
    return Run.objects.get(pk="run")


def awaited(method, *args, **kwargs):
    async def call():
        return await method(*args, **kwargs)

    return async_to_sync(call)()


QUERYSET_WRITES = {
    "create": lambda rows: rows.create(**ROW),
    "bulk_create": lambda rows: rows.bulk_create([Run(**ROW)]),
    "bulk_create with conflicts": lambda rows: rows.bulk_create(
        [Run(**ROW)], ignore_conflicts=True
    ),
    "bulk_update": lambda rows: rows.bulk_update(list(rows.all()), ["status"]),
    "get_or_create": lambda rows: rows.get_or_create(run_id="run"),
    "get_or_create of a new row": lambda rows: rows.get_or_create(run_id="new", defaults=ROW),
    "update_or_create": lambda rows: rows.update_or_create(run_id="run", defaults={"queue": "x"}),
    "update": lambda rows: rows.update(status="completed"),
    "update of a slice": lambda rows: rows.filter(pk="run").update(queue="x"),
    "delete": lambda rows: rows.all().delete(),
    "delete of none": lambda rows: rows.none().delete(),
    "_raw_delete": lambda rows: rows.all()._raw_delete("default"),
    "acreate": lambda rows: awaited(rows.acreate, **ROW),
    "aupdate": lambda rows: awaited(rows.aupdate, queue="x"),
    "adelete": lambda rows: awaited(rows.all().adelete),
    "abulk_create": lambda rows: awaited(rows.abulk_create, [Run(**ROW)]),
    "abulk_update": lambda rows: awaited(rows.abulk_update, list(rows.all()), ["queue"]),
    "aget_or_create": lambda rows: awaited(rows.aget_or_create, run_id="run"),
    "aupdate_or_create": lambda rows: awaited(rows.aupdate_or_create, run_id="run"),
}
MANAGERS = {
    "objects": lambda: Run.objects,
    "the default manager": lambda: Run._default_manager,
    "the base manager": lambda: Run._base_manager,
    "a reporting query": Run.objects.live,
    "another alias": lambda: Run.objects.using("default"),
}


def unchanged(run, write):
    before = list(Run.objects.order_by("pk").values())
    refused = pytest.raises(ReadOnlyModelError, match=r"written by django_runstore\.RunStore")
    # The block is there because related managers break the one around them.
    with refused, transaction.atomic():
        write()
    assert list(Run.objects.order_by("pk").values()) == before


@pytest.mark.parametrize("manager", MANAGERS.values(), ids=MANAGERS)
@pytest.mark.parametrize("write", QUERYSET_WRITES.values(), ids=QUERYSET_WRITES)
def test_a_queryset_does_not_write(run, manager, write):
    unchanged(run, lambda: write(manager()))


INSTANCE_WRITES = {
    "save": lambda run: run.save(),
    "save of some fields": lambda run: run.save(update_fields=["queue"]),
    "forced insert": lambda _: Run(**ROW).save(force_insert=True),
    "delete": lambda run: run.delete(),
    "asave": lambda run: awaited(run.asave),
    "adelete": lambda run: awaited(run.adelete),
}


@pytest.mark.parametrize("write", INSTANCE_WRITES.values(), ids=INSTANCE_WRITES)
def test_an_instance_does_not_write(run, write):
    run.queue = "changed"
    unchanged(run, lambda: write(run))


RELATED_WRITES = {
    "create": lambda run: run.children.create(**ROW),
    "get_or_create": lambda run: run.children.get_or_create(run_id="new", defaults=ROW),
    "update_or_create": lambda run: run.children.update_or_create(run_id="child"),
    "add": lambda run: run.children.add(Run.objects.get(pk="child")),
    "add of a new one": lambda run: run.children.add(Run(**ROW), bulk=False),
    "remove": lambda run: run.children.remove(Run.objects.get(pk="child")),
    "remove one by one": lambda run: run.children.remove(Run.objects.get(pk="child"), bulk=False),
    "clear": lambda run: run.children.clear(),
    "clear one by one": lambda run: run.children.clear(bulk=False),
    "set": lambda run: run.children.set([]),
    "update": lambda run: run.children.update(queue="x"),
    "delete": lambda run: run.children.all().delete(),
}


@pytest.mark.parametrize("write", RELATED_WRITES.values(), ids=RELATED_WRITES)
def test_a_related_manager_does_not_write(run, write):
    unchanged(run, lambda: write(run))


def test_children_can_be_read(run):
    assert [child.run_id for child in run.children.live()] == ["child"]


@pytest.mark.parametrize(
    "write",
    [
        lambda: JournalEntry.objects.create(run_id="x"),
        lambda: JournalEntry.objects.update(event_type="x"),
        lambda: JournalEntry.objects.all().delete(),
        lambda: JournalEntry.objects.bulk_create([]),
        lambda: JournalEntry.objects.get().save(),
        lambda: JournalEntry.objects.get().delete(),
    ],
    ids=["create", "update", "delete", "bulk_create", "save", "delete one"],
)
def test_the_journal_is_read_only_too(run, write):
    with pytest.raises(ReadOnlyModelError):
        write()
    assert JournalEntry.objects.get().event_type == "runstore.ownership.claimed"


def test_a_template_cannot_write_either():
    for method in (Run.save, Run.delete, type(Run.objects.all()).delete):
        assert method.alters_data is True


def test_a_refusal_names_the_operation_and_where_to_go(run):
    with pytest.raises(ReadOnlyModelError) as caught:
        run.save()
    assert str(caught.value) == (
        "Run.save is refused: Run rows are written by django_runstore.RunStore"
    )
