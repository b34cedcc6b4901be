"""How Sphinx builds the documentation; ``python3 dev.py check`` runs it with warnings as errors."""

import importlib.metadata
import os

import django

# The reference pages import the package, and models need configured apps.
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "testproject.settings")
django.setup()

project = "django-runstore"
author = "django-runstore contributors"
copyright = "2026, django-runstore contributors"  # noqa: A001 - Sphinx gives this name its meaning
release = importlib.metadata.version("django-runstore")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
nitpicky = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "description"

html_theme = "furo"
html_title = f"django-runstore {release}"
