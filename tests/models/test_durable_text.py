"""Text columns sort, compare and fit into indexes the same way on every database."""

import random

import pytest
from django.apps import apps
from django.db import connection

from django_runstore.models import JournalEntry, Run
from django_runstore.models.fields import DurableTextField
from django_runstore.services import RunStore
from django_runstore.testing import FakeClock

# Where a linguistic order, or one that ignores case or accents, would differ from the bytes.
WORDS = ["a", "B", "b", "A", "é", "e", "z", "Z", "-", "_", "a b", "ab", "a-b", "Ä", "ß", "字", "😀"]

# CJK that no compression makes smaller: 682 characters of three bytes and two more.
CHARACTERS = [chr(code) for code in range(0x4E00, 0x9FA5)]


def incompressible(seed: int, characters: int = 682) -> str:
    return "".join(random.Random(seed).sample(CHARACTERS, characters)) + "xx"


@pytest.fixture
def store(db):
    return RunStore(clock=FakeClock(0))


def test_ids_sort_by_their_bytes(store):
    for word in WORDS:
        store.create(word, "{}")
    found = list(Run.objects.order_by("run_id").values_list("run_id", flat=True))
    assert found == sorted(WORDS, key=str.encode)


@pytest.mark.parametrize("word", WORDS)
def test_ids_are_paged_by_their_bytes(store, word):
    for each in WORDS:
        store.create(each, "{}")
    found = set(Run.objects.filter(run_id__gt=word).values_list("run_id", flat=True))
    assert found == {each for each in WORDS if each.encode() > word.encode()}


def test_ids_that_look_alike_are_different_runs(store):
    # One letter, and the same letter written as two characters.
    composed, decomposed = "\u00e9", "e\u0301"
    for word in (composed, decomposed, "E", "e"):
        store.create(word, f'"{word}"')
    for word in (composed, decomposed, "E", "e"):
        assert store.get(word).state_json == f'"{word}"'


def test_lookups_by_prefix_and_part_work(store):
    for word in ("report-1", "report-2", "Report-3", "other"):
        store.create(word, "{}")
    assert Run.objects.filter(run_id__startswith="report-").count() == (
        # SQLite's LIKE takes no notice of the case of ASCII letters.
        3 if connection.vendor == "sqlite" else 2
    )
    assert Run.objects.filter(run_id__icontains="PORT").count() == 3


def test_the_longest_ids_fit_every_index_that_has_them(store):
    # Every index of the table at once: key, parent, lineage, queue, waiting.
    longest = [incompressible(seed) for seed in range(3)]
    parent, run_id, lineage = longest
    assert {len(text.encode()) for text in longest} == {2_048}
    queue, reason = incompressible(4, 170), incompressible(6, 170)
    assert {len(text.encode()) for text in (queue, reason)} == {512}
    store.create(parent, "{}")
    store.create(
        run_id,
        "{}",
        parent_run_id=parent,
        lineage_id=lineage,
        round_ordinal=2**53 - 1,
        queue=queue,
        handler=incompressible(5),
    )
    Run.unguarded.filter(pk=run_id).update(waiting_reason=reason, waiting_wake_at_ms=2**53 - 1)
    assert store.get(run_id).lineage_id == lineage


def test_the_longest_ids_fit_the_journals_keys(store):
    entry = {"run_id": incompressible(1), "companion": "run-store", "seq": 2**53 - 1}
    JournalEntry.unguarded.create(
        **entry,
        source_id=incompressible(2),
        source_hash=b"\xff" * 32,
        source_seq=2**53 - 1,
        emitted_at_ms=0,
        event_type=incompressible(3),
        payload_json="{}",
    )
    assert JournalEntry.objects.filter(**entry).count() == 1


@pytest.mark.postgres("the other one compares bytes anyway")
def test_every_id_column_has_the_collation_of_bytes(db):
    names = {
        (model._meta.db_table, field.column)
        for model in apps.get_app_config("runstore").get_models()
        for field in model._meta.concrete_fields
        if isinstance(getattr(field, "target_field", field), DurableTextField)
    }
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name FROM information_schema.columns "
            "WHERE table_name LIKE 'runstore\\_%%' AND collation_name = 'C'"
        )
        assert set(cursor.fetchall()) == names
    assert ("runstore_run", "parent_run_id") in names


@pytest.mark.postgres("Django makes pattern indexes there only")
def test_no_column_has_a_second_index_for_patterns(db):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexname FROM pg_indexes WHERE tablename LIKE 'runstore\\_%%' "
            "AND indexdef LIKE '%%pattern_ops%%'"
        )
        assert cursor.fetchall() == []
