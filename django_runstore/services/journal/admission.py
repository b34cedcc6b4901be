"""From an event as a caller made it to an event as it is stored. Spec: run-store 8.1."""

from dataclasses import dataclass
from typing import Any, Final

from django_runstore.db.journal_statements import Source
from django_runstore.durable import JsonComplaint, durable_text, event_json
from django_runstore.errors import InvalidEvent
from django_runstore.events import JournalEvent
from django_runstore.redaction import Redactor
from django_runstore.services import facts
from django_runstore.services.arguments import exact_fields
from django_runstore.services.entries import content_digest, source_digest
from django_runstore.services.journal import arguments

_CONTRACT: Final = "event violates the journal input contract"
_FIELDS: Final = arguments.names_of(JournalEvent)


@dataclass(frozen=True, slots=True)
class AdmittedEvent:
    """A checked copy of an event, its contents redacted and written as text."""

    source: Source
    source_id: str
    source_seq: int | None
    event_type: str
    payload_json: str
    meta_json: str
    by_identity: bool

    @property
    def content(self) -> tuple[str, str, str]:
        """What a second event of the same identity must also have."""
        return self.event_type, self.payload_json, self.meta_json

    @property
    def content_hash(self) -> bytes:
        """What compaction keeps of it."""
        return content_digest(*self.content)


def admit_event(
    operation: str, event: object, redactor: Redactor, max_entry_bytes: int | None
) -> AdmittedEvent:
    """
    Check, redact and encode an event.

    Raises:
        InvalidEvent: it breaks the contract, could not be redacted, or is too large.
    """
    values = exact_fields(event, JournalEvent, _FIELDS)
    if values is None:
        arguments.refuse(operation, "event", "must be a JournalEvent", _CONTRACT)
    given = dict(zip(_FIELDS, values, strict=True))
    run_id, event_type, source_id = (
        arguments.text(operation, given[name], name, _CONTRACT)
        for name in ("run_id", "event_type", "source_id")
    )
    companion = arguments.companion(operation, given["companion"], _CONTRACT)
    if companion == facts.COMPANION:
        arguments.refuse(operation, "companion", "is written by RunStore alone", _CONTRACT)
    if source_id == facts.SOURCE or source_id.startswith(f"{facts.SOURCE}."):
        arguments.refuse(
            operation, "source_id", "is the name of a source of this package", _CONTRACT
        )
    source_seq = given["source_seq"]
    if source_seq is not None:
        source_seq = arguments.sequence(operation, source_seq, "source_seq", _CONTRACT)
    dedupe = durable_text(given["dedupe"])
    if dedupe not in ("content", "identity"):
        arguments.refuse(operation, "dedupe", 'must be "content" or "identity"', _CONTRACT)
    payload_json, meta_json = (
        _contents(operation, given[name], name, redactor) for name in ("payload", "meta")
    )
    size = len(payload_json.encode()) + len(meta_json.encode())
    if max_entry_bytes is not None and size > max_entry_bytes:
        raise InvalidEvent(
            operation,
            f"event is {size} bytes, over the {max_entry_bytes}-byte max_entry_bytes bound",
            {"bytes": size, "max_entry_bytes": max_entry_bytes},
        )
    return AdmittedEvent(
        Source(run_id, companion, source_digest(source_id)),
        source_id,
        source_seq,
        event_type,
        payload_json,
        meta_json,
        by_identity=dedupe == "identity",
    )


def _contents(operation: str, value: Any, field: str, redactor: Redactor) -> str:  # noqa: ANN401 - any value
    try:
        redacted = redactor(value)
    except Exception:  # noqa: BLE001 - whatever it raises can quote what it was to hide
        failure = InvalidEvent(operation, f"{field} could not be redacted", {"field": field})
    else:
        try:
            return event_json(redacted)
        except JsonComplaint as error:
            complaint = error.complaint
        arguments.refuse(operation, field, complaint, _CONTRACT)
    # After the handlers: inside one, the redactor's error would travel along.
    raise failure
