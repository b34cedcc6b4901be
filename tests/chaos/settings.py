"""The settings of tests with real supervisors, and the handler of the chaos tests."""

from tests.settings import *  # noqa: F403 - a variant of these settings
from tests.settings import INSTALLED_APPS as TEST_APPS

INSTALLED_APPS = [*TEST_APPS, "tests.chaos.app"]
