"""Fill an empty database with the runs that the pictures of the guide show."""

import time
from typing import Any

from django.core.management.base import BaseCommand

from testproject.scene import build_scene


class Command(BaseCommand):
    """Build the scene as of now."""

    help = "Fill an empty database with runs to look at in the admin."

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Build it."""
        build_scene(int(time.time() * 1000))
