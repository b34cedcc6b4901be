from pathlib import Path

from django.apps import AppConfig


class ChaosConfig(AppConfig):
    name = "tests.chaos.app"
    label = "chaos"
    # A namespace package can be in several places; where it is found first is not one of them.
    path = str(Path(__file__).parent)
