"""The values of the package as plain tuples, and back."""

import dataclasses
from collections.abc import Callable
from typing import Any

from django_runstore import OwnerId, RunSnapshot
from django_runstore.errors import StoreError
from django_runstore.outcomes import Duplicate
from tests.verification.reference_rows import Answer, Owner, Snapshot


def plain(owner: OwnerId) -> Owner:
    return owner.host_id, owner.pid, owner.nonce


def as_owner(owner: Owner) -> OwnerId:
    return OwnerId(*owner)


def as_snapshot(seen: Snapshot) -> RunSnapshot:
    status, owner, heartbeat = seen
    return RunSnapshot(status, None if owner is None else as_owner(owner), heartbeat)


def said(call: Callable[[], Any]) -> Answer:
    """Call an operation and spell what it answers, or how it breaks."""
    try:
        answer = call()
    except StoreError as error:
        return (error.code,)
    match answer:
        case None:
            return ("created",)
        case bool():
            return (answer,)
        case tuple():
            return tuple((claimed.run.run_id, claimed.fence) for claimed in answer)
        case dict():
            return tuple(sorted((run_id, outcome.code) for run_id, outcome in answer.items()))
        case Duplicate(seq=seq, source_seq=number):
            return answer.code, seq, number
        case _:
            return answer.code, *(
                getattr(answer, member.name) for member in dataclasses.fields(answer)
            )
