from urllib.parse import unquote as percent_unquote
from urllib.parse import urljoin, urlsplit

import pytest
from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.urls import resolve
from hypothesis import given
from hypothesis import strategies as st

from django_runstore.admin.addresses import (
    action_url,
    admin_segment,
    form_value,
    from_form,
    run_url,
    url_token,
    values_of_token,
)
from django_runstore.durable import is_durable_text
from tests.admin.pages import ODD_IDS

MOST_OF_A_REQUEST_LINE = 4_094  # what gunicorn takes unless told otherwise
AWKWARD = st.sampled_from("./_%?#&+ \\\r\n\t:;@=\"'<>\u202e🚀é2EF5Cb-")
IDS = st.text(AWKWARD | st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)


def arrives(url):
    """The id that a view is given, after a browser and Django have had the address."""
    path = urlsplit(urljoin("http://testserver/", url)).path
    return unquote(admin_segment(resolve(percent_unquote(path)).kwargs["object_id"]))


@pytest.mark.parametrize("run_id", [*ODD_IDS, "漢" * 682, "\x7f" * 1_024, "_b-Lg", "/" * 1_024])
@pytest.mark.parametrize("page", ["change", "history", "lineage"])
def test_the_address_of_a_page_leads_to_the_run(run_id, page):
    assert arrives(run_url(run_id, admin.site, page)) == run_id
    assert arrives(action_url("cancel_run", admin.site, run_id)) == run_id


@given(IDS.filter(is_durable_text))
def test_the_address_of_any_run_leads_to_it(run_id):
    assert arrives(run_url(run_id, admin.site)) == run_id


@pytest.mark.parametrize("run_id", ["🚀" * 512, "漢" * 682, "\x7f" * 1_024, "/" * 1_024])
def test_the_longest_addresses_are_short_enough_for_every_server(run_id):
    line = f"GET {run_url(run_id, admin.site, 'lineage')} HTTP/1.1\r\n"
    assert len(line) < MOST_OF_A_REQUEST_LINE


def test_an_ordinary_id_is_read_in_its_address():
    assert run_url("report-2026.10", admin.site).endswith("/run/report-2026.10/change/")


@pytest.mark.parametrize(
    "segment", ["_b-", "_b-!", "_b-A", "_b-_w", "_b-7aCA", "_b-" + "A" * 9_000]
)
def test_a_segment_that_encodes_no_text_is_an_id_of_nothing(segment):
    assert isinstance(unquote(admin_segment(segment)), str)


@given(IDS)
def test_an_id_survives_a_form(run_id):
    value = form_value(run_id)
    assert from_form(value) == run_id
    assert not set(value) & set('\r\n"<>')


@given(st.lists(st.integers(0, 2**63) | IDS))
def test_values_survive_a_url(values):
    assert values_of_token(url_token(values)) == values
