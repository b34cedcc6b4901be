"""Run ids in links and forms, where a browser takes liberties with some of them."""

import base64
import json
from collections.abc import Sequence
from typing import Final, Literal
from urllib.parse import quote as percent_quote
from urllib.parse import unquote as percent_unquote
from urllib.parse import urlencode

from django.contrib.admin import AdminSite
from django.contrib.admin.utils import quote
from django.urls import reverse

from django_runstore.durable import is_durable_text, safe_integer
from django_runstore.owners import OwnerId

# Before a segment that is an id in base64. Django's own quoting writes every underscore as
# _5F, so that no id begins like this.
_ENCODED: Final = "_b-"
# A browser resolves these two as folders before it asks.
_DOTS: Final = frozenset({".", ".."})
_LONGEST_QUOTED: Final = 1_000
"""Bytes of a segment. Percent signs make three of one, and servers refuse lines above 4,094."""

_LONGEST_TOKEN: Final = 16_000


def run_url(
    run_id: str, site: AdminSite, page: Literal["change", "history", "lineage"] = "change"
) -> str:
    """Address a page of a run so that every browser asks for just that one."""
    return reverse(f"admin:runstore_run_{page}", args=[_segment(run_id)], current_app=site.name)


def action_url(action: str, site: AdminSite, run_id: str | None = None) -> str:
    """Address the confirmation of an action on one run, or on those that a form names."""
    if run_id is None:
        return reverse("admin:runstore_run_act_on_many", args=[action], current_app=site.name)
    arguments = [_segment(run_id), action]
    return reverse("admin:runstore_run_act", args=arguments, current_app=site.name)


def list_url(site: AdminSite) -> str:
    """Address the list of runs."""
    return reverse("admin:runstore_run_changelist", current_app=site.name)


def entries_url(site: AdminSite, run_id: str) -> str:
    """Address the journal entries of a run."""
    url = reverse("admin:runstore_journalentry_changelist", current_app=site.name)
    return f"{url}?{urlencode({'q': run_id})}"


def _segment(run_id: str) -> str:
    """Quote an id as Django's admin does, or encode one that would not survive a path so."""
    segment = quote(run_id)
    if segment in _DOTS or len(percent_quote(segment)) > _LONGEST_QUOTED:
        return _ENCODED + _base64(run_id.encode())
    return segment


def admin_segment(segment: str) -> str:
    """Turn a segment of a path into one that Django's admin unquotes to the id."""
    if not segment.startswith(_ENCODED):
        return segment
    try:
        return quote(_from_base64(segment.removeprefix(_ENCODED)).decode())
    except ValueError:
        return segment


def form_value(run_id: str) -> str:
    """Write an id for a form: browsers replace line breaks in what they send."""
    return percent_quote(run_id, safe="/:@")


def from_form(value: str) -> str:
    """Read an id out of a form."""
    return percent_unquote(value)


def owner_token(owner: OwnerId) -> str:
    """Write an owner for a URL, whatever its three parts consist of."""
    return url_token([owner.host_id, owner.pid, owner.nonce])


def owner_from_token(token: str) -> OwnerId | None:
    """Read an owner out of a URL; None for what nobody here has written."""
    match values_of_token(token):
        case [str(host_id), int(pid), str(nonce)] if (
            is_durable_text(host_id) and is_durable_text(nonce) and safe_integer(pid) is not None
        ):
            return OwnerId(host_id, pid, nonce)
    return None


def url_token(values: Sequence[int | str]) -> str:
    """Write values for a URL so that they survive it."""
    return _base64(json.dumps(list(values), ensure_ascii=False).encode())


def values_of_token(token: str) -> list[object]:
    """Read what ``url_token()`` wrote; empty for anything else."""
    if len(token) > _LONGEST_TOKEN:
        return []
    try:
        said = json.loads(_from_base64(token))
    except (ValueError, RecursionError):
        return []
    return said if isinstance(said, list) else []


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _from_base64(text: str) -> bytes:
    padded = text + "=" * (-len(text) % 4)
    return base64.b64decode(padded, altchars=b"-_", validate=True)
