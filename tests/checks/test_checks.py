"""System checks: what manage.py check says before a run is lost over it."""

from typing import Any

import pytest
from django.core.checks import Error, Warning  # noqa: A004 - Django's own name
from django.db import connections
from django.db.utils import ConnectionHandler
from django.test import override_settings

from django_runstore import checks


def databases(monkeypatch: pytest.MonkeyPatch, **aliases: dict[str, Any]) -> None:
    """Put other databases in place of the configured ones; nothing connects to them."""
    engines = {"sqlite": "django.db.backends.sqlite3", "postgres": "django.db.backends.postgresql"}
    configured = {
        alias: {"NAME": alias, **options, "ENGINE": engines[options["ENGINE"]]}
        for alias, options in aliases.items()
    }
    monkeypatch.setattr(checks, "connections", ConnectionHandler(configured))


class RoutedTo:
    """A router that keeps the run store on one database."""

    def __init__(self, alias: str) -> None:
        self.alias = alias

    def allow_migrate(self, db: str, app_label: str, **_: object) -> bool | None:
        return db == self.alias if app_label == "runstore" else None


class TestSettings:
    @override_settings(
        RUNSTORE={"CLOCK": "django_runstore.clocks.SystemClock", "ARBITER": "os.path"}
    )
    def test_usable_settings_say_nothing(self):
        assert checks.check_settings() == []

    @override_settings(RUNSTORE={"POLL": 1, "LEASE": {"STALE_AFTER_MS": 2_000}})
    def test_each_fault_is_an_error_with_a_hint(self):
        messages = checks.check_settings()
        assert {message.id for message in messages} == {"runstore.E001"}
        assert all(isinstance(message, Error) and message.hint for message in messages)
        assert "'POLL'" in messages[0].msg

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("CLOCK", "nowhere.Clock"),
            ("ARBITER", "os.Nothing"),
            ("LIVENESS", ["nowhere.check"]),
            ("REDACTOR", "nowhere.redact"),
            ("EXPORTERS", ["nowhere.Exporter"]),
        ],
    )
    def test_path_that_leads_nowhere_is_an_error(self, key: str, value: object):
        with override_settings(RUNSTORE={"ARBITER": "os.path"} | {key: value}):
            (message,) = checks.check_settings()
        assert message.id == "runstore.E003"
        assert f"RUNSTORE['{key}']" in message.msg

    @override_settings(RUNSTORE={"ADMIN_REDACTOR": "django_runstore.nowhere.redact"})
    def test_a_redactor_of_the_admin_that_cannot_be_imported_is_an_error(self):
        (message,) = checks.check_settings()
        assert message.id == "runstore.E003"
        assert "ADMIN_REDACTOR" in message.msg

    @override_settings(RUNSTORE={"ADMIN_REDACTOR": 7})
    def test_a_redactor_of_the_admin_is_a_dotted_path_or_nothing(self):
        (message,) = checks.check_settings()
        assert "must be a dotted path or None" in message.msg

    @override_settings(RUNSTORE={"EXPORTERS": ["django_runstore.metrics.contract.SUCCESS"]})
    def test_an_exporter_that_cannot_be_made_is_an_error(self):
        (message,) = checks.check_settings()
        assert message.id == "runstore.E004"
        assert "'django_runstore.metrics.contract.SUCCESS'" in message.msg

    def test_the_exporters_of_this_package_are_usable(self):
        paths = [
            "django_runstore.metrics.logging.LoggingExporter",
            "django_runstore.metrics.opentelemetry.OpenTelemetryExporter",
            "django_runstore.metrics.prometheus.PrometheusExporter",
        ]
        with override_settings(RUNSTORE={"EXPORTERS": paths}):
            assert checks.check_settings() == []


class TestSqliteTransactions:
    def test_atomic_requests_without_immediate_is_an_error(self, monkeypatch):
        databases(monkeypatch, default={"ENGINE": "sqlite", "ATOMIC_REQUESTS": True})
        (message,) = checks.check_sqlite_transactions()
        assert isinstance(message, Error)
        assert (message.id, "IMMEDIATE" in str(message.hint)) == ("runstore.E002", True)

    def test_without_immediate_is_a_warning(self, monkeypatch):
        databases(monkeypatch, default={"ENGINE": "sqlite"})
        (message,) = checks.check_sqlite_transactions()
        assert isinstance(message, Warning)
        assert (message.id, "IMMEDIATE" in str(message.hint)) == ("runstore.W001", True)

    @pytest.mark.parametrize("mode", ["IMMEDIATE", "immediate", "EXCLUSIVE"])
    def test_transactions_that_take_the_write_lock_first_are_fine(self, monkeypatch, mode: str):
        options = {"transaction_mode": mode}
        databases(
            monkeypatch,
            default={"ENGINE": "sqlite", "ATOMIC_REQUESTS": True, "OPTIONS": options},
        )
        assert checks.check_sqlite_transactions() == []

    def test_deferred_is_not_enough(self, monkeypatch):
        options = {"transaction_mode": "DEFERRED"}
        databases(monkeypatch, default={"ENGINE": "sqlite", "OPTIONS": options})
        assert [message.id for message in checks.check_sqlite_transactions()] == ["runstore.W001"]

    def test_server_databases_are_not_asked(self, monkeypatch):
        databases(monkeypatch, default={"ENGINE": "postgres", "ATOMIC_REQUESTS": True})
        assert checks.check_sqlite_transactions() == []

    def test_only_databases_that_hold_the_run_store_are_asked(self, monkeypatch):
        databases(monkeypatch, default={"ENGINE": "sqlite"}, runs={"ENGINE": "sqlite"})
        with override_settings(DATABASE_ROUTERS=[RoutedTo("runs")]):
            (message,) = checks.check_sqlite_transactions()
        assert "'runs'" in message.msg


class TestTimeZone:
    @override_settings(USE_TZ=False)
    def test_local_datetimes_are_a_warning(self):
        (message,) = checks.check_time_zone()
        assert (type(message), message.id) == (Warning, "runstore.W002")

    @override_settings(USE_TZ=True)
    def test_aware_datetimes_are_fine(self):
        assert checks.check_time_zone() == []


def test_checks_open_no_connection(monkeypatch: pytest.MonkeyPatch):
    for alias in connections:
        monkeypatch.setattr(connections[alias], "connect", lambda: pytest.fail("connected"))
    checks.check_settings()
    checks.check_sqlite_transactions()
