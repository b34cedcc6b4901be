"""What both admins share: nothing can be changed, and nothing counts a big table."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import BadRequest
from django.db import router
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse

from django_runstore.admin.keyset import Section
from django_runstore.admin.keyset_list import KeysetChangeList
from django_runstore.clocks import clock_for
from django_runstore.durable import is_durable_text

ModelT = TypeVar("ModelT", bound=Model)

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[ModelT]
else:
    # The classes are generic for type checkers only.
    class _ModelAdmin(admin.ModelAdmin):
        def __class_getitem__(cls, _: object) -> type:
            return cls


def database_of(row: Model) -> str:
    """Name the database that a row was read from."""
    return router.db_for_read(type(row), instance=row)


def store_now_ms(row: Model) -> int:
    """Read the clock that stamps a row's times."""
    return int(clock_for(database_of(row)).now_ms())


class ReadOnlyAdmin(_ModelAdmin[ModelT]):
    """
    Shows rows that services write.

    Sorting by a column or filtering by one in the URL is refused: either could read all of
    a big table, and a filter on a hidden column would tell what is in it.
    """

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
        return KeysetChangeList

    def get_sections(
        self, queryset: QuerySet[ModelT], term: str, chosen: Mapping[str, str]
    ) -> list[Section[ModelT]]:
        """
        Say in which order, and by which parts, the list is read.

        Args:
            queryset: What the filters leave, before the search.
            term: What was searched for, without NUL; empty for everything.
            chosen: The filters that narrow the list, by parameter, and their values.
        """
        found = self.search(queryset, term) if term else queryset
        columns = [str(each).removeprefix("-") for each in self.ordering or ()]
        key = self.opts.pk.name
        return [Section([found], tuple(key if each == "pk" else each for each in columns))]

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[ModelT], *args: Any, **kwargs: Any
    ) -> HttpResponse | None:
        """Act on what was selected and never on all that there is: nobody has counted that."""
        posted = request.POST.copy()
        posted["select_across"] = "0"
        request.POST = posted  # type: ignore[assignment]  # Django's stubs want an immutable one
        return super().response_action(request, queryset, *args, **kwargs)

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
