"""Ids for runs that were submitted without one: UUID version 7, as text."""

import secrets
import time
import uuid
from typing import Final

_RANDOM_BITS: Final = 74


def new_run_id() -> str:
    """
    Make an id that sorts by the millisecond it was made in.

    Neighbours in time are neighbours in the primary key, so that new rows touch few pages;
    with random ids each one lands on a page of its own. Ids of one millisecond are in random
    order.
    """
    moment = time.time_ns() // 1_000_000
    noise = secrets.randbits(_RANDOM_BITS)
    value = moment << 80 | 0x7 << 76 | (noise >> 62) << 64 | 0b10 << 62 | noise & (1 << 62) - 1
    return str(uuid.UUID(int=value))
