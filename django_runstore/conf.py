"""
The settings of this package, read once from the dict ``RUNSTORE`` into one typed object.

``current()`` follows ``override_settings``. Nothing else reads ``settings.RUNSTORE``.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

from django_runstore.durations import LeaseDurations

SETTING: Final = "RUNSTORE"

_LONGEST_TEXT: Final = 200


def default_runtime_dir() -> Path:
    """Name the folder for lock files: one per user, so that nobody else can write there."""
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return Path(tempfile.gettempdir()) / f"django-runstore-{user}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunstoreSettings:
    """Every key of ``RUNSTORE``: the attribute, its type, its default and its unit."""

    lease: LeaseDurations = field(default_factory=LeaseDurations)
    """LEASE: dict of HEARTBEAT_INTERVAL_MS 1000, STALE_AFTER_MS 30000, SKEW_ALLOWANCE_MS 10000."""

    clock: str | None = None
    """CLOCK: dotted path of a clock; None is the database's time, on SQLite the system's."""

    arbiter: str = "django_runstore.arbiters.DatabaseArbiter"
    """ARBITER: dotted path of the strategy that decides who holds a lease."""

    liveness: tuple[str, ...] = ("django_runstore.liveness.same_host_process",)
    """LIVENESS: dotted paths of the checks that must all call an owner dead."""

    poll_interval_ms: int = 500
    """POLL_INTERVAL_MS: pause between two looks for claimable runs, in milliseconds."""

    idle_poll_interval_ms: int = 2_000
    """IDLE_POLL_INTERVAL_MS: the longest that pause becomes while nothing is found."""

    notices: bool = True
    """NOTICES: whether PostgreSQL's NOTIFY wakes supervisors; off behind transaction poolers."""

    stop_grace_ms: int = 10_000
    """STOP_GRACE_MS: time a run gets to stop before its process is killed, in milliseconds."""

    max_recoveries: int = 5
    """MAX_RECOVERIES: lost workers and hosts since the last progress before a run fails."""

    worker_max_runs: int | None = None
    """WORKER_MAX_RUNS: after so many runs a worker is replaced; None for never."""

    worker_max_memory_mib: int | None = None
    """WORKER_MAX_MEMORY_MIB: above so much resident memory a worker is replaced, in MiB."""

    capture_output: bool = True
    """CAPTURE_OUTPUT: whether what handlers print is logged, or marked, with its run."""

    runtime_dir: Path = field(default_factory=default_runtime_dir)
    """RUNTIME_DIR: folder of the lock files; created on demand, private to its user."""

    exporters: tuple[str, ...] = ()
    """EXPORTERS: dotted paths of the classes that metrics and spans go to; none by default."""

    code_version: str = ""
    """CODE_VERSION: name of this release, such as a commit; recorded on the runs that it claims."""

    redactor: str = "django_runstore.redaction.redact"
    """REDACTOR: dotted path of the function that keeps credentials out of the journal."""

    admin_shows_state: bool = True
    """ADMIN_SHOWS_STATE: whether the admin shows the state of a run, which can hold secrets."""

    admin_quiet_after_ms: int = 900_000
    """ADMIN_QUIET_AFTER_MS: without progress for this long, a run needs a look, in milliseconds."""

    admin_redactor: str | None = None
    """ADMIN_REDACTOR: dotted path of the function that JSON passes before the admin shows it."""


def current() -> RunstoreSettings:
    """
    Return the settings in force.

    Raises:
        ImproperlyConfigured: ``RUNSTORE`` has ``problems()``. A misspelt or impossible
            lease is refused rather than replaced by a default nobody asked for.
    """
    global _current  # noqa: PLW0603 - one object per process, dropped when a setting changes
    if _current is None:
        found, broken = _read(getattr(settings, SETTING, {}))
        if broken:
            raise ImproperlyConfigured(" ".join(broken))
        _current = found
    return _current


def problems() -> list[str]:
    """List what is wrong with ``RUNSTORE``, one sentence per fault; empty when all is well."""
    _, broken = _read(getattr(settings, SETTING, {}))
    return broken


_current: RunstoreSettings | None = None


def _forget(*, setting: str, **_: object) -> None:
    global _current  # noqa: PLW0603 - see current()
    if setting == SETTING:
        _current = None


setting_changed.connect(_forget, dispatch_uid="django_runstore.conf")


def _read(raw: object) -> tuple[RunstoreSettings, list[str]]:
    broken: list[str] = []
    values = _read_keys(raw, _KEYS, SETTING, broken)
    if "LEASE" in values:
        lease_values = _read_keys(values["LEASE"], _LEASE_KEYS, f"{SETTING}['LEASE']", broken)
        lease = LeaseDurations(**{_LEASE_KEYS[key].attribute: v for key, v in lease_values.items()})
        broken.extend(f"{SETTING}['LEASE']: {complaint}" for complaint in lease.complaints())
        values["LEASE"] = lease
    found = RunstoreSettings(**{_KEYS[key].attribute: value for key, value in values.items()})
    return found, broken


def _read_keys(
    raw: object, keys: Mapping[str, _Key], place: str, broken: list[str]
) -> dict[str, Any]:
    """Convert what can be used and describe in ``broken`` what cannot."""
    if not isinstance(raw, Mapping):
        broken.append(f"{place} must be a dict, not {type(raw).__name__}.")
        return {}
    values: dict[str, Any] = {}
    for name, value in raw.items():
        key = keys.get(name)
        if key is None:
            broken.append(f"{place} has no key {name!r}. It knows {', '.join(sorted(keys))}.")
            continue
        try:
            values[name] = key.convert(value)
        except (TypeError, ValueError):
            # The value stays out of the message: settings hold secrets too.
            broken.append(f"{place}[{name!r}] must be {key.rule}, not {type(value).__name__}.")
    return values


@dataclass(frozen=True, slots=True)
class _Key:
    attribute: str
    rule: str
    convert: Callable[[Any], object]


def _whole_number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return value


def _positive(value: object) -> int:
    number = _whole_number(value)
    if number <= 0:
        raise ValueError
    return number


def _or_none(value: object) -> int | None:
    return None if value is None else _positive(value)


def _not_negative(value: object) -> int:
    number = _whole_number(value)
    if number < 0:
        raise ValueError
    return number


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _dotted_path(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    if not all(part.isidentifier() for part in value.split(".")) or "." not in value:
        raise ValueError
    return value


def _short_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    if len(value) > _LONGEST_TEXT or not value.isprintable():
        raise ValueError
    return value


def _dotted_path_or_none(value: object) -> str | None:
    return None if value is None else _dotted_path(value)


def _dotted_paths(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise TypeError
    return tuple(_dotted_path(item) for item in value)


def _absolute_path(value: object) -> Path:
    if not isinstance(value, str | os.PathLike):
        raise TypeError
    path = Path(value)
    if not path.is_absolute():
        raise ValueError
    return path


def _mapping(value: object) -> object:
    return value


_LEASE_KEYS: Final[Mapping[str, _Key]] = {
    "HEARTBEAT_INTERVAL_MS": _Key("heartbeat_interval_ms", "whole milliseconds", _whole_number),
    "STALE_AFTER_MS": _Key("stale_after_ms", "whole milliseconds", _whole_number),
    "SKEW_ALLOWANCE_MS": _Key("skew_allowance_ms", "whole milliseconds", _whole_number),
}

_KEYS: Final[Mapping[str, _Key]] = {
    "LEASE": _Key("lease", "a dict of durations", _mapping),
    "CLOCK": _Key("clock", "a dotted path or None", _dotted_path_or_none),
    "ARBITER": _Key("arbiter", "a dotted path", _dotted_path),
    "LIVENESS": _Key("liveness", "a list of dotted paths", _dotted_paths),
    "POLL_INTERVAL_MS": _Key("poll_interval_ms", "whole milliseconds above 0", _positive),
    "IDLE_POLL_INTERVAL_MS": _Key("idle_poll_interval_ms", "whole milliseconds above 0", _positive),
    "NOTICES": _Key("notices", "True or False", _truth),
    "STOP_GRACE_MS": _Key("stop_grace_ms", "whole milliseconds, 0 or more", _not_negative),
    "MAX_RECOVERIES": _Key("max_recoveries", "a whole number, 0 or more", _not_negative),
    "WORKER_MAX_RUNS": _Key("worker_max_runs", "a whole number above 0, or None", _or_none),
    "WORKER_MAX_MEMORY_MIB": _Key("worker_max_memory_mib", "whole MiB above 0, or None", _or_none),
    "CAPTURE_OUTPUT": _Key("capture_output", "True or False", _truth),
    "RUNTIME_DIR": _Key("runtime_dir", "an absolute path", _absolute_path),
    "EXPORTERS": _Key("exporters", "a list of dotted paths", _dotted_paths),
    "CODE_VERSION": _Key("code_version", "a text of at most 200 characters", _short_text),
    "REDACTOR": _Key("redactor", "a dotted path", _dotted_path),
    "ADMIN_SHOWS_STATE": _Key("admin_shows_state", "True or False", _truth),
    "ADMIN_QUIET_AFTER_MS": _Key("admin_quiet_after_ms", "whole milliseconds above 0", _positive),
    "ADMIN_REDACTOR": _Key("admin_redactor", "a dotted path or None", _dotted_path_or_none),
}
