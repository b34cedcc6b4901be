"""
What waits in each queue and since when: one probe of an index per queue.

Written as SQL because the ORM has no recursive queries.
"""

from typing import Final, NamedTuple

from django.db import connections

MOST_QUEUES: Final = 50
MOST_COUNTED: Final = 1_000

# As in the condition of the index; for a parameter no partial index is used.
_CLAIMABLE: Final = "status IN ('pending', 'suspended')"

_QUEUES: Final = f"""
WITH RECURSIVE queues (queue, number) AS (
    SELECT (SELECT queue FROM runstore_run WHERE {_CLAIMABLE} ORDER BY queue LIMIT 1), 1
    UNION ALL
    SELECT (SELECT queue FROM runstore_run
             WHERE {_CLAIMABLE} AND queue > queues.queue
             ORDER BY queue LIMIT 1), number + 1
      FROM queues
     WHERE queue IS NOT NULL AND number < {MOST_QUEUES}
), oldest (queue, since_ms) AS (
    SELECT queue, (SELECT available_at_ms FROM runstore_run
                    WHERE {_CLAIMABLE} AND claim_host_id IS NULL
                      AND queue = queues.queue AND available_at_ms >= 0
                      AND available_at_ms <= %s
                    ORDER BY available_at_ms LIMIT 1)
      FROM queues WHERE queue IS NOT NULL
)
SELECT queue, since_ms,
       (SELECT COUNT(*) FROM (
            SELECT 1 FROM runstore_run
             WHERE {_CLAIMABLE} AND queue = oldest.queue AND available_at_ms >= 0
               AND available_at_ms <= %s
             LIMIT {MOST_COUNTED}
        ) AS due)
  FROM oldest WHERE since_ms IS NOT NULL ORDER BY since_ms, queue
"""  # noqa: S608 - nothing but constants


class WaitingQueue(NamedTuple):
    """
    A queue with something to claim.

    Attributes:
        since_ms: From when on the run that waits longest could have been claimed.
        due: How many could be claimed; ``MOST_COUNTED`` stands for that many and more.
    """

    name: str
    since_ms: int
    due: int


def waiting_queues(using: str, now_ms: int) -> list[WaitingQueue]:
    """List the queues with something due, the one that has waited longest first."""
    with connections[using].cursor() as cursor:
        cursor.execute(_QUEUES, [now_ms, now_ms])
        return [WaitingQueue(*row) for row in cursor.fetchall()]
