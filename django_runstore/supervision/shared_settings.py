"""
Hand the settings in force in one process to another as JSON.

Most of it is plain data. What is not (a cursor class, an isolation level, a callable) is
left to the receiver's own settings, which come from the same settings module.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings
from django.db import connections

from django_runstore import conf

_OWN: Final = "django_runstore: as in the receiver's own settings"


class UnsharableSettingsError(Exception):
    """The settings of this process cannot be used by another one; the message says why."""


def describe_settings() -> dict[str, Any]:
    """
    Write ``DATABASES`` and ``RUNSTORE`` as they are in force here, as plain data.

    The databases are the resolved ones: a process that read the settings module itself
    would leave a test run for the developer's real database.

    Raises:
        UnsharableSettingsError: a database lives in the memory of this process.
    """
    databases = {alias: connections[alias].settings_dict for alias in connections}
    for alias, database in databases.items():
        if _lives_in_memory(database):
            message = (
                f"Database {alias!r} is an SQLite database in memory, which no worker process "
                f"can reach. Name a file in DATABASES[{alias!r}]['NAME'], and for test runs in "
                f"DATABASES[{alias!r}]['TEST']['NAME']."
            )
            raise UnsharableSettingsError(message)
    return {
        "DATABASES": _describe(databases),
        conf.SETTING: _describe(getattr(settings, conf.SETTING, {})),
    }


def adopt_settings(described: Mapping[str, Any]) -> None:
    """
    Put the described settings into force; call it before ``django.setup()``.

    Raises:
        UnsharableSettingsError: this process' settings lack something they were to fill in.
    """
    for name, value in described.items():
        setattr(settings, name, _restore(value, getattr(settings, name, None), name))


def _lives_in_memory(database: Mapping[str, Any]) -> bool:
    name = str(database.get("NAME") or "")
    return str(database.get("ENGINE", "")).endswith("sqlite3") and (
        name in {"", ":memory:"} or "mode=memory" in name
    )


def _describe(value: object) -> Any:  # noqa: ANN401 - JSON
    match value:
        case None | bool():
            return value
        # A member of an enumeration is an int or a str too, and would come back as a bare one.
        case int() | float() | str() if type(value) in {int, float, str} and _is_json(value):
            return value
        case os.PathLike():
            return os.fspath(value)
        case Mapping() if all(type(key) is str for key in value):
            return {key: _describe(item) for key, item in value.items()}
        case list():
            return [_describe(item) for item in value]
        case _:
            return {_OWN: True}


def _is_json(value: float | str) -> bool:
    return isinstance(value, str) or math.isfinite(value)


def _restore(value: object, own: object, place: str) -> Any:  # noqa: ANN401 - a setting
    match value:
        case dict() if _OWN in value:
            if own is None:
                message = f"{place} cannot be sent to a worker, and its own settings lack it."
                raise UnsharableSettingsError(message)
            return own
        case dict():
            own_items = own if isinstance(own, Mapping) else {}
            return {
                key: _restore(item, own_items.get(key), f"{place}[{key!r}]")
                for key, item in value.items()
            }
        case list():
            own_list = own if isinstance(own, list) and len(own) == len(value) else []
            return [
                _restore(item, own_list[index] if own_list else None, f"{place}[{index}]")
                for index, item in enumerate(value)
            ]
        case _:
            return value
