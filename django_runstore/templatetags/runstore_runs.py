"""What the templates of the admin need to show runs safely."""

from typing import Any

from django import template
from django.template import Context
from django.utils.html import format_html
from django.utils.safestring import SafeString

from django_runstore.admin.addresses import run_url
from django_runstore.admin.badges import status_badge
from django_runstore.admin.wording import shown_text

register = template.Library()

register.simple_tag(status_badge)


@register.filter
def visible(text: object) -> str:
    """Spell out what a page could not carry, or would show as something else than it is."""
    return shown_text(str(text))


@register.simple_tag(takes_context=True)
def run_link(context: Context, run_id: str) -> SafeString:
    """Link to the page of a run, by its whole id."""
    site: Any = context["runstore_site"]
    return format_html('<a href="{}">{}</a>', run_url(run_id, site), shown_text(run_id))


@register.simple_tag(takes_context=True)
def run_lineage_url(context: Context, run_id: str) -> str:
    """Address the page of a run's lineage."""
    site: Any = context["runstore_site"]
    return run_url(run_id, site, "lineage")
