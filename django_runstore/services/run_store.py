"""``RunStore``: every operation on runs, gathered from the capabilities it consists of."""

from django_runstore.services.batches import Batches
from django_runstore.services.cancelling import Cancelling
from django_runstore.services.claiming import Claiming
from django_runstore.services.following import Following
from django_runstore.services.leasing import Leasing
from django_runstore.services.parking import Parking
from django_runstore.services.reading import Reading
from django_runstore.services.settling import Settling
from django_runstore.services.taking_over import TakingOver


class RunStore(
    Reading, Cancelling, Claiming, TakingOver, Batches, Leasing, Settling, Parking, Following
):
    """
    Durable runs with exactly one owner at a time. Spec: run-store 4.

    Losing a race is an answer (``django_runstore.outcomes``); a broken contract or database
    is a ``RunStoreError``. Every mutation is one serialized write: row, lease and ownership
    facts commit or roll back together, also inside a caller's transaction.

    Operations of an owner take ``fence=``, the grant number from ``Activated`` or
    ``ClaimedRun``. Pass it: the owner triple alone cannot tell two executions of one run by
    the same process apart.

    Every operation has an async twin with an ``a`` prefix, to be called outside atomic blocks.

    Example::

        store = RunStore()
        store.create("report-2026-10", '{"month": "2026-10"}')
        row = store.get("report-2026-10")
        me = OwnerId.for_this_process()
        match store.claim_and_own(row.run_id, row, me):
            case Activated(fence=fence):
                store.transition_owned(row.run_id, me, "completed", fence=fence)
            case lost:
                print(lost.code)
    """
