from django.apps import AppConfig


class RunAppConfig(AppConfig):
    name = "tests.runapp"
    label = "runapp"
