"""
What a supervisor and its workers say to each other, and how it is framed.

Each direction is a pipe. A message is one frame: four bytes of length, most significant
first, then that many bytes of JSON, ``{"type": "start", ...}``. Everything that arrives is
checked, since a handler can write into any descriptor of its process.
"""

from __future__ import annotations

import json
import os
import struct
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias, get_args, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LONGEST_COMMAND_BYTES: Final = 60_000
"""A command has to fit into an empty pipe (64 kB), so that sending one never blocks."""

LONGEST_REPORT_BYTES: Final = 64 * 1024 * 1024
"""A report carries the result of a run; one that does not fit is reported as a failure."""

_LENGTH: Final = struct.Struct(">I")
_READ_BYTES: Final = 65_536

OutcomeKind: TypeAlias = Literal["completed", "failed", "interrupted"]


class ProtocolError(Exception):
    """The other side sent something that is no message; nothing it says can be trusted."""


class FrameTooLongError(ProtocolError):
    """A message to be sent is longer than its direction allows; nothing was sent."""


# --- from the supervisor to the worker ------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """The first message: everything a worker needs to know before it loads Django."""

    type: ClassVar[str] = "hello"

    supervisor_pid: int
    """The worker's parent; any other parent means that the supervisor is gone."""

    using: str
    settings: dict[str, Any] = field(repr=False)
    """The supervisor's own ``DATABASES`` and ``RUNSTORE``, by ``shared_settings``."""

    owner: dict[str, Any]
    sys_path: list[str]
    python_path: str | None
    """``PYTHONPATH`` as it was, for the children of handlers."""

    deadline_fd: int
    lock_fd: int


@dataclass(frozen=True, slots=True)
class Start:
    """Execute this run, which the supervisor owns under ``fence``."""

    type: ClassVar[str] = "start"

    run_id: str
    fence: int
    slot: int
    """Where in the shared memory it is published until when the ownership is confirmed."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop the run: at its next step, save or check, or ``urgent`` wherever it is."""

    type: ClassVar[str] = "stop"

    run_id: str
    fence: int
    reason: str
    urgent: bool = False


@dataclass(frozen=True, slots=True)
class Settled:
    """The outcome was dealt with, one way or the other; the worker may forget it."""

    type: ClassVar[str] = "settled"

    run_id: str
    fence: int


# --- from the worker to the supervisor ------------------------------------------


@dataclass(frozen=True, slots=True)
class Ready:
    """Django is loaded; the worker can execute runs."""

    type: ClassVar[str] = "ready"

    pid: int


@dataclass(frozen=True, slots=True)
class Started:
    """The run was found to be the supervisor's, and its handler is entered now."""

    type: ClassVar[str] = "started"

    run_id: str
    fence: int


@dataclass(frozen=True, slots=True)
class Lapsed:
    """The worker ends itself: the ownership of its run is not confirmed any more."""

    type: ClassVar[str] = "lapsed"

    run_id: str
    fence: int


@dataclass(frozen=True, slots=True)
class Finished:
    """
    How the handler ended.

    ``text`` is the result as JSON, the error as JSON, or the reason of an interruption.
    ``is_final`` and ``is_unreadable`` go with an error, as in ``Failed``.
    """

    type: ClassVar[str] = "finished"

    run_id: str
    fence: int
    kind: OutcomeKind
    text: str | None = field(default=None, repr=False)
    is_final: bool = False
    is_unreadable: bool = False


Command: TypeAlias = Hello | Start | Stop | Settled
Report: TypeAlias = Ready | Started | Lapsed | Finished

COMMANDS: Final[Mapping[str, type[Command]]] = {kind.type: kind for kind in get_args(Command)}
REPORTS: Final[Mapping[str, type[Report]]] = {kind.type: kind for kind in get_args(Report)}


def encode(message: Command | Report) -> bytes:
    """
    Write a message as one frame.

    Raises:
        FrameTooLongError: it is longer than its direction allows.
    """
    limit = LONGEST_COMMAND_BYTES if message.type in COMMANDS else LONGEST_REPORT_BYTES
    # Lone surrogates are legal in a str and not in UTF-8; ASCII escapes carry them.
    body = json.dumps({"type": message.type, **asdict(message)}).encode("ascii")
    if len(body) > limit:
        text = f"a {message.type!r} message takes {len(body)} bytes; {limit} are allowed"
        raise FrameTooLongError(text)
    return _LENGTH.pack(len(body)) + body


class Decoder:
    """
    Put messages together from whatever pieces a pipe delivers.

    Args:
        kinds: ``COMMANDS`` or ``REPORTS``; anything else is refused.
        longest_bytes: The limit of that direction.
    """

    def __init__(
        self, kinds: Mapping[str, type[Command]] | Mapping[str, type[Report]], longest_bytes: int
    ) -> None:
        self._kinds = kinds
        self._longest_bytes = longest_bytes
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        """Take in what was read."""
        self._buffer += data

    def messages(self) -> Iterator[Any]:
        """
        Give every message that is complete, and keep the rest.

        Raises:
            ProtocolError: what was sent is no message of this direction.
        """
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > self._longest_bytes:
                message = f"a frame announces {length} bytes; {self._longest_bytes} are allowed"
                raise ProtocolError(message)
            if len(self._buffer) < _LENGTH.size + length:
                return
            body = bytes(self._buffer[_LENGTH.size : _LENGTH.size + length])
            del self._buffer[: _LENGTH.size + length]
            yield self._decode(body)

    def _decode(self, body: bytes) -> Command | Report:
        try:
            values = json.loads(body)
            kind = self._kinds[values.pop("type")]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ProtocolError("a frame holds no known message") from error
        _check_fields(kind, values)
        return kind(**values)


class MessageReader:
    """
    Read messages from a descriptor, blocking or not.

    Example:
        >>> reader = MessageReader(descriptor, COMMANDS, LONGEST_COMMAND_BYTES)
        >>> message = reader.read()  # None at the end of the pipe
    """

    def __init__(
        self,
        descriptor: int,
        kinds: Mapping[str, type[Command]] | Mapping[str, type[Report]],
        longest_bytes: int,
    ) -> None:
        self._descriptor = descriptor
        self._decoder = Decoder(kinds, longest_bytes)
        self._waiting: list[Any] = []
        self.at_end = False

    def read(self) -> Any | None:  # noqa: ANN401 - a message of the direction it was made for
        """
        Wait for the next message; None when the other side has closed the pipe.

        Raises:
            ProtocolError: what was sent is no message of this direction.
        """
        while not self._waiting and not self.at_end:
            self._take(os.read(self._descriptor, _READ_BYTES))
        return self._waiting.pop(0) if self._waiting else None

    def read_available(self) -> list[Any]:
        """
        Give what has arrived on a non-blocking descriptor; ``at_end`` tells when it was closed.

        Raises:
            ProtocolError: what was sent is no message of this direction.
        """
        while not self.at_end:
            try:
                self._take(os.read(self._descriptor, _READ_BYTES))
            except BlockingIOError:
                break
        arrived, self._waiting = self._waiting, []
        return arrived

    def _take(self, data: bytes) -> None:
        self.at_end = not data
        self._decoder.feed(data)
        self._waiting.extend(self._decoder.messages())


def write_all(descriptor: int, frame: bytes) -> None:
    """Write a whole frame to a blocking descriptor."""
    view = memoryview(frame)
    while view:
        view = view[os.write(descriptor, view) :]


def _check_fields(kind: type[Command | Report], values: dict[str, Any]) -> None:
    """Refuse a message with a missing, unknown or wrongly typed field."""
    expected = _FIELD_TYPES[kind]
    if values.keys() != expected.keys():
        message = f"a {kind.type!r} message has the wrong fields"
        raise ProtocolError(message)
    for name, allowed in expected.items():
        value = values[name]
        # bool is an int to isinstance; a fence of True is a mistake.
        if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
            message = f"{name!r} of a {kind.type!r} message has the wrong type"
            raise ProtocolError(message)
    if kind is Finished and values["kind"] not in get_args(OutcomeKind):
        raise ProtocolError("a 'finished' message has an unknown kind")


def _runtime_types(hint: object) -> tuple[type, ...]:
    """Reduce a field's annotation to the classes its values may have."""
    if isinstance(hint, type):
        return (hint,)
    origin = getattr(hint, "__origin__", None)
    if origin is Literal:
        return (str,)
    if isinstance(origin, type):
        return (origin,)
    return tuple(kind for part in get_args(hint) for kind in _runtime_types(part))


_FIELD_TYPES: Final[Mapping[type[Command | Report], Mapping[str, tuple[type, ...]]]] = {
    kind: {item.name: _runtime_types(get_type_hints(kind)[item.name]) for item in fields(kind)}
    for kind in (*COMMANDS.values(), *REPORTS.values())
}
