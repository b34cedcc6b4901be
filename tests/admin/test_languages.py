"""The pages in other languages and time zones than those they were written in."""

import re
from html import unescape

import pytest

from django_runstore import OwnerId
from django_runstore.services.supervisors import SupervisorDescription, SupervisorRegister
from django_runstore.testing.factories import RunFactory
from tests.admin.pages import ENTRIES, OVERVIEW, RUNS, run_url

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def runs():
    RunFactory(run_id="one", running=True)
    RunFactory(run_id="two", failed=True)
    RunFactory.raw(run_id="three", status="suspended", waiting_reason="approval")
    everything = SupervisorDescription(version="1", queues=None, capacity=2)
    SupervisorRegister().enter(OwnerId("web-1", 7, "nonce"), everything)


def words(text):
    """What a reader reads of the content, tooltips included."""
    content = text.partition('<div id="content-main"')[2].partition("<footer")[0]
    return unescape(re.sub(r"<[^>]+>", " ", content))


@pytest.mark.parametrize(
    ("url", "german", "english"),
    [
        (RUNS, ("läuft", "gescheitert", "3 Läufe auf dieser Seite"), ("running", "on this page")),
        (OVERVIEW, ("Nicht beendete Läufe", "Warteschlange"), ("Needs a look", "Supervisors are")),
        (ENTRIES, ("auf dieser Seite",), ("on this page",)),
    ],
)
def test_in_german_the_lists_and_the_overview_are_german(
    viewer, page, settings, url, german, english
):
    settings.LANGUAGE_CODE = "de"
    text = words(page(viewer, url))
    assert [each for each in german if each not in text] == []
    assert [each for each in english if each in text] == []


def test_a_duration_has_the_decimal_sign_of_the_language(viewer, page, settings):
    settings.LANGUAGE_CODE = "de"
    assert re.search(r"vor \d+,\d s", words(page(viewer, OVERVIEW)))


@pytest.mark.parametrize("language", ["de", "ja", "ar", "fa"])
@pytest.mark.parametrize(
    "url", [RUNS, OVERVIEW, ENTRIES, run_url("one"), run_url("one", "lineage")]
)
def test_a_page_is_whole_in_every_language_of_django(viewer, page, settings, language, url):
    settings.LANGUAGE_CODE = language
    settings.USE_THOUSAND_SEPARATOR = True
    text = page(viewer, url)
    assert f'lang="{language}"' in text
    drawings = "".join(re.findall("<svg.*?</svg>", text, re.DOTALL))
    numbers = re.findall(r'\s(?:x|y|x1|x2|y1|y2|width|height|viewBox)="([^"]*)"', drawings)
    assert [each for each in numbers if not re.fullmatch(r"[-0-9. ]+(%|r?em)?", each)] == []


def test_times_and_hours_are_those_of_the_readers_zone(viewer, page, settings):
    settings.TIME_ZONE = "Asia/Kathmandu"
    RunFactory.raw(run_id="four", created_at_ms=0)
    assert "1970-01-01 05:30:00</time>" in page(viewer, RUNS)
    # Its hours begin at a quarter to.
    assert re.search(r'<th scope="row">\d\d:45</th>', page(viewer, OVERVIEW))
