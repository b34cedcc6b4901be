"""
What the pages of the admin cost with a million runs: queries, buffers and milliseconds.

On a throw-away PostgreSQL::

    python -m django_runstore.testing.postgres python -m benchmarks.admin --runs 1000000

Buffers are pages of 8 kB that the statements about runs touched, as EXPLAIN counts them; they
do not depend on the machine. Milliseconds are those of the whole request, the median of nine.
"""

import argparse
import os
import re
import statistics
import time
from collections.abc import Callable, Iterator
from html import unescape

import django


def main() -> None:
    """Load the runs and print a line per page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--runs", type=int, default=1_000_000, help="settled runs")
    parser.add_argument("--live", type=int, default=1_000, help="pending, and as many running")
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "testproject.settings")
    django.setup()
    _measure(options.runs, options.live)


def _measure(runs: int, live: int) -> None:
    # Importable only now that Django is set up.
    from django.core.management import call_command  # noqa: PLC0415

    from benchmarks import crowd  # noqa: PLC0415
    from benchmarks.page_plans import cost_of  # noqa: PLC0415

    call_command("migrate", verbosity=0)
    began = time.perf_counter()
    crowd.load(runs, live, int(time.time() * 1_000))
    print(
        f"{runs:,} settled runs, {live:,} pending, {live:,} running: loaded in "
        f"{time.perf_counter() - began:.0f} s"
    )
    print(f"{'page':<44}{'queries':>8}{'buffers':>9}{'ms':>8}  whole tables")
    for name, visit in _pages():
        visit()
        cost = cost_of(visit)
        print(
            f"{name:<44}{cost.queries:>8}{cost.buffers:>9}{_median_ms(visit):>8.1f}  "
            f"{', '.join(sorted(cost.whole)) or '-'}"
        )


def _pages() -> Iterator[tuple[str, Callable[[], object]]]:
    from django.contrib import admin  # noqa: PLC0415
    from django.contrib.auth.models import Permission, User  # noqa: PLC0415
    from django.test import Client  # noqa: PLC0415
    from django.urls import reverse  # noqa: PLC0415

    from benchmarks.admin_pages import LISTS  # noqa: PLC0415
    from django_runstore.admin.addresses import run_url  # noqa: PLC0415

    # Not a superuser, whose permissions cost no query.
    viewer = User.objects.create_user("viewer", is_staff=True)
    viewer.user_permissions.set(Permission.objects.filter(content_type__app_label="runstore"))
    client = Client()
    client.force_login(viewer)

    def page(url: str, **query: str) -> Callable[[], str]:
        def visit() -> str:
            response = client.get(url, query)
            if response.status_code != 200:  # noqa: PLR2004 - what HTTP calls OK
                raise RuntimeError(f"{url}: {response.status_code}")
            return response.content.decode()

        return visit

    runs = reverse("admin:runstore_run_changelist")
    entries = reverse("admin:runstore_journalentry_changelist")
    for name, query in LISTS.items():
        yield f"runs: {name}", page(runs, **query)
    older = runs
    for _ in range(10):
        (link,) = re.findall(r'<a href="([^"]*)" rel="next"', page(older)())
        older = runs + unescape(link)
    yield "runs: the eleventh page", page(older)
    yield "overview", page(reverse("admin:runstore_run_overview"))
    for run_id in ("settled-00000001", "running-00000007", "parked-00000001"):
        yield f"run {run_id}", page(run_url(run_id, admin.site))
    yield "lineage of settled-00000001", page(run_url("settled-00000001", admin.site, "lineage"))
    yield "journal", page(entries)
    yield "journal of a run", page(entries, q="settled-00000001")


def _median_ms(visit: Callable[[], object]) -> float:
    times = []
    for _ in range(9):
        began = time.perf_counter()
        visit()
        times.append((time.perf_counter() - began) * 1_000)
    return statistics.median(times)


if __name__ == "__main__":
    main()
