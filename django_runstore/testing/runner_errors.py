"""What keeps the runner from doing what it was asked for."""


class RunnerError(Exception):
    """Base of these errors; the message says what to change."""


class UnknownHandlerError(RunnerError):
    """
    A run waits for a handler that nobody declared in this process, or not for its state.

    A supervisor would leave such a run to a newer release. In a test it is a module that was
    not imported, or a name that is misspelt.
    """


class NotClaimableError(RunnerError):
    """The run cannot be executed: it is settled, or somebody has it."""


class NeverIdleError(RunnerError):
    """There was always something more to execute."""


class BlockIsOpenError(RunnerError):
    """The runner was called inside an atomic block, whose rows no worker could see yet."""
