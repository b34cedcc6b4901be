"""``Journal``: every operation on journals, gathered from the capabilities it consists of."""

from django_runstore.services.journal.compacting import Compacting
from django_runstore.services.journal.emitting import Emitting
from django_runstore.services.journal.following import Following
from django_runstore.services.journal.transacting import Transacting


class Journal(Emitting, Compacting, Following, Transacting):
    """
    The record of what happened to a run. Spec: run-store 8, the durable channel.

    Every run has a stream of its own, and may have companions: ``run-store`` holds who owned
    it. An entry is committed with what it is about or not at all, and never reordered.

    Operations of an owner take ``fence=``, the grant number from ``Activated`` or
    ``ClaimedRun``. Pass it: see ``RunStore``.

    Every operation has an async twin with an ``a`` prefix, to be called outside atomic blocks.

    Example::

        journal = Journal()
        match journal.emit_durable(JournalEvent("run", "shop", "invoice.sent", {"n": 7}), me):
            case Accepted(seq=seq) | Duplicate(seq=seq):
                print(seq)
    """
