"""``manage.py check --database``: whether changes of runs are counted and can be followed."""

from io import StringIO

import pytest
from django.core.checks import Tags
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.test import override_settings

from django_runstore.checks import check_revisions
from tests.db.trigger_states import (
    identity_gone,
    names_of_triggers,
    table_hidden,
    triggers_off,
)

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_migrated_database_is_fine():
    assert check_revisions(databases=["default"]) == []


def test_missing_triggers_are_named_with_a_way_to_get_them_back():
    with triggers_off():
        (message,) = check_revisions(databases=["default"])
        assert message.id == "runstore.W003"
        assert all(name in message.msg for name in names_of_triggers())
        assert "django_runstore.db.operations.InstallTriggers()" in str(message.hint)
        assert "runstore_rotate_identity --database default" in str(message.hint)


def test_it_runs_with_the_database_checks_only():
    with triggers_off(), pytest.raises(SystemCheckError, match=r"runstore\.W003"):
        call_command("check", databases=["default"], tags=[Tags.database], fail_level="WARNING")
    with triggers_off():
        assert check_revisions() == []
        assert check_revisions(databases=None) == []


def test_it_does_not_keep_migrate_from_running():
    with triggers_off():
        call_command("migrate", verbosity=0, stdout=StringIO(), stderr=StringIO())


def test_a_lost_identity_is_named_with_the_command_that_makes_one():
    with identity_gone():
        (message,) = check_revisions(databases=["default"])
    assert message.id == "runstore.W004"
    assert "runstore_rotate_identity" in str(message.hint)


def test_a_database_without_the_tables_has_nothing_to_check():
    with table_hidden("runstore_store_identity"):
        assert check_revisions(databases=["default"]) == []


def test_a_database_that_holds_no_runs_is_not_asked():
    class Elsewhere:
        def allow_migrate(self, db: str, app_label: str, **_: object) -> bool | None:
            return False if app_label == "runstore" else None

    with triggers_off(), override_settings(DATABASE_ROUTERS=[Elsewhere()]):
        assert check_revisions(databases=["default"]) == []
