import re
from html import unescape

import pytest
from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE, LogEntry
from django.test import Client

from django_runstore.admin import RunAdmin
from django_runstore.admin.actions.cancel_run import CancelRun
from django_runstore.admin.addresses import form_value
from django_runstore.models import Run
from django_runstore.testing.factories import RunFactory
from tests.admin.forms import said, send
from tests.admin.pages import RUNS, act_url, run_url

pytestmark = pytest.mark.django_db

ODD_IDS = ["a/b?#", "🚀" * 512, "x" * 1_024, "a,b", "a\nb\rc", "..", ".", "%41", "_act", "a\u202eb"]


def requested(run):
    return Run.objects.get(pk=run.pk).cancel_requested_at_ms is not None


class TestFromTheList:
    def test_choosing_an_action_changes_nothing_yet(self, operator, choose):
        run = RunFactory()
        assert choose(operator, "cancel_run", run.pk).status_code == 200
        assert not requested(run)

    def test_only_permitted_actions_are_offered(self, operator, page):
        RunFactory()
        text = page(operator, RUNS)
        offered = set(re.findall(r'<option value="(\w+)"', text))
        assert offered == {"cancel_run"}

    def test_the_way_back_keeps_the_filters_of_the_list(self, operator, choose):
        RunFactory(run_id="a")
        url = f"{RUNS}?status=pending"
        confirmation = choose(operator, "cancel_run", "a", url=url)
        assert f'href="{url}"' in confirmation.content.decode()
        assert send(operator, confirmation)["Location"] == url

    def test_the_form_reaches_runs_that_have_left_the_filter(self, operator, choose):
        RunFactory(run_id="a")
        confirmation = choose(operator, "cancel_run", "a", url=f"{RUNS}?status=pending")
        Run.unguarded.filter(pk="a").update(status="suspended")
        assert said(send(operator, confirmation)) == ["Asked to stop: a"]

    def test_more_runs_than_one_means_to_act_on_are_refused(self, operator, choose, monkeypatch):
        monkeypatch.setattr("django_runstore.admin.actions.admin.MOST_RUNS", 2)
        runs = RunFactory.create_batch(3)
        response = choose(operator, "cancel_run", *(run.pk for run in runs))
        assert said(response) == ["Select at most 2 runs; nothing was done."]

    def test_a_form_with_more_runs_than_that_is_a_bad_request(self, operator, monkeypatch):
        monkeypatch.setattr("django_runstore.admin.actions.admin.MOST_RUNS", 2)
        runs = RunFactory.create_batch(3)
        data = {"run": [run.pk for run in runs]}
        assert operator.post(act_url("cancel_run"), data).status_code == 400
        assert not any(map(requested, runs))

    def test_runs_that_are_gone_are_named(self, operator, choose):
        RunFactory(run_id="a")
        response = operator.post(act_url("cancel_run"), {"run": ["gone", "a"]})
        assert said(response) == ["Asked to stop: a", "Not there any more: gone"]

    def test_when_all_are_gone_there_is_nothing_to_confirm(self, operator, choose):
        assert said(choose(operator, "cancel_run", "gone")) == ["None of them is there any more."]

    @pytest.mark.parametrize("run_id", ODD_IDS)
    def test_odd_ids_survive_list_and_confirmation(self, operator, page, run_id):
        run = RunFactory(run_id=run_id)
        offered = re.search(rf'name="{ACTION_CHECKBOX_NAME}" value="(.*?)"', page(operator, RUNS))
        # What stands in a form is sent as it is only where it has no line breaks.
        assert offered[1].isprintable()
        data = {"action": "cancel_run", ACTION_CHECKBOX_NAME: unescape(offered[1])}
        send(operator, operator.post(RUNS, data))
        assert requested(run)

    @pytest.mark.parametrize("value", ["a\0b", "a%00b", "%ED%A0%80\ud7ff%00"])
    def test_an_id_that_could_not_be_stored_is_a_bad_request(self, operator, value):
        data = {"action": "cancel_run", ACTION_CHECKBOX_NAME: [value]}
        assert operator.post(RUNS, data).status_code == 400
        assert operator.post(act_url("cancel_run"), {"run": [value]}).status_code == 400


class TestFromThePageOfARun:
    def test_each_permission_offers_its_own_button(self, operator, page):
        run = RunFactory()
        text = page(operator, run_url(run.pk))
        offered = [act_url(name, run.pk) in text for name in ("cancel_run", "cancel_lineage")]
        assert offered == [True, False]

    def test_a_superuser_has_both_buttons_and_a_viewer_none(self, admin_client, page, viewer):
        run = RunFactory()
        text = page(viewer, run_url(run.pk))
        assert "/act/" not in text

    @pytest.mark.parametrize("run_id", ["run-7", *ODD_IDS])
    def test_the_button_leads_to_the_confirmation_and_back(self, operator, page, run_id):
        run = RunFactory(run_id=run_id)
        text = page(operator, run_url(run.pk))
        (url,) = (unescape(each) for each in re.findall(r'href="([^"]*/act/[^"]*)"', text))
        confirmation = operator.get(url)
        assert confirmation.status_code == 200
        assert not requested(run)
        response = send(operator, confirmation)
        assert requested(run)
        assert response["Location"] == run_url(run.pk)

    def test_a_run_that_is_gone_is_said_to_be(self, operator):
        response = operator.get(act_url("cancel_run", "gone"))
        assert (response.status_code, response["Location"]) == (302, RUNS)
        assert said(response) == ["Run gone is not there any more."]

    @pytest.mark.parametrize("path", ["%00", "a%00b"])
    def test_an_id_with_a_nul_is_not_found(self, operator, path):
        assert operator.get(f"{RUNS}{path}/act/cancel_run/").status_code == 404

    def test_an_action_that_nobody_registered_is_not_found(self, admin_client):
        RunFactory(run_id="a")
        assert admin_client.get(f"{RUNS}a/act/delete/").status_code == 404
        assert admin_client.post(f"{RUNS}_act/delete/").status_code == 404


class TestHistory:
    def test_what_was_answered_is_in_the_history_of_the_run(self, operator, act):
        run = RunFactory(run_id="a/b")
        act(operator, "cancel_run", run.pk)
        entry = LogEntry.objects.get()
        found = (entry.object_id, entry.action_flag, entry.change_message, entry.user.username)
        assert found == ("a/b", CHANGE, "Cancel run: Asked to stop", "member")
        assert "Asked to stop" in operator.get(run_url(run.pk, "history")).content.decode()

    def test_an_answer_that_changed_nothing_is_there_as_well(self, operator):
        RunFactory(run_id="a", completed=True)
        operator.post(act_url("cancel_run", "a"))
        assert LogEntry.objects.get().change_message == "Cancel run: Ended before, as completed"

    def test_an_id_that_would_turn_a_line_around_is_spelled_out_there(self, operator, page):
        run = RunFactory(run_id="\u202etxt.exe")
        operator.post(act_url("cancel_run", run.pk))
        assert LogEntry.objects.get().object_repr == r"\u202etxt.exe"
        for url in (run_url(run.pk, "history"), "/admin/"):
            assert "\u202e" not in page(operator, url)

    def test_a_request_without_a_history_entry_is_not_made(self, operator, monkeypatch):
        run = RunFactory()

        def fail(*args, **kwargs):
            raise ZeroDivisionError

        monkeypatch.setattr("django.contrib.admin.ModelAdmin.log_change", fail)
        with pytest.raises(ZeroDivisionError):
            operator.post(act_url("cancel_run", run.pk))
        assert not requested(run)


class TestRequests:
    def test_a_request_to_read_does_nothing(self, admin_client):
        run = RunFactory()
        admin_client.get(act_url("cancel_run", run.pk), {"run": run.pk, "shown_at_ms": "1"})
        admin_client.get(RUNS, {"action": "cancel_run", ACTION_CHECKBOX_NAME: run.pk})
        assert admin_client.get(act_url("cancel_run")).status_code == 405
        assert not requested(run)

    @pytest.mark.parametrize("run_id", [None, "a"])
    def test_a_post_without_the_token_of_the_form_is_refused(self, admin_user, run_id):
        run = RunFactory(run_id="a")
        client = Client(enforce_csrf_checks=True)
        client.force_login(admin_user)
        assert client.post(act_url("cancel_run", run_id), {"run": ["a"]}).status_code == 403
        assert not requested(run)

    def test_the_body_cannot_name_another_run_than_the_address(self, operator):
        named, other = RunFactory(), RunFactory()
        operator.post(act_url("cancel_run", named.pk), {"run": [form_value(other.pk)]})
        assert (requested(named), requested(other)) == (True, False)

    @pytest.mark.parametrize("run_id", [None, "a"])
    def test_a_visitor_is_asked_to_log_in(self, client, run_id):
        run = RunFactory(run_id="a")
        response = client.post(act_url("cancel_run", run_id), {"run": ["a"]})
        assert (response.status_code, "login" in response["Location"]) == (302, True)
        assert not requested(run)

    @pytest.mark.parametrize("run_id", ["<script>alert(1)</script>", "\u202etxt.exe"])
    def test_the_confirmation_shows_ids_safely(self, operator, choose, run_id):
        text = choose(operator, "cancel_run", RunFactory(run_id=run_id).pk).content.decode()
        assert "<script>alert" not in text
        assert "\u202e" not in text


class TestSubclasses:
    def test_a_subclass_decides_what_is_offered(self, admin_user, rf):
        class Careful(RunAdmin):
            run_actions = (CancelRun(),)

        request = rf.get("/")
        request.user = admin_user
        careful = Careful(Run, admin.site)
        assert {"cancel_run"} == {name for name in careful.get_actions(request) if "_" in name}
        buttons = careful.buttons_for(request, RunFactory())
        assert [button.label for button in buttons] == ["Cancel run"]
