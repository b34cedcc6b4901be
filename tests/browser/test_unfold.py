"""The pages in an admin with templates and styles of its own, which are not relied upon."""

import socket
import subprocess
import sys
from importlib.util import find_spec

import pytest

from devtools.commands import is_listening
from django_runstore import RunStore
from testproject.scene.shop import CLAIMED, ROUNDS, STUCK
from tests.admin.pages import ENTRIES, OVERVIEW, RUNS, act_url, run_url
from tests.browser.conftest import expect, windows
from tests.supervision.processes import until

pytestmark = pytest.mark.skipif(
    find_spec("unfold") is None, reason="django-unfold is not installed: it needs Python 3.12"
)


@pytest.fixture
def unfold_server(child_environment, scene, tmp_path):
    """A process with settings of its own: the admin of this one has made its choice."""
    with socket.socket() as probe:
        # Another process of the same run may be looking for a port as well.
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "manage.py", "runserver", "--noreload", str(port)]
    environment = child_environment | {"DJANGO_SETTINGS_MODULE": "tests.browser.unfold_settings"}
    with (
        (tmp_path / "server.log").open("w") as log,
        subprocess.Popen(command, env=environment, stdout=log, stderr=log) as process,
    ):
        until(lambda: is_listening(port))
        assert process.poll() is None
        yield f"http://localhost:{port}"
        process.terminate()


@pytest.fixture
def visit_unfold(unfold_server, chromium, client, django_user_model):
    yield from windows(chromium, client, django_user_model, unfold_server, policy=None)


def test_pages_work_in_another_admin(visit_unfold):
    window = visit_unfold()
    page = window.page
    for name, path in {
        "list": RUNS,
        "overview": OVERVIEW,
        "run": run_url(STUCK),
        "lineage": run_url(ROUNDS[1], "lineage"),
        "release": act_url("release_claim", CLAIMED),
        "journal": ENTRIES,
    }.items():
        window.open(path)
        window.shoot(f"unfold-{name}")
    window.open(run_url(STUCK))
    page.get_by_role("link", name="Cancel run").click()
    page.locator("#content-main input[type=submit]").click()
    page.wait_for_url("**" + run_url(STUCK))
    assert RunStore().get(STUCK).cancel_requested_at_ms is not None

    window.open(RUNS)
    page.get_by_role("row", name="invoice-4711").get_by_role("checkbox").check()
    page.locator("select[name=action]").select_option("cancel_run")
    page.locator("button[name=index]").click()
    expect(page.get_by_role("heading", name="Will be asked to stop (1)")).to_be_visible()

    # Its script for lists looks for a box of its own that selects all rows. The list of runs is
    # drawn by Django's tag and has Django's; the box of each row works.
    expected = "Cannot read properties of null (reading 'addEventListener')"
    window.complaints[:] = [each for each in window.complaints if each != expected]


def test_the_picture_of_a_lineage_can_be_read_in_another_admin(visit_unfold):
    window = visit_unfold(color_scheme="light")
    window.open(run_url(ROUNDS[1], "lineage"))
    box = window.page.locator(".runstore-node--origin rect")
    # Black is what a shape is filled with when nobody has named a colour.
    expect(box).not_to_have_css("fill", "rgb(0, 0, 0)")
