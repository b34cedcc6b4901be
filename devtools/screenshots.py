"""
Take the pictures of the guide from the scene of the test project.

Run it with ``python3 dev.py screenshots``. It needs a browser on PATH.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Final

from devtools.browser import FLAGS, NAMES, find_browser
from devtools.environment import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Page

IMAGES: Final = ROOT / "docs" / "images"
WIDTH: Final = 1200
TALLEST: Final = 1_200
TALLEST_LIST: Final = 960


def main() -> None:
    """Serve the scene from a database of its own, and look at its pages."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DATABASE_URL"] = f"sqlite:///{folder}/scene.sqlite3"
        os.environ["DJANGO_SETTINGS_MODULE"] = "testproject.settings"
        os.environ["THROWAWAY_PASSWORD"] = "scene"  # noqa: S105 - of a server that lives for seconds
        for command in (["migrate"], ["throwaway_admin", "visitor"], ["build_scene"]):
            _manage(*command)
        port = _free_port()
        server = [sys.executable, "manage.py", "runserver", "--noreload", str(port)]
        with subprocess.Popen(server, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
            try:
                _wait_for(port)
                _look(f"http://127.0.0.1:{port}")
            finally:
                process.terminate()


def _manage(*command: str) -> None:
    subprocess.run([sys.executable, "manage.py", *command], cwd=ROOT, check=True)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _wait_for(port: int) -> None:
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError("the server did not start")


def _look(base: str) -> None:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - of an extra

    executable = find_browser()
    if executable is None:
        raise SystemExit(f"no browser on PATH ({', '.join(NAMES)})")
    runs = f"{base}/admin/runstore/run/"
    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=list(FLAGS))
        page = browser.new_context(viewport={"width": WIDTH, "height": 900}).new_page()
        page.goto(f"{base}/admin/login/?next=/admin/runstore/run/overview/")
        page.fill("#id_username", "visitor")
        page.fill("#id_password", "scene")
        page.click("input[type=submit]")
        page.wait_for_url("**/overview/")
        # The navigation of the admin says nothing here.
        if page.locator("#toggle-nav-sidebar").count():
            page.click("#toggle-nav-sidebar")
        _shoot(page, "overview")
        for name, path in {
            "run-list": "",
            "run-page": "import-2026-10/change/",
            "lineage-page": "nightly_2F1/lineage/",
            "cancel-lineage": "nightly_2F1/act/cancel_lineage/",
            "release-claim": "mail-digest/act/release_claim/",
        }.items():
            page.goto(runs + path)
            # More of the same rows would only make the file larger.
            _shoot(page, name, TALLEST_LIST if name == "run-list" else TALLEST)
        browser.close()


def _shoot(page: "Page", name: str, tallest: int = TALLEST) -> None:
    height = min(page.evaluate("document.documentElement.scrollHeight"), tallest)
    page.screenshot(
        path=IMAGES / f"{name}.png",
        clip={"x": 0, "y": 0, "width": WIDTH, "height": height},
        full_page=True,
    )


if __name__ == "__main__":
    main()
