"""A morning in the run store of a shop: what the admin has to show to people who look at it."""

from testproject.scene.shop import build_scene

__all__ = ["build_scene"]
