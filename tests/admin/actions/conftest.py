"""The way from a choice in the list over the confirmation to the messages."""

import pytest
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME

from django_runstore.admin.addresses import form_value
from tests.admin.forms import said, send
from tests.admin.pages import RUNS


@pytest.fixture
def choose():
    """Choose an action for some runs in the list; the response."""

    def post(client, action, *run_ids, url=RUNS, **more):
        selected = [form_value(run_id) for run_id in run_ids]
        data = {"action": action, ACTION_CHECKBOX_NAME: selected, "select_across": "0"}
        return client.post(url, data | more)

    return post


@pytest.fixture
def act(choose):
    """Choose and confirm; what the page says then."""

    def do(client, action, *run_ids):
        confirmation = choose(client, action, *run_ids)
        assert confirmation.status_code == 200, confirmation.status_code
        response = send(client, confirmation)
        assert response.status_code == 302, response.status_code
        return said(response)

    return do
