"""What every test can rely on: a file database, one of two vendors, children that find it."""

import os
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

import hypothesis
import pytest
import pytest_django
from django.db import connection, connections, reset_queries

from django_runstore.db.triggers import install_triggers, wrong_triggers
from django_runstore.metrics.exporting import listeners
from django_runstore.models import Run
from tests.metrics.recorder import Recorder

VENDOR_NAMES = {"postgres": "PostgreSQL", "sqlite": "SQLite"}
VENDORS = {"postgres": "postgresql", "sqlite": "sqlite"}

# No deadline per example: two cores and a database tell nothing about the code.
hypothesis.settings.register_profile("runstore", deadline=None, print_blob=True)
hypothesis.settings.load_profile("runstore")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what the public suites cover; skip, with the reason, what another database is for."""
    for item in items:
        # The suites cannot mark their tests themselves: they do not need pytest.
        covered = getattr(getattr(item, "function", None), "conformance_items", ())
        if covered:
            item.add_marker(pytest.mark.conformance(*covered))
        for name, vendor in VENDORS.items():
            marker = item.get_closest_marker(name)
            if marker is not None and connection.vendor != vendor:
                detail = marker.kwargs.get("reason") or " ".join(map(str, marker.args))
                reason = f"needs {VENDOR_NAMES[name]}" + (f": {detail}" if detail else "")
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_report_header() -> str:
    """Say which database this is, whichever way it was chosen."""
    return f"leg: {connection.vendor}"


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Put SQLite's test database into a file: threads and processes need to share it."""
    if connection.vendor == "sqlite":
        folder = tmp_path_factory.mktemp("database")
        connection.settings_dict["TEST"]["NAME"] = str(folder / "test.sqlite3")


@pytest.fixture
def recorder(settings: Any) -> Iterator[Recorder]:
    """What operations tell while this test runs; all of it has to fit the contract."""
    configured = getattr(settings, "RUNSTORE", {})
    settings.RUNSTORE = {**configured, "EXPORTERS": ["tests.metrics.recorder.Recorder"]}
    (listener,) = listeners()
    exporter = listener.exporter
    assert isinstance(exporter, Recorder)
    yield exporter
    assert exporter.broken_contract == []
    assert [span.set_when_closed for span in exporter.spans if span.set_when_closed] == []
    assert [span.name for span in exporter.spans if span.closed != 1] == []


@pytest.fixture(autouse=True)
def _empty_query_log() -> None:
    """
    Let each test that counts statements begin with an empty log.

    Django keeps the last 9,000 of a process, and to whoever counts from the end of a full log
    nothing seems to be added.
    """
    reset_queries()


@pytest.fixture(autouse=True)
def _triggers_stay(
    request: pytest.FixtureRequest,
    django_db_blocker: pytest_django.DjangoDbBlocker,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    """Fail the test that changes the triggers of the run table, and not some later one."""
    yield
    # Set up before this fixture, so undone after it, unless it is told to: a test may
    # have put something else in the place of the driver.
    monkeypatch.undo()
    marker = request.node.get_closest_marker("django_db")
    is_marked = marker is not None and marker.kwargs.get("transaction", False)
    if is_marked or "transactional_db" in request.fixturenames:
        with django_db_blocker.unblock():
            wrong = wrong_triggers(connection, Run)
            for statement in install_triggers(connection, Run) if wrong else ():
                with connection.cursor() as cursor:
                    cursor.execute(statement)
        assert wrong == []


@pytest.fixture
def database_url(db: None) -> str:
    """The URL of the database under test, for processes that configure themselves."""
    return url_of(connections["default"].settings_dict)


@pytest.fixture
def child_environment(database_url: str) -> dict[str, str]:
    """The environment in which a child process uses the database under test."""
    return os.environ | {
        "DATABASE_URL": database_url,
        "DJANGO_SETTINGS_MODULE": "testproject.settings",
    }


def url_of(settings: Mapping[str, Any]) -> str:
    """Write Django's settings of one database as a URL that django-environ reads."""
    if settings["ENGINE"].endswith("sqlite3"):
        return f"sqlite:///{settings['NAME']}"
    login = quote(settings["USER"] or "", safe="")
    if settings["PASSWORD"]:
        login += ":" + quote(settings["PASSWORD"], safe="")
    address = f"{settings['HOST'] or ''}:{settings['PORT'] or 5432}"
    options = {key: value for key, value in settings["OPTIONS"].items() if isinstance(value, str)}
    query = f"?{urlencode(options)}" if options else ""
    return f"postgres://{login}@{address}/{quote(settings['NAME'], safe='')}{query}"
