"""The browser that the tests and the pictures of the guide are made with."""

import shutil
from typing import Final

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
"""What it is called on PATH, the first one found wins."""

FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""No sandbox, which root is not given; and nothing that a browser does on its own account."""


def find_browser() -> str | None:
    """Return the path of the browser, or None where there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)
