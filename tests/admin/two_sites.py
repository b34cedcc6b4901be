"""A project with a second admin site that has runs of a subclass, and nothing else of ours."""

from django.contrib import admin
from django.urls import path

from django_runstore.admin import RunAdmin
from django_runstore.admin.actions.cancel_run import CancelRun
from django_runstore.admin.actions.contract import Answer, Group, Member, RunAction, carry_out
from django_runstore.admin.run_page.sections import Section
from django_runstore.models import Run


class Greet(RunAction):
    """An action of a project."""

    name = "greet"
    permission = "view_run"
    label = "Greet the run"
    list_label = "Greet selected runs"
    confirm_label = "Yes, greet"
    meaning = ("It is greeted.",)

    def is_offered(self, run, using):
        return True

    def preview(self, runs, store):
        return (Group("Will be greeted", [Member(run) for run in runs], is_affected=True),)

    def perform(self, runs, acting):
        for run in runs:
            answer = Answer(run.run_id, "Greeted", is_done=True)
            yield carry_out(run, acting, self.label, lambda greeted=answer: greeted)


class Weather(Section):
    """A section of a project."""

    name = "weather"
    title = "Weather"
    template = "admin/runstore/run/documents.html"

    def content(self, page):
        return {"documents": ()}


class OpsRunAdmin(RunAdmin):
    """Fewer and other things than the original."""

    run_actions = (CancelRun(), Greet())
    run_sections = (Weather(),)


ops = admin.AdminSite("ops")
ops.register(Run, OpsRunAdmin)

urlpatterns = [path("admin/", admin.site.urls), path("night/ops/", ops.urls)]
