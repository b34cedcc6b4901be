"""One typed settings object that follows overrides and refuses what it does not understand."""

import dataclasses
import inspect
import os
import tempfile
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from django_runstore import conf
from django_runstore.conf import RunstoreSettings, current, problems
from django_runstore.durations import LeaseDurations


@override_settings(RUNSTORE={})
def test_defaults_need_no_settings_at_all():
    assert current() == RunstoreSettings()


@override_settings(RUNSTORE={})
def test_default_runtime_folder_belongs_to_one_user():
    assert current().runtime_dir == Path(tempfile.gettempdir()) / f"django-runstore-{os.getuid()}"


def test_every_key_is_read():
    chosen = {
        "LEASE": {
            "HEARTBEAT_INTERVAL_MS": 200,
            "STALE_AFTER_MS": 3_000,
            "SKEW_ALLOWANCE_MS": 1_000,
        },
        "CLOCK": "django_runstore.clocks.SystemClock",
        "ARBITER": "shop.Arbiter",
        "LIVENESS": ["shop.checks.one", "shop.checks.two"],
        "POLL_INTERVAL_MS": 50,
        "IDLE_POLL_INTERVAL_MS": 70,
        "NOTICES": False,
        "STOP_GRACE_MS": 0,
        "MAX_RECOVERIES": 0,
        "RUNTIME_DIR": "/run/shop",
        "REDACTOR": "shop.redact",
        "EXPORTERS": ["shop.Exporter"],
        "ADMIN_SHOWS_STATE": False,
    }
    with override_settings(RUNSTORE=chosen):
        assert current() == RunstoreSettings(
            lease=LeaseDurations(200, 3_000, 1_000),
            clock="django_runstore.clocks.SystemClock",
            arbiter="shop.Arbiter",
            liveness=("shop.checks.one", "shop.checks.two"),
            poll_interval_ms=50,
            idle_poll_interval_ms=70,
            notices=False,
            stop_grace_ms=0,
            max_recoveries=0,
            runtime_dir=Path("/run/shop"),
            redactor="shop.redact",
            exporters=("shop.Exporter",),
            admin_shows_state=False,
        )


def test_every_attribute_can_be_set_and_is_documented():
    source = inspect.getsource(RunstoreSettings)
    for field in dataclasses.fields(RunstoreSettings):
        key = field.name.upper()
        assert conf._KEYS[key].attribute == field.name
        assert f'"""{key}: ' in source
    assert len(conf._KEYS) == len(dataclasses.fields(RunstoreSettings))


def test_override_is_followed_and_taken_back():
    with override_settings(RUNSTORE={"POLL_INTERVAL_MS": 10}):
        inside = current().poll_interval_ms
    assert (inside, current().poll_interval_ms) == (10, RunstoreSettings().poll_interval_ms)


def test_settings_object_is_built_once():
    assert current() is current()


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        ([], "RUNSTORE must be a dict, not list."),
        ({"POLL": 1}, "RUNSTORE has no key 'POLL'."),
        ({"LEASE": 5}, "RUNSTORE['LEASE'] must be a dict, not int."),
        ({"LEASE": {"STALE_AFTER": 1}}, "RUNSTORE['LEASE'] has no key 'STALE_AFTER'."),
        ({"LEASE": {"STALE_AFTER_MS": 30.0}}, "RUNSTORE['LEASE']['STALE_AFTER_MS'] must be"),
        ({"LEASE": {"STALE_AFTER_MS": 2_000}}, "RUNSTORE['LEASE']: STALE_AFTER_MS (2000)"),
        ({"LEASE": {"SKEW_ALLOWANCE_MS": 0}}, "RUNSTORE['LEASE']: SKEW_ALLOWANCE_MS must be"),
        ({"CLOCK": "clock"}, "RUNSTORE['CLOCK'] must be a dotted path or None, not str."),
        ({"ARBITER": None}, "RUNSTORE['ARBITER'] must be a dotted path, not NoneType."),
        ({"ARBITER": "a..b"}, "RUNSTORE['ARBITER'] must be a dotted path, not str."),
        ({"LIVENESS": "a.b"}, "RUNSTORE['LIVENESS'] must be a list of dotted paths, not str."),
        ({"LIVENESS": [1]}, "RUNSTORE['LIVENESS'] must be a list of dotted paths, not list."),
        ({"POLL_INTERVAL_MS": 0}, "RUNSTORE['POLL_INTERVAL_MS'] must be"),
        ({"POLL_INTERVAL_MS": True}, "RUNSTORE['POLL_INTERVAL_MS'] must be"),
        ({"STOP_GRACE_MS": -1}, "RUNSTORE['STOP_GRACE_MS'] must be"),
        ({"MAX_RECOVERIES": "5"}, "RUNSTORE['MAX_RECOVERIES'] must be"),
        ({"RUNTIME_DIR": "run"}, "RUNSTORE['RUNTIME_DIR'] must be an absolute path, not str."),
        ({"RUNTIME_DIR": 7}, "RUNSTORE['RUNTIME_DIR'] must be an absolute path, not int."),
        ({"ADMIN_SHOWS_STATE": 1}, "RUNSTORE['ADMIN_SHOWS_STATE'] must be True or False"),
    ],
    ids=str,
)
class TestProblems:
    def test_are_listed_in_words(self, raw: object, named: str):
        with override_settings(RUNSTORE=raw):
            assert any(problem.startswith(named) for problem in problems())

    def test_are_refused_and_never_replaced_by_defaults(self, raw: object, named: str):
        with override_settings(RUNSTORE=raw), pytest.raises(ImproperlyConfigured):
            current()


def test_every_fault_is_listed_at_once():
    with override_settings(RUNSTORE={"POLL": 1, "CLOCK": 2, "LEASE": {"STALE": 3}}):
        assert len(problems()) == 3


def test_rejected_value_is_never_shown():
    with override_settings(RUNSTORE={"CLOCK": "the secret"}):
        assert "secret" not in "".join(problems())
