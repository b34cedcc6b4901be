"""The repository's own commands; ``dev.py`` starts them with a suitable interpreter."""
