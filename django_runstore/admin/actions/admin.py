"""The registry's actions as a part of the admin of runs: offered, confirmed, done, reported."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.templatetags.admin_urls import add_preserved_filters
from django.contrib.admin.utils import unquote
from django.core.exceptions import BadRequest, PermissionDenied
from django.db import router
from django.db.models import QuerySet
from django.forms import CheckboxInput
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from django_runstore.admin.actions.contract import (
    COLUMNS,
    MOST_RUNS,
    Acting,
    Answer,
    RunAction,
    Words,
    gone,
)
from django_runstore.admin.actions.registry import ACTIONS
from django_runstore.admin.actions.reporting import reports_of
from django_runstore.admin.addresses import (
    action_url,
    admin_segment,
    form_value,
    from_form,
    list_url,
    run_url,
)
from django_runstore.admin.cursors import whole_number
from django_runstore.admin.read_only import ReadOnlyAdmin, database_of
from django_runstore.display_text import printable
from django_runstore.durable import is_durable_text
from django_runstore.models import Run
from django_runstore.services import RunStore

RUNS: Final = "run"
CONFIRMED: Final = "confirmed"
SHOWN_AT: Final = "shown_at_ms"
BACK: Final = "back"


@dataclass(frozen=True, slots=True)
class Button:
    """An action as a page offers it for one run."""

    label: Words
    url: str
    is_drastic: bool


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an action was asked for, and so where its form is sent and its answer is shown."""

    form_url: str
    back_url: str
    run_name: str = ""


def _list_action(action: RunAction) -> Callable[..., HttpResponse | None]:
    """Make what Django calls with the rows that were selected in the list."""

    def choose(admin: "RunActions", request: HttpRequest, selected: QuerySet[Run]) -> Any:  # noqa: ANN401 - a response or None
        return admin.choose_in_list(request, action, selected)

    choose.__name__ = action.name
    choose.short_description = action.list_label  # type: ignore[attr-defined]
    return choose


class RunActions(ReadOnlyAdmin[Run]):
    """
    Offers the actions of ``run_actions``, asks before it does anything, and reports.

    To offer fewer, or some of your own, subclass and set ``run_actions``.
    """

    run_actions: ClassVar[Sequence[RunAction]] = ACTIONS
    action_template = "admin/runstore/run/act.html"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # On the instance: a subclass decides with run_actions alone.
        self.actions = [*(self.actions or ()), *map(_list_action, self.run_actions)]

    def may_perform(self, request: HttpRequest, action: RunAction, run: Run | None = None) -> bool:
        """Tell whether the user has the action's permission; to view runs is needed as well."""
        return self.has_view_permission(request, run) and request.user.has_perm(
            f"{self.opts.app_label}.{action.permission}"
        )

    def get_actions(self, request: HttpRequest, action_location: Any = None) -> Any:  # noqa: ANN401 - differs between releases of Django
        """Keep what the user may do; Django 6.1 says where it asks from, earlier ones do not."""
        found = (
            super().get_actions(request)
            if action_location is None
            else super().get_actions(request, action_location)
        )
        denied = {each.name for each in self.run_actions if not self.may_perform(request, each)}
        return {name: action for name, action in found.items() if name not in denied}

    def buttons_for(self, request: HttpRequest, run: Run, *, back: str = "run") -> list[Button]:
        """List the actions that make sense for ``run`` and that the user may perform."""
        return [
            Button(
                action.label,
                f"{action_url(action.name, self.admin_site, run.run_id)}?{BACK}={back}",
                action.is_drastic,
            )
            for action in self.run_actions
            if self.may_perform(request, action, run) and action.is_offered(run, database_of(run))
        ]

    def get_urls(self) -> list[URLPattern]:
        """Add the confirmation pages."""
        name = f"{self.opts.app_label}_{self.opts.model_name}"
        wrap = self.admin_site.admin_view
        return [
            # No id is written like this: Django's quoting writes an underscore as _5F.
            path(
                "_act/<slug:action_name>/",
                wrap(require_POST(self.act_on_many)),
                name=f"{name}_act_on_many",
            ),
            path(
                "<path:object_id>/act/<slug:action_name>/",
                wrap(self.act_on_one),
                name=f"{name}_act",
            ),
            *super().get_urls(),
        ]

    def choose_in_list(
        self, request: HttpRequest, action: RunAction, selected: QuerySet[Run]
    ) -> HttpResponse | None:
        """Ask for confirmation of what was selected in the list."""
        runs = list(selected.order_by("run_id").only(*COLUMNS)[: MOST_RUNS + 1])
        if len(runs) > MOST_RUNS:
            message = _("Select at most %(most)d runs; nothing was done.") % {"most": MOST_RUNS}
            self.message_user(request, message, messages.ERROR)
            return None
        if not runs:
            self.message_user(request, _("None of them is there any more."), messages.WARNING)
            return None
        return self._confirm(request, action, runs, self._list_place(request, action))

    def act_on_many(self, request: HttpRequest, action_name: str) -> HttpResponse:
        """Do what was confirmed to the runs that the form names."""
        action = self._permitted(request, action_name)
        run_ids = [from_form(value) for value in request.POST.getlist(RUNS)]
        if len(run_ids) > MOST_RUNS or not all(map(is_durable_text, run_ids)):
            raise BadRequest("The form names too many runs, or what can be no run.")
        found = self._read(request, run_ids)
        place = self._list_place(request, action)
        known = {run.run_id for run in found}
        missing = [gone(run_id) for run_id in run_ids if run_id not in known]
        return self._answer(request, action, found, place, missing)

    def act_on_one(self, request: HttpRequest, object_id: str, action_name: str) -> HttpResponse:
        """Ask for confirmation, or do what was confirmed, for the run of the address."""
        action = self._permitted(request, action_name)
        run_id = unquote(admin_segment(object_id))
        if not is_durable_text(run_id):
            raise Http404
        runs = self._read(request, [run_id])
        if not runs:
            message = _("Run %(run)s is not there any more.") % {"run": printable(run_id)}
            self.message_user(request, message, messages.WARNING)
            return HttpResponseRedirect(list_url(self.admin_site))
        if not self.may_perform(request, action, runs[0]):
            raise PermissionDenied
        page: Any = "lineage" if request.GET.get(BACK) == "lineage" else "change"
        place = _Place("", run_url(run_id, self.admin_site, page), printable(run_id))
        if request.method == "POST":
            return self._answer(request, action, runs, place)
        return self._confirm(request, action, runs, place)

    def _permitted(self, request: HttpRequest, action_name: str) -> RunAction:
        action = next((each for each in self.run_actions if each.name == action_name), None)
        if action is None:
            raise Http404
        if not self.may_perform(request, action):
            raise PermissionDenied
        return action

    def _read(self, request: HttpRequest, run_ids: Iterable[str]) -> list[Run]:
        """Read runs that the user may see, from where writes go, in the order of their ids."""
        runs = self.get_queryset(request).using(router.db_for_write(Run))
        return list(runs.filter(pk__in=list(run_ids)).order_by("run_id").only(*COLUMNS))

    def _list_place(self, request: HttpRequest, action: RunAction) -> _Place:
        kept: Any = {"preserved_filters": self.get_preserved_filters(request), "opts": self.opts}
        return _Place(
            add_preserved_filters(kept, action_url(action.name, self.admin_site)),
            add_preserved_filters(kept, list_url(self.admin_site)),
        )

    def _confirm(
        self, request: HttpRequest, action: RunAction, runs: Sequence[Run], place: _Place
    ) -> TemplateResponse:
        """Show what would happen to which runs, and a form that makes it happen."""
        store = RunStore(router.db_for_write(Run))
        shown_at_ms = int(store.clock.now_ms())
        groups = [group for group in action.preview(runs, store) if group.members]
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            "title": action.list_label if len(runs) > 1 else action.label,
            "subtitle": None,
            "opts": self.opts,
            "media": self.media,
            "action": action,
            "groups": groups,
            "runstore_site": self.admin_site,
            "is_anything_affected": any(group.is_affected for group in groups),
            "run_name": place.run_name,
            "run_page_url": place.back_url,
            "form_url": place.form_url,
            "back_url": place.back_url,
            "hidden": [
                (SHOWN_AT, str(shown_at_ms)),
                *((RUNS, form_value(run.run_id)) for run in runs),
            ],
        }
        return TemplateResponse(request, self.action_template, context)

    def _answer(
        self,
        request: HttpRequest,
        action: RunAction,
        runs: Sequence[Run],
        place: _Place,
        missing: Sequence[Answer] = (),
    ) -> HttpResponse:
        """Do it, and say of each run what became of it."""
        store = RunStore(router.db_for_write(Run))
        acting = Acting(
            store,
            record=lambda run, words: self.log_change(request, run, words),
            shown_at_ms=whole_number(request.POST.get(SHOWN_AT)),
        )
        for report in reports_of([*missing, *action.perform(runs, acting)]):
            level = messages.SUCCESS if report.is_done else messages.WARNING
            self.message_user(request, str(report), level)
        return HttpResponseRedirect(place.back_url)

    def action_checkbox(self, obj: Run) -> SafeString:
        """Offer the run for an action."""
        label = _("Select run %(run)s") % {"run": printable(obj.run_id)}
        checkbox = CheckboxInput({"class": "action-select", "aria-label": label}, lambda _: False)
        return checkbox.render(ACTION_CHECKBOX_NAME, form_value(obj.run_id))

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:  # noqa: ANN401 - Django's own type is a union that says no more
        """Read the selected ids the way the checkboxes write them."""
        posted = request.POST.copy()
        selected = posted.getlist(ACTION_CHECKBOX_NAME)
        posted.setlist(ACTION_CHECKBOX_NAME, list(map(from_form, selected)))
        request.POST = posted  # type: ignore[assignment]  # Django's stubs want an immutable one
        return super().changelist_view(request, extra_context)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add the buttons of the run's page."""
        context["run_buttons"] = self.buttons_for(request, context["original"])
        return super().render_change_form(request, context, *args, **kwargs)
