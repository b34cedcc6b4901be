"""Filters by a name: of a handler, of a queue, of what is waited for, of who owns a run."""

from collections.abc import Iterable, Iterator
from typing import Any

from django.contrib.admin import ModelAdmin, SimpleListFilter
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_runstore.admin.addresses import owner_from_token, owner_token
from django_runstore.admin.choices import MOST_OFFERED, names_offered
from django_runstore.admin.wording import brief
from django_runstore.durable import is_durable_text
from django_runstore.models import SupervisorProcess
from django_runstore.states import LIVE_STATUSES, RunStatus


class _NameFilter(SimpleListFilter):
    """
    Offers names, and takes any other from the URL as well.

    What is offered is bounded; what a link may lead to is not.
    """

    def has_output(self) -> bool:
        """Show it also when nothing is offered but something is chosen."""
        return bool(self.lookup_choices) or self.value() is not None

    def narrows(self) -> bool:
        """Tell whether a name was chosen."""
        return self.value() is not None

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Find nothing for a name that could not have been stored."""
        value = self.value()
        if value is None:
            return queryset
        if value and not is_durable_text(value):
            return queryset.none()
        return self.narrow(queryset, value)

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        """Add the chosen name where it is not among those offered."""
        chosen = self.value()
        if chosen is not None and chosen not in {name for name, _ in self.lookup_choices}:
            self.lookup_choices = [(chosen, self.shown(chosen)), *self.lookup_choices]
        return super().choices(changelist)

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        """Keep the rows with this name."""
        raise NotImplementedError

    def shown(self, value: str) -> str:
        """Show a name so that it fits beside the list."""
        return brief(value) if value else gettext("(none)")

    def _offered(self, names: Iterable[str]) -> list[tuple[str, str]]:
        return [(name, self.shown(name)) for name in names]


class HandlerFilter(_NameFilter):
    """Runs of one handler."""

    title = _("handler")
    parameter_name = "handler"

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> Iterable[Any]:
        """Offer the handlers of settled runs and those known here."""
        return self._offered(names_offered(request).handlers)

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        """Filter by handler."""
        return queryset.filter(handler=value)


class QueueFilter(_NameFilter):
    """Runs of one queue."""

    title = _("queue")
    parameter_name = "queue"

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> Iterable[Any]:
        """Offer the queues of settled and of claimable runs."""
        return self._offered(names_offered(request).queues)

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        """Filter by queue."""
        return queryset.filter(queue=value)


class WaitingFilter(_NameFilter):
    """Runs that wait for one thing."""

    title = _("waiting for")
    parameter_name = "waiting"

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> Iterable[Any]:
        """Offer what is waited for at the moment."""
        return self._offered(names_offered(request).waiting)

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        """Filter by the reason to wait."""
        return queryset.filter(waiting_reason=value, status__in=LIVE_STATUSES)


class OwnerFilter(_NameFilter):
    """Runs that one process owns."""

    title = _("owner")
    parameter_name = "owner"

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> Iterable[Any]:
        """Offer the supervisors that said last that they are there."""
        rows = SupervisorProcess.objects.order_by("-pulsed_at_ms")[:MOST_OFFERED]
        return [(owner_token(row.owner), row.owner.describe()) for row in rows]

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        """Filter by the whole name of the owner, among the few runs that have one."""
        owner = owner_from_token(value)
        if owner is None:
            return queryset.none()
        return queryset.filter(
            status=RunStatus.RUNNING,
            owner_host_id=owner.host_id,
            owner_pid=owner.pid,
            owner_nonce=owner.nonce,
        )

    def shown(self, value: str) -> str:
        """Name the owner of a link."""
        owner = owner_from_token(value)
        return gettext("(nobody)") if owner is None else owner.describe()
