"""A real browser on a live server, with a policy that lets no inline style or script run."""

import os
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from django.conf import settings as project_settings
from django.db import connections
from pytest_django.live_server_helper import LiveServer

from devtools.browser import FLAGS, NAMES, find_browser
from testproject.scene import build_scene
from tests.browser.policy import POLICY
from tests.supervision.conftest import marks, submit, supervise  # noqa: F401 - fixtures

IS_WANTED = os.environ.get("RUNSTORE_TEST_BROWSER", "yes") != "no"
WIDE = {"width": 1400, "height": 900}
NARROW = {"width": 390, "height": 800}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip, or fail where the verdict counts, when there is no browser."""
    reason = _what_is_missing()
    for item in items:
        if "browser" in Path(item.fspath).parts[-2:-1]:
            item.add_marker(pytest.mark.django_db(transaction=True))
            item.add_marker(pytest.mark.timeout(120))
            if reason and not (IS_WANTED and os.environ.get("CI") == "true"):
                item.add_marker(pytest.mark.skip(reason=reason))


def _what_is_missing() -> str | None:
    if not IS_WANTED:
        return "RUNSTORE_TEST_BROWSER=no: another run of the suite has the browser"
    if find_browser() is None:
        return f"no browser on PATH ({', '.join(NAMES)})"
    if find_spec("playwright") is None or find_spec("axe_playwright_python") is None:
        return "the extra `browser` is not installed"
    return None


@pytest.fixture
def strict_policy(settings, monkeypatch):
    """Serve every page under a policy that allows nothing inline."""
    settings.MIDDLEWARE = [
        "tests.browser.policy.StrictPolicy",
        *settings.MIDDLEWARE,
        # In the language that the browser asks for.
        "django.middleware.locale.LocaleMiddleware",
    ]
    # The driver keeps an event loop on this thread, where Django refuses its ORM.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")


def expect(subject):
    """Playwright's own, imported late: without the extra, tests are collected and skipped."""
    from playwright.sync_api import expect as expecting  # noqa: PLC0415 - of an extra

    return expecting(subject)


class Visitor:
    """Somebody at a browser, and what the browser complained of."""

    def __init__(self, context, base: str, policy: str | None) -> None:
        self.page = context.new_page()
        self.base = base
        self.policy = policy
        self.complaints: list[str] = []
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _on_console(self, message) -> None:
        is_icon = message.location.get("url", "").endswith("favicon.ico")
        if message.type in ("error", "warning") and not is_icon:
            self.complaints.append(message.text)

    def open(self, path: str) -> None:
        response = self.page.goto(self.base + path)
        assert response is not None
        assert response.status == 200, (path, response.status)
        assert response.headers.get("content-security-policy") == self.policy

    def overflow(self) -> int:
        """How many pixels the page is wider than the window."""
        return self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )

    def shoot(self, name: str) -> None:
        """Keep a picture, for people to look at."""
        folder = os.environ.get("RUNSTORE_TEST_SCREENSHOTS")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


@pytest.fixture
def server(strict_policy, transactional_db) -> Iterator[LiveServer]:
    """A server of this test's own: the shared one keeps the middleware it was started with."""
    started = LiveServer("localhost")
    started._live_server_modified_settings.enable()
    # Stopping then waits for the requests that are still being answered, each of which has a
    # connection to the database that is about to be dropped.
    started.thread.httpd.daemon_threads = False
    yield started
    started.stop()
    started._live_server_modified_settings.disable()


@pytest.fixture
def chromium(server) -> Iterator:
    """The browser, which goes before the server does: an open page asks again and again."""
    if reason := _what_is_missing():
        pytest.fail(reason)
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - of an extra

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_browser(), args=list(FLAGS))
        yield browser
        browser.close()
        # While the driver's event loop runs, Django gives this thread connections of their own,
        # which nobody else would close: the database could not be dropped in the end.
        connections.close_all()


@pytest.fixture
def visit(chromium, server, client, django_user_model):
    """Give an administrator's window; options are those of a browser context."""
    yield from windows(chromium, client, django_user_model, server.url, POLICY)


def windows(chromium, client, users, url, policy):
    """Make windows of a browser on a server, and look at their complaints in the end."""
    root = users.objects.create_superuser("root")
    client.force_login(root)
    cookie = client.cookies[project_settings.SESSION_COOKIE_NAME]
    windows = []

    def start(**options) -> Visitor:
        context = chromium.new_context(**{"viewport": WIDE, **options})
        context.set_default_timeout(15_000)
        context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": url}])
        windows.append(Visitor(context, url, policy))
        return windows[-1]

    yield start
    for window in windows:
        # Every story is also a test of the policy.
        assert window.complaints == []


@pytest.fixture
def scene(transactional_db):
    """The runs of the shop, as of now."""
    build_scene(int(time.time() * 1000))
