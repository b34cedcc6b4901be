import re

import pytest
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.urls import get_script_prefix, set_script_prefix

from django_runstore.admin import addresses
from django_runstore.models import Run
from django_runstore.testing.factories import RunFactory
from tests.admin.forms import said, send
from tests.admin.pages import links
from tests.admin.two_sites import ops

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.admin.two_sites")]

LIST = "/night/ops/runstore/run/"


@pytest.fixture
def lineage():
    RunFactory(run_id="line-0", lineage_id="line", round_ordinal=0)
    RunFactory(run_id="line-1", lineage_id="line", round_ordinal=1, parent_run_id="line-0")


def urls():
    pages = ("change", "history", "lineage")
    found = {page: addresses.run_url("line-1", ops, page) for page in pages}
    return {
        **found,
        "act": addresses.action_url("cancel_run", ops, "line-1"),
        "list": LIST,
        "overview": f"{LIST}overview/",
    }


def run_pages(text):
    return [url for url in links(text) if "/runstore/" in url and "/static/" not in url]


@pytest.fixture
def behind_a_proxy():
    """Do what a server does with the SCRIPT_NAME of a request; the test client does not."""
    before = get_script_prefix()
    yield lambda: set_script_prefix("/proxied/")
    set_script_prefix(before)


@pytest.mark.parametrize("name", ["list", "overview", "change", "history", "lineage", "act"])
def test_every_page_of_another_site_links_within_it(admin_client, page, lineage, name):
    found = run_pages(page(admin_client, urls()[name]))
    assert found
    assert [url for url in found if not url.startswith("/night/ops/")] == []


def test_actions_of_another_site_lead_back_to_it(admin_client, lineage):
    confirmation = admin_client.post(
        LIST, {"action": "cancel_run", ACTION_CHECKBOX_NAME: ["line-0", "line-1"]}
    )
    response = send(admin_client, confirmation)
    assert response["Location"] == LIST
    assert said(response) == ["Asked to stop: line-0, line-1"]
    response = send(admin_client, admin_client.get(urls()["act"] + "?back=lineage"))
    assert response["Location"] == urls()["lineage"]


@pytest.mark.parametrize("name", ["list", "overview", "change", "lineage", "act"])
def test_behind_a_proxy_every_link_has_its_prefix(
    admin_client, page, lineage, behind_a_proxy, name
):
    url = urls()[name]
    behind_a_proxy()
    found = run_pages(page(admin_client, url))
    assert found
    assert [link for link in found if not link.startswith("/proxied/night/ops/")] == []


def test_behind_a_proxy_an_answer_leads_back_behind_it(admin_client, lineage, behind_a_proxy):
    act, change = urls()["act"], urls()["change"]
    behind_a_proxy()
    assert admin_client.post(act)["Location"] == f"/proxied{change}"


class TestSubclass:
    def test_it_offers_its_own_actions(self, admin_client, page, lineage):
        offered = set(re.findall(r'<option value="(\w+)"', page(admin_client, LIST)))
        assert offered == {"cancel_run", "greet"}
        text = page(admin_client, urls()["change"])
        assert addresses.action_url("greet", ops, "line-1") in text
        assert "cancel_lineage" not in text

    def test_an_action_that_it_left_out_is_not_found(self, admin_client, lineage):
        url = addresses.action_url("cancel_lineage", ops, "line-1")
        assert admin_client.post(url).status_code == 404
        assert not Run.objects.exclude(cancel_requested_at_ms=None).exists()

    def test_an_action_of_its_own_is_confirmed_done_and_reported(self, admin_client, lineage):
        confirmation = admin_client.get(addresses.action_url("greet", ops, "line-1"))
        assert "It is greeted." in confirmation.content.decode()
        assert said(send(admin_client, confirmation)) == ["Greeted: line-1"]

    def test_it_shows_its_own_sections(self, admin_client, page, lineage):
        text = page(admin_client, urls()["change"])
        assert 'id="weather-heading">Weather<' in text
        assert 'id="ownership"' not in text
