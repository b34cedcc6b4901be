import re
from html import unescape

import pytest

from django_runstore import OwnerId
from django_runstore.admin.addresses import owner_from_token, owner_token, url_token
from django_runstore.services.supervisors import SupervisorDescription, SupervisorRegister
from django_runstore.testing.factories import RunFactory
from tests.admin.pages import RUNS

pytestmark = pytest.mark.django_db

ME = OwnerId("web-1/boot", 4102, "t1-9f3a61c200000000")


@pytest.fixture
def runs():
    RunFactory(run_id="done-1", completed=True, handler="billing", queue="slow")
    RunFactory(run_id="failed-1", failed=True, handler="report", queue="fast")
    RunFactory(run_id="waiting-1", handler="fresh", queue="urgent")
    RunFactory(run_id="owned-1", running=True, owner=ME, handler="billing", queue="slow")
    RunFactory(run_id="owned-2", running=True, handler="other")
    RunFactory.raw(run_id="parked-1", status="suspended", waiting_reason="approval")
    RunFactory.raw(run_id="parked-2", status="suspended", waiting_reason="payment")


def shown(text):
    return set(re.findall(r">((?:done|failed|waiting|owned|parked)-\d)<", text))


def choices(text, title):
    block = unescape(text).split(f'data-filter-title="{title}"')[1].split("</details>")[0]
    return [line.split(">")[1].split("<")[0] for line in block.splitlines() if "href" in line]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"handler": "billing"}, {"done-1", "owned-1"}),
        ({"handler": "billing", "status": "completed"}, {"done-1"}),
        ({"handler": "billing", "status": "live"}, {"owned-1"}),
        ({"handler": "bill"}, set()),
        ({"queue": "slow"}, {"done-1", "owned-1"}),
        ({"queue": "slow", "handler": "report"}, set()),
        ({"waiting": "approval"}, {"parked-1"}),
        ({"waiting": "approval", "q": "parked"}, {"parked-1"}),
        ({"owner": owner_token(ME)}, {"owned-1"}),
        ({"owner": owner_token(OwnerId("web-1/boot", 4102, "another"))}, set()),
    ],
)
def test_a_filter_keeps_the_runs_with_that_name(runs, viewer, page, query, expected):
    assert shown(page(viewer, RUNS, **query)) == expected


def test_handlers_and_queues_in_use_are_offered(runs, viewer, page):
    text = page(viewer, RUNS)
    assert {"billing", "report"} <= set(choices(text, "handler"))
    assert {"slow", "fast", "urgent"} <= set(choices(text, "queue"))
    assert choices(text, "waiting for") == ["All", "approval", "payment"]


def test_supervisors_are_offered_as_owners_by_their_short_name(viewer, page):
    description = SupervisorDescription(version="1", queues=None, capacity=1)
    SupervisorRegister().enter(ME, description)
    assert choices(page(viewer, RUNS), "owner") == ["All", "web-1 pid 4102 (9f3a61c2)"]


@pytest.mark.parametrize("title", ["waiting for", "owner"])
def test_a_filter_with_nothing_to_offer_is_not_shown(viewer, page, title):
    assert f'data-filter-title="{title}"' not in page(viewer, RUNS)


@pytest.mark.parametrize("name", ["handler", "queue", "waiting"])
def test_a_name_from_a_link_is_shown_as_chosen_though_it_is_not_offered(runs, viewer, page, name):
    text = page(viewer, RUNS, **{name: "never-heard-of"})
    assert re.search(r'class="selected">\s*<a href="[^"]*">never-heard-of<', text)


@pytest.mark.parametrize("name", ["handler", "queue", "waiting", "owner"])
@pytest.mark.parametrize("value", ["%00", "a%00b", "%ED%A0%80", "%27", "x" * 6_000])
def test_a_name_that_no_run_has_finds_nothing_and_breaks_nothing(runs, viewer, page, name, value):
    assert shown(page(viewer, f"{RUNS}?{name}={value}")) == set()


def test_no_handler_at_all_can_be_chosen(viewer, page):
    RunFactory.raw(run_id="done-1", handler="", status="completed")
    RunFactory.raw(run_id="done-2", handler="h", status="completed")
    text = page(viewer, RUNS, handler="")
    assert shown(text) == {"done-1"}
    assert "(none)" in choices(text, "handler")


class TestOwnersInUrls:
    @pytest.mark.parametrize(
        "owner",
        [ME, OwnerId("a/b?#&", 0, "ü🚀\n"), OwnerId("x" * 1_000, 2**53 - 1, "\u202e")],
    )
    def test_an_owner_survives_a_url(self, owner):
        assert owner_from_token(owner_token(owner)) == owner

    @pytest.mark.parametrize(
        "token",
        [
            "",
            "W10",
            "nonsense",
            url_token(["host", 1]),
            url_token(["host", "1", "nonce"]),
            url_token(["host", True, "nonce"]),
            url_token(["host", -1, "nonce"]),
            url_token(["host", 2**53, "nonce"]),
            url_token(["ho\0st", 1, "nonce"]),
            url_token(["", 1, "nonce"]),
            "A" * 20_000,
        ],
    )
    def test_what_names_no_owner_is_none(self, token):
        assert owner_from_token(token) is None
