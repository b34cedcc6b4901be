"""Helpers for testing code that uses this package; part of its public API."""

from django_runstore.testing.clocks import FakeClock

__all__ = ["FakeClock"]
