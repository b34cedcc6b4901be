"""The settings of the tests, with counters that Prometheus can scrape."""

from tests.settings import *  # noqa: F403 - a variant of these settings
from tests.settings import RUNSTORE as SETTINGS

RUNSTORE = {
    **SETTINGS,
    "EXPORTERS": ["django_runstore.metrics.prometheus.PrometheusExporter"],
}
