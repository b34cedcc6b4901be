"""
Check what callers hand to ``RunStore``, before anything is read. Spec: run-store 4.1.

Values are judged by their exact type and copied, so no code of a caller's object runs
and later changes to it change nothing. Complaints name the field and the rule, never
the value: a reading or an id passed by mistake may be a secret.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NoReturn, cast

from django_runstore.durable import (
    JsonComplaint,
    admit_json_text,
    durable_text,
    safe_integer,
    utf16_units,
)
from django_runstore.durable.integers import exact_integer
from django_runstore.errors import Detail, InvalidRun
from django_runstore.evidence import EvidenceKind, LivenessEvidence
from django_runstore.owners import OwnerId
from django_runstore.snapshots import RunRow, RunSnapshot, TransitionGuard
from django_runstore.states import RunStatus
from django_runstore.unset import UNSET, UnsetType

OWNER_FIELDS: Final = ("host_id", "pid", "nonce")

_CONTRACT: Final = "violates the durable contract"
_TEXT: Final = "must be well-formed durable text"
_TIMESTAMP: Final = "must be a non-negative safe integer"
_LARGEST_INDEXED_BYTES: Final = 512
_MOST_OBSERVED: Final = 16
_LARGEST_OBSERVED_BYTES: Final = 2_048
_SMALLEST_PRIORITY: Final = -(2**31)
_LARGEST_PRIORITY: Final = 2**31 - 1


def refuse(operation: str, field: str, detail: str = _CONTRACT) -> NoReturn:
    """Raise the typed error for one field."""
    raise InvalidRun(operation, {"field": field, "detail": detail})


def text(operation: str, value: object, field: str = "run_id") -> str:
    """Admit an identifier: 1 to 1,024 UTF-16 units, at most 2,048 bytes, well-formed."""
    admitted = durable_text(value)
    if admitted is None:
        refuse(operation, field, _TEXT)
    return admitted


def label(operation: str, value: object, field: str) -> str:
    """Admit an identifier or the empty text, which stands for none."""
    if type(value) is str and not value:
        return ""
    return text(operation, value, field)


def indexed_text(operation: str, value: object, field: str) -> str:
    """Admit an identifier that fits into an index entry beside a run id, as a queue has to."""
    admitted = durable_text(value)
    if admitted is None or len(admitted.encode()) > _LARGEST_INDEXED_BYTES:
        refuse(operation, field, f"{_TEXT} of at most {_LARGEST_INDEXED_BYTES} bytes")
    return admitted


def indexed_label(operation: str, value: object, field: str) -> str:
    """Admit such a text or the empty one, which stands for none."""
    if type(value) is str and not value:
        return ""
    return indexed_text(operation, value, field)


def timestamp(operation: str, value: object, field: str = "now_ms") -> int:
    """Admit milliseconds since the epoch, or a number with the same range."""
    admitted = safe_integer(value)
    if admitted is None:
        refuse(operation, field, _TIMESTAMP)
    return admitted


def optional_timestamp(operation: str, value: object, field: str) -> int | None:
    """Admit a timestamp or nothing."""
    return None if value is None else timestamp(operation, value, field)


def unset_or_timestamp(operation: str, value: object, field: str) -> int | UnsetType | None:
    """Admit a timestamp, nothing, or that nothing was said."""
    return UNSET if value is UNSET else optional_timestamp(operation, value, field)


def within_skew(
    operation: str, now_ms: int, clock_ms: int, allowance_ms: int, context: Detail
) -> int:
    """Refuse a reading that runs too far ahead of the store's clock; a lagging one is fine."""
    if now_ms > clock_ms + allowance_ms:
        raise InvalidRun(
            operation,
            {
                **context,
                "field": "now_ms",
                "now_ms": now_ms,
                "clock_ms": clock_ms,
                "detail": "runs ahead of the store clock by more than the heartbeat skew allowance",
            },
        )
    return now_ms


def fence(operation: str, value: object) -> int | None:
    """Admit a grant number or nothing."""
    if value is None:
        return None
    admitted = safe_integer(value)
    if admitted is None:
        refuse(operation, "fence", _TIMESTAMP)
    return admitted


def priority(operation: str, value: object) -> int:
    """Admit a 32-bit integer."""
    admitted = exact_integer(value)
    if admitted is None or not _SMALLEST_PRIORITY <= admitted <= _LARGEST_PRIORITY:
        refuse(operation, "priority", "must be a 32-bit integer")
    return admitted


def concurrency_limit(operation: str, value: object) -> int:
    """Admit how many runs may be live at once."""
    admitted = exact_integer(value)
    if admitted is None or not 1 <= admitted <= _LARGEST_PRIORITY:
        refuse(operation, "concurrency_limit", "must be a positive 32-bit integer")
    return admitted


def limit(operation: str, value: object, largest: int) -> int:
    """Admit a batch size."""
    admitted = exact_integer(value)
    if admitted is None or not 1 <= admitted <= largest:
        refuse(operation, "limit", f"must be an integer from 1 to {largest}")
    return admitted


def flag(operation: str, value: object, field: str) -> bool:
    """Admit true or false, and nothing that only counts as one of them."""
    if value is not True and value is not False:
        refuse(operation, field, "must be true or false")
    return value


def texts(operation: str, value: object, field: str) -> tuple[str, ...] | None:
    """Admit a list, tuple, set or frozenset of identifiers, or nothing."""
    if value is None:
        return None
    names = members(operation, value, field, (list, tuple, set, frozenset))
    return tuple(label(operation, name, field) for name in names)


def members(
    operation: str, value: object, field: str, kinds: tuple[type, ...] = (list, tuple)
) -> tuple[object, ...]:
    """Copy an exact list, tuple or (where named) set; iterating anything else runs its code."""
    # Compared by identity: "in" would run the __eq__ of the value's metaclass.
    if not any(type(value) is kind for kind in kinds):
        refuse(operation, field, f"must be a {' or '.join(kind.__name__ for kind in kinds)}")
    return tuple(cast("Iterable[object]", value))


def owner(operation: str, value: object, field: str = "owner") -> OwnerId:
    """Admit exactly an ``OwnerId`` with durable texts and a non-negative pid."""
    parts = fields(operation, value, OwnerId, field, "must be an inert owner record", OWNER_FIELDS)
    admitted = identity(*parts)
    if admitted is None:
        refuse(operation, field, "must be a valid owner identity")
    return admitted


def snapshot(operation: str, value: object) -> RunSnapshot:
    """Admit a ``RunSnapshot`` or a whole ``RunRow`` as the caller's expectation."""
    kind = RunRow if type(value) is RunRow else RunSnapshot
    status, expected_owner, heartbeat = fields(
        operation,
        value,
        kind,
        "expected",
        "must be an inert snapshot record",
        ("status", "owner", "heartbeat_at_ms"),
    )
    known = _known_status(status)
    heartbeat_at_ms = None if heartbeat is None else safe_integer(heartbeat)
    if known is None or (heartbeat is not None and heartbeat_at_ms is None):
        refuse(operation, "expected", "contains an invalid status or heartbeat")
    held_by = None if expected_owner is None else owner(operation, expected_owner, "expected.owner")
    running = known == RunStatus.RUNNING
    if (held_by is not None) != running or (heartbeat_at_ms is not None) != running:
        refuse(operation, "expected", "violates ownership invariants")
    return RunSnapshot(known, held_by, heartbeat_at_ms)


def evidence(operation: str, value: object) -> LivenessEvidence:
    """Admit exactly a ``LivenessEvidence`` of a known kind."""
    expected_owner, checked_at_ms, kind, observed = fields(
        operation,
        value,
        LivenessEvidence,
        "evidence",
        "must be an inert evidence record",
        ("expected_owner", "checked_at_ms", "kind", "observed"),
    )
    subject = owner(operation, expected_owner, "evidence.expected_owner")
    checked = timestamp(operation, checked_at_ms, "evidence.checked_at_ms")
    text_of_kind = durable_text(kind)
    if text_of_kind not in frozenset(EvidenceKind):
        refuse(operation, "evidence.kind")
    pairs = None if observed is None else small_pairs(operation, observed, "evidence.observed")
    return LivenessEvidence(subject, checked, EvidenceKind(text_of_kind), pairs)


def small_pairs(operation: str, value: object, field: str) -> Mapping[str, Any]:
    """Admit at most 16 pairs of text and a string, integer, boolean or ``None``; 2 kB in all."""
    if type(value) is not dict or len(value) > _MOST_OBSERVED:
        refuse(operation, field, f"must be a dict of at most {_MOST_OBSERVED} pairs")
    copied: dict[str, str | int | bool | None] = {}
    size = 0
    for key, member in list(value.items()):
        name = durable_text(key)
        plain = member if member is None or type(member) is bool else _small(member)
        if name is None or (plain is None and member is not None):
            refuse(operation, field, "must hold only text, integers and booleans")
        size += len(name.encode()) + len(str(plain).encode())
        copied[name] = plain
    if size > _LARGEST_OBSERVED_BYTES:
        refuse(operation, field, f"must hold at most {_LARGEST_OBSERVED_BYTES} bytes")
    return copied


def _small(value: object) -> str | int | None:
    if type(value) is str and not value:
        return ""
    if type(value) is int:
        # Signed, because an exit status is the negative of a signal number.
        magnitude = safe_integer(abs(value))
        return None if magnitude is None else value
    return durable_text(value)


def guard(operation: str, value: object) -> TransitionGuard:
    """Admit exactly a ``TransitionGuard``; ``None`` stands for no condition."""
    if value is None:
        return TransitionGuard()
    (wanted,) = fields(
        operation,
        value,
        TransitionGuard,
        "guard",
        "must be an inert exact guard",
        ("cancel_requested",),
    )
    match durable_text(wanted):
        case "absent":
            return TransitionGuard("absent")
        case "present":
            return TransitionGuard("present")
        case None if wanted is None:
            return TransitionGuard()
        case _:
            refuse(operation, "guard.cancel_requested")


def target_status(operation: str, value: object) -> RunStatus:
    """Admit a status a run can be moved to: any but ``pending``."""
    status = _known_status(value)
    if status is None or status == RunStatus.PENDING:
        refuse(operation, "to_status")
    return status


def state(operation: str, value: object, context: Detail) -> str:
    """Admit JSON text, kept byte for byte; the complaint never quotes it."""
    try:
        return admit_json_text(value)
    except JsonComplaint as error:
        complaint = error.complaint
    is_text = issubclass(type(value), str)
    raise InvalidRun(
        operation,
        {
            **context,
            "state_json_length": utf16_units(cast("str", value)) if is_text else None,
            "state_json_valid": is_text and _parses(cast("str", value)),
            "detail": complaint,
        },
    )


def _parses(text: str) -> bool:
    """Tell whether ``text`` is JSON at all, whatever else is wrong with it."""
    try:
        admit_json_text(str.encode(text, errors="replace").decode())
    except JsonComplaint as error:
        return error.complaint not in _UNPARSED
    return True


_UNPARSED: Final = frozenset({"must be non-empty JSON text", "must be valid JSON text"})


def optional_json(operation: str, value: object, field: str) -> str | None:
    """Admit JSON text or nothing."""
    if value is None:
        return None
    try:
        return admit_json_text(value)
    except JsonComplaint as error:
        complaint = error.complaint
    return refuse(operation, field, complaint)


def _known_status(value: object) -> RunStatus | None:
    plain = durable_text(value)
    return RunStatus(plain) if plain in RunStatus.values else None


def fields(
    operation: str, value: object, kind: type, field: str, detail: str, names: Iterable[str]
) -> tuple[Any, ...]:
    """Read the fields of an exact record; a dict, a look-alike or a subclass is refused."""
    read = exact_fields(value, kind, names)
    return refuse(operation, field, detail) if read is None else read


def exact_fields(value: object, kind: type, names: Iterable[str]) -> tuple[Any, ...] | None:
    """Read the fields of exactly a ``kind``, running none of its code; nothing for all else."""
    if type(value) is not kind:
        return None
    try:
        return tuple(object.__getattribute__(value, name) for name in names)
    except AttributeError:
        # Built without __init__: the type is right, but there is nothing in it.
        return None


def identity(host_id: object, pid: object, nonce: object) -> OwnerId | None:
    """Admit the parts of an owner's identity."""
    parts = durable_text(host_id), safe_integer(pid), durable_text(nonce)
    if parts[0] is None or parts[1] is None or parts[2] is None:
        return None
    return OwnerId(parts[0], parts[1], parts[2])
