"""Text of others on every page of a run: shown as text, linked so that it leads there."""

import logging
import re
from html import unescape
from urllib.parse import urljoin

import pytest
from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.urls import path

from django_runstore import OwnerId
from django_runstore.admin import RunAdmin, addresses
from django_runstore.admin.actions.registry import ACTIONS
from django_runstore.admin.addresses import form_value
from django_runstore.models import JournalEntry, Run
from django_runstore.services.supervisors import SupervisorDescription, SupervisorRegister
from django_runstore.testing.factories import RunFactory
from tests.admin.pages import ENTRIES, OVERVIEW, RUNS, act_url, entry_url, run_url

pytestmark = pytest.mark.django_db

MARKUP = '<script>alert(1)</script><img src=x onerror=alert(2)>"\'`{{7*7}}{% now "Y" %}'
TURNED = "\u202eexe.txt\u2066\u200f"
ODD_IDS = [
    ".",
    "..",
    "a/../../b",
    "what?x=1#y&z",
    "100%2e%2F",
    "_2E",
    "a\r\nSet-Cookie: x",
    " spaced ",
    "overview",
    "_act",
    "lineage/act/cancel_run",
    MARKUP,
    TURNED,
    "é🚀" * 340,
    "x" * 1_024,
]
HIDDEN = "hunter2"
PAGES = ("change", "history", "lineage")


def every_page(run_id):
    yield RUNS
    yield f"{RUNS}?q={addresses.percent_quote(run_id, safe='')}"
    yield from (run_url(run_id, name) for name in PAGES)
    yield from (act_url(action.name, run_id) for action in ACTIONS)
    yield from (entry_url(entry) for entry in JournalEntry.objects.filter(run_id=run_id))
    yield ENTRIES
    yield OVERVIEW


def assert_is_text_only(text):
    # What somebody has typed stands in the box as it was typed.
    text = re.sub(r'<input type="text"[^>]*>', "", text)
    assert "<script>alert" not in text
    assert "<img src=x" not in text
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200e\u200f]", text)
    assert "\0" not in text


@pytest.mark.parametrize("run_id", ODD_IDS)
def test_every_page_of_a_run_is_found_by_its_address(admin_client, run_id):
    RunFactory(run_id=run_id, running=True, lineage_id=run_id, round_ordinal=0)
    RunFactory(run_id="child", parent_run_id=run_id)
    for url in every_page(run_id):
        # A browser resolves segments of dots before it asks.
        response = admin_client.get(urljoin("http://testserver", url))
        assert response.status_code == 200, url
        text = response.content.decode()
        assert_is_text_only(text)


@pytest.mark.parametrize("run_id", ODD_IDS)
def test_the_titles_of_its_pages_are_short_and_in_order(admin_client, run_id):
    RunFactory(run_id=run_id)
    for name in PAGES:
        text = admin_client.get(run_url(run_id, name)).content.decode()
        # A drawing has titles too, which are its words and not the page's.
        text = re.sub("<svg.*?</svg>", "", text, flags=re.DOTALL)
        for tag in ("title", "h1", "h2"):
            for found in re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", text, re.DOTALL):
                assert len(unescape(found)) < 200
                assert_is_text_only(found)


@pytest.mark.parametrize("run_id", ODD_IDS)
def test_the_run_itself_is_acted_on_and_no_other(admin_client, run_id):
    RunFactory(run_id=run_id)
    RunFactory(run_id="bystander")
    confirmation = admin_client.post(
        RUNS, {"action": "cancel_run", ACTION_CHECKBOX_NAME: form_value(run_id)}
    )
    text = confirmation.content.decode()
    hidden = dict(re.findall(r'<input type="hidden" name="(.*?)" value="(.*?)">', text))
    data = {name: unescape(value) for name, value in hidden.items()}
    admin_client.post(act_url("cancel_run"), data)
    asked = Run.objects.filter(cancel_requested_at_ms__isnull=False)
    assert [run.run_id for run in asked] == [run_id]


HOSTILE_COLUMNS = {
    "handler": MARKUP + TURNED,
    "queue": MARKUP + TURNED,
    "code_version": MARKUP + TURNED,
    "state_json": f'{{"a":"{TURNED}<script>alert(1)</script>\\u0000\\ud800"}}',
    "result_json": f'"</pre><script>alert(1)</script>{TURNED}"',
    "error_json": f'{{"type":"{TURNED}","message":"<img src=x onerror=alert(2)>","traceback":[7]}}',
    "progress_json": '{"fraction":"<script>alert(1)</script>","message":{"a":[]}}',
    "waiting_reason": MARKUP + TURNED,
    "waiting_request": f"<script>alert(1)</script>{TURNED}",
}


@pytest.mark.parametrize("column", HOSTILE_COLUMNS)
def test_what_handlers_and_projects_write_is_text_on_every_page(admin_client, column):
    RunFactory.raw(run_id="run-1", **{"status": "suspended", column: HOSTILE_COLUMNS[column]})
    for url in every_page("run-1"):
        response = admin_client.get(url)
        assert response.status_code == 200, url
        assert_is_text_only(response.content.decode())


def test_owners_and_supervisors_are_text_on_every_page(admin_client):
    owner = OwnerId(MARKUP + TURNED, 7, MARKUP + TURNED)
    RunFactory(run_id="run-1", running=True, owner=owner)
    description = SupervisorDescription(version=MARKUP, queues=(TURNED,), capacity=1)
    SupervisorRegister().enter(owner, description)
    for url in every_page("run-1"):
        assert_is_text_only(admin_client.get(url).content.decode())


@pytest.mark.parametrize("payload", ["not json", "[[[[", '"\\ud800"', "7", '{"owner":7}', TURNED])
def test_a_journal_that_another_tool_wrote_breaks_no_page(admin_client, payload):
    RunFactory(run_id="run-1")
    for number, (companion, event) in enumerate(
        [("", MARKUP), ("run-store", "runstore.ownership.claimed"), ("run-store", MARKUP)]
    ):
        JournalEntry.unguarded.create(
            run_id="run-1",
            companion=companion,
            seq=number,
            source_id=MARKUP,
            source_hash=bytes([number]) * 32,
            source_seq=number,
            emitted_at_ms=2**53 - 1,
            event_type=event,
            payload_json=payload,
        )
    for url in every_page("run-1"):
        response = admin_client.get(url)
        assert response.status_code == 200, url
        assert_is_text_only(response.content.decode())


def test_five_megabytes_make_no_long_page(admin_client):
    long = f'"{"<b>" * 1_700_000}"'
    RunFactory.raw(run_id="run-1", status="failed", state_json=long, error_json=long)
    for url in every_page("run-1"):
        response = admin_client.get(url)
        assert response.status_code == 200
        assert len(response.content) < 500_000


@pytest.mark.parametrize("broken", ["%00", "a%00b", "%ED%A0%80", "%ff", "%F0%9F", "_00", "_ED_A0"])
@pytest.mark.parametrize("page", ["change", "history", "lineage", "delete", "act/cancel_run"])
def test_an_address_that_is_no_text_is_not_found(admin_client, broken, page):
    response = admin_client.get(f"{RUNS}{broken}/{page}/")
    assert response.status_code in {302, 403, 404}
    assert admin_client.post(f"{RUNS}{broken}/{page}/").status_code in {302, 403, 404, 405}


@pytest.mark.parametrize(
    "name",
    [
        "q",
        "status",
        "attention",
        "cancellation",
        "handler",
        "queue",
        "waiting",
        "owner",
        "created",
        "stream",
        "after",
        "before",
        "p",
        "o",
        "all",
        "e",
        "_to_field",
        "_popup",
        "_facets",
        "_changelist_filters",
    ],
)
def test_no_value_in_a_query_is_an_error_of_the_server(admin_client, name):
    RunFactory(run_id="run-1", running=True)
    for url in (RUNS, ENTRIES):
        for value in ("%00", "a%00", "%ED%A0%80", "%ff", "%F0%9F", "A" * 9_000, "%0a"):
            response = admin_client.get(f"{url}?{name}={value}")
            assert response.status_code in {200, 302, 400}, (url, value)


@pytest.mark.parametrize("value", ["\0", "a\0b", "%00", "%ED%A0%80", "\ud800"])
@pytest.mark.parametrize("name", [ACTION_CHECKBOX_NAME, "action", "run", "shown_at_ms", "index"])
def test_no_value_in_a_form_is_an_error_of_the_server(admin_client, name, value):
    RunFactory(run_id="run-1")
    value = value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    for url in (RUNS, act_url("cancel_run"), act_url("cancel_run", "run-1")):
        data = {"action": "cancel_run", ACTION_CHECKBOX_NAME: ["run-1"], name: [value]}
        assert admin_client.post(url, data).status_code in {200, 302, 400, 404}


def test_state_is_in_no_address_title_or_log(admin_client, caplog):
    caplog.set_level(logging.DEBUG)
    RunFactory.raw(
        run_id="run-1",
        status="failed",
        **{name: f'"{HIDDEN}"' for name in HOSTILE_COLUMNS if name.endswith("_json")},
    )
    for url in every_page("run-1"):
        text = admin_client.get(url).content.decode()
        heads = re.findall(r"<(?:title|h1|h2)[^>]*>(.*?)</", text, re.DOTALL)
        assert not [found for found in heads if HIDDEN in found]
        assert not re.search(rf'(?:href|action|value)="[^"]*{HIDDEN}', text)
    for url in (f"{RUNS}nobody/change/", f"{RUNS}?created=x", f"{RUNS}?state_json__contains=x"):
        admin_client.get(url)
    assert HIDDEN not in caplog.text


class Fenced(RunAdmin):
    """Runs of one handler only, as a project may decide."""

    def get_queryset(self, request):
        return super().get_queryset(request).filter(handler="mine")


fenced = admin.AdminSite("fenced")
fenced.register(Run, Fenced)
urlpatterns = [path("admin/", admin.site.urls), path("fenced/", fenced.urls)]


@pytest.mark.urls("tests.admin.test_hostile")
class TestRunsOutOfSight:
    @pytest.fixture(autouse=True)
    def _runs(self):
        RunFactory(run_id="mine-0", handler="mine", lineage_id="line", round_ordinal=0)
        RunFactory(
            run_id="theirs-1",
            handler="theirs",
            lineage_id="line",
            round_ordinal=1,
            parent_run_id="mine-0",
            state_json=f'"{HIDDEN}"',
        )

    @pytest.mark.parametrize("name", PAGES)
    def test_their_pages_are_not_found(self, admin_client, name):
        response = admin_client.get(addresses.run_url("theirs-1", fenced, name))
        assert response.status_code in {302, 404}
        assert HIDDEN not in response.content.decode()

    @pytest.mark.parametrize("query", ["", "?q=theirs", "?handler=theirs", "?status=pending"])
    def test_the_list_does_not_have_them(self, admin_client, query):
        assert "theirs-1" not in admin_client.get(f"/fenced/runstore/run/{query}").content.decode()

    def test_the_lineage_does_not_have_them(self, admin_client):
        url = addresses.run_url("mine-0", fenced, "lineage")
        for suffix in ("", "?format=json", "?format=mermaid", "?format=dot"):
            assert "theirs-1" not in admin_client.get(url + suffix).content.decode()

    @pytest.mark.parametrize("action", ["cancel_run", "cancel_lineage", "wake_run"])
    def test_nothing_can_be_done_to_them(self, admin_client, action):
        one = addresses.action_url(action, fenced, "theirs-1")
        many = addresses.action_url(action, fenced)
        data = {"run": form_value("theirs-1"), "shown_at_ms": "0"}
        assert "theirs" not in admin_client.get(one).content.decode()
        admin_client.post(one, data)
        admin_client.post(many, data)
        admin_client.post(
            "/fenced/runstore/run/", {"action": action, ACTION_CHECKBOX_NAME: "theirs-1"}
        )
        assert not Run.objects.filter(cancel_requested_at_ms__isnull=False).exists()

    def test_the_overview_does_not_count_them(self, admin_client):
        text = admin_client.get("/fenced/runstore/run/overview/").content.decode()
        live = text.split('aria-labelledby="runstore-live-runs"', 1)[1].split("</section>")[0]
        assert re.findall(r"<strong>(\d+)</strong>", live) == ["1", "0", "0"]
