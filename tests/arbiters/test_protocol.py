"""Which arbiter a store gets."""

import pytest
from django.test import override_settings

from django_runstore import RunStore
from django_runstore.arbiters import DatabaseArbiter, LocalArbiter, NullArbiter, arbiter_for


def test_the_row_is_the_lease_unless_something_else_is_asked_for():
    assert isinstance(RunStore().arbiter, DatabaseArbiter)


def test_all_services_over_an_alias_share_one_arbiter():
    with override_settings(RUNSTORE={"ARBITER": "django_runstore.arbiters.LocalArbiter"}):
        shared = RunStore().arbiter
        assert isinstance(shared, LocalArbiter)
        assert RunStore().arbiter is shared
        assert arbiter_for("default") is shared
        assert arbiter_for("other") is not shared


def test_a_changed_setting_is_followed():
    store = RunStore()
    for name, kind in (("NullArbiter", NullArbiter), ("LocalArbiter", LocalArbiter)):
        with override_settings(RUNSTORE={"ARBITER": f"django_runstore.arbiters.{name}"}):
            assert isinstance(store.arbiter, kind)
    assert isinstance(store.arbiter, DatabaseArbiter)


def test_an_arbiter_given_to_a_store_is_its_own():
    mine = NullArbiter()
    assert RunStore(arbiter=mine).arbiter is mine


def test_a_path_that_leads_nowhere_is_refused():
    with (
        override_settings(RUNSTORE={"ARBITER": "django_runstore.arbiters.Nobody"}),
        pytest.raises(ImportError),
    ):
        _ = RunStore().arbiter
