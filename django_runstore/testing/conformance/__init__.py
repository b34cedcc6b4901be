"""
Suites that an arbiter, a clock or a liveness check of your own must pass.

Each is a class of tests with its subject left open. Subclass it in your tests, under
pytest as it is or together with ``unittest.TestCase``, and say how the subject is made::

    class TestMyArbiter(ArbiterConformance):
        def make_arbiter(self):
            return MyArbiter()

Those of this package run through the very same suites. A failure names the rule that was
broken, what was expected and what came instead. Spec: run-store 6, 7.1 and 7.2.
"""

from django_runstore.testing.conformance.arbiters import ArbiterConformance
from django_runstore.testing.conformance.clocks import ClockConformance
from django_runstore.testing.conformance.liveness import LivenessCase, LivenessConformance
from django_runstore.testing.conformance.refusing_arbiters import RefusingArbiterConformance
from django_runstore.testing.conformance.stores import ArbitratedStoreConformance

__all__ = [
    "ArbiterConformance",
    "ArbitratedStoreConformance",
    "ClockConformance",
    "LivenessCase",
    "LivenessConformance",
    "RefusingArbiterConformance",
]
