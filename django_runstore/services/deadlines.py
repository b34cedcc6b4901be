"""When a run with a deadline is to be looked at."""


def due_by_deadline(due_at_ms: int | None, deadline_at_ms: int | None) -> int | None:
    """
    Say when a run may be claimed: when it is due, at its deadline at the latest.

    Whoever claims a run after its deadline fails it, and nothing else looks for such runs:
    one that waits longer than it may live would otherwise wait for ever.

    Args:
        due_at_ms: When it is due; ``None`` for not before somebody wakes it.
        deadline_at_ms: ``None`` for a run without one.
    """
    if due_at_ms is None or deadline_at_ms is None:
        return deadline_at_ms if due_at_ms is None else due_at_ms
    return min(due_at_ms, deadline_at_ms)
