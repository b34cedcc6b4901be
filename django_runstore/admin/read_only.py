"""What both admins share: nothing can be changed, and nothing counts a big table."""

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import BadRequest
from django.core.paginator import Paginator
from django.db import router
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest

from django_runstore.durable import is_durable_text

ModelT = TypeVar("ModelT", bound=Model)

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[ModelT]
    _Paginator = Paginator[Any]
else:
    # The classes are generic for type checkers only.
    class _ModelAdmin(admin.ModelAdmin):
        def __class_getitem__(cls, _: object) -> type:
            return cls

    _Paginator = Paginator

MOST_COUNTED: Final = 10_000
"""How many rows of a list are counted and can be paged through; filters find the others."""


def database_of(row: Model) -> str:
    """Name the database that a row was read from."""
    return router.db_for_read(type(row), instance=row)


class BoundedPaginator(_Paginator):
    """Counts to ``MOST_COUNTED`` and no further: COUNT(*) reads the whole table."""

    @cached_property
    def count(self) -> int:
        """How many rows there are, ``MOST_COUNTED`` standing for that many and more."""
        rows = self.object_list
        if isinstance(rows, QuerySet):
            return rows.order_by()[:MOST_COUNTED].count()
        return len(rows)


class IndexedChangeList(ChangeList):
    """A list in the declared order only; sorting a big table by any other reads all of it."""

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
        """Ignore the order in the URL."""
        return list(self.model_admin.ordering or ())


class ReadOnlyAdmin(_ModelAdmin[ModelT]):
    """
    Shows rows that services write.

    Sorting by a column or filtering by one in the URL is refused: either could read all of
    a big table, and a filter on a hidden column would tell what is in it.
    """

    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    list_per_page = 50
    list_max_show_all = 0
    sortable_by = ()

    class Media:
        css: ClassVar = {"all": ["runstore/admin.css"]}
        js: ClassVar = ["runstore/live.js"]

    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Refuse: rows are made by services."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Refuse: rows are changed under their fence."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Refuse: what happened stays on record."""
        return False

    def lookup_allowed(
        self, lookup: str, value: object, request: HttpRequest | None = None
    ) -> bool:
        """Allow the declared filters only; they check their values themselves."""
        return lookup in {getattr(each, "parameter_name", None) for each in self.list_filter}

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """List in the order of an index, whatever the URL asks for."""
        return IndexedChangeList

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> ModelT | None:
        """Find nothing for an id that could not have been stored, such as one with a NUL."""
        if not is_durable_text(object_id):
            raise Http404
        return super().get_object(request, object_id, from_field)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:  # noqa: ANN401 - Django's own type is a union that says no more
        """Refuse selected ids that could not have been stored."""
        if not all(map(is_durable_text, request.POST.getlist(ACTION_CHECKBOX_NAME))):
            raise BadRequest("A selected id is not well-formed text.")
        return super().changelist_view(request, extra_context)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[ModelT], search_term: str
    ) -> tuple[QuerySet[ModelT], bool]:
        """Take what was typed as one term: ids may hold spaces and quotes."""
        if not search_term:
            return queryset, False
        if not is_durable_text(search_term):
            return queryset.none(), False
        return self.search(queryset, search_term), False

    def search(self, queryset: QuerySet[ModelT], term: str) -> QuerySet[ModelT]:
        """Find rows by a well-formed term."""
        raise NotImplementedError
