"""The test project with django-unfold as its admin, and without a policy."""

from testproject.settings import *  # noqa: F403 - a variant of these settings
from testproject.settings import INSTALLED_APPS as PROJECT_APPS

INSTALLED_APPS = ["unfold", *PROJECT_APPS]

ROOT_URLCONF = "tests.browser.unfold_urls"
