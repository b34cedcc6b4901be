"""The lists of the admin that are measured, as what stands in the query of their URL."""

from collections.abc import Mapping
from typing import Final

from django_runstore.admin.addresses import owner_token
from django_runstore.admin.attention import CONCERNS
from django_runstore.owners import OwnerId
from django_runstore.states import RunStatus

LISTS: Final[Mapping[str, Mapping[str, str]]] = {
    "everything": {},
    "live": {"status": "live"},
    **{f"status {status}": {"status": status.value} for status in RunStatus},
    **{f"attention {each.name}": {"attention": each.name} for each in CONCERNS},
    "cancellation": {"cancellation": "requested"},
    "a handler": {"handler": "handler.7"},
    "a handler that never ran": {"handler": "nobody"},
    "a handler's failures": {"handler": "handler.7", "status": "failed"},
    "a queue": {"queue": "queue-3"},
    "a queue that is not there": {"queue": "nowhere"},
    "waiting": {"waiting": "approval-1"},
    "waiting for nothing": {"waiting": "godot"},
    "an owner": {"owner": owner_token(OwnerId("web-1", 101, "nonce"))},
    "an owner that is gone": {"owner": owner_token(OwnerId("web-9", 1, "nonce"))},
    "a year": {"created": "2026"},
    "a day": {"created": "2026-06-05"},
    "the past day": {"created": "24h"},
    "a handler on a day": {"created": "2026-06-05", "handler": "handler.7"},
    "an id": {"q": "settled-00050000"},
    "the beginning of every id": {"q": "s"},
    "the beginning of a lineage": {"q": "line-1"},
    "a handler by name": {"q": "handler.7"},
    "what is not there": {"q": "zzz"},
    "failures among ids": {"q": "settled-0005", "status": "failed"},
}
