"""The Django project that the demo and the tests of django-runstore run in."""
