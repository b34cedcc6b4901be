"""A list of the admin that is paged by key and counts nothing."""

from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from django.contrib.admin.views.main import SEARCH_VAR, ChangeList
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest

from django_runstore.admin.keyset import Edge, Section, edge_from, read_page

if TYPE_CHECKING:
    from django_runstore.admin.read_only import ReadOnlyAdmin

AFTER: Final = "after"
BEFORE: Final = "before"


@runtime_checkable
class NarrowingFilter(Protocol):
    """A filter that tells whether it narrows the list, and so which index will be read."""

    parameter_name: str

    def value(self) -> str | None:
        """Give what was chosen."""
        ...

    def narrows(self) -> bool:
        """Tell whether something was chosen in it."""
        ...


class KeysetChangeList(ChangeList):
    """
    A list in the order of an index, whatever the URL asks for.

    Attributes:
        newer_url, older_url, first_url: Links to the pages around this one; None where there
            is no such page. Filters and search go along.
        unsearched_url: Link to the list without the search.
    """

    model_admin: "ReadOnlyAdmin[Any]"

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
        """Ignore the order in the URL: sorting a big table by any other reads all of it."""
        return list(self.model_admin.ordering or ())

    def get_queryset(
        self, request: HttpRequest, exclude_parameters: list[str | None] | None = None
    ) -> QuerySet[Any]:
        """Keep what the filters leave apart from what the search then finds in it."""
        for place in (AFTER, BEFORE):
            self.params.pop(place, None)
            self.filter_params.pop(place, None)
        term, self.query = self.query, ""
        try:
            self.filtered = super().get_queryset(request, exclude_parameters).order_by()
        finally:
            self.query = term
        found, _ = self.model_admin.get_search_results(request, self.filtered, term)
        return found

    def get_results(self, request: HttpRequest) -> None:
        """Read the page that the URL names, or the first one when it names none."""
        sections = self._sections()
        edge: Edge | None = None
        for name in (AFTER, BEFORE):
            if token := request.GET.get(name):
                edge = edge_from(token, sections, is_before=name == BEFORE)
        page = read_page(sections, edge, self.list_per_page)
        self.result_list = page.rows
        self.newer_url = page.before and self._url(BEFORE, page.before)
        self.older_url = page.after and self._url(AFTER, page.after)
        is_first = edge is None or (edge.is_before and page.before is None)
        self.first_url = None if is_first else self.get_query_string()
        self.unsearched_url = self.get_query_string(remove=[SEARCH_VAR])
        # What Django's own templates ask for. The rows of this page are all that is known.
        self.result_count = len(page.rows)
        self.full_result_count = None
        self.show_full_result_count = False
        self.show_admin_actions = bool(page.rows)
        self.show_all = self.can_show_all = False
        self.multi_page = bool(page.before or page.after)
        self.paginator = Paginator(page.rows, self.list_per_page)

    def _sections(self) -> list[Section[Any]]:
        chosen = {
            spec.parameter_name: spec.value() or ""
            for spec in self.filter_specs
            if isinstance(spec, NarrowingFilter) and spec.narrows()
        }
        return self.model_admin.get_sections(self.filtered, self.query, chosen)

    def _url(self, name: str, edge: Edge) -> str:
        return self.get_query_string({name: edge.token()})
