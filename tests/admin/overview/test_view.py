import re
from html import unescape

import pytest

from django_runstore import OwnerId
from django_runstore.admin.overview import figures as figures_module
from django_runstore.services.supervisors import SupervisorDescription, SupervisorRegister
from django_runstore.testing.factories import RunFactory
from tests.admin.pages import OVERVIEW, RUNS

pytestmark = pytest.mark.django_db

ME = OwnerId("web-1/boot", 4102, "t1-9f3a61c200000000")


def section(text, name):
    return text.split(f'aria-labelledby="runstore-{name}"', 1)[1].split("</section>")[0]


def links(text):
    return [unescape(url) for url in re.findall(r'href="([^"]*)"', text)]


def test_whoever_may_see_runs_may_see_the_overview(viewer, page):
    assert "Needs a look" in page(viewer, OVERVIEW)


def test_staff_without_the_permission_may_not(member):
    assert member().get(OVERVIEW).status_code == 403


def test_visitors_are_asked_to_log_in(client, db):
    assert client.get(OVERVIEW).status_code == 302


def test_the_list_leads_to_the_overview_and_it_leads_back(viewer, page):
    assert OVERVIEW in links(page(viewer, RUNS))
    assert RUNS in links(page(viewer, OVERVIEW))


def test_an_empty_store_says_so(viewer, page):
    text = page(viewer, OVERVIEW)
    assert "Nothing: no run needs a person at the moment." in text
    assert "No run waits for a worker." in text
    assert "No supervisor has said that it is there." in text


def test_every_figure_leads_to_the_runs_it_counts(viewer, page):
    RunFactory(run_id="waiting-1", queue="a&b")
    RunFactory.raw(
        run_id="parked-1", status="suspended", waiting_reason="approval", available_at_ms=None
    )
    RunFactory(run_id="done-1", completed=True, queue="a&b")
    text = page(viewer, OVERVIEW)
    for name, shown in (("concerns", {"parked-1"}), ("queues", {"waiting-1"})):
        (url,) = links(section(text, name))
        found = re.findall(r">((?:waiting|parked|done)-1)<", page(viewer, url))
        assert set(found) == shown


def test_counts_that_were_cut_off_say_so(viewer, page, monkeypatch):
    monkeypatch.setattr(figures_module, "MOST_COUNTED", 2)
    monkeypatch.setattr("django_runstore.admin.overview.view.MOST_COUNTED", 2)
    RunFactory.create_batch(3)
    assert "2 and more" in section(page(viewer, OVERVIEW), "live-runs")


def test_a_supervisor_is_shown_with_what_it_is_doing(viewer, page):
    description = SupervisorDescription(version="1.2", queues=("mail", "slow"), capacity=4)
    SupervisorRegister().enter(ME, description)
    SupervisorRegister().touch(ME, is_draining=True)
    RunFactory(run_id="owned-1", running=True, owner=ME)
    text = section(page(viewer, OVERVIEW), "supervisors")
    for shown in ("web-1 pid 4102 (9f3a61c2)", "1 of 4", "mail, slow", "1.2", "draining"):
        assert shown in text
    (url,) = links(text)
    assert ">owned-1<" in page(viewer, url)


@pytest.mark.parametrize(("hears", "is_marked"), [(True, False), (None, False), (False, True)])
def test_a_supervisor_that_is_told_nothing_is_marked(viewer, page, hears, is_marked):
    description = SupervisorDescription(version="1.2", queues=None, capacity=4)
    SupervisorRegister().enter(ME, description)
    SupervisorRegister().touch(ME, is_draining=False, hears_notices=hears)
    text = section(page(viewer, OVERVIEW), "supervisors")
    assert ("polling only" in text) is is_marked


def test_hostile_names_are_shown_as_text(viewer, page):
    hostile = "<script>alert(1)</script>\u202e"
    RunFactory(queue=hostile)
    description = SupervisorDescription(version=hostile, queues=(hostile,), capacity=1)
    SupervisorRegister().enter(OwnerId(hostile, 1, hostile), description)
    text = page(viewer, OVERVIEW)
    assert "<script>alert" not in text
    assert "\u202e" not in text


def test_the_drawing_has_words_for_those_who_do_not_see_it(viewer, page):
    text = page(viewer, OVERVIEW)
    assert text.count("0 completed, 0 failed, 0 cancelled</title>") == 24
    assert len(re.findall(r'<tr><th scope="row">\d\d:00</th><td>0</td>', text)) == 24


def test_the_drawing_is_the_same_in_a_language_with_a_decimal_comma(viewer, page, settings):
    settings.LANGUAGE_CODE = "de"
    for _ in range(3):
        RunFactory(completed=True)
    text = page(viewer, OVERVIEW)
    assert not re.search(r'(?:x|y|width|height)="[\d-]*,', text)


def test_nothing_on_the_page_needs_an_exception_from_a_strict_policy(viewer, page):
    text = page(viewer, OVERVIEW)
    assert " style=" not in text
    assert not re.search(r"<script(?![^>]*src=)[^>]*>|<style|\son\w+=", text)
