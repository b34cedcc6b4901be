"""Every page and action that the admin of this app has, walked by everybody."""

import re
from html import unescape

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.urls import reverse

from django_runstore.admin.actions.registry import ACTIONS
from django_runstore.admin.addresses import form_value
from django_runstore.models import JournalEntry, Run
from django_runstore.testing import FakeClock
from django_runstore.testing.factories import RunFactory

pytestmark = pytest.mark.django_db

RUN = "walked-1"
ACTION_NAMES = [action.name for action in ACTIONS]
MODELS = [model for model in admin.site._registry if model._meta.app_label == "runstore"]

# What stands in a URL for each kind of argument. A page with another one has to be added.
SAMPLES = {
    "object_id": {"run": [quote(RUN)], "journalentry": ["the entry's"]},
    "action_name": ACTION_NAMES,
}
# What the admin of a model that nobody changes still has, and refuses everybody.
REFUSED = ("_add", "_delete")


def patterns():
    return [(model, found) for model in MODELS for found in admin.site._registry[model].get_urls()]


def addresses_of(model, pattern):
    """The URLs of a pattern, one for each combination of samples."""
    entry = JournalEntry.objects.filter(run_id=RUN).first()
    arguments = [{}]
    for name in pattern.pattern.converters:
        samples = SAMPLES[name]
        values = samples[model._meta.model_name] if isinstance(samples, dict) else samples
        if name == "object_id" and model is JournalEntry:
            values = [str(entry.pk)]
        arguments = [{**known, name: value} for known in arguments for value in values]
    if pattern.name is None:
        # Django's redirect from addresses of old.
        return [f"/admin/runstore/{model._meta.model_name}/{arguments[0]['object_id']}/"]
    return [reverse(f"admin:{pattern.name}", kwargs=known) for known in arguments]


def pages():
    """Name and address of every page."""
    return [(found.name, url) for model, found in patterns() for url in addresses_of(model, found)]


@pytest.fixture(autouse=True)
def walked():
    RunFactory(run_id=RUN, running=True, clock=FakeClock(0), lineage_id="line", round_ordinal=0)
    RunFactory.raw(run_id="walked-2", status="suspended", waiting_reason="approval")


def everything():
    """All that a page could have changed."""
    return (
        list(Run.objects.order_by("pk").values()),
        list(JournalEntry.objects.order_by("pk").values()),
        LogEntry.objects.count(),
    )


def attempts(client, url):
    """Ask for a page in every way, with all that its forms could send."""
    selected = {ACTION_CHECKBOX_NAME: [form_value(RUN), form_value("walked-2")]}
    sent = {"run": [form_value(RUN)], "shown_at_ms": "0", "confirmed": "1"}
    yield client.get(url)
    yield client.head(url)
    yield client.post(url, sent)
    for name in [*ACTION_NAMES, "delete_selected", "nonsense"]:
        yield client.post(url, {"action": name, "index": "0", "select_across": "1", **selected})
    yield client.post(url, {"status": "completed", "_save": "1", **sent})
    yield client.post(url, {"post": "yes"})


@pytest.fixture
def stranger(db, client):
    return client


@pytest.fixture
def guest(member):
    return member()


@pytest.fixture
def meddler(member):
    """Everything Django grants by itself, and none of the permissions of the actions."""
    verbs = ("view", "add", "change", "delete")
    return member(*(f"{verb}_{name}" for verb in verbs for name in ("run", "journalentry")))


@pytest.fixture
def superuser(admin_client):
    return admin_client


def test_the_models_that_can_be_walked_are_known():
    registered = {model._meta.model_name for model in MODELS}
    assert registered == set(SAMPLES["object_id"])
    assert {model._meta.model_name for model in apps.get_app_config("runstore").get_models()} >= (
        registered
    )


def test_every_kind_of_argument_has_a_sample():
    arguments = {name for _, found in patterns() for name in found.pattern.converters}
    assert arguments <= set(SAMPLES)


def test_a_visitor_gets_nothing_but_the_way_to_log_in(stranger):
    before = everything()
    for name, url in pages():
        for response in attempts(stranger, url):
            assert response.status_code == 302, (name, response.status_code)
            assert response["Location"].startswith("/admin/login/"), name
    assert everything() == before


def test_staff_without_a_permission_gets_nothing(guest):
    before = everything()
    for name, url in pages():
        for response in attempts(guest, url):
            # A redirect from an address of old says no more than the address; a page that
            # takes forms only does not say who may send them.
            allowed = {302} if name is None else {403, 405}
            assert response.status_code in allowed, (name, response.status_code)
    assert everything() == before


@pytest.mark.parametrize("person", ["viewer", "meddler"])
def test_who_may_view_sees_every_page_and_changes_nothing(request, person):
    client = request.getfixturevalue(person)
    before = everything()
    for name, url in pages():
        response = client.get(url)
        refused = name is not None and (name.endswith(REFUSED) or "_act" in name)
        expected = {403, 405} if refused else {200, 302}
        assert response.status_code in expected, (name, response.status_code)
        for response in attempts(client, url):
            assert response.status_code in {200, 302, 403, 405}, (name, response.status_code)
    assert everything() == before


@pytest.mark.parametrize("action", ACTIONS, ids=ACTION_NAMES)
def test_a_permission_opens_its_own_action_and_no_other(member, action):
    client = member("view_run", action.permission)
    for other in ACTIONS:
        kwargs = {"object_id": quote(RUN), "action_name": other.name}
        response = client.get(reverse("admin:runstore_run_act", kwargs=kwargs))
        allowed = other.permission == action.permission
        assert response.status_code == (200 if allowed else 403)


@pytest.mark.parametrize("action", ACTIONS, ids=ACTION_NAMES)
def test_the_permission_of_an_action_without_the_view_opens_nothing(member, action):
    client = member(action.permission)
    before = everything()
    for name, url in pages():
        for response in attempts(client, url):
            allowed = {302} if name is None else {403, 405}
            assert response.status_code in allowed, (name, response.status_code)
    assert everything() == before


def test_a_superuser_sees_every_page_and_adds_and_deletes_nothing(superuser):
    kept = set(Run.objects.values_list("pk", flat=True))
    for name, url in pages():
        response = superuser.get(url)
        refused = name is not None and name.endswith(REFUSED)
        assert response.status_code in ({403} if refused else {200, 302, 405}), name
        for response in attempts(superuser, url):
            assert response.status_code < 500, (name, response.status_code)
    assert set(Run.objects.values_list("pk", flat=True)) == kept


def test_every_form_that_changes_something_is_protected_against_other_sites(
    django_user_model, client
):
    client.handler.enforce_csrf_checks = True
    client.force_login(django_user_model.objects.create_superuser("root"))
    before = everything()
    for _, url in pages():
        assert client.post(url, {"run": form_value(RUN)}).status_code in {302, 403, 405}
    assert everything() == before


def test_every_page_is_clean_under_a_strict_content_security_policy(superuser):
    for name, url in pages():
        text = superuser.get(url).content.decode()
        assert " style=" not in text, name
        assert "<style" not in text, name
        assert not re.search(r"<script(?![^>]*\ssrc=)(?![^>]*application/json)", text), name
        assert not re.search(r"<[^>]*\son[a-z]+=", text), name
        assert "javascript:" not in text, name
        outside = re.findall(r'(?:src|href|action)="((?:https?:)?//[^"]*)"', text)
        assert outside == [], (name, outside)


def test_every_link_of_every_page_leads_somewhere(superuser):
    seen = set()
    for name, url in pages():
        for link in re.findall(r'href="([^"]*)"', superuser.get(url).content.decode()):
            path = unescape(link).partition("#")[0]
            if path.startswith("?"):
                path = url + path
            if "/runstore/" not in path or "/static/" in path or path in seen:
                continue
            seen.add(path)
            assert superuser.get(path).status_code in {200, 302}, (name, path)
    assert len(seen) > 20
