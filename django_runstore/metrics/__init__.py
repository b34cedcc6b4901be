"""
What operations tell the outside: counters and spans, through one seam. Spec: run-store 11.

``RUNSTORE["EXPORTERS"]`` names the classes that are told; none by default, and then nothing
is made, measured or called. ``contract`` lists every counter with its labels.
"""

from django_runstore.metrics.contract import COUNTERS, Counter
from django_runstore.metrics.exporting import NO_SPAN, Exporter, Span, count

__all__ = ["COUNTERS", "NO_SPAN", "Counter", "Exporter", "Span", "count"]
