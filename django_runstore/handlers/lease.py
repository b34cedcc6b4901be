"""What a running handler can learn about its ownership without asking the database."""

from typing import Protocol


class OwnershipSignal(Protocol):
    """Implemented by whoever executes handlers; a worker's reads memory it shares."""

    def expired(self) -> bool:
        """Tell whether ownership is no longer confirmed: nothing may be done any more."""
        ...

    def stop_reason(self) -> str | None:
        """Tell why the handler should stop, or nothing."""
        ...

    def advanced(self) -> None:
        """Note that the work moved."""
        ...
