"""
Operations as Prometheus counters. Needs the extra ``prometheus``.

``django_runstore.prometheus`` has the view to scrape and the gauges read from the database.
"""

import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Final
from weakref import WeakKeyDictionary

import prometheus_client
from prometheus_client.registry import REGISTRY, CollectorRegistry

from django_runstore.metrics.contract import COUNTERS
from django_runstore.metrics.exporting import NO_SPAN, Span

_Counters = Mapping[str, prometheus_client.Counter]

_lock: Final = threading.Lock()
_registered: Final[WeakKeyDictionary[CollectorRegistry, _Counters]] = WeakKeyDictionary()


class PrometheusExporter:
    """
    Count in ``prometheus_client``; its text format adds ``_total`` to each name.

    Every series of the contract is there from the start with 0, so that the first loss is
    an increase that a rate can see.

    Args:
        registry: By default the global one.
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self._counters = _counters_in(registry)

    def count(self, name: str, labels: Mapping[str, str], amount: int) -> None:
        """Add to a counter."""
        counter = self._counters[name]
        (counter.labels(**labels) if labels else counter).inc(amount)

    def span(self, name: str) -> AbstractContextManager[Span]:
        """Prometheus has no spans."""
        return NO_SPAN


def _counters_in(registry: CollectorRegistry) -> _Counters:
    """Register the counters, once per registry: exporters are made anew with the settings."""
    with _lock:
        if registry not in _registered:
            _registered[registry] = {
                counter.name: prometheus_client.Counter(
                    counter.name, counter.meaning, counter.labels, registry=registry
                )
                for counter in COUNTERS
            }
            for counter in COUNTERS:
                for values in counter.answered + counter.broken:
                    _registered[registry][counter.name].labels(*values)
        return _registered[registry]
