"""Make, or take away, the administrator that ``dev.py serve`` logs people in as."""

import argparse
import os
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

# Not an argument: a command line can be read by everybody on the machine.
PASSWORD_VARIABLE = "THROWAWAY_PASSWORD"  # noqa: S105 - a name, not a password


class Command(BaseCommand):
    """Give the user a password from the environment, or remove the user."""

    help = f"Make an administrator whose password is in {PASSWORD_VARIABLE}, or remove it."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Take a user name, and whether that user shall go."""
        parser.add_argument("username")
        parser.add_argument("--remove", action="store_true")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Make sure that the user is as asked for, whatever an earlier call left behind."""
        users = get_user_model().objects
        if options["remove"]:
            users.filter(username=options["username"]).delete()
            return
        password = os.environ.get(PASSWORD_VARIABLE)
        if not password:
            raise CommandError(f"{PASSWORD_VARIABLE} is not set")
        user, _ = users.update_or_create(
            username=options["username"], defaults={"is_staff": True, "is_superuser": True}
        )
        user.set_password(password)
        user.save()
