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

# A browser resolves these two as folders before it asks. Django's own quoting writes every
# underscore as _5F, so that no other id looks like this.
_DOTS: Final = {".": "_2E", "..": "_2E_2E"}
_LONGEST_TOKEN: Final = 16_000
_IDS: Final = {segment: run_id for run_id, segment in _DOTS.items()}


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
    segment = quote(run_id)
    return _DOTS.get(segment, segment)


def admin_segment(segment: str) -> str:
    """Turn a segment of a path into one that Django's admin unquotes to the id."""
    return _IDS.get(segment, segment)


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
    said = json.dumps(list(values), ensure_ascii=False)
    return base64.urlsafe_b64encode(said.encode()).decode().rstrip("=")


def values_of_token(token: str) -> list[object]:
    """Read what ``url_token()`` wrote; empty for anything else."""
    if len(token) > _LONGEST_TOKEN:
        return []
    try:
        padded = token + "=" * (-len(token) % 4)
        said = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        return []
    return said if isinstance(said, list) else []
