"""Processes that write and commit in any order, and one that follows what they change."""

from itertools import pairwise

import pytest
from django.db import connection

from django_runstore import RunStore
from django_runstore.models import Run, RunTombstone
from tests.concurrency.processes import let_loose_all
from tests.db.horizon import await_other_databases

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.conformance("D5", 203)]

WRITERS = 5
SECONDS = 4.0
MOST_ROUNDS = 5
SHARED = [f"shared-{number}" for number in range(6)]


@pytest.mark.timeout(240)
def test_a_follower_misses_no_committed_change_and_sees_none_that_was_rolled_back(
    child_environment,
):
    store = RunStore()
    begun = end_of_changes(store, None)
    for run_id in SHARED:
        store.create(run_id, "{}")
    # A long writer of another database can withhold everything for a whole round.
    for round_number in range(MOST_ROUNDS):
        if follow_writers(store, end_of_changes(store, begun), round_number, child_environment):
            return
    pytest.fail("in no round was anything followed beside the writing")


def follow_writers(store, start, round_number, child_environment) -> bool:
    """Let writers and a follower loose; tell whether the follower had pages meanwhile."""
    *writers, follower = let_loose_all(
        [
            *(
                (
                    "change_for_a_while",
                    {
                        "number": round_number * WRITERS + number,
                        "seconds": SECONDS,
                        "shared": SHARED,
                    },
                )
                for number in range(WRITERS)
            ),
            ("follow_for_a_while", {"after": start, "seconds": SECONDS + 1}),
        ],
        child_environment,
    )

    committed = [change for writer in writers for change in writer["committed"]]
    undone = [change for writer in writers for change in writer["undone"]]
    seen = [tuple(change) for change in follower["seen"]]
    # What writers of other databases have withheld from the follower.
    await_other_databases()
    rest = store.changes(follower["cursor"], 10_000)
    seen += [(change.run_id, change.revision, change.deleted) for change in rest.changes]
    # Something happened: commits and rollbacks.
    assert min(len(committed), len(undone)) > 50

    # Nothing is left.
    assert end_of_changes(store, rest.cursor) == rest.cursor

    # None that was rolled back, none invented, and none twice.
    known = {(run_id, revision, deleted) for run_id, revision, deleted, _ in committed}
    assert set(seen) <= known
    assert len(set(seen)) == len(seen)

    # Every committed change was seen, as itself or as a later one of its run: what was seen of
    # a run last is what there is of it.
    last = {run_id: (revision, deleted) for run_id, revision, deleted in seen}
    runs = {run_id for run_id, *_ in known}
    live = Run.objects.filter(pk__in=runs).values_list("run_id", "revision")
    buried = RunTombstone.objects.filter(pk__in=runs).values_list("run_id", "revision")
    there_is = {run_id: (revision, False) for run_id, revision in live}
    there_is |= {run_id: (revision, True) for run_id, revision in buried}
    assert last == there_is
    assert last.keys() == runs

    # And of one run the revisions only rise.
    by_run: dict[str, list[int]] = {}
    for run_id, revision, _ in seen:
        by_run.setdefault(run_id, []).append(revision)
    assert all(revisions == sorted(revisions) for revisions in by_run.values())

    committed.sort(key=lambda change: change[1])
    at = [change[3] for change in committed]
    if connection.vendor == "sqlite":
        # One writer: in the order of the revisions, give or take the noting of the time.
        assert [each[1] for each in seen] == sorted(each[1] for each in seen)
    else:
        # They did commit out of order, which is what this is about.
        late = sum(before > after for before, after in pairwise(at))
        assert late > 20
    return follower["pages"] > 20


def end_of_changes(store: RunStore, after: str | None) -> str:
    """Read on to where there is nothing more; give the cursor."""
    await_other_databases()
    page = store.changes(after)
    while page.has_more:
        page = store.changes(page.cursor)
    return page.cursor
