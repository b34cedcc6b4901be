"""How a handler is told to stop."""


class RunInterrupted(BaseException):
    """
    The run has to leave the handler now; it is not a failure.

    Not an ``Exception``, so that a handler's ``except Exception`` cannot swallow it. Let it
    pass; use ``finally`` to clean up.

    Attributes:
        reason: Why, such as ``draining`` or ``cancelled``.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
