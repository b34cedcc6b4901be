"""When the tests begin."""

START = 1_000_000_000
"""By the clock of the store, in milliseconds since the Unix epoch."""
