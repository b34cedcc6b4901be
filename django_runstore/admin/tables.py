"""Entries of a run's journal as a table on the run's page."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

T = TypeVar("T")


def table_of_newest(
    newest: list[T], most: int, headings: Iterable[str], row: Callable[[T], tuple[str, ...]]
) -> SafeString:
    """
    Show the first ``most`` of ``newest``, and say so when there are more.

    Args:
        row: Says what stands in each column; everything is escaped here.
    """
    head = format_html_join("", '<th scope="col">{}</th>', ((each,) for each in headings))
    body = format_html_join("", "<tr>{}</tr>", ((_cells(row(each)),) for each in newest[:most]))
    shown = format_html("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>", head, body)
    if len(newest) <= most:
        return shown
    return format_html(
        "{}<p>{}</p>", shown, _("Only the newest %(most)d are shown.") % {"most": most}
    )


def _cells(texts: tuple[str, ...]) -> SafeString:
    return format_html_join("", "<td>{}</td>", ((text,) for text in texts))
