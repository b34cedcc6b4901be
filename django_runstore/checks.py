"""System checks: what can be seen to be wrong before a run is lost over it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register  # noqa: A004 - Django's own name
from django.db import connections, router
from django.utils.module_loading import import_string

from django_runstore import conf
from django_runstore.db.change_statements import is_stamped_ahead, read_identity
from django_runstore.db.triggers import wrong_triggers
from django_runstore.models import Run, StoreIdentity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

APP_LABEL: Final = "runstore"
IMMEDIATE: Final = "IMMEDIATE"
_IMMEDIATE_HINT: Final = (
    "Set DATABASES[{alias!r}]['OPTIONS']['transaction_mode'] = 'IMMEDIATE' (and 'timeout' to "
    "the seconds a writer may wait)."
)
_TRIGGERS_HINT: Final = (
    "Run manage.py migrate runstore. If nothing is left to migrate: put "
    "django_runstore.db.operations.InstallTriggers() last in the migration that changed the table, "
    "or in one of its own, then run manage.py runstore_rotate_identity --database {alias}, since "
    "what changed meanwhile was not counted."
)
_ROTATE_HINT: Final = "Run manage.py runstore_rotate_identity --database {alias}."


@register(Tags.compatibility)
def check_settings(**_: Any) -> list[CheckMessage]:
    """Report every fault of ``RUNSTORE``, also dotted paths that lead nowhere useful."""
    broken = conf.problems()
    if broken:
        hint = f"Correct settings.{conf.SETTING}; nothing of it is used while it has faults."
        return [Error(problem, hint=hint, id="runstore.E001") for problem in broken]
    return list(_unusable(conf.current()))


@register(Tags.compatibility)
def check_time_zone(**_: Any) -> list[CheckMessage]:
    """Warn where datetimes are stored without a zone."""
    if settings.USE_TZ:
        return []
    return [
        Warning(
            "USE_TZ is False: the datetimes of runs are shown and filtered in local time, "
            "where an hour happens twice a year.",
            hint="Set USE_TZ = True. Leases are not affected; they are kept in milliseconds.",
            id="runstore.W002",
        )
    ]


@register(Tags.compatibility)
def check_sqlite_transactions(**_: Any) -> list[CheckMessage]:
    """
    Report SQLite databases whose transactions begin without the write lock.

    A transaction that has read already cannot become a writer once somebody else has
    written: SQLite fails it at once, whatever the busy timeout.
    """
    return [message for alias in connections for message in _sqlite_messages(alias)]


@register(Tags.database)
def check_revisions(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """
    Report databases in which changes of runs are not counted, or cannot be followed.

    Warnings, since ``migrate`` would not run past an error, and may be what mends them.
    """
    return [message for alias in databases or () for message in _revision_messages(alias)]


def _unusable(found: conf.RunstoreSettings) -> Iterator[CheckMessage]:
    for key, path in _dotted_paths(found):
        try:
            named = import_string(path)
        except Exception as error:  # noqa: BLE001 - a module can fail to import in any way
            yield Error(
                f"{conf.SETTING}[{key!r}] names {path!r}, which cannot be imported: "
                f"{type(error).__name__}.",
                hint="Name something that exists, as 'package.module.attribute', and install the "
                "extra that it needs.",
                id="runstore.E003",
            )
            continue
        if key == "EXPORTERS" and not callable(named):
            yield Error(
                f"{conf.SETTING}[{key!r}] names {path!r}, from which no exporter can be made.",
                hint="Name a class, such as 'django_runstore.metrics.logging.LoggingExporter'.",
                id="runstore.E004",
            )


def _dotted_paths(found: conf.RunstoreSettings) -> Iterable[tuple[str, str]]:
    if found.clock is not None:
        yield "CLOCK", found.clock
    yield "ARBITER", found.arbiter
    yield "REDACTOR", found.redactor
    if found.admin_redactor is not None:
        yield "ADMIN_REDACTOR", found.admin_redactor
    for path in found.liveness:
        yield "LIVENESS", path
    for path in found.exporters:
        yield "EXPORTERS", path


def _sqlite_messages(alias: str) -> Iterator[CheckMessage]:
    connection = connections[alias]
    if connection.vendor != "sqlite" or not router.allow_migrate(
        alias, APP_LABEL, model_name="run"
    ):
        return
    options = connection.settings_dict.get("OPTIONS") or {}
    if str(options.get("transaction_mode") or "").upper() in {IMMEDIATE, "EXCLUSIVE"}:
        return
    hint = _IMMEDIATE_HINT.format(alias=alias)
    if connection.settings_dict.get("ATOMIC_REQUESTS"):
        yield Error(
            f"Database {alias!r} is SQLite with ATOMIC_REQUESTS and begins transactions without "
            f"the write lock: a request that reads before it touches a run fails with "
            f"'database is locked' as soon as another process writes.",
            hint=hint,
            id="runstore.E002",
        )
    else:
        yield Warning(
            f"Database {alias!r} is SQLite and begins transactions without the write lock: "
            f"transaction.atomic() blocks that read before they touch a run fail with "
            f"'database is locked' as soon as another process writes.",
            hint=hint,
            id="runstore.W001",
        )


def _revision_messages(alias: str) -> Iterator[CheckMessage]:
    connection = connections[alias]
    if not router.allow_migrate(alias, APP_LABEL, model_name="run"):
        return
    made = set(connection.introspection.table_names())
    if not {Run._meta.db_table, StoreIdentity._meta.db_table} <= made:
        return  # not migrated yet
    wrong = wrong_triggers(connection, Run)
    if wrong:
        yield Warning(
            f"Database {alias!r} does not count every change of a run: these triggers are missing, "
            f"disabled or not those of this release: {', '.join(wrong)}.",
            hint=_TRIGGERS_HINT.format(alias=alias),
            id="runstore.W003",
        )
    if read_identity(alias) is None:
        yield Warning(
            f"Database {alias!r} has lost its identity: every change of a run is refused.",
            hint=_ROTATE_HINT.format(alias=alias),
            id="runstore.W004",
        )
    elif is_stamped_ahead(alias):
        yield Warning(
            f"Database {alias!r} holds changes of runs from beyond all that it has written, so it "
            f"was restored from another one: whoever follows changes does not see them.",
            hint=_ROTATE_HINT.format(alias=alias),
            id="runstore.W005",
        )
