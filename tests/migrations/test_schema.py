"""What the migrations leave: tables, indexes and the checks of ownership. Spec: run-store 2."""

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction

from django_runstore.models import Run, StoreIdentity
from django_runstore.testing.factories import RunFactory

OWNER = {
    "owner_host_id": "host",
    "owner_pid": 0,
    "owner_nonce": "nonce",
    "heartbeat_at_ms": 0,
}


@pytest.mark.conformance(205, "D6")
def test_migrating_again_changes_nothing(db):
    # D6: ordinary migrations, so their names and numbers are Django's.
    identity = StoreIdentity.objects.get().identity
    call_command("migrate", verbosity=0)
    assert StoreIdentity.objects.get().identity == identity


@pytest.mark.conformance(205, "D3")
def test_every_table_is_there(db):
    tables = {model._meta.db_table for model in apps.get_app_config("runstore").get_models()}
    assert tables >= {
        "runstore_run",
        "runstore_attempt",
        "runstore_store_identity",
        "runstore_run_tombstone",
        "runstore_journal_entry",
        "runstore_journal_checkpoint",
        "runstore_journal_dedup",
        "runstore_journal_generation",
    }
    assert set(connection.introspection.table_names()) >= tables


@pytest.mark.conformance(205)
def test_every_index_is_there_and_that_of_the_lineage_is_unique(db):
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, "runstore_run")
    wanted = {index.name for index in Run._meta.indexes}
    assert {name for name, each in found.items() if each["index"]} >= wanted
    lineage = found["runstore_run_lineage_round"]
    assert (lineage["columns"], lineage["unique"]) == (["lineage_id", "round_ordinal"], True)


@pytest.mark.conformance(205)
@pytest.mark.parametrize("missing", OWNER)
def test_a_running_row_that_misses_a_column_of_its_owner_is_refused(db, missing):
    with pytest.raises(IntegrityError), transaction.atomic():
        RunFactory.raw(status="running", **{**OWNER, missing: None})


@pytest.mark.conformance(205)
def test_a_running_row_with_its_owner_is_accepted(db):
    assert RunFactory.raw(status="running", **OWNER).status == "running"
