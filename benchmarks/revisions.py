"""
What counting every change costs: claims with the triggers, against the same without them.

On a throw-away PostgreSQL, and on SQLite::

    python -m django_runstore.testing.postgres python -m benchmarks.revisions
    DATABASE_URL=sqlite:////tmp/revisions.sqlite3 python -m benchmarks.revisions

The rounds take turns, in another order each time, in one database and one process, so that
what else the machine does falls on all alike. Counted is the time on a processor, of this
process and of its server process where that can be seen: on a busy machine the clock on the
wall tells of the others. Waiting for a disk is left out, so the share of the triggers comes out
larger than it is. A figure is the median of the rounds; a ratio is the median of each round's
own, and the throughput with the triggers over that without: below 1 where they cost.
"""

import argparse
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import django

if TYPE_CHECKING:
    from django_runstore import OwnerId, RunStore

BATCH: Final = 100
BARE: Final = "no triggers"
LEAN: Final = "no triggers, no index"
COUNTED: Final = "triggers"


def main() -> None:
    """Run the rounds and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=40, help="rounds of each arm")
    parser.add_argument("--runs", type=int, default=100, help="runs per round and workload")
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "testproject.settings")
    django.setup()
    _measure(options.rounds, options.runs)


def _measure(rounds: int, runs: int) -> None:
    # Importable only now that Django is set up.
    from django.core.management import call_command  # noqa: PLC0415
    from django.db import connection  # noqa: PLC0415

    call_command("migrate", verbosity=0)
    arms = {COUNTED: _count, BARE: _drop_triggers, LEAN: _drop_triggers_and_index}
    taken: dict[tuple[str, str], list[float]] = {}
    for number in range(rounds + 1):
        order = list(arms)
        random.Random(number).shuffle(order)  # noqa: S311 - an order, not a secret
        for arm in order:
            arms[arm]()
            for workload, seconds in _workloads(runs):
                # The first round only warms everything up.
                if number:
                    taken.setdefault((workload, arm), []).append(seconds / runs)
    _count()
    print(f"{connection.vendor}: {rounds} rounds of {runs} runs, microseconds per run")
    print(f"{'':<26}" + "".join(f"{arm:>24}" for arm in arms) + f"{'ratios':>16}")
    for workload in dict.fromkeys(name for name, _ in taken):
        figures = {arm: taken[workload, arm] for arm in arms}
        line = "".join(f"{statistics.median(figure) * 1e6:>24.1f}" for figure in figures.values())
        ratios = [
            statistics.median(
                bare / counted
                for bare, counted in zip(figures[without], figures[COUNTED], strict=True)
            )
            for without in (BARE, LEAN)
        ]
        print(f"{workload:<26}{line}" + "".join(f"{ratio:>8.3f}" for ratio in ratios))


def _workloads(runs: int) -> Iterator[tuple[str, float]]:
    """Yield the seconds that each workload took over that many new runs."""
    from django_runstore import OwnerId, RunStore  # noqa: PLC0415

    store, me = RunStore(), OwnerId("benchmark", 1, "benchmark")
    names = [f"run-{number:06}" for number in range(runs)]
    for workload, prepared, work in (
        ("claim_many(100)", _create, _claim_many),
        ("claim_and_own", _create, _own_each),
        ("whole cycle, one by one", _nothing, _live_each),
    ):
        _empty()
        prepared(store, names)
        _settle_down()
        yield workload, _seconds(lambda work=work: work(store, me, names))  # type: ignore[misc]


def _create(store: "RunStore", names: list[str]) -> None:
    for name in names:
        store.create(name, '{"month":"2026-10"}')


def _nothing(store: "RunStore", names: list[str]) -> None:
    """Create nothing beforehand."""


def _claim_many(store: "RunStore", me: "OwnerId", names: list[str]) -> None:
    claimed = 0
    while batch := store.claim_many(me, BATCH):
        claimed += len(batch)
    _expect(claimed, len(names))


def _own_each(store: "RunStore", me: "OwnerId", names: list[str]) -> None:
    from django_runstore import RunSnapshot  # noqa: PLC0415

    pending = RunSnapshot("pending")
    outcomes = [store.claim_and_own(name, pending, me).code for name in names]
    _expect(outcomes.count("activated"), len(names))


def _live_each(store: "RunStore", me: "OwnerId", names: list[str]) -> None:
    from django_runstore import RunSnapshot  # noqa: PLC0415

    pending, settled = RunSnapshot("pending"), 0
    for name in names:
        store.create(name, '{"month":"2026-10"}')
        store.claim_and_own(name, pending, me)
        store.heartbeat(name, me, fence=1)
        settled += store.transition_owned(name, me, "completed", fence=1).code == "transitioned"
    _expect(settled, len(names))


def _expect(done: int, wanted: int) -> None:
    if done != wanted:
        raise RuntimeError(f"{done} of {wanted} runs")


def _seconds(work: Callable[[], None]) -> float:
    began = time.process_time() + _server_seconds()
    work()
    return time.process_time() + _server_seconds() - began


def _server_seconds() -> float:
    """Time on a processor of the connection's server process; 0 where there is none to see."""
    from django.db import connection  # noqa: PLC0415

    if connection.vendor != "postgresql":
        return 0.0
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    accounts = Path(f"/proc/{pid}/schedstat")
    return int(accounts.read_text().split()[0]) / 1e9 if accounts.exists() else 0.0


def _count() -> None:
    """Have the triggers and the index."""
    from django.db import connection  # noqa: PLC0415

    from django_runstore.db.triggers import install_triggers  # noqa: PLC0415
    from django_runstore.models import Run  # noqa: PLC0415

    _execute(*install_triggers(connection, Run), _index_statement())


def _drop_triggers() -> None:
    """Have the index only."""
    _execute(*_removal(), _index_statement())


def _drop_triggers_and_index() -> None:
    """Have neither."""
    _execute(*_removal(), "DROP INDEX IF EXISTS runstore_run_changes")


def _index_statement() -> str:
    return (
        "CREATE INDEX IF NOT EXISTS runstore_run_changes ON runstore_run (revision_xid, revision)"
    )


def _removal() -> list[str]:
    from django.db import connection  # noqa: PLC0415

    from django_runstore.db.triggers import remove_triggers  # noqa: PLC0415

    return remove_triggers(connection)


def _empty() -> None:
    _execute(
        "DELETE FROM runstore_journal_entry",
        "DELETE FROM runstore_run",
        "DELETE FROM runstore_run_tombstone",
    )


def _settle_down() -> None:
    from django.db import connection  # noqa: PLC0415

    tables = "runstore_run, runstore_journal_entry, runstore_run_tombstone"
    _execute(f"VACUUM ANALYZE {tables}" if connection.vendor == "postgresql" else "ANALYZE")


def _execute(*statements: str) -> None:
    from django.db import connection  # noqa: PLC0415

    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


if __name__ == "__main__":
    main()
